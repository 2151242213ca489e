"""When does a model learn to bind? Dual encoders trained on a share of all objects and tested on the others; sweeps of them.

The laptop's model sums object codes or attends over objects; the published one reads tokens. One command runs a sweep, and one
that was stopped goes on where it was:

    python -m binding.emergence --scale laptop --out runs --jobs 2
    python -m binding.emergence --scale full --out runs --dask tcp://scheduler:8786
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from binding.codes import Leakage
from binding.coverage_split import EMPTY, Split, World, draw_scenes, rectangles, split, split_floors, swapped
from binding.numerics import chunks, device, generator
from binding.object_encoders import KINDS, ObjectTransformer, SumEncoder, TokenTransformer, draw_weights
from binding.runs import store, sweep
from binding.structure import KINDS as PRODUCTS
from binding.structure import additive, gain_and_leakage, product, r2

COVERAGES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SCORED, READ, PROBED = 2000, 256, 3000
"""Scenes on which accuracies are measured, from which leakages and status are read, and on which probes are fitted."""


@dataclass(frozen=True)
class Config:
    """All that a run depends on. The defaults are the laptop's model.

    Raises ``ValueError`` for an unknown model or pool, a size below 1, or a split that cannot be made.
    """

    coverage: float
    """ρ, the share of objects that training scenes may contain."""
    values: int = 20
    """V, values of a concept."""
    concepts: int = 2
    """C, concepts of an object: |O| = V^C."""
    seed: int = 0
    """Of the split, the weights and every draw."""
    model: str = "sum"
    """One of :data:`~binding.object_encoders.KINDS`."""
    width: int = 64
    """Of the concept vectors, and of a transformer."""
    hidden: int = 512
    """Of the network of the sum, or of the blocks of a transformer."""
    layers: int = 2
    """Blocks of a transformer."""
    heads: int = 4
    """Attention heads of a transformer."""
    dimension: int = 128
    """N, of the embedding."""
    steps: int = 1000
    """Gradient steps."""
    batch: int = 512
    """Scenes a step, of one or two objects."""
    learning_rate: float = 2e-2
    """Largest learning rate of AdamW."""
    weight_decay: float = 0.1
    """Of AdamW, on all weights but the temperature."""
    warmup: float = 0.3
    """Share of the steps over which the learning rate rises."""
    concept_weight: float | None = 0.1
    """λ, what the loss over concepts counts beside that over objects; None for one softmax over both, as published."""
    pool: str = "all"
    """Objects that a scene is told from: "all" seen ones, or those of the "batch" and their swaps, if seen."""
    planted: int = 10
    """Rectangles held out on purpose, so that matched swaps exist."""
    probes: bool = False
    """Whether the additive and the product probes are fitted as well (C = 2)."""

    def __post_init__(self) -> None:
        if self.model not in KINDS:
            raise ValueError(f"model = {self.model!r}; choose one of {', '.join(KINDS)}")
        if self.pool not in ("all", "batch"):
            raise ValueError(f"pool = {self.pool!r}; choose 'all' or 'batch'")
        for name in ("width", "hidden", "layers", "heads", "dimension", "steps", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}; give 1 or more")
        if self.concept_weight is not None and not self.concept_weight >= 0:
            raise ValueError(f"concept_weight = {self.concept_weight}; give 0 or more, or None for one softmax")
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width = {self.width} is not a multiple of 2 and of heads = {self.heads}")
        if self.probes and self.concepts != 2:
            raise ValueError(f"the probes are those of two concepts, got concepts = {self.concepts}")
        if not 0 < self.warmup < 1:
            raise ValueError(f"warmup = {self.warmup}; give a share of the steps between 0 and 1")
        split(World(self.concepts, self.values), self.coverage, generator(self.seed), self.planted)


class Dual(nn.Module):
    """A scene encoder, a query encoder of the same kind and other weights, and the logarithm τ of the scale of their cosines."""

    def __init__(self, config: Config, part: Split) -> None:
        super().__init__()
        c, world = config, part.world
        if c.model == "sum":
            pair: list[nn.Module] = [SumEncoder(world, c.width, c.hidden, c.dimension) for _ in range(2)]
        else:
            kind = ObjectTransformer if c.model == "attention" else TokenTransformer
            pair = [kind(world, c.width, c.layers, c.heads, c.hidden, c.dimension) for _ in range(2)]
        self.scene, self.query = pair
        self.log_scale = nn.Parameter(torch.tensor(1.15))

    def forward(self, scene: Tensor, query: Tensor) -> Tensor:
        """Logits exp(min(τ, log 100)) <f(s), q(y)>, (n, m) and (p) → (n, p)."""
        return self.log_scale.clamp(max=np.log(100)).exp() * self.scene(scene) @ self.query(query[:, None]).T


class Trained(NamedTuple):
    """What :func:`train` gives."""

    dual: Dual
    part: Split
    losses: list[float]


def build(config: Config, part: Split, draws: torch.Generator) -> Dual:
    """A dual encoder whose weights come from ``draws``; torch's own generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        dual = Dual(config, part)
    for encoder in (dual.scene, dual.query):
        draw_weights(encoder, draws)
    return dual


def soft_cross_entropy(logits: Tensor, present: Tensor) -> Tensor:
    """− mean_s (1/|P_s|) Σ_{y ∈ P_s} log softmax(logits)_y in nats, for logits (n, p) and the truth values of y ∈ P_s, (n, p)."""
    chosen = logits.log_softmax(dim=1).masked_fill(~present, 0.0).sum(dim=1)
    return -(chosen / present.sum(dim=1)).mean()


def contents(world: World, scene: Tensor, pool: Tensor) -> Tensor:
    """Which queries of the pool name an object of the scene or a concept of one, (n, m) and (p) → (n, p)."""
    named = torch.cat([scene, world.concepts_of(scene.clamp_min(0)).masked_fill(scene[..., None] == EMPTY, EMPTY).flatten(1)], 1)
    column = torch.full((world.queries + 1,), len(pool), device=scene.device)  # what is not in the pool goes to a spare column
    column[pool] = torch.arange(len(pool), device=scene.device)
    present = torch.zeros(len(scene), len(pool) + 1, dtype=torch.bool, device=scene.device)
    return present.scatter_(1, column[named], True)[:, :-1]  # EMPTY = −1 is the last entry of ``column``


def batch_loss(dual: Dual, part: Split, scene: Tensor, pool: Tensor, concept_weight: float | None) -> Tensor:
    """L = L_objects + λ L_concepts, each a soft cross-entropy over its part of the pool; one over the whole pool for λ = None."""
    logits, present = dual(scene, pool), contents(part.world, scene, pool)
    if concept_weight is None:
        return soft_cross_entropy(logits, present)
    n = int((pool < part.world.objects).sum())
    objects = soft_cross_entropy(logits[:, :n], present[:, :n])
    return objects + concept_weight * soft_cross_entropy(logits[:, n:], present[:, n:]) if concept_weight else objects


def candidates(config: Config, part: Split, scene: Tensor) -> Tensor:
    """The queries that a batch is scored on: seen objects only, then all concepts. Held-out objects are never among them."""
    world = part.world
    if config.pool == "all":
        objects = part.seen
    else:
        whole = scene[(scene != EMPTY).all(dim=1)]
        near = torch.cat([scene[scene != EMPTY], swapped(world, whole).flatten()]).unique()
        objects = near[torch.isin(near, part.seen)]
    return torch.cat([objects, torch.arange(world.objects, world.queries)])


def train(config: Config, progress: bool = False, dtype: torch.dtype = torch.float32) -> Trained:
    """A dual encoder after ``config.steps`` steps: the last step is taken, so that no test scene chooses a model."""
    from tqdm.auto import tqdm

    draws, to = generator(config.seed), device()
    part = split(World(config.concepts, config.values), config.coverage, draws, config.planted)
    dual = build(config, part, draws).to(to, dtype)
    weights = [*dual.scene.parameters(), *dual.query.parameters()]
    groups: list[dict[str, Any]] = [{"params": weights}, {"params": [dual.log_scale], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay)
    shape: Literal["linear", "cos"] = "linear" if config.model == "tokens" else "cos"
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, config.learning_rate, config.steps, pct_start=config.warmup, anneal_strategy=shape
    )
    losses = []
    name = f"ρ = {config.coverage:g}, |O| = {part.world.objects}"
    for _ in tqdm(range(config.steps), desc=name, disable=not progress, leave=False):
        scene = draw_scenes(part.seen, config.batch, draws)
        pool = candidates(config, part, scene)
        optimiser.zero_grad()
        loss = batch_loss(dual, part, scene.to(to), pool.to(to), config.concept_weight)
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return Trained(dual.eval(), part, losses)


def embed(dual: Dual, scene: Tensor) -> Tensor:
    """f of scenes (n, m), in float64 on the CPU, (n, N)."""
    with torch.no_grad():
        rows = [dual.scene(scene[part].to(device())) for part in chunks(len(scene), 200_000)]
    return torch.cat(rows).double().cpu()


def queries(dual: Dual, world: World) -> Tensor:
    """q of all objects, then of all concepts, in float64 on the CPU, (|O| + C V, N)."""
    query = torch.arange(world.queries)[:, None]
    with torch.no_grad():
        rows = [dual.query(query[part].to(device())) for part in chunks(len(query), 200_000)]
    return torch.cat(rows).double().cpu()


def strict(x: Tensor, q: Tensor, right: Tensor) -> float:
    """Share of scenes whose every right candidate scores above every other one, x (n, N), q (p, N), right (n, j) → a share."""
    won = 0
    for part in chunks(len(x), 17 * len(q)):
        scores = x[part] @ q.T
        present = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, right[part], True)
        lowest = scores.masked_fill(~present, torch.inf).amin(dim=1)
        won += int((lowest > scores.masked_fill(present, -torch.inf).amax(dim=1)).sum())
    return won / len(x)


def margins(x: Tensor, q: Tensor, scene: Tensor, world: World) -> Tensor:
    """m(s) = <f(s), q(o₁) + q(o₂)> − <f(s), q(o₁') + q(o₂')>, with o' the objects of the swap; (n, N), …, (n, 2) → (n)."""
    other = swapped(world, scene)
    own = torch.linalg.vecdot(x, q[scene[:, 0]] + q[scene[:, 1]])
    return own - torch.linalg.vecdot(x, q[other[:, 0]] + q[other[:, 1]])


def choice(margin: Tensor) -> float:
    """The share of positive margins, where a zero counts one half."""
    return float(((margin > 0).double() + (margin == 0).double() / 2).mean())


def status(scores: Tensor, scene: Tensor, part: Split) -> float | None:
    """How often a held-out object beats a seen one, when both are absent and share one concept with the scene; 1/2 is fair.

    Scores (n, |O|) of scenes (n, 2) of two concepts; a mean over the scenes that have both kinds, None if there are none.
    """
    held = part.held_table().flatten()
    rows = part.world.rows(torch.arange(part.world.objects))
    named = part.world.rows(scene)
    shared = (rows[None, :, None, :] == named[:, None, :, :]).any(dim=2).sum(dim=2) == 1
    found = []
    for s, half in zip(scores, shared, strict=True):
        new, old = s[half & held], s[half & ~held]
        if len(new) and len(old):
            found.append(choice((new[:, None] - old).flatten()))
    return sum(found) / len(found) if found else None


def measure(trained: Trained, config: Config) -> dict[str, Any]:
    """Every number of a run, on new scenes of two objects; a score that has no scene to be measured on is None."""
    dual, part, losses = trained
    world, draws = part.world, generator(config.seed + 1_000_000)
    q = queries(dual, world)
    of_objects, of_concepts = q[: world.objects], q[world.objects :]
    held, seen = (draw_scenes(objects, SCORED, draws, least=2) for objects in (part.held, part.seen))
    x = embed(dual, held)
    found: dict[str, Any] = {
        "loss": sum(losses[-50:]) / len(losses[-50:]),
        "held": strict(x, of_objects, held),
        "seen": strict(embed(dual, seen), of_objects, seen),
        "concepts": strict(x, of_concepts, world.concepts_of(held).flatten(1) - world.objects),
        "scale": float(dual.log_scale.detach().exp()),
    }
    pairs = rectangles(part, SCORED, draws)
    found["matched_scenes"] = len(pairs)
    found |= matched_scores(dual, of_objects, pairs, part) if len(pairs) else {"matched": None}
    if world.concepts == 2:
        found["status"] = status(x[:READ] @ of_objects.T, held[:READ], part)
        found["bag_floor"], found["status_floor"] = (float(floor) for floor in split_floors(part))
    if config.probes:
        found["probes"] = probes(dual, of_objects, part, held, pairs, draws)
    return found


def matched_scores(dual: Dual, q: Tensor, pairs: Tensor, part: Split) -> dict[str, Any]:
    """Matched choice, mean margin and what leakages predict of it, on the scenes of :func:`rectangles`.

    ``from_objects`` is :func:`pooled_margin` of scenes of one object; ``from_scenes`` reads leakages off two-object scenes and
    looks at no swap (:func:`~binding.structure.gain_and_leakage`), None if no held-out object shares what it should.
    """
    x, V = embed(dual, pairs), part.world.values
    margin = margins(x, q, pairs, part.world)
    found: dict[str, Any] = {"matched": choice(margin), "margin": float(margin.mean())}
    if part.world.concepts != 2:
        return found
    alone = torch.stack([torch.arange(V * V), torch.full((V * V,), EMPTY)], dim=1)
    leak, pooled = cross_leakage(embed(dual, alone), q, pairs, part.world)
    found |= {"from_objects": pooled_margin(leak, pooled), "leakage": leak._asdict(), "pooled_square": pooled}
    few = torch.linspace(0, len(pairs) - 1, min(READ, len(pairs))).round().long()
    try:
        reading = gain_and_leakage((x[few] @ q.T).view(-1, V, V), part.world.rows(pairs[few]).flatten(1), part.held_table())
    except ValueError:
        return found | {"from_scenes": None}
    return found | {"from_scenes": reading.margin, "choice_from_scenes": reading.accuracy}


def cross_leakage(z: Tensor, q: Tensor, pairs: Tensor, world: World) -> tuple[Leakage, float]:
    """Gain and leakages <z(o), q(o')> of object codes against queries, and the mean ‖z(o₁) + z(o₂)‖², over matched scenes.

    Codes z and q are (|O|, N), scenes (n, 2) of two concepts. The swap of (a, b), (c, d) is (a, d), (c, b): each object of one
    shares its first concept with one object of the other, and its second with the other one.
    """
    other = swapped(world, pairs)
    own, twin, same_first, same_second = (
        torch.linalg.vecdot(z[pairs], q[against]).mean() for against in (pairs, pairs.flip(1), other, other.flip(1))
    )
    pooled = (z[pairs[:, 0]] + z[pairs[:, 1]]).square().sum(dim=1).mean()
    return Leakage(float(own), float(same_first), float(same_second), float(twin)), float(pooled)


def pooled_margin(leak: Leakage, pooled_square: float) -> float:
    """m = 2 (g − ℓ_o − ℓ_a + ℓ_0) / √‖z(o₁) + z(o₂)‖², the margin of a normalised sum of codes that leak evenly (new).

    Raises ``ValueError`` if the sum has no length.
    """
    if not pooled_square > 0:
        raise ValueError(f"pooled_square = {pooled_square}; the codes of a scene must not cancel")
    return 2 * leak.interaction / float(np.sqrt(pooled_square))


def probes(dual: Dual, q: Tensor, part: Split, held: Tensor, pairs: Tensor, draws: torch.Generator) -> dict[str, Any]:
    """The additive and each product model of scene embeddings, fitted on seen objects: R², strict accuracy, matched choice."""
    world = part.world
    fitted = draw_scenes(part.seen, PROBED, draws, least=2)
    x, sizes = embed(dual, fitted), (world.values,) * 4

    def slots(scene: Tensor) -> Tensor:
        return world.rows(scene).flatten(1)

    fits = {"additive": additive(slots(fitted), x, shared=(0, 1, 0, 1), sizes=sizes)}
    fits |= {kind: product(slots(fitted), x, kind, rank=16, sizes=sizes) for kind in PRODUCTS}
    target = embed(dual, held)
    found: dict[str, Any] = {}
    for name, fit in fits.items():
        guess = fit.predict(slots(held))
        row = {"r2": r2(fit, slots(held), target), "held": strict(guess, q, held)}
        if len(pairs):
            row["matched"] = choice(margins(fit.predict(slots(pairs)), q, pairs, world))
        found[name] = row
    return found


def run(config: Config) -> dict[str, Any]:
    """Train and measure: the run of a sweep."""
    return measure(train(config), config)


def configurations(name: str) -> list[Config]:
    """The runs of a sweep: one of SWEEPS, or "full", the published model at its size, with our split and pool, for a GPU.

    "curve": coverages, three sizes, three seeds, probes at |O| = 400. "wide": |O| = 900. "attention": a transformer over objects,
    "weights": concepts in the loss, both with probes. "uniform": nothing planted. Raises ``ValueError`` for another.
    """
    three = range(3)
    if name == "curve":
        sizes = [Config(0.5, V, probes=V == 20) for V in (20, 10, 5)]
        return [replace(c, coverage=ρ, seed=seed) for c in sizes for seed in three for ρ in COVERAGES]
    if name == "wide":
        return [Config(ρ, 30) for ρ in (0.2, 0.3, 0.4)]
    if name == "attention":
        model = Config(0.5, model="attention", hidden=256, learning_rate=6e-3, steps=1200, probes=True)
        return [replace(model, coverage=ρ, seed=seed) for seed in range(2) for ρ in (0.3, 0.8)]
    if name == "weights":
        return [Config(0.6, concept_weight=λ, seed=seed, probes=True) for seed in range(2) for λ in (0.0, 0.3, 1.0, None)]
    if name == "uniform":
        return [Config(0.8, planted=0, seed=seed) for seed in three]
    if name == "full":
        model = Config(0.5, 20, 2, 0, "tokens", 256, 2048, 6, 4, 64, 50_000, 512, 3e-5, 0.1, 0.1, None, "batch")
        worlds = [replace(model, values=V, concepts=C) for V, C in ((20, 2), (50, 2), (50, 3))]
        return [replace(c, coverage=ρ, seed=seed) for c in worlds for seed in three for ρ in COVERAGES]
    raise ValueError(f"no sweep {name!r}; choose one of {', '.join((*SWEEPS, 'full'))}")


SWEEPS = ("curve", "weights", "attention", "uniform", "wide")
"""The sweeps of the laptop, about twenty minutes of one core together."""


def monotone(y: Sequence[float]) -> np.ndarray:
    """The non-decreasing sequence nearest to y in squares: neighbours in the wrong order are averaged until none is left.

    >>> monotone([0.1, 0.4, 0.2, 0.9]).round(3).tolist()
    [0.1, 0.3, 0.3, 0.9]
    """
    blocks: list[tuple[float, int]] = []
    for value in y:
        blocks.append((float(value), 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, m), (b, n) = blocks[-2:]
            blocks[-2:] = [((m * a + n * b) / (m + n), m + n)]
    return np.concatenate([np.full(n, value) for value, n in blocks])


def crossing(x: Sequence[float], y: Sequence[float], level: float) -> float | None:
    """Where the line through (x, monotone(y)) first reaches ``level``; None if it starts above it or never comes there.

    Raises ``ValueError`` unless x increases and has as many entries as y, two or more.
    """
    if len(x) != len(y) or len(x) < 2 or any(b <= a for a, b in pairwise(x)):
        raise ValueError(f"x = {list(x)} must increase and be as long as y, which has {len(y)} entries")
    rising = monotone(y)
    above = np.flatnonzero(rising >= level)
    if not len(above) or above[0] == 0:
        return None
    i = int(above[0])
    share = (level - rising[i - 1]) / (rising[i] - rising[i - 1])
    return float(x[i - 1] + share * (x[i] - x[i - 1]))


def curves(runs: Sequence[dict[str, Any]], score: str) -> dict[int, dict[int, dict[float, float]]]:
    """One score of a stored sweep, {V: {seed: {ρ: score}}}; a run that has no such score is left out.

    Raises ``ValueError`` if no run has it, with the names that there are.
    """
    found: dict[int, dict[int, dict[float, float]]] = {}
    for row in runs:
        c, value = row["config"], row["result"].get(score)
        if value is not None:
            found.setdefault(c["values"], {}).setdefault(c["seed"], {})[c["coverage"]] = value
    if not found:
        raise ValueError(f"no run has a score {score!r}; there are {', '.join(runs[0]['result']) if runs else 'no runs'}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: ``python -m binding.emergence --scale full --out runs --jobs 2``."""
    parser = argparse.ArgumentParser(
        prog="python -m binding.emergence", description="Train the encoders of the emergence chapter."
    )
    parser.add_argument(
        "--scale", choices=("laptop", "full", *SWEEPS), default="laptop", help="laptop: all sweeps but the full one"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs and for one table a sweep")
    parser.add_argument("--jobs", type=int, default=1, help="processes on this machine")
    parser.add_argument("--dask", help="address of a Dask scheduler whose workers see the folder, instead")
    chosen = parser.parse_args(arguments)
    for name in SWEEPS if chosen.scale == "laptop" else (chosen.scale,):
        runs = sweep(configurations(name), run, chosen.out / f"emergence-{name}", jobs=chosen.jobs, dask=chosen.dask)
        path = chosen.out / f"emergence-{name}.json"
        store(path, f"python -m binding.emergence --scale {name} --out runs", runs)
        print(f"{len(runs)} runs in {path}")


if __name__ == "__main__":
    main()
