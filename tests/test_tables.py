"""Tables of zeros and ones by their sums, against a list of all of them."""

from collections import Counter
from itertools import combinations
from math import log2

import numpy as np
import pytest
import torch

from binding.channels import of_channel
from binding.information import Subsets, coverings, features
from binding.tables import count_share, tables

EPS = float(np.finfo(float).eps)


def listed(a: int, b: int, k: int) -> list[np.ndarray]:
    found = []
    for cells in combinations(range(a * b), k):
        table = np.zeros(a * b, dtype=int)
        table[list(cells)] = 1
        found.append(table.reshape(a, b))
    return found


@pytest.mark.parametrize(
    ("a", "b", "k"), [(1, 1, 1), (2, 2, 2), (2, 3, 3), (3, 3, 4), (3, 4, 6), (4, 2, 5), (2, 2, 0), (3, 3, 2)]
)
def test_tables_are_counted_as_a_list_counts_them(a: int, b: int, k: int) -> None:
    full = [t for t in listed(a, b, k) if t.any(axis=0).all() and t.any(axis=1).all()]
    by_sums = Counter((tuple(t.sum(axis=1)), tuple(t.sum(axis=0))) for t in full)
    want = Counter(by_sums.values())
    got: Counter[int] = Counter()
    for choices, each in tables(a, b, k):
        got[each] += choices
    assert got == want


@pytest.mark.parametrize(("a", "b", "k"), [(6, 6, 18), (6, 6, 8), (5, 7, 12), (7, 5, 12)])
def test_all_tables_are_found(a: int, b: int, k: int) -> None:
    assert sum(choices * each for choices, each in tables(a, b, k)) == coverings((a, b), k)


@pytest.mark.parametrize(("groups", "k"), [((3, 4), 5), ((3, 3), 4), ((2, 3), 3), ((4, 4), 5)])
def test_the_share_of_counts_is_the_information_of_the_channel_that_counts(groups: tuple[int, int], k: int) -> None:
    codes = listed(*groups, k)
    sums = np.array([[*t.sum(axis=1), *t.sum(axis=0)] for t in codes])
    shown = features(torch.tensor(np.array(codes)).reshape(len(codes), -1), groups).numpy()
    at, labels = (np.unique(rows, axis=0, return_inverse=True)[1].ravel() for rows in (sums, shown))
    kept = of_channel(np.full(len(codes), 1 / len(codes)), labels, np.eye(at.max() + 1)[at])
    # Sums over at most 4,368 codes of terms below 12 bits.
    assert abs(kept.beta_star - count_share(groups, k)) <= 1e5 * EPS
    assert abs(kept.entropy_given_features - Subsets(groups, k).entropy_given_features) <= 1e5 * EPS


def test_counts_pair_nothing_for_two_objects_of_two_values_and_everything_for_three() -> None:
    assert count_share((2, 2), 2, (2, 2)) == 0
    assert count_share((2, 2), 3) == 1


def test_most_of_the_published_binding_bits_are_counts() -> None:
    share = count_share((8, 8), 18, (6, 6))
    assert abs(share - 0.6181495) <= 5e-8  # as many digits as are written
    assert abs(share * log2(8_058_525_440) - 20.34198) <= 5e-6


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: list(tables(0, 2, 1)), "a = 0"),
        (lambda: list(tables(2, 2, -1)), "k = -1"),
        (lambda: count_share((2, 2, 2), 2), "two groups"),
        (lambda: count_share((3, 3), 2, (3,)), "two groups"),
        (lambda: count_share((3, 3), 2, (3, 3)), "no binding"),
        (lambda: count_share((3, 3), 9), "no binding"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()
