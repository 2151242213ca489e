"""What the tests share: the Hypothesis profile, the built site on a local server, a browser that reports what goes wrong."""

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"

sys.path.insert(0, str(ROOT / "tools"))

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("ci")

CHROMIUM = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def tool(name: str) -> ModuleType:
    """A build step of tools/ as a module."""
    return importlib.import_module(name)


def built_pages() -> list[str]:
    """Addresses of the pages of the built site, below its root; the root itself only sends the reader on."""
    files = {*SITE.glob("*.html"), *SITE.glob("book/**/*.html")} - {SITE / "index.html"}
    return sorted(file.relative_to(SITE).as_posix() for file in files)


def need(present: object, what: str) -> None:
    """Go on, or skip with the reason; in CI, fail: there nothing may be skipped."""
    if not present:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the built site, with a slash at its end."""
    need((SITE / "404.html").exists(), "the site is not built: run `make html`")
    server = tool("serve").server(0, SITE)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


# One browser a module: its event loop must be gone before the same worker runs a notebook, whose client has a loop of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium of the system."""
    program = tool("pdf").chromium()
    need(program, "Chromium is missing: `apt-get install chromium fonts-dejavu-core`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM)
        yield chromium
        chromium.close()


class Visitor:
    """Opens pages of the site and writes down everything that a quiet page would not do."""

    def __init__(self, browser: Any, site: str) -> None:
        self.browser, self.site = browser, site
        self.problems: list[str] = []
        self._contexts: list[Any] = []

    def __call__(self, address: str, *, width: int = 1280, scripts: bool = True, status: int = 200) -> Any:
        """The page, loaded, in light mode. ``status`` is what the address must answer."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, reduced_motion="reduce", java_script_enabled=scripts
        )
        self._contexts.append(context)
        context.set_default_timeout(15_000)
        context.route("**/*", self._local_only)
        page = context.new_page()
        self._watch(page, self.site + address)
        answer = page.goto(self.site + address, wait_until="load")
        assert answer.status == status, f"{address} answers {answer.status}, expected {status}"
        return page

    def _watch(self, page: Any, target: str) -> None:
        def note(bad: bool, text: str) -> None:
            if bad:
                self.problems.append(text[:300])

        # A missing file is reported with its address below, so its line on the console says nothing new.
        page.on("console", lambda m: note(m.type == "error" and "status of 404" not in m.text, f"console: {m.text}"))
        page.on("pageerror", lambda error: note(True, f"script error: {error}"))
        page.on("response", lambda answer: note(answer.status >= 400 and answer.url != target, f"{answer.status}: {answer.url}"))
        # The browser itself gives up what a page asked for when it leads on at once, or cannot use without scripts.
        page.on("requestfailed", lambda r: note(r.failure not in ("net::ERR_ABORTED", "csp"), f"failed: {r.url} {r.failure}"))

    def _local_only(self, route: Any) -> None:
        if route.request.url.startswith((self.site, "data:", "blob:")):
            route.continue_()
        else:
            self.problems.append(f"leaves the site: {route.request.url[:300]}")
            route.abort()

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        self._contexts.clear()


def visiting(browser: Any, site: str) -> Iterator[Visitor]:
    visitor = Visitor(browser, site)
    yield visitor
    visitor.close()
    assert not visitor.problems, "\n".join(visitor.problems)


@pytest.fixture
def visit(browser: Any, site: str) -> Iterator[Callable[..., Any]]:
    """``visit(address)`` opens a page; at the end of the test, nothing may have gone wrong on it."""
    yield from visiting(browser, site)


@pytest.fixture(scope="module")
def visit_all(browser: Any, site: str) -> Iterator[Visitor]:
    """``visit`` for pages that several tests of a module share."""
    yield from visiting(browser, site)
