"""How many sets of atoms separate: counts and expectations that need no points.

A set of j of M atoms in R^N separates if some hyperplane has its j atoms on one side and the other M − j on the other. Cover
counts these sets over all j together; how they are shared out among the sizes j depends on the atoms.
"""

from fractions import Fraction
from math import comb, sqrt
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erfcx, gammaln, log_ndtr, ndtr, wofz

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

LARGEST = 1500
"""Atoms up to which the two quadratures of :func:`gaussian_fraction` keep their digits; the integrands narrow like 1/√n."""


def curve_fraction(N: int, M: int, j: int) -> Fraction:
    """The fraction of j-subsets of M points on the moment curve in R^N that separate, exactly, at any distinct angles.

    A trigonometric polynomial of degree N/2 changes sign at most N times around the circle, at any N places one likes. So a
    set separates iff it forms r ≤ N/2 runs around the circle, and (M / r) C(j − 1, r − 1) C(M − j − 1, r − 1) sets form r runs.
    Raises ``ValueError`` for odd or non-positive N, or j outside 1 … M − 1.

    >>> curve_fraction(6, 10, 4)
    Fraction(37, 42)
    """
    if N < 2 or N % 2:
        raise ValueError(f"the moment curve lives in an even dimension N >= 2, got N = {N}; for odd N use N - 1")
    _check_size(j, M)
    runs = range(1, min(N // 2, j, M - j) + 1)
    return sum((Fraction(M, r) * comb(j - 1, r - 1) * comb(M - j - 1, r - 1) for r in runs), Fraction(0)) / comb(M, j)


def cover_count(N: int, M: int) -> int:
    """How many of the 2^M sets of M points in general position in R^N separate, the empty and the whole one included.

    2 Σ_{i = 0}^{N} C(M − 1, i), whatever the points are (Cover 1965, with one dimension more for the threshold).
    Raises ``ValueError`` if N or M is below one.

    >>> cover_count(2, 4)
    14
    """
    if N < 1 or M < 1:
        raise ValueError(f"need N >= 1 and M >= 1, got N = {N} and M = {M}")
    return 2 * sum(comb(M - 1, i) for i in range(N + 1))


def gaussian_fraction(j: int, M: int, N: int) -> float:
    """The expected fraction of j-subsets that separate, for M independent standard Gaussian points in R^N.

    A set fails iff the null space of the points, a uniformly random subspace of codimension N, meets the cone
    C = {λ : Σ λ = 0, λ ≥ 0 on the set, λ ≤ 0 off it}. The conic Crofton formula (Amelunxen, Lotz, McCoy and Tropp 2014) gives
    1 − 2 (v_{N+1} + v_{N+3} + …), with v_d the conic intrinsic volumes of C: over its faces of a present and b absent atoms,
    a + b = d + 1, the sum of internal times external angles.

    Raises ``ValueError`` for N < 1, j outside 1 … M − 1, or more than 1,500 atoms, where the quadratures lose digits.
    """
    _check_size(j, M)
    if N < 1:
        raise ValueError(f"need N >= 1, got N = {N}")
    if M > LARGEST:
        raise ValueError(f"M = {M} atoms are more than the quadrature resolves, {LARGEST}; see typical_dimension for more")
    meets = 0.0
    for n in range(N + 2, M + 1, 2):
        a = np.arange(max(1, n - M + j), min(j, n - 1) + 1)
        faces = _log_comb(j, a) + _log_comb(M - j, n - a)
        meets += float(np.exp(faces + _log_internal(a, n - a) + _log_external(j - a, M - j - n + a, n)).sum())
    return 1 - 2 * meets


def _log_internal(a: Any, b: Any) -> Floats:
    """log P(first a of n = a + b standard normals positive, the others negative | their sum is 0), for arrays a, b ≥ 1.

    By Fourier: √(n / 2π) ∫ f(t)^a f(−t)^b dt with f(t) = E[e^{itg}; g > 0] = w(t/√2)/2, w Faddeeva's function; the path is moved
    through the saddle point i s, where nothing cancels, and t = sinh τ. The trapezoid rule converges exponentially here.
    """
    a, b = a[:, None], b[:, None]
    s = np.linspace(-1, 1, 401) * (2 + sqrt((a + b).max()))
    s = s[np.argmin(a * np.log(erfcx(s / sqrt(2))) + b * np.log(erfcx(-s / sqrt(2))), axis=1)][:, None]
    τ = np.linspace(0, 16, 641)
    z = (np.sinh(τ) + 1j * s) / sqrt(2)
    top = a * np.log(erfcx(s / sqrt(2))) + b * np.log(erfcx(-s / sqrt(2)))
    ratio = np.exp(a * np.log(wofz(z)) + b * np.log(wofz(-z)) - top)
    total = 2 * np.trapezoid(ratio.real * np.cosh(τ), τ)
    n = (a + b)[:, 0]
    return top[:, 0] - n * np.log(2) + np.log(total) + np.log(n / (2 * np.pi)) / 2


def _log_external(p: Any, q: Any, n: int) -> Floats:
    """log P(p normals below c and q above it), c normal of variance 1/n: the external angle of a face of n atoms."""
    c = np.linspace(-13, 13, 1301)
    logs = p[:, None] * log_ndtr(c) + q[:, None] * log_ndtr(-c) - n * c**2 / 2 + np.log(n / (2 * np.pi)) / 2
    top = logs.max(axis=1)
    return top + np.log(np.trapezoid(np.exp(logs - top[:, None]), c))


def _log_comb(n: int, r: Any) -> Floats:
    return gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)


def typical_dimension(j: int, M: int) -> float:
    """The dimension at which a typical j-subset of M Gaussian atoms starts to separate, for large M.

    min over c of j E(g − c)₊² + (M − j) E(c − g)₊², an upper bound on the statistical dimension of the cone of
    :func:`gaussian_fraction`; its ratio to 2 j log(M / j) tends to 1 as M / j grows, very slowly and from below.
    Raises ``ValueError`` for j outside 1 … M − 1.
    """
    _check_size(j, M)

    def cost(c: float) -> float:
        density = np.exp(-(c**2) / 2) / sqrt(2 * np.pi)
        return float(j * ((1 + c**2) * ndtr(-c) - c * density) + (M - j) * ((1 + c**2) * ndtr(c) + c * density))

    return float(minimize_scalar(cost, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9}).fun)


def typical_size(N: int, M: int) -> int:
    """The largest j ≤ M/2 whose typical dimension is at most N; 0 if there is none.

    Raises ``ValueError`` for N < 1 or M < 2.
    """
    if N < 1 or M < 2:
        raise ValueError(f"need N >= 1 and M >= 2, got N = {N} and M = {M}")
    low, high = 0, M // 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if typical_dimension(middle, M) <= N else (low, middle - 1)
    return low


def _check_size(j: int, M: int) -> None:
    if not 1 <= j < M:
        raise ValueError(f"need 1 <= j <= M - 1, got j = {j} of M = {M}: both sides must have a point")
