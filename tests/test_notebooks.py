"""Pages and twins: what makes a twin stale, what does not, and that the committed ones are in step."""

import importlib.util
import shutil
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
HEADER = (ROOT / "book" / "setting.md").read_text(encoding="utf-8").split("\n# ")[0]
PAGE = HEADER + "\n# Demo\n\nA word.\n\n```{code-cell}\nfrom binding import upper\n\nupper.two()\n```\n"


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of one page over a package of two modules, a data file and a ledger."""
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    package, pages = tmp_path / "binding", tmp_path / "book"
    (package / "data" / "claims").mkdir(parents=True)
    pages.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lower.py").write_text("NAME = 'table.txt'\n\ndef one():\n    return 1\n")
    (package / "upper.py").write_text("from binding.lower import one\n\ndef two():\n    return 2 * one()\n")
    (package / "other.py").write_text("")
    (package / "data" / "table.txt").write_text("1")
    (package / "data" / "claims" / "demo.toml").write_text('[[claim]]\nid = "demo.used"\n[[claim]]\nid = "demo.unused"\n')
    (pages / "demo.md").write_text(PAGE)
    for name, value in {"ROOT": tmp_path, "BOOK": pages, "PACKAGE": package}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return module


def run(module, *arguments, monkeypatch):
    monkeypatch.setattr(module.sys, "argv", ["notebooks.py", *arguments])
    return module.main()


@pytest.fixture
def executed(book, monkeypatch):
    assert book.state(book.BOOK / "demo.md") == "no twin"
    assert run(book, "--check", monkeypatch=monkeypatch) == 1
    assert run(book, monkeypatch=monkeypatch) == 0
    assert run(book, "--check", monkeypatch=monkeypatch) == 0
    return book


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_page_is_executed_once(executed):
    twin = nbformat.read(executed.BOOK / "demo.ipynb", as_version=4)
    assert [cell.outputs[0].data["text/plain"] for cell in twin.cells if cell.cell_type == "code"] == ["2"]
    assert executed.state(executed.BOOK / "demo.md") == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "state"),
    [
        ("book/demo.md", "A word.", "Another word.", "text"),
        ("book/demo.md", "upper.two()", "upper.two() + 1", "stale: its code changed"),
        ("binding/upper.py", "2 *", "3 *", "stale: something it imports changed"),
        ("binding/lower.py", "return 1", "return 5", "stale: something it imports changed"),
        ("binding/data/table.txt", "1", "2", "stale: something it imports changed"),
    ],
)
def test_what_a_change_does(executed, file, old, new, state):
    edit(executed.ROOT / file, old, new)
    assert executed.state(executed.BOOK / "demo.md") == state


def test_an_unrelated_module_leaves_the_twin_alone(executed):
    (executed.PACKAGE / "other.py").write_text("x = 1")
    assert executed.state(executed.BOOK / "demo.md") == ""


def test_only_the_claims_of_the_page_count(book, monkeypatch):
    edit(book.BOOK / "demo.md", "upper.two()", 'upper.two(); name = "demo.used"')
    assert run(book, monkeypatch=monkeypatch) == 0
    claims = book.PACKAGE / "data" / "claims" / "demo.toml"
    edit(claims, 'id = "demo.unused"', 'id = "demo.unused"\nkind = "exact"')
    assert book.state(book.BOOK / "demo.md") == ""
    edit(claims, 'id = "demo.used"', 'id = "demo.used"\nkind = "exact"')
    assert book.state(book.BOOK / "demo.md") == "stale: something it imports changed"


def test_new_text_keeps_the_outputs(executed, monkeypatch):
    edit(executed.BOOK / "demo.md", "A word.", "Another word.")
    monkeypatch.setattr(executed, "execute", lambda page: pytest.fail("executed"))
    assert run(executed, monkeypatch=monkeypatch) == 0
    twin = nbformat.read(executed.BOOK / "demo.ipynb", as_version=4)
    assert "Another word." in twin.cells[0].source
    assert twin.cells[1].outputs[0].data["text/plain"] == "2"


def test_a_failing_cell_leaves_the_twin_as_it_was(executed, monkeypatch, capsys):
    before = (executed.BOOK / "demo.ipynb").read_bytes()
    edit(executed.BOOK / "demo.md", "upper.two()", "1 / 0")
    assert run(executed, monkeypatch=monkeypatch) == 1
    assert "demo.md failed" in capsys.readouterr().err
    assert (executed.BOOK / "demo.ipynb").read_bytes() == before


def test_a_twin_without_a_page_is_found(executed, monkeypatch, capsys):
    shutil.copy(executed.BOOK / "demo.ipynb", executed.BOOK / "gone.ipynb")
    assert run(executed, "--check", monkeypatch=monkeypatch) == 1
    assert "gone.ipynb: no page of this name" in capsys.readouterr().out


def test_an_unknown_page_is_named(book, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(book, "nowhere", monkeypatch=monkeypatch)
    assert "no page nowhere; there are: demo" in capsys.readouterr().err


def test_widget_ids_do_not_change_from_run_to_run(book, monkeypatch):
    edit(
        book.BOOK / "demo.md", "upper.two()", "import ipywidgets\n\nipywidgets.VBox([ipywidgets.HTML('a'), ipywidgets.HTML('b')])"
    )
    texts = []
    for _ in range(2):
        assert run(book, "all", monkeypatch=monkeypatch) == 0
        texts.append([line for line in (book.BOOK / "demo.ipynb").read_text().splitlines() if '"seconds"' not in line])
    assert texts[0] == texts[1]
    assert any("IPY_MODEL_" in line for line in texts[0])


def test_the_committed_twins_are_in_step(monkeypatch):
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {page.stem: module.state(page) for page in module.pages()} == {page.stem: "" for page in module.pages()}
    assert len(module.pages()) >= 5
