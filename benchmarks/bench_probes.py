"""Seconds a step and to the same loss: all conditionals in one or two matrix products, against one conditional at a time.

The peer is written anew from the description of the published trainer: for every conditional its own copy of the input
[z, y_<k], all copies laid out beside each other, Adam with L2, a learning rate that falls by five every eight epochs, two
batches a step, validation and test after every epoch. Run as a program it stores what the page shows:

    python benchmarks/bench_probes.py --out binding/data/runs/probes-benchmark.json
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from binding.files import write_json
from binding.numerics import gaussian, generator
from binding.probe_heads import Recipe, Size, initial, logits, strict
from binding.probes import fit
from binding.runs import provenance

D, K, RANK, BATCH, GROUPS = 1024, 64, 16, 512, (8, 8)
TRAIN, VALIDATION, TEST = 4096, 1024, 1024
PEER_EPOCHS = 24


def data(n: int = TRAIN + VALIDATION + TEST, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Scenes of 18 objects on a 6 × 6 part of the grid; half of the cells stand in z, half are products of two numbers."""
    draws = generator(seed)
    pick = torch.rand((n, 8, 2), generator=draws).argsort(1)[:, :6]  # rows and columns that occur
    cells = torch.rand((n, 36), generator=draws).argsort(1)[:, :18]
    rows, cols = pick[:, :, 0].gather(1, cells // 6), pick[:, :, 1].gather(1, cells % 6)
    o = torch.zeros(n, K).scatter_(1, rows * 8 + cols, 1)
    s = 2 * o - 1
    keys = (2 * torch.randint(0, 2, (n, K // 2), generator=draws) - 1).float()
    plain = torch.cat([s[:, : K // 2], keys, keys * s[:, K // 2 :]], 1)
    turn, _ = torch.linalg.qr(gaussian((D, D), draws, dtype=torch.float32))
    noise = 0.1 * gaussian((n, D), draws, dtype=torch.float32)
    return torch.cat([plain, torch.zeros(n, D - plain.shape[1])], 1) @ turn * 3 + noise, o


def copies(z: Tensor, y: Tensor) -> Tensor:
    """[z, y_<k] for every k, laid out beside each other, (B, D + K, K)."""
    seen = y[:, :, None] * strict(K, y)
    return torch.cat([z[:, :, None].expand(-1, -1, K), seen], 1)


class Peer:
    """The quadratic probe of the publication: x_k = [z, y_<k], logit_k = Σ_r (x_k·u_kr)(x_k·v_kr) / √(D + K) + b_k."""

    def __init__(self, family: str, seed: int = 0) -> None:
        draws = generator(seed)
        self.family = family

        def weights(*shape: int) -> Tensor:
            return (gaussian(shape, draws, dtype=torch.float32) * (D + K) ** -0.5).requires_grad_(True)

        if family == "linear":
            self.w = [weights(D + K, K)]
        elif family == "quadratic":
            self.w = [weights(D + K, RANK, K), weights(D + K, RANK, K)]
        else:
            self.w = [weights(D, RANK, side) for side in GROUPS] + [weights(K, RANK, K) for _ in GROUPS]
        self.b = torch.zeros(K, requires_grad=True)

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:
        if self.family == "linear":
            return z @ self.w[0][:D] + torch.einsum("bik,ik->bk", y[:, :, None] * strict(K, y), self.w[0][D:]) + self.b
        x = copies(z, y)
        u, v = self.w if self.family == "quadratic" else self.unfolded()
        p, q = torch.einsum("bdk,drk->brk", x, u), torch.einsum("bdk,drk->brk", x, v)
        return (p * q).sum(1) / (D + K) ** 0.5 + self.b

    def unfolded(self) -> tuple[Tensor, Tensor]:
        of_row, of_column, *of_y = self.w
        return (
            torch.cat([of_row.repeat_interleave(GROUPS[1], 2), of_y[0]]),
            torch.cat([of_column.repeat(1, 1, GROUPS[0]), of_y[1]]),
        )


def ours(peer: Peer) -> tuple[Recipe, Size, dict[str, Tensor]]:
    """Our probe with the weights of the peer: a linear part of zero and no constants, so that the logits are equal."""
    recipe, size = Recipe(peer.family, rank=RANK), Size(D, K, 0, GROUPS)
    w = {name: torch.zeros_like(x) for name, x in initial(recipe, size, generator(0)).items()}
    w["b"][:K] = peer.b.detach()
    if peer.family == "linear":
        w["z"][:], w["y"][:] = peer.w[0].detach()[:D], peer.w[0].detach()[D:]
    elif peer.family == "quadratic":
        both = torch.cat([x.detach().transpose(1, 2).reshape(D + K, K * RANK) for x in peer.w], 1)
        w["z"][:, K:], w["y"][:, K:] = both[:D], both[D:]
    else:
        w["z"][:, K:] = torch.cat([x.detach().transpose(1, 2).reshape(D, -1) for x in peer.w[:2]], 1)
        w["y"][:, K:] = torch.cat([x.detach().transpose(1, 2).reshape(K, -1) for x in peer.w[2:]], 1)
    return recipe, size, {name: x.requires_grad_(True) for name, x in w.items()}


def step_seconds(forward: Callable[[], Tensor], o: Tensor, rounds: int = 3) -> float:
    """Processor seconds of one forward and backward pass, the best of a few."""
    found = []
    for _ in range(rounds + 1):
        start = time.process_time()
        cross_entropy(forward(), o).backward()
        found.append(time.process_time() - start)
    return min(found[1:])


def steps(family: str, z: Tensor, o: Tensor, rounds: int = 3) -> dict[str, float]:
    """One step of both, in turn, and how far their logits are apart."""
    peer = Peer(family)
    recipe, size, w = ours(peer)
    z, o, y = z[:BATCH], o[:BATCH], o[:BATCH] - 0.5
    with torch.no_grad():
        apart = float((peer(z, y) - logits(recipe, size, w, z, y)).abs().max())
    slow = step_seconds(lambda: peer(z, y), o, rounds)
    full = step_seconds(lambda: logits(recipe, size, w, z, y), o, 5 * rounds)
    half = step_seconds(lambda: logits(recipe, size, w, z, y, fast=True), o, 5 * rounds)
    return {"peer": slow, "float32": full, "bfloat16": half, "apart": apart}


def peer_course(z: Tensor, o: Tensor, epochs: int, *, products: bool) -> tuple[float, list[float]]:
    """Processor seconds and test bits after every epoch of the published schedule, quadratic.

    With ``products`` the same function is evaluated in our way, which gives the same losses (the logits are equal, see
    :func:`steps`) without the wait: then only the bits count. Our linear part and constants stay zero.
    """
    peer = Peer("quadratic")
    recipe, size, w = ours(peer)
    weights = list(w.values()) if products else [*peer.w, peer.b]
    optimiser = torch.optim.Adam(weights, lr=1e-3, weight_decay=1e-4)
    draws, found, start = generator(1), [], time.process_time()

    def forward(rows: Tensor) -> Tensor:
        y = o[rows] - 0.5
        return logits(recipe, size, w, z[rows], y) if products else peer(z[rows], y)

    for epoch in range(epochs):
        optimiser.param_groups[0]["lr"] = 1e-3 * 0.2 ** (epoch // 8)
        for number, rows in enumerate(torch.randperm(TRAIN, generator=draws).split(BATCH)):
            (cross_entropy(forward(rows), o[rows]) / 2).backward()
            if number % 2:
                if products:
                    for x in (w["z"].grad[:, :K], w["y"].grad[:, :K], w["b"].grad[K:]):  # type: ignore[index]
                        x.zero_()
                optimiser.step()
                optimiser.zero_grad()
        with torch.no_grad():
            rest = torch.arange(TRAIN, len(z)).split(BATCH)
            bits = torch.cat([cross_entropy(forward(rows), o[rows], reduction="none").sum(1) for rows in rest])
        found.append(bits[VALIDATION:].mean().item() / math.log(2))
    return time.process_time() - start, found


def our_race(z: Tensor, o: Tensor, bits: float) -> dict[str, float]:
    """Processor seconds of the shortest of our trainings with a test loss of at most ``bits``, validation and test included.

    The learning rate was chosen on these data, as the schedule of the peer was on other ones.
    """
    split = np.split(np.arange(len(z)), [TRAIN, TRAIN + VALIDATION])
    for epochs in range(1, 30):
        start = time.process_time()
        found = fit(Recipe("quadratic", rank=RANK, epochs=epochs, learning_rate=3e-2, precision="bfloat16"), z, o, split=split)
        spent = time.process_time() - start
        if found.bits.mean() <= bits:
            break
    return {"epochs": epochs, "bits": float(found.bits.mean()), "seconds": spent, "seconds_an_epoch": spent / epochs}


def growth(run: Callable[[], object]) -> float:
    """By how much anonymous memory grows at most while ``run`` runs, MB, seen every millisecond; mapped files do not count."""

    def now() -> int:
        return int(next(line for line in Path("/proc/self/status").open() if line.startswith("RssAnon")).split()[1])

    seen, done = [now()], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            seen.append(now())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return round((max(seen) - seen[0]) / 1024, 1)


def memory(which: str) -> float:
    """:func:`growth` of one step ("peer", "ours") or of one epoch on a mapped file of 1,049 MB, with a budget of 128 MB."""
    if which != "streamed":
        z, o = (x[:BATCH] for x in data(2 * BATCH))
        peer = Peer("quadratic")
        recipe, size, w = ours(peer)
        forward = (lambda: peer(z, o - 0.5)) if which == "peer" else (lambda: logits(recipe, size, w, z, o - 0.5))
        return growth(lambda: step_seconds(forward, o, 1))
    n, os.environ["BINDING_MEMORY_MB"] = 256_000, "128"
    o = torch.randint(0, 2, (n, 8), generator=generator(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "z.npy"
        z_file = np.lib.format.open_memmap(path, "w+", np.float32, (n, D))
        for start in range(0, n, 1000):
            z_file[start : start + 1000] = start % 7 - 3.0
        z_file.flush()
        split = np.split(np.arange(n), [n - 2000, n - 1000])
        fit(Recipe("linear", epochs=1), z_file[:100], o[:100], split=np.split(np.arange(100), [80, 90]))
        return growth(lambda: fit(Recipe("linear", epochs=1), [path], o, split=split))


def apart(which: str) -> float:
    """:func:`memory` in a process of its own, so that nothing of an earlier run is used again."""
    done = subprocess.run([sys.executable, __file__, "--memory", which], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Steps, the race to the same loss, and memory; one thread.")
    parser.add_argument("--out", type=Path, metavar="JSON")
    parser.add_argument("--memory", choices=("peer", "ours", "streamed"), help="only this one number")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    if arguments.memory:
        print(memory(arguments.memory))
        return
    z, o = data()
    report: dict[str, Any] = {"steps": {family: steps(family, z, o) for family in ("linear", "quadratic", "shared")}}
    print(json.dumps(report, indent=1))
    report["memory"] = {which: apart(which) for which in ("peer", "ours", "streamed")}
    seconds, first = peer_course(z, o, 1, products=False)
    _, course = peer_course(z, o, PEER_EPOCHS, products=True)
    race = {"epochs": PEER_EPOCHS, "bits": min(course), "seconds_an_epoch": seconds, "apart": abs(first[0] - course[0])}
    report["race"] = {"peer": race | {"course": course}, "ours": our_race(z, o, min(course))}
    if arguments.out is not None:
        command = "python benchmarks/bench_probes.py --out binding/data/runs/probes-benchmark.json"
        write_json(arguments.out, {"schema": 1, "command": command, "provenance": provenance(), **report})
    print(json.dumps(report, indent=1))


def test_ratios_in_one_run() -> None:
    """Equal logits; one step of each in turn."""
    torch.set_num_threads(1)
    z, o = data(BATCH)
    for family in ("linear", "quadratic", "shared"):
        found = steps(family, z, o, rounds=1)
        times = [found["peer"], found["float32"], found["bfloat16"]]
        ratios = ", ".join(f"{times[0] / t:.0f} x" for t in times[1:])
        print(f"\n{family:10}" + "".join(f"{1e3 * t:9.1f} ms" for t in times) + f"  {ratios}")
        assert found["apart"] <= 1e-5
        assert times[0] > times[1]


if __name__ == "__main__":
    main()
