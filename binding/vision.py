"""What a vision transformer keeps of its scene: probes on [CLS] and on patch tokens, where attention lands, and sweeps of both.

One command runs a sweep; it can be stopped and started again, and reads what it has kept:

    python -m binding.vision --scale laptop --out runs
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from binding.colourshape import Pictures, World, draw, split
from binding.information import features
from binding.numerics import gaussian, generator
from binding.probes import Binding, Fit, Recipe, binding_information, intervals
from binding.runs import store, sweep
from binding.vit import LAYERS, OBJECTIVES, Encoder, encode, train

LADDER = (("cls", "linear"), ("cls", "shared"), ("cls", "quadratic"), ("cls", "deep"))
"""Rows of the table: a representation and a family of probes."""
SPATIAL = (("pooled", "quadratic"), ("tokens", "attention"), ("penultimate", "attention"))
CONTROLS = (
    ("null", "quadratic"),
    ("dealt", "attention"),
    ("features", "quadratic"),
    ("counts", "quadratic"),
    ("codes", "linear"),
)
"""Representations whose information is known: noise, tokens of other scenes, F, the counts of every feature, and O itself."""
SHORT = (("cls", "quadratic"), ("penultimate", "attention"))
PICTURES_SEED, DEMO_SEED = 500_000, 2026
"""Seed of the probed pictures less that of the encoder; seed of the one scene whose attention is shown."""
STEPS = (8, 6, 5, 4, 3, 2)
"""Pixels between places in the occlusion sweep; below 8, objects cover each other."""
SIDES = (3, 4, 5, 6, 7)
"""Colours, and shapes, in the complexity sweep."""


@dataclass(frozen=True)
class Run:
    """An encoder and what is read from it. Raises ``ValueError`` for too few pictures or an unknown row."""

    encoder: Encoder = field(default_factory=Encoder)
    rows: tuple[tuple[str, str], ...] = LADDER + SPATIAL
    """Representations and families of probes."""
    pictures: int = 10_000
    """Pictures that are probed; seven tenths train the probe."""
    epochs: int = 25
    """Of every probe."""
    maps: bool = False
    """Keep the attention maps of one scene."""

    def __post_init__(self) -> None:
        if self.pictures < 100:
            raise ValueError(f"pictures = {self.pictures}; a split in three needs 100 or more")
        known = {*LADDER, *SPATIAL, *CONTROLS}
        for row in self.rows:
            if tuple(row) not in known:
                raise ValueError(f"row {row} is unknown; choose from {sorted(known)}")


def configurations(name: str) -> list[Run]:
    """The runs of a sweep: ``ladder``, ``occlusion`` or ``complexity``, three seeds each.

    Raises ``ValueError`` for another name.
    """
    if name == "ladder":
        encoders = [Encoder(objective, seed) for seed in range(3) for objective in OBJECTIVES]
        rows = LADDER + SPATIAL
        return [Run(e, rows + CONTROLS if e.objective == "untrained" else rows, maps=e.seed == 0) for e in encoders]
    if name == "occlusion":
        return [Run(Encoder(seed=seed, world=World(step=step)), SHORT) for seed in range(3) for step in STEPS]
    if name == "complexity":
        worlds = [(World(colours=n, shapes=n), min(16, n * n)) for n in SIDES]
        return [Run(Encoder(seed=seed, world=w, objects=m, at_most=True), SHORT) for seed in range(3) for w, m in worlds]
    raise ValueError(f"no sweep {name!r}; choose ladder, occlusion or complexity")


def representations(run: Run, net: torch.nn.Module) -> tuple[dict[str, Tensor], Tensor, Pictures]:
    """What the rows of a run probe, by name, with the codes (n, K) and the pictures."""
    draws, config = generator(PICTURES_SEED + run.encoder.seed), run.encoder
    codes = config.prior().sample(run.pictures, draws)
    shown = draw(config.world, codes, draws)
    z = encode(net, shown.pixels)
    grid = codes.float().reshape(len(codes), *config.world.groups)
    z["counts"] = torch.cat([grid.sum(2), grid.sum(1)], dim=1)
    z["features"] = features(codes, config.world.groups).float()
    z["codes"] = codes.float()
    z["null"] = gaussian((len(codes), config.width), draws, dtype=torch.float32)
    z["dealt"] = z["penultimate"][torch.randperm(len(codes), generator=draws)]
    return z, codes, shown


def measure(run: Run) -> dict[str, Any]:
    """Train the encoder, probe every row, and say where attention lands: plain data, with 95 % intervals over test scenes."""
    net, history = train(run.encoder)
    z, codes, shown = representations(run, net)
    parts, prior = split(codes), run.encoder.prior()
    test = torch.from_numpy(parts[2])
    found: dict[str, Any] = {
        "loss": history[-1] if history else None,
        "covered": 1 - float(shown.visible[shown.objects >= 0].mean()),
    }
    for name, family in run.rows:
        recipe = Recipe(family, epochs=run.epochs, seed=run.encoder.seed)
        read = binding_information(z[name], codes, prior=prior, probe=recipe, split=parts, controls=False, seed=run.encoder.seed)
        row = summary(read) | {"error_reduction": error_reduction(read.fits["objects"], z[name][test], codes[test], prior)}
        if family == "attention":
            weights = read.fits["objects"].scores(z[name][test], codes[test])
            row |= landing(weights, shown, test, run.encoder.patch, run.encoder.seed)
            if run.maps and name in LAYERS:
                row["map"] = demo_map(run, net, read.fits["objects"], name)
        found[f"{name} {family}"] = row
    return found


def summary(read: Binding) -> dict[str, Any]:
    """The scalars of a reading as plain data: [value, low, high], bits, and the flags."""
    names = ("objects", "features", "binding_difference", "binding_direct", "beta", "beta_star", "beta_star_difference")
    values = {name: getattr(read, name) for name in names}
    return {name: [round(x, 4) for x in (e.value, e.low, e.high)] for name, e in values.items()} | {"flags": list(read.flags)}


def error_reduction(fit: Fit, z: Tensor, codes: Tensor, prior: Any) -> float:
    """1 − (rate of wrong bits) / (rate of ones): the share of the errors of "nothing is there" that the probe avoids.

    Each bit is decided by the sign of its log odds, given the true bits before it.
    """
    wrong = (fit.log_odds(z, codes, anchor=prior.log_odds(codes)) > 0) != codes.bool()
    return round(1 - float(wrong.double().mean() / codes.double().mean()), 4)


def landing(weights: Tensor, shown: Pictures, rows: Tensor, patch: int, seed: int = 0) -> dict[str, list[float]]:
    """Where the queries of present objects land, mean over scenes with its 95 % interval.

    ``mass``: attention on the patches that show a pixel of the object that is asked for; ``chance``: the share of patches that
    do; ``hit``: whether the strongest patch is one of them. ``weights``: (n, K, T) for the scenes ``rows``. Objects that are
    covered entirely are left out.
    """
    objects, on = shown.objects[rows], shown.on_patches(patch)[rows] > 0
    asked = weights.gather(1, objects.clamp(min=0)[..., None].expand(-1, -1, weights.shape[-1]))
    counted = (objects >= 0) & on.any(-1)
    each = {
        "mass": (asked * on).sum(-1),
        "chance": on.double().mean(-1),
        "hit": on.gather(2, asked.argmax(-1, keepdim=True))[..., 0],
    }
    some = counted.any(1)
    means = {
        name: ((value.double() * counted).sum(1) / counted.sum(1).clamp(min=1))[some].numpy() for name, value in each.items()
    }
    return {name: [round(x, 4) for x in (e.value, e.low, e.high)] for name, e in intervals(means, seed).items()}


def demo(world: World, objects: int) -> tuple[Tensor, Pictures]:
    """The one scene whose attention is shown: its code (1, K) and its picture."""
    draws = generator(DEMO_SEED)
    codes = Encoder(world=world, objects=objects).prior().sample(1, draws)
    return codes, draw(world, codes, draws)


def demo_map(run: Run, net: torch.nn.Module, fit: Fit, layer: str) -> list[list[int]]:
    """Attention weights of every query on the demo scene, (K, T), in thousandths."""
    codes, shown = demo(run.encoder.world, run.encoder.objects)
    weights = fit.scores(encode(net, shown.pixels)[layer], codes)[0]
    return (1000 * weights).round().int().tolist()


def over_seeds(runs: Sequence[dict[str, Any]], row: str, score: str) -> list[float]:
    """One score of one row, of every run: the values of intervals, without their ends.

    Raises ``ValueError`` for a row or score that was not stored.
    """
    for stored in runs:
        if score not in stored["result"].get(row, {}):
            raise ValueError(f"the run has no {score!r} of {row!r}; it has {', '.join(stored['result'])}")
    values = [stored["result"][row][score] for stored in runs]
    return [value[0] if isinstance(value, list) else value for value in values]


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m binding.vision", description="Probe vision transformers.")
    parser.add_argument("--scale", choices=("laptop", "full"), default="laptop")
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs and for the tables of all of them")
    parser.add_argument("--sweep", choices=("ladder", "occlusion", "complexity"), action="append", help="laptop: only these")
    chosen = parser.parse_args(arguments)
    for name in chosen.sweep or ("ladder", "occlusion", "complexity"):
        runs = sweep(configurations(name), measure, chosen.out / f"vision-{name}")
        path = chosen.out / f"vision-{name}.json"
        store(path, f"python -m binding.vision --scale laptop --sweep {name} --out runs", runs)
        print(f"{len(runs)} runs in {path}")


if __name__ == "__main__":
    main()
