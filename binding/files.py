"""Files that are written whole or not at all: into a temporary file beside the target, which then takes its name."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A new file beside ``path`` to write into; it takes the name ``path`` at the end, and is removed if anything fails.

    The folder is made if it is not there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text that ends in one line break."""
    with whole(path) as part:
        part.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def write_json(path: Path, content: Any, *, indent: int | None = 1) -> None:
    """Write plain data as JSON. Raises ``ValueError`` for a NaN or an infinity, which JSON does not have."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False))


def save_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write arrays to an ``.npz`` file, never as a pickle."""
    with whole(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def save_tensors(path: Path, tensors: Mapping[str, torch.Tensor], about: Mapping[str, str] | None = None) -> None:
    """Write tensors to a ``.safetensors`` file, with a few words ``about`` them."""
    from safetensors.torch import save_file

    with whole(path) as part:
        save_file({name: x.detach().cpu().contiguous() for name, x in tensors.items()}, part, dict(about or {}))


def load_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors and the words about them, from a ``.safetensors`` file.

    Raises ``ValueError`` if the file is missing or is no such file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            return {name: stored.get_tensor(name) for name in stored.keys()}, stored.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} is no safetensors file ({str(error).splitlines()[0]})") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
