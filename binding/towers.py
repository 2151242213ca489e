"""Text towers of open_clip: a name and a tag from the hub, or weights on this disk; the image tower is never read.

A model's name fixes more than its size: the activation, the tokenizer and the context. All three fail silently elsewhere, so
here a mismatch, a cut caption and pickled weights are errors.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import torch

from binding.embeddings import Cache, check_captions, embed_once
from binding.numerics import device, unit

TEXT = ("transformer.", "token_embedding.", "positional_embedding", "ln_final.", "text_projection")
"""Beginnings of the names of text tensors in a checkpoint that does not set its text tower apart under "text."."""
CONFIG, WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"
"""Names of the two files of a model that open_clip saved to a folder or to the hub."""
PATIENCE = 4.0
"""Seconds that the hub gets to answer whether it has a file, before any download begins."""
CONVERT = (
    "import torch, safetensors.torch as s; w = torch.load('IN', map_location='cpu', weights_only=True);"
    " w = w.get('state_dict', w); s.save_file({k.removeprefix('module.'): v.contiguous().clone() for k, v in w.items()}, 'OUT')"
)
"""Turns a pickled state dict into safetensors; ``weights_only`` refuses to run code that stands in the pickle."""


class Tower:
    """The text tower of an open_clip model, with its own tokenizer: an encoder of float32 unit rows.

    ``model_cfg`` is open_clip's description of the model, ``weights`` its text tensors by name (none: as open_clip draws them
    from ``seed``), ``digest`` names the weights. Raises ``ValueError`` if the tensors are not those of this tower.
    """

    def __init__(
        self,
        model_cfg: dict[str, Any],
        tokenizer: Callable[..., torch.Tensor],
        weights: dict[str, torch.Tensor] | None,
        digest: str,
        *,
        seed: int = 0,
        cache: Path | None = None,
        progress: bool = False,
    ) -> None:
        self.cache, self.progress = cache, progress
        text = {"quick_gelu": bool(model_cfg.get("quick_gelu")), "embed_dim": model_cfg["embed_dim"], **model_cfg["text_cfg"]}
        self.digest = hashlib.sha256(json.dumps([digest, seed, text], sort_keys=True).encode()).hexdigest()
        self.activation = "QuickGELU" if text["quick_gelu"] else "GELU"
        self._tokenizer = tokenizer
        self._net = _build(model_cfg, seed)
        if weights is not None:
            _fill(self._net, weights)
        self._net.eval().requires_grad_(False).to(device())
        self.limit = int(self._net.context_length)
        self._mask: Any = getattr(self._net, "attn_mask", None)
        self.trims = self._mask is not None and self._net.pool_type == "argmax" and self._net.cls_emb is None

    def __call__(self, captions: Sequence[str], /) -> np.ndarray:
        """The embeddings (n, N), float32 unit rows, as ``encode_text(…, normalize=True)`` of the whole model computes them.

        Equal captions are encoded once, in batches of like length. Where the tower is causal and reads its answer at the end
        token, a batch ends with its longest caption: what stands behind the end token cannot reach it.
        Raises ``ValueError`` for bad captions, one that the tokenizer would cut, and vectors that are zero or not finite.
        """
        captions = check_captions(captions)
        kept = Cache(Path(self.cache), self.digest) if self.cache else None
        return embed_once(captions, self.lengths(captions), self._embed, self._row_bytes, cache=kept, progress=self.progress)

    def lengths(self, captions: Sequence[str]) -> list[int]:
        """Tokens of each caption, with its marks. Raises ``ValueError`` that names a caption longer than the context."""
        lengths = [_token_count(self._tokenizer, caption) for caption in captions]
        for index, (caption, length) in enumerate(zip(captions, lengths, strict=True)):
            if length > self.limit:
                raise ValueError(
                    f"caption {index} ({caption[:40]!r}…) has {length} tokens and would be cut at {self.limit}; shorten it, or"
                    " measure a model with a longer context"
                )
        return lengths

    def _embed(self, captions: list[str]) -> np.ndarray:
        tokens = self._tokenizer(captions, context_length=self.limit).to(device())
        if self.trims:
            longest = int(tokens.argmax(dim=-1).max()) + 1  # the end token has the highest number
            tokens, self._net.attn_mask = tokens[:, :longest], self._mask[:longest, :longest]
        with torch.inference_mode():
            features = self._net(tokens)
        if self.trims:
            self._net.attn_mask = self._mask
        return unit(features.float().cpu().numpy(), "what the tower returned")

    def _row_bytes(self, longest: int) -> int:
        """What one caption takes in float32: some states of the two widths, and two attention maps a head."""
        length = longest if self.trims else self.limit
        return 4 * length * (20 * self._net.width + 2 * self._net.heads * length)


def from_hub(name: str, tag: str, cache: Path | None = None, progress: bool = False) -> Tower:
    """The tower of open_clip's model ``name`` with the weights ``tag``, for example ("ViT-B-32-quickgelu", "openai").

    Raises ``ValueError`` for an unknown name or tag (with near ones), a name with another activation than the weights were
    trained with (with the right name), weights that exist only as a pickle, and a hub that does not answer within seconds (with
    what to download beforehand).
    """
    entry = check_tag(name, tag)
    if not entry.get("hf_hub"):
        raise ValueError(f"open_clip:{name}/{tag} is only published as a pickle ({entry.get('url')}). {_conversion(name)}")
    repository, _, filename = entry["hf_hub"].rpartition("/")
    path = _fetch(repository, f"{Path(filename).stem}.safetensors" if filename else WEIGHTS, name)
    return from_file(name, path, cache, progress)


def from_file(name: str, path: Path, cache: Path | None = None, progress: bool = False) -> Tower:
    """The tower of open_clip's model ``name`` with weights from a safetensors file of the whole model or of its text tower.

    The file does not say which activation it was trained with; ``name`` does, so choose "…-quickgelu" where that is right.
    Raises ``ValueError`` for an unknown name, a pickle, a file that is missing or broken, and tensors that do not fit.
    """
    config = _config(name)
    weights, digest = read_text(Path(path), name)
    return Tower(config, _tokenizer(name, config), weights, digest, cache=cache, progress=progress)


def from_folder(folder: Path, cache: Path | None = None, progress: bool = False) -> Tower:
    """The tower of a model that open_clip saved to a folder: ``open_clip_config.json`` and ``open_clip_model.safetensors``.

    Raises ``ValueError`` if one of them is missing or broken, or the tensors do not fit.
    """
    folder = Path(folder)
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model_cfg"]
        if missing := {"embed_dim", "text_cfg"} - config.keys():
            raise ValueError(f"no {', '.join(sorted(missing))}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder / CONFIG} is no description of an open_clip model ({error!r})") from None
    weights, digest = read_text(folder / WEIGHTS, "NAME")
    import open_clip

    return Tower(config, open_clip.get_tokenizer(f"local-dir:{folder}"), weights, digest, cache=cache, progress=progress)


def untrained(config: str | dict[str, Any], seed: int = 0) -> Tower:
    """A tower with the random weights that open_clip starts its training from; a control, and a stand-in of the right size.

    ``config`` is a name that open_clip knows or a model_cfg of your own. Raises ``ValueError`` for an unknown name.
    """
    import open_clip

    if isinstance(config, str):
        return Tower(_config(config), _tokenizer(config, _config(config)), None, "untrained", seed=seed)
    context = config["text_cfg"].get("context_length", 77)
    return Tower(config, open_clip.SimpleTokenizer(context_length=context), None, "untrained", seed=seed)


def check_tag(name: str, tag: str) -> dict[str, Any]:
    """open_clip's entry for these weights. Raises ``ValueError`` for an unknown pair, or a name with another activation."""
    from open_clip import list_pretrained
    from open_clip.pretrained import get_pretrained_cfg

    _config(name)
    entry = get_pretrained_cfg(name, tag)
    if not entry:
        known = [f"{n}/{t}" for n, t in list_pretrained()]
        tags = [pair.partition("/")[2] for pair in known if pair.startswith(f"{name}/")]
        near = get_close_matches(f"{name}/{tag}", known, n=3, cutoff=0.5)
        raise ValueError(f"open_clip has no weights {tag!r} for {name}; it has {', '.join(tags) or 'none'}{_near(near)}")
    trained, built = bool(entry.get("quick_gelu")), bool(_config(name).get("quick_gelu"))
    if trained != built:
        right = f"{name}-quickgelu" if trained else name.removesuffix("-quickgelu")
        raise ValueError(
            f"{name} computes {'QuickGELU' if built else 'GELU'}, but the weights {tag!r} were trained with"
            f" {'QuickGELU' if trained else 'GELU'} and would give wrong vectors; use open_clip:{right}/{tag}"
        )
    return entry


def read_text(path: Path, name: str = "NAME") -> tuple[dict[str, torch.Tensor], str]:
    """The text tensors of a safetensors checkpoint, named as in a text tower, and the sha256 of the file.

    Raises ``ValueError`` for a pickle, a missing or broken file, or one without a text tower.
    """
    from safetensors import SafetensorError, safe_open

    if path.suffix != ".safetensors":
        raise ValueError(
            f"{path} is not a .safetensors file, and a pickle is never loaded: it can run any code. {_conversion(name)}"
        )
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        with safe_open(path, "pt") as stored:
            keys = list(stored.keys())
            apart = any(key.startswith("text.") for key in keys)
            chosen = [key for key in keys if key.startswith("text." if apart else TEXT) and not key.endswith("attn_mask")]
            weights = {key.removeprefix("text."): stored.get_tensor(key) for key in chosen}
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read as safetensors ({error}); is the file complete?") from None
    if not weights:
        raise ValueError(f"{path} has no text tower among its {len(keys)} tensors; is it a CLIP checkpoint of open_clip?")
    return weights, digest


def _build(model_cfg: dict[str, Any], seed: int) -> Any:
    """The network, drawn from ``seed`` without touching the global generator."""
    from open_clip.model import CLIPTextCfg, _build_text_tower

    text = {**model_cfg["text_cfg"], "hf_model_pretrained": False, "output_tokens": False}
    # open_clip draws weights from the global generator alone: it is seeded in a fork, and is then as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build_text_tower(model_cfg["embed_dim"], CLIPTextCfg(**text), bool(model_cfg.get("quick_gelu")))


def _fill(net: Any, weights: dict[str, torch.Tensor]) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items() if not name.endswith("attn_mask")}
    given = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if wanted != given:
        wrong = sorted(name for name in wanted.keys() | given.keys() if wanted.get(name) != given.get(name))
        first = f"{wrong[0]} is {given.get(wrong[0], 'missing')}, expected {wanted.get(wrong[0], 'none')}"
        raise ValueError(
            f"the weights are not those of this tower: {first} ({len(wrong)} tensors differ); check the model's name"
        )
    net.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, strict=False)


def _config(name: str) -> dict[str, Any]:
    import open_clip

    config = open_clip.get_model_config(name)
    if config is None:
        near = get_close_matches(name, open_clip.list_models(), n=3, cutoff=0.5)
        raise ValueError(f"open_clip has no model {name!r}{_near(near)}; `open_clip.list_models()` names all")
    return copy.deepcopy(config)


def _tokenizer(name: str, config: dict[str, Any]) -> Any:
    """The tokenizer of a named model; one that stands on the hub is looked for there first, for seconds and not minutes."""
    import open_clip

    source = config["text_cfg"].get("hf_tokenizer_name")
    if source:
        _fetch(source, "tokenizer_config.json", name)
    return open_clip.get_tokenizer(name)


def _token_count(tokenizer: Any, caption: str) -> int:
    if hasattr(tokenizer, "tokenizer"):  # a Hugging Face one, behind open_clip's cleaning
        return len(tokenizer.tokenizer(tokenizer.clean_fn(caption), truncation=False, verbose=False)["input_ids"])
    return len(tokenizer.encode(caption)) + 2


def _fetch(repository: str, filename: str, name: str) -> Path:
    """A file of the hub, from its cache on this disk if it is there.

    Raises ``ValueError`` within seconds if the hub does not answer, or has no such file.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repository, filename, local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    try:
        get_hf_file_metadata(hf_hub_url(repository, filename), timeout=PATIENCE)
        return Path(hf_hub_download(repository, filename))
    except EntryNotFoundError:
        raise ValueError(f"{repository} on the hub has no {filename}, only a pickle. {_conversion(name)}") from None
    except Exception as error:  # no network, a proxy, no rights, offline mode: each library underneath has its own kind
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        raise ValueError(
            f"the hub gave no {filename} of {repository} ({reason}). Where it can be reached, run `hf download {repository}`"
            " and copy the hub's cache (HF_HOME) to this machine"
        ) from None


def _conversion(name: str) -> str:
    return f'Convert it once: python -c "{CONVERT}", then use open_clip:{name}/OUT'


def _near(names: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""
