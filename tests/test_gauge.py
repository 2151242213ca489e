"""The sign gauge: components, what exposed products identify, both matchers, and who can tell a scene from its swap."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb, erfc, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from binding.gauge import (
    EXACT,
    OPEN,
    SIGN,
    accuracy,
    blocks,
    codes,
    components,
    connected,
    contrast,
    contrast_bound,
    covered,
    draw_trials,
    energy,
    evidence,
    graph_of,
    identified,
    image_laws,
    known_pair,
    known_pair_bound,
    linear,
    margin,
    missing_links,
    pair_inside,
    partitions,
    products,
    recover,
    scene_parts,
    swapped,
    template,
    total_variation,
)

EPS = float(np.finfo(float).eps)
seeds = st.integers(0, 10**6)
parts = st.sampled_from(partitions())
densities = st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0])
DENSE, SPARSE = (-1, 1), (-1, 0, 1)
APART = [p for p in partitions() if not pair_inside(p)]


@st.composite
def graphs(draw: st.DrawFn, most: int = 6) -> np.ndarray:
    m, n = draw(st.integers(1, most)), draw(st.integers(1, most))
    bits = draw(st.lists(st.booleans(), min_size=m * n, max_size=m * n).filter(any))
    return np.array(bits).reshape(m, n)


def hoeffding(trials: int) -> float:
    """How far a mean of independent decisions in [0, 1] may be off, with probability at most 1e-9."""
    return sqrt(log(2e9) / (2 * trials))


def regauged(u: np.ndarray, v: np.ndarray, parts: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Fresh gauge signs for the four atoms, written out one by one."""
    g = {part: rng.choice([-1.0, 1.0], u.shape[-1]) for part in parts}
    o1, o2, a1, a2 = (g[part] for part in parts)
    return np.stack([u[0] * o1, u[1] * o2]), np.stack([v[0] * a1, v[1] * a2])


def reach(graph: np.ndarray) -> list[set[int]]:
    """The components as sets of atoms, objects first: squeeze sets that touch, until none do."""
    m, n = graph.shape
    sets = [{x} for x in range(m + n)]
    for o, a in np.argwhere(graph).tolist():
        touching = [s for s in sets if o in s or m + a in s]
        sets = [s for s in sets if s not in touching] + [set().union(*touching)]
    return sets


@given(graphs())
def test_components_are_the_sets_that_touch(graph: np.ndarray) -> None:
    labels = np.concatenate(components(graph))
    found = {frozenset(np.flatnonzero(labels == label).tolist()) for label in labels.tolist()}
    assert found == {frozenset(s) for s in reach(graph)}
    assert sorted(set(labels.tolist())) == list(range(len(found)))


@given(graphs())
def test_shown_is_connected_is_covered(graph: np.ndarray) -> None:
    assert (graph <= connected(graph)).all()
    assert (connected(graph) <= covered(graph)).all()
    degrees = np.add.outer(graph.sum(axis=1) == 0, graph.sum(axis=0) == 0)
    assert np.array_equal(covered(graph), degrees == 0)


@given(graphs())
@example(np.array([[False, True, True], [False, True, True], [True, False, False]]))
@example(np.array([[False, True], [False, True]]))
def test_missing_links_connect_all_and_none_can_be_spared(graph: np.ndarray) -> None:
    links = missing_links(graph)
    assert len(links) == len(reach(graph)) - 1
    for left_out in [None, *links]:
        grown = graph.copy()
        for link in links:
            assert not graph[link]
            grown[link] |= link != left_out
        assert (len(reach(grown)) == 1) == (left_out is None)


def test_blocks_are_components() -> None:
    of_object, of_attribute = components(blocks((2, 3), (1, 1), (4, 2)))
    assert of_object.tolist() == [0, 0, 1, 2, 2, 2, 2]
    assert of_attribute.tolist() == [0, 0, 0, 1, 2, 2]


@given(graphs(), seeds)
def test_named_pairs_give_the_same_graph_in_any_order(graph: np.ndarray, seed: int) -> None:
    pairs = [(f"o{o}", f"a{a}") for o, a in np.argwhere(graph)]
    shuffled = [pairs[i] for i in np.random.default_rng(seed).permutation(len(pairs))]
    for order in (pairs, shuffled, shuffled + pairs):
        exposed, objects, attributes = graph_of(order)
        assert sorted((objects[o], attributes[a]) for o, a in np.argwhere(exposed)) == sorted(pairs)
        assert covered(exposed).all()


def test_fifteen_partitions_of_which_eleven_hold_a_pair() -> None:
    assert len(partitions()) == 15
    as_sets = {frozenset(frozenset(i for i in range(4) if p[i] == label) for label in p) for p in product(range(4), repeat=4)}
    assert {frozenset(frozenset(i for i in range(4) if p[i] == label) for label in p) for p in partitions()} == as_sets
    assert APART == [(0, 0, 1, 1), (0, 0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 3)]


@given(graphs(), seeds, densities)
def test_recovered_factors_explain_what_was_shown_and_nothing_else_was_used(graph: np.ndarray, seed: int, p: float) -> None:
    rng = np.random.default_rng(seed)
    u, v = codes((graph.shape[0], 7), p, rng), codes((graph.shape[1], 7), p, rng)
    w = products(u, v)
    found = recover(w, graph)
    assert np.array_equal(products(found.u, found.v)[graph], w[graph])
    hidden = np.where(graph[:, :, None], w, np.nan)
    assert np.array_equal(recover(hidden, graph).u, found.u)
    signs = {}
    for true, estimate, piece in ((u, found.u, found.u_part), (v, found.v, found.v_part)):
        for index in np.argwhere(estimate != 0):
            at = tuple(index.tolist())
            signs.setdefault((at[1], int(piece[at])), set()).add(float(true[at] * estimate[at]))
    assert all(flip in ({1.0}, {-1.0}) for flip in signs.values())


@given(graphs(), seeds)
def test_dense_codes_are_exact_inside_a_component_and_up_to_sign_across(graph: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = products(codes((graph.shape[0], 5), 1.0, rng), codes((graph.shape[1], 5), 1.0, rng))
    found = recover(w, graph)
    want = np.where(connected(graph), EXACT, np.where(covered(graph), SIGN, OPEN))
    assert np.array_equal(identified(found, graph), np.broadcast_to(want[:, :, None], w.shape))
    assert np.array_equal(products(found.u, found.v)[connected(graph)], w[connected(graph)])


@settings(max_examples=60)
@given(graphs(most=3), seeds, st.sampled_from([0.3, 0.6, 0.9]))
def test_identified_is_what_all_codes_that_fit_agree_on(graph: np.ndarray, seed: int, p: float) -> None:
    """The oracle: try every code, keep those that give the shown products, and collect what they say about each pair."""
    m, n = graph.shape
    rng = np.random.default_rng(seed)
    w = products(codes((m, 1), p, rng), codes((n, 1), p, rng))
    everything = np.array(list(product(SPARSE, repeat=m + n)))
    tables = everything[:, :m, None] * everything[:, None, m:]
    fitting = tables[(tables[:, graph] == w[graph, 0]).all(axis=1)]
    found = recover(w, graph)
    known, estimate = identified(found, graph)[:, :, 0], products(found.u, found.v)[:, :, 0]
    for o, a in product(range(m), range(n)):
        values = set(fitting[:, o, a].tolist())
        assert {EXACT: {int(estimate[o, a])}, SIGN: {-1, 1}, OPEN: {-1, 0, 1}}[int(known[o, a])] == values


def test_a_connected_component_is_not_enough_for_sparse_codes() -> None:
    """A path o₀ a₀ o₁ a₁ with u(o₁) = 0: one component, and yet the sign of w(o₀, a₁) cannot be known."""
    graph = np.array([[True, False], [True, True], [False, True]])
    found = recover(products(np.array([[1.0], [0.0], [1.0]]), np.array([[1.0], [1.0]])), graph)
    assert connected(graph).all()
    assert identified(found, graph)[0, 1, 0] == SIGN


def test_energy_difference_is_a_product_of_two_differences() -> None:
    """T² − T′² = (u₁² − u₂²)(v₁² − v₂²), in integers, for all entries from −4 to 4."""
    grid = np.array(list(product(range(-4, 5), repeat=4)))
    u, v = grid[:, :2, None], grid[:, 2:, None]
    difference = template(u, v) ** 2 - template(u, swapped(v)) ** 2
    assert np.array_equal(difference, (u[:, 0] ** 2 - u[:, 1] ** 2) * (v[:, 0] ** 2 - v[:, 1] ** 2))


@given(seeds, parts, densities)
def test_no_gauge_moves_the_energy_contrast(seed: int, parts: tuple[int, ...], p: float) -> None:
    rng = np.random.default_rng(seed)
    u, v, image = codes((2, 30), p, rng), codes((2, 30), p, rng), rng.standard_normal(30)
    s, t = regauged(u, v, parts, rng)
    assert contrast(image, s, t, 0.4) == contrast(image, u, v, 0.4)
    energies = [template(x, y) ** 2 - template(x, swapped(y)) ** 2 for x, y in ((u, v), (s, t))]
    assert np.array_equal(*energies)


@given(seeds, densities, st.floats(0, 3))
def test_contrast_takes_the_energy_of_the_noise_away(seed: int, p: float, noise: float) -> None:
    rng = np.random.default_rng(seed)
    u, v, image = codes((2, 30), p, rng), codes((2, 30), p, rng), rng.standard_normal(30)
    T2, S2 = template(u, v) ** 2, template(u, swapped(v)) ** 2
    want = (image**2 * T2).sum() - (image**2 * S2).sum() - noise**2 * (T2.sum() - S2.sum())
    # Sums of 30 terms in another order: at most 30 roundings of the sum of absolute values, on both sides.
    size = float(((image**2 + noise**2) * (T2 + S2)).sum())
    assert abs(contrast(image, u, v, noise) - want) <= 2 * 32 * EPS * size


@given(seeds, densities)
def test_one_common_gauge_moves_no_matcher(seed: int, p: float) -> None:
    rng = np.random.default_rng(seed)
    u, v, image = codes((2, 30), p, rng), codes((2, 30), p, rng), rng.standard_normal(30)
    s, t = regauged(u, v, (0, 0, 0, 0), rng)
    for matcher in (linear, energy):
        assert margin(matcher, image, s, t) == margin(matcher, image, u, v)


@given(seeds, parts, densities)
def test_every_margin_changes_sign_with_the_caption(seed: int, parts: tuple[int, int, int, int], p: float) -> None:
    rng = np.random.default_rng(seed)
    u, v, image = codes((2, 30), p, rng), codes((2, 30), p, rng), rng.standard_normal(30)
    for matcher in (linear, energy):
        assert margin(matcher, image, u, swapped(v)) == -margin(matcher, image, u, v)
    assert contrast(image, u, swapped(v), 0.4) == -contrast(image, u, v, 0.4)
    other = (parts[0], parts[1], parts[3], parts[2])
    assert evidence(image, u, swapped(v), other, 0.4) == -evidence(image, u, v, parts, 0.4)


@given(seeds, parts)
def test_dense_codes_leave_the_energy_matcher_without_an_answer(seed: int, parts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    u, v = regauged(codes((2, 40), 1.0, rng), codes((2, 40), 1.0, rng), parts, rng)
    assert margin(energy, rng.standard_normal(40), u, v) == 0
    assert contrast(rng.standard_normal(40), u, v, 0.3) == 0


def test_image_laws_agree_exactly_where_the_theorems_say() -> None:
    """Dense: all laws agree iff no pair lies inside a component. No pair inside: they agree iff |u₁| = |u₂| or |v₁| = |v₂|."""
    for part in partitions():
        distances = [total_variation(*image_laws(u, v, part)) for u in product(DENSE, repeat=2) for v in product(DENSE, repeat=2)]
        assert pair_inside(part) == any(distances)
    sizes = range(-2, 3)
    for part, u1, u2, v1, v2 in product(APART, sizes, sizes, sizes, sizes):
        same = total_variation(*image_laws((u1, u2), (v1, v2), part)) == 0
        assert same == (abs(u1) == abs(u2) or abs(v1) == abs(v2))


@settings(max_examples=25)
@given(graphs(most=4).filter(lambda g: min(g.shape) >= 2))
def test_dense_theorem_by_counting_all_codes(graph: np.ndarray) -> None:
    """The whole probability space at N = 1: every code, what was shown, and one or two looks at the scene.

    The joint law of (what was shown, image) is the same for a scene and for its swap iff no pair of it lies inside a component.
    """
    m, n = graph.shape
    u, v = (np.array(list(product(DENSE, repeat=k))) for k in (m, n))
    shown = [tuple(np.outer(s, t)[graph].tolist()) for s, t in product(u, v)]
    for (o1, o2), (a1, a2) in product(combinations(range(m), 2), combinations(range(n), 2)):
        scene = [int(s[o1] * t[a1] + s[o2] * t[a2]) for s, t in product(u, v)]
        swap = [int(s[o1] * t[a2] + s[o2] * t[a1]) for s, t in product(u, v)]
        apart = not pair_inside(scene_parts(graph, (o1, o2), (a1, a2)))
        assert (Counter(zip(shown, scene, strict=True)) == Counter(zip(shown, swap, strict=True))) == apart
        both = Counter(zip(shown, scene, swap, strict=True)), Counter(zip(shown, swap, scene, strict=True))
        assert not apart or both[0] == both[1]


@given(seeds, st.sampled_from(APART), st.floats(0.05, 3))
def test_dense_evidence_is_zero_when_no_pair_lies_inside(seed: int, parts: tuple[int, int, int, int], noise: float) -> None:
    trials = draw_trials(parts, 1.0, noise, 20, 3, np.random.default_rng(seed))
    assert not evidence(trials.image, trials.u, trials.v, parts, noise).any()


@given(seeds, parts, densities, st.floats(0.3, 2))
def test_evidence_is_the_log_ratio_of_two_mixtures(seed: int, parts: tuple[int, int, int, int], p: float, noise: float) -> None:
    rng = np.random.default_rng(seed)
    u, v, image = codes((2, 6), p, rng), codes((2, 6), p, rng), 2 * rng.standard_normal(6)
    want = 0.0
    for k in range(6):
        laws = image_laws(u[:, k].astype(int).tolist(), v[:, k].astype(int).tolist(), parts)
        mixtures = [sum(c * exp(-((image[k] - T) ** 2) / (2 * noise**2)) for T, c in law.items()) / law.total() for law in laws]
        want += log(mixtures[0]) - log(mixtures[1])
    # 2N logs of sums of at most 16 terms, each with an exponent of at most E, whose relative error is E ε.
    largest = float(((np.abs(image) + 2) ** 2).max()) / (2 * noise**2)
    assert abs(evidence(image, u, v, parts, noise) - want) <= 2 * 6 * (16 + 4 * largest) * EPS


def test_moments_behind_the_bound_of_the_contrast() -> None:
    """E Y = r / 2 and E Y² = r (1 + 2η²)² / 2 for one coordinate, summed over all entries in exact arithmetic."""
    p, η2 = Fraction(3, 10), Fraction(2, 7)
    weight = {0: 1 - p, 1: p / 2, -1: p / 2}
    first = second = Fraction(0)
    for u1, u2, v1, v2 in product(SPARSE, repeat=4):
        chance = weight[u1] * weight[u2] * weight[v1] * weight[v2]
        T, sign = u1 * v1 + u2 * v2, (u1**2 - u2**2) * (v1**2 - v2**2)
        first += chance * sign * T**2  # E[I² − η²] = T²
        second += chance * sign**2 * (T**4 + 4 * T**2 * η2 + 2 * η2**2)  # E z² = 1, E z⁴ = 3
    r = (2 * p * (1 - p)) ** 2
    assert (first, second) == (r / 2, r * (1 + 2 * η2) ** 2 / 2)
    mean, variance, N = 50 * first, 50 * (second - first**2), 50
    # Two roundings of at most a few ε in a quotient below one.
    assert abs(contrast_bound(float(p), sqrt(η2), N) - float(variance / (variance + mean**2))) <= 16 * EPS


@pytest.mark.parametrize(("p", "noise"), [(0.5, 0.0), (0.5, 1.0), (0.3, 0.6), (0.1, 0.3)])
def test_sparse_codes_decide_with_no_pair_inside(p: float, noise: float) -> None:
    for part in APART:
        trials = draw_trials(part, p, noise, 512, 400, np.random.default_rng(16))
        margins = contrast(trials.image, trials.u, trials.v, noise)
        assert 1 - accuracy(margins, trials.truth) <= contrast_bound(p, noise, 512) + hoeffding(400)
        plain = margin(linear, trials.image, trials.u, trials.v)
        assert abs(accuracy(plain, trials.truth) - 0.5) <= hoeffding(400)


def known_pair_error(noise: float, N: int) -> float:
    """The exact error of ``known_pair``: N signs around N on the scene, 2N signs around 0 on the swap, and a normal; η > 0."""

    def beyond(distance: float) -> float:
        return erfc(distance / (noise * sqrt(2 * N))) / 2

    scene = sum(comb(N, k) / 2**N * beyond(N / 2 + 2 * k - N) for k in range(N + 1))
    swap = sum(comb(2 * N, k) / 4**N * beyond(N / 2 - (2 * k - 2 * N)) for k in range(2 * N + 1))
    return (scene + swap) / 2


@given(st.integers(1, 60), st.floats(0.05, 3))
def test_bound_of_the_known_pair_is_above_its_exact_error(N: int, noise: float) -> None:
    assert known_pair_error(noise, N) <= known_pair_bound(noise, N)


@pytest.mark.parametrize("N", [4, 16, 64])
def test_one_pair_inside_is_enough_for_dense_codes(N: int) -> None:
    for part in [p for p in partitions() if p[0] == p[2]]:
        trials = draw_trials(part, 1.0, 0.5, N, 2000, np.random.default_rng(16))
        margins = known_pair(trials.image, trials.u[:, 0] * trials.v[:, 0])
        assert abs(1 - accuracy(margins, trials.truth) - known_pair_error(0.5, N)) <= hoeffding(2000)


@given(seeds, st.integers(1, 60))
def test_the_threshold_of_the_known_pair_stands_halfway(seed: int, N: int) -> None:
    """Without noise the mean over both signs of the unknown product is N − N/2 on the scene and −N/2 on the swap, in integers."""
    rng = np.random.default_rng(seed)
    u, v = codes((2, N), 1.0, rng), codes((2, N), 1.0, rng)
    w, other = u * v, u * swapped(v)
    scene = known_pair(np.stack([w[0] + w[1], w[0] - w[1]]), w[0]).mean()
    swap = known_pair(np.stack([other.sum(axis=0), -other.sum(axis=0)]), w[0]).mean()
    assert (scene, swap) == (N / 2, -N / 2)


def test_plain_matcher_is_right_three_times_in_four_where_only_one_side_is_known() -> None:
    """One pair known and nothing else: on the scene the match is sure, on the swap both scores are noise."""
    trials = draw_trials((0, 1, 0, 2), 1.0, 0.3, 512, 4000, np.random.default_rng(16))
    assert abs(accuracy(margin(linear, trials.image, trials.u, trials.v), trials.truth) - 0.75) <= hoeffding(4000)
    # The best rule errs no more often than the rule with a bound, which leaves at most this chance of one error in 400 trials.
    assert 400 * known_pair_bound(0.3, 512) <= 1e-9
    best = evidence(trials.image[:400], trials.u[:400], trials.v[:400], (0, 1, 0, 2), 0.3)
    assert accuracy(best, trials.truth[:400]) == 1.0


@pytest.mark.parametrize(("p", "degree"), [(0.1, 1), (0.3, 2), (0.5, 4)])
def test_an_entry_shows_itself_when_some_companion_is_there(p: float, degree: int) -> None:
    """The shortcut of ``draw_trials`` against products: two objects with d attributes, and two attributes with d objects."""
    rng = np.random.default_rng(16)
    graph = blocks((2, degree), (degree, 2))
    u, v = codes((2 + degree, 20_000), p, rng), codes((2 + degree, 20_000), p, rng)
    found = recover(products(u, v), graph)
    drawn = draw_trials((0, 0, 1, 1), p, 0.0, 20_000, 1, rng, degree)
    for true, estimate, short in ((u[:2], found.u[:2], drawn.u[0]), (v[degree:], found.v[degree:], drawn.v[0])):
        for rows in (np.abs(estimate), np.abs(short)):
            both = rows.all(axis=0).mean()
            chance = 1 - (1 - p) ** degree
            assert abs(rows.mean(axis=1) - p * chance).max() <= hoeffding(20_000)
            assert abs(both - p**2 * chance) <= hoeffding(20_000)  # One companion shows both entries, or none.
        assert (np.abs(estimate) <= np.abs(true)).all()


def test_covered_once_is_not_covered() -> None:
    accuracies = []
    for degree in (1, 32):
        trials = draw_trials((0, 0, 1, 1), 0.1, 0.3, 1024, 1000, np.random.default_rng(16), degree)
        accuracies.append(accuracy(margin(energy, trials.image, trials.u, trials.v), trials.truth))
    assert accuracies[0] + 2 * hoeffding(1000) < accuracies[1]


@given(seeds, parts, densities)
def test_without_noise_a_trial_shows_a_template_in_some_gauge(seed: int, parts: tuple[int, int, int, int], p: float) -> None:
    trials = draw_trials(parts, p, 0.0, 9, 4, np.random.default_rng(seed))
    for image, u, v, truth in zip(trials.image, trials.u, trials.v, trials.truth, strict=True):
        for k, value in enumerate(image):
            scene, swap = image_laws(u[:, k].astype(int).tolist(), v[:, k].astype(int).tolist(), parts)
            assert int(value) in (scene if truth else swap)


def test_codes_have_the_density_and_the_balance_that_was_asked_for() -> None:
    z = codes((300, 200), 0.3, np.random.default_rng(6))
    assert abs((z != 0).mean() - 0.3) <= hoeffding(z.size)
    assert abs((z > 0).mean() - 0.15) <= hoeffding(z.size)
    assert not codes((5,), 0.0, np.random.default_rng(0)).any()
    assert codes((5,), 1.0, np.random.default_rng(0)).all()


@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), min_size=1))
def test_accuracy_counts_a_tie_one_half(decisions: list[tuple[int, bool]]) -> None:
    margins, truth = np.array([m for m, _ in decisions], dtype=float), np.array([t for _, t in decisions])
    right = sum(Fraction(1, 2) if m == 0 else int((m > 0) == t) for m, t in decisions)
    assert accuracy(margins, truth) == float(right) / len(decisions)  # Halves add up exactly; one division rounds, the same one.
    assert abs(accuracy(margins, truth) + accuracy(-margins, truth) - 1) <= EPS


def test_an_empty_template_scores_nothing() -> None:
    assert linear(np.ones(4), np.zeros(4)) == energy(np.ones(4), np.zeros(4)) == 0
    assert linear(np.array([0.5, 0.0]), np.array([0.25, 0.0])) == 0.5


ONES = np.ones((2, 2, 3))
CYCLE = np.array([[[1.0], [1.0]], [[1.0], [-1.0]]])
FULL = np.ones((2, 2), dtype=bool)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: components(np.zeros((3, 4), dtype=bool)), r"\(3, 4\) is empty"),
        (lambda: components(np.ones((2, 2))), "float64 of shape"),
        (lambda: components(np.ones(3, dtype=bool)), r"shape \(3,\)"),
        (lambda: graph_of([]), r"\(0, 0\) is empty"),
        (lambda: blocks(), "empty"),
        (lambda: blocks((2, 0)), "block = 0"),
        (lambda: scene_parts(FULL, (0, 5), (0, 1)), "object 5 is unknown"),
        (lambda: scene_parts(FULL, (0, 1), (-1, 1)), "attribute -1 is unknown"),
        (lambda: scene_parts(FULL, (1, 1), (0, 1)), "object 1 stands twice"),
        (lambda: scene_parts(FULL, (0, 1), (0, 0)), "attribute 0 stands twice"),
        (lambda: codes((2, 3), 1.2, np.random.default_rng(0)), "p = 1.2"),
        (lambda: codes((2, 0), 0.5, np.random.default_rng(0)), "N = 0"),
        (lambda: recover(ONES[:1], FULL), r"w has shape \(1, 2, 3\)"),
        (lambda: recover(ONES * 0.5, FULL), "entry 0.5"),
        (lambda: recover(ONES * np.nan, FULL), "entry nan"),
        (lambda: recover(CYCLE, FULL), "coordinate 0: the products around a cycle"),
        (lambda: template(np.ones((3, 4)), np.ones((3, 4))), r"\(3, 4\)"),
        (lambda: template(np.ones((2, 4)), np.ones((2, 5))), r"\(2, 5\)"),
        (lambda: contrast(np.ones(3), ONES[0], ONES[1], -0.1), "noise = -0.1"),
        (lambda: contrast_bound(-1, 0.1, 4), "p = -1"),
        (lambda: contrast_bound(0.5, float("inf"), 4), "noise = inf"),
        (lambda: contrast_bound(0.5, 0.1, 0), "N = 0"),
        (lambda: known_pair_bound(float("nan"), 4), "noise = nan"),
        (lambda: known_pair_bound(0.1, -1), "N = -1"),
        (lambda: evidence(np.ones(3), ONES[0], ONES[1], (0, 0, 1, 1), 0.0), "noise = 0.0"),
        (lambda: draw_trials((0, 0, 1, 1), 2, 0.1, 4, 4, np.random.default_rng(0)), "p = 2"),
        (lambda: draw_trials((0, 0, 1, 1), 0.5, -2, 4, 4, np.random.default_rng(0)), "noise = -2"),
        (lambda: draw_trials((0, 0, 1, 1), 0.5, 0.1, 0, 4, np.random.default_rng(0)), "N = 0"),
        (lambda: draw_trials((0, 0, 1, 1), 0.5, 0.1, 4, 0, np.random.default_rng(0)), "trials = 0"),
        (lambda: draw_trials((0, 0, 1, 1), 0.5, 0.1, 4, 4, np.random.default_rng(0), 0), "degree = 0"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()


def test_bound_of_the_contrast_is_one_where_no_coordinate_informs() -> None:
    assert contrast_bound(1.0, 0.1, 1024) == contrast_bound(0.0, 0.1, 1024) == 1.0
