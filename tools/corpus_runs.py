"""Measure the caption corpora of the chapter on corpora and store what was found, with its provenance, in binding/data/runs.

    corpus_runs.py FOLDER     FOLDER holds the JSON files of SugarCrepe as published

Stored are counts, a few captions as examples, versions and seconds; no data set.
"""

import importlib.metadata
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

from binding.corpus import measure

RUNS = Path(__file__).resolve().parent.parent / "binding" / "data" / "runs"
BATCHES = (256, 4096, 32768)


def corpora(folder: Path) -> dict[str, list[str]]:
    """The captions of COCO that SugarCrepe asks about, and the same with the false captions that its authors wrote.

    Raises ``ValueError`` if the folder holds none of its files.
    """
    items = [item for file in sorted(folder.glob("*_*.json")) for item in json.loads(file.read_text(encoding="utf-8")).values()]
    if not items:
        raise ValueError(f"{folder} has no file such as swap_att.json; give the folder 'data' of SugarCrepe")
    true = {item["caption"] for item in items}
    return {"coco": sorted(true), "sugarcrepe": sorted(true | {item["negative_caption"] for item in items})}


def report(captions: list[str], folder: Path) -> dict:
    """What the captions hold, and the versions and seconds that it took."""
    file = folder / "captions.jsonl"
    file.write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions), encoding="utf-8")
    start = time.perf_counter()
    plain = measure([file]).to_json(BATCHES)
    versions = {name: importlib.metadata.version(name) for name in ("binding", "duckdb", "pyarrow", "numpy")}
    provenance = {"python": platform.python_version(), **versions, "seconds": round(time.perf_counter() - start, 2)}
    return plain | {"provenance": provenance}


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    RUNS.mkdir(exist_ok=True)
    for name, captions in corpora(Path(sys.argv[1])).items():
        with tempfile.TemporaryDirectory() as folder:
            plain = report(captions, Path(folder))
        text = json.dumps(plain, ensure_ascii=False, indent=1) + "\n"
        part = RUNS / f"corpus-{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(RUNS / f"corpus-{name}.json")
        print(f"{name}: {plain['captions']:,} captions, {plain['candidates']['pairs']} pairs, {plain['swaps']['pairs']} swaps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
