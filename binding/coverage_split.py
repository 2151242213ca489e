"""Which objects are shown: splits of all objects by coverage, scenes, matched swaps, and what a bag of concepts scores.

An object is a tuple of C concepts with V values each, |O| = V^C, numbered with the last concept fastest. *Coverage* ρ is the
share of objects that scenes of the training set may contain; scenes of the test set contain held-out objects only (U).
"""

from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

EMPTY = -1
"""The number of no object, where a scene has fewer objects than places."""


@dataclass(frozen=True)
class World:
    """All objects of C concepts with V values each, and the queries about them: |O| objects, then C · V single concepts.

    Raises ``ValueError`` for fewer than two concepts or values: then nothing could be swapped.
    """

    concepts: int = 2
    values: int = 20

    def __post_init__(self) -> None:
        if self.concepts < 2 or self.values < 2:
            raise ValueError(f"a swap needs 2 concepts of 2 values, got C = {self.concepts}, V = {self.values}")

    @property
    def objects(self) -> int:
        """|O| = V^C."""
        return int(self.values**self.concepts)

    @property
    def queries(self) -> int:
        """|O| + C V."""
        return self.objects + self.concepts * self.values

    def rows(self, query: Tensor) -> Tensor:
        """Values of the concepts of queries, (*) → (*, C); V stands for a concept that the query does not name.

        >>> World(2, 20).rows(torch.tensor([23, 400, 420])).tolist()
        [[1, 3], [0, 20], [20, 0]]
        """
        powers = self.values ** torch.arange(self.concepts - 1, -1, -1, device=query.device)
        values = query[..., None] // powers % self.values
        concept = query - self.objects
        own = torch.arange(self.concepts, device=query.device) == (concept // self.values)[..., None]
        alone = torch.where(own, (concept % self.values)[..., None], self.values)
        return torch.where((query < self.objects)[..., None], values, alone)

    def concepts_of(self, objects: Tensor) -> Tensor:
        """The queries for the concepts of objects, (*) → (*, C)."""
        shift = self.objects + self.values * torch.arange(self.concepts, device=objects.device)
        return self.rows(objects) + shift


@dataclass(frozen=True)
class Split:
    """Objects that may be shown in training and those held out, as increasing numbers."""

    world: World
    seen: Tensor
    held: Tensor

    @property
    def coverage(self) -> float:
        """ρ, the share of objects that is seen."""
        return len(self.seen) / self.world.objects

    def held_table(self) -> Tensor:
        """Which objects are held out, (V^(C−1), V) of truth values: rows share all concepts but the last."""
        table = torch.zeros(self.world.objects, dtype=torch.bool)
        table[self.held] = True
        return table.view(-1, self.world.values)


def split(world: World, coverage: float, draws: torch.Generator, planted: int = 10) -> Split:
    """A random split with round(ρ |O|) objects seen, in which every value of every concept is seen.

    V seen objects are drawn first, such that each value occurs once. Then up to ``planted`` rectangles of :func:`rectangles` are
    held out, as many as fit, so that matched swaps exist at high coverage too; the rest is uniform. With ``planted = 0`` all but
    the first V is uniform. Raises ``ValueError`` if coverage leaves nothing held out, or fewer seen objects than V.
    """
    shown = round(coverage * world.objects)
    if not world.values <= shown < world.objects:
        raise ValueError(
            f"coverage = {coverage} shows {shown} of {world.objects} objects; give {world.values} to {world.objects - 1} of them"
        )
    V, powers = world.values, world.values ** torch.arange(world.concepts - 1, -1, -1)
    anchors = torch.stack([torch.randperm(V, generator=draws) for _ in range(world.concepts)], dim=1) @ powers
    free = torch.ones(world.objects, dtype=torch.bool)
    free[anchors] = False
    held = torch.zeros(world.objects, dtype=torch.bool)
    wanted, prefixes = world.objects - shown, world.objects // V
    for _ in range(20 * planted):
        block = (torch.randperm(prefixes, generator=draws)[:2, None] * V + torch.randperm(V, generator=draws)[:2]).flatten()
        new = held.clone()
        new[block] = True
        if free[block].all() and not held[block].any() and int(new.sum()) <= min(wanted, 4 * planted):
            held = new
    rest = (free & ~held).nonzero()[:, 0]
    order = rest[torch.randperm(len(rest), generator=draws)]
    held[order[: wanted - int(held.sum())]] = True
    return Split(world, (~held).nonzero()[:, 0], held.nonzero()[:, 0])


def draw_scenes(objects: Tensor, n: int, draws: torch.Generator, least: int = 1, most: int = 2) -> Tensor:
    """Scenes of ``least`` to ``most`` objects (each number equally likely), drawn with replacement, (n, most); EMPTY at the end.

    Raises ``ValueError`` unless 1 ≤ least ≤ most.
    """
    if not 1 <= least <= most:
        raise ValueError(f"scenes of {least} to {most} objects; need 1 <= least <= most")
    size = torch.randint(least, most + 1, (n,), generator=draws)
    chosen = objects[torch.randint(0, len(objects), (n, most), generator=draws)]
    return torch.where(torch.arange(most) < size[:, None], chosen, EMPTY)


def swapped(world: World, scene: Tensor) -> Tensor:
    """The objects of the swap: the last concepts of the first two objects exchanged, (*, 2) → (*, 2).

    >>> swapped(World(2, 20), torch.tensor([[23, 45]])).tolist()
    [[25, 43]]
    """
    last = scene % world.values
    return scene - last + last.flip(-1)


def rectangles(part: Split, most: int, draws: torch.Generator) -> Tensor:
    """Scenes of two held-out objects whose swap has held-out objects too, (n, 2): of each rectangle, both diagonals.

    A rectangle is four held-out objects (p, b), (p', b'), (p, b'), (p', b), where p and p' are what stands before the last
    concept. All of them if there are at most ``most``, else so many drawn with replacement. Rows 2i, 2i + 1 are swaps.
    """
    table, V = part.held_table(), part.world.values
    first, second = torch.triu_indices(V, V, offset=1)
    both = table.double()
    common = (both.T @ both)[first, second].round().long()
    count = common * (common - 1) // 2
    if int(count.sum()) <= most:
        chosen = (count > 0).nonzero()[:, 0]
        pairs = [torch.combinations((table[:, first[i]] & table[:, second[i]]).nonzero()[:, 0]) for i in chosen.tolist()]
        columns = torch.repeat_interleave(chosen, count[chosen])
        prefix = torch.cat([*pairs, torch.zeros(0, 2, dtype=torch.long)])
    else:
        columns = torch.multinomial(count.double(), most, replacement=True, generator=draws).sort().values
        rows = []
        for i, n in zip(*(x.tolist() for x in columns.unique(return_counts=True)), strict=True):
            shared = (table[:, first[i]] & table[:, second[i]]).nonzero()[:, 0]
            rows.append(shared[torch.rand(n, len(shared), generator=draws).argsort(dim=1)[:, :2]])
        prefix = torch.cat(rows)
    b, other = first[columns], second[columns]
    diagonal = torch.stack([prefix[:, 0] * V + b, prefix[:, 1] * V + other], dim=1)
    return torch.stack([diagonal, swapped(part.world, diagonal)], dim=1).flatten(0, 1)


def bag_floor(values: int, ties: bool = False) -> Fraction:
    """Strict accuracy of a perfect bag of concepts on two uniform objects of two concepts: 1 − (1 − 1/V)² = P(own swap).

    ``ties`` broken by a fair draw add (1 − 1/V)²/6, as two of four equal candidates are right.
    Raises ``ValueError`` for fewer than 2 values.

    >>> bag_floor(20), float(bag_floor(20))
    (Fraction(39, 400), 0.0975)
    """
    if values < 2:
        raise ValueError(f"V = {values}; a concept has at least 2 values")
    apart = (1 - Fraction(1, values)) ** 2
    return 1 - apart + (apart / 6 if ties else 0)


def status_floor(values: int, coverage: Fraction | float) -> float:
    """Strict held-out accuracy of a bag of concepts that also adds a bonus to held-out objects: 1 − (1 − 1/V)² (1 − ρ²) (new).

    The limit of many objects, where the swap of two held-out objects consists of two seen ones with probability ρ².
    Raises ``ValueError`` for fewer than 2 values.
    """
    return float(1 - (1 - bag_floor(values)) * (1 - coverage**2))


def split_floors(part: Split) -> tuple[Fraction, Fraction]:
    """Both floors for the scenes of two held-out objects of one split, by counting all h² of them (C = 2).

    The bag is right on scenes that are their own swap, the bag with a bonus for held-out objects also where both objects of the
    swap are seen. Raises ``ValueError`` for more than two concepts.
    """
    if part.world.concepts != 2:
        raise ValueError(f"the floors are those of two concepts, got C = {part.world.concepts}")
    scene = torch.cartesian_prod(part.held, part.held)
    other = swapped(part.world, scene)
    own = (other.sort(dim=1).values == scene.sort(dim=1).values).all(dim=1)
    outside = ~part.held_table().flatten()[other].any(dim=1)
    return Fraction(int(own.sum()), len(scene)), Fraction(int((own | outside).sum()), len(scene))
