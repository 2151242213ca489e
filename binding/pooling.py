"""What a mean over tokens tells, and what one query reads: softmax attention to a single token, in closed form.

T tokens, of which one shows the object that is asked for. A query gives its token a lead λ in score over all others, which are
alike. Entropies and code lengths are in bits.
"""

from math import comb, exp, inf, log, log1p, sqrt

import torch


def query_share(sharpness: float, T: int) -> float:
    """a = e^λ / (e^λ + T − 1): the weight of the token that answers the query, out of T tokens.

    Raises ``ValueError`` for fewer than one token.

    >>> query_share(0.0, 4)
    0.25
    """
    if T < 1:
        raise ValueError(f"T = {T}; attention needs 1 token or more")
    return 1 / (1 + (T - 1) * exp(-sharpness))


def sharpness_for(share: float, T: int) -> float:
    """λ = log((T − 1) a / (1 − a)): the lead in score that gives one of T tokens the weight a.

    Raises ``ValueError`` for a weight outside (0, 1) or fewer than two tokens.
    """
    if not 0 < share < 1 or T < 2:
        raise ValueError(f"share = {share} of {T} tokens; need 0 < share < 1 and 2 tokens or more")
    return log((T - 1) * share / (1 - share))


def query_log_odds(tokens: torch.Tensor, sharpness: float, gain: float) -> torch.Tensor:
    """g (z_k − a/2), where z = Σ_t softmax_t(λ t · e_k) t: what query e_k reads from tokens (n, T, K) → log odds (n, K), nats.

    On tokens that are 0 or a unit vector e_k, every k at most once, it is g a/2 for a present object and −g a/2 for an absent
    one. Raises ``ValueError`` for tokens of another rank or a gain that is not positive.
    """
    if tokens.ndim != 3 or not 0 < gain < inf:
        raise ValueError(f"tokens of shape {tuple(tokens.shape)} and gain {gain}; need (n, T, K) and a finite gain above 0")
    read = ((sharpness * tokens).softmax(dim=1) * tokens).sum(dim=1)
    return gain * (read - query_share(sharpness, tokens.shape[1]) / 2)


def query_loss(sharpness: float, gain: float, T: int, K: int) -> float:
    """K log₂(1 + e^{−g a / 2}): the code length of :func:`query_log_odds` on such tokens, bits; it vanishes as g grows.

    Raises ``ValueError`` for a gain that is not positive, or fewer than one token or object.
    """
    if not 0 < gain < inf or K < 1:
        raise ValueError(f"gain = {gain}, K = {K}; need a finite gain above 0 and 1 object or more")
    return K * log1p(exp(-gain * query_share(sharpness, T) / 2)) / log(2)


def signal_to_noise(share: float, T: int, noise: float) -> float:
    """a / (η √(a² + (1 − a)² / (T − 1))): a weighted mean over T tokens, one of which has signal 1 and weight a, all noise η.

    Equal weights, a = 1/T, are the plain mean and give 1 / (η √T). All weight on the token, a = 1, gives 1 / η.
    Raises ``ValueError`` for a weight outside [0, 1], noise that is not positive, or fewer than two tokens.
    """
    if not 0 <= share <= 1 or not noise > 0 or T < 2:
        raise ValueError(f"share = {share}, noise = {noise}, T = {T}; need 0 <= share <= 1, noise > 0 and 2 tokens or more")
    return share / (noise * sqrt(share**2 + (1 - share) ** 2 / (T - 1)))


def feature_share(mates: int, others: int, k: int) -> float:
    """E[1 / (1 + N)], with N = Σ over k − 1 other objects of one that is a mate: what a query lands that knows one feature only.

    Its attention is spread evenly over its object and all present objects that share the feature. The k objects of a scene are
    a uniform set; ``mates`` of the other objects share the feature and ``others`` do not, so N is hypergeometric.
    Raises ``ValueError`` for negative numbers, or k outside 1 to 1 + mates + others.

    >>> feature_share(0, 8, 4), feature_share(8, 0, 4)
    (1.0, 0.25)
    """
    if min(mates, others) < 0 or not 1 <= k <= 1 + mates + others:
        raise ValueError(f"mates = {mates}, others = {others}, k = {k}; need 0 or more, and 1 <= k <= {1 + mates + others}")
    ways = [comb(mates, n) * comb(others, k - 1 - n) for n in range(min(mates, k - 1) + 1)]
    return sum(way / (1 + n) for n, way in enumerate(ways)) / sum(ways)
