"""The command ``binding probe``: what it reads, prints, writes and refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from test_probes import PRIOR, channel

from binding import probes
from binding.cli import main
from binding.probe_data import split_rows
from binding.probes import binding_information


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("probe") / "Z.npz"
    o, z = channel(900, 0)
    tokens = torch.stack([z, 1 - z], 1)
    np.savez(path, Z=z.numpy(), O=o.numpy(), tokens=tokens.numpy())
    return path


def test_the_command_prints_what_the_call_gives(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, arguments = tmp_path / "report.json", ["probe", str(file), "--prior", "subsets:2x3:3", "--draws"]
    assert main([*arguments, "--json", "--out", str(out), "--work", str(tmp_path / "work")]) == 0
    printed, warned = capsys.readouterr()
    o, z = channel(900, 0)
    expected = binding_information(z, o, prior=PRIOR, split=split_rows(900), disjoint=False)
    assert json.loads(printed) == json.loads(json.dumps(expected.to_json())) == json.loads(out.read_text())
    assert warned == ""
    assert {path.stem for path in (tmp_path / "work").iterdir()} == set(expected.fits)
    assert main([*arguments, "--out", str(out)]) == 2
    assert "replace it with --force" in capsys.readouterr().err
    assert main(arguments) == 0
    table = capsys.readouterr().out
    for e in (expected.objects, expected.features, expected.binding_direct, expected.binding_difference):
        assert f"{e.value:7.2f}  [{e.low:6.2f}, {e.high:6.2f}]" in table
    assert f"quadratic probe, {expected.n_test} test rows" in table


@pytest.mark.parametrize("prior", ["upto:2x3:3", "balanced:2x3:2x2:3", "enumerated:2x3"])
def test_every_law_is_understood(prior: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from binding.information import Balanced

    o = Balanced((2, 3), (2, 2), 3).sample(400, torch.Generator().manual_seed(0))
    np.savez(tmp_path / "Z.npz", Z=o.numpy().astype(np.float32), O=o.numpy())
    assert main(["probe", str(tmp_path / "Z.npz"), "--prior", prior, "--draws", "--probe", "linear", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert 0 < report["objects"]["value"] <= report["entropy"] + 0.3


def test_shards_and_tokens(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    z = np.load(file)["Z"]
    np.save(tmp_path / "0.npy", z[:500])
    save_file({"z": torch.from_numpy(z[500:])}, tmp_path / "1.safetensors")
    shards = [str(tmp_path / "0.npy"), str(tmp_path / "1.safetensors")]
    arguments: Any = ["probe", str(file), "--prior", "subsets:2x3:3", "--draws", "--json"]
    assert main(arguments) == 0
    whole = json.loads(capsys.readouterr().out)
    assert main([*arguments, "--z", *shards]) == 0
    assert json.loads(capsys.readouterr().out) == whole
    assert main([*arguments, "--probe", "attention"]) == 0
    assert json.loads(capsys.readouterr().out)["probe"]["family"] == "attention"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--prior", "subsets:2x3:3"], "has the code of training row|too few"),
        (["--prior", "subsets:2x3:4", "--draws"], "row"),
        (["--prior", "subsets:2x3"], "is no law"),
        (["--prior", "subsets:2xb:3"], "--prior subsets:2xb:3"),
        (["--prior", "subsets:2x3:9"], "--prior subsets:2x3:9"),
        (["--prior", "enumerated:2x3"], "say --draws"),
        (["--prior", "subsets:2x3:3", "--draws", "--probe", "cubic"], "'cubic' is no probe"),
        (["--prior", "subsets:2x3:3", "--draws", "--seed", "-1"], "seed"),
        (["--prior", "subsets:2x3:3", "--out", "x.npz"], "does not end in .json"),
        (["--prior", "subsets:2x3:3", "--draws", "--z", "missing.npy"], "missing.npy"),
    ],
)
def test_bad_input_stops_before_training(
    arguments: list[str], said: str, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes._Run, "train", lambda *_: pytest.fail("trained"))
    if said.startswith("has the code"):
        monkeypatch.setattr("binding.probes.split_codes", lambda o, seed: split_rows(len(o), seed=seed))
    assert main(["probe", str(file), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("binding: ") and any(part in error for part in said.split("|"))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"O": np.full((900, 6), "1")}, "codes are of type <U1; every bit is the number 0 or 1"),
        ({"Z": np.full((900, 2), "a")}, "z is of type <U1; a probe reads real numbers"),
        ({"Z": np.ones((900, 2), complex)}, "z is of type complex128; a probe reads real numbers"),
        ({"Z": np.ones((2, 900))}, "z has 2 rows, the targets have 900"),
        ({"O": np.full((900, 6), np.nan)}, "codes hold nan in row 0"),
    ],
)
def test_arrays_of_another_kind_are_refused(
    arrays: dict[str, Any], said: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with np.load(file) as stored:
        np.savez(tmp_path / "Z.npz", **{**stored, **arrays})
    assert main(["probe", str(tmp_path / "Z.npz"), "--prior", "subsets:2x3:3", "--draws"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["npy", "cut", "empty"])
def test_files_that_are_no_npz_are_refused(kind: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "Z.npz"
    if kind == "npy":
        with path.open("wb") as out:
            np.save(out, np.ones((3, 3)))
    else:
        path.write_bytes(file.read_bytes()[: 5000 * (kind == "cut")])
    assert main(["probe", str(path), "--prior", "subsets:2x3:3", "--draws"]) == 2
    assert "is no .npz file of arrays" in capsys.readouterr().err


def test_a_file_that_is_none_and_one_that_lacks_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.npz").write_text("no")
    assert main(["probe", str(tmp_path / "x.npz"), "--prior", "subsets:2x3:3"]) == 2
    assert "is no .npz file of arrays" in capsys.readouterr().err
    np.savez(tmp_path / "y.npz", O=np.zeros((3, 6)))
    assert main(["probe", str(tmp_path / "y.npz"), "--prior", "subsets:2x3:3"]) == 2
    assert "has no array Z; it has O" in capsys.readouterr().err
