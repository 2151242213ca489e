"""The throttle: what a contrastive loss pays for binding (L, Theorems K.1–K.4), exactly, in closed form and by simulation.

A caption c has one swap σc, and σσc = c. Losses and gaps are in nats; everything is float64. All that the pairwise theorems
need of a score S is four numbers a draw: its value for c, σc, the caption c' of an independent scene, and σc'.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import log, log1p
from typing import NamedTuple

import numpy as np
import torch
from numpy.polynomial.hermite import hermgauss
from scipy.special import gammaln, stdtrit, xlog1py, xlogy

from binding.numerics import check_finite, chunks, gaussian, signs

NODES = ((32, 2.0), (64, 4.0), (128, float("inf")))
"""Gauss–Hermite nodes, and the largest variance for which they are used."""


def loss(m: torch.Tensor) -> torch.Tensor:
    """ℓ(m) = log(1 + e^{−m}), the loss of a contrast won by a margin m, (*) → (*); ℓ(−m) − ℓ(m) = m and ℓ(0) = log 2."""
    return torch.logaddexp(torch.zeros_like(m), -m)


class Scores(NamedTuple):
    """The scores of an image I with its caption c, with the caption c' of an independent scene, and with both swaps, each (n)."""

    own: torch.Tensor
    """S(I, c)."""
    swap: torch.Tensor
    """S(I, σc)."""
    other: torch.Tensor
    """S(I, c')."""
    other_swap: torch.Tensor
    """S(I, σc')."""


def blind(s: Scores) -> Scores:
    """S̄(I, c) = ½ (S(I, c) + S(I, σc)), the pairing-blind average: it scores a caption and its swap alike."""
    own, other = (s.own + s.swap) / 2, (s.other + s.other_swap) / 2
    return Scores(own, own, other, other)


def reverse(s: Scores) -> Scores:
    """S^σ(I, c) = S(I, σc), the exact reversal: it prefers the swap by as much as S prefers the caption."""
    return Scores(s.swap, s.own, s.other_swap, s.other)


def margin(s: Scores) -> torch.Tensor:
    """M*(I) = S(I, c) − S(I, σc), the binding margin of each draw, (n)."""
    return s.own - s.swap


def contrastive_loss(s: Scores, rate: float) -> float:
    """L_π(S) = π L_sw(S) + (1 − π) L_un(S), the means of ℓ(S(I, c) − S(I, σc)) and of ℓ(S(I, c) − S(I, c')) over the draws.

    Raises ``ValueError`` for a rate π outside [0, 1], and for no draws or scores that are not finite.
    """
    _check_rate(rate)
    _check_scores(s)
    return float(rate * loss(margin(s)).mean() + (1 - rate) * loss(s.own - s.other).mean())


class Throttle(NamedTuple):
    """The four constants of theorem `th-throttle`, in nats."""

    c1: float
    """c₁ = L_un(S̄) − L_un(S*), what the average loses in contrasts with independent captions."""
    c0: float
    """c₀ = L_un(S^σ) − L_un(S*), what the reversal loses there."""
    reward: float
    """log 2 − E ℓ(M*), what the average loses in a contrast with the swap."""
    cost: float
    """E M*, what the reversal loses there."""

    def blind_gap(self, rate: float) -> float:
        """L_π(S̄) − L_π(S*) = (1 − π) c₁ + π (log 2 − E ℓ(M*)) (L, Theorems K.1–K.4)."""
        _check_rate(rate)
        return (1 - rate) * self.c1 + rate * self.reward

    def reversed_gap(self, rate: float) -> float:
        """L_π(S^σ) − L_π(S*) = (1 − π) c₀ + π E M* (L, Theorems K.1–K.4)."""
        _check_rate(rate)
        return (1 - rate) * self.c0 + rate * self.cost


def decompose(s: Scores) -> Throttle:
    """The constants c₁, c₀, log 2 − E ℓ(M*) and E M* of a score, as means over its draws.

    Raises ``ValueError`` for no draws or scores that are not finite.
    """
    _check_scores(s)
    unmatched = [float(loss(x.own - x.other).mean()) for x in (s, blind(s), reverse(s))]
    reward, cost = log(2) - float(loss(margin(s)).mean()), float(margin(s).mean())
    return Throttle(unmatched[1] - unmatched[0], unmatched[2] - unmatched[0], reward, cost)


def rounding(s: Scores) -> float:
    """What rounding can add between the two sides of theorem `th-throttle`: 6 (n + 8) ε (log 2 + max |margin|).

    A mean of n losses is off by at most (n + 8) ε of the largest: n − 1 additions in any order, and less than nine for the
    difference, the logarithm, the weights and the division. Six such means meet in an identity.
    """
    reach = max(float((a - b).abs().max()) for a, b in combinations(s, 2))
    return 6 * (len(s.own) + 8) * float(np.finfo(float).eps) * (log(2) + reach)


class Offsets(NamedTuple):
    """What the offsets are made of (theorem `th-separation`): |c₁ − reward| ≤ rest and |c₀ − cost| ≤ rest, in nats."""

    reward: float
    """E[log 2 − ℓ(M*); c' = σc], what the average loses where an independent caption hits the swap by chance."""
    cost: float
    """E[M*; c' = σc], what the reversal loses there."""
    rest: float
    """E[ℓ(γ); c' ∉ {c, σc}], what all other captions can add; :func:`lead` is γ."""


def lead(s: Scores) -> torch.Tensor:
    """γ = min(S(I, c), S(I, σc)) − max(S(I, c'), S(I, σc')): the right words, paired worse, over the wrong, paired better."""
    return torch.minimum(s.own, s.swap) - torch.maximum(s.other, s.other_swap)


def offsets(s: Scores, same: torch.Tensor, hit: torch.Tensor) -> Offsets:
    """The parts of c₁ and c₀, from scores and two masks (n): ``same`` where c' = c, ``hit`` where c' = σc.

    Raises ``ValueError`` for masks of another shape or that overlap, for no draws, or scores that are not finite.
    """
    _check_scores(s)
    for name, mask in (("same", same), ("hit", hit)):
        if mask.shape != s.own.shape or mask.dtype != torch.bool:
            raise ValueError(f"{name} has shape {tuple(mask.shape)} of {mask.dtype}; give a bool for each of {len(s.own)} draws")
    if (same & hit).any():
        raise ValueError(f"draw {int((same & hit).nonzero()[0])} is both the caption and its swap; σc ≠ c is needed")
    m = margin(s)
    parts = ((log(2) - loss(m)) * hit, m * hit, loss(lead(s)) * ~(same | hit))
    return Offsets(*(float(part.mean()) for part in parts))


def implicit_rate(counts: Sequence[int], swap: Sequence[int]) -> Fraction:
    """π_impl = Σ_s P(s) P(σs), the rate at which an independent scene is the swap, exactly, for P(s) = counts[s] / Σ counts.

    ``swap[s]`` is the number of the scene σs. Raises ``ValueError`` if the two differ in length, a count is negative, all are
    zero, or ``swap`` is not its own inverse.

    >>> implicit_rate([1, 1, 2], [1, 0, 2]), implicit_rate([1] * 200, [s ^ 1 for s in range(200)])
    (Fraction(1, 8), Fraction(1, 200))
    """
    total, counts, swap = sum(counts), [int(c) for c in counts], [int(s) for s in swap]
    if len(counts) != len(swap) or sorted(swap) != list(range(len(swap))) or any(swap[t] != s for s, t in enumerate(swap)):
        raise ValueError(f"swap of {len(swap)} scenes is not its own inverse on {len(counts)} scenes; give swap[swap[s]] == s")
    if total <= 0 or min(counts) < 0:
        raise ValueError(f"counts sum to {total}, the smallest is {min(counts)}; give counts of at least 0, not all 0")
    # A scene that is its own swap (equal attributes) offers no contrast.
    return Fraction(sum(c * counts[t] for s, (c, t) in enumerate(zip(counts, swap, strict=True)) if t != s), total**2)


def effective_rate(rate: float, implicit: float) -> float:
    """π + (1 − π) π_impl, the rate of swap contrasts when independent captions hit the swap by chance at rate π_impl.

    Raises ``ValueError`` for a rate outside [0, 1].
    """
    _check_rate(rate)
    _check_rate(implicit)
    return rate + (1 - rate) * implicit


# The reconstruction: sign codes, two objects a scene


def pair_scenes(objects: int, attributes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """All scenes of two objects o < o' with attributes a ≠ a', rows (o, a, o', a'), and the row of each swap, (S, 4) and (S).

    Raises ``ValueError`` for fewer than two objects or attributes.

    >>> pair_scenes(2, 2)[0].tolist(), pair_scenes(2, 2)[1].tolist()
    ([[0, 0, 1, 1], [0, 1, 1, 0]], [1, 0])
    """
    if objects < 2 or attributes < 2:
        raise ValueError(f"a swap needs 2 objects and 2 attributes at least, got {objects} and {attributes}")
    rows = [(o, a, p, b) for o, p in combinations(range(objects), 2) for a, b in permutations(range(attributes), 2)]
    row = {scene: number for number, scene in enumerate(rows)}
    return torch.tensor(rows), torch.tensor([row[o, b, p, a] for o, a, p, b in rows])


def sign_codes(scenes: torch.Tensor, dimension: int, generator: torch.Generator, *, words: float = 0.0) -> torch.Tensor:
    """t(c(s)) = Σ_{(o,a)∈s} u(o) ⊙ v(a) / √N, with u, v ∈ {±1}^N at random, and √ω e_w for each word w of s, (S, N + words).

    ``words`` is ω ≥ 0: two captions score ω more for each word that they share, which no swap changes; 0 leaves the channel out.
    The sums are not normalised. Raises ``ValueError`` for a dimension below 1 or a negative ω.
    """
    if dimension < 1 or words < 0:
        raise ValueError(f"dimension = {dimension} and words = {words}; need at least 1 and at least 0")
    o, a, p, b = scenes.T
    objects, attributes = int(torch.maximum(o, p).max()) + 1, int(torch.maximum(a, b).max()) + 1
    u, v = signs((objects, dimension), generator), signs((attributes, dimension), generator)
    bound = (u[o] * v[a] + u[p] * v[b]) / dimension**0.5
    if not words:
        return bound
    word = torch.zeros(len(scenes), objects + attributes, dtype=torch.float64)
    for column in (o, p, objects + a, objects + b):
        word[torch.arange(len(scenes)), column] = words**0.5
    return torch.cat([bound, word], dim=1)


def draw_scores(
    t: torch.Tensor, swap: torch.Tensor, noise: float, n: int, generator: torch.Generator
) -> tuple[Scores, torch.Tensor, torch.Tensor]:
    """n draws of S*(I, ·) = ⟨I, t⟩ with I = t(c(s)) + η·N(0, 1): the scores, and the numbers of s and of the independent s', (n).

    ``t`` (S, N) holds a row a scene, ``swap`` (S) the row of its swap, ``noise`` is η. Raises ``ValueError`` if η < 0 or n < 1.
    """
    _check_codes(t, swap, noise)
    if n < 1:
        raise ValueError(f"n = {n}; draw at least 1 image")
    scene, other = torch.randint(0, len(t), (2, n), generator=generator)
    rows = torch.empty(4, n, dtype=torch.float64)
    for part in chunks(n, 8 * 6 * t.shape[1]):
        s, r = scene[part], other[part]
        image = t[s] + noise * gaussian((len(s), t.shape[1]), generator)
        for row, caption in enumerate((s, swap[s], r, swap[r])):
            rows[row, part] = torch.linalg.vecdot(image, t[caption])
    return Scores(*rows), scene, other


def gaussian_loss(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    """E ℓ(m) for m ~ N(mean, variance), by Gauss–Hermite: Σ_j w_j ℓ(mean + √(2 variance) x_j) / √π, (*) × 2 → (*).

    Within 1e-10 of adaptive quadrature up to a variance of 9, and within 1e-6 up to 25. Raises ``ValueError`` for a negative one.
    """
    if (variance < 0).any():
        raise ValueError(f"variance {float(variance.min()):.3g} is negative; give a squared standard deviation")
    number = next(number for number, largest in NODES if variance.max() <= largest)
    nodes, weights = (torch.as_tensor(x) for x in hermgauss(number))
    total = torch.zeros_like(mean)
    for x, w in zip(nodes, weights, strict=True):
        total += w * loss(mean + (2 * variance).sqrt() * x)
    return total / torch.pi**0.5


def expected_losses(t: torch.Tensor, captions: torch.Tensor, noise: float) -> torch.Tensor:
    """E ℓ(⟨I, b_s − b_r⟩) for I = t_s + η·N(0, 1) and captions b, all pairs of scenes s, r: (S, N) × 2 → (S, S).

    The margin is normal, with mean ⟨t_s, b_s − b_r⟩ and variance η² ‖b_s − b_r‖².
    """
    score, gram = t @ captions.T, captions @ captions.T
    own, length = score.diagonal(), gram.diagonal()
    variance = (length[:, None] + length - 2 * gram).clamp(min=0)
    return gaussian_loss(own[:, None] - score, noise**2 * variance)


def closed_form(t: torch.Tensor, swap: torch.Tensor, noise: float) -> Throttle:
    """The constants of :func:`decompose` for these codes with no draw of an image: Gauss–Hermite over all pairs of scenes.

    Raises ``ValueError`` for a negative noise or codes that do not fit ``swap``.
    """
    _check_codes(t, swap, noise)
    rows = torch.arange(len(t))
    bound, average, reversed_ = (expected_losses(t, b, noise) for b in (t, (t + t[swap]) / 2, t[swap]))
    cost = torch.linalg.vecdot(t, t - t[swap]).mean()
    unmatched = [float(x.mean()) for x in (bound, average, reversed_)]
    reward = log(2) - float(bound[rows, swap].mean())
    return Throttle(unmatched[1] - unmatched[0], unmatched[2] - unmatched[0], reward, float(cost))


class Line(NamedTuple):
    """A straight line fitted to measured points, with standard errors, and misfit χ² (points − 2 degrees of freedom)."""

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    chi2: float


def fit_line(x: Sequence[float], y: Sequence[float], error: Sequence[float]) -> Line:
    """The weighted least squares line through independent points y ± error at x.

    Raises ``ValueError`` for fewer than three points, other lengths, or an error that is not positive.
    """
    a, b, e = (np.asarray(v, dtype=float) for v in (x, y, error))
    if not a.shape == b.shape == e.shape or len(a) < 3 or not (e > 0).all():
        raise ValueError(f"need three points or more with positive errors, got shapes {a.shape}, {b.shape} and errors {e}")
    design = np.stack([np.ones_like(a), a], axis=1) / e[:, None]
    covariance = np.linalg.inv(design.T @ design)
    intercept, slope = covariance @ design.T @ (b / e)
    chi2 = (((b - intercept - slope * a) / e) ** 2).sum()
    errors = np.sqrt(np.diag(covariance))
    return Line(float(intercept), float(slope), float(errors[0]), float(errors[1]), float(chi2))


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """The mean of independent values and Student's interval around it: mean ± t s / √n, as (mean, low, high).

    Raises ``ValueError`` for fewer than two values or a confidence outside (0, 1).

    >>> tuple(round(x, 3) for x in mean_interval([1.0, 2.0, 3.0]))
    (2.0, -0.484, 4.484)
    """
    n, x = len(values), np.asarray(values, dtype=float)
    if n < 2 or not 0 < confidence < 1:
        raise ValueError(f"{n} values and confidence = {confidence}; need two values or more, and a number between 0 and 1")
    mean, half = float(x.mean()), float(stdtrit(n - 1, (1 + confidence) / 2) * x.std(ddof=1) / n**0.5)
    return mean, mean - half, mean + half


# InfoNCE, any batch size


def info_nce(scores: torch.Tensor) -> torch.Tensor:
    """−log(e^{S₀} / Σ_j e^{S_j}) of scores whose first column belongs to the right caption, (*, B) → (*)."""
    return torch.logsumexp(scores, dim=-1) - scores[..., 0]


def draw_info_nce(
    t: torch.Tensor, swap: torch.Tensor, noise: float, batch: int, n: int, generator: torch.Generator, *, scale: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """n draws of an image with its caption and B − 1 independent ones: losses of S* and S̄, the counts m and n₀, each (n).

    m counts the captions that are the swap σc, n₀ those that are c again; ``scale`` multiplies the scores, as a temperature does.
    Raises ``ValueError`` for a batch below 2, n < 1, or a negative noise.
    """
    _check_codes(t, swap, noise)
    if batch < 2 or n < 1:
        raise ValueError(f"batch = {batch} and n = {n}; need a batch of 2 at least and 1 draw at least")
    scene = torch.randint(0, len(t), (n,), generator=generator)
    others = torch.randint(0, len(t), (n, batch - 1), generator=generator)
    image = t[scene] + noise * gaussian((n, t.shape[1]), generator)
    score = scale * image @ t.T
    columns = torch.cat([scene[:, None], others], dim=1)
    losses = [info_nce(s.gather(1, columns)) for s in (score, (score + score[:, swap]) / 2)]
    return losses[0], losses[1], (others == swap[scene][:, None]).sum(1), (others == scene[:, None]).sum(1)


def batch_reward(batch: int, p: float) -> float:
    """E log(1 + m), m ~ Binomial(B − 1, p): the loss of a blind score that only swaps can fool, against none, in nats.

    Raises ``ValueError`` for a batch below 2 or a p outside [0, 1].
    """
    _check_batch(batch, p)
    n, m = batch - 1, np.arange(batch)
    choices = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return float((np.exp(choices + xlogy(m, p) + xlog1py(n - m, -p)) * np.log1p(m)).sum())


def linear_bound(batch: int, p: float) -> float:
    """(B − 1) p log 2 ≥ E log(1 + m), as log₂(1 + m) ≤ m for whole m; no independence is needed, only E m = (B − 1) p.

    Raises ``ValueError`` for a batch below 2 or a p outside [0, 1].
    """
    _check_batch(batch, p)
    return (batch - 1) * p * log(2)


def jensen_bound(batch: int, p: float) -> float:
    """log(1 + (B − 1) p) ≥ E log(1 + m), as the logarithm is concave; the smaller bound from (B − 1) p = 1 on.

    Raises ``ValueError`` for a batch below 2 or a p outside [0, 1].
    """
    _check_batch(batch, p)
    return log1p((batch - 1) * p)


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate = {rate} is no probability; give a number from 0 to 1")


def _check_batch(batch: int, p: float) -> None:
    _check_rate(p)
    if batch < 2:
        raise ValueError(f"batch = {batch}; a contrast needs a batch of 2 at least")


def _check_scores(s: Scores) -> None:
    if any(x.shape != s.own.shape for x in s) or s.own.ndim != 1 or not len(s.own):
        raise ValueError(f"the four scores have shapes {[tuple(x.shape) for x in s]}; give four of one shape (n), n ≥ 1")
    for name, x in s._asdict().items():
        check_finite(x[:, None], name)


def _check_codes(t: torch.Tensor, swap: torch.Tensor, noise: float) -> None:
    if t.ndim != 2 or swap.shape != t.shape[:1] or not torch.equal(swap[swap], torch.arange(len(t))):
        raise ValueError(f"codes of shape {tuple(t.shape)} need a swap of {len(t)} rows that is its own inverse")
    check_finite(t, "t")
    if noise < 0:
        raise ValueError(f"noise = {noise} is negative; give a standard deviation")
