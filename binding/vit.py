"""A small vision transformer, drawn from a generator, and the four ways in which it is trained or not.

``untrained``: the weights as drawn. ``feature``: [CLS] names the features present. ``clip``: [CLS] picks the caption of its
picture among those of a batch. ``object``: [CLS] names the objects present, which asks for binding outright. The scenes that are
trained on have codes that no probe is tested on.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, normalize

from binding.colourshape import TRAINED, World, buckets, captions, check_patch, draw
from binding.information import Subsets, UpTo, features
from binding.numerics import chunks, device, gaussian, generator

OBJECTIVES = ("untrained", "feature", "clip", "object")
LAYERS = ("cls", "pooled", "tokens", "penultimate")
"""What :func:`encode` gives: [CLS] and the mean patch token, both of the last layer, and the patch tokens of two layers."""


@dataclass(frozen=True)
class Encoder:
    """All that an encoder depends on. Raises ``ValueError`` for an unknown objective, a bad size, or objects that do not fit."""

    objective: str = "untrained"
    """One of OBJECTIVES."""
    seed: int = 0
    """Of the initial weights and of every draw."""
    world: World = field(default_factory=World)
    """How scenes become pictures."""
    objects: int = 8
    """Objects of a scene."""
    at_most: bool = False
    """Any number of objects up to ``objects``, all codes alike, instead of exactly ``objects``."""
    patch: int = 8
    """Pixels of a side of a patch."""
    width: int = 64
    """Entries of a token."""
    layers: int = 3
    """Blocks."""
    heads: int = 4
    """Heads of a block."""
    steps: int = 250
    """Gradient steps."""
    batch: int = 256
    """Pictures a step."""
    learning_rate: float = 2e-3
    """Largest learning rate of AdamW on its one cycle."""

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective = {self.objective!r}; choose one of {', '.join(OBJECTIVES)}")
        check_patch(self.world.side, self.patch)
        for name in ("objects", "width", "layers", "heads", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}; give 1 or more")
        if self.width % self.heads or self.batch < 2 or self.seed < 0 or not self.learning_rate > 0:
            raise ValueError(
                f"width = {self.width}, heads = {self.heads}, batch = {self.batch}, seed = {self.seed}, learning_rate ="
                f" {self.learning_rate}; heads divide the width, a batch has 2 pictures, seed and rate are not negative"
            )
        if self.objects > min(self.world.places**2, self.world.colours * self.world.shapes):
            raise ValueError(f"objects = {self.objects} are more than the world has places or different objects")

    @property
    def tokens(self) -> int:
        """Patch tokens of a picture."""
        return (self.world.side // self.patch) ** 2

    def prior(self) -> Any:
        """The law of the codes."""
        return (UpTo if self.at_most else Subsets)(self.world.groups, self.objects)


class Transformer(nn.Module):
    """Rows of tokens → rows of tokens: [CLS] in front, learned positions, pre-norm blocks, no dropout.

    ``forward`` gives the tokens after the last block and its LayerNorm, and those after the block before it, both (n, 1 + T, d).
    """

    def __init__(self, T: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.empty(1, 1, width))
        self.positions = nn.Parameter(torch.empty(1, 1 + T, width))
        block: dict[str, Any] = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, **block) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = before = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1) + self.positions
        for block in self.blocks:
            before, x = x, block(x)
        return self.norm(x), before


class ViT(nn.Module):
    """Pictures (n, 3, side, side) → tokens of the last layer and of the one before, each (n, 1 + T, d), [CLS] first."""

    def __init__(self, config: Encoder) -> None:
        super().__init__()
        self.patch = config.patch
        self.embed = nn.Linear(3 * config.patch**2, config.width)
        self.trunk = Transformer(config.tokens, config.width, config.layers, config.heads)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        return self.trunk(self.embed(patches(pixels, self.patch)))


class Captions(nn.Module):
    """Captions (n, L) → vectors (n, d): one block over words in their places, read at the first token."""

    def __init__(self, words: int, length: int, width: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.trunk = Transformer(length, width, 1, heads)
        self.scale = nn.Parameter(torch.empty(()))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.trunk(self.embed(tokens))[0][:, 0]


def patches(pixels: Tensor, patch: int) -> Tensor:
    """The pixels of every patch as a row, patches row by row: (n, 3, side, side) → (n, T, 3 · patch²)."""
    n, channels, side, _ = pixels.shape
    at = check_patch(side, patch)
    tiles = pixels.reshape(n, channels, at, patch, at, patch).permute(0, 2, 4, 1, 3, 5)
    return tiles.reshape(n, at * at, channels * patch * patch)


def initialise(net: nn.Module, draws: torch.Generator) -> None:
    """Weights drawn anew: matrices with variance 1 / inputs, positions and first tokens with deviation 0.02."""
    with torch.no_grad():
        for name, weights in net.named_parameters():
            if name.endswith("norm.weight") or ".norm1.weight" in name or ".norm2.weight" in name:
                weights.fill_(1.0)
            elif name.endswith("scale"):
                weights.fill_(np.log(1 / 0.07))
            elif weights.ndim < 2:
                weights.zero_()
            else:
                deviation = 0.02 if weights.ndim == 3 else weights.shape[1] ** -0.5
                weights.copy_(deviation * gaussian(weights.shape, draws, dtype=torch.float32))


def build(config: Encoder) -> nn.ModuleDict:
    """The encoder, ``image``, and what only its training needs, ``head``, with weights drawn from the seed.

    Built without storage first, so that torch's own generator is not asked.
    """
    colours, shapes = config.world.groups
    with torch.device("meta"):
        heads = {
            "feature": nn.Linear(config.width, colours + shapes),
            "object": nn.Linear(config.width, colours * shapes),
            "clip": Captions(1 + colours + shapes, 2 * config.objects, config.width, config.heads),
            "untrained": nn.Identity(),
        }
        net = nn.ModuleDict({"image": ViT(config), "head": heads[config.objective]})
    net = net.to_empty(device="cpu")
    initialise(net, generator(config.seed))
    return net.to(device())


def training_codes(config: Encoder, n: int, draws: torch.Generator) -> Tensor:
    """Codes from the prior that fall into the training part of :func:`binding.colourshape.split`, (n, K).

    Raises ``ValueError`` if twice n draws hold none, as in a world of a single scene that is kept for tests.
    """
    prior = config.prior()
    found: list[Tensor] = []
    while sum(len(part) for part in found) < n:
        codes = prior.sample(2 * n, draws)
        found.append(codes[torch.from_numpy(buckets(codes) < TRAINED)])
        if not len(found[-1]):
            raise ValueError(f"none of {2 * n} scenes of {config.objects} objects may be trained on; take a richer world")
    return torch.cat(found)[:n]


def loss(net: nn.ModuleDict, config: Encoder, codes: Tensor, draws: torch.Generator) -> Tensor:
    """The loss of one batch of new pictures of these scenes, in nats: cross-entropy of bits, or of pictures and captions."""
    at = device()
    read = net["image"](draw(config.world, codes, draws).pixels.to(at))[0][:, 0]
    if config.objective == "clip":
        tokens = captions(config.world, codes, draws)
        tokens = nn.functional.pad(tokens, (0, 2 * config.objects - tokens.shape[1])).to(at)
        scale: Any = net["head"].scale
        logits = scale.exp() * normalize(read, dim=-1) @ normalize(net["head"](tokens), dim=-1).T
        own = torch.arange(len(logits), device=at)
        return (cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2
    wanted = codes if config.objective == "object" else features(codes, config.world.groups)
    return binary_cross_entropy_with_logits(net["head"](read), wanted.to(at, torch.float32))


def train(config: Encoder, progress: bool = False) -> tuple[nn.Module, list[float]]:
    """The encoder in evaluation mode, and the losses on the way (none if it is not trained)."""
    from tqdm.auto import tqdm

    net, history = build(config), []
    if config.objective != "untrained":
        draws = generator(config.seed + 1_000_003)
        codes = training_codes(config, config.steps * config.batch, draws).split(config.batch)
        optimiser = torch.optim.AdamW(net.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, config.learning_rate, total_steps=config.steps, pct_start=0.15)
        for batch in tqdm(codes, desc=f"{config.objective}, seed {config.seed}", disable=not progress, leave=False):
            optimiser.zero_grad()
            found = loss(net, config, batch, draws)
            found.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            cycle.step()
            history.append(found.item())
    return net["image"].eval().requires_grad_(False), history


def encode(encoder: nn.Module, pixels: Tensor) -> dict[str, Tensor]:
    """The representations LAYERS of pictures, float32 on the CPU: (n, d), (n, d), (n, T, d) and (n, T, d)."""
    found: dict[str, list[Tensor]] = {name: [] for name in LAYERS}
    where = next(encoder.parameters())
    with torch.no_grad():
        for rows in chunks(len(pixels), 64 * pixels[0].numel() * pixels.element_size()):
            last, before = (x.cpu() for x in encoder(pixels[rows].to(where.device, where.dtype)))
            for name, x in zip(LAYERS, (last[:, 0], last[:, 1:].mean(1), last[:, 1:], before[:, 1:]), strict=True):
                found[name].append(x)
    return {name: torch.cat(parts) for name, parts in found.items()}
