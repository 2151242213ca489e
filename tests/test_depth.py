"""Recursive role-binding codes: two whole-tree oracles, the laws of the margin at finite N, and the resolvable depth."""

import re
from fractions import Fraction
from math import prod

import numpy as np
import pytest
import torch
import torchhd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from binding.depth import (
    BLOCK,
    code,
    deviation,
    dimension_for,
    draw_words,
    fold,
    margin_limit,
    margins,
    mean_correction,
    noise_floor,
    relative_variance,
    resolvable_depth,
    unpack,
)
from binding.numerics import device, generator, signs
from binding.plots.depth import shares

seeds = st.integers(0, 10**6)
branches = st.integers(2, 5)
DOUBLE, SINGLE = 2.0**-53, 2.0**-24


def numpy_signs(words: torch.Tensor, N: int) -> np.ndarray:
    """The signs of packed words by numpy's own unpacking: bit k of byte j is coordinate k · (bytes) + j."""
    bits = np.unpackbits(words.numpy().view(np.uint8)[..., None], axis=-1, bitorder="little")
    return 1.0 - 2.0 * np.moveaxis(bits, -1, -2).reshape(*words.shape[:-1], -1)[..., :N]


def numpy_tree(leaves: np.ndarray, roles: np.ndarray) -> tuple[list[np.ndarray], float]:
    """First code of each depth of a whole tree in ten lines, and the shortest sum in units of √b (for the rounding bound)."""
    codes, path, shortest = leaves / np.sqrt(leaves.shape[-1]), [], np.inf
    for R in roles:
        sums = (codes.reshape(-1, *R.shape) * R).sum(axis=1)
        lengths = np.sqrt((sums**2).sum(axis=-1, keepdims=True))
        codes, shortest = sums / lengths, min(shortest, float(lengths.min()) / np.sqrt(len(R)))
        path.append(codes[0])
    return path, shortest


def rounding(b: int, D: int, N: int, u: float) -> float:
    """Bound on ‖computed − exact‖ of a code at depth D, if no sum is shorter than √b / 2.

    Adding and scaling b unit vectors costs at most b (b + 2) u, b children carry b times their own error, dividing by the length
    multiplies by at most 2 / (√b / 2), and the length itself carries (N + 4) u.
    """
    error = (N + 4) * u
    for _ in range(D):
        error = 4 * b**0.5 * (error + (b + 2) * u) + (N + 4) * u
    return error


@given(seeds, branches, st.integers(1, 4), st.integers(200, 700), st.integers(1, 3))
@settings(max_examples=60)
def test_depth_first_equals_the_whole_tree(seed: int, b: int, D: int, N: int, draws: int) -> None:
    words = generator(seed)
    roles = numpy_signs(draw_words((D, b, draws), N, words), N)
    leaves = numpy_signs(draw_words((b**D, draws), N, words), N)
    swapped = leaves[[1, 0, *range(2, b**D)]]
    (path, shortest), (edited, shortest_edited) = numpy_tree(leaves, roles), numpy_tree(swapped, roles)
    assume(min(shortest, shortest_edited) >= 0.5)
    expected = np.array([1 - (T * T_).sum(-1) for T, T_ in zip(path, edited, strict=True)])
    for dtype, u in ((torch.float64, DOUBLE), (torch.float32, SINGLE)):
        bound = rounding(b, D, N, DOUBLE) + rounding(b, D, N, u)
        got = margins(b, D, N, draws, generator(seed), dtype=dtype)
        assert got.dtype == torch.float64
        assert np.abs(got.numpy() - expected).max() <= 2 * bound + (N + 4) * DOUBLE
        difference = code(b, D, N, draws, generator(seed), dtype=dtype).double().numpy() - path[-1]
        assert np.linalg.norm(difference, axis=-1).max() <= bound
    folded = fold(torch.as_tensor(leaves), torch.as_tensor(roles)).numpy()
    assert np.linalg.norm(folded - path[-1], axis=-1).max() <= 2 * rounding(b, D, N, DOUBLE)


@given(seeds, branches, st.integers(2, 4), st.integers(64, 300))
@settings(max_examples=20)
def test_every_role_and_every_leaf_is_drawn_on_the_cpu_generator(seed: int, b: int, D: int, N: int) -> None:
    """No subtree is replaced by its distribution: afterwards the generator stands where D b + b^D draws leave it."""
    used, counted = generator(seed), generator(seed)
    margins(b, D, N, 2, used, to=device())
    draw_words((D * b + b**D, 2), N, counted)
    assert torch.equal(used.get_state(), counted.get_state())


def test_draws_beyond_one_block_go_on_in_the_stream() -> None:
    N = 1024
    size = BLOCK // N
    whole, parts = generator(1), generator(1)
    got = margins(2, 3, N, size + 3, whole)
    again = torch.cat([margins(2, 3, N, n, parts) for n in (size, 3)], dim=1)
    assert torch.equal(got, again)
    assert len(code(2, 2, N, size + 3, generator(1))) == size + 3


@given(seeds, st.integers(1, 5), st.integers(1, 200))
def test_unpacking_gives_the_bits_and_they_are_fair(seed: int, rows: int, N: int) -> None:
    words = draw_words((rows,), N, generator(seed))
    assert words.shape == (rows, -(-N // 64))
    assert np.array_equal(unpack(words, N).numpy(), numpy_signs(words, N))
    many = unpack(draw_words((4,), 2**16, generator(seed)), 2**16).double()
    # Hoeffding: |mean of n signs| > √(2 log(2 / 1e-11) / n) with probability below 1e-11, for each of 100 examples.
    assert abs(many.mean()) <= (2 * np.log(2e11) / many.numel()) ** 0.5


@given(seeds, branches, st.integers(0, 4), st.integers(64, 3000))
@settings(max_examples=40)
def test_codes_have_length_one(seed: int, b: int, D: int, N: int) -> None:
    x = code(b, D, N, 2, generator(seed))
    # Squares, their sum and the division round at most N + 4 times in float32.
    assert (x.double().norm(dim=-1) - 1).abs().max() <= (N + 4) * SINGLE


@given(seeds, branches)
@settings(max_examples=20)
def test_torchhd_binds_and_bundles_the_same_code_of_depth_one(seed: int, b: int) -> None:
    N, g = 512, generator(seed)
    roles, leaves = signs((b, N), g), signs((b, N), g)
    MAP = torchhd.MAPTensor
    bundle = torchhd.multiset(torchhd.bind(roles.as_subclass(MAP), leaves.as_subclass(MAP)))
    expected = torch.nn.functional.normalize(bundle.as_subclass(torch.Tensor), dim=0)
    # The sums are small integers; lengths and quotients round at most N + 4 times on either side.
    assert (fold(leaves, roles[None]) - expected).norm() <= 2 * (N + 4) * DOUBLE


def tree(seed: int, b: int, D: int, N: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = generator(seed)
    return signs((b**D, N), g), signs((D, b, N), g)


def edit(leaves: torch.Tensor, i: int = 0, j: int = 1) -> torch.Tensor:
    order = list(range(len(leaves)))
    order[i], order[j] = j, i
    return leaves[order]


def fold_margin(leaves: torch.Tensor, roles: torch.Tensor, i: int = 0, j: int = 1) -> float:
    return 1 - float(fold(leaves, roles) @ fold(edit(leaves, i, j), roles))


@given(seeds, branches, st.integers(1, 3), st.data())
@settings(max_examples=40)
def test_roles_times_a_common_sign_vector_change_no_margin(seed: int, b: int, D: int, data: st.DataObject) -> None:
    """Multiplying all roles of a level by one sign vector multiplies every code of that level by it, without any rounding."""
    N = 256
    leaves, roles = tree(seed, b, D, N)
    turned = roles.clone()
    turned[data.draw(st.integers(0, D - 1))] *= signs((N,), generator(seed + 1))
    assert fold_margin(leaves, turned) == fold_margin(leaves, roles)


@given(seeds, branches, st.integers(1, 3))
@settings(max_examples=40)
def test_margins_survive_permuted_coordinates_and_children(seed: int, b: int, D: int) -> None:
    N = 256
    leaves, roles = tree(seed, b, D, N)
    m = fold_margin(leaves, roles)
    order = torch.randperm(N, generator=generator(seed))
    bound = 4 * rounding(b, D, N, DOUBLE) + 2 * (N + 4) * DOUBLE
    assert abs(fold_margin(leaves[:, order], roles[:, :, order]) - m) <= bound
    children = torch.arange(b).roll(1)
    moved = leaves.unflatten(0, (b, -1))[children].flatten(0, 1)
    turned = torch.cat([roles[:-1], roles[-1:, children]])
    first = b ** (D - 1)
    # The child that was first is second now; at D = 1 the two edited leaves are themselves the children.
    i, j = (first, first + 1) if D > 1 else (1, 2 % b)
    assert abs(fold_margin(moved, turned, i, j) - m) <= bound


@given(seeds, branches, st.integers(2, 4))
@settings(max_examples=60)
def test_each_level_divides_the_margin_by_b_up_to_the_predicted_deviation(seed: int, b: int, D: int) -> None:
    """One more level multiplies the margin by 1/b, with relative variance (2 − 2/b)(1 − 2 b^{−d}) / N.

    Seven standard deviations: below 3e-12 a level for a normal deviation, some 400 levels in all; the square is the second order.
    """
    N = 4096
    m = margins(b, D, N, 2, generator(seed))
    for d in range(2, D + 1):
        σ = float((relative_variance(b, d) - relative_variance(b, d - 1)) / N) ** 0.5
        assert (b * m[d - 1] / m[d - 2] - 1).abs().max() <= 7 * σ + (7 * σ) ** 2


def test_new_roles_leave_the_margin_of_the_same_leaves_on_the_law() -> None:
    b, D, N = 2, 3, 4096
    leaves, _ = tree(0, b, D, N)
    σ = deviation(b, D, N)
    found = [fold_margin(leaves, tree(seed, b, D, N)[1]) * b**D / 2 for seed in range(1, 30)]
    assert len(set(found)) == len(found)
    # Taken alone, each is a draw of leaves and roles: seven standard deviations fail with probability below 29 · 3e-12.
    assert max(abs(x - 1) for x in found) <= 7 * σ + (7 * σ) ** 2


LAW = [(2, 8, 4000), (3, 5, 4000), (4, 4, 4000), (9, 2, 4000)]
FAIL = 5e-11
"""Failure probability of one interval below, for normal margins (they are sums of many small overlaps); 19 make a test: 1e-9."""


@pytest.fixture(scope="module")
def sample() -> dict[tuple[int, int], np.ndarray]:
    return {(b, d + 1): row for b, D, n in LAW for d, row in enumerate(margins(b, D, 1024, n, generator(b)).numpy())}


def interval(n: int, fail: float = FAIL) -> tuple[float, float]:
    """Where the ratio of measured to true variance of n normal numbers falls, but for probability ``fail``."""
    return chi2.ppf(fail / 2, n - 1) / (n - 1), chi2.isf(fail / 2, n - 1) / (n - 1)


def test_variance_follows_the_finite_dimension_law(sample: dict[tuple[int, int], np.ndarray]) -> None:
    """The law is of first order: what it neglects is of relative size D/N, below a tenth of the interval here."""
    for (b, d), m in sample.items():
        law = relative_variance(b, d) / 1024 * margin_limit(b, d) ** 2
        low, high = interval(len(m))
        assert low <= m.var(ddof=1) / float(law) <= high, (b, d)


def test_the_interval_is_narrow_enough_to_reject_levels_that_forget_the_shared_part() -> None:
    """If both trees had the same cross terms at a level, its summand would be 2 − 2/b; 8000 draws tell the two apart."""
    b, D, N = 2, 3, 1024
    m = margins(b, D, N, 8000, generator(7)).numpy()[-1]
    wrong = 5 - Fraction(10, b) + Fraction(8, b**2) + (D - 1) * (2 - Fraction(2, b))
    low, high = interval(len(m))
    assert m.var(ddof=1) / float(wrong / N * margin_limit(b, D) ** 2) < low
    assert low < m.var(ddof=1) / float(relative_variance(b, D) / N * margin_limit(b, D) ** 2) < high


@pytest.mark.parametrize(("b", "D", "N", "n"), [(9, 1, 256, 300_000), (2, 8, 128, 30_000)])
def test_mean_is_the_limit_with_its_first_correction(b: int, D: int, N: int, n: int) -> None:
    """Theorem 3.3 with its term of order 1/N, in dimensions so small that the interval leaves 0 (or half of the term) outside."""
    found = float(margins(b, D, N, n, generator(5))[-1].mean()) / float(margin_limit(b, D)) - 1
    term = float(mean_correction(b, D)) / N
    half_width = norm.isf(FAIL) * deviation(b, D, N * n) + term**2
    assert abs(found - term) <= half_width < (term if D == 1 else term / 2)


def test_margins_of_a_sample_average_to_the_limit(sample: dict[tuple[int, int], np.ndarray]) -> None:
    for (b, d), m in sample.items():
        law = margin_limit(b, d) * (1 + mean_correction(b, d) / 1024)
        error = float(margin_limit(b, d)) * deviation(b, d, 1024 * len(m))
        assert abs(m.mean() - float(law)) <= norm.isf(FAIL / 2) * error, (b, d)


def test_depth_one_of_two_children_is_unbiased_exactly() -> None:
    """For b = 2, 1 − m = (r + x) / (1 + q) changes sign with R₁R₂ and x₁x₂: over all 4^N cases the mean is exactly 1."""
    N = 6
    rows = np.array(np.meshgrid(*[[-1, 1]] * N)).reshape(N, -1).T
    r, x = rows[:, None].sum(-1), rows[None].sum(-1)
    q = rows @ rows.T
    kept = q > -N
    total = sum((Fraction(int(top), int(N + bottom)) for top, bottom in zip((r + x)[kept], q[kept], strict=True)), Fraction(0))
    assert total == mean_correction(2, 1) == 0


@given(branches, st.integers(2, 9))
def test_closed_forms_of_both_corrections(b: int, D: int) -> None:
    inverse = Fraction(1, b)
    grown = 5 - 10 * inverse + 4 * inverse**2 + 4 * inverse ** (D + 1) + (D - 1) * (2 - 2 * inverse)
    assert relative_variance(b, D) == grown
    assert 2 * (mean_correction(b, D) - mean_correction(b, 1)) == relative_variance(b, D) - relative_variance(b, 1)
    assert margin_limit(b, D) == margin_limit(b, D - 1) / b == 2 * prod([inverse] * D)


def unnormalised(leaves: torch.Tensor, roles: torch.Tensor) -> torch.Tensor:
    for R in roles:
        leaves = (R * leaves.unflatten(0, (-1, len(R)))).sum(1)
    return leaves[0]


@given(seeds)
@settings(max_examples=40)
def test_roles_shared_by_levels_cannot_tell_path_12_from_21(seed: int) -> None:
    """The sums are equal integers; the codes differ only in as far as the four lengths do, which are all near √(2N)."""
    N = 1024
    leaves, roles = tree(seed, 2, 2, N)
    shared = torch.stack([roles[0], roles[0]])
    assert torch.equal(unnormalised(leaves, shared), unnormalised(edit(leaves, 1, 2), shared))
    assert not torch.equal(unnormalised(leaves, roles), unnormalised(edit(leaves, 1, 2), roles))
    lengths = [(roles[0] * x.unflatten(0, (2, 2))).sum(1).norm(dim=-1) for x in (leaves, edit(leaves, 1, 2))]
    typical = (2 * N) ** 0.5
    δ = float((torch.cat(lengths) / typical - 1).abs().sum())
    spread = 2 * δ * typical / float(unnormalised(leaves, shared).norm())
    assert fold_margin(leaves, shared, 1, 2) <= spread**2 / 2 + 2 * rounding(2, 2, N, DOUBLE)
    # Told apart, two of the four equal shares change: margin 1/2, seven standard deviations of at most √(5/N).
    assert abs(fold_margin(leaves, roles, 1, 2) - 0.5) <= 7 * (5 / N) ** 0.5 / 2


def chain_margins(b: int, D: int, N: int, seed: int) -> tuple[list[float], float]:
    """A chain in numpy from the same draws, and the shortest sum in units of √b."""
    words = generator(seed)
    roles = numpy_signs(draw_words((D, b, 1), N, words), N)[:, :, 0]
    leaves = numpy_signs(draw_words((b + (D - 1) * (b - 1), 1), N, words), N)[:, 0] / N**0.5
    pair, found, lengths = (leaves[:b], leaves[[1, 0, *range(2, b)]]), [], []
    for d in range(D):
        beside = leaves[b + (d - 1) * (b - 1) :][: b - 1]
        sums = [(roles[d] * (x if d == 0 else np.vstack([x[None], beside]))).sum(0) for x in pair]
        lengths += [np.linalg.norm(x) / b**0.5 for x in sums]
        T, edited = pair = tuple(x / np.linalg.norm(x) for x in sums)
        found.append(1 - T @ edited)
    return found, min(lengths)


@given(seeds, branches, st.integers(1, 5), st.integers(200, 700))
@settings(max_examples=40)
def test_a_chain_puts_single_leaves_beside_the_path(seed: int, b: int, D: int, N: int) -> None:
    expected, shortest = chain_margins(b, D, N, seed)
    assume(shortest >= 0.5)
    got = margins(b, D, N, 1, generator(seed), chain=True, dtype=torch.float64)[:, 0].numpy()
    assert np.abs(got - expected).max() <= 4 * rounding(b, D, N, DOUBLE) + 2 * (N + 4) * DOUBLE


def test_a_chain_has_the_margins_of_the_full_tree() -> None:
    """The proof of Theorem 3.3 asks of the children beside the path only that they are unit and independent."""
    N, n = 1024, 4000
    for b in (2, 3):
        low, high = interval(n)
        for d, m in enumerate(margins(b, 6, N, n, generator(b), chain=True).numpy(), start=1):
            limit, σ = float(margin_limit(b, d)), deviation(b, d, N)
            assert low <= m.var(ddof=1) / (limit * σ) ** 2 <= high, (b, d)
            assert abs(m.mean() / limit - 1 - float(mean_correction(b, d)) / N) <= norm.isf(FAIL / 2) * σ / n**0.5, (b, d)


def test_noise_flips_a_comparison_as_often_as_predicted() -> None:
    """<T + η g / √N, T − T'> is m plus η √(2 m / N) times a normal number, as ‖T − T'‖² = 2 m."""
    b, D, N, η, n = 2, 6, 256, 1.0, 2000
    g = generator(3)
    wrong, expected, variance = 0.0, 0.0, 0.0
    for seed in range(20):
        leaves, roles = tree(seed, b, D, N)
        T, edited = fold(leaves, roles), fold(edit(leaves), roles)
        m = float(1 - T @ edited)
        noise = torch.randn(n, N, generator=g, dtype=torch.float64) * η / N**0.5
        wrong += float(((T + noise) @ (T - edited) < 0).sum())
        p = norm.cdf(-((m * N / 2) ** 0.5) / η)
        expected, variance = expected + n * p, variance + n * p * (1 - p)
    # Bernstein: P(|W − E W| > t) <= 2 exp(−t² / (2 (variance + t / 3))), solved for 1e-9.
    L = np.log(2e9)
    assert abs(wrong - expected) <= L / 3 + (L**2 / 9 + 2 * variance * L) ** 0.5


@given(st.integers(2, 12), st.integers(25, 10**7))
def test_resolvable_depth_is_the_last_depth_above_the_floor(b: int, N: int) -> None:
    above = [D for D in range(30) if Fraction(2, b**D) ** 2 >= Fraction(100, N)]
    assert resolvable_depth(b, N) == max(above)


@given(st.integers(2, 127), st.integers(1, 40))
def test_the_staircase_steps_at_exact_powers(b: int, D: int) -> None:
    """No logarithm in floating point survives this: 25 b^{2D} resolves D, one dimension less does not."""
    N = dimension_for(b, D)
    assert (resolvable_depth(b, N), resolvable_depth(b, N - 1)) == (D, D - 1)
    assert dimension_for(b, D) == b**2 * dimension_for(b, D - 1)


def test_published_values_of_the_staircase() -> None:
    found = {N: tuple(resolvable_depth(b, N) for b in (2, 3, 4)) for N in (512, 1024, 16384, 65536)}
    assert found == {512: (2, 1, 1), 1024: (2, 1, 1), 16384: (4, 2, 2), 65536: (5, 3, 2)}
    assert {tuple(resolvable_depth(b, N) for b in (2, 3, 4)) for N in (512, 640, 768, 1024, 1152, 1280)} == {(2, 1, 1)}
    assert noise_floor(400) == 0.5 == margin_limit(2, resolvable_depth(2, 400))


@given(branches, st.integers(1, 6), st.sampled_from([512, 1280, 8192, 65536]))
def test_the_picture_of_shares_keeps_to_the_numbers(b: int, D: int, N: int) -> None:
    """Filled boxes shrink by b from one depth to the next down to one pixel; points are hollow beyond the resolvable depth."""
    drawn = shares(b, D, N)
    boxes = [float(width) for width in re.findall(r'width="([\d.]+)" height="34" fill="#c2410c"', drawn)]
    assert boxes == [float(f"{max(boxes[0] / b**d, 1):g}") for d in range(D + 1)]
    assert drawn.count('r="5" fill="#fff"') == max(0, D - resolvable_depth(b, N))
    assert f">1/{b**D:,}<" in drawn


BAD = [
    (lambda g: margins(1, 2, 64, 1, g), "b = 1"),
    (lambda g: margins(128, 1, 64, 1, g), "b = 128"),
    (lambda g: margins(2, 0, 64, 1, g), "depth D = 0"),
    (lambda g: margins(2, -1, 64, 1, g), "depth D = -1"),
    (lambda g: margins(2, 1, 0, 1, g), "N = 0"),
    (lambda g: margins(2, 1, 64, 0, g), "draws = 0"),
    (lambda g: margins(2, 1, 1, 200, g), "was zero in dimension N = 1"),
    (lambda g: code(2, -1, 64, 1, g), "depth D = -1"),
    (lambda g: code(1, 1, 64, 1, g), "b = 1"),
    (lambda g: code(2, 1, 1, 200, g), "use a larger N"),
    (lambda g: draw_words((1,), 0, g), "N = 0"),
    (lambda g: margin_limit(1, 1), "b = 1"),
    (lambda g: margin_limit(2, 0), "depth D = 0"),
    (lambda g: relative_variance(2, 0), "depth D = 0"),
    (lambda g: mean_correction(2, 0), "depth D = 0"),
    (lambda g: deviation(2, 1, 0), "N = 0"),
    (lambda g: noise_floor(0), "N = 0"),
    (lambda g: resolvable_depth(1, 100), "b = 1"),
    (lambda g: resolvable_depth(2, 24), "N = 24"),
    (lambda g: dimension_for(2, -1), "depth D = -1"),
    (lambda g: fold(signs((3, 8), g), signs((2, 2, 8), g)), "need 4 leaves, got 3"),
    (lambda g: fold(torch.ones(2, 8), torch.stack([torch.ones(8), -torch.ones(8)])[None]), "zero"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(generator(0))
