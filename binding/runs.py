"""Sweeps of long runs: each run is named by its configuration, stored as soon as it is done, and never made twice.

A configuration is a frozen dataclass of plain values, a run a function from it to plain data. Runs go through joblib, to
processes of this machine or to a Dask cluster.
"""

import hashlib
import importlib
import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from binding.files import write_json
from binding.numerics import device

SCHEMA = 1


def digest(config: Any) -> str:
    """A name that two different configurations do not share: the class and 16 hexadecimal digits of its values."""
    text = json.dumps(asdict(config), sort_keys=True, allow_nan=False)
    return f"{type(config).__name__.lower()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def provenance() -> dict[str, Any]:
    """Where a run is made: the commit of the code if there is one, versions, device, machine and threads."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    packages = {name: version(name) for name in ("binding", "numpy", "torch")}
    place = {"device": str(device()), "machine": platform.machine(), "threads": torch.get_num_threads()}
    return {"commit": asked.stdout.strip() or "unknown", "python": platform.python_version(), **packages, **place}


def sweep(
    configs: Sequence[Any],
    run: Callable[[Any], dict[str, Any]],
    folder: Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """All runs in the order of ``configs``, each {"config", "result", "provenance"}, kept in ``folder`` under its digest.

    A run that is kept is read, so a sweep that was stopped loses at most the runs in flight. ``jobs`` processes here, or the
    Dask cluster at ``dask`` (its workers see ``folder``). Raises ``ValueError`` for a configuration that stands twice, for fewer
    than one job, and if Dask is asked for and absent; what a run raises is raised here, after the finished ones are kept.
    """
    import joblib
    from tqdm.auto import tqdm

    names = [digest(config) for config in configs]
    if len(set(names)) < len(names):
        twice = next(config for config, name in zip(configs, names, strict=True) if names.count(name) > 1)
        raise ValueError(f"the configuration {twice} stands twice in the sweep")
    if jobs < 1:
        raise ValueError(f"jobs = {jobs}; give 1 process or more")
    task = partial(kept, run=run, folder=Path(folder))
    with backend(dask):
        if dask is not None:
            return list(joblib.Parallel(n_jobs=-1)(joblib.delayed(task)(config) for config in configs))
        found = joblib.Parallel(n_jobs=jobs, return_as="generator")(joblib.delayed(task)(config) for config in configs)
        return list(tqdm(found, total=len(configs), desc="runs", disable=not progress))


def kept(config: Any, run: Callable[[Any], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """One run: read from ``folder`` if it is there, else made and stored.

    Raises ``ValueError`` if the stored file is broken or belongs to another configuration.
    """
    path = folder / f"{digest(config)}.json"
    plain = json.loads(json.dumps(asdict(config)))
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["config"] == plain:
                return stored
        except (ValueError, KeyError, TypeError):
            pass
        raise ValueError(f"{path} is not the run of {config}; move it away and start again")
    made_with = provenance()  # before the run: the code may change while it lasts
    start, processor = time.perf_counter(), time.process_time()
    result = run(config)
    spent = {"seconds": round(time.perf_counter() - start, 1), "processor_seconds": round(time.process_time() - processor, 1)}
    found = {"config": plain, "result": result, "provenance": made_with | spent}
    write_json(path, found)
    return found


@contextmanager
def backend(dask: str | None) -> Iterator[None]:
    """joblib's processes on this machine, or the Dask cluster of a scheduler. Raises ``ValueError`` if Dask is absent."""
    if dask is None:
        yield
        return
    try:
        import joblib

        distributed = importlib.import_module("dask.distributed")
    except ImportError:
        raise ValueError(f"Dask is not installed, so nothing runs at {dask}; pip install 'dask[distributed]'") from None
    with distributed.Client(dask), joblib.parallel_config(backend="dask"):
        yield


def store(path: Path, command: str, runs: Sequence[dict[str, Any]]) -> None:
    """Write all runs of a sweep into one file, with the command that makes it again."""
    write_json(path, {"schema": SCHEMA, "command": command, "runs": list(runs)}, indent=None)


def load(path: Path, configs: Sequence[Any]) -> list[dict[str, Any]]:
    """The runs of a stored sweep, in the order of ``configs``.

    Raises ``ValueError`` if the file is missing, of another schema, or lacks a run of ``configs``, with the command to make it.
    """
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is no stored sweep ({error})") from None
    if stored.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {stored.get('schema')!r}, this code reads {SCHEMA}; run: {stored.get('command')}")
    rows = {json.dumps(row["config"], sort_keys=True): row for row in stored["runs"]}
    wanted = [json.dumps(asdict(config), sort_keys=True) for config in configs]
    missing = [config for config, key in zip(configs, wanted, strict=True) if key not in rows]
    if missing:
        raise ValueError(f"{path} lacks {len(missing)} runs, the first is {missing[0]}; run: {stored['command']}")
    return [rows[key] for key in wanted]
