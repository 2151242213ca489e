"""Every link of the built site leads somewhere: pages, anchors, files, and the launch buttons' notebooks."""

import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, unquote, urldefrag, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT, SITE, built_pages

PAGES = built_pages()
NOTEBOOKS = [page for page in PAGES if (ROOT / page).with_suffix(".ipynb").exists()]
LOCAL_JUPYTERLAB = "http://localhost:8888/lab/tree/"
ADDRESSES = {"a": "href", "link": "href", "area": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


def repository() -> str:
    return str(yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"])


@cache
def soup(page: str) -> BeautifulSoup:
    return BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser")


@cache
def ids(page: str) -> frozenset[str]:
    return frozenset(str(tag["id"]) for tag in soup(page).find_all(id=True))


def addresses(page: str) -> list[str]:
    """Everything that the page links to or loads, without data in line."""
    found = [str(tag[ADDRESSES[tag.name]]) for tag in soup(page).find_all(list(ADDRESSES)) if tag.has_attr(ADDRESSES[tag.name])]
    return [address for address in found if not address.startswith("data:")]


def target(page: str, path: str) -> Path:
    """The file behind a path as a browser on this page would ask for it."""
    base = SITE if path.startswith("/") else (SITE / page).parent
    found = (base / unquote(path.lstrip("/"))).resolve()
    return found / "index.html" if found.is_dir() else found


@pytest.mark.parametrize("page", PAGES)
def test_every_internal_link_leads_to_a_file_and_an_anchor(page: str) -> None:
    broken = []
    for address in addresses(page):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        path, fragment = urldefrag(address)
        file = target(page, urlsplit(path).path) if path else SITE / page
        if not file.is_relative_to(SITE.resolve()) or not file.is_file():
            broken.append(address)
        elif fragment and file.suffix == ".html" and unquote(fragment) not in ids(str(file.relative_to(SITE.resolve()))):
            broken.append(f"{address}: no such anchor")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("page", PAGES)
def test_links_to_the_world_are_encrypted(page: str) -> None:
    links = [str(tag["href"]) for tag in soup(page).find_all("a", href=True)]
    assert [link for link in links if link.startswith("http:") and not link.startswith(LOCAL_JUPYTERLAB)] == []


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_loaded_from_the_world(page: str) -> None:
    loading = [tag for tag in soup(page).find_all(list(ADDRESSES)) if tag.name != "a" and tag.get("rel") != ["canonical"]]
    outside = [str(tag)[:120] for tag in loading if urlsplit(str(tag.get(ADDRESSES[tag.name], ""))).netloc]
    assert outside == []


@pytest.mark.parametrize("page", PAGES)
def test_no_id_stands_twice(page: str) -> None:
    # The theme's search page holds the search form twice, once in the page and once in the box of Ctrl-K.
    known = {"search-input"} if page == "search.html" else set()
    counts = Counter(tag["id"] for tag in soup(page).find_all(id=True))
    assert {name for name, count in counts.items() if count > 1} - known == set()


def launch_links(page: str) -> dict[str, str]:
    buttons = soup(page).select(".dropdown-launch-buttons a[href]")
    return {button.get_text(strip=True): str(button["href"]) for button in buttons}


def notebook_behind(name: str, address: str) -> str:
    """The path in the repository of the notebook that a launch button opens."""
    parts = urlsplit(address)
    owner = urlsplit(repository()).path.strip("/")
    if name == "Colab":
        prefix = f"/github/{owner}/blob/main/"
        assert parts.netloc == "colab.research.google.com" and parts.path.startswith(prefix), address
        return parts.path.removeprefix(prefix)
    if name == "Binder":
        assert parts.netloc == "mybinder.org" and parts.path == f"/v2/gh/{owner}/main", address
        return parse_qs(parts.query)["urlpath"][0].removeprefix("lab/tree/")
    assert name == "JupyterLab" and address.startswith(LOCAL_JUPYTERLAB), address
    return address.removeprefix(LOCAL_JUPYTERLAB)


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_launch_buttons_open_this_pages_notebook(page: str) -> None:
    links = launch_links(page)
    assert set(links) == {"Binder", "Colab", "JupyterLab"}
    for name, address in links.items():
        path = notebook_behind(name, address)
        assert path == str(Path(page).with_suffix(".ipynb"))
        assert (ROOT / path).is_file()
    download = soup(page).select_one(".dropdown-download-buttons a[href$='.ipynb']")
    assert download is not None
    assert target(page, str(download["href"])).read_bytes() == (ROOT / Path(page).with_suffix(".ipynb")).read_bytes()


def test_the_repository_has_one_address() -> None:
    address = repository()
    pattern = re.compile(r"https://github\.com/[\w.-]+/limits-of-binding\b")
    places = [ROOT / name for name in ("README.md", "CITATION.cff", "CONTRIBUTING.md")] + sorted((ROOT / "book").glob("*.md"))
    for place in places:
        assert set(pattern.findall(place.read_text(encoding="utf-8"))) <= {address}, place.name
    for name in ("README.md", "CITATION.cff"):
        assert address in (ROOT / name).read_text(encoding="utf-8"), name
    baseurl = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    owner, repo = urlsplit(address).path.strip("/").split("/")
    assert baseurl == f"https://{owner}.github.io/{repo}/"


def test_every_page_installs_the_package_that_pyproject_names() -> None:
    name = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    for page in sorted((ROOT / "book").glob("*.ipynb")):
        text = page.with_suffix(".md").read_text(encoding="utf-8")
        assert f'"{name} @ git+{repository()}"' in text, f"{page.stem}: the first cell installs {name} on Colab"
