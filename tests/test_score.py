"""The ceiling |M| ≤ d: no image passes it, one attains it, and a random image stays far below.

Rounding: with u = 2⁻⁵³ an inner product of length N is off by at most N u ‖x‖‖y‖, a norm by (N/2 + 1) u of itself, and a vector
that ``unit`` made is (N/2 + 2) u short or long of one. Together they move a ratio M/d by less than (2N + 6) u.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding.numerics import unit
from binding.score import best_image, ceiling, margin, score

U = 2.0**-53


def rounding(N: int) -> float:
    return (2 * N + 6) * U


@st.composite
def caption_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """t and t′ on the sphere in dimension N, from nearly equal to opposite, and the generator they came from."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    N = draw(st.integers(2, 200))
    t = unit(generator.standard_normal(N))
    nearness = 10.0 ** draw(st.integers(-6, 6))
    return t, unit(nearness * t + generator.standard_normal(N)), generator


@given(caption_pairs())
def test_no_image_passes_the_ceiling(case: tuple[np.ndarray, np.ndarray, np.random.Generator]) -> None:
    t, t_swap, generator = case
    towards = (t - t_swap) + 0.1 * ceiling(t, t_swap) * generator.standard_normal((50, t.size)) / math.sqrt(t.size)
    images = unit(np.concatenate([towards, generator.standard_normal((50, t.size))]))
    assert (np.abs(margin(images, t, t_swap)) <= ceiling(t, t_swap) * (1 + rounding(t.size))).all()


@given(caption_pairs())
def test_the_image_along_the_difference_attains_the_ceiling(case: tuple[np.ndarray, np.ndarray, np.random.Generator]) -> None:
    t, t_swap, _ = case
    i, d = best_image(t, t_swap), ceiling(t, t_swap)
    assert abs(margin(i, t, t_swap) / d - 1) <= rounding(t.size)
    assert abs(margin(-i, t, t_swap) / d + 1) <= rounding(t.size)


@given(caption_pairs(), st.floats(0.01, math.pi - 0.01))
def test_off_the_difference_the_margin_is_d_cos(case: tuple[np.ndarray, np.ndarray, np.random.Generator], angle: float) -> None:
    """The equality case: at the angle α from the difference the margin is d cos α, so only α = 0 attains d.

    The vector across is orthogonal to ``i`` up to its own rounding, at most (2N + 6) u, and the two products add theirs.
    """
    t, t_swap, generator = case
    i, d = best_image(t, t_swap), ceiling(t, t_swap)
    across = generator.standard_normal(t.size)
    across = unit(across - (across @ i) * i)
    across = unit(across - (across @ i) * i)
    image = unit(math.cos(angle) * i + math.sin(angle) * across)
    assert abs(margin(image, t, t_swap) / d - math.cos(angle)) <= 3 * rounding(t.size)


@given(caption_pairs())
def test_the_margin_is_a_difference_of_scores_and_odd_in_the_swap(
    case: tuple[np.ndarray, np.ndarray, np.random.Generator],
) -> None:
    """The two scores round by N u each, and the vectors are at most (N/2 + 2) u off length one."""
    t, t_swap, generator = case
    images = unit(generator.standard_normal((20, t.size)))
    M = margin(images, t, t_swap)
    assert (M == -margin(images, t_swap, t)).all()
    assert (np.abs(M - (score(images, t) - score(images, t_swap))) <= 2 * rounding(t.size)).all()


@given(caption_pairs())
def test_the_ceiling_is_the_chord_of_the_angle(case: tuple[np.ndarray, np.ndarray, np.random.Generator]) -> None:
    """d² = 2 − 2⟨t, t′⟩ for unit vectors, an independent route; the right side rounds by (2N + 6) u × 2 absolutely."""
    t, t_swap, _ = case
    assert abs(ceiling(t, t_swap) ** 2 - (2 - 2 * float(score(t, t_swap)))) <= 4 * rounding(t.size)


def test_a_random_image_reaches_one_part_in_root_N() -> None:
    """E[M²] = d²/N for an image drawn evenly from the sphere.

    N M²/d² is the conditional mean of a χ²₁ variable given the direction of a Gaussian vector, so its moment generating function
    is no larger than that of χ²₁, and Laurent and Massart's bounds hold: the mean of n leaves 1 ± (2√(x/n) + 2x/n) with
    probability at most 2e^{−x}; x = log(2e9) makes that 1e-9.
    """
    generator, n, N = np.random.default_rng(0), 10_000, 64
    t, t_swap = unit(generator.standard_normal((2, N)))
    M = margin(unit(generator.standard_normal((n, N))), t, t_swap)
    x = math.log(2e9)
    assert abs(N * (M**2).mean() / ceiling(t, t_swap) ** 2 - 1) <= 2 * math.sqrt(x / n) + 2 * x / n


def test_batches_broadcast_and_float32_is_lifted() -> None:
    generator = np.random.default_rng(1)
    t, t_swap = unit(generator.standard_normal((2, 5, 8)).astype(np.float32))
    images = unit(generator.standard_normal((3, 1, 8)))
    M = margin(images, t, t_swap)
    assert M.shape == (3, 5) and M.dtype == np.float64
    assert ceiling(t, t_swap).shape == (5,) and ceiling(t, t_swap).dtype == np.float64
    assert M[2, 4] == margin(images[2, 0], t[4], t_swap[4])


EAST, NORTH = np.array([1.0, 0.0]), np.array([0.0, 1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score(2 * EAST, NORTH), "i has length 2"),
        (lambda: score(EAST, 2 * NORTH), "t has length 2"),
        (lambda: margin(np.zeros(2), EAST, NORTH), "i has length 0"),
        (lambda: margin(EAST, np.array([np.nan, 0]), NORTH), "t has a NaN"),
        (lambda: margin(np.ones(1), EAST, NORTH), r"shape \(1,\) and \(2,\)"),
        (lambda: ceiling(EAST, np.array([np.inf, 0])), "t_swap has a NaN or an infinity"),
        (lambda: ceiling(EAST, np.ones(3)), r"shape \(2,\) and \(3,\)"),
        (lambda: best_image(EAST, EAST), "t − t_swap is zero"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
