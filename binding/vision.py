"""What a vision transformer keeps of its scene: probes on [CLS] and on patch tokens, where attention lands, and sweeps of both.

One command runs a sweep; it can be stopped and started again, and reads what it has kept:

    python -m binding.vision --scale laptop --out runs

With ``--scale full --model vit_large_patch14_dinov2.lvd142m`` it probes a published encoder, on a GPU.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from binding.activations import Pretrained, fill
from binding.colourshape import Pictures, Piled, World, draw, split
from binding.information import Balanced, UpTo, features
from binding.numerics import gaussian, generator
from binding.probes import Binding, Fit, Recipe, binding_information, intervals
from binding.runs import digest, store, sweep
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
LOOKED = 2000
"""Test rows that :func:`read` counts errors and landings on."""
SWEEPS = ("ladder", "pictures", "occlusion", "complexity", "alignment")
SAMPLES = (2500, 5000, 10_000, 20_000, 40_000)
"""Pictures that are probed in the sweep of that name."""
PICTURES_SEED, DEMO_SEED = 500_000, 2026
"""Seed of the probed pictures less that of the encoder; seed of the one scene whose attention is shown."""
PILES = (0, 1, 2, 3, 4)
"""Objects that stand on another one, of eight, in the occlusion sweep."""
ASTRIDE, RAGGED = World(side=40), World(side=40, step=9)
"""The usual objects in a wider frame, nothing covered: astride the borders of patches all alike, or in many ways."""
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
    """The runs of a sweep, one of SWEEPS, three seeds each.

    Raises ``ValueError`` for another name.
    """
    if name == "ladder":
        encoders = [Encoder(objective, seed) for seed in range(3) for objective in OBJECTIVES]
        rows = LADDER + SPATIAL
        return [Run(e, rows + CONTROLS if e.objective == "untrained" else rows, maps=e.seed == 0) for e in encoders]
    short: dict[str, Any] = {"rows": SHORT, "pictures": 6000, "epochs": 20}
    if name == "occlusion":
        return [Run(Encoder(seed=seed, world=Piled(piled=piled)), **short) for seed in range(3) for piled in PILES]
    if name == "alignment":
        cases = (("untrained", ASTRIDE), ("untrained", RAGGED), ("clip", RAGGED))
        return [Run(Encoder(objective, seed, world), **short) for seed in range(3) for objective, world in cases]
    if name == "pictures":
        return [Run(Encoder(seed=seed), SHORT[:1], pictures=n) for seed in range(3) for n in SAMPLES]
    if name == "complexity":
        grids = [(World(colours=n, shapes=n), min(16, n * n)) for n in SIDES]
        return [Run(Encoder(seed=seed, world=w, objects=m, at_most=True), **short) for seed in range(3) for w, m in grids]
    raise ValueError(f"no sweep {name!r}; choose {', '.join(SWEEPS)}")


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
    covered = 1 - float(shown.visible[shown.objects >= 0].mean())
    found: dict[str, Any] = {"loss": history[-1] if history else None, "covered": round(covered, 4)}
    on, prior = shown.on_patches(run.encoder.patch) > 0, run.encoder.prior()
    for name, family in run.rows:
        row, fit = read(z[name], family, codes, (shown.objects, on), prior, run.epochs, run.encoder.seed)
        if run.maps and family == "attention" and name in LAYERS:
            row["map"] = demo_map(run, net, fit, name)
        found[f"{name} {family}"] = row
    return found


def read(
    z: Any,
    family: str,
    codes: Tensor,
    shown: tuple[Tensor, Tensor],
    prior: Any,
    epochs: int,
    seed: int,
    folder: Path | None = None,
    progress: bool = False,
) -> tuple[dict[str, Any], Fit]:
    """One row of the table, and the probe of O: all that a family reads from z, and with attention where its queries land.

    ``shown``: objects (n, m) and ``on`` (n, m, T) of the pictures, as in :func:`landing`. Errors and landings are those of the
    first LOOKED test rows, so that they fit into memory at any scale.
    """
    parts = split(codes)
    recipe = Recipe(family, epochs=epochs, seed=seed)
    settings: dict[str, Any] = {"prior": prior, "probe": recipe, "split": parts, "controls": False, "seed": seed}
    found = binding_information(z, codes, folder=folder, progress=progress, **settings)
    fit, test = found.fits["objects"], torch.from_numpy(parts[2][:LOOKED])
    looked = z[parts[2][:LOOKED]]
    tested = looked if isinstance(looked, Tensor) else torch.from_numpy(np.array(looked))
    row = summary(found) | {"error_reduction": error_reduction(fit, tested, codes[test], prior)}
    if family == "attention":
        row |= landing(fit.scores(tested, codes[test]), shown[0][test], shown[1][test], seed)
    return row, fit


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


def landing(weights: Tensor, objects: Tensor, on: Tensor, seed: int = 0) -> dict[str, list[float]]:
    """Where the queries of present objects land, mean over scenes with its 95 % interval.

    ``mass``: attention on the patches that show a pixel of the object that is asked for; ``chance``: the share of patches that
    do; ``hit``: whether the strongest patch is one of them. ``weights``: (n, K, T), ``objects``: (n, m) as in
    :class:`Pictures`, ``on``: (n, m, T) booleans. Objects that are covered entirely are left out.
    """
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


@dataclass(frozen=True)
class Full:
    """A published encoder on pictures of its own size, with the published scenes unless said otherwise."""

    model: str
    """As :class:`binding.activations.Pretrained` takes it."""
    world: World = field(default_factory=lambda: World(8, 8, 224, 21, 8, 28, 7))
    """How scenes become pictures."""
    objects: int = 18
    """Objects of a scene; the most, if ``shown`` is 0."""
    shown: int = 6
    """Values of each group that a scene shows; 0: any number of objects up to ``objects``, all codes alike."""
    rows: tuple[tuple[str, str], ...] = LADDER + SPATIAL
    """Representations and families of probes."""
    pictures: int = 58_800
    """Pictures that are probed."""
    epochs: int = 40
    """Of every probe."""
    seed: int = 0
    """Of the pictures and of the probes."""

    def prior(self) -> Any:
        """The law of the codes."""
        groups = self.world.groups
        return Balanced(groups, (self.shown, self.shown), self.objects) if self.shown else UpTo(groups, self.objects)


def full_configurations(name: str, model: str, side: int) -> list[Full]:
    """The runs of a full sweep, one seed: the ladder, fewer pictures, objects on top of others, 2 to 7 colours and
    shapes, or places off the patches.

    ``side``: pixels of the pictures. Raises ``ValueError`` for another name.
    """
    step = side // 8
    size, jitter = 3 * step // 4, step // 4
    sizes = {"side": side, "size": size, "places": 8, "step": step, "jitter": jitter}
    base = Full(model, World(8, 8, **sizes))
    if name == "ladder":
        return [base]
    if name == "occlusion":
        return [replace(base, rows=SHORT, world=Piled(8, 8, **sizes, piled=piled)) for piled in range(0, 10, 3)]
    if name == "complexity":
        worlds = [(World(n, n, **sizes), min(16, n * n)) for n in range(2, 8)]
        return [replace(base, rows=SHORT, world=world, objects=most, shown=0) for world, most in worlds]
    if name == "pictures":
        return [replace(base, rows=SHORT[:1], pictures=n) for n in SAMPLES]
    if name == "alignment":
        nearer = [{"step": near, "jitter": near - size} for near in (step, step - 1, step - 2)]  # so that nothing is covered
        return [replace(base, rows=SHORT, world=World(8, 8, **sizes | moved)) for moved in nearer]
    raise ValueError(f"no sweep {name!r}; choose {', '.join(SWEEPS)}")


def measure_full(run: Full, folder: Path, progress: bool = True) -> dict[str, Any]:
    """Encode the scenes into ``folder`` and probe every row; tokens and probes go on where they were stopped."""
    name = digest(run)
    net, prior = Pretrained(run.model, run.world.side), run.prior()
    about = {"model": run.model, "world": asdict(run.world), "objects": run.objects, "shown": run.shown}
    z = fill(folder / name, net, run.world, prior, run.objects, run.pictures, about, run.seed, progress)
    codes, shown = torch.from_numpy(np.array(z["codes"])), tuple(torch.from_numpy(np.array(z[a])) for a in ("objects", "on"))
    found = {}
    for layer, family in run.rows:
        kept = folder / name / f"{layer}-{family}"
        found[f"{layer} {family}"], _ = read(
            z[layer], family, codes, (shown[0].long(), shown[1]), prior, run.epochs, run.seed, kept, progress
        )
    return found


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
    parser.add_argument("--sweep", choices=SWEEPS, action="append", help="only this one; may be given again")
    parser.add_argument("--model", help="full: a model of timm with its tag, or a folder with config.json and model.safetensors")
    parser.add_argument("--side", type=int, default=224, help="full: pixels of the pictures")
    parser.add_argument("--pictures", type=int, default=Full.pictures, help="full: pictures that are probed")
    parser.add_argument("--epochs", type=int, default=Full.epochs, help="full: epochs of every probe")
    chosen = parser.parse_args(arguments)
    if (chosen.scale == "full") != bool(chosen.model):
        parser.error("--scale full needs --model, and only full takes one")
    for name in chosen.sweep or SWEEPS:
        again, label = f"python -m binding.vision --scale {chosen.scale} --sweep {name}", f"vision-{name}"
        runs: list[dict[str, Any]]
        if chosen.scale == "full":
            label = f"{label}-{Path(chosen.model).name}-{chosen.side}"
            again += f" --model {chosen.model} --side {chosen.side} --pictures {chosen.pictures} --epochs {chosen.epochs}"
            configs = full_configurations(name, chosen.model, chosen.side)
            more = {"epochs": chosen.epochs} | ({} if name == "pictures" else {"pictures": chosen.pictures})
            configs = [replace(config, **more) for config in configs]
            runs = sweep(configs, partial(measure_full, folder=chosen.out / "tokens"), chosen.out / label)
        else:
            runs = sweep(configurations(name), measure, chosen.out / label)
        store(chosen.out / f"{label}.json", f"{again} --out runs", runs)
        print(f"{len(runs)} runs in {chosen.out / label}.json")


if __name__ == "__main__":
    main()
