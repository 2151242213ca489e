"""Keep every page (book/x.md) and its executed twin (book/x.ipynb) in step.

    notebooks.py              execute the pages whose twin is stale, refresh the text of the others
    notebooks.py radon bag    the same for these pages; "all" executes every page
    notebooks.py --check      change nothing, list what is out of step, exit 1 if anything is

A twin is stale when one of these changed since it was executed: the code of the page, a module of binding/ that the page imports
(directly or through another), a data file that one of them names, a ledger row that the page measures.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
PACKAGE = ROOT / "binding"
CELL_SECONDS = 600
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def pages() -> list[Path]:
    """The pages that have cells, that is a jupytext header."""
    return sorted(page for page in BOOK.glob("*.md") if page.read_text(encoding="utf-8").startswith("---\njupytext:"))


def code_of(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def python_only(cell: str) -> str:
    """The cell without IPython's magic lines, so that ``ast`` can read it."""
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", cell, flags=re.M)


def imported_modules(source: str) -> set[Path]:
    """Files of binding/ that this source imports directly."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "binding" and rest:
                stem = PACKAGE.joinpath(*rest)
                candidates = (stem.with_suffix(".py"), stem / "__init__.py")
                found.update(path for path in candidates if path.exists())
    return found


def needed_files(code: list[str]) -> set[Path]:
    """The modules of binding/ behind this code, all the way down, and the data files that they or the code name."""
    sources = [python_only(cell) for cell in code]
    modules: set[Path] = set()
    new = set().union(*(imported_modules(source) for source in sources))
    while new:
        modules |= new
        new = set().union(*(imported_modules(path.read_text(encoding="utf-8")) for path in new)) - modules
    text = "\n".join([*sources, *(path.read_text(encoding="utf-8") for path in modules)])
    data = {
        path for path in (PACKAGE / "data").rglob("*") if path.is_file() and path.name in text and path.parent.name != "claims"
    }
    return modules | data


def measured_claims(code: list[str]) -> list[dict]:
    """The ledger rows whose id stands in this code, as literal text."""
    text = "\n".join(code)
    rows = [
        row
        for file in sorted((PACKAGE / "data" / "claims").glob("*.toml"))
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["claim"]
    ]
    return [row for row in rows if f'"{row["id"]}"' in text]


def digest(*parts: bytes) -> str:
    """A hash that depends on where one part ends and the next begins."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()[:16]


def fingerprint(code: list[str]) -> dict[str, str]:
    """What the outputs of this code depend on: the code itself, and everything it needs."""
    files = sorted(needed_files(code))
    needs = [part for path in files for part in (path.relative_to(ROOT).as_posix().encode(), path.read_bytes())]
    claims = json.dumps(measured_claims(code), sort_keys=True, ensure_ascii=False).encode()
    return {"code": digest(*(cell.encode() for cell in code)), "needs": digest(*needs, claims)}


def compose(page: Path, twin: nbformat.NotebookNode | None) -> nbformat.NotebookNode:
    """The notebook of a page, with the outputs of its twin (in the order of the code cells) if it has one."""
    notebook = jupytext.read(page)
    metadata = {key: notebook.metadata[key] for key in ("kernelspec",) if key in notebook.metadata}
    stored = [cell for cell in twin.cells if cell.cell_type == "code"] if twin else []
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{page.stem}-{number}"
        if cell.cell_type == "code" and stored:
            cell.outputs, cell.execution_count = stored[0].outputs, stored[0].execution_count
            stored = stored[1:]
    if twin:
        metadata |= {key: twin.metadata[key] for key in ("language_info", "widgets", "binding") if key in twin.metadata}
    notebook.metadata = nbformat.from_dict(metadata)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def steady_ids(notebook: nbformat.NotebookNode, page: Path) -> str:
    """The notebook as text, with widget ids made of the page and their order, so that a re-run changes no byte of them."""
    order = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    new = {old: digest(page.stem.encode(), str(number).encode()) * 2 for number, old in enumerate(order)}
    renamed = re.sub(r"[0-9a-f]{32}", lambda match: new.get(match[0], match[0]), nbformat.writes(notebook))
    return nbformat.writes(nbformat.reads(renamed, as_version=4))


def execute(page: Path) -> str:
    """Run a page and write its twin; nothing is written if a cell fails."""
    notebook = compose(page, None)
    start = time.perf_counter()
    NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(BOOK)}},
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
    ).execute()
    seconds = time.perf_counter() - start
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)
    notebook.metadata["binding"] = fingerprint(code_of(notebook)) | {"seconds": round(seconds, 1)}
    write(page.with_suffix(".ipynb"), steady_ids(notebook, page))
    return f"executed {page.name} in {seconds:.1f} s"


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    temporary.replace(path)


def state(page: Path) -> str:
    """ "" if page and twin are in step, else what is wrong: "no twin", "stale: …" or "text"."""
    path = page.with_suffix(".ipynb")
    if not path.exists():
        return "no twin"
    stored = path.read_text(encoding="utf-8")
    twin = nbformat.reads(stored, as_version=4)
    print_now = fingerprint(code_of(jupytext.read(page)))
    before = twin.metadata.get("binding", {})
    changed = [what for what in print_now if before.get(what) != print_now[what]]
    if changed:
        return "stale: " + " and ".join(
            {"code": "its code", "needs": "something it imports"}[what] + " changed" for what in changed
        )
    return "" if nbformat.writes(compose(page, twin)).rstrip("\n") + "\n" == stored else "text"


def main() -> int:
    parser = argparse.ArgumentParser(description="Keep pages and their executed twins in step.")
    parser.add_argument("pages", nargs="*", help="page names without .md, or 'all'")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if anything is out of step")
    arguments = parser.parse_args()
    names = [name for name in arguments.pages if name != "all"]
    unknown = sorted(set(names) - {page.stem for page in pages()})
    if unknown:
        parser.error(f"no page {', '.join(unknown)}; there are: {', '.join(page.stem for page in pages())}")
    chosen = [page for page in pages() if not names or page.stem in names]
    states = {page: "asked for" if "all" in arguments.pages and not arguments.check else state(page) for page in chosen}
    orphans = [twin for twin in BOOK.glob("*.ipynb") if twin.with_suffix(".md") not in pages()]
    if arguments.check:
        for page, wrong in states.items():
            if wrong:
                print(f"{page.name}: {wrong}; run `make notebooks PAGE={page.stem}` and commit the twin")
        for twin in orphans:
            print(f"{twin.name}: no page of this name; remove it")
        return 1 if orphans or any(states.values()) else 0
    for page, wrong in states.items():
        if wrong == "text":
            write(
                page.with_suffix(".ipynb"),
                nbformat.writes(compose(page, nbformat.read(page.with_suffix(".ipynb"), as_version=4))),
            )
            print(f"refreshed the text of {page.name}")
    os.environ.update(ONE_THREAD)
    todo = [page for page, wrong in states.items() if wrong not in ("", "text")]
    failed = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for page, job in [(page, pool.submit(execute, page)) for page in todo]:
            try:
                print(job.result(), flush=True)
            except CellExecutionError as error:
                failed += 1
                print(f"{page.name} failed, its twin is as it was:\n{error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
