"""The part of the site's configuration that needs code: vendored files, pages built from their twins, the 404 page's address."""

import os
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "_vendor" / "site"


def configure(app: Sphinx, config: Config) -> None:
    if not VENDOR.exists():
        raise ConfigError("the browser files are missing: run `make assets` first")
    # After Jupyter Book has looked for files that go onto every page: these are served, not loaded.
    config.html_static_path.append(str(VENDOR))
    config.exclude_patterns += [f"book/{twin.stem}.md" for twin in sorted((ROOT / "book").glob("*.ipynb"))]
    config.notfound_urls_prefix = os.environ.get("BOOK_PREFIX", "/")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", configure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
