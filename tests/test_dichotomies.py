"""Counts and expectations of separable sets, against enumeration, closed forms and simulation."""

from fractions import Fraction
from itertools import combinations
from math import acos, ceil, comb, erfc, exp, lgamma, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

from binding.dichotomies import (
    LARGEST,
    _log_comb,
    _log_external,
    _log_internal,
    cover_count,
    curve_fraction,
    gaussian_fraction,
    typical_dimension,
    typical_size,
)
from binding.radon import separable_counts

QUADRATURE = 1e-12
"""Each term is an exponential of a sum of at most about 10³ in size, rounded to 10³ ε = 2e-13, and the terms are positive."""

sizes = st.integers(2, 11).flatmap(lambda M: st.tuples(st.integers(1, M - 1), st.just(M)))


@given(st.integers(1, 3), sizes)
def test_curve_fraction_counts_runs(k: int, size: tuple[int, int]) -> None:
    """A set separates iff its present atoms form at most k runs around the circle: count them one by one."""
    j, M = size
    runs = [sum(i in chosen and (i + 1) % M not in chosen for i in range(M)) for chosen in combinations(range(M), j)]
    assert curve_fraction(2 * k, M, j) == Fraction(sum(r <= k for r in runs), comb(M, j))


@given(st.integers(1, 5), st.integers(2, 40))
def test_curve_fractions_add_up_to_cover(k: int, M: int) -> None:
    assert 2 + sum(curve_fraction(2 * k, M, j) * comb(M, j) for j in range(1, M)) == cover_count(2 * k, M)


@given(st.integers(1, 8), st.integers(2, 30))
def test_curve_is_neighbourly_and_no_more(k: int, M: int) -> None:
    """Proposition C.3: every j-subset separates up to ⌊N/2⌋, and not at ⌊N/2⌋ + 1 once M ≥ N + 2."""
    assert all(curve_fraction(2 * k, M, j) == 1 for j in range(1, min(k, M - 1) + 1))
    if M >= 2 * k + 2:
        assert curve_fraction(2 * k, M, k + 1) < 1


@given(st.integers(1, 9), sizes)
def test_cover_recursion(N: int, size: tuple[int, int]) -> None:
    """Adding a point splits the old dichotomies that a hyperplane through it meets: C(N, M + 1) = C(N, M) + C(N − 1, M)."""
    M = size[1]
    assert cover_count(N + 1, M + 1) == cover_count(N + 1, M) + cover_count(N, M)
    assert cover_count(N, min(M, N + 1)) == 2 ** min(M, N + 1)


@given(st.integers(1, 6), st.integers(2, 20))
@settings(max_examples=30)
def test_gaussian_fractions_add_up_to_cover(N: int, M: int) -> None:
    total = 2 + sum(gaussian_fraction(j, M, N) * comb(M, j) for j in range(1, M))
    assert abs(total - cover_count(N, M)) <= QUADRATURE * 2**M


@given(sizes)
def test_gaussian_fraction_on_a_line(size: tuple[int, int]) -> None:
    """In dimension one a set separates iff it is the top or the bottom j: 2 of C(M, j), or both at once never."""
    j, M = size
    assert abs(gaussian_fraction(j, M, 1) - 2 / comb(M, j)) <= QUADRATURE


@given(st.integers(1, 12), sizes)
def test_gaussian_fraction_is_symmetric_and_one_below_radon(N: int, size: tuple[int, int]) -> None:
    j, M = size
    assert abs(gaussian_fraction(j, M, N) - gaussian_fraction(M - j, M, N)) <= QUADRATURE
    if M <= N + 1:
        assert gaussian_fraction(j, M, N) == 1


def test_gaussian_fraction_of_four_points_in_the_plane() -> None:
    """A point is in the triangle of three others twice as often as a normal vector is in a corner of a regular tetrahedron."""
    corner = (3 * acos(1 / 3) - pi) / (4 * pi)
    assert abs(gaussian_fraction(1, 4, 2) - (1 - 2 * corner)) <= QUADRATURE


@pytest.mark.parametrize("n", [3, 50, LARGEST])
def test_angles_add_up_to_the_largest_size(n: int) -> None:
    """A Gaussian vector of sum 0 has some pattern of signs; m normals fall below and above c in some way. No other angle is used.

    The logarithms are sums of terms of size at most log n!, each rounded by ε of itself: 4 (log n! + 10) ε bounds the sum.
    The integral is cut at t = sinh 16, and its integrand falls like t^{−n}.
    """
    slack = 4 * (lgamma(n + 1) + 10) * np.finfo(float).eps + np.sinh(16.0) ** (1 - n)
    a, p = np.arange(1, n), np.arange(21)
    assert abs(np.exp(_log_comb(n, a) + _log_internal(a, n - a)).sum() - 1) <= slack
    assert abs(np.exp(_log_comb(20, p) + _log_external(p, 20 - p, n)).sum() - 1) <= slack


@pytest.mark.parametrize(("N", "M"), [(2, 8), (4, 11)])
def test_gaussian_fraction_against_simulation(N: int, M: int) -> None:
    """Hoeffding: a mean of n values in [0, 1] is off by more than √(log(2 / p) / 2n) with probability at most p; p = 1e-9 / M."""
    rng = np.random.default_rng(5)
    draws = 400
    counts = np.mean([separable_counts(rng.standard_normal((M, N))) for _ in range(draws)], axis=0)
    slack = sqrt(log(2 * M / 1e-9) / (2 * draws))
    for j in range(1, M):
        assert abs(counts[j] / comb(M, j) - gaussian_fraction(j, M, N)) <= slack


@given(st.integers(2, 60), st.data())
def test_typical_dimension_bounds_the_statistical_dimension(M: int, data: st.DataObject) -> None:
    """δ(C) = E min over c of a convex cost of g; at the c of the bound its mean is the bound, and a minimum is never larger."""
    j = data.draw(st.integers(1, M - 1))
    dimension = typical_dimension(j, M)
    assert abs(dimension - typical_dimension(M - j, M)) <= 1e-9 * M
    assert dimension <= M / 2 + 1e-9 * M
    if 2 * j == M:
        assert abs(dimension - M / 2) <= 1e-9 * M


@pytest.mark.parametrize(("j", "M"), [(1, 2), (3, 40), (20, 40), (39, 40), (54, 10**5), (1, 10**8)])
def test_typical_dimension_is_the_minimum_by_its_derivative(j: int, M: int) -> None:
    """The cost is convex; at its minimum j E(g − c)₊ = (M − j) E(c − g)₊. With the error function, and quadratures beside it.

    In its closed form a second moment cancels down to c⁴ ε of its terms, below 3e-13 at |c| ≤ 6; the quadratures promise 1e-10.
    """

    def first(c: float) -> float:
        return exp(-(c**2) / 2) / sqrt(2 * pi) - c * erfc(c / sqrt(2)) / 2

    def second(c: float) -> float:
        def density(x: float) -> float:
            return x**2 * exp(-((c + x) ** 2) / 2) / sqrt(2 * pi)

        return float(quad(density, 0, max(0.0, -c) + 12, epsabs=0, epsrel=1e-10, limit=200)[0])

    c = brentq(lambda c: j * first(c) - (M - j) * first(-c), -8, 8, xtol=1e-13)
    want = j * second(c) + (M - j) * second(-c)
    assert abs(typical_dimension(j, M) / want - 1) <= 2e-10


@given(st.integers(4, 30), st.data())
def test_sets_separate_above_the_typical_dimension(M: int, data: st.DataObject) -> None:
    """Amelunxen, Lotz, McCoy and Tropp, theorem I: N ≥ δ + 4 √(log(4/η) M) makes failure less likely than η."""
    j = data.draw(st.integers(1, M - 1))
    η = 0.5
    N = ceil(typical_dimension(j, M) + 4 * sqrt(log(4 / η) * M))
    assert gaussian_fraction(j, M, N) >= 1 - η


@pytest.mark.parametrize(("j", "M"), [(4, 40), (8, 60), (20, 40)])
def test_half_of_the_sets_separate_near_the_typical_dimension(j: int, M: int) -> None:
    """The fraction crosses one half within √N of it: the width that the same theory gives for a cone of this dimension."""
    dimension = typical_dimension(j, M)
    width = sqrt(dimension)
    assert gaussian_fraction(j, M, ceil(dimension - width)) < 0.5 < gaussian_fraction(j, M, ceil(dimension + width))


@given(st.integers(1, 300), st.integers(2, 2000))
def test_typical_size_is_the_last_that_fits(N: int, M: int) -> None:
    j = typical_size(N, M)
    assert 0 <= j <= M // 2
    assert j == 0 or typical_dimension(j, M) <= N
    assert j == M // 2 or typical_dimension(j + 1, M) > N


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: curve_fraction(3, 6, 2), "even dimension N >= 2, got N = 3"),
        (lambda: curve_fraction(0, 6, 2), "got N = 0"),
        (lambda: curve_fraction(2, 6, 0), "j = 0"),
        (lambda: curve_fraction(2, 6, 6), "j = 6 of M = 6"),
        (lambda: cover_count(0, 4), "N = 0"),
        (lambda: cover_count(2, 0), "M = 0"),
        (lambda: gaussian_fraction(0, 4, 2), "j = 0"),
        (lambda: gaussian_fraction(1, 4, 0), "N = 0"),
        (lambda: gaussian_fraction(1, 1501, 2), "M = 1501"),
        (lambda: typical_dimension(5, 5), "j = 5"),
        (lambda: typical_size(0, 5), "N = 0"),
        (lambda: typical_size(2, 1), "M = 1"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call()
