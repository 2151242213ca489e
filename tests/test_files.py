"""A file is written whole or not at all, and what was there before stays if writing fails."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from binding.files import load_tensors, save_npz, save_tensors, whole, write_json, write_text


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "before")

    def fail(part: Path) -> None:
        part.write_text("half")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"), whole(path) as part:
        fail(part)
    assert path.read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_rights_that_a_plain_one_would_have(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "x.txt", "x")
        (tmp_path / "y.txt").write_text("y")
    finally:
        os.umask(before)
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x.txt", "y.txt")]
    assert rights[0] == rights[1]


def test_folders_are_made_and_text_ends_in_one_line_break(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "x.txt", "é\n\n")
    assert (tmp_path / "a" / "b" / "x.txt").read_bytes() == "é\n".encode()


def test_json_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": [1, "é"]})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"a": [1, "é"]}
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"a": [1, "é"]}


def test_arrays_come_back_and_objects_are_refused(tmp_path: Path) -> None:
    save_npz(tmp_path / "x.npz", a=np.arange(3))
    with np.load(tmp_path / "x.npz") as stored:
        assert stored["a"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="Object arrays"):
        save_npz(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with np.load(tmp_path / "x.npz") as stored:
        assert stored["a"].tolist() == [0, 1, 2]


def test_tensors_come_back_to_the_bit_with_what_was_said_about_them(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.tensor(3)}
    save_tensors(tmp_path / "x.safetensors", tensors, {"step": "7"})
    found, about = load_tensors(tmp_path / "x.safetensors")
    assert about == {"step": "7"}
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


@pytest.mark.parametrize("content", [None, b"", b"pickle"])
def test_a_file_without_tensors_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.safetensors is no safetensors file"):
        load_tensors(path)
