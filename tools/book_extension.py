"""The part of the site's configuration that needs code: vendored files, pages from their twins, repairs of the theme's HTML."""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "_vendor" / "site"
JUPYTERLAB = "http://localhost:8888/lab/tree/"

REPAIRS = (
    # sphinx-proof and sphinx-exercise give one id to every box of a page.
    (r' id="(?:proof|exercise|solution)-content"', ""),
    (
        r'<div class="proof admonition" id="proof">(\s*<p>)Proof\.',
        r'<div class="proof admonition proof-of">\1<span class="proof-word">Proof.</span>',
    ),
    (r'(<p class="admonition-title">Solution to)(<a [^>]*>) ', r"\1 \2"),
    # A browser may break the line between a formula and the comma after it.
    (
        r'([(\[“‘]*)(<span class="math notranslate nohighlight">[^<]*</span>)([-–.,;:!?)\]’”%]*)',
        r'<span class="nobreak">\1\2\3</span>',
    ),
    # MyST-NB's name for a fold hides the words that are seen on it.
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
)


def configure(app: Sphinx, config: Config) -> None:
    if not VENDOR.exists():
        raise ConfigError("the browser files are missing: run `make assets` first")
    # After Jupyter Book has looked for files that go onto every page: these are served, not loaded.
    config.html_static_path.append(str(VENDOR))
    config.exclude_patterns += [f"book/{twin.stem}.md" for twin in sorted((ROOT / "book").glob("*.ipynb"))]
    config.notfound_urls_prefix = os.environ.get("BOOK_PREFIX", "/")


def repair(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Better HTML in the body, and a third launch button: JupyterLab on the reader's machine."""
    body = context.get("body", "")
    for wrong, right in REPAIRS:
        body = re.sub(wrong, right, body)
    # A name in a table may break after a dot or an underscore (site.css), so that the column need not be as wide as the name.
    context["body"] = re.sub(r'<span class="pre">[^<]*', lambda code: re.sub(r"(?<=\w)([._/]+)(?=\w)", r"\1<wbr>", code[0]), body)
    for group in context.get("header_buttons", []):
        if group.get("label") == "launch-buttons":
            group["buttons"].append(
                {
                    "type": "link",
                    "text": "JupyterLab",
                    "tooltip": "Open in the JupyterLab that runs on this machine",
                    "icon": "fas fa-laptop-code",
                    "url": f"{JUPYTERLAB}{pagename}.ipynb",
                }
            )


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", configure)
    app.connect("html-page-context", repair, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
