"""Captions a second and peak memory: the swap-contrast rate by marks and DuckDB, against the same job in pandas.

The peer is what one would write first: split every caption with a regular expression, sort its words, group. It holds the corpus
in memory, about 2 GB a million, so it gets ``PEER`` captions at most and is compared by the caption. Each way runs in a process
of its own, so that its peak memory is its own. ``BINDING_BENCH_CAPTIONS`` sets the size of the corpus, a million unless set; the
book shows ten million, written by ``BINDING_BENCH_OUT=binding/data/runs/corpus-benchmark.json``. Run with ``make bench``; the
data are generated and deleted.
"""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from binding.synthetic import generated

N = int(os.environ.get("BINDING_BENCH_CAPTIONS", 1_000_000))
PEER = min(N, 2_000_000)
MEMORY = 512_000_000
BLOCK = 250_000

OURS = f"""
from binding.corpus import measure
report = measure([path], memory={MEMORY}, threads=1)
pairs = report.candidates.pairs
"""
PANDAS = """
import pandas as pd
words = pd.read_parquet(path)["caption"].str.findall("[A-Za-z0-9']+").map(lambda found: [w.lower() for w in found])
orders = pd.DataFrame({"order": words.map(" ".join), "bag": words.map(lambda found: " ".join(sorted(found)))})
n = orders.groupby(["bag", "order"]).size()
total, square = n.groupby("bag").sum(), (n**2).groupby("bag").sum()
pairs = int(((total**2 - square) // 2).sum())
"""
MEASURED = """
import json, resource, sys, time
path = sys.argv[1]
start, cpu = time.perf_counter(), time.process_time()
{job}
took, peak = resource.getrusage(resource.RUSAGE_SELF), 1024 if sys.platform == "linux" else 1
times = dict(seconds=time.perf_counter() - start, cpu=time.process_time() - cpu)
print(json.dumps(dict(pairs=pairs, peak=took.ru_maxrss * peak, **times)))
"""


def corpus(path: Path, n: int) -> Path:
    generator = np.random.default_rng(0)
    with pq.ParquetWriter(path, pa.schema([("caption", pa.string())])) as writer:
        for start in range(0, n, BLOCK):
            writer.write_table(pa.table({"caption": generated(min(BLOCK, n - start), generator, start=start)}))
    return path


def run(job: str, path: Path) -> dict[str, float]:
    script = MEASURED.format(job=job)
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_ratios_in_one_run(tmp_path: Path) -> None:
    """All of it in one run, ours before and after the peer: a busy neighbour cannot favour us both times."""
    small, whole = corpus(tmp_path / "small.parquet", PEER), corpus(tmp_path / "whole.parquet", N)
    print(f"\n{N:,} captions, {whole.stat().st_size / 1e6:,.0f} MB of Parquet, engine memory {MEMORY / 1e6:,.0f} MB")
    took = {}
    for name, job, path, n in (
        ("ours", OURS, whole, N),
        ("pandas", PANDAS, small, PEER),
        ("ours, small", OURS, small, PEER),
        ("ours again", OURS, whole, N),
    ):
        took[name] = run(job, path) | {"captions": n}
        row = took[name]
        times = f"{row['seconds']:7.1f} s, {row['cpu']:7.1f} s of processor, peak {row['peak'] / 1e6:7,.0f} MB"
        print(f"{name:12}{n:12,} captions in {times}, {row['cpu'] / n * 1e6:6.2f} µs each")
    each = {name: row["cpu"] / row["captions"] for name, row in took.items()}
    print(f"{each['pandas'] / max(each['ours'], each['ours again']):.1f} times faster than pandas by the caption", end=", ")
    print(f"{took['pandas']['peak'] / took['ours, small']['peak']:.1f} times less memory on the same {PEER:,} captions")
    assert took["ours, small"]["pairs"] == took["pandas"]["pairs"]
    assert took["ours"]["pairs"] == took["ours again"]["pairs"]
    if out := os.environ.get("BINDING_BENCH_OUT"):
        versions = {name: version(name) for name in ("binding", "duckdb", "pandas", "pyarrow", "numpy")}
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        plain = {"memory": MEMORY, "threads": 1, "ways": took, "provenance": machine | versions}
        Path(out).write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
