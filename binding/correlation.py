"""How sure a correlation of few points can be: its interval, and how often chance alone would do as well."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
from scipy.special import ndtri


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """r = Σ(x − x̄)(y − ȳ) / √(Σ(x − x̄)² Σ(y − ȳ)²), Pearson's, (n) × 2 → number.

    Raises ``ValueError`` for two lengths or a column that does not vary.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape or x.ndim != 1 or np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError(f"columns of shape {x.shape} and {y.shape}; need two of one length, each of more than one value")
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / math.sqrt((x @ x) * (y @ y)))


def fisher_interval(r: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """tanh(artanh r ± z / √(n − 3)): an interval for a correlation of n points drawn from a normal law, with z its quantile.

    Raises ``ValueError`` for |r| ≥ 1, fewer than four points, or a level outside (0, 1).

    >>> low, high = fisher_interval(0.99, 5)
    >>> f"{low:.2f} to {high:.3f}"
    '0.85 to 0.999'
    """
    if not (abs(r) < 1 and n >= 4 and 0 < level < 1):
        raise ValueError(f"r = {r}, n = {n}, level = {level}; need |r| < 1, at least 4 points and a level between 0 and 1")
    half = float(ndtri((1 + level) / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def permutation_p(x: np.ndarray, y: np.ndarray) -> Fraction:
    """The share of all n! ways to pair x with y that correlate at least as much as they do, exactly: a one-sided p.

    Ways that agree to rounding (n 2⁻⁵⁰ of ‖x‖‖y‖) count as equal. Raises ``ValueError`` for more than eight points.
    """
    if len(x) > 8:
        raise ValueError(f"{len(x)} points have {math.factorial(len(x)):,} pairings; at most 8 are counted one by one")
    correlation(x, y)
    x, y = np.asarray(x, float) - np.mean(x), np.asarray(y, float) - np.mean(y)
    products = np.array([x @ y[list(order)] for order in permutations(range(len(y)))])
    slack = len(x) * 2.0**-50 * np.linalg.norm(x) * np.linalg.norm(y)
    return Fraction(int((products >= x @ y - slack).sum()), len(products))
