"""Captions in files: Parquet, CSV, TSV, JSON lines and plain text, one or many, read in small portions of bytes.

Everything that can be wrong with the names, the files or the column is found before the first caption is read.
"""

import csv
import glob
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PORTION = 1 << 24
"""Bytes of text that are read at a time."""
ROWS = 1 << 14
"""Captions in a portion of a Parquet file."""
SHARD_ROWS = 1_000_000
"""A Parquet file is cut into shards of about so many captions; every other file is one shard."""
UTF8_MARK, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
READERS = {
    ".parquet": "_parquet",
    ".csv": "_table",
    ".tsv": "_table",
    ".jsonl": "_json_lines",
    ".ndjson": "_json_lines",
    ".txt": "_text",
}


@dataclass(frozen=True)
class Shard:
    """A file, or some row groups of a Parquet file: what is read in one go, and again in the same order."""

    path: str
    column: str
    row_groups: tuple[int, ...] = ()
    state: tuple[int, int] = (0, 0)
    """Size and time of the last change of the file, so that a changed file is another shard."""

    @property
    def key(self) -> str:
        """A name for what was made from this shard."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:24]


def shards(files: Sequence[str | Path], column: str = "caption") -> list[Shard]:
    """The shards of these files; a name with ``*``, ``?`` or ``[`` stands for the files that it matches, in order.

    Plain text needs no column: every line that is not blank is a caption. Raises ``ValueError`` for no file, a pattern that
    matches nothing, a name twice, an unknown ending, a missing or unreadable file, a missing column (naming those there are), and
    a column that holds no text.
    """
    paths = [path for name in files for path in _expand(str(name))]
    if not paths:
        raise ValueError("no file given; name files of captions or a pattern such as 'captions/*.parquet'")
    twice = sorted({path for path in paths if paths.count(path) > 1}) if len(set(paths)) < len(paths) else []
    if twice:
        raise ValueError(f"{twice[0]} is named twice; its captions would count as two")
    return [shard for path in paths for shard in _checked(path, column)]


def batches(shard: Shard) -> Iterator[Any]:
    """The captions of a shard in their order, as ``pyarrow.BinaryArray``; a null is a record without a caption.

    The bytes are as they stand in the file, valid UTF-8 or not. Raises ``ValueError`` that names the file where it breaks off.
    """
    import pyarrow as pa

    try:
        yield from globals()[READERS[Path(shard.path).suffix.lower()]](shard)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{shard.path} cannot be read: {_line(error)}") from None


def decode(captions: Any) -> tuple[Any, int]:
    """The captions as text, and how many were not UTF-8: in these every wrong byte becomes U+FFFD, and none is dropped."""
    import pyarrow as pa

    try:
        return captions.cast(pa.string()), 0
    except pa.ArrowInvalid:
        raw = captions.to_pylist()
        texts = [value.decode(errors="replace") for value in raw]
        return pa.array(texts, pa.string()), sum(text.encode() != value for text, value in zip(texts, raw, strict=True))


def _expand(name: str) -> list[str]:
    if not glob.has_magic(name) or Path(name).exists():
        return [name]
    found = sorted(path for path in glob.glob(name, recursive=True) if Path(path).is_file())
    if not found:
        raise ValueError(f"no file matches {name}")
    return found


def _checked(path: str, column: str) -> list[Shard]:
    ending = Path(path).suffix.lower()
    if ending not in READERS:
        raise ValueError(f"{path} ends in {ending or 'nothing'}; captions are read from {', '.join(READERS)}")
    try:
        with open(path, "rb") as file:
            head = next((line for line in iter(lambda: file.readline(PORTION), b"") if line.strip()), b"")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if head.startswith(UTF16_MARKS):
        raise ValueError(f"{path} is UTF-16; save it as UTF-8")
    status = Path(path).stat()
    shard = Shard(str(Path(path).resolve()), "" if ending == ".txt" else column, (), (status.st_size, status.st_mtime_ns))
    if ending == ".txt":
        return [shard]
    if ending == ".parquet":
        return _row_groups(shard, path)
    _need(column, _columns(ending, head, path), path)
    return [shard]


def _row_groups(shard: Shard, path: str) -> list[Shard]:
    """Shards of whole row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(shard.path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read: {_line(error)}") from None
    with file:
        schema, metadata = file.schema_arrow, file.metadata
    _need(shard.column, schema.names, path)
    kind = schema.field(shard.column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(
        check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    ):
        raise ValueError(f"{path}: the column {shard.column!r} holds {kind}, not text")
    runs: list[list[int]] = []
    rows = SHARD_ROWS
    for number in range(metadata.num_row_groups):
        if rows >= SHARD_ROWS:
            runs.append([])
            rows = 0
        runs[-1].append(number)
        rows += metadata.row_group(number).num_rows
    return [Shard(shard.path, shard.column, tuple(run), shard.state) for run in runs]


def _columns(ending: str, head: bytes, path: str) -> list[str]:
    """The names in the first line of a table, or the keys of the first JSON record."""
    first = head.removeprefix(UTF8_MARK).decode(errors="replace").rstrip("\r\n")
    if not first:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    if ending in (".csv", ".tsv"):
        return next(csv.reader([first], delimiter=_delimiter(ending)))
    try:
        record = json.loads(first)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise ValueError(f"{path}: its first line is no JSON object: {first[:60]}")
    return list(record)


def _need(column: str, columns: Sequence[str], path: str) -> None:
    if column not in columns:
        raise ValueError(f"{path} has no column {column!r}; it has {', '.join(columns)}")


def _parquet(shard: Shard) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(shard.path) as file:
        for batch in file.iter_batches(ROWS, list(shard.row_groups), columns=[shard.column]):
            yield batch.column(0).cast(pa.binary())


def _table(shard: Shard) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    reader = arrow_csv.open_csv(
        shard.path,
        arrow_csv.ReadOptions(block_size=PORTION, use_threads=False),
        arrow_csv.ParseOptions(delimiter=_delimiter(Path(shard.path).suffix.lower()), newlines_in_values=True),
        arrow_csv.ConvertOptions(
            include_columns=[shard.column], column_types={shard.column: pa.binary()}, strings_can_be_null=False
        ),
    )
    yield from (batch.column(0) for batch in reader)


def _json_lines(shard: Shard) -> Iterator[Any]:
    import pyarrow as pa

    number = 0
    for lines in _lines(shard.path):
        values = []
        for line in lines:
            number += 1
            if line.strip():
                values.append(_value(line, shard, number))
        yield pa.array(values, pa.binary())


def _value(line: bytes, shard: Shard, number: int) -> bytes | None:
    """The caption of one JSON record, with the bytes that are no UTF-8 as they stand in the file."""
    try:
        record = json.loads(line.decode(errors="surrogateescape"))
        value = record.get(shard.column)
    except (ValueError, AttributeError):
        raise ValueError(f"{shard.path}, line {number}: no JSON object") from None
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{shard.path}, line {number}: {shard.column!r} holds {json.dumps(value)[:60]}, not text")
    if value is None:
        return None
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # an escape such as \ud800 alone, which no UTF-8 can write
        return value.encode(errors="surrogatepass")


def _text(shard: Shard) -> Iterator[Any]:
    import pyarrow as pa

    for lines in _lines(shard.path):
        yield pa.array([line.rstrip(b"\r") for line in lines if line.strip()], pa.binary())


def _lines(path: str) -> Iterator[list[bytes]]:
    """The lines of a file, in portions; a line ends with \\n."""
    rest = b""
    with open(path, "rb") as file:
        file.seek(len(UTF8_MARK) if file.read(len(UTF8_MARK)) == UTF8_MARK else 0)
        while block := file.read(PORTION):
            *lines, rest = (rest + block).split(b"\n")
            yield lines
    if rest:
        yield [rest]


def _delimiter(ending: str) -> str:
    return "\t" if ending == ".tsv" else ","


def _line(error: BaseException) -> str:
    return str(error).splitlines()[0]
