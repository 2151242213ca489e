"""Training of the emergence chapter against the loop that one would write first: tokens and labels built one by one in Python.

The peer follows the description of the published trainer, which builds the tokens of a batch and its table of labels by two
nested loops, and encodes an object anew in every scene. Model, draws, loss and optimiser are the same, so both learn the same.
Run with ``make bench``: the last test prints the ratios of one run. ``python benchmarks/bench_emergence.py FILE`` stores them.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from binding.coverage_split import EMPTY, Split, World, draw_scenes, split
from binding.emergence import Config, Dual, batch_loss, build, candidates, contents, embed, queries, soft_cross_entropy, strict
from binding.files import write_json
from binding.numerics import device, generator
from binding.object_encoders import positions, tokenise
from binding.runs import provenance

SUM = Config(0.8, batch=512, steps=1000)
TOKENS = replace(SUM, model="tokens", layers=2, hidden=256, learning_rate=2e-3)
LEVEL, EVERY, ROUNDS = 0.5, 50, 3


def loop_labels(world: World, scene: Tensor, pool: Tensor) -> Tensor:
    """Which queries name something in a scene, by two nested loops over lists, with a set for each scene."""
    V, wanted, table = world.values, pool.tolist(), []
    for objects in scene.tolist():
        named = {o for o in objects if o != EMPTY}
        named |= {world.objects + o // V for o in named} | {world.objects + V + o % V for o in named}
        row = []
        for y in wanted:
            row.append(y in named)
        table.append(row)
    return torch.tensor(table)


def loop_tokens(world: World, scene: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens and the place of EOS, one list at a time."""
    V = world.values
    soo, eoo, eos, pad = (2 * V + i for i in range(4))
    rows, ends = [], []
    for objects in scene.tolist():
        row: list[int] = []
        for o in objects:
            if o >= world.objects:
                row.append(o - world.objects)
            elif o != EMPTY:
                row.extend([soo, o // V, V + o % V, eoo])
        ends.append(len(row))
        row.append(eos)
        rows.append(row + [pad] * (4 * scene.shape[1] + 1 - len(row)))
    return torch.tensor(rows, device=scene.device), torch.tensor(ends, device=scene.device)


def read(encoder: nn.Module, token: Tensor, end: Tensor) -> Tensor:
    """A token transformer on tokens that are there already."""
    x = encoder.words[token] + positions(token.shape[1], encoder.words.shape[1]).to(encoder.words)
    return encoder.trunk(x, token == len(encoder.words) - 1, end)


def loop_loss(dual: Dual, part: Split, scene: Tensor, pool: Tensor, weight: float) -> Tensor:
    """The same loss as :func:`binding.emergence.batch_loss`, from loops; objects are encoded where they stand."""
    world = part.world
    present = loop_labels(world, scene, pool).to(scene.device)
    if hasattr(dual.scene, "codes"):
        each = dual.scene.codes(scene.clamp_min(0).flatten()).view(*scene.shape, -1)
        x, q = normalize((each * (scene != EMPTY)[..., None]).sum(dim=1), dim=-1), normalize(dual.query.codes(pool), dim=-1)
    else:
        x, q = read(dual.scene, *loop_tokens(world, scene)), read(dual.query, *loop_tokens(world, pool[:, None]))
    logits, n = dual.log_scale.exp() * x @ q.T, int((pool < world.objects).sum())
    return soft_cross_entropy(logits[:, :n], present[:, :n]) + weight * soft_cross_entropy(logits[:, n:], present[:, n:])


class Trainer:
    """The training of ``binding.emergence.train`` with another loss function, one step at a time."""

    def __init__(self, config: Config, loss: Callable[..., Tensor]) -> None:
        self.config, self.loss, self.draws = config, loss, generator(config.seed)
        self.part = split(World(config.concepts, config.values), config.coverage, self.draws, config.planted)
        self.dual = build(config, self.part, self.draws).to(device())
        weights = [*self.dual.scene.parameters(), *self.dual.query.parameters()]
        groups = [{"params": weights}, {"params": [self.dual.log_scale], "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, config.learning_rate, config.steps, pct_start=config.warmup
        )

    def step(self) -> float:
        scene = draw_scenes(self.part.seen, self.config.batch, self.draws)
        self.optimiser.zero_grad()
        pool = candidates(self.config, self.part, scene)
        loss = self.loss(self.dual, self.part, scene.to(device()), pool.to(device()), self.config.concept_weight)
        loss.backward()
        self.optimiser.step()
        self.schedule.step()
        return loss.item()

    def held_out(self) -> float:
        scene = draw_scenes(self.part.held, 1000, generator(99), least=2)
        return strict(embed(self.dual, scene), queries(self.dual, self.part.world)[: self.part.world.objects], scene)


def seconds_to(level: float, trainer: Trainer) -> tuple[float, int]:
    """Processor seconds of training, without the tests, and steps until held-out accuracy reaches a level."""
    spent, steps = 0.0, 0
    while steps < trainer.config.steps:
        start = time.process_time()
        for _ in range(EVERY):
            trainer.step()
        spent, steps = spent + time.process_time() - start, steps + EVERY
        if trainer.held_out() >= level:
            break
    return spent, steps


def ratios() -> dict[str, Any]:
    """Steps a processor second of both ways in turn, the best of three rounds, and the time to the same held-out accuracy."""
    found: dict[str, Any] = {}
    for name, config, steps in (("sum", SUM, 10), ("tokens", TOKENS, 1)):
        pair = {way: Trainer(config, loss) for way, loss in (("loops", loop_loss), ("ours", batch_loss))}
        times: dict[str, list[float]] = {way: [] for way in pair}
        for _ in range(ROUNDS + 1):
            for way, trainer in pair.items():
                start = time.process_time()
                for _ in range(steps):
                    trainer.step()
                times[way].append((time.process_time() - start) / steps)
        best = {way: 1 / min(t[1:]) for way, t in times.items()}
        found[name] = {"steps_a_second": best, "ratio": best["ours"] / best["loops"]}
    race = {way: seconds_to(LEVEL, Trainer(SUM, loss)) for way, loss in (("ours", batch_loss), ("loops", loop_loss))}
    found["race"] = {
        "held_out": LEVEL,
        "seconds": {w: s for w, (s, _) in race.items()},
        "steps": {w: n for w, (_, n) in race.items()},
    }
    found["race"]["ratio"] = race["loops"][0] / race["ours"][0]
    return found


def test_both_ways_learn_the_same() -> None:
    world, draws = World(2, 20), generator(0)
    part = split(world, 0.8, draws)
    scene = draw_scenes(part.seen, 64, draws)
    pool = candidates(SUM, part, scene)
    assert torch.equal(loop_labels(world, scene, pool), contents(world, scene, pool))
    assert all(torch.equal(a, b) for a, b in zip(loop_tokens(world, scene), tokenise(world, scene), strict=True))
    for config in (SUM, TOKENS):
        a, b = (Trainer(replace(config, batch=32), loss) for loss in (loop_loss, batch_loss))
        assert abs(a.step() - b.step()) < 1e-5  # float32, losses of a few nats


def test_ratios_in_one_run() -> None:
    print()
    found = ratios()
    for name in ("sum", "tokens"):
        speed = found[name]["steps_a_second"]
        print(
            f"{name:7} {speed['loops']:6.2f} steps a second by loops, {speed['ours']:6.2f} ours: {found[name]['ratio']:.1f} times"
        )
    race = found["race"]
    loops, ours = (race["seconds"][way] for way in ("loops", "ours"))
    print(f"to {LEVEL} held out: {loops:.1f} processor seconds by loops, {ours:.1f} ours: {race['ratio']:.1f} times")


if __name__ == "__main__":
    command = "python benchmarks/bench_emergence.py FILE"
    write_json(Path(sys.argv[1]), {"schema": 1, "command": command, "result": ratios(), "provenance": provenance()})
