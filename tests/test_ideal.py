"""The axioms, the encoders that satisfy them, and the margins that are left: laws, with slow and plain oracles beside them."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb, cos, exp, inf, pi, prod, sin, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from binding import ideal

EPS = float(np.finfo(float).eps)
SEED = 20260816

# Theory's table: the smallest margins of the circle-coded encoder, each entry in closed form (second function below).
SETTINGS = [(2, 2, 2), (3, 3, 2), (3, 3, 3), (4, 4, 2)]
PRINTED = {
    (2, 2, 2): ("0.3333", "0.6854", "0.4571", "0.9354"),
    (3, 3, 2): ("0.008491", "0.02521", "0.02521", "0.0995"),
    (3, 3, 3): ("0.00566", "0.006474", "0.006474", "0.02581"),
    (4, 4, 2): ("0.0007568", "0.002003", "0.002003", "0.01797"),
}

worlds = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)).filter(lambda w: w[2] <= w[0])
rich_worlds = st.tuples(st.integers(2, 4), st.integers(2, 3), st.integers(2, 3)).filter(lambda w: w[2] <= w[0])
turns = st.floats(0, 2 * pi, exclude_max=True)


@st.composite
def roots(draw, most=5):
    """One to ``most`` angles at least 0.05 apart."""
    steps = draw(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=most))
    found = draw(turns) + np.cumsum(steps)
    assume(found[-1] - found[0] < 2 * pi - 0.05)
    return found


def smallest_margins(encoder):
    """The axioms spelled out scene by scene with Python loops: (A2, image → caption, caption → image, swap)."""
    i, t, all_scenes = encoder.image.tolist(), encoder.caption.tolist(), encoder.scenes
    row = {s: n for n, s in enumerate(all_scenes)}

    def score(s, c):
        return sum(p * q for p, q in zip(i[row[s]], t[row[c]], strict=True))

    def swapped(s):
        for x, y in combinations(s, 2):
            (o, a), (other, b) = divmod(x, encoder.attributes), divmod(y, encoder.attributes)
            if a != b:
                moved = {o * encoder.attributes + b, other * encoder.attributes + a}
                yield tuple(sorted(set(s) - {x, y} | moved))

    absent = [(s, x, y) for s in all_scenes for x in s for (y,) in all_scenes[: encoder.atoms] if y not in s]
    pairs = [(s, c) for s in all_scenes for c in all_scenes if s != c]
    return (
        min((score(s, (x,)) - score(s, (y,)) for s, x, y in absent), default=inf),
        min((score(s, s) - score(s, c) for s, c in pairs), default=inf),
        min((score(s, s) - score(c, s) for s, c in pairs), default=inf),
        min((score(s, s) - score(s, c) for s in all_scenes for c in swapped(s)), default=inf),
    )


def four(m):
    return m.atoms, m.image_to_caption, m.caption_to_image, m.swap


# The curve and the polynomial


@given(turns, turns, st.integers(1, 6))
def test_moment_curve_is_a_unit_curve_whose_scores_are_the_mean_cosine(alpha, beta, k):
    got = float(ideal.moment_curve(alpha, k) @ ideal.moment_curve(beta, k))
    want = sum(cos(m * (alpha - beta)) for m in range(1, k + 1)) / k
    # 2k products and sums, and phases mθ with |θ| < 2π rounded to m 2π eps on either side.
    assert abs(got - want) <= (2 * k + 2 + 6 * pi * k) * EPS
    assert abs(np.linalg.norm(ideal.moment_curve(alpha, k)) - 1) <= (2 * k + 4) * EPS


def test_coefficients_are_exact_where_the_factors_are():
    """Roots at quarter turns have factors 1 ∓ cos θ, 1 ∓ sin θ: their product in exact complex rationals is the oracle."""
    half = Fraction(1, 2)
    factors = {0: (-half, 0), 1: (0, half), 2: (half, 0), 3: (0, -half)}  # coefficient of e^{iθ}: −½ e^{−iϑ}
    for chosen in [c for j in (1, 2, 3, 4) for c in combinations(range(4), j)]:
        product = {0: (Fraction(1), Fraction(0))}
        for quarter in chosen:
            re, im = factors[quarter]
            grown = {}
            for power, (x, y) in product.items():
                for step, (u, v) in ((0, (1, 0)), (1, (re, im)), (-1, (re, -im))):
                    p, q = grown.get(power + step, (0, 0))
                    grown[power + step] = (p + x * u - y * v, q + x * v + y * u)
            product = grown
        j = len(chosen)
        want = [product[0][0]] + [side * 2 * product[m][part] for m in range(1, j + 1) for part, side in ((0, 1), (1, -1))]
        got = ideal.coefficients(np.array(chosen) * pi / 2)
        # The stated bound of the function, doubled because a_m and b_m are twice the Fourier coefficients.
        assert np.abs(got - np.array(want, dtype=float)).sum() <= 2 * 5 * j * 2**j * EPS


@given(roots(), turns)
def test_coefficients_give_the_product_and_the_product_is_its_zeros(angles, theta):
    a0, *rest = ideal.coefficients(angles)
    j = len(angles)
    series = a0 + sum(
        a * cos(m * theta) + b * sin(m * theta) for m, (a, b) in enumerate(zip(rest[::2], rest[1::2], strict=True), 1)
    )
    product = 1.0
    for root in angles:
        product *= 1 - cos(theta - root)
    # Coefficients: 2 · 5 j 2^j eps in the 1-norm; phases: the 1-norm is at most 2^{j+1}, each off by at most 7 j eps.
    bound = 24 * j * 2**j * EPS
    assert abs(series - product) <= bound
    assert abs(float(ideal.polynomial(theta, angles)) - product) <= bound
    assert product >= 0
    assert (ideal.polynomial(angles, angles) == 0).all()


@given(roots(4), st.integers(4, 5), turns)
def test_normal_scores_present_atoms_alike_and_everything_else_lower(angles, k, theta):
    n = ideal.normal(angles, k)
    present = ideal.moment_curve(angles, k) @ n
    gap = present.mean() - float(ideal.moment_curve(theta, k) @ n)
    c = ideal.coefficients(angles)
    # Equation (gap): p(θ)/(√k ‖(a₁, …, b_k)‖). rounding(k) bounds each score for angles up to 2π; these go to 4π: twice it.
    bound = 4 * ideal.rounding(k)
    assert np.ptp(present) <= bound
    assert abs(gap - float(ideal.polynomial(theta, angles)) / (sqrt(k) * np.linalg.norm(c[1:]))) <= bound


@given(roots(4), st.integers(4, 5), turns, st.randoms(use_true_random=False))
def test_normal_forgets_the_order_and_turns_with_the_atoms(angles, k, by, random):
    n = ideal.normal(angles, k)
    shuffled = angles.copy()
    random.shuffle(shuffled)
    assert np.linalg.norm(ideal.normal(shuffled, k) - n) <= 2 * ideal.rounding(k)
    turned = ideal.normal(angles + by, k)
    for m in range(1, k + 1):
        a, b = n[2 * m - 2 : 2 * m]
        want = [a * cos(m * by) - b * sin(m * by), a * sin(m * by) + b * cos(m * by)]
        assert np.abs(turned[2 * m - 2 : 2 * m] - want).max() <= 3 * ideal.rounding(k)


@given(turns)
def test_one_atom_scores_one_over_root_k(angle):
    for k in (1, 2, 5):
        # (n_s, 0) is (cos ϑ, sin ϑ, 0, …): the score 1/√k of the construction.
        assert abs(float(ideal.normal([angle], k) @ ideal.moment_curve(angle, k)) - 1 / sqrt(k)) <= ideal.rounding(k)


# Scenes and swaps


@given(worlds)
def test_scenes_are_counted_and_in_order(world):
    objects, attributes, k = world
    found = ideal.scenes(*world)
    assert len(set(found)) == len(found) == sum(comb(objects, j) * attributes**j for j in range(1, k + 1))
    assert list(found) == sorted(found, key=lambda s: (len(s), s))
    assert all(list(s) == sorted(s) and len({x // attributes for x in s}) == len(s) for s in found)


@given(worlds)
def test_swaps_are_mutual_keep_words_and_change_the_pairing(world):
    attributes = world[1]
    found = set(ideal.scenes(*world))
    for s in found:
        given_attributes = sorted(x % attributes for x in s)
        others = ideal.swaps(s, attributes)
        differing = [(x, y) for x, y in combinations(s, 2) if x % attributes != y % attributes]
        assert len(others) == len(set(others)) == len(differing)
        for other in others:
            assert other in found
            assert other != s
            assert s in ideal.swaps(other, attributes)
            assert sorted(x % attributes for x in other) == given_attributes
            assert [x // attributes for x in other] == [x // attributes for x in s]


# The axioms


@settings(max_examples=25, deadline=None)
@given(worlds, st.integers(0, 2**32 - 1))
def test_margins_agree_with_the_axioms_spelled_out(world, seed):
    """Random unit vectors, so that every margin has its own sign and size."""
    rng = np.random.default_rng(seed)
    found = ideal.scenes(*world)
    image, caption = ideal.unit(rng.normal(size=(2, len(found), 5)))
    encoder = ideal.Encoder(found, world[1], image, caption)
    for got, want in zip(four(ideal.margins(encoder)), smallest_margins(encoder), strict=True):
        # Two inner products of unit vectors in five dimensions on either side.
        assert got == want or abs(got - want) <= 4 * 7 * EPS


@settings(max_examples=30, deadline=None)
@given(worlds)
def test_tied_encoder_satisfies_every_axiom_in_dimension_2k(world):
    encoder = ideal.tied_encoder(*world)
    assert encoder.dimension == 2 * world[2]
    assert ideal.margins(encoder).violated == ()


@settings(max_examples=30, deadline=None)
@given(rich_worlds, st.floats(0.02, 0.98))
def test_coded_encoder_satisfies_every_axiom_for_every_alpha(world, share):
    k = world[2]
    encoder = ideal.coded_encoder(*world, alpha=share * min(1 / 2, 1 / k))
    assert encoder.dimension == 2 * k + 2
    assert ideal.margins(encoder).violated == ()


@settings(max_examples=20, deadline=None)
@given(rich_worlds, st.integers(0, 2**32 - 1))
def test_any_distinct_angles_do(world, seed):
    """Jittered angles in a random order: nothing depends on the grid (gaps of half a step keep float64 far away)."""
    rng = np.random.default_rng(seed)
    M = world[0] * world[1]
    angles = rng.permutation((np.arange(M) + rng.uniform(0, 0.5, M)) * 2 * pi / M)
    for build in (ideal.tied_encoder, ideal.coded_encoder):
        assert ideal.margins(build(*world, angles=angles)).violated == ()


@pytest.mark.parametrize("world", SETTINGS)
def test_table_of_margins(world):
    encoder = ideal.coded_encoder(*world)
    m = four(ideal.margins(encoder))
    assert tuple(f"{x:.4g}" for x in m) == PRINTED[world]
    for got, want in zip(m, smallest_margins(encoder), strict=True):
        assert abs(got - want) <= 4 * (encoder.dimension + 2) * EPS


@pytest.mark.parametrize("world", SETTINGS)
def test_coded_margins_in_closed_form(world):
    """Retrieval and swap follow from the angles between codes; they and the one-atom terms give the minima (`sat-codes`)."""
    objects, attributes, k = world
    M, alpha = objects * attributes, 1 / (4 * k)
    larger = [s for s in ideal.scenes(*world) if len(s) > 1]
    S, at = len(larger), {s: n for n, s in enumerate(larger)}
    steps = min(abs(at[s] - at[o]) for s in larger for o in ideal.swaps(s, attributes))
    steps = min(steps, *(S - abs(at[s] - at[o]) for s in larger for o in ideal.swaps(s, attributes)))
    angles = 2 * pi * np.arange(M) / M
    best = max(float((ideal.moment_curve(angles, k) @ ideal.normal(angles[list(s)], k)).max()) for s in larger)
    codes, atoms = sqrt(1 - alpha) * (1 - cos(2 * pi / S)), (1 - cos(2 * pi / M)) / sqrt(k)
    m = ideal.margins(ideal.coded_encoder(*world))
    bound = 2 * ideal.rounding(k)
    assert abs(m.swap - sqrt(1 - alpha) * (1 - cos(2 * pi * steps / S))) <= bound
    assert abs(m.image_to_caption - min(codes, sqrt(1 - alpha) - sqrt(alpha) * best, atoms)) <= bound
    assert abs(m.caption_to_image - min(codes, 1 / sqrt(k) - sqrt(alpha) * best, atoms)) <= bound


@given(rich_worlds)
@settings(max_examples=20, deadline=None)
def test_order_variants_embed_alike(world):
    objects, attributes, k = world
    angles = 2 * pi * np.arange(objects * attributes) / (objects * attributes)
    found = ideal.scenes(*world)[-12:]
    assert ideal.order_error(found, angles, k) <= 2 * ideal.rounding(k)


def test_random_encoders_fail():
    """Independent uniform unit vectors in dimension N satisfy A5 for n scenes with probability at most 1/n! each way: the own
    caption must win n independent exchangeable rows. With n = 36 scenes that is below 1e-9."""
    found = ideal.scenes(3, 3, 2)
    image, caption = ideal.unit(np.random.default_rng(SEED).normal(size=(2, len(found), 6)))
    assert "A5" in ideal.margins(ideal.Encoder(found, 3, image, caption)).violated


def test_one_changed_vector_is_found():
    """Move one caption onto its swap, one image onto its mirror image: the axiom that breaks is named."""
    good = ideal.tied_encoder(3, 3, 2)
    row, other = good.scenes.index((0, 4)), good.scenes.index((1, 3))
    caption = good.caption.copy()
    caption[row] = caption[other]
    assert {"A4", "A5"} <= set(ideal.margins(ideal.Encoder(good.scenes, 3, good.image, caption)).violated)
    image = good.image.copy()
    image[row] = -image[row]
    assert "A2" in ideal.margins(ideal.Encoder(good.scenes, 3, image, good.caption)).violated


def test_worlds_without_swaps_or_absent_atoms_are_vacuous_there():
    assert ideal.margins(ideal.tied_encoder(4, 3, 1)).swap == inf
    assert ideal.margins(ideal.tied_encoder(3, 1, 3)).swap == inf
    assert ideal.margins(ideal.tied_encoder(1, 1, 1)).atoms == inf


def test_a_caption_that_prefers_another_image_breaks_a5_alone():
    """Each image prefers its own caption; the first caption, 60° from its image and 10° from the other, does not return it."""
    image, caption = (np.stack([np.cos(x), np.sin(x)], axis=1) for x in np.radians([[-60, 10], [0, 10]]))
    m = ideal.margins(ideal.Encoder(((0,), (1,)), 1, image, caption))
    assert m.violated == ("A5",)
    assert m.caption_to_image < 0 < m.image_to_caption


@pytest.mark.parametrize(
    ("field", "value", "axiom"),
    [
        ("norm_error", 1e-9, "A1"),
        ("atoms", 0, "A2"),
        ("swap", 0, "A4"),
        ("image_to_caption", 0, "A5"),
        ("caption_to_image", 0, "A5"),
    ],
)
def test_each_margin_speaks_for_its_axiom(field, value, axiom):
    good = ideal.Margins(norm_error=0, atoms=1, swap=1, image_to_caption=1, caption_to_image=1, dimension=4)
    assert good.violated == ()
    assert replace(good, **{field: value}).violated == (axiom,)


def test_norm_error_is_the_largest_over_both_towers():
    """Lengths off one by 2 ε, which an encoder may have: the squared length is off by 4 ε, and rounds by at most ε."""
    rows = np.eye(2)
    for image, caption in ((rows, (1 + 2 * EPS) * rows), ((1 - 2 * EPS) * rows, rows)):
        assert 3 * EPS <= ideal.margins(ideal.Encoder(((0,), (1,)), 1, image, caption)).norm_error <= 5 * EPS


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_rounding_is_the_sum_of_the_parts_that_its_text_names(k):
    """Normal: 2 · 2 · 5k 2^k ε over a last pair of length 2^{1−k}; phases, norm and score: 24 k ε. No more than twice the sum."""
    parts = 2 * 2 * 5 * k * 2**k * EPS / 2 ** (1 - k) + 24 * k * EPS
    assert parts <= ideal.rounding(k) <= 2 * parts


@pytest.mark.parametrize("build", [ideal.tied_encoder, ideal.coded_encoder])
def test_more_dimensions_are_zeros(build):
    small, large = build(3, 2, 2), build(3, 2, 2, dimension=11)
    for a, b in ((small.image, large.image), (small.caption, large.caption)):
        assert b.shape[1] == 11
        # A row that is scaled to length one after the zeros came may round once more.
        assert np.abs(b[:, : a.shape[1]] - a).max() <= EPS
        assert (b[:, a.shape[1] :] == 0).all()


def test_retrieval_in_portions_is_retrieval_at_once(monkeypatch):
    encoder = ideal.coded_encoder(3, 3, 2)
    whole = ideal.margins(encoder)
    monkeypatch.setattr(ideal, "chunks", lambda n, item_bytes: (slice(start, min(start + 5, n)) for start in range(0, n, 5)))
    # The same inner products, in matrix products of another shape: two of them a margin.
    for got, want in zip(four(ideal.margins(encoder)), four(whole), strict=True):
        assert abs(got - want) <= 2 * (encoder.dimension + 4) * EPS


# How the margins shrink


@given(st.integers(1, 9))
def test_cluster_product_is_the_least_of_an_enumeration(k):
    """The k smallest distances on a circle of 2k + 3 places, sorted and multiplied."""
    M = 2 * k + 3
    distances = sorted(min(step, M - step) for step in range(1, M))
    assert ideal.cluster_product(k) == prod(distances[:k])


@given(st.integers(1, 3), st.integers(4, 10))
@settings(max_examples=12, deadline=None)
def test_atom_margin_floor_holds_scene_by_scene(k, objects):
    M = 2 * objects
    angles = 2 * pi * np.arange(M) / M
    curve = ideal.moment_curve(angles, k)
    for s in ideal.scenes(objects, 2, k):
        scores = curve @ ideal.normal(angles[list(s)], k)
        gap = scores[list(s)].min() - np.delete(scores, s).max()
        assert gap >= ideal.atom_margin_floor(M, k, len(s)) - 2 * ideal.rounding(k)


@pytest.mark.parametrize(("k", "j"), [(1, 1), (2, 1), (2, 2), (5, 3), (6, 6)])
def test_atom_margin_floor_is_the_quotient_of_its_proof(k, j):
    """p(θ_y) ≥ 8^j D_j² M^{−2j} over √k √(2 mean (1 − cos θ)^{2j}); the mean over more than 2j angles is exact up to rounding."""
    M, at = 40, 2 * pi * np.arange(64) / 64
    mean = float(((1 - np.cos(at)) ** (2 * j)).mean())
    want = 8**j * ideal.cluster_product(j) ** 2 / M ** (2 * j) / (sqrt(k) * sqrt(2 * mean))
    # Twelve factors of 1 − cos, off by ε each where they are near 2, and a dozen products.
    assert abs(ideal.atom_margin_floor(M, k, j) / want - 1) <= 40 * EPS


@pytest.mark.parametrize("k", [1, 2, 3])
def test_tightest_cluster_is_the_worst_scene_and_tends_to_its_limit(k):
    """Equal angles, two attributes: the scene at steps −1, +1, −2, … around an absent atom gives the smallest A2 margin exactly,
    and margin/limit − 1 falls like 1/M²: from one M to the double it shrinks by a factor that tends to 4."""
    excess = []
    for objects in (6, 12):
        M = 2 * objects
        steps = np.array([1, -1, -2][:k]) * 2 * pi / M
        n = ideal.normal(1 + steps, k)
        cluster = float((ideal.moment_curve(1 + steps[0], k) - ideal.moment_curve(1.0, k)) @ n)
        got = ideal.margins(ideal.tied_encoder(objects, 2, k)).atoms
        assert abs(got - cluster) <= 4 * ideal.rounding(k)
        excess.append(got / ideal.atom_margin_limit(M, k) - 1)
    # Series in 1/M² with an alternating next term: the factor lies between 3 and 7 at these M (its limit is 4).
    assert 3 < excess[0] / excess[1] < 7


def test_tied_swap_margin_for_pairs_tends_to_8_over_289():
    """k = 2, two attributes: scenes at ±3δ/2 and ±δ/2 of one centre are swaps, and n = (−2 cos β, 0, ½, 0)/‖·‖ up to a turn."""
    for objects in (4, 9, 24):
        δ = pi / objects
        outer, inner = np.array([-2 * cos(1.5 * δ), 0.5]), np.array([-2 * cos(0.5 * δ), 0.5])
        want = 1 - float(outer @ inner) / float(np.linalg.norm(outer) * np.linalg.norm(inner))
        m = ideal.margins(ideal.tied_encoder(objects, 2, 2))
        for got in (m.swap, m.image_to_caption, m.caption_to_image):
            assert abs(got - want) <= 4 * ideal.rounding(2)
    assert abs(m.swap / (8 / 289 * δ**4) - 1) <= 2 * δ**2  # the series goes on with 1.936 δ², at this δ 1.981 δ² in all


# Codes


@given(st.integers(2, 40))
def test_simplex_codes_are_equally_far_apart(S):
    codes = ideal.simplex_codes(S)
    assert codes.shape == (S, S - 1)
    off = (codes @ codes.T)[~np.eye(S, dtype=bool)]
    assert np.abs(off + 1 / (S - 1)).max() <= (2 * S + 8) * EPS  # S products, two normalisations a row


@given(st.integers(2, 40))
def test_no_codes_beat_the_simplex(S):
    """Σ over pairs of ⟨w, w'⟩ = (‖Σ w‖² − S)/2 ≥ −S/2, so the largest of the S(S−1)/2 scores is at least −1/(S − 1)."""
    for codes in (ideal.circle_codes(S), ideal.random_codes(S, 8, np.random.default_rng(S))):
        assert (codes @ codes.T)[~np.eye(S, dtype=bool)].max() >= -1 / (S - 1) - 10 * EPS


@pytest.mark.parametrize("codes", ["simplex", "random", "circle"])
def test_scene_codes_set_the_margin_between_scenes(codes):
    k, S = 2, 96
    made = {
        "simplex": ideal.simplex_codes(S),
        "random": ideal.random_codes(S, 512, np.random.default_rng(SEED)),
        "circle": ideal.circle_codes(S),
    }[codes]
    encoder = ideal.coded_encoder(4, 4, k, codes=made)
    m = ideal.margins(encoder)
    assert m.violated == ()
    at = {s: n for n, s in enumerate(encoder.scenes[16:])}
    scores = made @ made.T - 2 * np.eye(S)
    swapped = max(scores[at[s], at[o]] for s in at for o in ideal.swaps(s, 4))
    bound = 2 * (encoder.dimension + 4) * EPS  # two inner products on either side
    assert abs(m.swap - sqrt(7 / 8) * (1 - swapped)) <= bound
    larger = encoder.image[16:] @ encoder.caption[16:].T
    lead = np.diag(larger) - (larger - 2 * np.eye(S)).max(-1)
    assert abs(lead.min() - sqrt(7 / 8) * (1 - scores.max())) <= bound
    if codes == "simplex":
        assert abs(lead.min() - sqrt(7 / 8) * S / (S - 1)) <= bound


def test_random_codes_keep_to_their_bound():
    """Fails with probability at most 1e-9 over the seed; and √(2 log pairs / q) is no loose bound: half of it is exceeded."""
    S, q = 96, 512
    pairs = S * (S - 1) // 2
    codes = ideal.random_codes(S, q, np.random.default_rng(SEED))
    largest = float((codes @ codes.T)[~np.eye(S, dtype=bool)].max())
    assert largest <= ideal.largest_score_bound(pairs, q, failure=1e-9)
    assert largest >= ideal.largest_score_bound(pairs, q) / 2


@given(st.integers(1, 10**6), st.integers(1, 4096), st.floats(1e-9, 1.0))
def test_the_bound_makes_hoeffding_and_the_union_bound_equal_to_the_failure(pairs, q, failure):
    ε = ideal.largest_score_bound(pairs, q, failure)
    # The exponent q ε²/2 = log(pairs / failure) is at most 35 and rounds by a few ε of itself.
    assert abs(pairs * exp(-q * ε**2 / 2) / failure - 1) <= 35 * 8 * EPS


# Superposition


@given(rich_worlds)
@settings(max_examples=15, deadline=None)
def test_superposed_concepts_cannot_bind_and_superposed_atoms_can(world):
    objects, attributes, k = world
    o, a = np.divmod(np.arange(objects * attributes), attributes)
    concepts = np.concatenate([np.eye(objects)[o], np.eye(attributes)[a]], axis=1)
    # One-hot sums are integers, so a scene and its swap add up to the same floats: the margin is exactly zero.
    assert ideal.margins(ideal.superposition(concepts, *world)).swap == 0
    bound = ideal.margins(ideal.superposition(np.eye(objects * attributes), *world))
    assert bound.violated == ()
    # A scene of j orthonormal atoms: A2 margin 1/√j, swap margin 2/j; j = k is the smallest.
    assert abs(bound.atoms - 1 / sqrt(k)) <= 8 * EPS
    assert abs(bound.swap - 2 / k) <= 8 * EPS


# Refusals

TIED, CODED = ideal.tied_encoder, ideal.coded_encoder
OPPOSITE, CORNERS = np.array([[1.0], [1.0], [-1.0], [-1.0]]), ideal.moment_curve(np.arange(4) * pi / 2, 1)
REFUSED = {
    "no atoms at all": (lambda: ideal.moment_curve(0.0, 0), "k = 0; a scene has at least 1 atom"),
    "no scene": (lambda: ideal.scenes(2, 2, 0), "k = 0"),
    "too few objects": (lambda: TIED(2, 2, 3), "need 3 objects, got 2"),
    "no attribute": (lambda: TIED(2, 0, 1), "attributes = 0"),
    "too few dimensions, tied": (lambda: TIED(3, 3, 2, dimension=3), "dimension = 3 is below the 4"),
    "too few dimensions, coded": (lambda: CODED(3, 3, 2, dimension=5), "dimension = 5 is below the 6"),
    "zero dimensions": (lambda: TIED(3, 3, 2, dimension=0), "dimension = 0"),
    "repeated angle": (lambda: TIED(1, 3, 1, angles=np.array([0.0, 1.0, 2 * pi])), "angle .* stands twice"),
    "angle not finite": (lambda: TIED(1, 2, 1, angles=np.array([0.0, np.nan])), "NaN or an infinity"),
    "too few angles": (lambda: TIED(2, 2, 2, angles=np.zeros(3)), r"shape \(3,\); 4 atoms"),
    "repeated root": (lambda: ideal.normal([1.0, 1.0], 2), "angle 1 stands twice"),
    "too many roots": (lambda: ideal.normal([1.0, 2.0], 1), "1 to k = 1 atoms, got 2"),
    "no root": (lambda: ideal.normal([], 2), "got 0 angles"),
    "alpha": (lambda: CODED(2, 2, 2, alpha=0.5), "alpha = 0.5"),
    "alpha of large k": (lambda: CODED(4, 1, 4, alpha=0.3), "alpha = 0.3"),
    "alpha not a number": (lambda: CODED(2, 2, 2, alpha=float("nan")), "alpha = nan"),
    "number of codes": (lambda: CODED(2, 2, 2, codes=np.eye(3)), r"shape \(3, 3\); the 4 scenes"),
    "length of codes": (lambda: CODED(2, 2, 2, codes=2 * np.eye(4)), "codes has length 2"),
    "one code": (lambda: ideal.simplex_codes(1), "at least 2 scenes"),
    "code of no dimension": (lambda: ideal.random_codes(3, 0, np.random.default_rng(0)), "q = 0"),
    "no pairs": (lambda: ideal.largest_score_bound(0, 5), "got 0, 5"),
    "failure": (lambda: ideal.largest_score_bound(3, 5, failure=2), "got 3, 5 and 2"),
    "cluster": (lambda: ideal.cluster_product(0), "k = 0"),
    "floor": (lambda: ideal.atom_margin_floor(3, 2, 3), "got M = 3, k = 2, j = 3"),
    "limit": (lambda: ideal.atom_margin_limit(2, 2), "got M = 2, k = 2"),
    "negative atom": (lambda: ideal.swaps((-1, 2), 2), "negative atom"),
    "object twice": (lambda: ideal.swaps((0, 1), 2), "names one object twice"),
    "swaps of no attribute": (lambda: ideal.swaps((0,), 0), "attributes = 0"),
    "atom vectors": (lambda: ideal.superposition(np.eye(3), 2, 2, 2), "got 3 atom vectors"),
    "sum of zero": (lambda: ideal.superposition(OPPOSITE, 2, 2, 2), r"scene \(0, 2\) add up to zero"),
    "sum of rounded zero": (
        lambda: ideal.superposition(CORNERS, 2, 2, 2),
        r"scene \(0, 2\) add up to zero",
    ),
    "atom not finite": (lambda: ideal.superposition(OPPOSITE * np.nan, 2, 2, 2), "atoms has a NaN"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("found", "rows", "message"),
    [
        (((0,), (1,)), np.eye(3), "2 scenes need image and caption of one shape"),
        ((), np.zeros((0, 2)), "list all one-atom scenes"),
        (((1,), (0,)), np.eye(2), "list all one-atom scenes"),
        (((0,), (1,), (1, 2)), np.eye(3), r"scene \(1, 2\) names an atom beyond the 2"),
        (((0,), (1,), (2,), (3,), (0, 3)), np.eye(5), r"its swap \(1, 2\) is not"),
        (((0,), (1,)), np.zeros((2, 2)), "image has length 0"),
    ],
)
def test_encoder_refuses(found, rows, message):
    with pytest.raises(ValueError, match=message):
        ideal.Encoder(found, 2, rows, rows)


def test_order_error_sees_an_encoder_that_reads_the_order(monkeypatch):
    monkeypatch.setattr(ideal, "normal", lambda roots, k: np.asarray(roots))
    assert ideal.order_error([(0,), (0, 2)], np.array([0.0, 1.0, 3.0]), 2) > 4  # 3√2 apart
