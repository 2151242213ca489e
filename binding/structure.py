"""How a scene embedding depends on its concepts: sums of tables, and sums with products of tables, fitted by least squares.

A scene is an ordered list of m objects, and an object one value for each of C concepts. Its *slots* are these m·C values in
order: (first object's first concept, first object's second concept, …, last object's last concept). The models are those of U;
all of them are fitted in closed form, or by steps each of which is closed and lowers the error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from binding.codes import Leakage, hadamard
from binding.numerics import check_finite, gaussian, generator

Data: TypeAlias = Tensor | np.ndarray
KINDS = ("global", "per_object", "pairwise")
"""Which slots are multiplied: all at once; those of each object; every two."""
START = 0.5
"""Standard deviation of the product tables at the start, around one: around zero a product of four has no slope to follow."""
RIDGE = 0.1
"""λ, the price of tables away from one and of large maps, where rows have mean square one. Without it products of four cancel
each other where scenes were seen and explode where none was."""


class Term(NamedTuple):
    """One product of a model: Π_s v_s[c_s] over its slots, then a linear map."""

    slots: tuple[int, ...]
    factors: tuple[Tensor, ...]
    """v_s, one table a slot, of shape (values, R)."""
    map: Tensor
    """W, of shape (R, N)."""

    def value(self, slots: Tensor) -> Tensor:
        """(Π_s v_s[c_s]) W, of shape (n, N)."""
        return _products(self.factors, slots[:, list(self.slots)]) @ self.map


@dataclass(frozen=True)
class Fit:
    """A fitted model f(c) = mean + Σ_s u_{τ(s)}[c_s] + Σ_j (Π_{s ∈ G_j} v_{js}[c_s]) W_j."""

    mean: Tensor
    """The mean of the rows fitted, (N)."""
    sums: tuple[Tensor, ...]
    """u, one table a shared group of slots, of shape (values, N). Its mean over the slots fitted is zero, and a value that was
    not seen there has a zero row: it counts as an average one."""
    shared: tuple[int, ...]
    """τ: the table of every slot."""
    terms: tuple[Term, ...] = ()
    """The products; none for an additive model."""

    def predict(self, slots: Data) -> Tensor:
        """The model's embeddings of scenes, (n, m·C) → (n, N).

        Raises ``ValueError`` for another number of slots, or a value that no table has.
        """
        found = _slots(slots, tuple(len(self.sums[t]) for t in self.shared))
        x = self.mean + sum(self.sums[t][found[:, s]] for s, t in enumerate(self.shared))
        return sum((term.value(found) for term in self.terms), x)


def additive(slots: Data, x: Data, *, shared: Sequence[int] | None = None, sizes: Sequence[int] | None = None) -> Fit:
    """The best additive model min ‖x − mean − Σ_s u_{τ(s)}[c_s]‖², of least norm, for slots (n, S) and x (n, N).

    ``shared`` is τ, the table of each slot: every slot has its own unless given; (0, 1, 0, 1) makes two objects of two concepts
    interchangeable. ``sizes`` is the number of values of each slot, as large as seen unless given. For one vector an object pass
    :func:`object_slots`. Raises ``ValueError`` for slots and x that do not match, and for slots of one table and two sizes.
    """
    found, rows, tables, sizes = _checked(slots, x, shared, sizes)
    mean, sums = _least_squares(found, rows, tables, sizes)
    return Fit(mean, sums, tables)


def product(
    slots: Data,
    x: Data,
    kind: str = "global",
    rank: int = 16,
    steps: int = 60,
    seed: int = 0,
    *,
    objects: int = 2,
    sizes: Sequence[int] | None = None,
    ridge: float = RIDGE,
) -> Fit:
    """Sum and products, x ≈ mean + Σ_s u_s[c_s] + Σ_j (Π_{s ∈ G_j} v_{js}[c_s]) W_j, for slots (n, S) and x (n, N).

    ``kind`` is one of KINDS: all slots in one product; one product for each of the ``objects``; one for every two slots. Product
    tables have ``rank`` columns, start around one (drawn from ``seed``) and are fitted by alternating least squares: each of
    ``steps`` rounds solves u and W exactly, then every table exactly, and never raises Σ ‖error‖² + λ (Σ ‖W‖² + Σ ‖v − 1‖²).
    Here λ is ``ridge``, and x is scaled to mean square one. It may stop at a local minimum. Raises ``ValueError`` as
    :func:`additive` does, for an unknown kind, for slots that do not divide, and for a ridge that is not positive.
    """
    found, rows, tables, sizes = _checked(slots, x, None, sizes)
    groups = _groups(kind, len(sizes), objects)
    if rank < 1 or steps < 1:
        raise ValueError(f"rank = {rank} and steps = {steps}; give 1 or more of each")
    if not ridge > 0:
        raise ValueError(f"ridge = {ridge} must be positive: without it a step may have no solution")
    draws = generator(seed)
    factors = [[1 + START * gaussian((sizes[s], rank), draws, to=rows.device) for s in group] for group in groups]
    hot = _one_hot(found, tables, sizes)
    solve = torch.linalg.pinv(hot.T @ hot, hermitian=True) @ hot.T  # columns x n
    centred = rows - hot @ (solve @ rows)  # what no sum explains
    scale = (rows - rows.mean(dim=0)).square().sum(dim=1).mean().sqrt().clamp_min(torch.finfo(rows.dtype).tiny)
    centred = centred / scale
    eye = ridge * torch.eye(rank * len(groups), dtype=rows.dtype, device=rows.device)
    for step in range(steps + 1):
        φ = torch.cat([_products(f, found[:, list(g)]) for f, g in zip(factors, groups, strict=True)], dim=1)
        φ = φ - hot @ (solve @ φ)
        inner = torch.linalg.solve(φ.T @ φ + eye, φ.T @ centred)  # (J·R, N)
        maps = list(inner.split(rank))
        if step == steps:
            break
        residual = centred - φ @ inner
        for j, group in enumerate(groups):
            for place in range(len(group)):
                residual = _table_step(factors[j], place, found[:, list(group)], maps[j], residual, ridge)
    maps = [scale * w for w in maps]
    terms = tuple(_settled(g, f, w, found) for g, f, w in zip(groups, factors, maps, strict=True))
    left = rows - sum(term.value(found) for term in terms)
    mean, sums = _least_squares(found, left, tables, sizes)
    return Fit(mean, sums, tables, terms)


def object_slots(slots: Data, objects: int, sizes: Sequence[int]) -> Tensor:
    """One number an object, (n, m·C) → (n, m): its values as digits, last concept fastest. ``sizes`` are the values of a concept.

    Raises ``ValueError`` unless every object has ``len(sizes)`` slots, or for a value outside its size.
    """
    found = _slots(slots, tuple(sizes) * objects)
    weight = torch.tensor([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], device=found.device)
    return (found.reshape(len(found), objects, len(sizes)) * weight).sum(dim=-1)


def r2(fit: Fit, slots: Data, x: Data) -> float:
    """R² = 1 − Σ‖x − f(c)‖² / Σ‖x − x̄‖², with x̄ the mean of these very rows; 1 is perfect, 0 no better than that mean.

    Raises ``ValueError`` if all rows are equal, or for slots and x that do not match.
    """
    rows = _rows(x, fit.mean.device)
    guess = fit.predict(slots)
    if guess.shape != rows.shape:
        raise ValueError(f"x has shape {tuple(rows.shape)}, the model predicts {tuple(guess.shape)}")
    total = float((rows - rows.mean(dim=0)).square().sum())
    if total == 0:
        raise ValueError("all rows of x are equal, so there is nothing to explain; give rows that differ")
    return 1 - float((rows - guess).square().sum()) / total


def atom_codes(fit: Fit, index: int = 0) -> Tensor:
    """The code of every value of object ``index``, z(o, a) = u[o] + u'[a] + (v[o] ⊙ v'[a]) W, of shape (M, K, N).

    A scene is then mean + Σ_i z_i, a sum of atom codes as in :mod:`binding.codes`; the product is its Hadamard code followed by a
    linear map. Raises ``ValueError`` for a model that mixes the slots of two objects, or objects of other than two concepts.
    """
    own = (2 * index, 2 * index + 1)
    if len(fit.shared) % 2 or not 0 <= index < len(fit.shared) // 2:
        raise ValueError(f"the model has {len(fit.shared)} slots and no object {index} of two concepts")
    if any(set(term.slots) & set(own) and term.slots != own for term in fit.terms):
        raise ValueError("a product of this model joins slots of two objects, so objects have no codes; fit kind='per_object'")
    first, second = (fit.sums[fit.shared[s]] for s in own)
    z = first[:, None] + second[None, :]
    for term in fit.terms:
        if term.slots == own:
            u, v = term.factors
            z = z + math.sqrt(u.shape[1]) * hadamard(u[:, None], v[None, :]) @ term.map
    return z


class Reading(NamedTuple):
    """What :func:`gain_and_leakage` reads from scores."""

    leakage: Leakage
    """Gain and leakages of one object: scores of a two-object scene are sums of two of them."""
    spread: float
    """Standard deviation of the interaction part of a score at an absent object."""

    @property
    def margin(self) -> float:
        """The swap margin that follows if scores are sums over objects: 2 (g − ℓ_o − ℓ_a + ℓ_0)."""
        return 2 * self.leakage.interaction

    @property
    def accuracy(self) -> float:
        """The share of right swap choices that follows for normal deviations of four scores: Φ(κ / spread)."""
        if self.spread == 0:
            return 0.5 + 0.5 * math.copysign(self.leakage.interaction != 0, self.leakage.interaction)
        return 0.5 * math.erfc(-self.leakage.interaction / self.spread / math.sqrt(2))


def swap_margins(scores: Data, slots: Data) -> Tensor:
    """h(a, b) + h(c, d) − h(a, d) − h(c, b) of scenes (a, b), (c, d), from the scores h of all objects: (n, M, K), (n, 4) → (n).

    Positive where the scene's own pairing wins. Raises ``ValueError`` if a ≠ c or b ≠ d fails: such a scene has no swap.
    """
    h, (row, a, b, c, d) = _scores(scores, slots)
    return (h[row, a, b] + h[row, c, d]) - (h[row, a, d] + h[row, c, b])  # so that the swap has exactly the opposite margin


def gain_and_leakage(scores: Data, slots: Data, candidates: Data | None = None) -> Reading:
    """Gain g and leakages ℓ from scores h of all objects (n, M, K) in two-object scenes (n, 4), without looking at any swap.

    Let P, A, B, 0 be the mean scores of a present object and of an absent one that shares with the scene the first concept only,
    the second only, or nothing. If scores are sums over objects, then P = g + ℓ_0, A = ℓ_o + ℓ_0, B = ℓ_a + ℓ_0 and 0 = 2 ℓ_0.
    The objects (a, d) and (c, b) of the swap are left out, so that the margin is predicted and not read. ``candidates`` (M, K)
    says which absent objects count; all, unless given. Raises ``ValueError`` as :func:`swap_margins`, or if a kind has none.
    """
    h, (row, a, b, c, d) = _scores(scores, slots)
    n, M, K = h.shape
    counted = torch.ones(M, K, dtype=torch.bool) if candidates is None else torch.as_tensor(candidates).bool()
    if tuple(counted.shape) != (M, K):
        raise ValueError(f"candidates has shape {tuple(counted.shape)}, the scores are of {M} x {K} objects")
    first = torch.zeros(n, M, 1, dtype=torch.bool, device=h.device)
    second = torch.zeros(n, 1, K, dtype=torch.bool, device=h.device)
    first[row, a], first[row, c] = True, True
    second[row, :, b], second[row, :, d] = True, True
    present = torch.zeros(n, M, K, dtype=torch.bool, device=h.device)
    present[row, a, b], present[row, c, d] = True, True
    absent = counted.to(h.device)
    kinds = {"first": first & ~second & absent, "second": ~first & second & absent, "nothing": ~first & ~second & absent}
    empty = [name for name, mask in kinds.items() if not mask.any()]
    if empty:
        raise ValueError(f"no candidate shares {empty[0]} with a scene; give more objects than the scenes have")
    P, A, B, none = (float(h[mask].mean()) for mask in (present, *kinds.values()))
    inner = h - h.mean(dim=1, keepdim=True) - h.mean(dim=2, keepdim=True) + h.mean(dim=(1, 2), keepdim=True)
    outside = torch.stack(list(kinds.values())).any(dim=0)
    return Reading(Leakage(P - none / 2, A - none / 2, B - none / 2, none / 2), float(inner[outside].std(correction=0)))


def _products(factors: Sequence[Tensor], slots: Tensor) -> Tensor:
    """Π_s v_s[c_s], of shape (n, R)."""
    found = factors[0][slots[:, 0]]
    for place in range(1, len(factors)):
        found = found * factors[place][slots[:, place]]
    return found


def _table_step(factors: list[Tensor], place: int, slots: Tensor, W: Tensor, residual: Tensor, ridge: float) -> Tensor:
    """Put the best table in the place of one factor, all else fixed; returns the new residual.

    Row by row of the table: with p the product of the other factors, min ‖r − ((v − v_old) ⊙ p) W‖² + λ ‖v − 1‖² over the scenes
    of that value, whose curvature is W Wᵀ ⊙ Σ p pᵀ + λ.
    """
    others = [f for i, f in enumerate(factors) if i != place]
    rest = [i for i in range(len(factors)) if i != place]
    p = _products(others, slots[:, rest])
    old, index = factors[place], slots[:, place]
    R = old.shape[1]
    outer = torch.zeros(len(old), R * R, dtype=p.dtype, device=p.device)
    outer.index_add_(0, index, (p[:, :, None] * p[:, None, :]).flatten(1))
    curvature = (W @ W.T) * outer.reshape(-1, R, R)
    slope = torch.zeros_like(old).index_add_(0, index, p * (residual @ W.T))
    eye = ridge * torch.eye(R, dtype=p.dtype, device=p.device)
    change = torch.linalg.solve(curvature + eye, (slope + ridge * (1 - old))[..., None])[..., 0]
    factors[place] = old + change
    return residual - (change[index] * p) @ W


def _settled(group: tuple[int, ...], factors: Sequence[Tensor], W: Tensor, slots: Tensor) -> Term:
    """The term with every value that no scene had at the mean of those that scenes had."""
    done = []
    for s, table in zip(group, factors, strict=True):
        counts = torch.bincount(slots[:, s], minlength=len(table)).to(table.dtype)[:, None]
        mean = (counts * table).sum(dim=0) / counts.sum()
        done.append(torch.where(counts > 0, table, mean))
    return Term(group, tuple(done), W)


def _least_squares(
    slots: Tensor, x: Tensor, tables: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Mean and tables of the best sum, each table with mean zero over the slots."""
    hot = _one_hot(slots, tables, sizes)
    mean = x.mean(dim=0)
    flat = torch.linalg.pinv(hot.T @ hot, hermitian=True) @ (hot.T @ (x - mean))
    widths = [max(n for n, t in zip(sizes, tables, strict=True) if t == table) for table in range(max(tables) + 1)]
    found = []
    for part, counts in zip(flat.split(widths), hot.sum(dim=0).split(widths), strict=True):
        weight = counts[:, None] / counts.sum()
        found.append(torch.where(weight > 0, part - (weight * part).sum(dim=0), torch.zeros_like(part)))
    return mean, tuple(found)


def _one_hot(slots: Tensor, tables: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """How often each value of each table stands in a scene, (n, columns)."""
    widths = [max(n for n, t in zip(sizes, tables, strict=True) if t == table) for table in range(max(tables) + 1)]
    start = [sum(widths[:t]) for t in tables]
    hot = torch.zeros(len(slots), sum(widths), dtype=torch.float64, device=slots.device)
    for s, offset in enumerate(start):
        hot[torch.arange(len(slots), device=slots.device), offset + slots[:, s]] += 1
    return hot


def _groups(kind: str, count: int, objects: int) -> list[tuple[int, ...]]:
    """The slots of each product."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {KINDS}")
    if objects < 1 or count % objects or count // objects < (2 if kind == "per_object" else 1) or count < 2:
        raise ValueError(f"{count} slots do not make {objects} objects with factors to multiply")
    if kind == "global":
        return [tuple(range(count))]
    if kind == "pairwise":
        return list(combinations(range(count), 2))
    C = count // objects
    return [tuple(range(i * C, (i + 1) * C)) for i in range(objects)]


def _checked(
    slots: Data, x: Data, shared: Sequence[int] | None, sizes: Sequence[int] | None
) -> tuple[Tensor, Tensor, tuple[int, ...], tuple[int, ...]]:
    """Slots, rows, the table of each slot and its number of values, after all checks."""
    found = _slots(slots, None if sizes is None else tuple(sizes))
    rows = _rows(x, found.device)
    if len(rows) != len(found):
        raise ValueError(f"slots has {len(found)} rows and x has {len(rows)}; give one embedding a scene")
    tables = tuple(range(found.shape[1])) if shared is None else tuple(shared)
    if len(tables) != found.shape[1] or sorted(set(tables)) != list(range(max(tables) + 1)):
        raise ValueError(f"shared is {tables}; name one of the tables 0, 1, … for each of {found.shape[1]} slots")
    seen = tuple(int(n) + 1 for n in found.max(dim=0).values) if sizes is None else tuple(sizes)
    if sizes is None:
        seen = tuple(max(n for n, t in zip(seen, tables, strict=True) if t == table) for table in tables)
    for s, t in enumerate(tables):
        if seen[s] != seen[tables.index(t)]:
            raise ValueError(
                f"slots {tables.index(t)} and {s} share a table but have {seen[tables.index(t)]} and {seen[s]} values"
            )
    return found, rows, tables, seen


def _slots(slots: Data, sizes: tuple[int, ...] | None) -> Tensor:
    """Slots as int64 of shape (n, S), or ``ValueError``."""
    found = torch.as_tensor(slots)
    if found.ndim != 2 or found.shape[0] < 1 or found.shape[1] < 1 or found.is_floating_point() or found.dtype == torch.bool:
        raise ValueError(f"slots has shape {tuple(found.shape)} of {found.dtype}, expected integers (n, m C), n >= 1")
    if sizes is not None and len(sizes) != found.shape[1]:
        raise ValueError(f"slots has {found.shape[1]} columns, expected {len(sizes)}")
    found = found.long()
    top = torch.tensor(sizes if sizes is not None else [2**62] * found.shape[1], device=found.device)
    bad = ((found < 0) | (found >= top)).nonzero()
    if len(bad):
        row, column = bad[0].tolist()
        limit = "0 or more" if sizes is None else f"0 to {sizes[column] - 1}"
        raise ValueError(f"slot {column} of scene {row} is {int(found[row, column])}, expected {limit}")
    return found


def _rows(x: Data, device: torch.device) -> Tensor:
    """Embeddings as float64 of shape (n, N), finite, or ``ValueError``."""
    rows = torch.as_tensor(x).to(device=device, dtype=torch.float64)
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise ValueError(f"x has shape {tuple(rows.shape)}, expected (n, N)")
    return check_finite(rows.detach(), "x")


def _scores(scores: Data, slots: Data) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
    """Scores (n, M, K) in float64, and row, a, b, c, d of every scene, or ``ValueError``."""
    h = torch.as_tensor(scores).double()
    if h.ndim != 3:
        raise ValueError(f"scores has shape {tuple(h.shape)}, expected (n, M, K): one score for every object")
    found = _slots(slots, (h.shape[1], h.shape[2]) * 2).to(h.device)
    if len(found) != len(h):
        raise ValueError(f"slots has {len(found)} rows and scores has {len(h)}")
    same = ((found[:, 0] == found[:, 2]) | (found[:, 1] == found[:, 3])).nonzero()
    if len(same):
        raise ValueError(f"scene {int(same[0])} is {found[int(same[0])].tolist()}: its objects share a value, so it has no swap")
    a, b, c, d = found.T
    return h, (torch.arange(len(h), device=h.device), a, b, c, d)
