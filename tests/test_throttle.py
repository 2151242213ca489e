"""The throttle theorems on arbitrary scores, the closed form against draws and quadrature, and InfoNCE at any batch size."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb, exp, inf, log, log1p, sqrt

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from binding import throttle
from binding.numerics import generator
from binding.throttle import Scores

EPS = float(np.finfo(float).eps)
LOG_WEIGHTS = 40 * 4 * 500 * EPS
"""Rounding of a mean of log(1 + m) ≤ 4 over at most 40 binomial weights that are exponentials of sums of logarithms."""
PUBLISHED_ERROR = 0.005
"""The Monte-Carlo error that L, Figure 15, states."""

numbers = st.floats(-40, 40)
rates = st.floats(0, 1)
batches = st.integers(2, 12)


@st.composite
def scores(draw):
    """Draws of a score in which c' is sometimes c, sometimes σc: the scores, and the masks of both."""
    n = draw(st.integers(1, 12))
    rows = torch.tensor(draw(st.lists(st.lists(numbers, min_size=4, max_size=4), min_size=n, max_size=n)), dtype=torch.float64).T
    kind = torch.tensor(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    own, swap, other, other_swap = rows
    same, hit = kind == 0, kind == 1
    other = torch.where(same, own, torch.where(hit, swap, other))
    other_swap = torch.where(same, swap, torch.where(hit, own, other_swap))
    return Scores(own, swap, other, other_swap), same, hit


def some_scores(n=3):
    return Scores(*torch.arange(4.0 * n, dtype=torch.float64).reshape(4, n))


def codes(seed=0, objects=3, attributes=3, dimension=64, **kwargs):
    rows, swap = throttle.pair_scenes(objects, attributes)
    return throttle.sign_codes(rows, dimension, generator(seed), **kwargs), swap


# The loss


@given(numbers)
def test_loss_is_log_two_at_zero_and_falls_by_its_margin(m):
    forward, backward = (float(throttle.loss(torch.tensor(x, dtype=torch.float64))) for x in (m, -m))
    # An exponential, log1p and an addition, each within 2 ulp of values up to log 2 + |m|.
    bound = 8 * EPS * (log(2) + abs(m))
    assert abs(backward - forward - m) <= bound
    assert abs(forward - (max(-m, 0) + log1p(exp(-abs(m))))) <= bound
    assert forward > 0
    assert float(throttle.loss(torch.zeros((), dtype=torch.float64))) == log(2)


# Blind and reversed scores


@given(scores())
def test_average_and_reversal_are_what_they_are_called(drawn):
    s, _, _ = drawn
    average, reversed_ = throttle.blind(s), throttle.reverse(s)
    assert torch.equal(throttle.margin(average), torch.zeros_like(s.own))
    assert torch.equal(throttle.margin(reversed_), -throttle.margin(s))
    assert torch.equal(reversed_.other, s.other_swap) and torch.equal(reversed_.other_swap, s.other)
    assert all(torch.equal(a, b) for a, b in zip(throttle.reverse(reversed_), s, strict=True))
    for again in (throttle.blind(reversed_), throttle.blind(average), throttle.reverse(average)):
        assert all(torch.equal(a, b) for a, b in zip(again, average, strict=True))


@given(scores(), rates)
def test_both_gaps_decompose_for_any_score_whatever(drawn, rate):
    s, _, _ = drawn
    parts, bound = throttle.decompose(s), throttle.rounding(s)
    base = throttle.contrastive_loss(s, rate)
    assert abs(throttle.contrastive_loss(throttle.blind(s), rate) - base - parts.blind_gap(rate)) <= bound
    assert abs(throttle.contrastive_loss(throttle.reverse(s), rate) - base - parts.reversed_gap(rate)) <= bound


@given(scores())
def test_reward_is_at_most_log_two_and_half_the_cost(drawn):
    s, _, _ = drawn
    parts, bound = throttle.decompose(s), throttle.rounding(s)
    assert parts.reward <= log(2)
    # ℓ is convex with slope −½ at 0: log 2 − ℓ(m) ≤ m/2.
    assert parts.reward <= parts.cost / 2 + bound


@given(scores())
def test_offsets_are_chance_hits_and_a_rest_under_the_lead(drawn):
    s, same, hit = drawn
    parts, found, bound = throttle.decompose(s), throttle.offsets(s, same, hit), throttle.rounding(s)
    assert abs(parts.c1 - found.reward) <= found.rest + bound
    assert abs(parts.c0 - found.cost) <= found.rest + bound


@given(scores(), numbers)
def test_only_differences_of_scores_count(drawn, shift):
    s, _, _ = drawn
    moved = Scores(*(x + shift for x in s))
    for a, b in zip(throttle.decompose(s), throttle.decompose(moved), strict=True):
        # Scores up to 80 are rounded once each, and ℓ and the average are Lipschitz: a loss moves by at most 4 · 80 ε.
        assert abs(a - b) <= throttle.rounding(s) + 8 * 80 * EPS


# Chance hits of the swap


@given(st.integers(1, 6), st.data())
def test_implicit_rate_counts_pairs(pairs, data):
    counts = data.draw(st.lists(st.integers(0, 4), min_size=2 * pairs, max_size=2 * pairs).filter(any))
    swap = [s ^ 1 for s in range(2 * pairs)]
    if data.draw(st.booleans()):
        counts, swap = [*counts, 3], [*swap, 2 * pairs]  # a scene with equal attributes is its own swap: no contrast
    tickets = [s for s, count in enumerate(counts) for _ in range(count)]
    hits = sum(r == swap[s] != s for s, r in product(tickets, tickets))
    assert throttle.implicit_rate(counts, swap) == Fraction(hits, len(tickets) ** 2)


@given(st.integers(2, 6), st.integers(2, 6))
def test_pair_scenes_are_all_scenes_and_swaps_exchange_attributes(objects, attributes):
    rows, swap = throttle.pair_scenes(objects, attributes)
    assert len(rows) == comb(objects, 2) * attributes * (attributes - 1) == len({tuple(row) for row in rows.tolist()})
    assert torch.equal(rows[swap], rows[:, [0, 3, 2, 1]])
    assert (rows[:, 0] < rows[:, 2]).all() and (rows[:, 1] != rows[:, 3]).all()
    assert throttle.implicit_rate([1] * len(rows), swap.tolist()) == Fraction(1, len(rows))


@given(rates, rates)
def test_effective_rate_is_the_probability_of_either(rate, implicit):
    neither = (1 - rate) * (1 - implicit)
    assert abs(throttle.effective_rate(rate, implicit) - (1 - neither)) <= 4 * EPS  # four roundings of numbers up to one


# Codes


def test_codes_are_the_sums_of_bound_atoms():
    rows, _ = throttle.pair_scenes(3, 2)
    draws = generator(5)
    t = throttle.sign_codes(rows, 16, generator(5))
    u = 2.0 * torch.randint(0, 2, (3, 16), generator=draws, dtype=torch.int8) - 1
    v = 2.0 * torch.randint(0, 2, (2, 16), generator=draws, dtype=torch.int8) - 1
    for row, (o, a, p, b) in zip(t, rows.tolist(), strict=True):
        assert row.tolist() == [float((u[o, n] * v[a, n] + u[p, n] * v[b, n]) / 4) for n in range(16)]  # exact: √16 = 4


@given(st.integers(0, 99), st.floats(0.01, 50))
def test_the_word_channel_adds_omega_for_each_shared_word_and_leaves_the_margin(seed, omega):
    rows, swap = throttle.pair_scenes(3, 3)
    plain, worded = codes(seed)[0], codes(seed, words=omega)[0]
    names = [{("o", o), ("o", p), ("a", a), ("a", b)} for o, a, p, b in rows.tolist()]
    shared = torch.tensor([[len(x & y) for y in names] for x in names], dtype=torch.float64)
    # Inner products of 70 terms of squared length at most 4 + 4ω.
    bound = 80 * EPS * (8 + 8 * omega)
    assert ((worded @ worded.T) - (plain @ plain.T) - omega * shared).abs().max() <= bound
    margins = [torch.linalg.vecdot(t, t - t[swap]) for t in (plain, worded)]
    assert (margins[0] - margins[1]).abs().max() <= bound


# The closed form


@pytest.mark.parametrize("variance", [0.01, 0.36, 1.44, 2.0, 4.0, 9.0, 25.0])
@pytest.mark.parametrize("mean", [-2.0, 0.0, 0.7, 1.949, 6.0])
def test_gaussian_loss_against_quadrature(mean, variance):
    def weighted(z):
        return np.logaddexp(0, -(mean + sqrt(variance) * z)) * exp(-z * z / 2) / sqrt(2 * np.pi)

    # Beyond twelve standard deviations lies less than 1e-31; quad is asked for 1e-12.
    want = quad(weighted, -12, 12, epsabs=1e-12, epsrel=1e-12, limit=200, points=[0.0])[0]
    got = float(throttle.gaussian_loss(*(torch.tensor(x, dtype=torch.float64) for x in (mean, variance))))
    assert abs(got - want) <= (1e-10 if variance <= 9 else 1e-6)  # as the function states


@given(st.floats(-5, 5), st.floats(0, 4))
def test_gaussian_loss_keeps_the_identity_and_only_grows_with_noise(mean, variance):
    mu, v = (torch.tensor(x, dtype=torch.float64) for x in (mean, variance))
    forward, backward = float(throttle.gaussian_loss(mu, v)), float(throttle.gaussian_loss(-mu, v))
    # 128 terms, weights that sum to one, and losses of at most |mean| + 16 √variance + 1 at the nodes.
    bound = 300 * EPS * (abs(mean) + 16 * sqrt(variance) + 1)
    assert abs(backward - forward - mean) <= bound
    assert forward >= float(throttle.loss(mu)) - 1e-10  # Jensen, and the quadrature error that the function states
    assert abs(float(throttle.gaussian_loss(mu, 0 * v)) - float(throttle.loss(mu))) <= bound


@pytest.mark.parametrize("noise", [0.25, 0.6])
def test_expected_losses_are_those_of_the_stated_normal_margin(noise):
    t, swap = codes(3, objects=2, attributes=2)
    b = (t + 2 * t[swap]) / 3
    got = throttle.expected_losses(t, b, noise)
    for s, r in product(range(2), range(2)):
        mean, deviation = float(t[s] @ (b[s] - b[r])), noise * float((b[s] - b[r]).norm())
        want = quad(
            lambda z, m=mean, d=deviation: np.logaddexp(0, -(m + d * z)) * exp(-z * z / 2) / sqrt(2 * np.pi),
            -12,
            12,
            epsabs=1e-12,
            epsrel=1e-12,
        )[0]
        assert abs(float(got[s, r]) - want) <= 1e-10  # as gaussian_loss states


def mean_bound(t, b, noise, n, chance=1e-9):
    """How far a mean of n losses is from its expectation, but for that chance.

    Given s and c', ℓ is 1-Lipschitz in a Gaussian of variance η² ‖b_s − b_r‖²; over s and c' its mean moves inside an interval
    of the width of the margins and one deviation. Both make it sub-Gaussian (Tsirelson–Ibragimov–Sudakov; Hoeffding), and then
    P ≤ 2 exp(−n x²/2σ²).
    """
    spread = noise * float(torch.cdist(b, b).max())
    scored = t @ b.T
    margins = scored.diagonal()[:, None] - scored
    width = float(margins.max() - margins.min()) + spread
    return sqrt(2 * log(2 / chance) * (spread**2 + width**2 / 4) / n)


@pytest.mark.parametrize(("noise", "words"), [(0.6, 0.0), (0.25, 2.0)])
def test_closed_form_against_draws(noise, words):
    t, swap = codes(2, dimension=128, words=words)
    n = 60_000
    s, _, _ = throttle.draw_scores(t, swap, noise, n, generator(3))
    captions = {"bound": t, "blind": (t + t[swap]) / 2, "reversed": t[swap]}
    drawn = {"bound": s, "blind": throttle.blind(s), "reversed": throttle.reverse(s)}
    rows = torch.arange(len(t))
    for name, b in captions.items():
        expected, slack = throttle.expected_losses(t, b, noise), mean_bound(t, b, noise, n)
        assert abs(throttle.contrastive_loss(drawn[name], 0) - float(expected.mean())) <= slack
        assert abs(throttle.contrastive_loss(drawn[name], 1) - float(expected[rows, swap].mean())) <= slack
    exact, measured = throttle.closed_form(t, swap, noise), throttle.decompose(s)
    slack = sum(mean_bound(t, b, noise, n) for b in captions.values())
    assert all(abs(a - b) <= slack for a, b in zip(exact, measured, strict=True))


@given(st.integers(0, 999), st.sampled_from([0.0, 0.25, 0.6]))
@settings(max_examples=20)
def test_closed_form_satisfies_what_every_score_satisfies(seed, noise):
    found = throttle.closed_form(*codes(seed), noise)
    assert found.reward < log(2)
    assert found.reward <= found.cost / 2 + 1e-10  # convexity, up to the quadrature error that gaussian_loss states


def test_mean_margin_is_two_on_average():
    """E ⟨t(s), t(s) − t(σs)⟩ = 2: atoms have length one, and different atoms are orthogonal on average over codes."""
    n, N = 200, 1024
    means = [float(torch.linalg.vecdot(t, t - t[swap]).mean()) for t, swap in (codes(seed, dimension=N) for seed in range(n))]
    # A mean of n N independent terms, one a coordinate: (w₁ + w₂)(w₁ + w₂ − w₃ − w₄) with signs w lies in [−4, 8]. Hoeffding.
    assert abs(np.mean(means) - 2) <= 12 * sqrt(log(2 / 1e-9) / (2 * n * N))


def test_chance_hits_are_all_that_is_left_when_words_decide():
    """Without noise every lead is at least ω − 8: four inner products of unit codes on either side, and a word of difference."""
    t, swap = codes(1, words=48.0)
    found = throttle.closed_form(t, swap, 0.0)
    share = float(throttle.implicit_rate([1] * len(t), swap.tolist()))
    bound = log1p(exp(-40.0)) + 1e-12  # and inner products up to 200, of 70 terms, rounded
    assert abs(found.c1 - share * found.reward) <= bound
    assert abs(found.c0 - share * found.cost) <= bound


def test_a_larger_scale_does_not_remove_the_offset_of_the_reversal():
    t, swap = codes(1, dimension=1024)
    offsets = [throttle.closed_form(t * sqrt(scale), swap, 0.0) for scale in (1, 2, 4, 8)]
    assert all(later.c0 > earlier.c0 for earlier, later in pairwise(offsets))


@pytest.mark.parametrize(("noise", "cost", "reward"), [(0.6, 1.949, 0.477), (0.25, 1.9511, 0.5460)])
def test_published_pairs_lie_on_the_closed_form(noise, cost, reward):
    """L, Figure 15: M* ~ N(μ, 2μη²) with μ the published mean margin gives the published log 2 − E ℓ(M*)."""
    mu = torch.tensor(cost, dtype=torch.float64)
    assert abs(log(2) - float(throttle.gaussian_loss(mu, 2 * mu * noise**2)) - reward) <= PUBLISHED_ERROR


# Regression


@given(st.floats(-3, 3), st.floats(-3, 3), st.lists(st.floats(0.1, 2), min_size=3, max_size=8))
def test_fit_line_finds_a_line_and_agrees_with_polyfit(intercept, slope, error):
    x = np.linspace(0, 1, len(error))
    exact = throttle.fit_line(x, intercept + slope * x, error)
    bound = 1e4 * EPS * 6  # condition of the 2 × 2 system: at most (2/0.1)² · 8, with values up to 6
    assert abs(exact.intercept - intercept) <= bound and abs(exact.slope - slope) <= bound and exact.chi2 <= bound
    bent = intercept + slope * x + np.cos(9 * x)
    got = throttle.fit_line(x, bent, error)
    (b, a), covariance = np.polyfit(x, bent, 1, w=1 / np.array(error), cov="unscaled")
    assert abs(got.slope - b) <= bound and abs(got.intercept - a) <= bound
    assert abs(got.slope_error - sqrt(covariance[0, 0])) <= bound and abs(got.intercept_error - sqrt(covariance[1, 1])) <= bound


@given(st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=2, max_size=9), st.floats(0.5, 0.999))
def test_mean_interval_is_that_of_scipy(values, confidence):
    assume(np.ptp(values) > 0)
    mean, low, high = throttle.mean_interval(values, confidence)
    want = stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    # A quantile of up to 640 (one degree of freedom, 0.999) to 1e-12 of itself, times a spread of at most 10.
    assert max(abs(low - want[0]), abs(high - want[1])) <= 1e-8
    assert low <= mean <= high


# InfoNCE


@given(numbers, numbers)
def test_info_nce_of_a_batch_of_two_is_the_pairwise_loss(own, other):
    pair = torch.tensor([own, other], dtype=torch.float64)
    # exp, log and two additions of numbers up to 80.
    assert abs(float(throttle.info_nce(pair)) - float(throttle.loss(pair[0] - pair[1]))) <= 8 * EPS * 81


@given(batches, st.data())
def test_reward_in_a_batch_is_at_most_log_of_one_plus_hits(batch, data):
    """For an arbitrary score: loss(S̄) − loss(S*) ≤ log(1 + m/(1 + n₀)) + r̄, r̄ the weight of the other captions under S̄."""
    S = 2 * data.draw(st.integers(1, 4))
    score = torch.tensor(data.draw(st.lists(st.floats(-20, 20), min_size=S, max_size=S)), dtype=torch.float64)
    others = torch.tensor(data.draw(st.lists(st.integers(0, S - 1), min_size=batch - 1, max_size=batch - 1)))
    swap = torch.arange(S) ^ 1
    columns = torch.cat([torch.tensor([0]), others])
    average = (score + score[swap]) / 2
    bound, blind = (float(throttle.info_nce(x[columns])) for x in (score, average))
    same, hits = int((others == 0).sum()), int((others == 1).sum())
    rest = float((average[others[others > 1]] - average[0]).exp().sum())
    slack = 30 * EPS * (40 + batch)  # exponents up to 40, a sum of at most 12 terms and a logarithm
    assert abs(blind - log(1 + same + hits + rest)) <= slack
    assert blind - bound <= log(1 + hits / (1 + same)) + rest + slack


@given(st.integers(2, 40), rates)
def test_batch_reward_against_the_sum_and_under_both_bounds(batch, p):
    n = batch - 1
    oracle = sum(comb(n, m) * p**m * (1 - p) ** (n - m) * log(1 + m) for m in range(batch))
    got = throttle.batch_reward(batch, p)
    # The logarithm of a weight is a sum of terms of at most 107 = log 39! and of its own size: off by 500 ε, for 40 terms.
    assert abs(got - oracle) <= LOG_WEIGHTS
    assert got <= throttle.linear_bound(batch, p) + LOG_WEIGHTS
    assert got <= throttle.jensen_bound(batch, p) + LOG_WEIGHTS


@given(rates)
def test_linear_bound_is_attained_by_a_batch_of_two(p):
    assert abs(throttle.batch_reward(2, p) - throttle.linear_bound(2, p)) <= LOG_WEIGHTS


@given(st.integers(2, 9), st.floats(0, 0.5))
def test_repeats_of_the_caption_are_counted_by_a_difference(batch, p):
    """E log((1 + n₀ + m)/(1 + n₀)) for trinomial (n₀, m), both of rate p, is batch_reward(B, 2p) − batch_reward(B, p)."""
    n = batch - 1
    oracle = sum(
        comb(n, m) * comb(n - m, k) * p ** (m + k) * (1 - 2 * p) ** (n - m - k) * log((1 + k + m) / (1 + k))
        for m in range(batch)
        for k in range(batch - m)
    )
    assert abs(throttle.batch_reward(batch, 2 * p) - throttle.batch_reward(batch, p) - oracle) <= LOG_WEIGHTS


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_drawn_batches_obey_the_bound_and_count_their_hits(scale):
    t, swap = codes(4, words=4.0)
    n, batch = 4000, 24
    bound, blind, hits, same = throttle.draw_info_nce(t, swap, 0.25, batch, n, generator(6), scale=scale)
    rest = blind.exp() - 1 - hits - same
    slack = 1e-10  # e^blind is at most 24 + rest, and the logits are below 100: (100 + 24) · 100 ε
    assert rest.min() >= -slack
    assert (blind - bound <= torch.log1p(hits / (1 + same)) + rest + slack).all()
    # Hoeffding for n (B − 1) independent draws of rate 1/S each, chance 1e-9.
    deviation = sqrt(log(2 / 1e-9) / (2 * n * (batch - 1)))
    for count in (hits, same):
        assert abs(float(count.double().mean()) / (batch - 1) - 1 / len(t)) <= deviation


def test_draws_depend_on_the_seed_alone(monkeypatch):
    t, swap = codes()
    first = throttle.draw_scores(t, swap, 0.6, 50, generator(1))[0]
    monkeypatch.setenv("BINDING_MEMORY_MB", "0.05")
    second = throttle.draw_scores(t, swap, 0.6, 50, generator(1))[0]
    # Vectors that are drawn in other chunks come from the same stream; inner products of 64 terms may be summed in another order.
    assert all((a - b).abs().max() <= 70 * EPS * 40 for a, b in zip(first, second, strict=True))


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: throttle.contrastive_loss(some_scores(), 1.5), "rate = 1.5"),
        (lambda: throttle.Throttle(0, 0, 0, 0).blind_gap(-0.1), "rate = -0.1"),
        (lambda: throttle.Throttle(0, 0, 0, 0).reversed_gap(2), "rate = 2"),
        (lambda: throttle.contrastive_loss(some_scores()._replace(swap=torch.zeros(2)), 0.5), r"\(2,\)"),
        (lambda: throttle.decompose(some_scores(0)), r"\(0,\)"),
        (
            lambda: throttle.decompose(some_scores()._replace(other=torch.tensor([0.0, inf, 0.0]))),
            "other has a NaN or an infinity in row 1",
        ),
        (
            lambda: throttle.offsets(some_scores(), torch.zeros(2, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)),
            r"same has shape \(2,\)",
        ),
        (
            lambda: throttle.offsets(some_scores(), torch.zeros(3, dtype=torch.bool), torch.zeros(3)),
            "hit has shape .* of torch.float32",
        ),
        (lambda: throttle.offsets(some_scores(), *[torch.tensor([False, True, False])] * 2), "draw 1 is both"),
        (lambda: throttle.implicit_rate([1, 1], [1]), "swap of 1 scenes"),
        (lambda: throttle.implicit_rate([1, 1, 1], [1, 2, 0]), "not its own inverse"),
        (lambda: throttle.implicit_rate([0, 0], [1, 0]), "sum to 0"),
        (lambda: throttle.implicit_rate([3, -1], [1, 0]), "smallest is -1"),
        (lambda: throttle.effective_rate(0.5, -1), "rate = -1"),
        (lambda: throttle.pair_scenes(1, 4), "got 1 and 4"),
        (lambda: throttle.sign_codes(throttle.pair_scenes(2, 2)[0], 0, generator(0)), "dimension = 0"),
        (lambda: codes(words=-1.0), "words = -1.0"),
        (lambda: throttle.draw_scores(*codes(), -0.1, 5, generator(0)), "noise = -0.1"),
        (lambda: throttle.draw_scores(*codes(), 0.1, 0, generator(0)), "n = 0"),
        (lambda: throttle.closed_form(codes()[0], torch.arange(18).roll(1), 0.1), "its own inverse"),
        (lambda: throttle.closed_form(codes()[0] * inf, codes()[1], 0.1), "t has a NaN"),
        (lambda: throttle.gaussian_loss(torch.zeros(1), torch.tensor([-0.5])), "variance -0.5"),
        (lambda: throttle.fit_line([0, 1], [0, 1], [1, 1]), "three points"),
        (lambda: throttle.fit_line([0, 1, 2], [0, 1, 2], [1, 0, 1]), "positive errors"),
        (lambda: throttle.mean_interval([1.0]), "1 values"),
        (lambda: throttle.mean_interval([1.0, 2.0], 1.0), "confidence = 1.0"),
        (lambda: throttle.draw_info_nce(*codes(), 0.1, 1, 5, generator(0)), "batch = 1"),
        (lambda: throttle.batch_reward(1, 0.5), "batch = 1"),
        (lambda: throttle.linear_bound(4, 1.1), "rate = 1.1"),
        (lambda: throttle.jensen_bound(0, 0.1), "batch = 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
