"""The smoothness–binding frontier: how far a caption and its swap can be apart when both must lie near one anchor.

The anchor t̄ is a vector of length one, for example the embedding of a paraphrase that names the words of a scene and no pairing.
A caption t stands at the deviation δ = 1 − ⟨t, t̄⟩ from it, between 0 and 2. Nothing here asks what the anchor says: every bound
holds for any anchor. Everything is computed in float64. L is the paper; what is called new has no source but this book.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from binding.numerics import check_unit, unit

EPS = float(np.finfo(np.float64).eps)


def deviation(t: np.ndarray, anchor: np.ndarray) -> np.ndarray:
    """δ = 1 − ⟨t, t̄⟩ for vectors of length one, from 0 (equal) to 2 (opposite), (*, N) × 2 → (*) (L, Theorem G.3).

    Computed as ‖t − t̄‖²/2, which loses no digits near 0: √(2δ) is off by at most (2N + 10) u, u = 2⁻⁵³, for the vectors of length
    one along the given rows. Rows in float32 are lifted to float64 and scaled to length one there.
    Raises ``ValueError`` for a row that is not of length one, or two lengths N.

    >>> float(deviation(np.array([0.6, 0.8]), np.array([1.0, 0.0])).round(12))
    0.4
    """
    difference = _on_sphere(t, "t") - _on_sphere(anchor, "anchor", like=t)
    return np.minimum((difference**2).sum(axis=-1) / 2, 2.0)


def cap_published(delta: np.ndarray | float) -> np.ndarray:
    """2√(2δ), the published cap on the margin if both captions stand within δ of an anchor, (*) → (*) (L, Theorem G.3 (i)).

    Raises ``ValueError`` for a δ outside [0, 2].

    >>> float(cap_published(0.112).round(3))
    0.947
    """
    return 2 * np.sqrt(2 * check_delta(delta))


def cap(delta: np.ndarray | float) -> np.ndarray:
    """2√(δ(2 − δ)) for δ ≤ 1, and 2 beyond: the largest margin if both captions stand within δ of an anchor, (*) → (*).

    New: the exact constant, attained by :func:`extremal` in every dimension N ≥ 2. Raises ``ValueError`` for a δ outside [0, 2].

    >>> float(cap(0.112).round(3)), float(cap(1.5))
    (0.92, 2.0)
    """
    inside = np.minimum(check_delta(delta), 1.0)
    return 2 * np.sqrt(inside * (2 - inside))


def pair_cap(delta: np.ndarray | float, delta_swap: np.ndarray | float) -> np.ndarray:
    """√(δ(2 − δ′)) + √(δ′(2 − δ)), the largest distance of captions that stand at δ and δ′ from an anchor, (*) × 2 → (*).

    New. It is 2 sin((φ + φ′)/2) for the angles φ = arccos(1 − δ), written without them. It bounds captions *at* δ and δ′; where
    these are upper limits only, it holds while δ + δ′ ≤ 2 (φ + φ′ ≤ π), and beyond that the limit is 2.
    Raises ``ValueError`` for a δ outside [0, 2].

    >>> float(pair_cap(0.5, 0.5).round(12)), float(pair_cap(0.5, 0.0).round(12))
    (1.732050807569, 1.0)
    """
    x, y = check_delta(delta), check_delta(delta_swap)
    return np.sqrt(x * (2 - y)) + np.sqrt(y * (2 - x))


def least_delta(d: np.ndarray | float) -> np.ndarray:
    """δ = 1 − √(1 − d²/4), the inverse of :func:`cap`: no anchor has two captions at the distance d nearer than this, (*) → (*).

    New. It is the deviation of the two captions from their midpoint on the sphere, computed as (d²/4)/(1 + √(1 − d²/4)).
    Raises ``ValueError`` for a d outside [0, 2].

    >>> float(least_delta(1.2).round(12))
    0.2
    """
    quarter = _check_range(d, "d", "two vectors of length one are between 0 and 2 apart") ** 2 / 4
    return quarter / (1 + np.sqrt(1 - quarter))


def cross_distances(t: np.ndarray, t_swap: np.ndarray) -> np.ndarray:
    """‖tᵢ − t′ⱼ‖ between m captions of s and n captions of σs, (*, m, N), (*, n, N) → (*, m, n).

    Raises ``ValueError`` for a row that is not of length one, or two lengths N.
    """
    return np.linalg.norm(_on_sphere(t, "t")[..., :, None, :] - _on_sphere(t_swap, "t_swap", like=t)[..., None, :, :], axis=-1)


def tilt(anchor: np.ndarray, across: np.ndarray, delta: np.ndarray | float) -> np.ndarray:
    """(1 − δ) t̄ + √(δ(2 − δ)) q, the caption at δ from the anchor in the direction q ⟂ t̄ of length one, (*, N) × 2, (*) → (*, N).

    Raises ``ValueError`` for a δ outside [0, 2].
    """
    delta = check_delta(delta)[..., None]
    return (1 - delta) * anchor + np.sqrt(delta * (2 - delta)) * across


class Extremal(NamedTuple):
    """An anchor, a caption, its swap and an image, of length one and shape (N,) each."""

    anchor: np.ndarray
    t: np.ndarray
    t_swap: np.ndarray
    image: np.ndarray


def extremal(delta: float, N: int) -> Extremal:
    """t = (1 − δ) t̄ + √(δ(2 − δ)) q, t′ = (1 − δ) t̄ − √(δ(2 − δ)) q, i = q: the encoder whose margin is ``cap(delta)``, in R^N.

    New. The two captions are opposite points of the rim; for δ > 1 they stay at δ = 1, as opposite points of the sphere.
    Raises ``ValueError`` for a δ outside [0, 2] or N < 2, where the sphere has two points and no rim.
    """
    _check_dimension(N)
    anchor, across = np.eye(N)[:2]
    inside = min(float(check_delta(delta)), 1.0)
    return Extremal(anchor, tilt(anchor, across, inside), tilt(anchor, -across, inside), across)


def into_cap(x: np.ndarray, anchor: np.ndarray, delta: float) -> np.ndarray:
    """The nearest point to x/‖x‖ of the spherical cap ⟨t, t̄⟩ ≥ 1 − δ, ‖t‖ = 1, (*, N), (N,) → (*, N).

    For an x outside it lies on the rim, in the same direction from the anchor. Raises ``ValueError`` for a zero row, a row
    opposite to the anchor (which is equally near to the whole rim), or a δ outside [0, 2].
    """
    t = unit(np.asarray(x, float))
    outside = deviation(t, anchor) > check_delta(delta)
    across = t[outside]
    for _ in range(2):  # the second time removes what rounding left along the anchor where little lay across it
        across = unit(across - (across @ anchor)[..., None] * anchor, "the part of x across the anchor")
    t[outside] = tilt(anchor, across, delta)
    return t


def search(delta: float, N: int, starts: int, generator: np.random.Generator, steps: int = 100) -> np.ndarray:
    """Margins that ascent in a cap reaches, t ← P(t + i), t′ ← P(t′ − i) with i = (t − t′)/‖t − t′‖, → (starts,).

    An attempt to break the bounds by projected gradients. The image i is the best one for the captions (L, Corollary G.4), so the
    margin is ‖t − t′‖, whose gradient is (i, −i); P is :func:`into_cap`. The captions start anywhere in the cap, evenly in δ.
    Raises ``ValueError`` for a δ outside (0, 2], N < 2, or starts or steps below 1.
    """
    _check_dimension(N)
    if not float(check_delta(delta)) > 0:
        raise ValueError("delta = 0 leaves the captions no room: both are the anchor, and every margin is 0; choose delta > 0")
    if starts < 1 or steps < 1:
        raise ValueError(f"need at least one start and one step, got starts = {starts} and steps = {steps}")
    anchor = np.eye(N)[0]
    across = generator.standard_normal((2, starts, N)) * (1 - anchor)
    t, t_swap = tilt(anchor, unit(across), delta * generator.uniform(size=(2, starts)))
    for _ in range(steps):
        i = unit(t - t_swap, "t − t_swap")
        t, t_swap = into_cap(t + i, anchor, delta), into_cap(t_swap - i, anchor, delta)
    return np.linalg.norm(t - t_swap, axis=-1)


def tightest_anchor(t: np.ndarray) -> np.ndarray:
    """p/‖p‖ with p the point nearest to 0 in the hull of the captions: the anchor with the smallest largest δ, (n, N) → (N,).

    New. That smallest largest deviation is 1 − ‖p‖. The weights of p solve a least squares problem with λ ≥ 0: a row of ones
    under the captions and 1 on the right make its solution a multiple of the wanted one.
    Raises ``ValueError`` if ``t`` is no table of vectors of length one, or if its hull comes within √ε of 0.
    """
    t = _on_sphere(t, "t")
    if t.ndim != 2:
        raise ValueError(f"t has shape {t.shape}, expected (n, N): one row a caption")
    n, N = t.shape
    weights, _ = nnls(np.vstack([t.T, np.ones(n)]), np.eye(N + 1)[-1])
    p = weights @ t / weights.sum()
    if np.linalg.norm(p) <= np.sqrt(EPS):
        raise ValueError(f"the {n} captions surround the centre of the sphere: no anchor has them all within δ < 1; use cap = 2")
    return unit(p)


def jensen_gap(delta: np.ndarray) -> np.ndarray:
    """2√(2 mean δ) − mean 2√(2δ) ≥ 0, the cap of the mean less the mean of the caps over n scenes, (*, n) → (*) (L, Figure 11).

    Raises ``ValueError`` for a δ outside [0, 2].
    """
    return cap_published(np.mean(check_delta(delta), axis=-1)) - np.mean(cap_published(delta), axis=-1)


def spread_of_caps(mean_delta: float, mean_cap: float) -> float:
    """√(8 mean δ − (mean cap)²), the standard deviation of caps 2√(2δ) of which only two means are known.

    New: an identity for every distribution of δ, because the square of a cap is 8δ.
    Raises ``ValueError`` for a δ outside [0, 2], or a mean cap that is negative or above 2√(2 mean δ), which no distribution has.

    >>> round(spread_of_caps(0.112, 0.936), 3)
    0.141
    """
    most = float(cap_published(mean_delta))
    if not 0 <= mean_cap <= most:
        raise ValueError(f"mean_cap = {mean_cap} must lie between 0 and 2√(2 · {mean_delta}) = {most:.6g}: the cap is concave")
    return float(np.sqrt(most**2 - mean_cap**2))


def check_delta(delta: Any) -> np.ndarray:
    """δ as a float64 array, or ``ValueError`` if one is outside [0, 2] or not a number."""
    return _check_range(delta, "delta", "1 − ⟨t, t̄⟩ lies between 0 and 2 for vectors of length one")


def _check_range(value: Any, name: str, reason: str) -> np.ndarray:
    array = np.asarray(value, float)
    bad = ~((array >= 0) & (array <= 2))
    if bad.any():
        raise ValueError(f"{name} = {array[bad].flat[0]:g}: {reason}")
    return array


def _check_dimension(N: int) -> None:
    if N < 2:
        raise ValueError(f"N = {N}: the sphere has two points and no rim; use N >= 2")


def _on_sphere(x: np.ndarray, name: str, like: np.ndarray | None = None) -> np.ndarray:
    if like is not None and np.shape(x)[-1:] != np.shape(like)[-1:]:
        raise ValueError(f"t has shape {np.shape(like)} and {name} {np.shape(x)}; both need the same length N")
    return unit(np.asarray(check_unit(x, name), float), name)
