"""The book as one PDF: its order, its outline, its links, its numbers, and that its text can be found."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT, SITE, built_pages, need, tool
from pypdf import PdfReader

PAGES = {
    "a.html": "<h1>First<a class='headerlink'>#</a></h1><p>Every set of four points splits.</p>"
    "<p><a href='#end'>the end</a> <a href='b.html#lemma'>the lemma</a> <a href='c.html'>not printed</a></p>"
    "<p style='break-before:page' id='end'>The end of the first.</p>",
    "b.html": "<h1>Second</h1><p>Text.</p><h2 style='break-before:page' id='lemma'>A lemma</h2>"
    "<div class='admonition'><button class='toggle-button-hidden' onclick=\"this.nextSibling.hidden=false\">+</button>"
    "<p hidden>Inside the solution.</p></div>",
}


@pytest.fixture(scope="module")
def pdf() -> ModuleType:
    module = tool("pdf")
    need(module.chromium(), "Chromium is missing: `apt-get install chromium fonts-dejavu-core`")
    return module


@pytest.fixture(scope="module")
def joined(pdf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> PdfReader:
    """Two pages of two sheets each, printed as a book of two parts."""
    site = tmp_path_factory.mktemp("site")
    for name, body in PAGES.items():
        (site / name).write_text(f"<!DOCTYPE html><html lang=en><body><article>{body}</article>", encoding="utf-8")
    target = site / "out" / "book.pdf"
    assert pdf.print_book([pdf.Entry("", "a.html"), pdf.Entry("Theory", "b.html")], target, site) == 5
    assert [path.name for path in target.parent.iterdir()] == ["book.pdf"], "something half-written is left"
    return PdfReader(target)


def flat(reader: PdfReader, items: Any, depth: int = 0) -> list[tuple[int, str, int]]:
    """The outline as (depth, title, page)."""
    rows: list[Any] = []
    for item in items:
        if isinstance(item, list):
            rows += flat(reader, item, depth + 1)
        else:
            rows.append((depth, item.title, reader.get_destination_page_number(item)))
    return rows


def test_the_outline_follows_parts_pages_and_sections(joined: PdfReader) -> None:
    expected = [(0, "First", 1), (0, "Theory", 3), (1, "Second", 3), (2, "A lemma", 4)]
    assert flat(joined, joined.outline) == expected


def test_pages_keep_their_order_and_are_numbered_after_the_front(joined: PdfReader) -> None:
    texts = [page.extract_text() for page in joined.pages]
    assert len(texts) == 5
    assert "Contents" in texts[0] and "Second 3" in texts[0].replace("\n", " ")
    for number, (title, said) in enumerate(
        (("First", "four points"), ("First", "The end"), ("Second", "Text."), ("Second", "lemma")), 1
    ):
        assert said in texts[number]
        assert re.search(rf"{title}\s*{number}\b", texts[number]), texts[number]


def test_solutions_are_open(joined: PdfReader) -> None:
    assert "Inside the solution." in joined.pages[4].extract_text()


def test_links_lead_inside_the_book_or_to_the_published_site(joined: PdfReader) -> None:
    home = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    sheets = [page.indirect_reference for page in joined.pages]
    here, lemma, outside = (link.get_object() for link in joined.pages[1]["/Annots"])  # type: ignore[attr-defined]
    assert sheets.index(here["/Dest"][0]) == 2
    assert sheets.index(lemma["/Dest"][0]) == 4
    assert outside["/A"]["/URI"] == f"{home}c.html"


def test_the_file_says_what_it_is(joined: PdfReader) -> None:
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert joined.metadata is not None
    assert (joined.metadata.title, joined.metadata.author) == (config["title"], config["author"])
    assert all(abs(page.mediabox.width - 595.28) < 1 and abs(page.mediabox.height - 841.89) < 1 for page in joined.pages), (
        "not A4"
    )


def words(text: str) -> str:
    """Letters only, ligatures undone: what two ways to extract a text agree on."""
    return re.sub(r"[^a-z]", "", text.replace("ﬁ", "fi").replace("ﬂ", "fl").replace("ﬀ", "ff").lower())


def test_a_real_page_prints_its_theorem_and_none_of_its_buttons(pdf: ModuleType, tmp_path: Path) -> None:
    need(built_pages(), "the site is not built: run `make html`")
    soups = {page: BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser") for page in built_pages()}
    page = min(
        (page for page in soups if soups[page].select("div.proof.theorem")), key=lambda p: len(str(soups[p])), default=None
    )
    need(page, "no page has a theorem yet")
    target = tmp_path / "page.pdf"
    pdf.print_book([pdf.Entry("", page)], target)
    printed = "".join(sheet.extract_text() for sheet in PdfReader(target).pages)
    theorem = soups[page].select_one("div.proof.theorem section p")  # type: ignore[index]
    assert theorem is not None
    for phrase in theorem.find_all(string=True, recursive=False):
        assert words(phrase) in words(printed), phrase
    for button in ("Skip to main content", "Show code cell source", "Click to show", "Print to PDF"):
        assert button not in printed


def test_without_chromium_one_line_says_what_to_do(pdf: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    with pytest.raises(pdf.PdfError, match=r"Chromium is missing: install it"):
        pdf.print_book([pdf.Entry("", "a.html")], tmp_path / "book.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_is_not_built_is_named(pdf: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(pdf.PdfError, match=r"the site has no book/nowhere\.html: run `make html` first"):
        pdf.print_book([pdf.Entry("", "book/nowhere.html")], tmp_path / "book.pdf")
    assert list(tmp_path.iterdir()) == []


def test_the_order_is_that_of_the_table_of_contents(pdf: ModuleType, tmp_path: Path) -> None:
    toc = tmp_path / "_toc.yml"
    toc.write_text(
        "root: book/i\nparts:\n- caption: One\n  chapters:\n  - file: book/a\n    sections:\n    - file: book/b\n"
        "- caption: Two\n  chapters:\n  - file: book/c\n",
        encoding="utf-8",
    )
    assert [tuple(entry) for entry in pdf.entries(toc)] == [
        ("", "book/i.html"), ("One", "book/a.html"), ("One", "book/b.html"), ("Two", "book/c.html")
    ]  # fmt: skip
