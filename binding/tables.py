"""Counts: how many objects have each value, as row and column sums of a table of zeros and ones, and the bits that they hold.

A row is a colour, a column is a shape, and a one is an object. The counts c of a scene say how many of its objects are red and
how many are squares. They pair no colour with any shape, but they say more than the features: whether there is any. (New.)
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import comb, factorial, log2

Levels = tuple[int, ...]


def tables(a: int, b: int, k: int) -> Iterator[tuple[int, int]]:
    """All a × b tables with k ones and no empty line, by row and column sums: pairs (choices of sums, tables for each choice).

    Sums that differ only in their order have equally many tables and stand together. Exact. Raises ``ValueError`` unless
    a, b ≥ 1 and k ≥ 0.

    >>> sorted(tables(2, 2, 3)), sum(choices * each for choices, each in tables(6, 6, 18))
    ([(4, 1)], 8058525440)
    """
    if a < 1 or b < 1 or k < 0:
        raise ValueError(f"need a, b >= 1 and k >= 0, got a = {a}, b = {b}, k = {k}")
    for rows in _partitions(k, a, b):
        # How many of the b columns hold 0, 1, …, a ones so far → the number of tables that begin so.
        states = {(b, *[0] * a): 1}
        for ones in rows:
            grown: Counter[Levels] = Counter()
            for levels, ways in states.items():
                for after, choices in _row(levels, ones, 0):
                    grown[after] += ways * choices
            states = dict(grown)
        for levels, ways in states.items():
            if not levels[0]:
                columns = _orders(levels)
                yield _orders(tuple(Counter(rows).values())) * columns, ways // columns


def count_share(groups: Sequence[int], k: int, shown: Sequence[int] | None = None) -> float:
    """I(C;O | F) / H(O | F), the share of the binding bits that counts hold: all sets of k objects of two groups, equally likely.

    It is 1 − Σ_c N_c log₂ N_c / Σ_f N_f log₂ N_f, for N_c sets with the counts c and N_f with the features f. With ``shown``,
    only those that show exactly so many values of each group. Raises ``ValueError`` unless there are two groups, and some
    binding to know.

    >>> round(count_share((3, 4), 5), 4), round(count_share((8, 8), 18, (6, 6)), 4)
    (0.7075, 0.6181)
    """
    if len(groups) != 2 or (shown is not None and len(shown) != 2):
        raise ValueError(f"counts are worked out for two groups, got {tuple(groups)} with shown = {shown}")
    n1, n2 = groups
    sides = [(a, b) for a in range(1, n1 + 1) for b in range(1, n2 + 1)] if shown is None else [(shown[0], shown[1])]
    left = open_bits = 0.0
    for a, b in sides:
        found = list(tables(a, b, k))
        sets = sum(choices * each for choices, each in found)
        weight = comb(n1, a) * comb(n2, b)
        left += weight * sum(choices * each * log2(each) for choices, each in found)
        open_bits += weight * sets * log2(sets) if sets else 0.0
    if not open_bits:
        raise ValueError(
            f"groups {tuple(groups)}, k = {k} and shown = {shown} leave no binding to know once the features are known"
        )
    return 1 - left / open_bits


def _partitions(k: int, parts: int, most: int) -> Iterator[Levels]:
    """Falling sequences of so many numbers from 1 to ``most`` with sum k."""
    if not parts:
        yield from [()] * (k == 0)
        return
    for first in range(min(most, k - parts + 1), 0, -1):
        for rest in _partitions(k - first, parts - 1, first):
            yield (first, *rest)


def _row(levels: Levels, ones: int, level: int) -> Iterator[tuple[Levels, int]]:
    """Put so many ones into columns of at least this level: the levels afterwards, and in how many ways."""
    if level == len(levels) - 1:
        yield from [(levels, 1)] * (ones == 0)
        return
    for here in range(min(ones, levels[level]) + 1):
        for after, ways in _row(levels, ones - here, level + 1):
            moved = (*after[:level], after[level] - here, after[level + 1] + here, *after[level + 2 :])
            yield moved, ways * comb(levels[level], here)


def _orders(repeats: Levels) -> int:
    """In how many orders things stand of which so many are alike."""
    orders = factorial(sum(repeats))
    for alike in repeats:
        orders //= factorial(alike)
    return orders
