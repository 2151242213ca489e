"""The notation page is the single source: its names import, its symbols are unique, and no displayed formula is missing."""

import importlib
import inspect
import re
from typing import Any, NamedTuple

import pytest
from conftest import ROOT, tool
from test_skeleton import FLOORS

MATHEMATICS = FLOORS[1] | {"scenes"}
EXEMPT = re.compile(r"check_|rounding$")
FORMULA = re.compile(r"[⟨Σ∏√‖⌊∑]|<\w+, |\) = |= \(")
"""What makes the first paragraph of a docstring state a formula."""


class Row(NamedTuple):
    symbol: str
    meaning: str
    shape: str
    code: str
    page: str


def rows() -> list[Row]:
    lines = [line for line in (ROOT / "book" / "notation.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines[2:]]


def named() -> list[str]:
    """The names of the code column, which stand below ``binding``."""
    return [f"binding.{row.code.strip('`')}" for row in rows() if row.code != "–"]


def imported_by_pages() -> list[str]:
    """Modules of mathematics that a page imports."""
    notebooks = tool("notebooks")
    found = set()
    for page in notebooks.pages():
        for cell in notebooks.code_of(notebooks.jupytext.read(page)):
            found |= {path.stem for path in notebooks.imported_modules(notebooks.python_only(cell))}
    return sorted(found & MATHEMATICS)


def formulas(module: str) -> list[str]:
    """Public functions of a module whose documentation states a formula in its first paragraph."""
    members = inspect.getmembers(importlib.import_module(f"binding.{module}"), inspect.isfunction)
    own = [(name, f) for name, f in members if f.__module__ == f"binding.{module}" and not name.startswith("_")]
    first = {name: (inspect.getdoc(f) or "").split("\n\n")[0] for name, f in own if not EXEMPT.match(name)}
    return [f"binding.{module}.{name}" for name, text in first.items() if FORMULA.search(text)]


def test_the_table_is_read() -> None:
    assert len(rows()) > 40
    assert all(cell for row in rows() for cell in row)


def test_symbols_are_unique() -> None:
    symbols = [re.sub(r"\s|\\,|\\ ", "", row.symbol) for row in rows()]
    assert sorted(symbols) == sorted(set(symbols))


@pytest.mark.parametrize("name", named())
def test_every_code_name_imports(name: str) -> None:
    """``binding.module.Name`` or ``binding.module.Name.part``, where a part of a class may be a field."""
    package, module, *parts = name.split(".")
    found: Any = importlib.import_module(f"{package}.{module}")
    for part in parts:
        assert hasattr(found, part) or part in getattr(found, "__dataclass_fields__", {}), f"{name}: no {part}"
        found = getattr(found, part, None)


def test_pages_exist() -> None:
    for row in rows():
        link = re.fullmatch(r"\{doc\}`[\w ]+ <([\w-]+)>`", row.page)
        assert link and (ROOT / "book" / f"{link[1]}.md").exists(), row


def test_pages_import_mathematics() -> None:
    assert {"scenes", "score", "ideal", "radon"} <= set(imported_by_pages())


@pytest.mark.parametrize("module", imported_by_pages())
def test_every_formula_stands_in_the_table(module: str) -> None:
    missing = set(formulas(module)) - set(named())
    assert not missing, f"no row in book/notation.md for {', '.join(sorted(missing))}"


def test_formulas_are_recognised() -> None:
    assert {"binding.score.score", "binding.score.ceiling", "binding.score.best_image"} <= set(formulas("score"))
    assert "binding.radon.check_points" not in formulas("radon")
