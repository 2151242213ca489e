"""Captions a second: encoded once, batched by length and kept, against each quartet encoded as it comes.

The peer is the library's own ``SentenceTransformer.encode``, called on four captions at a time. No caption stands twice among
these, so the ratio owes nothing to deduplication. Run with ``make bench``; the last test prints the ratios of one run.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from binding.encoders import ROUNDING, MiniLM, minilm
from binding.scenes import quartets

QUARTETS = [q.captions for q in quartets("colour", 240, np.random.default_rng(0))]
CAPTIONS = [caption for four in QUARTETS for caption in four]


def as_they_come() -> np.ndarray:
    model = minilm()._model
    return np.concatenate([model.encode(list(four), show_progress_bar=False) for four in QUARTETS])


def batched() -> np.ndarray:
    return minilm()(CAPTIONS)


def kept(folder: Path) -> Callable[[], np.ndarray]:
    model = MiniLM(cache=folder)
    model(CAPTIONS)
    return lambda: model(CAPTIONS)


@pytest.fixture(params=["as they come", "batched", "cached"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], np.ndarray]:
    return {"as they come": lambda: as_they_come, "batched": lambda: batched, "cached": lambda: kept(tmp_path)}[request.param]()


def test_captions_a_second(benchmark: BenchmarkFixture, way: Callable[[], np.ndarray]) -> None:
    minilm()
    x = benchmark.pedantic(way, rounds=3, warmup_rounds=1)
    benchmark.extra_info["captions"] = len(CAPTIONS)
    assert np.linalg.norm(x - batched(), axis=1).max() <= ROUNDING


def test_ratios_in_one_run(tmp_path: Path) -> None:
    """The three ways in turn, three rounds, the fastest of each: a busy neighbour slows all of them alike."""
    ways = {"as they come": as_they_come, "batched": batched, "cached": kept(tmp_path)}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    best = {name: min(times) for name, times in seconds.items()}
    print(f"\n{len(CAPTIONS)} captions of {len(QUARTETS)} colour quartets")
    for name, time_taken in best.items():
        print(f"  {name:13s} {len(CAPTIONS) / time_taken:9.0f} captions/s  {best['as they come'] / time_taken:6.1f} x")
    assert best["cached"] < best["batched"] < best["as they come"]
