"""The audit's captions a second: deduplicated, in batches of like length, ended at the end token; against quartets as they come.

An audit asks for the four captions of each quartet and for its anchors. The plain way encodes these quartet by quartet, at full
context. Both ways are timed in turn in one run, so a busy neighbour slows them alike. Run with ``make bench``.
"""

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from binding.audit import captions_of, draw
from binding.encoders import ROUNDING, minilm
from binding.scenes import Quartet
from binding.towers import Tower, untrained

ROUNDS = 3
TEXTS = {"packaged MiniLM": 40, "ViT-B/32 text tower, random weights": 6}
"""Colour quartets for each encoder; the tower reads 77 tokens a caption the plain way and takes seconds for few."""


def asked_for(n: int) -> list[list[str]]:
    """What each quartet asks for: four captions and its anchors; some anchors stand in many quartets."""
    items: tuple[Quartet, ...] = draw(["colour"], n)["colour"]
    return [[*q.captions, *(anchor.text for anchor in q.anchors)] for q in items]


def plain_sentences(groups: list[list[str]]) -> np.ndarray:
    """The library's own call, quartet by quartet."""
    return np.concatenate([minilm()._model.encode(group, show_progress_bar=False) for group in groups])


def plain_tower(tower: Tower, groups: list[list[str]]) -> np.ndarray:
    """open_clip's own forward, quartet by quartet, 77 tokens each."""
    with torch.inference_mode():
        x = [tower._net(tower._tokenizer(group, context_length=tower.limit)).numpy() for group in groups]
    rows = np.concatenate(x)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def ways(name: str) -> tuple[Callable[[], np.ndarray], Callable[[], np.ndarray], int, int]:
    """The plain way, ours, how many captions are asked for and how many differ."""
    groups = asked_for(TEXTS[name])
    captions = [caption for group in groups for caption in group]
    different = len(captions_of(draw(["colour"], TEXTS[name])))
    if "MiniLM" in name:
        return lambda: plain_sentences(groups), lambda: minilm()(captions), len(captions), different
    tower = untrained("ViT-B-32")
    return lambda: plain_tower(tower, groups), lambda: tower(captions), len(captions), different


@pytest.mark.parametrize("name", TEXTS)
def test_captions_a_second(benchmark: BenchmarkFixture, name: str) -> None:
    plain, ours, asked, different = ways(name)
    x = benchmark.pedantic(ours, rounds=ROUNDS, warmup_rounds=1)
    benchmark.extra_info.update(captions=asked, different=different)
    assert np.linalg.norm(x - plain(), axis=1).max() <= 2 * ROUNDING  # widths up to 2048 here, 1536 there


@pytest.mark.parametrize("name", TEXTS)
def test_ratio_in_one_run(name: str) -> None:
    plain, ours, asked, different = ways(name)
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(ROUNDS):
        for label, run in (("plain", plain), ("ours", ours)):
            start = time.process_time()
            run()
            seconds[label].append(time.process_time() - start)
    best = {label: min(times) for label, times in seconds.items()}
    print(f"\n{name}: {asked} captions asked for, {different} different")
    for label, time_taken in best.items():
        print(f"  {label:6s} {asked / time_taken:8.0f} captions a CPU second  {best['plain'] / time_taken:5.1f} x")
    assert best["ours"] < best["plain"]
