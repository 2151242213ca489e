"""Banks: all ordered scenes of two objects, with their swaps and orders, and what can be counted on embeddings of all of them.

A *bank* is all ordered scenes (o, a), (o', a') with o ≠ o' and a ≠ a', so that every scene has its swap and its other order in
it. Embeddings of a bank are rows in its order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product as grid

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from binding.numerics import check_finite
from binding.scenes import Scene, caption

NOUNS = ("dog", "cat", "horse", "cow", "car", "cup", "bowl", "chair")
ADJECTIVES = ("red", "blue", "green", "yellow", "black", "white", "brown", "grey")
TIE = 1e-9
"""Margins of at most this size are ties: unit vectors in float64 differ by rounding of 1e-15, real margins by 1e-5 or more."""


@dataclass(frozen=True)
class Bank:
    """All ordered scenes of two objects that differ in both of their two concepts, M values of the first and K of the second.

    Raises ``ValueError`` for fewer than two values: then there is no such scene.
    """

    M: int
    K: int

    def __post_init__(self) -> None:
        if min(self.M, self.K) < 2:
            raise ValueError(f"M = {self.M} and K = {self.K}; two objects that differ in both concepts need two values of each")

    @cached_property
    def slots(self) -> Tensor:
        """(o, a, o', a') of every scene, (n, 4), n = M (M − 1) K (K − 1)."""
        rows = grid(range(self.M), range(self.K), range(self.M), range(self.K))
        return torch.tensor([row for row in rows if row[0] != row[2] and row[1] != row[3]])

    @cached_property
    def objects(self) -> Tensor:
        """The numbers of the two objects, K o + a, (n, 2)."""
        return torch.stack([self.K * self.slots[:, 0] + self.slots[:, 1], self.K * self.slots[:, 2] + self.slots[:, 3]], dim=1)

    @cached_property
    def swap(self) -> Tensor:
        """The row of σs, (n): attributes exchanged, the first concepts where they were."""
        return self.row(self.slots[:, [0, 3, 2, 1]])

    @cached_property
    def reorder(self) -> Tensor:
        """The row of the same objects in the other order, (n)."""
        return self.row(self.slots[:, [2, 3, 0, 1]])

    def row(self, slots: Tensor) -> Tensor:
        """The rows of scenes, (m, 4) → (m). Raises ``ValueError`` for a scene that is not in the bank."""
        base = torch.tensor([self.K * self.M * self.K, self.M * self.K, self.K, 1])
        place = torch.full((self.M**2 * self.K**2,), -1)
        place[(self.slots * base).sum(dim=1)] = torch.arange(len(self.slots))
        found = place[(slots * base).sum(dim=1)]
        if (found < 0).any():
            raise ValueError(
                f"the scene {slots[int((found < 0).nonzero()[0])].tolist()} repeats a value, so it is not in the bank"
            )
        return found

    def captions(self, nouns: Sequence[str] = NOUNS, adjectives: Sequence[str] = ADJECTIVES) -> list[str]:
        """The caption "a red car and a blue dog" for every scene; o is the noun and a the adjective.

        Raises ``ValueError`` unless there are M nouns and K adjectives.
        """
        if (len(nouns), len(adjectives)) != (self.M, self.K):
            raise ValueError(f"{len(nouns)} nouns and {len(adjectives)} adjectives for M = {self.M} and K = {self.K}")
        pairs = [[(nouns[o], adjectives[a]) for o, a in (row[:2], row[2:])] for row in self.slots.tolist()]
        return [caption(Scene.of(*pair)) for pair in pairs]

    def embeddings(self, x: Tensor | np.ndarray) -> Tensor:
        """The rows as float64. Raises ``ValueError`` unless there is one finite row a scene."""
        rows = torch.as_tensor(x).double()
        if rows.ndim != 2 or len(rows) != len(self.slots):
            raise ValueError(f"x has shape {tuple(rows.shape)}, expected ({len(self.slots)}, N): one row a scene of the bank")
        return check_finite(rows, "x")

    def order_free(self, x: Tensor) -> Tensor:
        """x̄(s), the mean of the two orders of a scene, (n, N)."""
        return (x + x[self.reorder]) / 2


def binding_share(bank: Bank, x: Tensor) -> float:
    """ς = Σ ‖(x̄(s) − x̄(σs))/2‖² / Σ ‖x̄(s) − x̄‖², the share of order-free variance that tells scenes from their swaps.

    Raises ``ValueError`` if all scenes have one embedding.
    """
    free = bank.order_free(x)
    total = float((free - free.mean(dim=0)).square().sum())
    if total == 0:
        raise ValueError("all scenes have one embedding, so there is no variance to share out")
    return float((free - free[bank.swap]).square().sum()) / 4 / total


def swap_r2(bank: Bank, x: Tensor, guess: Tensor, rows: Tensor) -> float:
    """1 − Σ ‖δ − δ'‖² / Σ ‖δ‖² with δ = (x̄(s) − x̄(σs))/2, over ``rows`` (n): the share of the pairing that a guess carries.

    0 for any sum over concepts, since its δ' is zero. Raises ``ValueError`` if no selected scene differs from its swap.
    """
    free, guessed = bank.order_free(x), bank.order_free(guess)
    δ, found = ((y - y[bank.swap])[rows] / 2 for y in (free, guessed))
    if not float(δ.square().sum()) > 0:
        raise ValueError("no selected scene differs from its swap, so there is no pairing to carry")
    return 1 - float((δ - found).square().sum() / δ.square().sum())


def swap_choice(bank: Bank, x: Tensor, guess: Tensor, rows: Tensor) -> float:
    """How often guessed scenes are nearer to their own true embedding than to that of their swap; a tie counts one half.

    Both sides are means over the two orders, so that no place gives a pairing away; any sum over concepts is then at exactly ½.
    Raises ``ValueError`` if ``rows`` (n) selects no scene.
    """
    if not rows.any():
        raise ValueError("rows selects no scene; give at least one")
    true, guessed = bank.order_free(x), bank.order_free(guess)
    middle = (true + true[bank.swap]) / 2
    margin = ((guessed - middle) * (true - true[bank.swap])).sum(dim=1)[rows]
    return float(((margin > TIE).double() + (margin.abs() <= TIE).double() / 2).mean())


def nearest(z: Tensor, x: Tensor) -> Tensor:
    """The row of x of the largest cosine with each row of z, (m, N), (n, N) → (m)."""
    return (normalize(z, dim=1) @ normalize(x, dim=1).T).argmax(dim=1)


def hits(bank: Bank, found: Tensor, target: Tensor, *, ordered: bool = True) -> float:
    """The share of scenes found that are the target, or its other order unless ``ordered``."""
    right = found == target
    return float((right if ordered else right | (found == bank.reorder[target])).double().mean())


def draw_targets(bank: Bank, rows: Tensor, what: str, draws: torch.Generator, *, place: int = 0) -> Tensor:
    """Scenes that differ from ``rows`` in one object, or only in its first or second concept, at random, (m) → (m).

    ``what`` is "object", "first" or "second". The new values differ from all that the scene has. Raises ``ValueError`` for
    another word, or if there is no other value.
    """
    columns = {"object": (0, 1), "first": (0,), "second": (1,)}
    if what not in columns:
        raise ValueError(f"what is {what!r}, expected one of {tuple(columns)}")
    changed = bank.slots[rows].clone()
    for column in columns[what]:
        size = (bank.M, bank.K)[column]
        if size < 3:
            raise ValueError(f"{size} values leave no third one to put in; give 3 or more")
        free = torch.ones(len(rows), size)
        free.scatter_(1, bank.slots[rows][:, [column, column + 2]], 0.0)
        changed[:, 2 * place + column] = torch.multinomial(free, 1, generator=draws)[:, 0]
    return bank.row(changed)


def hold_out_pairs(bank: Bank, share: float, draws: torch.Generator) -> Tensor:
    """Scenes of a random share of all pairs of objects, both orders alike, as truth values (n).

    Raises ``ValueError`` unless 0 < share < 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"share = {share}; give a number between 0 and 1")
    pair = bank.objects.amin(dim=1) * bank.M * bank.K + bank.objects.amax(dim=1)
    names, index = pair.unique(return_inverse=True)
    held = torch.zeros(len(names), dtype=torch.bool)
    held[torch.randperm(len(names), generator=draws)[: round(share * len(names))]] = True
    return held[index]


def draw_split(bank: Bank, coverage: float, draws: torch.Generator) -> Tensor:
    """Which objects are shown, (M K) truth values: round(coverage · M K) of them, every value shown, one rectangle not.

    The rectangle, two values by two, makes sure that some swap has only objects that were not shown. Raises ``ValueError`` if
    that leaves too few objects, or if a thousand draws find no such split.
    """
    count = bank.M * bank.K
    if not 0 < coverage < 1:
        raise ValueError(f"coverage = {coverage}; give a share of the objects, between 0 and 1")
    shown = round(coverage * count)
    if not max(bank.M, bank.K) <= shown <= count - 4:
        raise ValueError(f"coverage = {coverage} shows {shown} of {count} objects; need {max(bank.M, bank.K)} to {count - 4}")
    for _ in range(1000):
        o, a = (torch.randperm(n, generator=draws)[:2] for n in (bank.M, bank.K))
        order = torch.randperm(count, generator=draws)
        corner = torch.isin(order // bank.K, o) & torch.isin(order % bank.K, a)
        mask = torch.zeros(count, dtype=torch.bool)
        mask[torch.cat([order[~corner], order[corner]])[:shown]] = True
        table = mask.reshape(bank.M, bank.K)
        if table.any(dim=0).all() and table.any(dim=1).all():
            return mask
    raise ValueError(f"no split at coverage = {coverage} showed every value in 1,000 draws; raise it")


def presence(index: Tensor, count: int) -> Tensor:
    """Which of ``count`` things a scene has, from their numbers (n, m), as truth values (n, count)."""
    return torch.zeros(len(index), count, dtype=torch.bool).scatter_(1, index, True)


def presences(bank: Bank) -> dict[str, Tensor]:
    """Which first concepts, second concepts and objects every scene of a bank has, (n, M), (n, K), (n, M K)."""
    return {
        "first": presence(bank.slots[:, [0, 2]], bank.M),
        "second": presence(bank.slots[:, [1, 3]], bank.K),
        "objects": presence(bank.objects, bank.M * bank.K),
    }
