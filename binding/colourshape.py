"""Pictures of coloured shapes: which objects a scene holds, where they stand, which of them cover others, and its captions.

A code o of shape (n, K) says which of the K = colours × shapes objects a scene holds, the object (c, s) at number
c · shapes + s. Pictures have values between 0 and 1, of shape (n, 3, side, side). Every draw takes a generator.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

COLOURS = {
    "red": (0.86, 0.16, 0.18),
    "green": (0.10, 0.62, 0.25),
    "blue": (0.16, 0.32, 0.90),
    "yellow": (0.95, 0.86, 0.18),
    "purple": (0.56, 0.18, 0.72),
    "orange": (0.96, 0.55, 0.08),
    "cyan": (0.15, 0.80, 0.85),
    "white": (0.97, 0.97, 0.97),
}
SHAPES = ("disc", "square", "triangle", "cross", "diamond", "ring", "bar", "hourglass")
GROUND = 0.25
"""Brightness of the ground, in all three channels."""
TRAINED = 7
"""Of ten buckets of codes, those that are trained on; the next one is for validation, the rest for tests."""


@dataclass(frozen=True)
class World:
    """How a scene becomes a picture: objects of ``size`` pixels on ``places`` × ``places`` points that lie ``step`` apart.

    Each object is moved by 0 to ``jitter`` pixels down and right. With step ≥ size + jitter no object covers another.
    Raises ``ValueError`` for more colours or shapes than have a name, a size below 7 (a disc of 5 pixels is a diamond, one of 6
    a square), and objects that do not fit into the picture.
    """

    colours: int = 6
    """First colours of COLOURS that are used."""
    shapes: int = 6
    """First shapes of SHAPES that are used."""
    side: int = 32
    """Pixels of a side of the picture."""
    size: int = 7
    """Pixels of a side of an object."""
    places: int = 4
    """Points of the grid in each direction."""
    step: int = 8
    """Pixels from point to point."""
    jitter: int = 1
    """Largest shift of an object, in pixels."""

    def __post_init__(self) -> None:
        for name, value, most in (("colours", self.colours, len(COLOURS)), ("shapes", self.shapes, len(SHAPES))):
            if not 1 <= value <= most:
                raise ValueError(f"{name} = {value}; there are 1 to {most}")
        if self.size < 7:
            raise ValueError(f"size = {self.size}; below 7 pixels some shapes look alike")
        if min(self.places, self.step) < 1 or self.jitter < 0:
            raise ValueError(f"places = {self.places}, step = {self.step}, jitter = {self.jitter}; need 1, 1 and 0 or more")
        if self.extent > self.side:
            raise ValueError(f"the objects take {self.extent} pixels, the picture has {self.side}; use a smaller step or size")

    def placed(self, place: torch.Tensor) -> torch.Tensor:
        """The places of the objects of n scenes, in the order in which they are drawn, (n, m), from distinct random ones."""
        return place

    @property
    def extent(self) -> int:
        """Pixels from the first row that an object may touch to the last one."""
        return (self.places - 1) * self.step + self.size + self.jitter

    @property
    def groups(self) -> tuple[int, int]:
        """Numbers of values of the two groups of features: colours, shapes."""
        return self.colours, self.shapes


@dataclass(frozen=True)
class Piled(World):
    """A world in which the last ``piled`` objects of a scene stand where the first ones do, and cover them.

    Nothing moves off its grid, so occlusion is all that changes. Raises ``ValueError`` also for a negative number of piles.
    """

    piled: int = 0
    """Objects that stand on another one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.piled < 0:
            raise ValueError(f"piled = {self.piled} is negative; give 0 or more")

    def placed(self, place: torch.Tensor) -> torch.Tensor:
        """As :meth:`World.placed`. Raises ``ValueError`` for more piles than half of the objects."""
        if 2 * self.piled > place.shape[1]:
            raise ValueError(f"{self.piled} piles of two need {2 * self.piled} objects, the scenes have {place.shape[1]}")
        return torch.cat([place[:, : place.shape[1] - self.piled], place[:, : self.piled]], dim=1)


@dataclass(frozen=True)
class Pictures:
    """What :func:`draw` gives, of n scenes with at most m objects."""

    pixels: torch.Tensor
    """(n, 3, side, side) float32 in [0, 1]."""
    objects: torch.Tensor
    """(n, m) numbers of the objects in the order in which they were drawn; −1 where a scene has fewer than m."""
    owner: torch.Tensor
    """(n, side, side): which of its m objects a pixel shows; m for the ground."""
    visible: torch.Tensor
    """(n, m) share of the object's pixels that no later object covers; 0 where there is no object."""

    def on_patches(self, patch: int) -> torch.Tensor:
        """Pixels of every object in every patch of ``patch`` × ``patch`` pixels, row by row: (n, m, T).

        Raises ``ValueError`` if the picture is no whole number of patches wide.
        """
        n, m = self.objects.shape
        side = check_patch(self.owner.shape[-1], patch)
        tiles = self.owner.reshape(n, side, patch, side, patch).transpose(2, 3).reshape(n, side * side, patch * patch)
        return torch.stack([(tiles == slot).sum(-1) for slot in range(m)], dim=1)


def check_patch(side: int, patch: int) -> int:
    """Patches on a side. Raises ``ValueError`` if patches of this size do not tile the picture."""
    if patch < 1 or side % patch:
        raise ValueError(f"patches of {patch} pixels do not tile a picture of {side}; give a divisor")
    return side // patch


def masks(size: int) -> torch.Tensor:
    """The shapes as pictures of zeros and ones, (8, size, size)."""
    line = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(line, line, indexing="ij")
    far, tall, wide = torch.hypot(x, y), y.abs(), x.abs()
    return torch.stack(
        [
            far <= 1,
            torch.maximum(tall, wide) <= 0.8,
            wide <= (y + 1) / 2,
            torch.minimum(tall, wide) <= 0.3,
            tall + wide <= 1,
            (far <= 1) & (far >= 0.6),
            tall <= 0.3,
            wide <= tall,
        ]
    ).float()


def check_codes(codes: torch.Tensor, world: World) -> torch.Tensor:
    """The codes as booleans (n, K).

    Raises ``ValueError`` for a shape other than (n, colours · shapes), an entry other than 0 or 1, or more objects than places.
    """
    K = world.colours * world.shapes
    if codes.ndim != 2 or codes.shape[1] != K or not len(codes):
        raise ValueError(f"codes of shape {tuple(codes.shape)}; expected (n, {K}) with n >= 1")
    bad = (codes != 0) & (codes != 1)
    if bad.any():
        raise ValueError(f"code {codes[bad][0].item():g} in row {int(bad.any(1).nonzero()[0])}; codes are 0 or 1")
    most = int(codes.sum(1).max())
    if most > world.places**2:
        raise ValueError(f"a scene with {most} objects does not fit on {world.places**2} places")
    return codes.bool()


def draw(world: World, codes: torch.Tensor, generator: torch.Generator) -> Pictures:
    """Pictures of scenes: their objects in a random order, on distinct random places; a later one covers an earlier one.

    Raises ``ValueError`` as :func:`check_codes`.
    """
    held = check_codes(codes, world)
    n, m = len(held), max(1, int(held.sum(1).max()))
    objects = shuffled(held, m, generator)
    place = torch.rand((n, world.places**2), generator=generator, dtype=torch.float64).argsort(1)[:, :m]
    place = world.placed(place)
    shift = torch.randint(0, world.jitter + 1, (n, m, 2), generator=generator)
    corner = (world.side - world.extent) // 2 + world.step * torch.stack([place // world.places, place % world.places], -1)
    owner, area = paint(world, objects, corner + shift)
    palette = torch.tensor(list(COLOURS.values()))[objects.clamp(min=0) // world.shapes]
    table = torch.cat([palette, torch.full((n, 1, 3), GROUND)], dim=1)
    flat = owner.reshape(n, -1)
    pixels = table[torch.arange(n)[:, None], flat].reshape(n, world.side, world.side, 3).permute(0, 3, 1, 2)
    seen = torch.stack([(flat == slot).sum(1) for slot in range(m)], dim=1)
    return Pictures(pixels.contiguous(), objects, owner, seen / area)


def shuffled(held: torch.Tensor, m: int, generator: torch.Generator) -> torch.Tensor:
    """The numbers of the objects that each scene holds, in a random order, filled up with −1: (n, K) booleans → (n, m)."""
    key = torch.rand(held.shape, generator=generator, dtype=torch.float64).masked_fill(~held, 2.0)
    first = key.argsort(1)[:, :m]
    return first.masked_fill(~held.gather(1, first), -1)


def paint(world: World, objects: torch.Tensor, corner: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which object each pixel shows, (n, side, side), and the number of pixels of every whole object, (n, m)."""
    n, m = objects.shape
    shapes, line = masks(world.size).bool(), torch.arange(world.size)
    owner = torch.full((n, world.side, world.side), m)
    row = torch.arange(n)[:, None, None]
    for slot in range(m):
        y, x = (corner[:, slot, axis, None] + line for axis in (0, 1))
        at = row, y[:, :, None], x[:, None, :]
        shape = shapes[objects[:, slot].clamp(min=0) % world.shapes] & (objects[:, slot] >= 0)[:, None, None]
        owner[at] = torch.where(shape, slot, owner[at])
    return owner, shapes.sum((1, 2))[objects.clamp(min=0) % world.shapes]


def captions(world: World, codes: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Token numbers "colour shape colour shape …", the objects in a random order: (n, 2m); 0 fills up.

    Colour c is 1 + c and shape s is 1 + colours + s. Raises ``ValueError`` as :func:`check_codes`.
    """
    held = check_codes(codes, world)
    objects = shuffled(held, max(1, int(held.sum(1).max())), generator)
    pair = torch.stack([1 + objects // world.shapes, 1 + world.colours + objects % world.shapes], dim=-1)
    return pair.masked_fill((objects < 0)[..., None], 0).flatten(1)


def buckets(codes: torch.Tensor, number: int = 10) -> np.ndarray:
    """A bucket 0 … number − 1 for every row, from a hash of the code alone: equal codes always share theirs, (n)."""
    rows = np.packbits(codes.cpu().numpy().astype(bool), axis=1)
    digests = [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows]
    return np.array([int.from_bytes(digest, "big") % number for digest in digests])


def split(codes: torch.Tensor) -> tuple[np.ndarray, ...]:
    """Rows to train on, to validate on and to test on, near 7 : 1 : 2, with no code in two of them."""
    bucket = buckets(codes)
    return tuple(np.flatnonzero(part) for part in (bucket < TRAINED, bucket == TRAINED, bucket > TRAINED))
