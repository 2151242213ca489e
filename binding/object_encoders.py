"""Dual encoders of scenes that are lists of objects: a sum of object codes, a transformer over objects, one over tokens.

A scene (n, m) lists object numbers of a :class:`~binding.coverage_split.World`, EMPTY where there is none; a query is an object
or a single concept. Scene and query encoder are of one kind and share no weight; both give vectors of length one.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, normalize

from binding.coverage_split import EMPTY, World

KINDS = ("sum", "attention", "tokens")


class SumEncoder(nn.Module):
    """f(s) = Σ φ(o) / ‖Σ φ(o)‖ over the objects of a scene, φ a network of one hidden layer on the sum of concept vectors."""

    def __init__(self, world: World, width: int, hidden: int, dimension: int) -> None:
        super().__init__()
        self.world = world
        self.words = nn.Parameter(torch.empty(world.concepts, world.values + 1, width))
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, dimension)

    def codes(self, query: Tensor) -> Tensor:
        """φ, (n) → (n, N), not normalised."""
        return self.second(gelu(self.first(named(self.words, self.world.rows(query)))))

    def forward(self, scene: Tensor) -> Tensor:
        """(n, m) → (n, N); an object that many scenes hold is coded once."""
        present = scene != EMPTY
        known, place = scene.clamp_min(0).unique(return_inverse=True)
        return normalize((self.codes(known)[place] * present[..., None]).sum(dim=1), dim=-1)


class Transformer(nn.Module):
    """Pre-norm blocks, then the vector at one place of each row, projected and scaled to length one."""

    def __init__(self, width: int, layers: int, heads: int, hidden: int, dimension: int) -> None:
        super().__init__()
        block = nn.TransformerEncoderLayer(width, heads, hidden, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, dimension)

    def forward(self, x: Tensor, absent: Tensor, place: Tensor) -> Tensor:
        """x (n, T, d), ``absent`` (n, T) masks padding, ``place`` (n) is where to read, → (n, N)."""
        read = self.blocks(x, src_key_padding_mask=absent)[torch.arange(len(x), device=x.device), place]
        return normalize(self.out(read), dim=-1)


class ObjectTransformer(nn.Module):
    """A transformer over the objects of a scene, each the sum of its concept vectors, read at a first token; it has no order."""

    def __init__(self, world: World, width: int, layers: int, heads: int, hidden: int, dimension: int) -> None:
        super().__init__()
        self.world = world
        self.words = nn.Parameter(torch.empty(world.concepts, world.values + 1, width))
        self.start = nn.Parameter(torch.empty(1, 1, width))
        self.trunk = Transformer(width, layers, heads, hidden, dimension)

    def forward(self, scene: Tensor) -> Tensor:
        """(n, m) → (n, N)."""
        x = named(self.words, self.world.rows(scene.clamp_min(0)))
        x = torch.cat([self.start.expand(len(x), 1, -1), x], dim=1)
        absent = torch.cat([torch.zeros_like(scene[:, :1], dtype=torch.bool), scene == EMPTY], dim=1)
        return self.trunk(x, absent, torch.zeros_like(scene[:, 0]))


class TokenTransformer(nn.Module):
    """The published encoder: a transformer over the tokens of :func:`tokenise`, with sinusoidal positions, read at EOS."""

    def __init__(self, world: World, width: int, layers: int, heads: int, hidden: int, dimension: int) -> None:
        super().__init__()
        self.world = world
        self.words = nn.Parameter(torch.empty(world.concepts * world.values + 4, width))
        self.trunk = Transformer(width, layers, heads, hidden, dimension)

    def forward(self, scene: Tensor) -> Tensor:
        """(n, m) → (n, N)."""
        token, end = tokenise(self.world, scene)
        x = self.words[token] + positions(token.shape[1], self.words.shape[1]).to(self.words)
        return self.trunk(x, token == self.world.concepts * self.world.values + 3, end)


def named(words: Tensor, rows: Tensor) -> Tensor:
    """Σ_c words[c, value of concept c], from (C, V + 1, d) and (*, C) to (*, d); the last value means that it is not named."""
    return sum((words[c][rows[..., c]] for c in range(words.shape[0])), torch.zeros((), device=words.device))


def tokenise(world: World, scene: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens of scenes or of queries, (n, m) → (n, (C + 2) m + 1), and the place of EOS, (n).

    An object is SOO c₁ … c_C EOO, a single concept its one token; then comes EOS, then padding. Concept tokens are 0 to CV − 1,
    and SOO, EOO, EOS, PAD follow.

    >>> tokenise(World(2, 20), torch.tensor([[23, EMPTY], [421, EMPTY]]))[0].tolist()
    [[40, 1, 23, 41, 42, 43, 43, 43, 43], [21, 42, 43, 43, 43, 43, 43, 43, 43]]
    """
    soo, eoo, eos, pad = (world.concepts * world.values + i for i in range(4))
    concepts = world.rows(scene.clamp_min(0))
    shift = world.values * torch.arange(world.concepts, device=scene.device)
    words = torch.where(concepts < world.values, concepts + shift, pad)
    whole = (scene < world.objects)[..., None]  # a single concept has no brackets
    block = torch.cat([torch.where(whole, soo, pad), words, torch.where(whole, eoo, pad)], dim=2)
    block[scene == EMPTY] = pad
    flat = torch.cat([block.flatten(1), torch.full((len(scene), 1), eos, device=scene.device)], dim=1)
    order = (flat == pad).long().argsort(dim=1, stable=True)  # padding goes to the end, everything else stays in order
    token = flat.gather(1, order)
    return token, (token == eos).long().argmax(dim=1)


def positions(length: int, width: int) -> Tensor:
    """Sinusoidal positions, (T, d): sines and cosines of t / 10000^(2i/d)."""
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)[:, :width]


def draw_weights(module: nn.Module, draws: torch.Generator) -> None:
    """Fresh weights from ``draws``: concept vectors standard normal, matrices uniform (Xavier), vectors 0, gains of norms 1."""
    for name, weight in module.named_parameters():
        with torch.no_grad():
            if name.endswith(("words", "start")):
                weight.copy_(torch.randn(weight.shape, generator=draws))
            elif weight.ndim > 1:
                bound = math.sqrt(6 / (weight.shape[0] + weight.shape[1]))
                weight.copy_(bound * (2 * torch.rand(weight.shape, generator=draws) - 1))
            else:
                weight.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
