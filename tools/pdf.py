"""The whole book as one PDF: Chromium prints every page of the built site in the order of _toc.yml, pypdf joins them.

Solutions are open, a widget shows its first frame with the values of its sliders, links between pages lead to pages of the PDF.
"""

import html
import io
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urldefrag

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, Destination, NameObject, NumberObject
from serve import SITE, server

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "_build" / "limits-of-binding.pdf"
PAPER = {"format": "A4", "print_background": True, "prefer_css_page_size": True}

# Chromium keeps a place in the PDF for every name that a link of the page asks for, seen or not: ask for all of them.
READY = """async () => {
  const names = document.createElement("nav");
  names.hidden = true;
  names.append(...[...document.querySelectorAll("article [id]")].map((element) =>
    Object.assign(document.createElement("a"), {href: "#" + element.id, textContent: "."})));
  document.body.append(names);
  const views = document.querySelectorAll("script[type='application/vnd.jupyter.widget-view+json']").length;
  while (document.querySelectorAll(".binding-explorer img").length < views) await new Promise(requestAnimationFrame);
  document.querySelectorAll("button.toggle-button-hidden").forEach((button) => button.click());
  document.querySelectorAll("details:not(.hide)").forEach((fold) => { fold.open = true; });
  await window.MathJax?.startup?.promise;
  await Promise.all([document.fonts.ready, ...[...document.images].map((image) => image.decode().catch(() => null))]);
}"""


class Entry(NamedTuple):
    part: str
    page: str
    """Address below the root of the site."""


class Chapter(NamedTuple):
    entry: Entry
    title: str
    pdf: PdfReader
    start: int
    """The number of its first page, counted from 0 after the front pages."""


class PdfError(RuntimeError):
    """The book could not be printed; the message is one line for the reader."""


def chromium() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def entries(toc: Path = ROOT / "_toc.yml") -> list[Entry]:
    """The pages of the book in their order, each with the part it stands in."""

    def walk(node: Any, part: str) -> Iterator[Entry]:
        part = node.get("caption", part)
        for key in ("root", "file"):
            if key in node:
                yield Entry(part, f"{node[key]}.html")
        for key in ("parts", "chapters", "sections"):
            for child in node.get(key, []):
                yield from walk(child, part)

    return list(walk(yaml.safe_load(toc.read_text(encoding="utf-8")), ""))


def print_chapters(browser: Any, base: str, pages: Sequence[Entry]) -> list[Chapter]:
    chapters: list[Chapter] = []
    for entry in pages:
        page = browser.new_page(viewport={"width": 900, "height": 1200}, color_scheme="light")
        page.goto(base + entry.page, wait_until="load")
        page.evaluate(READY)
        title = page.locator("article h1").first.evaluate("heading => heading.firstChild.textContent.trim()")
        pdf = PdfReader(io.BytesIO(page.pdf(**PAPER, outline=True, tagged=True)))
        start = chapters[-1].start + len(chapters[-1].pdf.pages) if chapters else 0
        chapters.append(Chapter(entry, title, pdf, start))
        page.close()
    return chapters


def print_html(browser: Any, body: str) -> PdfReader:
    style = "@page{size:A4;margin:0}body{margin:0;font:11pt/1.5 'DejaVu Sans',sans-serif;color:#1a1a1a}"
    page = browser.new_page()
    page.set_content(f"<!DOCTYPE html><html lang=en><style>{style}</style><body>{body}")
    pdf = PdfReader(io.BytesIO(page.pdf(**PAPER)))
    page.close()
    return pdf


def front(title: str, author: str, chapters: Sequence[Chapter]) -> str:
    """The title and the contents."""
    rows, part = [], ""
    for chapter in chapters:
        if chapter.entry.part != part:
            part = chapter.entry.part
            rows.append(f"<tr><td colspan=2 style='padding-top:1em'><b>{html.escape(part)}</b>")
        rows.append(f"<tr><td>{html.escape(chapter.title)}<td style='text-align:right'>{chapter.start + 1}")
    return (
        f"<div style='padding:30mm 25mm'><h1 style='font-size:28pt;line-height:1.2'>{html.escape(title)}</h1>"
        f"<p>{html.escape(author)}</p><h2 style='margin-top:20mm'>Contents</h2>"
        f"<table style='width:100%'>{''.join(rows)}</table></div>"
    )


def numbers(chapters: Sequence[Chapter]) -> str:
    """One empty sheet a page, with the chapter and the number at its foot."""
    sheet = (
        "<div style='height:297mm;position:relative;overflow:hidden;break-after:page;font-size:8.5pt;color:#555'>"
        "<div style='position:absolute;bottom:9mm;left:18mm;right:18mm;display:flex;justify-content:space-between'>"
        "<span>{title}</span><span>{number}</span></div></div>"
    )
    return "".join(
        sheet.format(title=html.escape(chapter.title), number=chapter.start + index + 1)
        for chapter in chapters
        for index in range(len(chapter.pdf.pages))
    )


def place(writer: PdfWriter, chapter: Chapter, offset: int, name: str) -> ArrayObject:
    """Where a name of this chapter stands in the joined book; its first page if Chromium kept no place for the name."""
    named = chapter.pdf.named_destinations.get("/" + name)
    number = chapter.pdf.get_destination_page_number(named) if named is not None else None
    page = writer.pages[offset + chapter.start + (number or 0)]
    top = page.mediabox[3] if named is None else named.top
    return ArrayObject([page.indirect_reference, NameObject("/XYZ"), NumberObject(0), top, NumberObject(0)])


def relink(writer: PdfWriter, chapters: Sequence[Chapter], offset: int, base: str, home: str) -> None:
    """Links to the printed pages lead inside the book, those to the rest of the site to where it is published."""
    printed = {base + chapter.entry.page: chapter for chapter in chapters}
    for chapter in chapters:
        for page in writer.pages[offset + chapter.start : offset + chapter.start + len(chapter.pdf.pages)]:
            for link in map(lambda reference: reference.get_object(), page.get("/Annots", [])):
                if isinstance(link.get("/Dest"), str):
                    link[NameObject("/Dest")] = place(writer, chapter, offset, link["/Dest"].removeprefix("/"))
                action = link["/A"] if "/A" in link else {}
                address, name = urldefrag(str(action.get("/URI", "")))
                if address in printed:
                    del link["/A"]
                    link[NameObject("/Dest")] = place(writer, printed[address], offset, name)
                elif address.startswith(base):
                    action[NameObject("/URI")] = type(action["/URI"])(home + str(action["/URI"]).removeprefix(base))


def outline(writer: PdfWriter, chapters: Sequence[Chapter], offset: int) -> None:
    """Parts, chapters and their sections."""
    parts: dict[str, Any] = {"": None}

    def add(items: Sequence[Any], chapter: Chapter, parent: Any) -> None:
        last = parent
        for item in items:
            if isinstance(item, Destination):
                number = chapter.pdf.get_destination_page_number(item) or 0
                last = writer.add_outline_item(
                    title=str(item.title).removesuffix("#"), page_number=offset + chapter.start + number, parent=parent
                )
            else:
                add(item, chapter, last)

    for chapter in chapters:
        part = chapter.entry.part
        if part not in parts:
            parts[part] = writer.add_outline_item(title=part, page_number=offset + chapter.start)
        add(chapter.pdf.outline, chapter, parts[part])


def join(browser: Any, chapters: Sequence[Chapter], base: str, config: dict[str, Any]) -> PdfWriter:
    writer = PdfWriter()
    cover = print_html(browser, front(config["title"], config["author"], chapters))
    for pdf in (cover, *(chapter.pdf for chapter in chapters)):
        writer.append(pdf, import_outline=False)
    offset = len(cover.pages)
    for page, sheet in zip(writer.pages[offset:], print_html(browser, numbers(chapters)).pages, strict=False):
        page.merge_page(sheet)
        page.compress_content_streams()
    relink(writer, chapters, offset, base, config["html"]["baseurl"])
    outline(writer, chapters, offset)
    writer.add_metadata({"/Title": config["title"], "/Author": config["author"], "/Creator": "The Limits of Binding"})
    writer.page_mode = "/UseOutlines"
    return writer


def print_book(pages: Sequence[Entry], target: Path = TARGET, site: Path = SITE) -> int:
    """Print these pages of the built site into one file; how many pages the file has. Nothing is left half-written."""
    program = chromium()
    if program is None:
        raise PdfError("Chromium is missing: install it (on Debian or Ubuntu, `apt-get install chromium fonts-dejavu-core`)")
    missing = [entry.page for entry in pages if not (site / entry.page).exists()]
    if missing or not pages:
        raise PdfError(f"the site has no {missing[0] if missing else 'pages'}: run `make html` first")
    from playwright.sync_api import sync_playwright

    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    serving = server(0, site)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            base = f"http://127.0.0.1:{serving.server_port}/"
            writer = join(browser, print_chapters(browser, base, pages), base, config)
            browser.close()
    finally:
        serving.shutdown()
        serving.server_close()
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    writer.write(part)
    os.replace(part, target)
    return len(writer.pages)


def main() -> int:
    try:
        count = print_book(entries())
    except PdfError as error:
        print(f"pdf: {error}", file=sys.stderr)
        return 1
    print(f"{TARGET.relative_to(ROOT)}: {count} pages, {TARGET.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
