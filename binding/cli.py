"""``binding``: the encoder of the book on the command line."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from binding import __version__

TABLE = 20
"""Most captions whose distances are printed as a table."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 if it did what was asked, 2 with one line on stderr if the input was bad."""
    arguments = _parser().parse_args(argv)
    try:
        return _encode(arguments)
    except (ValueError, OSError) as error:
        print(f"binding: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="binding", description="The helper package of 'The Limits of Binding in Dual Encoders'."
    )
    parser.add_argument("--version", action="version", version=f"binding {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    encode = commands.add_parser(
        "encode",
        help="embed captions offline and print how far apart they are",
        description="Embeds captions with all-MiniLM-L6-v2 and prints how far apart they are, from 0 (equal) to 2 (opposite).",
    )
    encode.add_argument("captions", nargs="*", metavar="CAPTION")
    encode.add_argument("--file", type=Path, help="a UTF-8 text file with one caption a line; blank lines are skipped")
    encode.add_argument("--out", type=Path, help="write captions and embeddings to this .npz file")
    encode.add_argument("--force", action="store_true", help="let --out replace a file")
    encode.add_argument("--json", action="store_true", help="print captions and distances as JSON")
    return parser


def _encode(arguments: argparse.Namespace) -> int:
    captions = [*arguments.captions, *_lines(arguments.file)]
    if not captions:
        raise ValueError("no caption given; name one or more, or a file with --file")
    if arguments.out is not None:
        _check_out(arguments.out, arguments.force)
    from binding.encoders import SHA256, distances, minilm, save_npz

    x = minilm()(captions)
    if arguments.out is not None:
        save_npz(arguments.out, captions=np.array(captions), embeddings=x, weights_sha256=np.array(SHA256))
    if arguments.json:
        between = np.round(distances(x), 6).tolist()
        print(json.dumps({"weights_sha256": SHA256, "captions": captions, "distances": between}, ensure_ascii=False))
    elif len(captions) <= TABLE:
        print(_table(captions, distances(x)))
    else:
        print(f"{len(captions)} captions encoded; more than {TABLE} make no table, use --json or --out")
    return 0


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from None


def _check_out(path: Path, force: bool) -> None:
    if path.suffix != ".npz":
        raise ValueError(f"--out {path} does not end in .npz; embeddings are written as a numpy archive")
    if path.is_dir():
        raise ValueError(f"--out {path} is a folder; name a file in it")
    if path.exists() and not force:
        raise ValueError(f"{path} exists; choose another name, or replace it with --force")


def _table(captions: Sequence[str], between: np.ndarray) -> str:
    head = [f"{index:>3}  {caption}" for index, caption in enumerate(captions, 1)]
    columns = "     " + "".join(f"{index:>7}" for index in range(1, len(captions) + 1))
    rows = [f"{index:>3}  " + "".join(f"{d:>7.3f}" for d in row) for index, row in enumerate(between, 1)]
    return "\n".join([*head, "", columns, *rows])
