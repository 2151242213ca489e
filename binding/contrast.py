"""How often a corpus sets a caption against its own swap, and the most that a contrastive loss can pay for it.

Two captions are *swap candidates* of each other if they have the same words, each as often, in another order. d counts the
candidates of a caption, its *partners*; c_d is the number of captions with d partners, n the number of all captions.
"""

import re
from collections.abc import Mapping

import numpy as np
from scipy.stats import chi2, hypergeom

WORD = re.compile(r"[A-Za-z0-9']+")
PREPOSITIONS = frozenset(
    "above across against along around at before behind below beneath beside between by down during from in inside into near of"
    " off on onto out outside over past through to toward towards under up upon with within without".split()
)
"""The words that open a phrase for :func:`clauses`."""
_TOKEN = re.compile(r"[A-Za-z0-9']+|[,;:.]")
_CUTS = frozenset({"and", ",", ";", ":", "."})


def tokens(caption: str) -> tuple[str, ...]:
    """The words of a caption in their order: runs of A–Z, a–z, 0–9 and the apostrophe, in lower case.

    Every other character separates words. So "café" is the word "caf", and a caption in Chinese or Cyrillic has no word at all.

    >>> tokens("On a mat, a CAT."), tokens("кошка")
    (('on', 'a', 'mat', 'a', 'cat'), ())
    """
    return tuple(word.lower() for word in WORD.findall(caption))


def is_candidate(first: str, second: str) -> bool:
    """Whether two captions are swap candidates: the same words, each as often, in another order.

    >>> is_candidate("a red car and a blue dog", "A blue car and a red dog!"), is_candidate("a cat", "a cat.")
    (True, False)
    """
    a, b = tokens(first), tokens(second)
    return a != b and sorted(a) == sorted(b)


def clauses(caption: str) -> tuple[tuple[str, ...], ...]:
    """The clauses of a caption, each as its phrases, with the order of both forgotten.

    A caption is cut into clauses at "and" and at , ; : . and a clause into phrases in front of each word of ``PREPOSITIONS``. A
    clause that begins with one of them is not closed: it goes on into the next, so that a place may be named first.

    >>> clauses("a dog and a cat on a mat")
    (('a cat', 'on a mat'), ('a dog',))
    >>> clauses("on a mat, a cat") == clauses("a cat on a mat") != clauses("a mat on a cat")
    True
    """
    found: list[list[list[str]]] = [[]]
    opens = True
    for token in (text.lower() for text in _TOKEN.findall(caption)):
        clause = found[-1]
        if token in _CUTS:
            if clause and clause[0][0] not in PREPOSITIONS:
                found.append([])
            opens = True
        elif opens or token in PREPOSITIONS:
            clause.append([token])
            opens = False
        else:
            clause[-1].append(token)
    return tuple(sorted(tuple(sorted(" ".join(phrase) for phrase in clause)) for clause in found if clause))


def is_reordering(first: str, second: str) -> bool:
    """Whether two swap candidates have the same clauses, so that only the order of clauses and phrases differs.

    >>> is_reordering("a dog and a cat", "a cat and a dog")
    True
    >>> is_reordering("a red car and a blue dog", "a blue car and a red dog")
    False
    """
    return is_candidate(first, second) and clauses(first) == clauses(second)


def rate(partners: Mapping[int, int], captions: int) -> float:
    """p = Σ_d d c_d / (n (n − 1)), the chance that a caption drawn at random has another one, so drawn, as its candidate.

    ``partners`` maps d to c_d; d = 0 may be left out. Raises ``ValueError`` for n < 2 or more captions with partners than n.

    >>> rate({1: 2}, 5)
    0.1
    """
    _check(partners, captions)
    return sum(d * c for d, c in partners.items()) / (captions * (captions - 1))


def expected_pairs(batch: int, p: float) -> float:
    """½ B (B − 1) p, the mean number of pairs of candidates in a batch of B captions.

    The batch is drawn from the corpus without replacement; nothing need be independent, since means add up.
    Raises ``ValueError`` for a batch below 2 or a p outside [0, 1].

    >>> expected_pairs(5, 0.1)
    1.0
    """
    if batch < 2 or not 0 <= p <= 1:
        raise ValueError(f"batch = {batch} and p = {p}; give a batch of 2 at least and a rate from 0 to 1")
    return batch * (batch - 1) * p / 2


def expected_log(partners: Mapping[int, int], captions: int, batch: int) -> float:
    """E log(1 + m) = Σ_d (c_d / n) Σ_m h_d(m) log(1 + m), h_d the law of the partners of one caption in its batch, in nats.

    A batch is B of the n captions, drawn without replacement: h_d is hypergeometric, B − 1 draws from n − 1 captions of which d
    are partners. It is the most that binding can save InfoNCE there, an example. Raises ``ValueError`` as :func:`rate`, for
    B < 2, and for B > n.

    >>> round(expected_log({1: 2}, 5, 3) / float(np.log(2)), 9)
    0.2
    """
    _check(partners, captions)
    if not 2 <= batch <= captions:
        raise ValueError(f"batch = {batch}; draw at least 2 and at most all {captions} captions")
    total = 0.0
    for d, c in partners.items():
        m = np.arange(min(d, batch - 1) + 1)
        total += c / captions * float((hypergeom.pmf(m, captions - 1, d, batch - 1) * np.log1p(m)).sum())
    return total


def poisson_interval(events: int, level: float = 0.95) -> tuple[float, float]:
    """(½ χ²_{2x}(α/2), ½ χ²_{2x+2}(1 − α/2)), the exact interval for a Poisson mean after x events.

    χ²_f(·) are quantiles with f degrees of freedom, and α = 1 − level. Counted pairs are close to Poisson where pairs are rare
    and seldom share a caption; where they cluster, the truth is wider.
    Raises ``ValueError`` for x < 0 or a level outside (0, 1).

    >>> [round(end, 3) for end in poisson_interval(1)]
    [0.025, 5.572]
    """
    if events < 0 or not 0 < level < 1:
        raise ValueError(f"events = {events} and level = {level}; give a count and a level between 0 and 1")
    tail = (1 - level) / 2
    low = float(chi2.ppf(tail, 2 * events)) / 2 if events else 0.0
    return low, float(chi2.ppf(1 - tail, 2 * events + 2)) / 2


def _check(partners: Mapping[int, int], captions: int) -> None:
    if captions < 2:
        raise ValueError(f"captions = {captions}; a contrast needs two at least")
    if any(not 0 <= d < captions or c < 0 for d, c in partners.items()) or sum(partners.values()) > captions:
        raise ValueError(f"partners {dict(partners)} do not fit {captions} captions; give for each d how many have d partners")
