"""A caption corpus that is generated, of any size, whose swap-contrast rate is known in closed form."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from binding.scenes import vocabulary

COLOUR_SHARE, PLACE_SHARE = 0.02, 0.002
"""Shares of the generated corpus: "a red car and a blue dog", and "a cat on a mat"."""
PLACES = ("on", "under", "behind", "above", "below")


def generated(n: int, generator: np.random.Generator, *, start: int = 0) -> Any:
    """n captions as ``pyarrow.StringArray``: two coloured objects, one object at another, or a number and eight words (Zipf).

    All draws are independent. The numbers go up from ``start``, so the captions with a number have no partner.
    Raises ``ValueError`` for n < 1.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if n < 1:
        raise ValueError(f"n = {n}; generate at least 1 caption")
    objects, colours = _generated_words()

    def drawn(words: Sequence[str], size: int) -> Any:
        return pa.array(words).take(pa.array(generator.integers(len(words), size=size)))

    kind = generator.choice(3, size=n, p=(1 - COLOUR_SHARE - PLACE_SHARE, COLOUR_SHARE, PLACE_SHARE))
    rest, pairs, placed = np.bincount(kind, minlength=3).tolist()
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    zipf = 1 / np.arange(1, len(syllables) ** 2 + 1)
    ranks = generator.choice(len(zipf), size=(8, rest), p=zipf / zipf.sum())
    table = pa.array([a + b for a in syllables for b in syllables])
    number = pc.cast(pa.array(np.flatnonzero(kind == 0) + start), pa.string())
    columns = [
        [number, *(table.take(pa.array(row)) for row in ranks)],
        ["a", drawn(colours, pairs), drawn(objects, pairs), "and a", drawn(colours, pairs), drawn(objects, pairs)],
        ["a", drawn(objects, placed), drawn(PLACES, placed), "a", drawn(objects, placed)],
    ]
    captions = pa.concat_arrays([pc.binary_join_element_wise(*column, " ") for column in columns])
    # Row i takes the next caption of its kind: the inverse of sorting the rows by kind.
    return captions.take(pa.array(np.argsort(np.argsort(kind, kind="stable"))))


def generated_rate(*, swaps: bool) -> float:
    """p of the corpus of :func:`generated`, all candidates or those that are no reorderings, in closed form: Σ share · chance.

    With O objects, C colours and R places: two captions of coloured objects are these candidates with the chance
    (CO)⁻² [3 (1 − 1/C)(1 − 1/O) + (1 − 1/O)/C + (1 − 1/C)/O], of which 2 (1 − 1/C)(1 − 1/O) are swaps; two captions of placed
    objects with the chance (1 − 1/O) / (R O²), all of them swaps.
    """
    return sum(share * chance for share, chance in _kinds(swaps))


def generated_pairs(n: int, *, swaps: bool) -> tuple[float, float]:
    """Mean ½ n (n − 1) p and standard deviation of the number of pairs among n generated captions.

    The variance of a count over pairs of independent draws is ½ n (n − 1) [2 (n − 2) (E h² − p²) + p (1 − p)], where h is the
    chance that a given caption has another one as its partner. Raises ``ValueError`` for n < 2.
    """
    if n < 2:
        raise ValueError(f"n = {n}; a pair needs two captions at least")
    p, pairs = generated_rate(swaps=swaps), n * (n - 1) / 2
    spread = sum(share * chance**2 for share, chance in _kinds(swaps)) - p**2
    return pairs * p, (pairs * (2 * (n - 2) * spread + p * (1 - p))) ** 0.5


def _kinds(swaps: bool) -> list[tuple[float, float]]:
    """For each kind of caption with partners: its share, and the chance that a random caption is a given one's partner."""
    o, c = (1 / len(words) for words in _generated_words())
    coloured, placed = COLOUR_SHARE * (c * o) ** 2, PLACE_SHARE * o**2 / len(PLACES)
    kinds = [(COLOUR_SHARE * (1 - c) * (1 - o), (2 if swaps else 3) * coloured), (PLACE_SHARE * (1 - o), placed)]
    if not swaps:  # one colour or one object twice: the other order is a candidate
        kinds.append((COLOUR_SHARE * ((1 - o) * c + (1 - c) * o), coloured))
    return kinds


def _generated_words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Objects and colours that take the article "a"."""
    words = vocabulary()
    objects, colours = words["animals"] + words["things"], words["colours"]
    return tuple(w for w in objects if w[0] not in "aeiou"), tuple(w for w in colours if w[0] not in "aeiou")
