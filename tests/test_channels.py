"""What a channel keeps: identities of information as laws over random tables, and the bounds between margins and bits."""

from itertools import permutations
from math import erfc, inf, log, log2, nan, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from binding.channels import (
    Kept,
    binding_ceiling,
    binding_floor,
    code_length,
    conditional_information,
    deployed_error,
    fano_bits,
    mutual_information,
    of_channel,
    of_gaussian,
    of_joint,
    on_a_line,
    pair_bits,
)
from binding.numerics import generator

EPS = float(np.finfo(float).eps)
# Sums of at most 200 terms x log x with x ≤ 1, each below one bit, a few operations each.
ROUNDING = 5000 * EPS
weights = st.integers(0, 6)


def tables(*shape: int) -> st.SearchStrategy[np.ndarray]:
    """Random laws of this shape, zeros included."""
    size = int(np.prod(shape))
    return (
        st.lists(weights, min_size=size, max_size=size)
        .filter(any)
        .map(lambda values: np.array(values, dtype=float).reshape(shape) / sum(values))
    )


def channels(rows: int, columns: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(tables(columns), min_size=rows, max_size=rows).map(np.array)


def from_entropies(joint: np.ndarray, *sets: tuple[int, ...]) -> list[float]:
    """H of each set of axes, straight from the definition: the independent oracle."""
    found = []
    for axes in sets:
        rest = tuple(axis for axis in range(joint.ndim) if axis not in axes)
        found.append(-sum(p * log2(p) for p in joint.sum(axis=rest).ravel() if p > 0))
    return found


@given(tables(4, 3, 3))
def test_every_quantity_is_its_sum_of_entropies(joint: np.ndarray) -> None:
    kept = of_joint(joint)
    O, F, Z, OF, OZ, FZ, OFZ = from_entropies(joint, (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))  # noqa: E741
    want = Kept(O + Z - OZ, F + Z - FZ, OF + FZ - F - OFZ, OF + OZ - O - OFZ, O, F, OF - F)
    for name in ("objects", "features", "binding", "apart", "entropy", "entropy_features", "entropy_given_features"):
        assert abs(getattr(kept, name) - getattr(want, name)) <= ROUNDING


@given(tables(4, 3, 3))
def test_the_identity_fails_by_exactly_what_is_known_apart(joint: np.ndarray) -> None:
    kept = of_joint(joint)
    assert abs(kept.binding - (kept.objects - kept.features) - kept.apart) <= ROUNDING
    assert min(kept.objects, kept.features, kept.binding, kept.apart) >= -ROUNDING


codes = st.tuples(tables(5), st.lists(st.integers(0, 2), min_size=5, max_size=5), channels(5, 4))


def positive(p: np.ndarray) -> np.ndarray:
    return (p + 0.1) / (p + 0.1).sum()


@given(codes)
def test_the_identity_holds_where_features_are_a_function_of_objects(case) -> None:
    p, labels, channel = case
    kept = of_channel(positive(p), labels, channel)
    assert abs(kept.objects - kept.features - kept.binding) <= ROUNDING
    assert abs(kept.entropy - kept.entropy_features - kept.entropy_given_features) <= ROUNDING
    assert -ROUNDING <= kept.binding <= kept.entropy_given_features + ROUNDING
    joint = (positive(p)[:, None] * channel)[:, None, :] * (np.array(labels)[:, None] == np.arange(3))[:, :, None]
    whole = of_joint(joint)
    for name in ("objects", "features", "binding", "apart", "entropy", "entropy_features", "entropy_given_features"):
        assert abs(getattr(kept, name) - getattr(whole, name)) <= ROUNDING


@given(codes, channels(4, 3))
def test_processing_loses_objects_features_and_binding(case, further: np.ndarray) -> None:
    p, labels, channel = case
    before, after = of_channel(positive(p), labels, channel), of_channel(positive(p), labels, channel @ further)
    for name in ("objects", "features", "binding"):
        assert getattr(after, name) <= getattr(before, name) + ROUNDING


@given(codes, st.permutations(range(4)))
def test_names_of_representations_do_not_matter(case, order: list[int]) -> None:
    p, labels, channel = case
    before, after = of_channel(positive(p), labels, channel), of_channel(positive(p), labels, channel[:, order])
    assert abs(before.binding - after.binding) <= ROUNDING and abs(before.objects - after.objects) <= ROUNDING


@given(tables(8), channels(8, 3))
def test_the_order_of_the_bits_does_not_matter(p: np.ndarray, channel: np.ndarray) -> None:
    """Σ_k I(o_k;Z | o_<k) is I(O;Z) in whatever order the three bits of O are taken."""
    joint = (p[:, None] * channel).reshape(2, 2, 2, 3)
    whole = mutual_information(joint.reshape(8, 3))
    for order in permutations(range(3)):
        turned, total = joint.transpose(*order, 3), 0.0
        for k in range(3):
            seen = turned.sum(axis=tuple(range(k + 1, 3)))
            total += conditional_information(np.moveaxis(seen.reshape(2**k, 2, 3), 0, 2))
        assert abs(total - whole) <= ROUNDING


@given(tables(4), channels(4, 3), st.lists(st.integers(1, 9), min_size=12, max_size=12))
def test_cross_entropy_is_conditional_entropy_and_a_divergence(p: np.ndarray, channel: np.ndarray, q: list[int]) -> None:
    """E −log₂ q(O|Z) = H(O|Z) + E KL(p(·|Z) ‖ q(·|Z)) ≥ H(O|Z), for any q; q is read through its log odds bit by bit."""
    joint = p[:, None] * channel
    guess = np.array(q, dtype=float).reshape(4, 3)
    guess /= guess.sum(axis=0)
    o = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    of_z = guess.T.reshape(3, 2, 2)
    first = np.log(of_z[:, 1].sum(axis=-1) / of_z[:, 0].sum(axis=-1))
    second = np.log(of_z[:, :, 1] / of_z[:, :, 0])
    lengths = np.stack(
        [
            code_length(o, torch.tensor([[first[z], second[z, int(row[0])]] for row in o], dtype=torch.float64)).numpy()
            for z in range(3)
        ],
        axis=1,
    )
    assert float(np.abs(lengths + np.log2(guess)).max()) <= ROUNDING
    cross = float((joint * lengths).sum())
    posterior = joint / np.where(joint.sum(axis=0) > 0, joint.sum(axis=0), 1)
    divergence = sum(joint[i, j] * log2(posterior[i, j] / guess[i, j]) for i in range(4) for j in range(3) if joint[i, j] > 0)
    left = -sum(x * log2(x) for x in p if x > 0) - mutual_information(joint)
    assert abs(cross - left - divergence) <= ROUNDING and cross >= left - ROUNDING


def test_a_code_length_of_a_forced_bit_is_nothing_or_infinite() -> None:
    odds = torch.tensor([[inf, -inf, 800.0]])
    assert code_length(torch.tensor([[1, 0, 1]]), odds).item() == 0
    assert code_length(torch.tensor([[0, 0, 1]]), odds).item() == inf
    # One product: −log₂ of e^−800.
    assert abs(code_length(torch.tensor([[1, 0, 0]]), odds).item() - 800 / log(2)) <= 2000 * EPS


def test_a_representation_that_sees_what_o_does_not_list_breaks_the_identity() -> None:
    """O is one coin, F is O and a second coin, Z is the second: I(O;Z) = 0 and I(F;Z) = 1, so the difference is −1 bit."""
    joint = np.zeros((2, 4, 2))
    for o in range(2):
        for other in range(2):
            joint[o, 2 * o + other, other] = 1 / 4
    kept = of_joint(joint)
    assert (kept.objects, kept.features, kept.binding, kept.apart) == (0, 1, 0, 1)


def test_a_pair_in_its_line_is_a_channel_of_two_points() -> None:
    for distance, noise in ((0.0, 1.0), (1.0, 0.5), (3.0, 0.7), (1.0, 2.0)):
        kept = of_channel([0.5, 0.5], [0, 0], on_a_line([0, distance], noise))
        # Both are trapezoid sums of Gaussian integrals; the mass that the grid leaves out is below 3e-19, so rounding is all:
        # some 1,000 terms below 10 bits.
        assert abs(kept.binding - pair_bits(distance / (2 * noise))) <= 1e4 * EPS
        assert kept.features == 0 and abs(kept.entropy_given_features - 1) <= EPS


def test_pair_bits_against_another_quadrature() -> None:
    node, weight = np.polynomial.hermite_e.hermegauss(180)
    for a in (0.05, 0.3, 0.7, 1.0):
        other = 1 - weight @ np.log2(1 + np.exp(-2 * a * (a + node))) / sqrt(2 * np.pi)
        # Gauss–Hermite of 180 nodes is within 1e-9 here: the integrand is analytic within π / 2a > 1.5 of the line.
        assert abs(other - pair_bits(a)) <= 1e-9


@given(st.floats(0, 40), st.floats(0, 40))
def test_pair_bits_grow_and_stay_between_their_bounds(a: float, b: float) -> None:
    low, high = sorted((a, b))
    J = pair_bits(np.array([low, high, -high]))
    rounding = 1e4 * EPS  # sums of 4,001 terms below one bit
    assert J[0] <= J[1] + rounding and abs(J[1] - J[2]) <= rounding
    assert J[1] <= high**2 / (2 * log(2)) + rounding
    assert J[1] >= fano_bits(erfc(high / sqrt(2)) / 2) - rounding
    assert 0 <= J[0] and J[1] <= 1


def test_pair_bits_at_small_distances_are_their_bound() -> None:
    # The next term of the series is of the order a⁴.
    for a in (1e-3, 1e-2):
        assert abs(pair_bits(a) / (a**2 / (2 * log(2))) - 1) <= 2 * a**2


@given(st.floats(0, 40), st.floats(0, 40), st.floats(0, 1))
def test_pair_bits_are_concave_in_the_squared_distance(s: float, t: float, share: float) -> None:
    """Guo, Shamai and Verdú: information is concave in the ratio of signal to noise."""
    low, high, between = pair_bits(np.sqrt([s, t, share * s + (1 - share) * t]))
    assert share * low + (1 - share) * high <= between + 1e4 * EPS  # sums of 4,001 terms below one bit


lines = st.lists(st.integers(-16, 16).map(lambda n: n / 8), min_size=6, max_size=6)


@settings(deadline=None)
@given(lines, lines, st.sampled_from([0.3, 0.8, 2.0]))
def test_margins_and_distances_bracket_the_binding_bits(x: list[float], t: list[float], noise: float) -> None:
    """One dimension, so B* is exact: classes of two and of four scenes, paired with their swaps; captions t and images x."""
    labels, swap = [0, 0, 1, 1, 1, 1], [1, 0, 3, 2, 5, 4]
    image, caption, p = np.array(x), np.array(t), np.full(6, 1 / 6)
    d = np.abs(caption - caption[swap])
    margins = image * (caption - caption[swap])
    exact = of_channel(p, labels, on_a_line(image, noise)).binding
    floor = binding_floor(margins, margins[swap], d, noise)
    distances = pair_bits(np.abs(image - image[swap]) / (2 * noise)).mean()
    # Sums of 4,001 terms below one bit, margins within a few roundings; then trapezoid sums of 1,000 terms below 10 bits.
    assert floor <= distances + 2e4 * EPS
    assert distances <= exact + 1e5 * EPS
    assert exact <= binding_ceiling(image[:, None], p, labels, noise) + 1e5 * EPS


@given(st.lists(st.floats(0, 6.28), min_size=4, max_size=4), st.sampled_from([0.1, 0.5, 2.0]))
def test_the_floor_is_reached_where_both_towers_agree(angles: list[float], noise: float) -> None:
    image, swap = np.stack([np.cos(angles), np.sin(angles)], axis=1), [1, 0, 3, 2]
    distances = np.linalg.norm(image - image[swap], axis=1)
    margins = (image * (image - image[swap])).sum(axis=1)
    floor = binding_floor(margins, margins[swap], distances, noise)
    # A few roundings over distances below 2, at most 1e-7 where two angles nearly agree, and J has slope below 1 / 2η ≤ 5.
    assert abs(floor - pair_bits(distances / (2 * noise)).mean()) <= 1e-6


def test_the_ceiling_is_the_spread_within_equal_features_and_is_reached_in_strong_noise() -> None:
    x, p, labels = np.array([0.0, 3.0, 10.0, 11.0, 13.0]), [0.1, 0.2, 0.3, 0.3, 0.1], [0, 0, 1, 1, 1]
    # The variances of the classes, times their masses: 2 of 0.3 and 48/49 of 0.7. Some 20 operations.
    for noise in (1.0, 50.0):
        want = (0.3 * 2 + 0.7 * 48 / 49) / (2 * noise**2 * log(2))
        assert abs(binding_ceiling(x[:, None], p, labels, noise) / want - 1) <= 100 * EPS
    exact = of_channel(p, labels, on_a_line(x, 50.0)).binding
    # The next term of the series is smaller by the squared distance over η, 9 / 2500.
    assert 0.99 <= exact / want <= 1


def test_pairs_are_all_there_is_in_classes_of_two() -> None:
    image, p = np.array([-0.7, 0.4, 0.1, 0.2]), np.full(4, 1 / 4)
    exact = of_channel(p, [0, 0, 1, 1], on_a_line(image, 0.6)).binding
    pairs = pair_bits(np.array([1.1, 0.1]) / 1.2).mean()
    assert abs(exact - pairs) <= 1e4 * EPS


@pytest.mark.parametrize("noise", [0.2, 1.0, 4.0])
def test_sampled_information_is_that_of_the_quadrature(noise: float) -> None:
    x, p, labels = np.array([-1.0, 0.2, 0.9, 2.0, 2.1]), np.array([0.1, 0.3, 0.2, 0.3, 0.1]), [0, 0, 1, 1, 1]
    exact = of_channel(p, labels, on_a_line(x, noise))
    turned = np.outer(x, [0.6, 0.0, -0.8]) + 5.0
    kept = of_gaussian(turned, p, labels, noise, generator(6), draws=20_000)
    # Hoeffding for three means of 20,000 values between 0 and log₂ 5, together below 1e-9.
    bound = log2(5) * sqrt(log(6 / 1e-9) / 40_000)
    for name, error in zip(("objects", "features", "binding"), kept.errors, strict=True):
        assert abs(getattr(kept, name) - getattr(exact, name)) <= bound
        assert 0 <= error <= log2(5) / sqrt(20_000)
    # The chain rule holds draw by draw; 20,000 terms below 3 bits are averaged.
    assert abs(kept.objects - kept.features - kept.binding) <= 20_000 * EPS
    assert kept.entropy == exact.entropy and kept.entropy_features == exact.entropy_features


def test_scenes_are_drawn_by_their_law() -> None:
    """Nine scenes of ten are told for sure, the others hardly: what is open depends on how often each is drawn."""
    x, p, labels = np.array([-6.0, 0.0, 0.1]), np.array([0.9, 0.05, 0.05]), [0, 1, 1]
    exact = of_channel(p, labels, on_a_line(x, 1.0))
    kept = of_gaussian(x[:, None], p, labels, 1.0, generator(6), draws=20_000)
    # Hoeffding for a mean of 20,000 values between 0 and log₂ 3, below 1e-9.
    assert abs(kept.objects - exact.objects) <= log2(3) * sqrt(log(2 / 1e-9) / 40_000)


@pytest.mark.parametrize("x", [(0.0, 3.0, 0.3, 3.3), (0.0, 0.3, 1.5, 1.8)])
def test_the_standard_error_is_that_of_repeated_runs(x: tuple[float, ...]) -> None:
    """Objects and features differ fivefold in the first example, objects and binding tenfold in the second."""
    vectors, p, labels = np.array(x)[:, None], np.full(4, 0.25), [0, 0, 1, 1]
    runs = [of_gaussian(vectors, p, labels, 0.7, generator(seed), draws=200) for seed in range(200)]
    for name, stated in zip(("objects", "features", "binding"), np.array([run.errors for run in runs]).mean(axis=0), strict=True):
        spread = np.std([getattr(run, name) for run in runs], ddof=1)
        # The ratio of 200 runs has a relative standard error of 1/√400 = 0.05; six of them.
        assert abs(spread / stated - 1) <= 0.3


def test_equal_vectors_within_equal_features_keep_no_binding() -> None:
    x = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0], [0.0, 1.0]])
    kept = of_gaussian(x, np.full(4, 0.25), [0, 0, 1, 1], 0.1, generator(0), draws=500)
    # Every draw leaves exactly the one bit open but for rounding.
    assert abs(kept.binding) <= 1000 * EPS and kept.features > 0.9


def test_all_bits_are_kept_without_noise_and_none_in_much() -> None:
    x, p, labels = np.eye(4), np.full(4, 0.25), [0, 0, 1, 1]
    quiet = of_gaussian(x, p, labels, 0.02, generator(0), draws=500)
    # Distance √2 in noise 0.02: a posterior is wrong with probability below e^−600.
    assert abs(quiet.binding - 1) <= 1000 * EPS and abs(quiet.beta_star - 1) <= 1000 * EPS
    assert abs(quiet.beta - 1) <= 1000 * EPS
    loud = of_gaussian(x, p, labels, 100.0, generator(0), draws=500)
    assert binding_ceiling(x, p, labels, 100.0) <= 1e-4 and abs(loud.binding) <= 1e-4 + 6 * loud.errors[2]


def test_the_unit_of_length_does_not_matter() -> None:
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    near = of_gaussian(x, np.full(3, 1 / 3), [0, 0, 1], 0.5, generator(2), draws=300)
    far = of_gaussian(8 * x, np.full(3, 1 / 3), [0, 0, 1], 4.0, generator(2), draws=300)
    # Powers of two are exact in the arithmetic of both.
    assert abs(near.binding - far.binding) <= 300 * EPS


@given(st.floats(0.05, 2), st.floats(0.05, 2))
def test_the_deployed_rule_is_the_best_one_where_both_towers_agree(distance: float, noise: float) -> None:
    """Tied unit vectors have M = d²/2, and the error is then Q(d / 2η), that of the likelihood."""
    error = deployed_error(distance**2 / 2, distance, noise)
    assert abs(error - erfc(distance / (2 * noise) / sqrt(2)) / 2) <= 4 * EPS + 64 * EPS * error
    assert deployed_error(0.3, 0.0, noise) == 0.5 == deployed_error(0.0, 1.0, noise)
    # A reversed margin is wrong as often as its mirror is right.
    assert abs(deployed_error(-(distance**2) / 2, distance, noise) + error - 1) <= 4 * EPS


def test_fano_is_symmetric_and_exact_at_a_quarter() -> None:
    assert fano_bits(0.25) == fano_bits(0.75)
    # Two logarithms.
    assert abs(fano_bits(0.25) - (1 - (2 - 0.75 * log2(3)))) <= 8 * EPS


def test_shares_are_of_what_there_is_to_know() -> None:
    kept = of_channel(np.full(4, 0.25), [0, 0, 1, 1], np.repeat(np.eye(2), 2, axis=0))
    assert (kept.objects, kept.features, kept.binding) == (1, 1, 0)
    assert kept.beta == 0.5 and kept.beta_star == 0
    assert Kept(1.5, 0.5, 1.0, 0.0, 3.0, 1.0, 2.0).beta_star == 0.5


def test_many_pairs_are_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.linspace(0, 3, 12).reshape(3, 4)
    whole = pair_bits(a)
    monkeypatch.setenv("BINDING_MEMORY_MB", "0.2")  # two values at a time
    assert whole.shape == (3, 4) and float(np.abs(pair_bits(a) - whole).max()) <= 1e4 * EPS


def test_nothing_to_know_has_no_share() -> None:
    kept = of_channel([1.0], [0], [[0.5, 0.5]])
    assert np.isnan(kept.beta) and np.isnan(kept.beta_star)


TWO = ([0.5, 0.5], [0, 0])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: mutual_information(np.ones((2, 2))), "sum 4"),
        (lambda: mutual_information(np.ones(2) / 2), r"shape \(2,\)"),
        (lambda: conditional_information(np.array([[[1.5, -0.5]]])), "no negative"),
        (lambda: of_joint(np.full((2, 2, 2), nan)), "sum nan"),
        (lambda: of_channel([0.5, 0.6], [0, 0], np.eye(2)), "sum 1.1"),
        (lambda: of_channel([1.0, 0.0], [0, 0], np.eye(2)), "all positive"),
        (lambda: of_channel([0.5, 0.5], [0], np.eye(2)), r"labels have shape \(1,\)"),
        (lambda: of_channel(*TWO, np.eye(3)), r"channel has shape \(3, 3\)"),
        (lambda: of_channel(*TWO, np.ones((2, 2))), "row 0 of the channel"),
        (lambda: of_gaussian(np.eye(3), *TWO, 1.0, generator(0)), r"vectors have shape \(3, 3\)"),
        (lambda: of_gaussian(np.eye(2) * nan, *TWO, 1.0, generator(0)), "vectors has a NaN"),
        (lambda: of_gaussian(np.eye(2), *TWO, 0.0, generator(0)), "noise = 0.0"),
        (lambda: of_gaussian(np.eye(2), *TWO, 1.0, generator(0), draws=1), "draws = 1"),
        (lambda: on_a_line([0.0, inf], 1.0), "positions has a NaN"),
        (lambda: on_a_line([0.0, 1.0], -1.0), "noise = -1.0"),
        (lambda: on_a_line([0.0, 1.0], 1.0, 2.0), "step = 2.0"),
        (lambda: pair_bits(inf), "a = inf"),
        (lambda: fano_bits(1.2), "error = 1.2"),
        (lambda: deployed_error(nan, 1.0, 1.0), "margin = nan"),
        (lambda: deployed_error(0.1, -1.0, 1.0), "ceiling = -1.0"),
        (lambda: binding_floor([0.1], [0.1, 0.2], [1.0], 1.0), "one shape"),
        (lambda: binding_floor([0.1], [0.1], [1.0], inf), "noise = inf"),
        (lambda: binding_floor([], [], [], 1.0), "margins \\(0,\\)"),
        (lambda: binding_floor([nan], [0.1], [0.0], 1.0), "margins has a NaN"),
        (lambda: binding_floor([0.1], [0.1], [nan], 1.0), "ceilings has a NaN"),
        (lambda: binding_floor([0.1], [0.1], [-1.0], 1.0), "ceilings has the entry -1"),
        (lambda: binding_ceiling(np.ones(2), *TWO, 1.0), r"vectors have shape \(2,\)"),
        (lambda: binding_ceiling(np.ones((1, 2)), *TWO, 1.0), r"vectors have shape \(1, 2\)"),
        (lambda: binding_ceiling(np.full((2, 2), inf), *TWO, 1.0), "vectors has a NaN"),
        (lambda: binding_ceiling(np.eye(2), *TWO, 0.0), "noise = 0.0"),
        (lambda: code_length(torch.ones(2), torch.ones(3)), r"o has shape \(2,\)"),
        (lambda: code_length(torch.tensor([2]), torch.ones(1)), "entry 2"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()
