"""Radon's bound on (K_j): which sets of atoms one linear functional can rank above all the others.

(K_j) for one image says that the j present atoms and the M − j absent ones are separated by a hyperplane <w, ·> = θ.
Points are rows of an array of shape (M, N); a set of atoms is a row of M booleans, or a sequence of indices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, sqrt
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import linprog, nnls

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Radon:
    """A Radon partition of N + 2 points: two sets of points whose hulls meet."""

    weights: np.ndarray
    """λ of shape (N + 2,): Σ λ = 0, Σ λ x = 0, and the positive entries sum to one. Floats, or fractions when exact."""
    point: np.ndarray
    """The Radon point Σ_{λ > 0} λ x, of shape (N,)."""

    @property
    def left(self) -> tuple[int, ...]:
        """The points of positive weight; point 0 is one of them unless its weight is zero."""
        return tuple(int(i) for i in np.flatnonzero(self.weights > 0))

    @property
    def right(self) -> tuple[int, ...]:
        """All other points."""
        return tuple(int(i) for i in np.flatnonzero(~(self.weights > 0)))


@dataclass(frozen=True)
class Separator:
    """A proof that a set of atoms separates: the functional that ranks every present atom above every absent one."""

    direction: Floats
    """w of shape (N,), of length one."""
    threshold: float
    """θ, half way between the lowest present and the highest absent score."""
    gap: float
    """min over present of <w, x> minus max over absent of <w, x>; positive beyond rounding."""


@dataclass(frozen=True)
class Farkas:
    """A proof that no functional separates a set of atoms: a point that lies in the hulls of both sides."""

    weights: Floats
    """λ of shape (M,): at least 0 and of sum 1 over the present atoms, at most 0 and of sum −1 over the absent ones."""
    point: Floats
    """The common point Σ_{present} λ x, of shape (N,)."""
    residual: float
    """‖Σ λ x‖, the distance between the two ways to write the point. No unit functional has a gap above it."""


def check_points(points: Any, at_least: int = 2) -> Floats:
    """The points as a float64 array of shape (M, N).

    Raises ``ValueError`` if they are no table of N ≥ 1 columns, fewer than ``at_least``, not finite, or if two are equal.
    """
    x = np.asarray(points, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] < 1:
        raise ValueError(f"points have shape {x.shape}, expected (M, N) with N >= 1: one row an atom")
    if len(x) < at_least:
        raise ValueError(
            f"got {len(x)} points in dimension {x.shape[1]}, need at least {at_least}: add points or lower the dimension"
        )
    bad = ~np.isfinite(x).all(axis=1)
    if bad.any():
        raise ValueError(f"point {int(np.flatnonzero(bad)[0])} has a NaN or an infinity; every coordinate must be finite")
    order = np.lexsort(x.T)
    same = (x[order[1:]] == x[order[:-1]]).all(axis=1)
    if same.any():
        where = int(np.flatnonzero(same)[0])
        first, second = sorted((int(order[where]), int(order[where + 1])))
        raise ValueError(f"points {first} and {second} are equal; atoms must be distinct, drop one of them")
    return x


def check_subset(subset: Sequence[int], M: int) -> Bools:
    """The set of atoms as M booleans.

    Raises ``ValueError`` for an empty set, the whole set, an index outside range(M), or an index given twice.
    """
    indices = [int(i) for i in subset]
    if not 1 <= len(indices) < M:
        raise ValueError(
            f"the set has j = {len(indices)} of M = {M} atoms; need 1 <= j <= M - 1, so that both sides have a point"
        )
    outside = [i for i in indices if not 0 <= i < M]
    if outside:
        raise ValueError(f"index {outside[0]} is outside range({M}); name atoms by their row")
    if len(set(indices)) < len(indices):
        raise ValueError(f"the set {indices} names an atom twice; name each once")
    mask = np.zeros(M, dtype=bool)
    mask[indices] = True
    return mask


def rounding(points: Floats) -> float:
    """The rounding that a certificate on these points may carry, 4 M (N + 1) ε max ‖(x, 1)‖.

    Householder's QR of an M × (N + 1) matrix has a backward error of at most c M (N + 1) ε per column for a small integer
    c (Higham, Accuracy and Stability of Numerical Algorithms, theorem 19.4; c = 4 here), and every sum of M products adds less.
    """
    M, N = points.shape
    return 4 * M * (N + 1) * EPS * float(np.sqrt(1 + (points**2).sum(axis=1).max()))


def lift(points: np.ndarray) -> np.ndarray:
    """The points with a last coordinate one, (x, 1) of shape (M, N + 1): an affine statement on x is a linear one on (x, 1)."""
    return np.hstack([points, np.ones_like(points[:, :1])])


def radon(points: Any) -> Radon:
    """The Radon partition of N + 2 points in R^N: signs of the null vector of Σ λ = 0, Σ λ x = 0.

    The null vector is the last column of Q in the QR factors of the (N + 2) × (N + 1) table of (x, 1).
    Radon 1921; in L it proves Proposition C.3 (i). Raises ``ValueError`` as :func:`check_points` does, and for more points.

    >>> r = radon([[1, 0], [0, 1], [-1, 0], [0, -1]])
    >>> r.left, r.right
    ((0, 2), (1, 3))
    """
    x = np.asarray(points, dtype=np.float64)
    x = check_points(x, at_least=x.shape[-1] + 2 if x.ndim == 2 else 2)
    if len(x) != x.shape[1] + 2:
        raise ValueError(
            f"got {len(x)} points in dimension {x.shape[1]}, Radon's theorem takes {x.shape[1] + 2}: choose that many rows"
        )
    null = np.linalg.qr(lift(x), mode="complete").Q[:, -1]
    return _radon(x, null * (1.0 if null[0] >= 0 else -1.0))


def radon_exact(points: Sequence[Sequence[Fraction | int]]) -> Radon:
    """The Radon partition of N + 2 rational points, by Gaussian elimination in exact arithmetic.

    Same meaning as :func:`radon`, with arrays of ``Fraction``; nothing is rounded.
    Raises ``ValueError`` if there are not N + 2 points, if a row is too short or long, or if two are equal.
    """
    rows = [[Fraction(value) for value in row] for row in points]
    N = len(rows[0]) if rows else 0
    if N < 1 or len(rows) != N + 2 or any(len(row) != N for row in rows):
        raise ValueError(
            f"got rows of lengths {[len(row) for row in rows]}; Radon's theorem takes N + 2 points of N >= 1 coordinates"
        )
    if len({tuple(row) for row in rows}) < len(rows):
        raise ValueError(f"two of the {len(rows)} points are equal; atoms must be distinct, drop one of them")
    null = _null_vector([list(column) for column in zip(*rows, strict=True)] + [[Fraction(1)] * len(rows)])
    return _radon(np.array(rows, dtype=object), null * (1 if null[0] >= 0 else -1))


def _radon(x: np.ndarray, null: np.ndarray) -> Radon:
    positive = null > 0
    weights = null / null[positive].sum()
    return Radon(weights, weights[positive] @ x[positive])


def _null_vector(rows: list[list[Fraction]]) -> np.ndarray:
    """A non-zero rational vector v with rows · v = 0, for fewer rows than columns: reduce, then read off one free column."""
    columns = len(rows[0])
    pivots: list[int] = []
    for column in range(columns):
        top = len(pivots)
        pivot = next((r for r in range(top, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[top], rows[pivot] = rows[pivot], rows[top]
        rows[top] = [value / rows[top][column] for value in rows[top]]
        for r in range(len(rows)):
            if r != top and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [value - factor * lead for value, lead in zip(rows[r], rows[top], strict=True)]
        pivots.append(column)
    free = next(column for column in range(columns) if column not in pivots)
    null = np.array([Fraction(0)] * columns, dtype=object)
    null[free] = Fraction(1)
    for r, column in enumerate(pivots):
        null[column] = -rows[r][free]
    return null


def hull_points(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The point that the positive weights describe and the one that the negative weights describe, each of shape (N,).

    Checks a certificate without any solver: where both weights sum to one and the two points agree, the hulls meet.
    Exact for arrays of fractions. Raises ``ValueError`` if either side does not sum to one (beyond (M + 2) ε for floats).
    """
    positive = weights > 0
    sums = weights[positive].sum(), -weights[~positive].sum()
    slack = 0 if weights.dtype == object else (len(weights) + 2) * EPS
    if any(abs(total - 1) > slack for total in sums):
        raise ValueError(f"the weights sum to {sums[0]} and -{sums[1]}; scale each side to sum 1")
    return weights[positive] @ points[positive], -(weights[~positive] @ points[~positive])


def residual(points: Floats, weights: Floats) -> float:
    """The distance between the two points of :func:`hull_points`; no unit functional has a gap above it (Cauchy–Schwarz)."""
    left, right = hull_points(points, weights)
    return float(np.linalg.norm(left - right))


def gap(points: Floats, subset: Sequence[int], direction: Floats) -> float:
    """The gap of a functional, min over present of <w, x> minus max over absent of <w, x>; positive iff it separates."""
    x = check_points(points)
    present = check_subset(subset, len(x))
    scores = x @ np.asarray(direction, dtype=np.float64)
    return float(scores[present].min() - scores[~present].max())


def separate(points: Any, subset: Sequence[int]) -> Separator | Farkas:
    """Decide by one linear program whether a set of atoms separates, and return the proof of the answer.

    max δ over −1 ≤ w ≤ 1, θ, δ with <w, x> ≥ θ + δ for present and <w, x> ≤ θ − δ for absent atoms (HiGHS). If δ > 0, w
    separates; if not, the dual variables are weights of a common point of both hulls. Either proof is checked here, without the
    solver.

    Raises ``ValueError`` for points or a set that :func:`check_points` or :func:`check_subset` refuse, and ``ArithmeticError``
    if the two sides come so close (about 1e-9 of the spread of the points) that the solver cannot tell.
    """
    x = check_points(points)
    present = check_subset(subset, len(x))
    M, N = x.shape
    centre = x.mean(axis=0)
    scale = float(np.abs(x - centre).max())
    sign = np.where(present, -1.0, 1.0)[:, None]
    rows = np.hstack([sign * lift((x - centre) / scale) * np.array([1.0] * N + [-1.0]), np.ones((M, 1))])
    bounds = [(-1, 1)] * N + [(None, None)] * 2
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(np.r_[np.zeros(N + 1), -1.0], A_ub=rows, b_ub=np.zeros(M), bounds=bounds, method="highs", options=tight)
    if solved.status != 0:
        raise ArithmeticError(f"HiGHS stopped with: {solved.message}")
    w = solved.x[:N]
    if w.any():
        w = w / np.linalg.norm(w)
        scores = x @ w
        low, high = float(scores[present].min()), float(scores[~present].max())
        if low - high > rounding(x):
            return Separator(w, (low + high) / 2, low - high)
    weights = _polish(x, np.where(present, -1.0, 1.0) * solved.ineqlin.marginals)
    if (weights > 0).any() and (weights < 0).any() and (np.where(present, weights, -weights) >= 0).all():
        weights = np.where(present, weights / weights[present].sum(), -weights / weights[~present].sum())
        found = residual(x, weights)
        if found <= rounding(x):
            return Farkas(weights, hull_points(x, weights)[0], found)
    raise ArithmeticError(
        f"the hulls of the set {list(subset)} and of the rest come too close for the solver: use exact arithmetic"
    )


def _polish(x: Floats, weights: Floats) -> Floats:
    """The weights moved onto the null space of (x, 1) over their own support."""
    support = np.flatnonzero(np.abs(weights) > 1e-9 * np.abs(weights).max())
    table = lift(x[support]).T
    value = weights[support]
    result = np.zeros_like(weights)
    result[support] = value - np.linalg.lstsq(table, table @ value)[0]
    return result


def separable(points: Any, subsets: Any, steps: int = 1600) -> Bools:
    """Which of many sets of atoms separate: booleans of shape (n,) for sets of shape (n, M).

    With E the span of the columns of (x, 1), a set with signs s (+1 present, −1 absent) separates iff E meets the open
    orthant of s; if the orthogonal complement of E does, it does not separate. Douglas–Rachford steps between E and the orthant
    search for both at once, all sets together. Every answer is then proved as in :func:`separate`, which also decides what is
    left after ``steps``.
    Raises ``ValueError`` for bad points, or sets of the wrong shape, empty or whole.
    """
    x = check_points(points)
    sets = np.asarray(subsets)
    if sets.dtype != bool or sets.ndim != 2 or sets.shape[1] != len(x):
        raise ValueError(f"sets have shape {sets.shape} and type {sets.dtype}, expected booleans of shape (n, {len(x)})")
    sizes = sets.sum(axis=1)
    if ((sizes == 0) | (sizes == len(x))).any():
        row = int(np.flatnonzero((sizes == 0) | (sizes == len(x)))[0])
        raise ValueError(f"set {row} has j = {sizes[row]} of M = {len(x)} atoms; need 1 <= j <= M - 1")
    factors = np.linalg.qr(lift(x))
    answer = np.zeros(len(sets), dtype=np.int8)
    open_sets = np.arange(len(sets))
    signs = np.where(sets, 1.0, -1.0)
    z = signs.copy()
    for step in range(steps):
        if step % 4 == 0:
            coordinates = z @ factors.Q
            inside = coordinates @ factors.Q.T
            outside = inside - z
            found = (signs * inside > 0).all(axis=1).astype(np.int8) - (signs * outside > 0).all(axis=1)
            found[_unproved(x, factors.R, signs, coordinates, outside, found)] = 0
            answer[open_sets] = found
            left = found == 0
            open_sets, signs, z = open_sets[left], signs[left], z[left]
            if not len(open_sets):
                break
        positive = np.where(signs * z > 0, z, 0.0)
        z = z - positive + (2 * positive - z) @ factors.Q @ factors.Q.T
    for i in open_sets:
        answer[i] = 1 if isinstance(separate(x, np.flatnonzero(sets[i]).tolist()), Separator) else -1
    return answer > 0


def _unproved(x: Floats, triangle: Floats, signs: Floats, coordinates: Floats, outside: Floats, found: Any) -> Bools:
    """Which of the answers ``found`` (+1 separates, −1 does not, 0 open) fail the check that needs no solver."""
    limit = rounding(x)
    present = signs > 0
    w = np.linalg.lstsq(triangle, coordinates.T)[0][:-1].T
    scores = w @ x.T
    gaps = np.where(present, scores, np.inf).min(axis=1) - np.where(present, -np.inf, scores).max(axis=1)
    proved = (found > 0) & (gaps > limit * np.linalg.norm(w, axis=1))
    for row in np.flatnonzero(found < 0):
        v = outside[row]
        proved[row] = residual(x, np.where(present[row], v / v[present[row]].sum(), -v / v[~present[row]].sum())) <= limit
    return (found != 0) & ~proved


def separable_counts(points: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many j-subsets separate, for all j = 0 … M at once, without any linear program: integers of shape (M + 1,).

    In general position a separating hyperplane can be moved until it holds N of the points, without crossing any. So the
    C(M, N) hyperplanes through N points, with each of the 2^N ways to put these N on either side, meet every separable set.
    Raises ``ValueError`` for bad points, M > 62, more than 2·10^7 cases, or points not in general position to rounding.

    >>> separable_counts([[1, 0], [0, 1], [-1, 0], [0, -1]]).tolist()
    [1, 4, 4, 4, 1]
    """
    x = check_points(points)
    M, N = x.shape
    if not N < M <= 62 or comb(M, N) << (N + 1) > 20_000_000:
        raise ValueError(f"M = {M} points in dimension {N}: need N < M <= 62 and at most 2e7 cases; draw sets and use separable")
    on = np.array(list(combinations(range(M), N)))
    lifted = lift(x)
    normals = np.linalg.qr(lifted[on].swapaxes(1, 2), mode="complete").Q[:, :, -1]
    heights = normals @ lifted.T
    np.put_along_axis(heights, on, np.inf, axis=1)
    if np.abs(heights).min() <= rounding(x):
        raise ValueError(f"{N + 1} of the points lie on one hyperplane to rounding; move one of them")
    np.put_along_axis(heights, on, 0.0, axis=1)
    above = (heights > 0) @ (1 << np.arange(M))
    chosen = (np.arange(1 << N)[:, None] >> np.arange(N)) & 1
    masks = above[:, None] + (1 << on) @ chosen.T
    sets = np.unique(np.concatenate([masks.ravel(), (1 << M) - 1 - masks.ravel()]))
    return np.bincount(np.bitwise_count(sets), minlength=M + 1)


def margin(points: Any, subset: Sequence[int]) -> float:
    """The largest gap that a functional of length one gives a set, the distance of the two hulls; 0 if they meet.

    The nearest points of the hulls by non-negative least squares: min ‖Dλ‖² + (Σλ − 1)² over λ ≥ 0, D the differences present
    − absent, is reached at a multiple of the weights of the point of conv D nearest to 0.
    Raises ``ValueError`` as :func:`check_points` and :func:`check_subset` do.
    """
    x = check_points(points)
    present = check_subset(subset, len(x))
    differences = (x[present][:, None] - x[~present]).reshape(-1, x.shape[1])
    weights = nnls(lift(differences).T, np.r_[np.zeros(x.shape[1]), 1.0])[0]
    nearest = weights @ differences / weights.sum()
    distance = float(np.linalg.norm(nearest))
    return distance if distance > rounding(x) else 0.0


def margin_ceiling(k: int, M: int) -> float:
    """The largest gap that unit vectors can give every k-subset of M atoms, M / √(k (M − 1)(M − k)), in any dimension.

    Wang et al. 2026; attained by :func:`simplex`. Raises ``ValueError`` unless 1 ≤ k < M.
    """
    if not 1 <= k < M:
        raise ValueError(f"need 1 <= k <= M - 1, got k = {k} of M = {M}: both sides must have an atom")
    return M / sqrt(k * (M - 1) * (M - k))


def simplex(M: int) -> Floats:
    """The M unit vectors of a regular simplex, shape (M, M − 1): inner products −1/(M − 1) off the diagonal.

    Raises ``ValueError`` for M < 2.
    """
    if M < 2:
        raise ValueError(f"a simplex has M >= 2 corners, got {M}")
    basis = np.linalg.qr(np.hstack([np.ones((M, 1)), np.eye(M)[:, 1:]])).Q[:, 1:]
    return basis / np.linalg.norm(basis, axis=1, keepdims=True)
