"""The frontier: no captions pass the caps, one pair attains the exact one, and each mean bounds what it is said to bound.

Rounding, with u = 2⁻⁵³: a computed chord √(2δ) or ‖t − t′‖ is off by at most e = (2N + 10) u (``deviation``). The caps are
functions of such chords a = √(2δ): 2a, and 2a√(1 − a²/4) up to a = √2 and constant beyond, have slopes of at most 2. The pair
form a√(1 − b²/4) + b√(1 − a²/4) has slopes of at most 1 for a, b ≤ √2. Near a = 2 its slope is unbounded: there
√(1 − a²/4) moves by at most √e, and the form by at most 2e + 4√e.
"""

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls

from binding import frontier
from binding.claims import ledger
from binding.encoders import minilm
from binding.numerics import unit
from binding.scenes import quartets

U = 2.0**-53
DELTAS = st.one_of(st.floats(0, 2), st.floats(-12, 0).map(lambda x: 10.0**x))
SEEDS = st.integers(0, 2**32 - 1)


def rounding(N: int) -> float:
    return (2 * N + 10) * U


def slack(N: int, largest: float) -> float:
    """Room for the rounding of a distance and of the cap beside it, for deviations up to ``largest``."""
    e = rounding(N)
    return 4 * e + (0.0 if largest <= 1 else 4 * math.sqrt(e))


def around(anchor: np.ndarray, rows: int, generator: np.random.Generator) -> np.ndarray:
    """Captions from very near the anchor to very near its opposite."""
    pull = generator.choice([-1.0, 1.0, 1.0], size=(rows, 1)) * 10.0 ** generator.uniform(-3, 6, size=(rows, 1))
    return unit(pull * anchor + generator.standard_normal((rows, anchor.size)))


@given(SEEDS, st.integers(2, 100))
def test_no_captions_pass_the_caps(seed: int, N: int) -> None:
    """Theorem G.3 (i), Corollaries G.4 and G.5: M ≤ d ≤ each of the three caps, for any anchor, captions and image."""
    generator = np.random.default_rng(seed)
    anchor = unit(generator.standard_normal(N))
    t, t_swap = around(anchor, 20, generator), around(anchor, 20, generator)
    image = unit(generator.standard_normal((20, N)))
    d = np.linalg.norm(t - t_swap, axis=-1)
    x, y = frontier.deviation(t, anchor), frontier.deviation(t_swap, anchor)
    worst = np.maximum(x, y)
    assert (((t - t_swap) * image).sum(-1) <= d + rounding(N)).all()
    assert (d <= frontier.cap_published(worst) + slack(N, 0)).all()
    assert (d <= frontier.cap(worst) + slack(N, 0)).all()
    assert all(a <= b + slack(N, c) for a, b, c in zip(d, frontier.pair_cap(x, y), worst, strict=True))


@given(DELTAS, DELTAS, st.integers(2, 30), SEEDS)
def test_the_pair_form_is_attained_at_every_two_deviations(x: float, y: float, N: int, seed: int) -> None:
    """Two captions on opposite sides of the anchor; their coordinates, of size at most 1, carry at most 4 u each."""
    generator = np.random.default_rng(seed)
    anchor, across = np.linalg.qr(generator.standard_normal((N, 2)))[0].T
    gap = frontier.tilt(anchor, across, x) - frontier.tilt(anchor, -across, y)
    assert abs(np.linalg.norm(gap) - frontier.pair_cap(x, y)) <= 4 * rounding(N)


@given(DELTAS, DELTAS)
def test_the_pair_form_is_the_chord_of_the_sum_of_the_angles(x: float, y: float) -> None:
    """2 sin((φ + φ′)/2) by another path; half angles from atan2 are off by 4 u each, and the sine by as much again."""
    half = [math.atan2(math.sqrt(v / 2), math.sqrt((2 - v) / 2)) for v in (x, y)]
    assert abs(float(frontier.pair_cap(x, y)) - 2 * math.sin(sum(half))) <= 24 * U


@given(DELTAS, DELTAS, st.floats(0, 1), st.floats(0, 1))
def test_beyond_a_sum_of_two_the_limit_is_two(x: float, y: float, p: float, q: float) -> None:
    """Captions within x and y: the pair form still bounds them while x + y ≤ 2, and otherwise 2 is attained."""
    inner = float(frontier.pair_cap(p * x, q * y))
    if x + y <= 2:
        assert inner <= frontier.pair_cap(x, y) + 8 * U
    else:
        assert inner <= 2 + 8 * U
        nearer = min(x, 2.0)
        assert frontier.pair_cap(nearer, 2 - nearer) >= 2 - 8 * U and 2 - nearer <= y


@given(DELTAS)
def test_the_exact_cap_lies_below_the_published_one_by_a_known_factor(delta: float) -> None:
    """√(1 − δ/2) for δ ≤ 1: the published constant is right to first order, and attained at no δ > 0. All up to 8 u."""
    exact, published = float(frontier.cap(delta)), float(frontier.cap_published(delta))
    if delta <= 1:
        assert abs(exact - published * math.sqrt(1 - delta / 2)) <= 8 * U * published
        assert abs(exact - float(frontier.pair_cap(delta, delta))) <= 8 * U * published
    else:
        assert exact == 2 < published
    assert exact < published or delta <= 16 * U


@given(st.lists(DELTAS, min_size=2, max_size=2).map(sorted), st.floats(0, 1))
def test_the_caps_grow_and_are_concave(ends: list[float], share: float) -> None:
    low, high = ends
    inside = min(low + share * (high - low), high)
    for bound in (frontier.cap, frontier.cap_published):
        left, middle, right = (float(bound(x)) for x in (low, inside, high))
        assert left <= middle + 8 * U * right and middle <= right + 8 * U * right
        assert middle >= (1 - share) * left + share * right - 16 * U * max(1, right)


@given(DELTAS, st.integers(2, 50))
def test_the_extremal_encoder_attains_the_exact_cap(delta: float, N: int) -> None:
    """Theorem G.3 (ii) with the exact constant: unit vectors, both captions within δ, margin cap(δ) up to relative rounding."""
    anchor, t, t_swap, image = frontier.extremal(delta, N)
    for row in (anchor, t, t_swap, image):
        assert abs(float(row @ row) - 1) <= 8 * U
    margin = float(image @ (t - t_swap))
    assert abs(margin - float(frontier.cap(delta))) <= 8 * U * margin
    chord = math.sqrt(2 * min(delta, 1.0))
    for caption in (t, t_swap):
        assert abs(math.sqrt(2 * float(frontier.deviation(caption, anchor))) - chord) <= 2 * rounding(N)


@given(DELTAS, st.floats(0, 1))
def test_every_margin_below_the_curve_is_achieved(delta: float, share: float) -> None:
    """The Pareto region: for 0 ≤ M ≤ cap(δ) two captions within δ of the anchor have the margin M.

    M²/4 rounds by 8 u, and least_delta by √(8 u) at M = 2, where its slope is infinite; up to δ = 0.9 by 64 u of itself.
    """
    M = share * float(frontier.cap(delta))
    needed = float(frontier.least_delta(M))
    assert needed <= delta * (1 + 64 * U) + math.sqrt(8 * U) * (delta > 0.9)
    _, t, t_swap, image = frontier.extremal(needed, 2)
    assert abs(float(image @ (t - t_swap)) - M) <= 16 * U * max(M, U)


@given(DELTAS)
def test_least_delta_inverts_the_cap(delta: float) -> None:
    """cap(least_delta(d)) = d, and the midpoint of two captions at the distance d has them both at least_delta(d).

    For d < 2 − 1e-6 the cosine of half the angle is above 1e-3, so arc sine and square root enlarge u by at most 4e3 each.
    """
    d = float(frontier.cap(delta))
    assume(0 < d < 2 - 1e-6)
    least = float(frontier.least_delta(d))
    assert abs(float(frontier.cap(least)) - d) <= 16 * U * d
    half = math.asin(d / 2)
    captions = np.array([[math.cos(half), math.sin(half)], [math.cos(half), -math.sin(half)]])
    chord = math.sqrt(2 * least)
    assert (np.abs(np.sqrt(2 * frontier.deviation(captions, np.array([1.0, 0.0]))) - chord) <= 1e4 * U).all()


@pytest.mark.parametrize("N", [2, 3, 8, 64])
def test_search_breaks_no_cap_and_reaches_the_exact_one(N: int) -> None:
    """The missing angle at least halves in a step, so after 100 steps only rounding is left, at most e in the last one."""
    generator = np.random.default_rng(N)
    for delta in (1e-8, 1e-3, 0.112, 0.5, 1.0, 1.4, 2.0):
        found = frontier.search(delta, N, 25, generator)
        assert (found <= frontier.cap_published(delta) + rounding(N)).all()
        assert (np.abs(found - frontier.cap(delta)) <= rounding(N)).all()


@pytest.mark.parametrize(("N", "delta"), [(2, 0.112), (3, 0.05), (3, 0.6), (4, 1.3)])
def test_a_general_solver_finds_the_same_largest_margin(N: int, delta: float) -> None:
    """The oracle knows no sphere and no rim: SLSQP over image and captions in R^N with the hypotheses as constraints."""
    generator = np.random.default_rng(0)

    def rows(z: np.ndarray) -> np.ndarray:
        return z.reshape(3, N)

    def margin(z: np.ndarray) -> float:
        i, t, t_swap = rows(z)
        return float(i @ (t - t_swap))

    lengths = {"type": "eq", "fun": lambda z: (rows(z) ** 2).sum(1) - 1}
    inside = {"type": "ineq", "fun": lambda z: rows(z)[1:, 0] - (1 - delta)}
    start = [unit(generator.standard_normal((3, N)) + np.eye(N)[0]).ravel() for _ in range(12)]
    runs = [minimize(lambda z: -margin(z), z, method="SLSQP", constraints=[lengths, inside], tol=1e-13) for z in start]
    kept = [run for run in runs if np.abs(lengths["fun"](run.x)).max() <= 1e-9 and inside["fun"](run.x).min() >= -1e-9]
    best = max(-run.fun for run in kept)
    assert abs(best - float(frontier.cap(delta))) <= 1e-7  # constraints kept to 1e-9, times slopes of at most 2/√δ < 10 here


@given(SEEDS, st.integers(2, 20), st.floats(0.001, 2))
def test_into_cap_is_the_nearest_point(seed: int, N: int, delta: float) -> None:
    """No point of the cap is nearer than P(x), P moves no point of the cap, and P(x) lies in it.

    P(x) is off by a few roundings of its length; across the anchor, by these over the part of x that lies across.
    """
    generator = np.random.default_rng(seed)
    anchor = unit(generator.standard_normal(N))
    x = unit(generator.standard_normal((10, N)))
    p = frontier.into_cap(x, anchor, delta)
    assert (np.sqrt(2 * frontier.deviation(p, anchor)) <= math.sqrt(2 * delta) + 4 * rounding(N)).all()
    others = frontier.into_cap(around(anchor, 50, generator), anchor, delta)
    away = np.linalg.norm(x[:, None] - others, axis=-1)
    assert (np.linalg.norm(x - p, axis=-1)[:, None] <= away + 8 * rounding(N)).all()
    assert (np.linalg.norm(frontier.into_cap(p, anchor, delta) - p, axis=-1) <= 8 * rounding(N) / min(1, delta)).all()
    alone = frontier.into_cap(x[0], anchor, delta)
    assert alone.shape == (N,) and np.linalg.norm(alone - p[0]) <= 8 * rounding(N) / np.linalg.norm(
        x[0] - (x[0] @ anchor) * anchor
    )


@st.composite
def classes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m captions of s, n of σs, and an anchor, in dimension N."""
    generator = np.random.default_rng(draw(SEEDS))
    anchor = unit(generator.standard_normal(draw(st.integers(2, 30))))
    m, n = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    return around(anchor, m, generator), around(anchor, n, generator), anchor


@given(classes())
def test_the_mean_deviation_bounds_the_root_mean_square_distance(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Distance of the means ≤ mean ≤ root mean square ≤ pair form of the class means ≤ 2√(δ(2 − δ)) of the mean of both.

    The root mean square of chords moves by at most e if each chord does, so the rounding is that of one pair.
    """
    t, t_swap, anchor = case
    N = anchor.size
    d = frontier.cross_distances(t, t_swap)
    x, y = frontier.deviation(t, anchor).mean(), frontier.deviation(t_swap, anchor).mean()
    rms, middle = math.sqrt((d**2).mean()), (x + y) / 2
    pair = float(frontier.pair_cap(x, y))
    assert np.linalg.norm(t.mean(0) - t_swap.mean(0)) <= d.mean() + rounding(N)
    assert d.mean() <= rms + rounding(N)
    assert rms <= pair + slack(N, max(x, y))
    assert pair <= 2 * math.sqrt(middle * (2 - middle)) + 8 * U
    assert pair <= float(frontier.cap(middle)) + 8 * U <= float(frontier.cap_published(middle)) + 16 * U


@given(classes())
def test_the_largest_deviation_bounds_every_pair_and_the_mean_only_at_n_times_itself(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    t, t_swap, anchor = case
    x, y = frontier.deviation(t, anchor), frontier.deviation(t_swap, anchor)
    d = frontier.cross_distances(t, t_swap)
    assert d.max() <= float(frontier.cap(max(x.max(), y.max()))) + slack(anchor.size, 0)
    half_sum = min((x.sum() + y.sum()) / 2, 2.0)
    assert d.max() <= float(frontier.cap(half_sum)) + slack(anchor.size, 0)


@given(st.floats(1e-6, 0.5), st.integers(2, 6))
def test_the_cap_of_the_mean_does_not_bound_the_worst_pair(delta: float, n: int) -> None:
    """One of n captions in each class at nδ, opposite each other, the rest at the anchor: a distance of cap(nδ) > cap(δ)."""
    assume(n * delta <= 1)
    anchor, t, t_swap, _ = frontier.extremal(n * delta, 3)
    left, right = (np.vstack([row, np.tile(anchor, (n - 1, 1))]) for row in (t, t_swap))
    mean = (frontier.deviation(left, anchor).mean() + frontier.deviation(right, anchor).mean()) / 2
    assert abs(math.sqrt(2 * mean) - math.sqrt(2 * delta)) <= rounding(3)
    worst = float(frontier.cross_distances(left, right).max())
    assert abs(worst - float(frontier.cap(n * delta))) <= 2 * rounding(3)
    assert worst > 1.001 * float(frontier.cap(mean))


@given(SEEDS, st.integers(2, 60))
def test_deviation_is_one_minus_the_score_and_turns_with_the_space(seed: int, N: int) -> None:
    """The other route rounds by (N + 4) u; a rotation computed in floating point moves a vector by at most 2 N² u."""
    generator = np.random.default_rng(seed)
    t, anchor = unit(generator.standard_normal((2, 10, N)))
    delta = frontier.deviation(t, anchor)
    assert (np.abs(delta - (1 - (t * anchor).sum(-1))) <= 2 * rounding(N) + (N + 4) * U).all()
    turn = np.linalg.qr(generator.standard_normal((N, N)))[0]
    turned = frontier.deviation(unit(t @ turn), unit(anchor @ turn))
    assert (np.abs(np.sqrt(turned) - np.sqrt(delta)) <= rounding(N) + 8 * N * N * U).all()
    assert (frontier.deviation(t, t) == 0).all()
    assert (2 - 2 * rounding(N) <= frontier.deviation(t, -t)).all() and (frontier.deviation(t, -t) <= 2).all()


@given(st.floats(-20, -1))
def test_deviation_keeps_its_digits_near_zero(exponent: float) -> None:
    """Relative error 2e/√(2δ), where 1 − ⟨t, t̄⟩ has nothing left below δ = u."""
    delta = 10.0**exponent
    anchor, t, _, _ = frontier.extremal(delta, 2)
    assert abs(float(frontier.deviation(t, anchor)) - delta) <= delta * 3 * rounding(2) / math.sqrt(2 * delta)


def test_float32_rows_are_lifted() -> None:
    """Scaled to length one in float64, so a row has no deviation from itself and the caps hold with float64 rounding."""
    t = unit(np.random.default_rng(0).standard_normal((5, 384)).astype(np.float32))
    assert frontier.deviation(t, t).dtype == np.float64 and (frontier.deviation(t, t) == 0).all()
    d = frontier.cross_distances(t, t)
    assert d.dtype == np.float64 and d.shape == (5, 5)
    delta = frontier.deviation(t, t[0])
    assert (d <= frontier.pair_cap(delta[:, None], delta) + slack(384, float(delta.max()))).all()


@given(SEEDS, st.integers(2, 12), st.integers(1, 6))
def test_the_tightest_anchor_has_the_smallest_largest_deviation(seed: int, N: int, n: int) -> None:
    """A certificate, and rivals: the anchor lies in the cone of the captions that are farthest from it.

    If t̄ = Σ wᵢ tᵢ with w ≥ 0 over captions with ⟨t̄, tᵢ⟩ = r, then p = t̄/Σ w lies in the hull and ‖p‖ = r; for every anchor a,
    min ⟨a, tᵢ⟩ ≤ ⟨a, p⟩ ≤ r. nnls stops when no gradient is above 10 (N + 1) ε (√N + 1), and its gradients round by
    4 n (N + 1) ε; the scores are these gradients divided by at least ‖p‖/2.
    """
    generator = np.random.default_rng(seed)
    t = unit(2 * np.eye(N)[0] + generator.standard_normal((n, N)))
    assume((t[:, 0] > 0.05).all())  # then ‖p‖ > 0.05
    best = frontier.tightest_anchor(t)
    stop = 2 / 0.05 * (10 * (math.sqrt(N) + 1) + 4 * n) * (N + 1) * 2 * U
    scores = t @ best
    farthest = t[scores <= scores.min() + 2 * stop]
    _, left = nnls(farthest.T, best)
    assert left <= stop / 0.05
    rivals = unit(best + 10.0 ** generator.uniform(-4, 1, (100, 1)) * generator.standard_normal((100, N)))
    assert ((t @ rivals.T).min(0) <= scores.min() + 2 * stop).all()


@given(SEEDS, st.integers(2, 30))
def test_for_two_captions_the_tightest_anchor_is_their_midpoint_and_usage_is_one(seed: int, N: int) -> None:
    """cap(δ) = d: the exact cap of the best anchor is the distance itself. nnls errs by its condition, at most (2/0.1)²."""
    t = unit(np.eye(N)[0] + np.random.default_rng(seed).standard_normal((2, N)) / math.sqrt(N))
    d = float(np.linalg.norm(t[0] - t[1]))
    assume(0.1 < d < 1.9)
    delta = frontier.deviation(t, frontier.tightest_anchor(t))
    assert abs(float(frontier.cap(delta.max())) - d) <= 4e3 * rounding(
        N
    )  # condition number of the columns, at most (2/0.1)² · 10


@given(st.lists(DELTAS, min_size=1, max_size=40))
def test_jensen_gap_is_the_loss_of_a_concave_cap_and_the_spread_is_known(deltas: list[float]) -> None:
    """Sums of n terms of at most 4 round by n u each; a difference of squares of size 16 by 40 n u, its root by √(40 n u)."""
    caps, n = frontier.cap_published(np.array(deltas)), len(deltas)
    gap = float(frontier.jensen_gap(np.array(deltas)))
    assert gap >= -16 * n * U
    assert float(frontier.jensen_gap(np.full(3, deltas[0]))) <= 48 * U
    mean_cap = min(float(caps.mean()), float(frontier.cap_published(np.mean(deltas))))
    spread = frontier.spread_of_caps(float(np.mean(deltas)), mean_cap)
    assert abs(spread**2 - caps.var()) <= 80 * n * U * 16


def test_the_published_numbers_of_figure_11_fit_together() -> None:
    """δ = 0.112, 0.947, 0.936, each to half a unit of its last digit; the exact cap at the same δ is 0.920."""
    assert abs(float(frontier.cap_published(0.112)) - 0.947) <= 5e-4
    assert abs(float(frontier.cap(0.112)) - 0.920) <= 5e-4
    assert 0.12 < frontier.spread_of_caps(0.1115, 0.9365) < frontier.spread_of_caps(0.1125, 0.9355) < 0.16


def test_at_delta_zero_nothing_is_left() -> None:
    """Kang et al.'s collapse as a corner of the region: exactly 0, and the only δ whose cap is 0."""
    assert frontier.cap(0.0) == frontier.cap_published(0.0) == frontier.pair_cap(0.0, 0.0) == frontier.least_delta(0.0) == 0
    anchor, t, t_swap, image = frontier.extremal(0.0, 5)
    assert (t == anchor).all() and (t_swap == anchor).all() and image @ (t - t_swap) == 0
    assert frontier.cap(5e-324) > 0


def test_usage_of_the_real_encoder_by_another_path() -> None:
    """The ledger's usages from the encoder's own output, 1 − ⟨t, t̄⟩ and 2 sin φ; float32 outputs differ by at most ROUNDING."""
    encode, row = minilm(), ledger()["frontier.anchors"]
    drawn = quartets("colour", 40, np.random.default_rng(0))
    x = encode([text for q in drawn for text in (*q.captions, *(a.text for a in q.anchors))]).astype(float).reshape(40, -1, 384)
    t, paraphrases = x[:, :4], np.moveaxis(x[:, 4:], 1, 0)
    d = np.linalg.norm(t[:, 0] - t[:, 2], axis=-1)
    centroid = unit(t.mean(1))
    tightest = np.array([_nearest_of_hull(four) for four in t])
    found = []
    for anchor in (*paraphrases, centroid, tightest):
        cosines = (t * anchor[:, None]).sum(-1).min(1)
        caps = 2 * np.sin(np.arccos(cosines))
        assert (1 / caps).mean() <= 10
        found.append(float((d / caps).mean()))
    assert [a.name for a in drawn[0].anchors] == ["one_each", "in", "semicolon", "named", "list", "words", "no_attributes"]
    assert np.abs(np.array(found) - row.expected).max() <= row.tolerance


def _nearest_of_hull(points: np.ndarray) -> np.ndarray:
    """Direction of the point of the hull nearest to 0, by trying all faces: p = Σ w t with Gram matrix times w constant."""
    found = []
    for size in range(1, len(points) + 1):
        for face in map(list, combinations(range(len(points)), size)):
            w = np.linalg.solve(points[face] @ points[face].T, np.ones(size))
            if (w >= 0).all():
                found.append(w @ points[face] / w.sum())
    return unit(min(found, key=np.linalg.norm))


EAST, NORTH = np.array([1.0, 0.0]), np.array([0.0, 1.0])
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: frontier.deviation(2 * EAST, NORTH), "t has length 2"),
        (lambda: frontier.deviation(EAST, 2 * NORTH), "anchor has length 2"),
        (lambda: frontier.deviation(EAST, np.eye(3)[0]), r"shape \(2,\) and anchor \(3,\)"),
        (lambda: frontier.deviation(np.array([np.nan, 0]), EAST), "t has a NaN"),
        (lambda: frontier.cap_published(-0.1), "delta = -0.1: 1 −"),
        (lambda: frontier.cap(2.5), "delta = 2.5"),
        (lambda: frontier.cap(np.array([0.5, np.nan])), "delta = nan"),
        (lambda: frontier.pair_cap(0.5, 3), "delta = 3"),
        (lambda: frontier.least_delta(2.1), "d = 2.1: two vectors"),
        (lambda: frontier.cross_distances(np.eye(2), np.eye(3)), r"shape \(2, 2\) and t_swap \(3, 3\)"),
        (lambda: frontier.cross_distances(np.eye(2), 2 * np.eye(2)), "t_swap has length 2"),
        (lambda: frontier.tilt(EAST, NORTH, -1.0), "delta = -1"),
        (lambda: frontier.extremal(0.5, 1), "N = 1: the sphere has two points"),
        (lambda: frontier.extremal(-0.5, 2), "delta = -0.5"),
        (lambda: frontier.into_cap(0 * EAST, EAST, 0.5), "x is zero"),
        (lambda: frontier.into_cap(-EAST, EAST, 0.5), "across the anchor is zero"),
        (lambda: frontier.into_cap(NORTH, EAST, 5.0), "delta = 5"),
        (lambda: frontier.search(0.0, 2, 5, RNG), "delta = 0 leaves the captions no room"),
        (lambda: frontier.search(0.5, 1, 5, RNG), "N = 1"),
        (lambda: frontier.search(0.5, 2, 0, RNG), "starts = 0"),
        (lambda: frontier.search(0.5, 2, 5, RNG, steps=0), "steps = 0"),
        (lambda: frontier.tightest_anchor(EAST), r"shape \(2,\)"),
        (lambda: frontier.tightest_anchor(np.array([EAST, -EAST])), "surround the centre"),
        (lambda: frontier.tightest_anchor(np.array([EAST, 2 * NORTH])), "t has length 2 in row 1"),
        (lambda: frontier.jensen_gap(np.array([0.1, -1])), "delta = -1"),
        (lambda: frontier.spread_of_caps(0.112, 0.96), "mean_cap = 0.96 must lie between"),
        (lambda: frontier.spread_of_caps(3.0, 0.9), "delta = 3"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
