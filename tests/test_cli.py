"""The command line: what it prints, writes and refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import binding
from binding.cli import TABLE, main
from binding.encoders import SHA256, distances, minilm

CAPTIONS = ["a red car and a blue dog", "a blue car and a red dog", "ein roter Würfel"]


def test_the_installed_command_answers_and_stays_silent_on_stderr() -> None:
    command = Path(sys.executable).with_name("binding")
    done = subprocess.run([command, "encode", "--json", *CAPTIONS], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert json.loads(done.stdout)["captions"] == CAPTIONS


def test_version_is_printed_without_loading_torch() -> None:
    code = "import sys, binding.cli\ntry: binding.cli.main(['--version'])\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == [f"binding {binding.__version__}", "False"]


def test_json_states_the_distances_to_six_digits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--json", *CAPTIONS]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["captions"] == CAPTIONS
    assert answer["weights_sha256"] == SHA256
    assert np.abs(np.array(answer["distances"]) - distances(minilm()(CAPTIONS))).max() <= 0.5e-6 * (1 + 1e-9)
    assert err == ""


def test_the_table_names_each_caption_and_its_distances(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", *CAPTIONS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[:3]] == CAPTIONS
    printed = np.array([[float(cell) for cell in line.split()[1:]] for line in lines[-3:]])
    assert np.abs(printed - distances(minilm()(CAPTIONS))).max() <= 0.5e-3 * (1 + 1e-9)


def test_a_file_gives_the_same_captions_and_blank_lines_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "captions.txt"
    file.write_text("\n".join([CAPTIONS[1], "", "  ", f"  {CAPTIONS[2]} ", ""]), encoding="utf-8")
    assert main(["encode", "--json", CAPTIONS[0], "--file", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["captions"] == CAPTIONS


def test_many_captions_make_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captions = [f"{n} cats" for n in range(TABLE + 1)]
    assert main(["encode", *captions, "--out", str(tmp_path / "x.npz")]) == 0
    assert capsys.readouterr().out.startswith(f"{TABLE + 1} captions encoded")


def test_what_is_written_is_what_was_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "folder" / "x.npz"
    assert main(["encode", *CAPTIONS, "--out", str(path)]) == 0
    with np.load(path, allow_pickle=False) as stored:
        assert stored["captions"].tolist() == CAPTIONS
        assert np.array_equal(stored["embeddings"], minilm()(CAPTIONS))
        assert str(stored["weights_sha256"]) == SHA256
    assert list(path.parent.iterdir()) == [path]


def test_a_file_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"precious")
    assert main(["encode", "a cat", "--out", str(path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_bytes() == b"precious"
    assert main(["encode", "a cat", "--out", str(path), "--force"]) == 0
    with np.load(path) as stored:
        assert stored["embeddings"].shape == (1, 384)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no caption given"),
        (["a cat", " "], "caption 1 is blank"),
        (["word " * 300], "302 tokens"),
        (["--file", "missing.txt"], "missing.txt"),
        (["--file", "latin.txt"], "not UTF-8"),
        (["a cat", "--out", "x.csv"], "does not end in .npz"),
        (["a cat", "--out", "folder.npz"], "is a folder"),
        (["a cat", "--out", "latin.txt/x.npz"], "latin.txt"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin.txt").write_bytes("Würfel".encode("latin-1"))
    Path("folder.npz").mkdir()
    assert main(["encode", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.npz", "latin.txt"]


def test_an_unknown_command_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["paint"])
    assert stop.value.code == 2
    assert "paint" in capsys.readouterr().err
