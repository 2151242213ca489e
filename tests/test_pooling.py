"""Softmax attention to one token: weights, what the constructed query reads, and signal over noise against the plain mean."""

from itertools import combinations, pairwise
from math import comb, log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from binding.information import Subsets
from binding.numerics import gaussian, generator
from binding.pooling import feature_share, query_log_odds, query_loss, query_share, sharpness_for, signal_to_noise

EPS = float(np.finfo(float).eps)
sharp = st.floats(-5, 20)
many = st.integers(2, 300)


def scenes(groups: tuple[int, int], k: int, T: int, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes (n, K) and tokens (n, T, K): every object as a unit vector on a place of its own, zeros elsewhere."""
    draws = generator(seed)
    codes = Subsets(groups, k).sample(n, draws)
    tokens = torch.zeros(n, T, codes.shape[1], dtype=torch.float64)
    for row, code in enumerate(codes):
        places = torch.randperm(T, generator=draws)[:k]
        tokens[row, places, code.nonzero()[:, 0]] = 1
    return codes, tokens


@given(sharp, many)
def test_the_share_is_a_softmax(sharpness: float, T: int) -> None:
    scores = torch.zeros(T, dtype=torch.float64)
    scores[0] = sharpness
    # Both are a few operations of float64: the sum of T terms rounds by at most T ε.
    assert abs(query_share(sharpness, T) - float(scores.softmax(0)[0])) <= (T + 8) * EPS
    share = query_share(sharpness, T)
    assert abs(sharpness_for(share, T) - sharpness) <= 64 * EPS * (1 + abs(sharpness)) / (1 - share)  # 1 − a cancels


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0, 12), st.floats(0.5, 50))
def test_the_constructed_query_reads_every_object_at_its_price(seed: int, k: int, sharpness: float, gain: float) -> None:
    codes, tokens = scenes((2, 3), k, 5, 7, seed)
    odds = query_log_odds(tokens, sharpness, gain)
    half = gain * query_share(sharpness, 5) / 2
    # Softmax and sum over 5 tokens, then a product: 32 roundings of a number of at most the gain.
    signed = half * (2 * codes.double() - 1)
    assert (odds - signed).abs().max() <= 32 * EPS * gain
    wrong = torch.where(codes == 1, -odds, odds)
    bits = torch.nn.functional.softplus(wrong).sum(1) / log(2)
    # Six terms, each of a number of at most the gain and about 64 roundings.
    assert (bits - query_loss(sharpness, gain, 5, 6)).abs().max() <= 1000 * EPS * (1 + gain)


def test_the_price_vanishes_and_never_grows_with_the_gain() -> None:
    prices = [query_loss(4.0, gain, 16, 36) for gain in (1, 3, 10, 30, 100)]
    assert prices == sorted(prices, reverse=True)
    assert prices[-1] < 1e-9
    assert query_loss(0.0, 1e-9, 16, 36) == pytest.approx(36, abs=1e-8)  # no gain: a coin for every bit, slope below 1


@given(many, st.floats(0.01, 10))
def test_attention_to_one_token_beats_the_mean_by_the_root_of_t(T: int, noise: float) -> None:
    mean, one = signal_to_noise(1 / T, T, noise), signal_to_noise(1.0, T, noise)
    assert abs(one / mean / sqrt(T) - 1) <= 16 * EPS * T
    shares = np.linspace(1 / T, 1, 9)
    ratios = [signal_to_noise(share, T, noise) for share in shares]
    assert all(b >= a * (1 - 16 * EPS) for a, b in pairwise(ratios))


def test_signal_over_noise_is_that_of_a_simulation() -> None:
    T, noise, n, share = 9, 0.7, 40_000, 0.6
    weights = torch.full((T,), (1 - share) / (T - 1), dtype=torch.float64)
    weights[0] = share
    noises = noise * gaussian((n, T), generator(1)) @ weights
    measured = share / float(noises.std())
    # A sample deviation of n normal numbers is off by a factor 1 ± 3 √(log(2e9)/n) with probability below 1e-9 (Laurent–Massart).
    assert abs(measured / signal_to_noise(share, T, noise) - 1) <= 3 * sqrt(log(2e9) / n)


def test_one_hot_tokens_give_up_all_bits() -> None:
    """The prior and the query reader together: code length of a scene falls from log₂ C(K, k) to nearly nothing."""
    codes, tokens = scenes((3, 3), 4, 8, 50, 3)
    odds = query_log_odds(tokens, 6.0, 60.0)
    bits = torch.nn.functional.softplus(torch.where(codes == 1, -odds, odds)).sum(1) / log(2)
    assert float(bits.max()) < 1e-9 * np.log2(comb(9, 4))


@given(st.integers(1, 3), st.integers(1, 3), st.data())
def test_a_query_that_knows_one_feature_lands_among_all_who_have_it(colours: int, shapes: int, data: st.DataObject) -> None:
    """Every scene by hand: object 0 is there, and attention is spread over those of its colour."""
    k = data.draw(st.integers(1, colours * shapes))
    each = [1 / sum(o // shapes == 0 for o in (0, *rest)) for rest in combinations(range(1, colours * shapes), k - 1)]
    # At most 70 terms of at most 1, each rounded a few times.
    assert abs(feature_share(shapes - 1, (colours - 1) * shapes, k) - np.mean(each)) <= 400 * EPS


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: query_share(1.0, 0), "T = 0"),
        (lambda: sharpness_for(1.0, 4), "share = 1.0"),
        (lambda: sharpness_for(0.5, 1), "of 1 tokens"),
        (lambda: query_log_odds(torch.zeros(2, 3), 1.0, 1.0), r"\(2, 3\)"),
        (lambda: query_log_odds(torch.zeros(2, 3, 4), 1.0, 0.0), "gain 0.0"),
        (lambda: query_loss(1.0, -1.0, 4, 4), "gain = -1.0"),
        (lambda: query_loss(1.0, 1.0, 4, 0), "K = 0"),
        (lambda: signal_to_noise(1.5, 4, 0.1), "share = 1.5"),
        (lambda: signal_to_noise(0.5, 4, 0.0), "noise = 0.0"),
        (lambda: signal_to_noise(0.5, 1, 0.1), "T = 1"),
        (lambda: feature_share(-1, 3, 2), "mates = -1"),
        (lambda: feature_share(2, 3, 7), "k = 7"),
        (lambda: feature_share(2, 3, 0), "k = 0"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()
