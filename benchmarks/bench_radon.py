"""Questions decided a second ("does this set of atoms separate?") against a plain loop of scipy's ``linprog``.

The peer is one feasibility program a set, as one would write it first: find (w, θ) with scores at least θ + 1 and at most θ − 1.
It gives no certificate; ours are proved in both directions. Run with ``make bench``; the last test prints the ratios of one run.
"""

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.optimize import linprog

from binding.ideal import moment_curve
from binding.radon import separable, separable_counts

CASES = {
    "curve N = 6, M = 10, j = 4": (6, 10, 4),
    "random N = 16, M = 64, j = 6": (16, 64, 6),
    "random N = 24, M = 144, j = 8": (24, 144, 8),
}


def case(N: int, M: int, j: int) -> tuple[np.ndarray, np.ndarray]:
    if M <= 10:
        sets = np.array([[i in chosen for i in range(M)] for chosen in combinations(range(M), j)])
        return moment_curve(2 * np.pi * np.arange(M) / M, N // 2), sets
    rng = np.random.default_rng(0)
    return rng.standard_normal((M, N)), np.argsort(rng.random((200, M)), axis=1) < j


def plain(x: np.ndarray, sets: np.ndarray) -> np.ndarray:
    M, N = x.shape
    answers = []
    for present in sets:
        rows = np.where(present, -1.0, 1.0)[:, None] * np.hstack([x, -np.ones((M, 1))])
        answers.append(linprog(np.zeros(N + 1), A_ub=rows, b_ub=-np.ones(M), bounds=(None, None), method="highs").status == 0)
    return np.array(answers)


def by_planes(x: np.ndarray, sets: np.ndarray) -> int:
    """Every size at once; only the count at the size of these sets is looked at."""
    return int(separable_counts(x)[sets[0].sum()])


@pytest.mark.parametrize("way", [plain, separable], ids=["plain loop", "separable"])
@pytest.mark.parametrize("name", CASES)
def test_decisions_a_second(benchmark: BenchmarkFixture, name: str, way: Callable[..., np.ndarray]) -> None:
    x, sets = case(*CASES[name])
    answers = benchmark.pedantic(way, (x, sets), rounds=3, warmup_rounds=1)
    benchmark.extra_info["decisions"] = len(sets)
    assert (answers == separable(x, sets)).all()


def test_ratios_in_one_run() -> None:
    """The ways in turn, three rounds, the fastest of each: a busy neighbour slows all of them alike."""
    print()
    for name, numbers in CASES.items():
        x, sets = case(*numbers)
        ways: dict[str, Callable[..., object]] = {"plain loop": plain, "separable": separable}
        if len(x) <= 10:
            ways["separable_counts, all sizes"] = by_planes
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(3):
            for way, run in ways.items():
                start = time.perf_counter()
                run(x, sets)
                seconds[way].append(time.perf_counter() - start)
        best = {way: min(times) for way, times in seconds.items()}
        decided = {way: 2 ** len(x) if "all sizes" in way else len(sets) for way in ways}
        base = decided["plain loop"] / best["plain loop"]
        for way in ways:
            rate = decided[way] / best[way]
            print(f"{name:32} {way:28} {rate:12,.0f} decisions a second, {rate / base:8.1f} × the plain loop")
        assert (plain(x, sets) == separable(x, sets)).all()
