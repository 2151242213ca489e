"""A sweep makes each run once, keeps it, goes on where it stopped, and gives the same rows here and on a cluster."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dask.distributed import LocalCluster
from hypothesis import given
from hypothesis import strategies as st

from binding.runs import digest, load, provenance, store, sweep


@dataclass(frozen=True)
class Square:
    side: float
    seed: int = 0


@dataclass(frozen=True)
class Other:
    side: float
    seed: int = 0


def area(config: Square, log: Path) -> dict[str, Any]:
    if config.side < 0:
        raise RuntimeError("no such square")
    (log / f"{config.side}-{config.seed}").open("x").close()
    return {"area": config.side**2}


CONFIGS = [Square(side, seed) for side in (1.0, 2.5) for seed in range(2)]


@given(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers()), st.tuples(st.floats(0, 9), st.integers(0, 9)))
def test_names_are_equal_where_configurations_are(one: tuple[float, int], two: tuple[float, int]) -> None:
    assert digest(Square(*one)) == digest(Square(*one))
    assert (digest(Square(*one)) == digest(Square(*two))) == (json.dumps(one) == json.dumps(two))
    assert digest(Square(*one)) != digest(Other(*one))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path, jobs: int) -> None:
    log, folder = tmp_path / "log", tmp_path / "runs"
    log.mkdir()
    run = partial(sweep, run=partial(area, log=log), folder=folder, jobs=jobs, progress=False)
    with pytest.raises(RuntimeError, match="no such square"):
        run([CONFIGS[0], CONFIGS[1], Square(-1.0)])
    run(CONFIGS[:2])
    rows = run(CONFIGS)  # a run that was made twice would find its log there and fail
    assert [row["result"]["area"] for row in rows] == [1.0, 1.0, 6.25, 6.25]
    assert [row["config"] for row in rows] == [{"side": config.side, "seed": config.seed} for config in CONFIGS]
    assert set(provenance()) | {"seconds", "processor_seconds"} == set(rows[0]["provenance"])
    assert {path.name for path in folder.iterdir()} == {f"{digest(config)}.json" for config in CONFIGS}


def test_the_cluster_makes_the_same_rows(tmp_path: Path) -> None:
    logs = [tmp_path / "a", tmp_path / "b"]
    for log in logs:
        log.mkdir()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = sweep(CONFIGS, partial(area, log=logs[0]), tmp_path / "there", dask=cluster.scheduler_address)
    here = sweep(CONFIGS, partial(area, log=logs[1]), tmp_path / "here", progress=False)
    assert [(row["config"], row["result"]) for row in there] == [(row["config"], row["result"]) for row in here]


def test_a_sweep_refuses_twins_and_no_process(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stands twice"):
        sweep([CONFIGS[0], CONFIGS[0]], partial(area, log=tmp_path), tmp_path)
    with pytest.raises(ValueError, match="jobs = 0"):
        sweep(CONFIGS, partial(area, log=tmp_path), tmp_path, jobs=0)


@pytest.mark.parametrize("content", ["", "{}", '{"config": {"side": 2.0, "seed": 0}, "result": {}}'])
def test_a_file_of_another_run_is_not_taken_for_this_one(tmp_path: Path, content: str) -> None:
    (tmp_path / f"{digest(CONFIGS[0])}.json").write_text(content)
    with pytest.raises(ValueError, match="is not the run of"):
        sweep(CONFIGS[:1], partial(area, log=tmp_path), tmp_path, progress=False)


def test_a_stored_sweep_is_read_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    rows = sweep(CONFIGS, partial(area, log=tmp_path), tmp_path, progress=False)
    store(tmp_path / "all.json", "make it", rows)
    assert load(tmp_path / "all.json", CONFIGS[::-1]) == rows[::-1]
    with pytest.raises(ValueError, match=r"lacks 1 runs, the first is Square.*make it"):
        load(tmp_path / "all.json", [*CONFIGS, Square(9.0)])
    with pytest.raises(ValueError, match="no stored sweep"):
        load(tmp_path / "none.json", CONFIGS)
    (tmp_path / "old.json").write_text('{"schema": 0, "command": "again"}')
    with pytest.raises(ValueError, match=r"schema 0.*again"):
        load(tmp_path / "old.json", CONFIGS)
