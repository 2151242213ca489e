"""Encoders by name: what ``binding audit MODEL`` takes, and the same from Python."""

import importlib
from difflib import get_close_matches
from pathlib import Path

from binding.embeddings import Encoder, Stored

FORMS = "minilm, open_clip:NAME/TAG, open_clip:NAME/FILE.safetensors, a folder, python:MODULE:FUNCTION or a FILE.npz"


def load(model: str, cache: Path | None = None, progress: bool = False) -> Encoder:
    """The encoder of this name.

    ``minilm``: the packaged one. ``open_clip:NAME/TAG``: from the hub. ``open_clip:NAME/FILE.safetensors``: weights on this
    disk. A folder: one that open_clip or ``sentence-transformers`` saved. ``python:MODULE:FUNCTION``: your own function.
    ``FILE.npz``: embeddings with their captions. ``cache`` is a folder that keeps what the first four compute; ``progress`` shows
    a bar.

    Raises ``ValueError`` for anything else, and for whatever keeps the named encoder from loading.
    """
    kind, _, rest = model.partition(":")
    if model == "minilm":
        from binding.encoders import MiniLM

        return MiniLM(cache=cache, progress=progress)
    if kind == "open_clip":
        return _open_clip(rest, cache, progress)
    if kind == "python":
        return _function(rest)
    path = Path(model)
    if path.is_dir():
        return _folder(path, cache, progress)
    if path.suffix == ".npz":
        return Stored.load(path)
    near = get_close_matches(kind, ["minilm", "open_clip", "python"], n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"no encoder {model!r}: it is neither a name nor a folder or file here{hint} Known forms: {FORMS}")


def _open_clip(rest: str, cache: Path | None, progress: bool) -> Encoder:
    from binding.towers import from_file, from_hub

    name, _, weights = rest.partition("/")
    if not name or not weights:
        raise ValueError(f"open_clip:{rest} names no weights; write open_clip:NAME/TAG or open_clip:NAME/FILE.safetensors")
    path = Path(weights)
    if path.suffix or path.exists():
        return from_file(name, path, cache, progress)
    return from_hub(name, weights, cache, progress)


def _folder(folder: Path, cache: Path | None, progress: bool) -> Encoder:
    if (folder / "open_clip_config.json").exists():
        from binding.towers import from_folder

        return from_folder(folder, cache, progress)
    if (folder / "modules.json").exists():
        from binding.encoders import SentenceEncoder

        return SentenceEncoder(folder, cache, progress)
    raise ValueError(f"{folder} holds no known encoder: neither open_clip_config.json nor modules.json of sentence-transformers")


def _function(rest: str) -> Encoder:
    module, _, name = rest.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"python:{rest} cannot be imported ({error}); write python:MODULE:FUNCTION") from None
    if not callable(found):
        raise ValueError(f"python:{rest} is {type(found).__name__} and no function of captions")
    return found
