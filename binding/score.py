"""The score of a dual encoder, the binding margin, and the ceiling that the captions alone put on it (L, Corollary G.4).

Everything is computed in float64, whatever the encoder returned; rows may be any shape (*, N) that broadcasts.
"""

import numpy as np

from binding.numerics import check_finite, check_unit, unit


def score(i: np.ndarray, t: np.ndarray) -> np.ndarray:
    """S(I, c) = ⟨i(I), t(c)⟩ for image and caption vectors of length one, (*, N), (*, N) → (*).

    Raises ``ValueError`` for a row that is not of length one, or two lengths N.

    >>> float(score(np.array([1.0, 0.0]), np.array([0.6, 0.8])))
    0.6
    """
    return _inner(check_unit(i, "i"), check_unit(t, "t"))


def margin(i: np.ndarray, t: np.ndarray, t_swap: np.ndarray) -> np.ndarray:
    """M(s) = ⟨i(I), t(c(s)) − t(c(σs))⟩, the binding margin of image vectors of length one, (*, N) × 3 → (*).

    Raises ``ValueError`` for a row of ``i`` that is not of length one, an entry that is not finite, or two lengths N.
    """
    return _inner(check_unit(i, "i"), _difference(t, t_swap))


def ceiling(t: np.ndarray, t_swap: np.ndarray) -> np.ndarray:
    """d(s) = ‖t(c(s)) − t(c(σs))‖: no image has a larger |M(s)| (Cauchy–Schwarz; L, Corollary G.4), (*, N) × 2 → (*).

    Raises ``ValueError`` for an entry that is not finite or two lengths N.
    """
    return np.linalg.norm(_difference(t, t_swap), axis=-1)


def best_image(t: np.ndarray, t_swap: np.ndarray) -> np.ndarray:
    """i = (t(c(s)) − t(c(σs))) / d(s), the only image vector with M(s) = d(s), (*, N) × 2 → (*, N).

    Raises ``ValueError`` for an entry that is not finite, two lengths N, or a pair with d(s) = 0, where every image has margin 0.
    """
    return unit(_difference(t, t_swap), "t − t_swap")


def _difference(t: np.ndarray, t_swap: np.ndarray) -> np.ndarray:
    _check_lengths(t, t_swap)
    return check_finite(np.asarray(t, float), "t") - check_finite(np.asarray(t_swap, float), "t_swap")


def _inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    _check_lengths(x, y)
    return np.einsum("...n,...n->...", np.asarray(x, float), np.asarray(y, float))


def _check_lengths(x: np.ndarray, y: np.ndarray) -> None:
    if np.shape(x)[-1:] != np.shape(y)[-1:]:
        raise ValueError(f"vectors of shape {np.shape(x)} and {np.shape(y)} have no inner product; both need the same length N")
