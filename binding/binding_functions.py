"""Scenes as sums of objects: how far an encoder's scene embeddings add up, what editing them does, and what no sum can carry.

Embeddings are those of a whole :class:`~binding.scene_bank.Bank`. The sweep of the chapter is made, and taken up again, by

    python -m binding.binding_functions --out runs

and any encoder of captions is measured by ``binding decompose MODEL``.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from binding.numerics import gaussian, generator
from binding.runs import store, sweep
from binding.scene_bank import (
    Bank,
    binding_share,
    draw_split,
    draw_targets,
    hits,
    hold_out_pairs,
    nearest,
    presences,
    swap_choice,
    swap_r2,
)
from binding.structure import Fit, additive, atom_codes, product, r2

Predict: TypeAlias = Callable[[Tensor], Tensor]
COVERAGES = (0.3, 0.5, 0.7, 0.9)
PREDICTORS = ("additive", "per_object", "pairwise", "global", "mlp 64", "mlp 512")
"""The small models of the sweep: sums, sums with products of rank 8, and networks with one hidden layer of that width."""
ENCODERS = ("minilm", "clip π = 0", "clip π = ½")
"""The encoders of the sweep: all-MiniLM-L6-v2, and the text tower of a small CLIP trained with that rate of swap contrasts."""


LABELS = {
    "r2_average": "R² on pairs of objects not fitted: object vectors that are averages",
    "r2_average_position": "the same, averages for each place",
    "r2_objects": "the same, least squares",
    "r2_concepts": "the same, vectors of concepts, least squares",
    "retrieval": "scenes that are nearest to the sum of their objects",
    "binding_share": "share of the variance that tells a scene from its swap",
    "carried": "share of that which the sum of objects predicts (below 0: it adds error)",
    "replace_object": "edits that find their target: vectors of the objects",
    "replace_permuted": "the same, vectors of two others",
    "replace_none": "the same, no edit",
}
"""What :func:`decomposition` measures, in words."""


def averages(bank: Bank, x: Tensor, rows: Tensor, *, position: bool = True) -> Fit:
    """The model x ≈ mean + u_o + u'_{o'} whose object vectors are averages: u_o = mean of x over scenes with o, minus the mean.

    With ``position`` an object has one vector a place, otherwise one for both. ``rows`` (n) says which scenes count.
    Raises ``ValueError`` if none does.
    """
    if not rows.any():
        raise ValueError("rows selects no scene; give at least one")
    found, kept, mean = bank.objects[rows], x[rows], x[rows].mean(dim=0)
    tables = []
    for places in ((0,), (1,)) if position else ((0, 1),):
        total = torch.zeros(bank.M * bank.K, x.shape[1], dtype=x.dtype)
        count = torch.zeros(bank.M * bank.K, dtype=x.dtype)
        for place in places:
            total.index_add_(0, found[:, place], kept)
            count.index_add_(0, found[:, place], torch.ones(len(kept), dtype=x.dtype))
        tables.append(torch.where(count[:, None] > 0, total / count[:, None].clamp_min(1) - mean, torch.zeros_like(total)))
    return Fit(mean, tuple(tables), (0, 1) if position else (0, 0))


def replaced(bank: Bank, x: Tensor, fit: Fit, rows: Tensor, new: Tensor, *, strength: float = 1.0, place: int = 0) -> Tensor:
    """z − strength (u_o − u_new): scenes ``rows`` (m) in which the object at a place is exchanged for ``new`` (m), (m, N)."""
    u = fit.sums[fit.shared[place]]
    return x[rows] + strength * (u[new] - u[bank.objects[rows, place]])


def from_concepts(fit: Fit) -> Fit:
    """A sum over concepts as the sum over objects that it is, u_(o, a) = p_o + q_a, for edits that exchange a whole object."""
    return Fit(fit.mean, tuple(atom_codes(fit, place).flatten(0, 1) for place in (0, 1)), (0, 1))


def interventions(bank: Bank, x: Tensor, fit: Fit, rows: Tensor, seed: int = 0, *, ordered: bool = True) -> dict[str, float]:
    """How often the scene nearest to an edited one is right, among all scenes, for edits of the scenes ``rows`` (m).

    "object" exchanges the first object; "permuted" does so with the vectors of two other objects, "none" with none, both held
    against the same target. ``fit`` has object vectors, as from :func:`averages` or :func:`structure.additive`.
    """
    draws = generator(seed)
    target = draw_targets(bank, rows, "object", draws)
    new = bank.objects[target, 0]
    turned = torch.randperm(bank.M * bank.K, generator=draws)
    u = fit.sums[fit.shared[0]]
    wrong = x[rows] + u[turned[new]] - u[turned[bank.objects[rows, 0]]]
    edits = {"object": replaced(bank, x, fit, rows, new), "permuted": wrong, "none": x[rows]}
    return {name: hits(bank, nearest(z, x), target, ordered=ordered) for name, z in edits.items()}


class Reader(NamedTuple):
    """A frozen linear reader x ↦ (x − mean) W + base of what is present."""

    mean: Tensor
    weight: Tensor
    base: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Scores, (n, N) → (n, things)."""
        return (x - self.mean) @ self.weight + self.base


def reader(x: Tensor, present: Tensor, ridge: float = 1e-3) -> Reader:
    """The ridge regression of presence (n, things) on x (n, N), min ‖(x − x̄) W − (y − ȳ)‖² + λ ‖W‖², λ = ridge · mean eigenvalue.

    Raises ``ValueError`` for a ridge that is not positive.
    """
    if not ridge > 0:
        raise ValueError(f"ridge = {ridge} must be positive")
    mean, base = x.mean(dim=0), present.double().mean(dim=0)
    gram = (x - mean).T @ (x - mean)
    gram.diagonal().add_(ridge * float(gram.diagonal().mean()))
    return Reader(mean, torch.linalg.solve(gram, (x - mean).T @ (present.double() - base)), base)


def recognised(scores: Tensor, present: Tensor) -> Tensor:
    """Whether every present thing scores above every absent one, (n, things) → (n)."""
    lowest = scores.masked_fill(~present, math.inf).amin(dim=1)
    return lowest > scores.masked_fill(present, -math.inf).amax(dim=1)


@dataclass(frozen=True)
class Readers:
    """Linear readers of nouns, adjectives and objects, fitted once on true embeddings of a bank and then left alone."""

    bank: Bank
    first: Reader
    second: Reader
    objects: Reader

    @classmethod
    def of(cls, bank: Bank, x: Tensor, rows: Tensor) -> "Readers":
        """The readers of a bank's embeddings (n, N), fitted on the scenes ``rows``, truth values (n)."""
        shown = presences(bank)
        return cls(bank, *(reader(x[rows], shown[name][rows]) for name in ("first", "second", "objects")))

    def concepts_and_objects(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Whether all concepts, and whether both objects, of every scene are recognised in z (n, N), two (n)."""
        shown = presences(self.bank)
        first, second, objects = (recognised(getattr(self, name)(z), shown[name]) for name in ("first", "second", "objects"))
        return first & second, objects


def removals(bank: Bank, x: Tensor, rows: Tensor, seed: int = 0) -> dict[str, tuple[float, float]]:
    """What frozen readers still see after a vector of the first object is subtracted: (its first concept, the object).

    A scene has two of each, so a thing counts as seen if it is among the two best of its kind. "original": nothing subtracted;
    "concept": the vector of its first concept; "object": that of the object; "other …": the same of one that the scene lacks.
    Vectors are those of the best sums over concepts and over objects; they and the readers are fitted on all scenes of the bank
    but ``rows`` (m). Only the object of one place is asked for; :class:`Readers` asks for both.
    """
    rest = torch.ones(len(x), dtype=torch.bool)
    rest[rows] = False
    readers = Readers.of(bank, x, rest)
    concept = additive(bank.slots[rest], x[rest], sizes=(bank.M, bank.K) * 2).sums[0]
    objects = additive(bank.objects[rest], x[rest], sizes=(bank.M * bank.K,) * 2).sums[0]
    draws = generator(seed)
    other = draw_targets(bank, rows, "object", draws)
    o, thing = bank.slots[rows, 0], bank.objects[rows, 0]
    taken = {
        "original": torch.zeros_like(x[rows]),
        "concept": concept[o],
        "other concept": concept[bank.slots[other, 0]],
        "object": objects[thing],
        "other object": objects[bank.objects[other, 0]],
    }
    found = {}
    for name, vector in taken.items():
        z = x[rows] - vector
        seen = [
            (read(z).topk(2, dim=1).indices == index[:, None]).any(dim=1).double().mean()
            for read, index in ((readers.first, o), (readers.objects, thing))
        ]
        found[name] = (float(seen[0]), float(seen[1]))
    return found


def network(slots: Tensor, x: Tensor, hidden: int, seed: int, *, sizes: Sequence[int], steps: int = 400) -> Predict:
    """A network of one hidden layer of rectified units from slots (n, S) to x (n, N), trained on all rows at each step.

    AdamW with a one-cycle learning rate of at most 5e-3; weights drawn from ``seed``. Raises ``ValueError`` for no hidden unit.
    """
    if hidden < 1:
        raise ValueError(f"hidden = {hidden}; give 1 unit or more")

    def hot(s: Tensor) -> Tensor:
        return torch.cat([one_hot(s[:, i], size) for i, size in enumerate(sizes)], dim=1).float()

    draws, mean = generator(seed), x.mean(dim=0)
    scale = (x - mean).square().mean().sqrt()
    seen, aim = hot(slots), ((x - mean) / scale).float()
    shapes = ((seen.shape[1], hidden), (hidden,), (hidden, x.shape[1]), (x.shape[1],))
    spread = (0.5, 0.0, 0.1 / math.sqrt(hidden), 0.0)
    w = [(s * gaussian(shape, draws, dtype=torch.float32)).requires_grad_() for shape, s in zip(shapes, spread, strict=True)]
    optimiser = torch.optim.AdamW(w, lr=5e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=steps)
    for _ in range(steps):
        optimiser.zero_grad()
        (torch.relu(seen @ w[0] + w[1]) @ w[2] + w[3] - aim).square().mean().backward()
        optimiser.step()
        schedule.step()

    def predict(s: Tensor) -> Tensor:
        with torch.no_grad():
            return (torch.relu(hot(s) @ w[0] + w[1]) @ w[2] + w[3]).double() * scale + mean

    return predict


def predictor(name: str, bank: Bank, x: Tensor, rows: Tensor, seed: int) -> Predict:
    """One of PREDICTORS, fitted on the scenes ``rows`` (n). Raises ``ValueError`` for another name."""
    slots, sizes = bank.slots[rows], (bank.M, bank.K) * 2
    if name not in PREDICTORS:
        raise ValueError(f"predictor {name!r}; choose one of {', '.join(PREDICTORS)}")
    if name == "additive":
        return additive(slots, x[rows], sizes=sizes).predict
    if name.startswith("mlp"):
        return network(slots, x[rows], int(name.split()[1]), seed, sizes=sizes)
    return product(slots, x[rows], name, rank=8, steps=30, seed=seed, sizes=sizes).predict


def complexity(
    bank: Bank, x: Tensor, coverage: float, seed: int, names: Sequence[str] = PREDICTORS
) -> dict[str, dict[str, float]]:
    """What small models, fitted on scenes of shown objects, predict of scenes of objects that were not shown.

    For each model, and for the "true" embeddings: r2; concepts and objects, the shares of test scenes in which frozen readers
    recognise them; swap, the :func:`swap_choice` on test scenes whose swap is a test scene too. The readers, and no model, are
    fitted on the true embeddings of all scenes: none could know an object otherwise.
    """
    shown = draw_split(bank, coverage, generator(seed))[bank.objects]
    train, test = shown.all(dim=1), (~shown).all(dim=1)
    matched = test & test[bank.swap]
    readers = Readers.of(bank, x, torch.ones(len(x), dtype=torch.bool))
    centre = x[test] - x[test].mean(dim=0)
    found = {}
    for name in ("true", *names):
        guess = x if name == "true" else predictor(name, bank, x, train, seed)(bank.slots)
        concepts, objects = (float(right[test].double().mean()) for right in readers.concepts_and_objects(guess))
        error = float((x - guess)[test].square().sum() / centre.square().sum())
        swap = swap_choice(bank, x, guess, matched)
        found[name] = {"r2": 1 - error, "concepts": concepts, "objects": objects, "swap": swap}
    return found


def decomposition(bank: Bank, x: Tensor, seed: int = 0, *, ordered: bool = True) -> dict[str, float]:
    """How well scenes are sums, on a fifth of all pairs of objects that no fit has seen, and what an edit does to those scenes.

    R² of four sums: objects by averages, by averages a place, by least squares; concepts by least squares. How often the sum of
    objects is nearest to its own scene; the :func:`interventions`; the :func:`binding_share` of all scenes, and how much of their
    pairing the sum of objects carries.
    """
    test = hold_out_pairs(bank, 0.2, generator(seed))
    objects = additive(bank.objects[~test], x[~test], sizes=(bank.M * bank.K,) * 2)
    concepts = additive(bank.slots[~test], x[~test], sizes=(bank.M, bank.K) * 2)
    rows = test.nonzero()[:, 0]
    found = {
        "r2_average": r2(averages(bank, x, ~test, position=False), bank.objects[test], x[test]),
        "r2_average_position": r2(averages(bank, x, ~test), bank.objects[test], x[test]),
        "r2_objects": r2(objects, bank.objects[test], x[test]),
        "r2_concepts": r2(concepts, bank.slots[test], x[test]),
        "retrieval": hits(bank, nearest(objects.predict(bank.objects[test]), x), rows, ordered=ordered),
        "binding_share": binding_share(bank, x),
        "carried": swap_r2(bank, x, objects.predict(bank.objects), test & test[bank.swap]),
    }
    edits = interventions(bank, x, objects, rows, seed, ordered=ordered)
    return found | {f"replace_{name}": value for name, value in edits.items()}


def tested(bank: Bank, shown: Tensor) -> dict[str, int]:
    """How many scenes have only objects that are not ``shown`` (M K), and on how many of them a swap can be chosen."""
    hidden = (~shown)[bank.objects].all(dim=1)
    return {"scenes": int(hidden.sum()), "swap_choices": int((hidden & hidden[bank.swap]).sum())}


def report(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The results of ``binding decompose`` in words: a decomposition, and if there are any, predictions and what they rest on."""
    lines = [f"{value:7.3f}  {LABELS[name]}" for name, value in found["decomposition"].items()]
    if "predicted" in found:
        counts = "{scenes} scenes of objects not shown, {swap_choices} of them with a swap to choose from:"
        lines += ["", counts.format(**found["tested"])]
    for name, row in found.get("predicted", {}).items():
        lines.append(f"{name:11}" + "  ".join(f"{key} {value:6.3f}" for key, value in row.items()))
    return "\n".join(lines)


def classical_mds(x: Tensor, dimensions: int = 2) -> Tensor:
    """Coordinates (n, d) whose distances are those of x (n, N) as nearly as a projection allows: classical scaling.

    With B = −½ J D² J, J = 1 − 11ᵀ/n, the coordinates are V √Λ of its largest eigenvalues. Signs are fixed by the largest entry
    of each column. Raises ``ValueError`` if n points do not have that many dimensions.
    """
    if not 1 <= dimensions < len(x):
        raise ValueError(f"{len(x)} points lie in {len(x) - 1} dimensions, got dimensions = {dimensions}")
    square = torch.cdist(x.double(), x.double()).square()
    B = -(square - square.mean(dim=0) - square.mean(dim=1, keepdim=True) + square.mean()) / 2
    values, vectors = torch.linalg.eigh(B)
    top = vectors[:, -dimensions:].flip(1) * values[-dimensions:].flip(0).clamp_min(0).sqrt()
    return top * top.gather(0, top.abs().argmax(dim=0, keepdim=True)).sign()


@dataclass(frozen=True)
class Config:
    """One cell of the sweep. Raises ``ValueError`` for an encoder that is not one of ENCODERS, or a negative seed."""

    encoder: str
    coverage: float
    seed: int = 0
    """Of the split, of the predictors and, for a small CLIP, of its training."""

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS or self.seed < 0:
            raise ValueError(f"encoder = {self.encoder!r}, seed = {self.seed}; choose one of {ENCODERS} and 0 or more")


def configurations(seeds: int = 4) -> list[Config]:
    """The sweep: all encoders, seeds and coverages."""
    return [Config(encoder, ρ, seed) for encoder in ENCODERS for seed in range(seeds) for ρ in COVERAGES]


def run(config: Config) -> dict[str, Any]:
    """The :func:`decomposition` of the encoder and the :func:`complexity` of one cell, rounded to four digits."""
    bank, x = Bank(8, 8), embedded(config.encoder, config.seed)
    found = {"decomposition": decomposition(bank, x, config.seed)} | complexity(bank, x, config.coverage, config.seed)
    return {name: {key: round(value, 4) for key, value in row.items()} for name, row in found.items()}


@cache
def embedded(encoder: str, seed: int) -> Tensor:
    """The bank of 8 × 8 objects as one of ENCODERS sees its captions, (n, N); an encoder with no seed is loaded once."""
    if encoder == "minilm":
        if seed:
            return embedded(encoder, 0)
        from binding.encoders import minilm

        bank = Bank(8, 8)
        return bank.embeddings(minilm()(bank.captions()))
    return small_clip(0.0 if encoder == ENCODERS[1] else 0.5, seed)[0]


def small_clip(rate: float, seed: int = 0, steps: int = 600) -> tuple[Tensor, Tensor]:
    """Captions and pictures of the bank as the two towers of a small CLIP see them, trained with ``rate`` swap contrasts.

    Slots are (shape, colour) as (o, a); a picture shows the two objects in random places with pixel noise. Both (n, N).
    """
    from binding.training import Config as Training
    from binding.training import captions, embed, render, train

    bank = Bank(8, 8)
    model = train(Training(rate, seed, steps))
    scene = bank.slots[:, [1, 0, 3, 2]]
    pictures, texts = embed(model, render(scene, generator(seed)), captions(scene, torch.zeros(len(scene), dtype=torch.bool)))
    return texts, pictures


def main(arguments: Sequence[str] | None = None) -> None:
    """The sweep of the chapter: every run is kept as soon as it is done, and all of them go into one file at the end."""
    parser = argparse.ArgumentParser(prog="python -m binding.binding_functions", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs, and for binding-functions.json")
    parser.add_argument("--seeds", type=int, default=4, help="splits, and trainings of the small CLIP")
    parser.add_argument("--jobs", type=int, default=1, help="processes on this machine")
    parser.add_argument("--dask", help="address of a Dask scheduler to send the runs to")
    asked = parser.parse_args(arguments)
    runs = sweep(configurations(asked.seeds), run, asked.out, jobs=asked.jobs, dask=asked.dask)
    store(asked.out / "binding-functions.json", f"python -m binding.binding_functions --out runs --seeds {asked.seeds}", runs)


if __name__ == "__main__":
    main()
