"""Laws of the correlation of few points, each against scipy as an oracle."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, permutation_test

from binding.correlation import correlation, fisher_interval, permutation_p

seeds = st.integers(0, 2**32 - 1)


def pair(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    x, noise = np.random.default_rng(seed).standard_normal((2, n))
    return x, x + noise


@given(seeds, st.integers(4, 40))
def test_correlation_and_its_interval_are_those_of_scipy(seed: int, n: int) -> None:
    x, y = pair(seed, n)
    r, oracle = correlation(x, y), pearsonr(x, y)
    # Rounding of three inner products of n terms, then of artanh, whose slope is 1/(1 − r²).
    tolerance = 20 * n * 2.0**-53 / (1 - r**2)
    assert abs(r - oracle.statistic) <= tolerance
    interval = oracle.confidence_interval(0.95)
    assert np.abs(np.subtract(fisher_interval(r, n), (interval.low, interval.high))).max() <= tolerance


@given(seeds, st.integers(4, 20), st.floats(0.1, 10), st.floats(-5, 5))
def test_scale_and_origin_do_not_matter_and_a_sign_turns_it(seed: int, n: int, scale: float, shift: float) -> None:
    x, y = pair(seed, n)
    r = correlation(x, y)
    # The shift costs digits: 10 n u times its size against the spread, which is above 1e-2 for these draws.
    assert abs(correlation(scale * x + shift, y) - r) <= 1e-10
    assert abs(correlation(-scale * x, y) + r) <= 1e-10


@given(seeds, st.integers(4, 6))
def test_permutations_are_counted_exactly(seed: int, n: int) -> None:
    x, y = pair(seed, n)
    oracle = permutation_test(
        (x,), lambda z: correlation(z, y), permutation_type="pairings", alternative="greater", n_resamples=np.inf
    )
    p = permutation_p(x, y)
    assert abs(float(p) - oracle.pvalue) <= 2.0**-50
    assert p >= Fraction(1, factorial(n)), "the pairing itself counts"


def test_equal_pairings_count_in_whatever_order_they_are_summed() -> None:
    """Two equal values: each pairing occurs twice, so no p is below 2/n!."""
    x, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.1, 0.2, 0.7, 0.7])
    assert permutation_p(x, y) == Fraction(2, 24)


def test_the_interval_covers_as_often_as_it_says() -> None:
    """5 points of a normal law with correlation 0.6: the interval holds it in 95 % of 4,000 draws.

    Fisher's law is approximate at n = 5: exact coverage lies within 0.01 of the level. Hoeffding's bound for 4,000 draws and
    failure probability 1e-9 is √(ln(2e9)/8000) = 0.052.
    """
    rng, rho = np.random.default_rng(0), 0.6
    hits = 0
    for _ in range(4000):
        x, noise = rng.standard_normal((2, 5))
        low, high = fisher_interval(correlation(x, rho * x + np.sqrt(1 - rho**2) * noise), 5)
        hits += low <= rho <= high
    assert abs(hits / 4000 - 0.95) <= 0.052 + 0.01


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: correlation(np.arange(3), np.arange(4)), "one length"),
        (lambda: correlation(np.ones(3), np.arange(3)), "more than one value"),
        (lambda: fisher_interval(1.0, 5), "r = 1.0"),
        (lambda: fisher_interval(0.5, 3), "n = 3"),
        (lambda: fisher_interval(0.5, 5, 1.0), "level = 1.0"),
        (lambda: permutation_p(np.arange(9), np.arange(9)), "9 points"),
    ],
)
def test_bad_input_is_named(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=said):
        call()
