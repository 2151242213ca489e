"""Write the parts of the ledger and status pages that come from what ran: book/_generated/{ledger,status}.md (git-ignored).

Nothing is measured here. A claim is shown as measured only if an executed twin stores its verdict.
"""

import html
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import nbformat

from binding.claims import MIME, Claim, ledger

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
TARGET = BOOK / "_generated"
SHOWN_VERSIONS = ("torch", "sentence-transformers", "numpy", "scipy", "matplotlib", "ipywidgets", "jupyter-book", "nbval")


class Measured(NamedTuple):
    page: str
    value: str


def twins() -> dict[str, nbformat.NotebookNode]:
    return {path.stem: nbformat.read(path, as_version=4) for path in sorted(BOOK.glob("*.ipynb"))}


def verdicts(notebook: nbformat.NotebookNode) -> Iterator[tuple[str, str]]:
    """The claims that this twin measured: id and value."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if MIME in output.get("data", {}):
                yield output["data"][MIME]["id"], output["data"][MIME]["measured"]


def measured_claims() -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for page, notebook in twins().items():
        for claim_id, value in verdicts(notebook):
            found.setdefault(claim_id, []).append(Measured(page, value))
    return found


def expectation(claim: Claim) -> str:
    """What the measurement must give, in words."""
    if claim.expected is None:
        return ""
    values = claim.expected if isinstance(claim.expected, list) else [claim.expected]
    text = ", ".join(str(value) for value in values)
    text = text if claim.relation == "=" else f"{'at most' if claim.relation == '<=' else 'at least'} {text}"
    return f"{text} ± {claim.tolerance:g}: {claim.tolerance_from}" if claim.tolerance else text


def claim_rows(claim: Claim, found: list[Measured]) -> str:
    rows = [("Statement", html.escape(claim.statement)), ("Source", html.escape(claim.source))]
    if claim.published:
        rows.append(("Published", html.escape(claim.published)))
    if claim.expected is not None:
        rows.append(("Expected here", html.escape(expectation(claim))))
    if found:
        for page, value in found:
            rows.append(("Measured", f'<strong>{html.escape(value)}</strong> on <a href="{page}.html">{page}</a>'))
    else:
        rows.append(("Measured", f"not measured here; to measure it: <code>{html.escape(claim.command)}</code>"))
    rows.append(("Held by", f"<code>{html.escape(claim.test)}</code>"))
    return "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)


def ledger_text() -> str:
    claims, found = ledger(), measured_claims()
    missing = [claim.id for claim in claims.values() if claim.kind != "published only" and claim.id not in found]
    if missing:
        raise ValueError(f"claims that no executed page measured: {', '.join(missing)}")
    count = sum(claim.id in found for claim in claims.values())
    counts = f"**{count}** were measured by the pages of this build; **{len(claims) - count}** are published only."
    text = [f"The ledger holds **{len(claims)}** claims. {counts}\n"]
    for chapter in dict.fromkeys(claim.chapter for claim in claims.values()):
        text.append(f"\n## {{doc}}`{chapter}`\n")
        for claim in claims.values():
            if claim.chapter == chapter:
                anchor = "claim-" + claim.id.replace(".", "-")
                badges = f'<span class="claim-mark">{claim.mark}</span> <span class="claim-mark">{claim.kind}</span>'
                head = f'<p class="claim-head"><code>{claim.id}</code> {badges}</p>'
                text.append(
                    f'<div class="claim-card" id="{anchor}">{head}<dl>{claim_rows(claim, found.get(claim.id, []))}</dl></div>\n'
                )
    return "\n".join(text)


def status_text() -> str:
    rows = ["| page | cells | seconds | claims | twin, kB |", "|---|--:|--:|--:|--:|"]
    total = 0.0
    for page, notebook in twins().items():
        cells = sum(cell.cell_type == "code" for cell in notebook.cells)
        seconds = notebook.metadata["binding"]["seconds"]
        total += seconds
        size = (BOOK / f"{page}.ipynb").stat().st_size // 1000
        rows.append(f"| {{doc}}`{page}` | {cells} | {seconds:.1f} | {len(list(verdicts(notebook)))} | {size} |")
    languages = {notebook.metadata["language_info"]["version"] for notebook in twins().values()}
    versions = ["| software | version |", "|---|---|", f"| Python (stored runs) | {', '.join(sorted(languages))} |"]
    versions += [f"| {name} (this build) | {version(name)} |" for name in SHOWN_VERSIONS]
    return "\n".join([*rows, "", f"All pages together took **{total:.0f} s**.", "", *versions, ""])


def main() -> int:
    TARGET.mkdir(exist_ok=True)
    for name, make in (("ledger", ledger_text), ("status", status_text)):
        try:
            text = make()
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        path = TARGET / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
