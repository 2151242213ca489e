"""What a representation Z keeps of a scene: its objects, its features, and the binding that the features leave open, in bits.

I(O;Z), I(F;Z) and B* = I(O;Z | F), exact for finite channels and for noise on a line; for Gaussian noise in any dimension the
posterior is exact and only the mean over Z is sampled. Then what distances and margins say about B*. F, section 2; the bounds
are new.
"""

from dataclasses import dataclass
from math import erfc, isfinite, log, nan, pi, sqrt
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.special import entr, log_softmax, rel_entr
from torch import Tensor

from binding.numerics import check_finite, chunks, gaussian

Floats: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Kept:
    """What Z keeps of O and of F, against what there is to keep; all in bits."""

    objects: float
    """I(O;Z)."""
    features: float
    """I(F;Z)."""
    binding: float
    """B* = I(O;Z | F)."""
    apart: float
    """I(F;Z | O): what Z knows of F and not through O. Zero if F is a function of O."""
    entropy: float
    """H(O)."""
    entropy_features: float
    """H(F)."""
    entropy_given_features: float
    """H(O | F)."""
    errors: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Standard errors of objects, features and binding, if they were sampled."""

    @property
    def beta(self) -> float:
        """β = I(O;Z) / H(O); not a number if there is nothing to know."""
        return self.objects / self.entropy if self.entropy else nan

    @property
    def beta_star(self) -> float:
        """β* = I(O;Z | F) / H(O | F); not a number if F tells all."""
        return self.binding / self.entropy_given_features if self.entropy_given_features else nan


def mutual_information(joint: Floats) -> float:
    """I(A;B) = Σ p(a, b) log₂ p(a, b) / (p(a) p(b)) of a table of probabilities (A, B), in bits.

    Raises ``ValueError`` for another shape, a negative entry, or a sum that is not one.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]])), mutual_information(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    p = _check_joint(joint, 2)
    return float(rel_entr(p, np.outer(p.sum(axis=1), p.sum(axis=0))).sum() / log(2))


def conditional_information(joint: Floats) -> float:
    """I(A;B | C) = Σ_c p(c) I(A;B | C = c) of a table (A, B, C), in bits. Raises ``ValueError`` as :func:`mutual_information`."""
    p = np.moveaxis(_check_joint(joint, 3), 2, 0)
    mass = p.sum(axis=(1, 2))
    return sum(float(m) * mutual_information(part / m) for part, m in zip(p, mass, strict=True) if m > 0)


def of_joint(joint: Floats) -> Kept:
    """All quantities of a table p(o, f, z) of shape (O, F, Z); nothing is assumed about F.

    Raises ``ValueError`` as :func:`mutual_information`.
    """
    p = _check_joint(joint, 3)
    with_features = p.sum(axis=2)
    return Kept(
        objects=mutual_information(p.sum(axis=1)),
        features=mutual_information(p.sum(axis=0)),
        binding=conditional_information(p.transpose(0, 2, 1)),
        apart=conditional_information(p.transpose(1, 2, 0)),
        entropy=_bits(with_features.sum(axis=1)),
        entropy_features=_bits(with_features.sum(axis=0)),
        entropy_given_features=_bits(with_features) - _bits(with_features.sum(axis=0)),
    )


def of_channel(p: Floats, labels: Any, channel: Floats) -> Kept:
    """The same for F a function of O: codes with probabilities p (S,), features by number (S,), and p(z | o) of shape (S, Z).

    B* is Σ p(o) p(z | o) log₂ p(z | o) / p(z | f), each of the three without the others. Raises ``ValueError`` for a law that is
    negative or does not sum to one, or shapes that do not match.
    """
    law, member = _check_scenes(p, labels)
    rows = np.asarray(channel, dtype=float)
    # A row of Z rounded entries sums to one within Z ε.
    if rows.ndim != 2 or len(rows) != len(law) or not (rows >= 0).all():
        raise ValueError(f"channel has shape {rows.shape} and least entry {rows.min():.3g}; need ({len(law)}, Z), none negative")
    if (np.abs(rows.sum(axis=1) - 1) > 4 * rows.shape[1] * np.finfo(float).eps).any():
        raise ValueError(f"row {int(np.abs(rows.sum(axis=1) - 1).argmax())} of the channel does not sum to one")
    of_features = member.T @ law
    given = (member.T @ (law[:, None] * rows)) / of_features[:, None]
    overall = law @ rows
    return Kept(
        objects=float(law @ rel_entr(rows, overall).sum(axis=1) / log(2)),
        features=float(of_features @ rel_entr(given, overall).sum(axis=1) / log(2)),
        binding=float(law @ rel_entr(rows, member @ given).sum(axis=1) / log(2)),
        apart=0.0,
        entropy=_bits(law),
        entropy_features=_bits(of_features),
        entropy_given_features=_bits(law) - _bits(of_features),
    )


def of_gaussian(vectors: Any, p: Any, labels: Any, noise: float, generator: torch.Generator, draws: int = 4000) -> Kept:
    """The same for Z = x_O + η ξ, ξ standard normal: code vectors x of shape (S, N), p and features by number (S,).

    Given z the posterior p(o | z) ∝ p(o) exp(−‖z − x_o‖² / 2η²) is exact, and so are its entropies; their mean over ``draws``
    independent (o, z) estimates H(O | Z) and H(F | Z) without bias. The chain rule holds draw by draw, so I(O;Z) = I(F;Z) + B*
    but for rounding. What happens more rarely than once in ``draws`` is in neither the means nor their standard errors.

    Raises ``ValueError`` unless η > 0 and draws ≥ 2, for vectors not finite, and as :func:`of_channel`.
    """
    law, member = _check_scenes(p, labels)
    x = _check_vectors(vectors, len(law))
    _check_positive(noise, "noise")
    if draws < 2:
        raise ValueError(f"draws = {draws}; a standard error needs at least 2")
    # Noise looks alike in all directions, so only the space that the vectors span about their mean matters.
    left, scale, _ = np.linalg.svd(x - law @ x, full_matrices=False)
    x = (left * scale)[:, scale > 0] / noise
    shown = np.searchsorted(law.cumsum()[:-1], torch.rand(draws, generator=generator, dtype=torch.float64).numpy(), side="right")
    xi = gaussian((draws, x.shape[1]), generator).numpy()
    open_bits = []
    for part in chunks(draws, 8 * 4 * (len(law) + x.shape[1])):
        z = x[shown[part]] + xi[part]
        posterior = np.exp(log_softmax(z @ x.T - (x**2).sum(axis=1) / 2 + np.log(law), axis=1))
        open_bits.append(np.stack([_bits(posterior, axis=1), _bits(posterior @ member, axis=1)], axis=1))
    objects, features = np.concatenate(open_bits).T
    H, H_F = _bits(law), _bits(member.T @ law)
    spread = [float(bits.std(ddof=1)) / sqrt(draws) for bits in (objects, features, objects - features)]
    return Kept(
        objects=H - float(objects.mean()),
        features=H_F - float(features.mean()),
        binding=H - H_F - float((objects - features).mean()),
        apart=0.0,
        entropy=H,
        entropy_features=H_F,
        entropy_given_features=H - H_F,
        errors=(spread[0], spread[1], spread[2]),
    )


def on_a_line(positions: Any, noise: float, step: float = 0.02) -> Floats:
    """p(z | o) = φ((z − x_o) / η) on a fine grid of z, of shape (S, Z), for :func:`of_channel`: trapezoid sums of the integrals.

    The grid has steps of ``step`` η and goes 9 η beyond the outermost positions, where less than 3e-19 of the mass is left.
    Raises ``ValueError`` for positions that are not finite, η ≤ 0, or a step outside (0, 0.5].
    """
    x = np.atleast_1d(check_finite(np.asarray(positions, dtype=float), "positions"))
    if not 0 < step <= 0.5:
        raise ValueError(f"step = {step} must lie between 0 and 0.5 standard deviations")
    x = x / _check_positive(noise, "noise")
    z = np.arange(x.min() - 9, x.max() + 9 + step, step)
    rows = np.exp(-((z - x[:, None]) ** 2) / 2)
    return rows / rows.sum(axis=1, keepdims=True)


def pair_bits(a: Any) -> Any:
    """J(a) = 1 − E log₂(1 + e^{−2a(a + ξ)}), bits that one look at ±a + ξ tells about a fair sign, ξ standard normal; (*) → (*).

    Two equally likely vectors at distance δ under noise η are told apart by J(δ / 2η) bits. By the trapezoid rule: steps of 1/200
    are exact to rounding, since the integrand is analytic within π / 2a of the real line and fades as fast as a grows.
    Raises ``ValueError`` for an a that is not finite.

    >>> [round(float(J), 4) for J in pair_bits(np.array([0.0, 1.0, 2.0, 4.0]))]
    [0.0, 0.4859, 0.9128, 0.9999]
    """
    size = np.abs(np.asarray(a, dtype=float))
    if not np.isfinite(size).all():
        raise ValueError(f"a = {a} must be finite: half a distance over the noise")
    xi = np.linspace(-10, 10, 4001)
    weight = np.exp(-(xi**2) / 2) * (xi[1] - xi[0]) / sqrt(2 * pi)
    flat, lost = size.reshape(-1, 1), np.empty(size.size)
    for part in chunks(size.size, 3 * 8 * len(xi)):
        lost[part] = np.logaddexp(0, -2 * flat[part] * (flat[part] + xi)) @ weight
    return np.clip(1 - lost / log(2), 0, 1).reshape(size.shape)[()]


def fano_bits(error: float) -> float:
    """1 − h(e) bits, h the binary entropy: what any rule that errs at the rate e on a fair coin proves that it was told (Fano).

    Raises ``ValueError`` for a rate outside [0, 1].

    >>> fano_bits(0.0), fano_bits(0.5)
    (1.0, 0.0)
    """
    if not 0 <= error <= 1:
        raise ValueError(f"error = {error} must lie between 0 and 1")
    return 1 - _bits(np.array([error, 1 - error]))


def deployed_error(margin: float, ceiling: float, noise: float) -> float:
    """Q(M / (η d)): how often the score of a noisy image prefers the caption of the swap; M its margin, d = ‖t(c(s)) − t(c(σs))‖.

    One half where d = 0, a tie. Raises ``ValueError`` for η ≤ 0, d < 0 or values that are not finite.
    """
    _check_positive(noise, "noise")
    if not (isfinite(margin) and isfinite(ceiling) and ceiling >= 0):
        raise ValueError(f"margin = {margin} and ceiling = {ceiling} must be finite, the ceiling not negative")
    return erfc(margin / (noise * ceiling) / sqrt(2)) / 2 if ceiling else 0.5


def binding_floor(margins: Any, swapped: Any, ceilings: Any, noise: float) -> float:
    """mean J((M(s) + M(σs)) / (2 η d(s))) ≤ B*, from the deployed margins of scenes and of their swaps (new).

    Arrays (S,) over the scenes, which are equally likely; where d(s) = 0 nothing is promised. Raises ``ValueError`` for other
    shapes, no scene, values that are not finite, d < 0 or η ≤ 0.
    """
    names = ("margins", "swapped", "ceilings")
    m, other, d = (np.asarray(values, dtype=float) for values in (margins, swapped, ceilings))
    if not (m.shape == other.shape == d.shape and m.ndim == 1 and m.size):
        raise ValueError(f"margins {m.shape}, those of the swaps {other.shape} and ceilings {d.shape} must have one shape (S,)")
    for values, name in zip((m, other, d), names, strict=True):
        check_finite(values[:, None], name)
    if (d < 0).any():
        raise ValueError(f"ceilings has the entry {d.min():.3g}; a distance is never negative")
    _check_positive(noise, "noise")
    return float(pair_bits(np.divide(m + other, 2 * noise * d, out=np.zeros_like(d), where=d > 0)).mean())


def binding_ceiling(vectors: Any, p: Any, labels: Any, noise: float) -> float:
    """B* ≤ E ‖x_O − E[x_O | F]‖² / (2 η² ln 2), from the spread of the code vectors within equal features (new).

    Raises ``ValueError`` as :func:`of_gaussian`.
    """
    law, member = _check_scenes(p, labels)
    x = _check_vectors(vectors, len(law))
    _check_positive(noise, "noise")
    centre = (member.T @ (law[:, None] * x)) / (member.T @ law)[:, None]
    return float(law @ ((x - member @ centre) ** 2).sum(axis=1)) / (2 * noise**2 * log(2))


def code_length(o: Tensor, log_odds: Tensor) -> Tensor:
    """Σ_k −log₂ q(o_k | o_<k) = −log₂ q(o) in bits, from the log odds of q bit by bit; (*, K) twice → (*).

    Its mean is at least H(O | Z), by the mean divergence of q from p(· | Z). Raises ``ValueError`` if the shapes differ or an
    entry of o is not 0 or 1.
    """
    if o.shape != log_odds.shape:
        raise ValueError(f"o has shape {tuple(o.shape)}, log odds {tuple(log_odds.shape)}; every bit needs one")
    if not ((o == 0) | (o == 1)).all():
        raise ValueError(f"o has the entry {o[(o != 0) & (o != 1)][0]}; bits are 0 or 1")
    against = torch.where(o == 1, -log_odds, log_odds).double()
    return torch.nn.functional.softplus(against, threshold=700).sum(dim=-1) / log(2)


def _bits(p: Floats, axis: int | None = None) -> Any:
    total = entr(p).sum(axis=axis) / log(2)
    return float(total) if axis is None else total


def _check_positive(value: float, name: str) -> float:
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value} must be positive and finite")
    return value


def _check_joint(joint: Floats, axes: int) -> Floats:
    p = np.asarray(joint, dtype=float)
    # A correct sum of n rounded terms is within n ε of one.
    if p.ndim != axes or not p.size or not (p >= 0).all() or abs(p.sum() - 1) > 4 * p.size * np.finfo(float).eps:
        raise ValueError(f"joint has shape {p.shape} and sum {p.sum():.6g}; need {axes} axes, no negative entry, sum 1")
    return p


def _check_vectors(vectors: Any, codes: int) -> Floats:
    x = np.asarray(vectors, dtype=float)
    if x.ndim != 2 or len(x) != codes:
        raise ValueError(f"vectors have shape {x.shape}; {codes} codes need ({codes}, N)")
    return np.asarray(check_finite(x, "vectors"))


def _check_scenes(p: Any, labels: Any) -> tuple[Floats, Floats]:
    """The law (S,) and who has which features, (S, number of different labels), of zeros and ones."""
    law = np.asarray(p, dtype=float)
    if law.ndim != 1 or not law.size or not (law > 0).all() or abs(law.sum() - 1) > 4 * law.size * np.finfo(float).eps:
        raise ValueError(f"p has shape {law.shape} and sum {law.sum():.6g}; need (S,), all positive, sum 1")
    names, at = np.unique(np.asarray(labels), return_inverse=True)
    if np.shape(labels) != law.shape:
        raise ValueError(f"labels have shape {np.shape(labels)}; {len(law)} codes need ({len(law)},)")
    return law, np.eye(len(names))[at.ravel()]
