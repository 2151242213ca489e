"""The contract of a text encoder: captions in, unit vectors out; and what every encoder needs to keep it cheaply.

Nothing here knows a model. The encoders stand in ``encoders`` and ``towers``; whatever measures an encoder takes any
function that keeps the contract.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from binding.files import save_npz
from binding.numerics import check_finite, check_unit, chunks, memory_budget, unit

BATCH = 64
"""Captions a batch; short captions ran fastest at this size on one CPU core (16 to 256 were within a quarter of it)."""


class Encoder(Protocol):
    """A text tower t: n captions to an array (n, N) of float32 whose rows have length one, in the order of the captions."""

    def __call__(self, captions: Sequence[str], /) -> np.ndarray: ...


def check_captions(captions: Sequence[str]) -> list[str]:
    """The captions as a list.

    Raises ``ValueError`` for a bare string, no captions at all, or one that is no string or blank.
    """
    if isinstance(captions, str):
        raise ValueError(f"captions is the single string {captions!r}; pass a list, [{captions!r}]")
    captions = list(captions)
    if not captions:
        raise ValueError("captions is empty; pass at least one caption")
    for index, caption in enumerate(captions):
        if not isinstance(caption, str):
            raise ValueError(f"caption {index} is {caption!r} of type {type(caption).__name__}; pass strings")
        if not caption.strip():
            raise ValueError(f"caption {index} is blank ({caption!r}); leave it out or fill it")
    return captions


def check_embeddings(x: np.ndarray, n: int, name: str = "embeddings") -> np.ndarray:
    """Return ``x`` unchanged if it is what an :class:`Encoder` owes for n captions: shape (n, N), floating, finite, unit rows.

    Raises ``ValueError`` that names the first thing that is wrong.
    """
    if not isinstance(x, np.ndarray) or not np.issubdtype(x.dtype, np.floating):
        raise ValueError(f"{name} is {getattr(x, 'dtype', type(x).__name__)}; an encoder returns a numpy array of floats")
    if x.ndim != 2 or x.shape[0] != n or x.shape[1] == 0:
        raise ValueError(f"{name} has shape {x.shape}, expected ({n}, N): one row a caption")
    return check_unit(x, name)


def distances(x: np.ndarray) -> np.ndarray:
    """All distances ‖xᵢ − xⱼ‖ between the rows of ``x`` (n, N), as (n, n) float64.

    Taken from differences, not from 2 − 2⟨xᵢ, xⱼ⟩, so that equal rows are exactly 0 apart and near ones lose no digits.
    Raises ``ValueError`` unless ``x`` is finite and two-dimensional.
    """
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}, expected (n, N)")
    x = check_finite(x).astype(np.float64)
    return cdist(x, x)


def distance(encoder: Encoder, a: str, b: str) -> float:
    """‖t(a) − t(b)‖; for a caption and its swap, the most that any image can score one above the other (Corollary G.4).

    Raises ``ValueError`` for a blank caption or an encoder that returns anything but unit rows.
    """
    captions = check_captions([a, b])
    return float(distances(check_embeddings(encoder(captions), 2))[0, 1])


@dataclass(frozen=True)
class Cache:
    """A folder that keeps what an encoder has computed, each list of captions in a file of its own.

    The name of a file is a hash of ``digest`` and the captions, so nothing stale is ever read; a broken file counts as absent.
    """

    folder: Path
    digest: str
    """Names the encoder: a hash of its weights, and of whatever else its vectors depend on."""

    def entry(self, captions: Sequence[str]) -> Path:
        """The file of these captions."""
        key = hashlib.sha256(json.dumps([self.digest, *captions]).encode()).hexdigest()
        return self.folder / f"{key}.npz"

    def recall(self, captions: Sequence[str]) -> np.ndarray | None:
        """The stored embeddings (n, N), or None. Nothing in a file is ever run: no pickles."""
        path = self.entry(captions)
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                return check_embeddings(stored["embeddings"], len(captions))
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
            return None

    def remember(self, captions: Sequence[str], x: np.ndarray) -> None:
        """Keep the embeddings (n, N) of these captions."""
        save_npz(self.entry(captions), embeddings=x)


def embed_once(
    captions: Sequence[str],
    lengths: Sequence[int],
    embed: Callable[[list[str]], np.ndarray],
    row_bytes: Callable[[int], int],
    *,
    cache: Cache | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Embeddings (n, N) of the captions, each different one computed once, in batches of like length.

    ``lengths`` are tokens a caption, ``embed`` computes one batch, ``row_bytes`` says what a caption of that many tokens takes.
    The order of the captions changes no bit. Raises ``ValueError`` if a batch is not what an encoder owes.
    """
    length = dict(zip(captions, lengths, strict=True))
    unique = sorted(length)
    row = {caption: index for index, caption in enumerate(unique)}
    x = cache.recall(unique) if cache else None
    if x is None:
        parts = []
        with _bar(len(unique), progress) as bar:
            for rows in batches([length[caption] for caption in unique], row_bytes):
                parts.append((rows, embed([unique[r] for r in rows])))
                bar.update(len(rows))
        x = check_embeddings(in_order(parts), len(unique))
        if cache:
            cache.remember(unique, x)
    return x[[row[caption] for caption in captions]]


def batches(lengths: Sequence[int], row_bytes: Callable[[int], int]) -> list[list[int]]:
    """Rows in batches of like length, of at most ``BATCH`` rows and within the memory budget."""
    item = row_bytes(max(lengths))
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[part] for part in chunks(len(order), item, min(memory_budget(), BATCH * item))]


def in_order(parts: Sequence[tuple[list[int], np.ndarray]], axis: int = 0) -> np.ndarray:
    """The batches put together along ``axis``, each row at the place that it had before :func:`batches`."""
    rows = [row for part, _ in parts for row in part]
    return np.take(np.concatenate([x for _, x in parts], axis=axis), np.argsort(rows), axis=axis)


class Stored:
    """An encoder that looks captions up in a table of embeddings (n, N), for models that run somewhere else.

    Rows are scaled to length one. Raises ``ValueError`` for captions and rows that do not match, a caption with two different
    rows, and a row that is zero or not finite.
    """

    def __init__(self, captions: Sequence[str], embeddings: np.ndarray) -> None:
        captions = check_captions(captions)
        if embeddings.ndim != 2 or len(embeddings) != len(captions) or not np.issubdtype(embeddings.dtype, np.floating):
            shape = f"{embeddings.shape} of {embeddings.dtype}"
            raise ValueError(f"embeddings is {shape}, expected floats of shape ({len(captions)}, N): one row a caption")
        self._row: dict[str, int] = {}
        for index, caption in enumerate(captions):
            first = self._row.setdefault(caption, index)
            if not np.array_equal(embeddings[first], embeddings[index], equal_nan=True):
                raise ValueError(f"the caption {caption!r} has two different embeddings, in rows {first} and {index}")
        self._x = unit(embeddings.astype(np.promote_types(embeddings.dtype, np.float32)), "embeddings")

    @classmethod
    def load(cls, path: Path) -> "Stored":
        """Read the arrays ``captions`` and ``embeddings`` of an ``.npz`` file, such as ``binding encode --out`` writes.

        Raises ``ValueError`` if the file is no archive, lacks one of them, or holds a pickle, which is never run.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                captions, embeddings = stored["captions"], stored["embeddings"]
        except FileNotFoundError:
            raise ValueError(f"no file {path}") from None
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
            need = "an .npz file with the arrays 'captions' (text) and 'embeddings' (n, N)"
            raise ValueError(f"{path} is not {need}: {str(error).splitlines()[0]}") from None
        return cls(captions.tolist(), embeddings)

    def __call__(self, captions: Sequence[str], /) -> np.ndarray:
        """The rows of the captions. Raises ``ValueError`` that counts and names what the table lacks."""
        captions = check_captions(captions)
        missing = [caption for caption in dict.fromkeys(captions) if caption not in self._row]
        if missing:
            raise ValueError(f"{len(missing)} captions have no stored embedding, the first is {missing[0]!r}")
        return self._x[[self._row[caption] for caption in captions]]


def _bar(total: int, progress: bool) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, unit="caption", disable=not progress)
