"""Families of autoregressive probes: from a representation z and the bits before k to the log odds of bit k, for all k at once.

A probe is a dictionary of weights and a function. All K conditionals come from one or two matrix products: a bit before k
enters through a matrix that is zero unless i < k, so no conditional sees itself or a later bit.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu

from binding.numerics import gaussian

FAMILIES = ("linear", "shared", "quadratic", "deep", "made", "attention")
RATES = {"linear": 3e-2, "shared": 1e-2, "quadratic": 1e-2, "deep": 3e-3, "made": 3e-3, "attention": 3e-2}
Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class Recipe:
    """A family of probes, its size, and how it is trained.

    Raises ``ValueError`` for an unknown family and for a size, rate or number that makes no probe.
    """

    family: str = "quadratic"
    """One of FAMILIES."""
    rank: int = 8
    """Products summed in a logit; the linear and the MADE family have none."""
    hidden: int = 128
    """Width of the trunk of the deep and the MADE family."""
    epochs: int = 25
    """Passes over the training rows."""
    batch: int = 256
    """Rows a step."""
    learning_rate: float | None = None
    """Largest step of AdamW on its one cycle; RATES[family] unless given."""
    weight_decay: float = 1e-2
    """Of AdamW."""
    patience: int = 10
    """Stop after so many epochs without a better validation; the best weights are kept in any case."""
    precision: str = "float32"
    """Of the large products in training, or "bfloat16": several times faster on CPUs and GPUs that have it. Bits are always
    measured in float32."""
    seed: int = 0
    """Of the initial weights and of the order of the rows."""
    cls: bool = False
    """Attention only: the first token stands beside the pooled ones instead of among them."""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family = {self.family!r} is no probe; choose one of {', '.join(FAMILIES)}")
        for name in ("rank", "hidden", "epochs", "batch", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}; give 1 or more")
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise ValueError(f"learning_rate = {self.learning_rate}; give a positive number")
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision = {self.precision!r}; choose float32 or bfloat16")
        if self.weight_decay < 0 or self.seed < 0:
            raise ValueError(f"weight_decay = {self.weight_decay} and seed = {self.seed} must be 0 or more")

    @property
    def rate(self) -> float:
        """The largest learning rate."""
        return RATES[self.family] if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True)
class Size:
    """What the shapes of a probe depend on besides its recipe."""

    D: int
    """Numbers in z, or in one token."""
    K: int
    """Bits to predict."""
    beside: int = 0
    """Numbers that every conditional sees beside z: the condition, and with ``cls`` the first token."""
    groups: tuple[int, ...] = ()
    """The grid of the bits, K = ∏ groups; the shared family needs it."""


def shapes(recipe: Recipe, size: Size) -> dict[str, tuple[int, ...]]:
    """The shape of every weight.

    Raises ``ValueError`` for the shared family if ``size.groups`` is no grid of two groups or more with K cells.
    """
    D, K, r, H = size.D, size.K, recipe.rank, recipe.hidden
    if recipe.family == "made":
        return {"z": (D + size.beside, H), "y": (K, H), "k": (K, H), "w": (H, H), "w0": (H,), "out": (K, H), "b": (K,)}
    factors = _factors(recipe, size)
    wide = K * (1 + r * len(factors))
    of_z = K + r * sum(factors)
    found: dict[str, tuple[int, ...]] = {"y": (K, wide), "b": (wide,)}
    if recipe.family == "attention":
        beside = {"z": (size.beside, of_z)} if size.beside else {}
        return found | beside | {"base": (K, D), "query": (K, D), "own": (K, D, 1 + 2 * r)}
    if recipe.family == "deep":
        return found | {
            "z": (D + size.beside + H, of_z),
            "t": (D + size.beside, H),
            "t0": (H,),
            "w": (H, H),
            "w0": (H,),
        }
    return found | {"z": (D + size.beside, of_z)}


def count(recipe: Recipe, size: Size) -> int:
    """Number of weights. Those that a mask holds at zero count, as they do in the published probes."""
    return sum(math.prod(shape) for shape in shapes(recipe, size).values())


def initial(recipe: Recipe, size: Size, generator: torch.Generator) -> dict[str, Tensor]:
    """Weights to start from, on the CPU, in float32: every logit is exactly zero, so a probe starts from its anchor.

    Of every product one factor is drawn and the others are constant: the last is 0, any between are 1.
    """
    made = recipe.family == "made"
    K, r, factors = size.K, recipe.rank, [] if made else _factors(recipe, size)
    over_fan_in = {"t", "w", "query"} | ({"z", "y"} if made else set())

    def drawn(*shape: int) -> Tensor:
        return gaussian(shape, generator, dtype=torch.float32)

    found = {}
    for name, shape in shapes(recipe, size).items():
        scale = max(1, shape[0]) ** -0.5 if name in over_fan_in else float(name in {"k", "base"})
        found[name] = drawn(*shape) * scale if scale else torch.zeros(shape)
    if factors:
        if "z" in found:
            found["z"][:, K : K + r * factors[0]] = drawn(len(found["z"]), r * factors[0])
        found["y"][:, K : K + r * K] = drawn(K, r * K)
        found["b"][K + r * K : K + r * K * (len(factors) - 1)] = 1
    if recipe.family == "attention":
        found["own"][:, :, 1 : 1 + r] = drawn(K, size.D, r)
    return found


def logits(
    recipe: Recipe, size: Size, w: Weights, z: Tensor, y: Tensor, beside: Tensor | None = None, *, fast: bool = False
) -> Tensor:
    """Log odds of all bits, (B, K), from z of (B, D) or tokens of (B, T, D) and the bits ``y = o − ½`` of (B, K).

    ``fast``: multiply large matrices in bfloat16 (not for attention and MADE).
    """
    if recipe.family == "attention":
        tokens = z[:, 1:] if recipe.cls else z
        pooled = attend(w["base"], w["query"], tokens, y) @ tokens
        return attention_readout(recipe, size, w, pooled, y, _join(z[:, 0] if recipe.cls else None, beside))
    x = _join(z, beside)
    assert x is not None
    if recipe.family == "made":
        return made(w, x, y)
    if recipe.family == "deep":
        x = torch.cat([x, trunk(w, x)], dim=1)
    return products(w, x, y, _grids(recipe, size), recipe.rank, (size.D + size.K) ** -0.5, fast)


def strict(K: int, like: Tensor) -> Tensor:
    """The mask m_ik = 1 if i < k, else 0, of shape (K, K)."""
    return torch.triu(torch.ones(K, K, dtype=like.dtype, device=like.device), 1)


def products(
    w: Weights, x: Tensor, y: Tensor, grids: list[tuple[int, ...]], rank: int, scale: float, fast: bool = False
) -> Tensor:
    """Linear part and a sum of products, ``logit_k = a_k·[x, y_<k, 1] + scale Σ_r ∏_g u_gkr·[x, y_<k, 1]``, (B, K).

    ``grids`` has one entry a factor: the shape over which it varies in x, with ones where it is shared. No entry: a linear
    probe. Two full ones: quadratic, with products of two affine forms a logit. (n₁, 1) and (1, n₂): quadratic with the first
    form shared by all bits of one row of the grid, the second by all of one column.
    """
    B, K = y.shape
    of_y = _affine(w["b"], y, w["y"] * _wide_mask(K, rank, len(grids), y), fast)
    if all(math.prod(grid) == K for grid in grids):
        linear, *forms = _affine(of_y, x, w["z"], fast).split([K, *[K * rank] * len(grids)], dim=1)
        return _sum_of_products(linear, [form.reshape(B, K, rank) for form in forms], scale)
    linear, *shared = _affine(None, x, w["z"], fast).split([K, *(math.prod(grid) * rank for grid in grids)], dim=1)
    own, *rest = of_y.split([K, *[K * rank] * len(grids)], dim=1)
    full = tuple(max(sides) for sides in zip(*grids, strict=True))
    pairs = zip(shared, rest, grids, strict=True)
    forms = [(s.reshape(B, *grid, rank) + o.reshape(B, *full, rank)).reshape(B, K, rank) for s, o, grid in pairs]
    return _sum_of_products(linear + own, forms, scale)


def trunk(w: Weights, x: Tensor) -> Tensor:
    """Two layers that see z alone, ``φ = gelu(w gelu(t x + t₀) + w₀)``, (B, H): evaluated once for all K conditionals."""
    return gelu(torch.addmm(w["w0"], gelu(torch.addmm(w["t0"], x, w["t"])), w["w"]))


def made(w: Weights, x: Tensor, y: Tensor) -> Tensor:
    """One network for all conditionals, told k and the bits before it, (B, K).

    ``logit_k = out_k · gelu(w gelu(z x + k_k + Σ_{i<k} y_i e_i) + w₀) + b_k``, where e_i is row i of ``w["y"]``.
    """
    seen = y[:, :, None] * w["y"]
    h = gelu((x @ w["z"])[:, None] + w["k"] + seen.cumsum(1) - seen)
    return (gelu(h @ w["w"] + w["w0"]) * w["out"]).sum(-1) + w["b"]


def attend(base: Tensor, query: Tensor, tokens: Tensor, y: Tensor) -> Tensor:
    """Attention weights of every conditional over the tokens, ``softmax_t (base_k + Σ_{i<k} y_i query_i) · t / √D``, (B, K, T).

    The queries are learned, the tokens serve as keys and values as they are. The sum over i < k is a running sum of
    K scores, so no query of its own is ever formed for a row.
    """
    turned = tokens.transpose(1, 2)
    seen = (query @ turned) * y[:, :, None]
    return ((base @ turned + seen.cumsum(1) - seen) * tokens.shape[-1] ** -0.5).softmax(-1)


def attention_readout(recipe: Recipe, size: Size, w: Weights, pooled: Tensor, y: Tensor, beside: Tensor | None = None) -> Tensor:
    """Quadratic log odds from what each query pooled, (B, K): as :func:`products`, with an input of its own for every k."""
    B, K, r = *y.shape, recipe.rank
    rest = torch.addmm(w["b"], y, w["y"] * _wide_mask(K, r, 2, y))
    if beside is not None:
        rest = torch.addmm(rest, beside, w["z"])
    own = torch.bmm(pooled.transpose(0, 1), w["own"]).transpose(0, 1)
    linear, *forms = rest.split([K, K * r, K * r], dim=1)
    of_pooled = own.split([1, r, r], dim=2)
    both = [form.reshape(B, K, r) + part for form, part in zip(forms, of_pooled[1:], strict=True)]
    return _sum_of_products(linear + of_pooled[0].squeeze(2), both, (size.D + K) ** -0.5)


def _affine(start: Tensor | None, x: Tensor, w: Tensor, fast: bool) -> Tensor:
    if fast:
        found = (x.bfloat16() @ w.bfloat16()).to(x.dtype)
        return found if start is None else found + start
    return x @ w if start is None else torch.addmm(start, x, w)


def _sum_of_products(linear: Tensor, forms: list[Tensor], scale: float) -> Tensor:
    if not forms:
        return linear
    product = forms[0]
    for form in forms[1:]:
        product = product * form
    return torch.add(linear, product.sum(-1), alpha=scale)


def _wide_mask(K: int, rank: int, factors: int, like: Tensor) -> Tensor:
    """The strict mask for the linear part and for every product, in the order of the columns of ``w["y"]``."""
    mask = strict(K, like)
    return torch.cat([mask, mask.repeat_interleave(rank, dim=1).repeat(1, factors)], dim=1)


def _factors(recipe: Recipe, size: Size) -> list[int]:
    return [math.prod(grid) for grid in _grids(recipe, size)]


def _grids(recipe: Recipe, size: Size) -> list[tuple[int, ...]]:
    if recipe.family == "linear":
        return []
    if recipe.family != "shared":
        return [(size.K,), (size.K,)]
    groups = size.groups
    if len(groups) < 2 or math.prod(groups) != size.K:
        raise ValueError(f"the shared family needs the groups of the grid of {size.K} bits, two or more; got {groups}")
    return [tuple(n if i == g else 1 for i, n in enumerate(groups)) for g in range(len(groups))]


def _join(x: Tensor | None, beside: Tensor | None) -> Tensor | None:
    if x is None or beside is None:
        return beside if x is None else x
    return torch.cat([x, beside], dim=1)
