"""The command ``binding sugarcrepe``: what it measures, writes, prints and refuses, with and without images."""

from pathlib import Path

import numpy as np
import pytest
from test_dual import folder as folder
from test_sugarcrepe import DATA, Drawn
from test_sugarcrepe import items as items

from binding import sugarcrepe
from binding.cli import main
from binding.dual import both_towers
from binding.sugarcrepe import Item


def test_the_command_measures_writes_and_prints_what_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, items: tuple[Item, ...]
) -> None:
    """On items whose captions a stored encoder knows; the published counts stand in the table."""
    few = [item for item in items if item.subset == "swap_obj"][:20]
    captions = sorted({c for item in few for c in (item.caption, item.negative)})
    np.savez(tmp_path / "x.npz", captions=np.array(captions), embeddings=Drawn(0)(captions).astype(np.float32))
    monkeypatch.setattr(sugarcrepe, "load", lambda folder: tuple(few))
    out = tmp_path / "run.json"
    assert main(["sugarcrepe", str(tmp_path / "x.npz"), "--data", str(DATA), "--out", str(out)]) == 0
    printed, warned = capsys.readouterr()
    run = sugarcrepe.read_run(out)
    assert run.provenance["model"] == str(tmp_path / "x.npz") and run.provenance["seconds"] >= 0
    name, n, d, pure, *_ = printed.splitlines()[1].split()
    assert (name, int(n), int(pure)) == ("swap_obj", 20, sum(item.pure for item in few))
    assert abs(float(d) - run.d.mean()) <= 0.5e-4 + 1e-5
    assert warned == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--data"),
        (["--data", "nowhere"], "--download"),
        (["--data", "nowhere", "--out", "run.npz"], "does not end in .json"),
    ],
)
def test_the_command_refuses_early(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BINDING_SUGARCREPE", raising=False)
    assert main(["sugarcrepe", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_model_without_an_image_tower_gets_no_images(capsys: pytest.CaptureFixture[str], items: tuple[Item, ...]) -> None:
    assert main(["sugarcrepe", "minilm", "--data", str(DATA), "--images", str(DATA)]) == 2
    assert "has no image tower" in capsys.readouterr().err


def test_the_command_saves_the_margin_of_every_item(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = sugarcrepe.load(folder, ["swap_obj"], published=False)
    monkeypatch.setattr(sugarcrepe, "load", lambda _: items)
    out = tmp_path / "run.json"
    arguments = ["sugarcrepe", str(folder), "--data", str(folder), "--out", str(out), "--images"]
    assert main([*arguments, str(tmp_path)]) == 2
    assert "lacks 2 of 2 images" in capsys.readouterr().err and not out.exists()
    assert main([*arguments, str(folder)]) == 0
    assert "Image: the image." in capsys.readouterr().out
    run = sugarcrepe.read_run(out)
    expected = sugarcrepe.measure(items, *both_towers(str(folder)), folder)
    # Written with six digits, and computed twice in the same way.
    assert (np.abs(run.margin - expected.margin) <= 5e-6 * np.abs(expected.margin)).all()
    assert run.provenance["image"] == "the image"
