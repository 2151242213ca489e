"""The swap-contrast rate of a caption corpus, counted exactly, in memory that a setting bounds, on one machine or a cluster.

Three passes. *Mark*: every caption gets the sum of one 64-bit number for each of its letters and digits. Captions with the same
words have the same letters, so they have the same mark; the converse may fail, and nothing relies on it. *Collect*: the captions
whose mark occurs twice or more are read again. *Count*: these are grouped by their words, compared as text. No hash is trusted.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from binding.captions import Shard, batches, decode, shards
from binding.contrast import clauses, expected_log, expected_pairs, poisson_interval, rate


def _letters() -> np.ndarray:
    table = np.zeros(256, np.uint64)
    for byte in b"abcdefghijklmnopqrstuvwxyz0123456789'":
        number = int.from_bytes(hashlib.blake2b(bytes([byte]), digest_size=8).digest(), "big")
        table[[byte, ord(chr(byte).upper())]] = number
    return table


LETTER = _letters()
"""The 64-bit number of each byte: the same for both cases of a letter, 0 for what belongs to no word."""
EXAMPLES_KEPT, ORDERS_KEPT = 100, 6
"""Most example groups, and most captions of one that are listed."""

GROUPS = """
CREATE TEMP TABLE tokens AS
    SELECT caption, lower(array_to_string(
        regexp_extract_all(caption, '[A-Za-z0-9'']+'), ' ')) AS words
    {own};
CREATE TEMP TABLE texts AS
    SELECT words, caption, count(*) AS n, array_to_string(
        list_sort(string_split(words, ' ')), ' ') AS bag
    FROM tokens GROUP BY words, caption;
CREATE TEMP TABLE kinds AS
    SELECT bag, words, form(caption) AS form,
        sum(n) AS n, min(caption) AS caption
    FROM texts SEMI JOIN (SELECT bag FROM texts GROUP BY bag
        HAVING min(words) < max(words)) USING (bag)
    GROUP BY ALL;
CREATE TEMP TABLE sums AS
    SELECT *, sum(n) OVER (PARTITION BY bag) AS b,
        sum(n) OVER (PARTITION BY bag, words) AS w,
        sum(n) OVER (PARTITION BY bag, form) AS f
    FROM kinds;
CREATE TEMP TABLE partners AS
    SELECT bag, caption, n, b - w AS orders, b - w - f + n AS swaps
    FROM sums;
"""
"""Captions by bag of words, by order and by form; then the partners of each: not the same order, and neither the same form."""

EXAMPLES = f"""
SELECT pairs, swaps, captions FROM (
    SELECT sum(n * orders) // 2 AS pairs, sum(n * swaps) // 2 AS swaps, min(caption) AS first,
        list((caption, n) ORDER BY n DESC, caption)[:{ORDERS_KEPT}] AS captions FROM partners GROUP BY bag)
ORDER BY swaps DESC, pairs DESC, first LIMIT {EXAMPLES_KEPT}
"""

Run = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[Any]]
"""Calls a function on every tuple of arguments, here or on a cluster, and gives the results as they come."""


@dataclass(frozen=True)
class Contrasts:
    """The candidates of one kind: how many groups of captions hold some, and c_d, how many captions have d ≥ 1 partners."""

    groups: int
    partners: dict[int, int]

    @property
    def captions(self) -> int:
        """Captions with a partner."""
        return sum(self.partners.values())

    @property
    def pairs(self) -> int:
        """½ Σ_d d c_d, the pairs of captions that are candidates of each other."""
        return sum(d * c for d, c in self.partners.items()) // 2


class Example(NamedTuple):
    """A group of captions with the same words: its pairs, those that are no reorderings, captions and how often each occurs."""

    pairs: int
    swaps: int
    orders: list[tuple[str, int]]


@dataclass(frozen=True)
class Report:
    """What :func:`measure` counted."""

    files: int
    captions: int
    missing: int
    """Records without a caption; they count nowhere."""
    wordless: int
    """Captions without a word of Latin letters or digits; they count as captions, and have no partner."""
    not_utf8: int
    """Captions with bytes that are no UTF-8; they count, and such a byte separates words."""
    candidates: Contrasts
    """The same words in another order."""
    swaps: Contrasts
    """Those of them that are no mere reorderings of clauses and phrases."""
    examples: list[Example] = field(default_factory=list)

    def batch(self, size: int, swaps: bool = True) -> dict[str, Any]:
        """What a batch of B captions holds: p, E m = (B − 1) p, pairs a batch, and bounds on E log(1 + m) in nats an example.

        ``exact`` is E log(1 + m) for a batch drawn from this very corpus, None if the corpus is smaller than the batch.
        """
        from binding.throttle import jensen_bound, linear_bound

        kind = self.swaps if swaps else self.candidates
        p = rate(kind.partners, self.captions)
        return {
            "batch": size,
            "partners": (size - 1) * p,
            "pairs": expected_pairs(size, p),
            "bound": min(linear_bound(size, p), jensen_bound(size, p)),
            "exact": expected_log(kind.partners, self.captions, size) if size <= self.captions else None,
        }

    def interval(self, swaps: bool = True, level: float = 0.95) -> tuple[float, float]:
        """The Poisson interval of the rate p, from the number of pairs found, cut off at 1."""
        kind = self.swaps if swaps else self.candidates
        low, high = poisson_interval(kind.pairs, level)
        all_pairs = self.captions * (self.captions - 1) / 2
        return low / all_pairs, min(1.0, high / all_pairs)

    def to_json(self, sizes: Sequence[int] = ()) -> dict[str, Any]:
        """Everything as plain values, with the rate, its interval and the batches of these sizes for each kind."""
        plain = asdict(self)
        for name, swaps in (("candidates", False), ("swaps", True)):
            kind = self.swaps if swaps else self.candidates
            plain[name] |= {
                "captions": kind.captions,
                "pairs": kind.pairs,
                "rate": rate(kind.partners, self.captions),
                "interval": list(self.interval(swaps)),
                "batches": [self.batch(size, swaps) for size in sizes],
            }
        plain["examples"] = [example._asdict() for example in self.examples]
        return plain


def from_json(plain: dict[str, Any]) -> Report:
    """The report that :meth:`Report.to_json` wrote, after a round through JSON or not."""
    kinds = {
        name: Contrasts(plain[name]["groups"], {int(d): c for d, c in plain[name]["partners"].items()})
        for name in ("candidates", "swaps")
    }
    counts = {name: plain[name] for name in ("files", "captions", "missing", "wordless", "not_utf8")}
    examples = [Example(e["pairs"], e["swaps"], [(text, n) for text, n in e["orders"]]) for e in plain["examples"]]
    return Report(**counts, candidates=kinds["candidates"], swaps=kinds["swaps"], examples=examples)


def table(report: Report, sizes: Sequence[int]) -> str:
    """The report as lines of text for people."""
    lines = [f"{_count(report.captions, 'caption')} in {_count(report.files, 'file')}"]
    for count, what in (
        (report.missing, "without a caption, left out"),
        (report.wordless, "without a Latin word, counted"),
        (report.not_utf8, "not UTF-8, counted"),
    ):
        lines += [f"{what}: {count:,}"] if count else []
    for title, kind, swaps in (
        ("Same words, another order", report.candidates, False),
        ("Of these, no mere reorderings", report.swaps, True),
    ):
        low, high = report.interval(swaps)
        found = f"{_count(kind.pairs, 'pair')} of {_count(kind.captions, 'caption')} in {_count(kind.groups, 'group')}"
        lines += ["", f"{title}:", found, f"rate p = {rate(kind.partners, report.captions):.3g}, 95 % {low:.2g} to {high:.2g}"]
        lines += [f"{'batch':>9}{'pairs':>10}{'nats: at most':>15}{'exactly':>11}"]
        for size in sizes:
            row = report.batch(size, swaps)
            exact = "–" if row["exact"] is None else f"{row['exact']:.3g}"
            lines += [f"{size:>9,}{row['pairs']:>10.3g}{row['bound']:>15.3g}{exact:>11}"]
    for example in report.examples:
        lines += ["", f"{_count(example.swaps, 'swap')} among {_count(example.pairs, 'pair')}:"]
        lines += [f"{count:>5,} × {' '.join(text.split())}" for text, count in example.orders]
    return "\n".join(lines)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def measure(
    files: Sequence[str | Path],
    *,
    column: str = "caption",
    work: str | Path | None = None,
    memory: int | None = None,
    threads: int | None = None,
    dask: str | None = None,
    parts: int = 1,
    examples: int = 5,
    progress: bool = False,
) -> Report:
    """Count all swap candidates among the captions of these files, exactly.

    ``work`` is a folder in which marks are kept: a run that was killed goes on from the shards it had marked, and marks only what
    changed. Without it nothing is kept. ``memory`` bounds the engine in bytes (``memory_budget()`` unless given), beside what
    Python and its libraries take. ``dask`` is the address of a scheduler, whose workers must see the files and ``work``; memory
    and threads (1 there unless given, all cores here) are then those of a worker. ``parts`` is into how many tasks the grouping
    is divided. The result is the same however the work is divided.

    Raises ``ValueError`` for what :func:`binding.captions.shards` refuses, for fewer than two captions, for a cluster without a
    folder, and for a memory below 64 MB.
    """
    if memory is None:
        from binding.numerics import memory_budget  # brings torch, which the workers of a cluster can do without

        memory = memory_budget()
    if memory < 64_000_000:
        raise ValueError(f"memory = {memory:,} bytes is too little to sort in; give 64 MB at least")
    if parts < 1 or examples < 0:
        raise ValueError(f"parts = {parts} and examples = {examples}; give at least 1 and at least 0")
    if dask and work is None:
        raise ValueError(f"the workers of {dask} exchange files: name a folder that all of them see as work")
    found = shards(files, column)
    with _folder(work, found, parts) as (kept, scratch), _runner(dask, progress) as run:
        engine = Engine(kept, scratch, memory, threads or (1 if dask else os.cpu_count() or 1), parts)
        tallies = list(run(engine.mark, [(shard,) for shard in found]))
        total = Tally(*(sum(column) for column in zip(*tallies, strict=True)))
        if total.captions < 2:
            raise ValueError(f"{total.captions} captions in the files given; a contrast needs two at least")
        list(run(engine.repeat, [(found, part) for part in range(parts)]))
        list(run(engine.collect, [(shard,) for shard in found]))
        counts = list(run(engine.count, [(found, part) for part in range(parts)]))
    candidates, swaps = _sum([count[0] for count in counts]), _sum([count[1] for count in counts])
    best = sorted((example for count in counts for example in count[2]), key=_rank)[:examples]
    return Report(len({shard.path for shard in found}), *total, candidates, swaps, best)


class Tally(NamedTuple):
    """What was met while marking."""

    captions: int
    missing: int
    wordless: int
    not_utf8: int


def marks(captions: Any) -> np.ndarray:
    """Σ LETTER[byte] mod 2⁶⁴ of each caption, ``pyarrow.BinaryArray`` of n → (n) uint64; equal for equal words in any order."""
    _, offsets, data = captions.buffers()
    ends = np.frombuffer(offsets, np.int32)[captions.offset : captions.offset + len(captions) + 1]
    raw = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    total = np.zeros(len(raw) + 1, np.uint64)
    np.take(LETTER, raw, out=total[1:], mode="clip")
    np.cumsum(total, out=total)
    upto = total[ends - ends[0]]
    return upto[1:] - upto[:-1]


@dataclass(frozen=True)
class Engine:
    """The passes, each a task for one shard or one part of the marks; what they exchange are files."""

    kept: str
    """The folder of the marks."""
    scratch: str
    """The folder of what only this run needs."""
    memory: int
    threads: int
    parts: int

    def mark(self, shard: Shard) -> Tally:
        """Write the marks of a shard, unless they are there, and say what was met."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        target = self._marks(shard)
        if not target.exists():
            part = target.with_suffix(".part")
            tally = np.zeros(4, np.int64)
            with pq.ParquetWriter(part, pa.schema([("mark", pa.uint64())]), compression="none", use_dictionary=False) as writer:
                for batch in batches(shard):
                    captions = batch.drop_null()
                    mark = marks(captions)
                    tally += (len(captions), batch.null_count, _wordless(captions, mark), decode(captions)[1])
                    writer.write_batch(pa.record_batch({"mark": mark}))
                writer.add_key_value_metadata({"tally": json.dumps(tally.tolist())})
            part.replace(target)
        return Tally(*json.loads(pq.read_metadata(target).metadata[b"tally"]))

    def repeat(self, found: Sequence[Shard], part: int) -> None:
        """Write the marks that occur twice or more, of those with mark mod parts = part."""
        own = f"FROM read_parquet({_names(map(self._marks, found))}) WHERE mark % {self.parts} = {part}"
        self._sql(f"COPY (SELECT mark {own} GROUP BY mark HAVING count(*) > 1) TO {_name(self._repeated(part))} (FORMAT parquet)")

    def collect(self, shard: Shard) -> None:
        """Read a shard again, and write its captions whose mark occurs twice or more."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        repeated = _names(self._repeated(part) for part in range(self.parts))
        own = f"(SELECT mark, file_row_number AS place FROM read_parquet({_name(self._marks(shard))}, file_row_number = true))"
        query = f"SELECT place FROM {own} SEMI JOIN read_parquet({repeated}) USING (mark) ORDER BY place"
        rows = self._sql(query).fetchnumpy()["place"]
        start = 0
        with pq.ParquetWriter(self._collected(shard), pa.schema([("caption", pa.string()), ("mark", pa.uint64())])) as writer:
            for batch in batches(shard) if len(rows) else ():
                captions = batch.drop_null()
                first, last = np.searchsorted(rows, [start, start + len(captions)])
                chosen = captions.take(pa.array(rows[first:last] - start))
                writer.write_batch(pa.record_batch({"caption": decode(chosen)[0], "mark": marks(chosen)}))
                start += len(captions)

    def count(self, found: Sequence[Shard], part: int) -> tuple[Contrasts, Contrasts, list[Example]]:
        """Group the collected captions of one part by their words: all candidates, those that are no reorderings, examples."""
        own = f"FROM read_parquet({_names(map(self._collected, found))}) WHERE mark % {self.parts} = {part}"
        connection = self._sql(GROUPS.format(own=own))
        kinds = []
        for kind in ("orders", "swaps"):
            groups = connection.execute(f"SELECT count(DISTINCT bag) FROM partners WHERE {kind} > 0").fetchone()[0]
            query = f"SELECT {kind}, sum(n) FROM partners WHERE {kind} > 0 GROUP BY {kind} ORDER BY {kind}"
            kinds.append(Contrasts(groups, dict(connection.execute(query).fetchall())))
        return kinds[0], kinds[1], [Example(*row) for row in connection.execute(EXAMPLES).fetchall()]

    def _sql(self, query: str) -> Any:
        """The answer of a fresh engine, which spills to the scratch folder beyond its memory."""
        import duckdb

        spill = str(Path(self.scratch) / "spill")
        limits: dict[str, Any] = {
            "memory_limit": f"{self.memory // 1_000_000}MB",
            "threads": self.threads,
            "temp_directory": spill,
        }
        connection = duckdb.connect(config=limits | {"preserve_insertion_order": False})
        connection.execute("SET enable_progress_bar = false")  # it would write into what a command prints
        connection.create_function("form", _form, ["VARCHAR"], "VARCHAR")
        return connection.execute(query)

    def _marks(self, shard: Shard) -> Path:
        return Path(self.kept) / f"{shard.key}.marks.parquet"

    def _repeated(self, part: int) -> Path:
        return Path(self.scratch) / f"repeated-{part}.parquet"

    def _collected(self, shard: Shard) -> Path:
        return Path(self.scratch) / f"{shard.key}.captions.parquet"


def _name(path: Path) -> str:
    """A file as a literal of the query."""
    return "'" + str(path).replace("'", "''") + "'"


def _names(paths: Iterable[Path]) -> str:
    return "[" + ", ".join(map(_name, paths)) + "]"


def _form(caption: str) -> str:
    """The clauses of a caption as one text: | and / stand in no word."""
    return "|".join("/".join(phrases) for phrases in clauses(caption))


def _wordless(captions: Any, mark: np.ndarray) -> int:
    """How many have no word; a mark of 0 says so, but for chance, so look."""
    empty = captions.take(np.flatnonzero(mark == 0)).to_pylist()
    return sum(not LETTER[list(caption)].any() for caption in empty)


def _sum(contrasts: Sequence[Contrasts]) -> Contrasts:
    partners: Counter[int] = Counter()
    for contrast in contrasts:
        partners.update(contrast.partners)
    return Contrasts(sum(contrast.groups for contrast in contrasts), dict(sorted(partners.items())))


def _rank(example: Example) -> tuple[int, int, str]:
    return -example.swaps, -example.pairs, min(text for text, _ in example.orders)


@contextmanager
def _folder(work: str | Path | None, found: Sequence[Shard], parts: int) -> Iterator[tuple[str, str]]:
    """The folder of the marks and the one of this run; the second goes at the end, the first if no folder was named."""
    with tempfile.TemporaryDirectory(prefix="binding-") as temporary:
        kept = Path(temporary) if work is None else Path(work)
        if kept.exists() and not kept.is_dir():
            raise ValueError(f"{kept} is a file; name a folder for the marks")
        run = hashlib.sha256(repr((parts, [shard.key for shard in found])).encode()).hexdigest()[:24]
        scratch = kept / f"run-{run}"
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            yield str(kept.resolve()), str(scratch.resolve())
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _runner(address: str | None, progress: bool) -> Iterator[Run]:
    """Runs tasks one after another here, or on the cluster of this address."""
    from tqdm import tqdm

    if address is None:

        def here(task: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
            return (task(*item) for item in tqdm(items, desc=task.__name__, disable=not progress))

        yield here
        return
    from dask.distributed import Client, as_completed

    with Client(address) as client:

        def there(task: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
            futures = client.map(task, *zip(*items, strict=True), pure=False)
            for future in tqdm(as_completed(futures), desc=task.__name__, total=len(items), disable=not progress):
                yield future.result()

        yield there
