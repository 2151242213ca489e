"""Radon partitions, certificates of separation, counts of separable sets, and the margin ceiling."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binding.dichotomies import cover_count, curve_fraction
from binding.ideal import moment_curve
from binding.plots.radon import live_circle
from binding.radon import (
    EPS,
    Farkas,
    Separator,
    check_points,
    gap,
    hull_points,
    margin,
    margin_ceiling,
    radon,
    radon_exact,
    residual,
    rounding,
    separable,
    separable_counts,
    separate,
    simplex,
)

seeds = st.integers(0, 10**6)
SQUARE = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])


def gaussian(seed: int, M: int, N: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((M, N))


def every(M: int, j: int) -> np.ndarray:
    return np.array([[i in chosen for i in range(M)] for chosen in combinations(range(M), j)])


def indices(mask: np.ndarray) -> list[int]:
    return np.flatnonzero(mask).tolist()


@given(seeds, st.integers(1, 12))
def test_radon_point_lies_in_both_hulls(seed: int, N: int) -> None:
    x = gaussian(seed, N + 2, N)
    found = radon(x)
    λ = found.weights
    assert λ[0] >= 0
    assert abs(λ.sum()) <= rounding(x)
    left, right = hull_points(x, λ)
    assert np.array_equal(left, found.point)
    assert np.linalg.norm(left - right) == residual(x, λ) <= rounding(x)
    assert sorted(found.left + found.right) == list(range(N + 2))


@given(seeds, st.integers(1, 8))
def test_the_smaller_radon_side_is_a_scene_that_no_functional_ranks(seed: int, N: int) -> None:
    """Proposition C.3 (i): at most ⌊N/2⌋ + 1 atoms, and the linear program, which knows nothing of Radon, agrees."""
    x = gaussian(seed, N + 2, N)
    found = radon(x)
    smaller = min(found.left, found.right, key=len)
    assert 1 <= len(smaller) <= N // 2 + 1
    assert isinstance(separate(x, smaller), Farkas)


@given(seeds, st.integers(1, 4))
@settings(max_examples=30)
def test_radon_partition_is_the_only_one_and_survives_affine_maps(seed: int, N: int) -> None:
    x = gaussian(seed, N + 2, N)
    found = radon(x)
    rotation = np.linalg.qr(gaussian(seed + 1, N, N)).Q
    assert radon(3 * x @ rotation + 1).left == found.left
    inseparable = {
        indices_
        for j in range(1, N + 2)
        for indices_ in combinations(range(N + 2), j)
        if isinstance(separate(x, indices_), Farkas)
    }
    assert inseparable == {found.left, found.right}


def integer_points(N: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[st.integers(-9, 9)] * N), min_size=N + 2, max_size=N + 2, unique=True)


@given(st.integers(1, 5).flatmap(integer_points))
def test_exact_radon_is_exact(rows: list[tuple[int, ...]]) -> None:
    found = radon_exact(rows)
    x = np.array([[Fraction(value) for value in row] for row in rows], dtype=object)
    left, right = hull_points(x, found.weights)
    assert (left == right).all()
    assert (left == found.point).all()
    assert found.weights.sum() == 0
    assert sum(weight for weight in found.weights if weight > 0) == 1


@given(seeds, st.integers(1, 5))
def test_exact_and_float_agree_on_rational_points(seed: int, N: int) -> None:
    """Integers below 2^20 are floats; where no exact weight is within rounding of zero, the partitions must be equal."""
    x = np.random.default_rng(seed).integers(-(2**20), 2**20, (N + 2, N))
    exact = radon_exact(x.tolist())
    λ = exact.weights.astype(float)
    scale = np.linalg.svd(np.c_[x, np.ones(N + 2)], compute_uv=False)[-1]
    if np.abs(λ).min() > 4 * rounding(x.astype(float)) / scale:
        assert radon(x).left == exact.left


def test_exact_radon_on_rational_points_of_the_circle() -> None:
    """Tangents of half angles give rational points; the chords of the pairs {0, 2} and {1, 3} cross."""
    tangents = [Fraction(0), Fraction(1, 2), Fraction(3, 2), Fraction(-3)]
    x = [[(1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)] for t in tangents]
    assert all(a * a + b * b == 1 for a, b in x)
    found = radon_exact(x)
    assert (found.left, found.right) == ((0, 2), (1, 3))
    assert found.point.tolist() == [Fraction(7, 25), Fraction(12, 25)]


@given(seeds, st.integers(1, 6), st.integers(2, 14), st.data())
def test_every_decision_carries_its_proof(seed: int, N: int, M: int, data: st.DataObject) -> None:
    x = gaussian(seed, M, N)
    present = data.draw(st.sets(st.integers(0, M - 1), min_size=1, max_size=M - 1))
    proof = separate(x, sorted(present))
    if isinstance(proof, Separator):
        assert abs(np.linalg.norm(proof.direction) - 1) <= (N + 4) * EPS
        assert gap(x, sorted(present), proof.direction) == proof.gap > rounding(x)
        scores = x @ proof.direction
        assert all((scores[i] > proof.threshold) == (i in present) for i in range(M))
        lowest, highest = min(scores[i] for i in present), max(scores[i] for i in range(M) if i not in present)
        assert abs((lowest - proof.threshold) - (proof.threshold - highest)) <= rounding(x), "θ is half way"
        assert margin(x, sorted(present)) >= proof.gap - rounding(x)
    else:
        assert all((proof.weights[i] >= 0) if i in present else (proof.weights[i] <= 0) for i in range(M))
        assert residual(x, proof.weights) == proof.residual <= rounding(x)
        w = gaussian(seed + 1, 1, N)[0]
        assert gap(x, sorted(present), w / np.linalg.norm(w)) <= proof.residual + rounding(x)
        assert margin(x, sorted(present)) == 0
    rest = [i for i in range(M) if i not in present]
    assert type(separate(x, rest)) is type(proof)


@given(seeds, st.integers(1, 5), st.integers(2, 10))
@settings(max_examples=30)
def test_many_decisions_equal_single_ones(seed: int, N: int, M: int) -> None:
    x = gaussian(seed, M, N)
    sets = np.random.default_rng(seed + 1).random((12, M)) < 0.5
    sets = sets[sets.any(axis=1) & ~sets.all(axis=1)]
    single = [isinstance(separate(x, indices(row)), Separator) for row in sets]
    assert separable(x, sets).tolist() == single
    assert separable(x, sets, steps=0).tolist() == single


def test_a_point_between_two_others_never_separates() -> None:
    """Computed scores of a midpoint may pass both others by a rounding: such a gap proves nothing, and the answer stays no."""
    for seed in range(120):
        x = gaussian(seed, 4 + seed % 4, 2 + seed % 4)
        x[0] = (x[1] + x[2]) / 2
        assert isinstance(separate(x, [0]), Farkas)
        assert not separable(x, np.arange(len(x))[None] == 0, steps=200).any()


def test_decisions_do_not_depend_on_the_unit_or_the_origin() -> None:
    """The solver's tolerances are absolute, 1e-10: without centring and scaling, small or far away points would look equal."""
    for seed in range(40):
        N, M = 1 + seed % 5, 2 + seed % 9
        x, some = gaussian(seed, M, N), range(1 + seed % (M - 1))
        proofs = [separate(unit * x + origin, some) for unit, origin in ((1, 0), (1e-12, 0), (1e12, 0), (1, 1e9))]
        assert len({type(proof) for proof in proofs}) == 1


def test_a_certificate_may_carry_no_more_rounding_than_the_text_says() -> None:
    """4 M (N + 1) ε max ‖(x, 1)‖ for four points on a circle of radius 3 around the origin of the plane: 4 · 4 · 3 ε √10."""
    assert abs(rounding(3 * SQUARE) / (48 * EPS * sqrt(10)) - 1) <= 4 * EPS


def test_a_gap_below_the_default_tolerance_of_the_solver_is_found() -> None:
    x = np.array([[0.0, 1e-8], [-1.0, 0.0], [1.0, 0.0]])
    proof = separate(x, [0])
    assert isinstance(proof, Separator)
    assert abs(proof.gap - 1e-8) <= rounding(x)


def test_touching_hulls_do_not_separate() -> None:
    proof = separate([[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], [0])
    assert isinstance(proof, Farkas)
    assert proof.residual <= rounding(SQUARE)
    assert np.abs(proof.point).max() <= rounding(SQUARE)


@pytest.mark.parametrize(
    ("N", "M", "fractions"),
    [
        (2, 4, ["1", "2/3"]),
        (2, 6, ["1", "2/5"]),
        (4, 6, ["1", "1", "9/10"]),
        (4, 8, ["1", "1", "5/7"]),
        (6, 8, ["1", "1", "1", "68/70"]),
        (6, 10, ["1", "1", "1", "37/42"]),
    ],
)
def test_table_of_fractions_three_ways(N: int, M: int, fractions: list[str]) -> None:
    """Linear programs, hyperplanes through N points, and runs on the circle are three computations with nothing in common."""
    x = moment_curve(2 * np.pi * np.arange(M) / M, N // 2)
    counts = separable_counts(x)
    for j, fraction in enumerate(fractions, start=1):
        assert curve_fraction(N, M, j) == Fraction(fraction)
        assert Fraction(int(counts[j]), comb(M, j)) == Fraction(fraction)
        sets = every(M, j)
        assert Fraction(int(separable(x, sets).sum()), comb(M, j)) == Fraction(fraction)
        orbits = {min(tuple(np.roll(row, turn)) for turn in range(M)): row for row in sets}
        sizes = {key: sum(key == min(tuple(np.roll(row, turn)) for turn in range(M)) for row in sets) for key in orbits}
        single = sum(sizes[key] for key, row in orbits.items() if isinstance(separate(x, indices(row)), Separator))
        assert Fraction(single, comb(M, j)) == Fraction(fraction)


@given(seeds, st.integers(1, 4), st.integers(2, 5))
def test_counts_of_random_points(seed: int, N: int, extra: int) -> None:
    """Cover's total, the symmetry present/absent, and the linear program set by set."""
    M = N + extra
    x = gaussian(seed, M, N)
    counts = separable_counts(x)
    assert counts.sum() == cover_count(N, M)
    assert (counts == counts[::-1]).all()
    j = 1 + seed % (M - 1)
    assert separable(x, every(M, j)).sum() == counts[j]


@given(seeds, st.integers(1, 2), st.integers(5, 8))
def test_curve_counts_do_not_depend_on_the_angles(seed: int, k: int, M: int) -> None:
    angles = 2 * np.pi * (np.arange(M) + 0.8 * np.random.default_rng(seed).random(M)) / M
    counts = separable_counts(moment_curve(angles, k))
    assert counts[1:-1].tolist() == [curve_fraction(2 * k, M, j) * comb(M, j) for j in range(1, M)]


@given(st.integers(2, 9), st.data())
def test_simplex_attains_the_ceiling(M: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, M - 1))
    x = simplex(M)
    gram = (1 + 1 / (M - 1)) * np.eye(M) - 1 / (M - 1)
    assert np.abs(x @ x.T - gram).max() <= rounding(x)
    assert abs(margin(x, range(k)) - margin_ceiling(k, M)) <= rounding(x)


@given(seeds, st.integers(1, 6), st.integers(3, 7), st.data())
def test_no_unit_vectors_beat_the_ceiling(seed: int, N: int, M: int, data: st.DataObject) -> None:
    """The proof averages squares, so even the root mean square of the margins obeys it."""
    k = data.draw(st.integers(1, M - 1))
    x = gaussian(seed, M, N)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    if len(np.unique(x, axis=0)) < M:
        return
    squares = [margin(x, chosen) ** 2 for chosen in combinations(range(M), k)]
    assert sqrt(np.mean(squares)) <= margin_ceiling(k, M) + rounding(x)


@given(seeds, st.integers(2, 8), st.data())
def test_margin_on_a_line(seed: int, M: int, data: st.DataObject) -> None:
    """In dimension one the hulls are intervals."""
    x = gaussian(seed, M, 1)
    present = data.draw(st.sets(st.integers(0, M - 1), min_size=1, max_size=M - 1))
    inside = x[sorted(present), 0]
    outside = x[[i for i in range(M) if i not in present], 0]
    expected = max(inside.min() - outside.max(), outside.min() - inside.max(), 0.0)
    assert abs(margin(x, sorted(present)) - expected) <= rounding(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_points([1.0, 2.0]), "shape .2,."),
        (lambda: check_points([[0.0], [np.nan]]), "point 1 has a NaN"),
        (lambda: check_points([[0.0], [1.0], [0.0]]), "points 0 and 2 are equal"),
        (lambda: check_points([[0.0]]), "got 1 points"),
        (lambda: radon(SQUARE[:3]), "got 3 points in dimension 2, need at least 4"),
        (lambda: radon(gaussian(0, 5, 2)), "takes 4"),
        (lambda: radon([1.0, 2.0]), "expected .M, N."),
        (lambda: radon_exact([[1, 2], [3, 4], [5, 6]]), "takes N . 2 points"),
        (lambda: radon_exact([[1, 2], [3, 4], [5, 6], [7]]), "rows of lengths"),
        (lambda: radon_exact([]), "rows of lengths"),
        (lambda: radon_exact([[1], [2], [1]]), "are equal"),
        (lambda: separate(SQUARE, []), "j = 0 of M = 4"),
        (lambda: separate(SQUARE, range(4)), "j = 4 of M = 4"),
        (lambda: separate(SQUARE, [0, 4]), "index 4 is outside"),
        (lambda: separate(SQUARE, [0, 0]), "twice"),
        (lambda: separable(SQUARE, [[1, 0, 0, 0]]), "expected booleans"),
        (lambda: separable(SQUARE, np.zeros((1, 3), dtype=bool)), "shape .1, 3."),
        (lambda: separable(SQUARE, np.zeros((1, 4), dtype=bool)), "set 0 has j = 0"),
        (lambda: separable(SQUARE, np.ones((1, 4), dtype=bool)), "set 0 has j = 4"),
        (lambda: hull_points(SQUARE, np.array([1.0, -0.5, 0.0, 0.0])), "scale each side"),
        (lambda: hull_points(SQUARE, np.array([1.0, -1 + 1e-14, 0.0, 0.0])), "scale each side"),
        (lambda: hull_points(SQUARE.astype(object), np.array([1, Fraction(1, 10**30) - 1, 0, 0], object)), "scale each side"),
        (lambda: separable_counts(SQUARE[:2]), "N < M"),
        (lambda: separable_counts(gaussian(0, 40, 10)), "draw sets"),
        (lambda: separable_counts([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 1.0]]), "one hyperplane"),
        (lambda: margin(SQUARE, []), "j = 0"),
        (lambda: margin_ceiling(4, 4), "k = 4 of M = 4"),
        (lambda: margin_ceiling(0, 4), "k = 0"),
        (lambda: simplex(1), "M >= 2"),
        (lambda: live_circle([0, 90, 180]), "got 3 angles"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call()


def test_sides_too_close_are_refused() -> None:
    """A gap of 1e-12 is far above rounding and far below what the solver sees: no proof, so no answer."""
    with pytest.raises(ArithmeticError, match="use exact arithmetic"):
        separate([[0.0, 1e-12], [-1.0, 0.0], [1.0, 0.0]], [0])


def test_scenes_with_distinct_objects_can_do_better_than_sets() -> None:
    """Two objects with A attributes on a circle: the crossing pairs can be those that are no scene for A = 2, not for A = 3."""

    def separated(order: tuple[int, ...]) -> int:
        A = len(order) // 2
        x = np.empty((2 * A, 2))
        x[list(order)] = moment_curve(2 * np.pi * np.arange(2 * A) / (2 * A), 1)
        scenes = np.zeros((A * A, 2 * A), dtype=bool)
        for row, (first, second) in enumerate((a, A + b) for a in range(A) for b in range(A)):
            scenes[row, [first, second]] = True
        return int(separable(x, scenes).sum())

    assert max(separated((0, *rest)) for rest in permutations(range(1, 4))) == 4
    assert max(separated((0, *rest)) for rest in permutations(range(1, 6))) == 6


def test_the_movable_circle_computes_what_python_computes(visit: Callable[..., Any]) -> None:
    """Its partition is Python's, its weights pass Python's own check, and its verdict on each pair is the linear program's."""
    page = visit("book/radon.html")
    rng = np.random.default_rng(2)
    for _ in range(40):
        degrees = (rng.permutation(36)[:4] * 10 + rng.integers(0, 5)).tolist()
        x = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
        found = page.evaluate("angles => window.bindingLive.radonCircle(angles)", degrees)
        assert (tuple(found["left"]), tuple(found["right"])) == (radon(x).left, radon(x).right)
        weights = np.array(found["weights"])
        assert residual(x, weights) <= rounding(x)
        assert np.abs(hull_points(x, weights)[0] - found["point"]).max() <= rounding(x)

    circle = page.locator('[data-live="radon-circle"]')
    circle.locator('[role="slider"]').first.press("ArrowRight")
    state = circle.evaluate("element => ({...element.dataset})")
    degrees = [int(angle) for angle in state["angles"].split(",")]
    assert degrees == [36, 120, 200, 310]
    x = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    for choice in range(6):
        circle.locator("select").select_option(str(choice))
        state = circle.evaluate("element => ({...element.dataset})")
        present = [int(i) for i in state["present"].split(",")]
        assert (state["separable"] == "true") == isinstance(separate(x, present), Separator)
        if state["separable"] == "true":
            assert 0 < float(state["gap"]) <= margin(x, present) + rounding(x)
