"""Published vision transformers and a store of their tokens on disk, which goes on where it was stopped.

A model is named as timm names it, for example ``vit_large_patch14_dinov2.lvd142m`` or
``vit_large_patch14_clip_quickgelu_336.openai``, or is a folder with timm's ``config.json`` and ``model.safetensors``. Weights are
safetensors; a pickle is never loaded.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from binding.colourshape import World, draw
from binding.files import load_tensors, write_json
from binding.numerics import device, generator

CHUNK = 64
"""Pictures that are drawn, encoded and written at once; each chunk has a generator of its own."""
STATE = "state.json"


class Pretrained(nn.Module):
    """A timm vision transformer, used as :class:`binding.vit.ViT`: pictures in [0, 1] → [CLS] and patch tokens, last two layers.

    Those of the last layer after its norm, as the model hands them on; register tokens are left out.
    Raises ``ValueError`` for an unknown model, one without [CLS], weights that are missing or do not fit, and an offline hub.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: str, side: int) -> None:
        super().__init__()
        self.net, weights = _from_folder(Path(model), side) if Path(model).is_dir() else _from_hub(model, side)
        if not getattr(self.net, "has_class_token", False):
            raise ValueError(f"{model} has no [CLS] token to compare its patch tokens with; choose another model")
        _fill(self.net, weights, model)
        settings = self.net.pretrained_cfg
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(settings[name]).reshape(1, 3, 1, 1))
        self.patch = int(self.net.patch_embed.patch_size[0])
        self.eval().requires_grad_(False).to(device())

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        settings: dict[str, Any] = {"indices": 2, "return_prefix_tokens": True, "norm": False, "output_fmt": "NLC"}
        last, layers = self.net.forward_intermediates((pixels - self.mean) / self.std, **settings)
        patch_tokens, prefix = layers[0]
        skipped = prefix.shape[1]
        return torch.cat([last[:, :1], last[:, skipped:]], dim=1), torch.cat([prefix[:, :1], patch_tokens], dim=1)


def _from_folder(folder: Path, side: int) -> tuple[Any, Path]:
    import timm

    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        name, sizes = config["architecture"], {"img_size": side} | config.get("model_args", {})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / 'config.json'} is no description of a timm model ({error!r})") from None
    if sizes["img_size"] != side:
        raise ValueError(f"{folder} takes pictures of {sizes['img_size']} pixels, the scenes have {side}; change one of them")
    return timm.create_model(name, pretrained=False, num_classes=0, **sizes), folder / "model.safetensors"


def _from_hub(model: str, side: int) -> tuple[Any, Path]:
    import timm
    from huggingface_hub import hf_hub_download

    if not timm.is_model(model.partition(".")[0]):
        near = timm.list_models(f"*{model.partition('.')[0].split('_')[0]}*")[:3]
        raise ValueError(f"timm has no model {model!r}, and there is no such folder; it has for example {', '.join(near) or '…'}")
    if model.endswith(".openai") and "_clip_" in model and "quickgelu" not in model:
        right = model.replace("_clip_", "_clip_quickgelu_")
        raise ValueError(f"{model} computes GELU, but OpenAI's weights were trained with QuickGELU; use {right}")
    net: Any = timm.create_model(model, pretrained=False, num_classes=0, img_size=side)
    repository = net.pretrained_cfg.get("hf_hub_id")
    try:
        return net, Path(hf_hub_download(repository, "model.safetensors"))
    except Exception as error:  # no network, offline mode, no such file: each library underneath has its own kind
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        raise ValueError(
            f"the hub gave no model.safetensors of {repository} ({reason}). Where it can be reached, run"
            f" `hf download {repository}` and copy the hub's cache (HF_HOME) to this machine"
        ) from None


def _fill(net: Any, path: Path, model: str) -> None:
    """Load the weights; positions of another picture size are interpolated, and a head that classifies is left out."""
    from timm.layers import resample_abs_pos_embed

    weights, wanted = load_tensors(path)[0], net.state_dict()
    given = {name: tensor.float() for name, tensor in weights.items() if not name.startswith("head.")}
    positions, own = given.get("pos_embed"), wanted.get("pos_embed")
    if positions is not None and own is not None and positions.shape != own.shape and positions.ndim == 3:
        prefix = 0 if net.no_embed_class else net.num_prefix_tokens
        given["pos_embed"] = resample_abs_pos_embed(positions, list(net.patch_embed.grid_size), num_prefix_tokens=prefix)
    sizes = ({name: tuple(x.shape) for name, x in tensors.items()} for tensors in (wanted, given))
    want, have = sizes
    wrong = sorted(name for name in want.keys() | have.keys() if want.get(name) != have.get(name))
    if wrong:
        first = f"{wrong[0]} is {have.get(wrong[0], 'missing')}, expected {want.get(wrong[0], 'none')}"
        raise ValueError(f"the weights in {path} are not those of {model}: {first} ({len(wrong)} tensors differ)")
    net.load_state_dict(given)


def fill(
    folder: Path,
    net: Any,
    world: World,
    prior: Any,
    most: int,
    pictures: int,
    about: Mapping[str, Any],
    seed: int = 0,
    progress: bool = False,
) -> dict[str, np.ndarray]:
    """Draw scenes, encode them and keep what the network says in ``folder``, as float16 arrays that are mapped, not loaded.

    Arrays by name: ``cls`` and ``pooled`` (n, d), ``tokens`` and ``penultimate`` (n, T, d), ``codes`` (n, K), ``objects``
    (n, m) and ``on`` (n, m, T), the patches that show an object; m is ``most``, the largest number of objects. A call that was
    stopped goes on at the first chunk that is not whole. ``about``: plain data that names the network and its scenes.
    Raises ``ValueError`` if the folder holds others.
    """
    named = hashlib.sha256(json.dumps([dict(about), pictures, seed], sort_keys=True).encode()).hexdigest()
    done = _opened(folder, named)
    arrays: dict[str, np.memmap] = {}
    for start, found in _chunks(net, world, prior, pictures, seed, done, progress):
        for name in ("objects", "on"):
            room = [(0, 0), (0, most - found[name].shape[1])] + [(0, 0)] * (found[name].ndim - 2)
            found[name] = np.pad(found[name], room, constant_values=-1 if name == "objects" else 0)
        if not arrays:
            shapes = {name: (pictures, *x.shape[1:]) for name, x in found.items()}
            arrays = {name: _array(folder / f"{name}.npy", shapes[name], x.dtype, start > 0) for name, x in found.items()}
        for name, x in found.items():
            arrays[name][start : start + len(x)] = x
            arrays[name].flush()
        write_json(folder / STATE, {"named": named, "rows": start + len(found["codes"])})
    return opened(folder)


def opened(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of a store, mapped and read-only. Raises ``ValueError`` if there is none."""
    paths = sorted(Path(folder).glob("*.npy"))
    if not paths:
        raise ValueError(f"{folder} holds no stored tokens; fill it first")
    return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in paths}


def _opened(folder: Path, named: str) -> int:
    if not (folder / STATE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        return 0
    state = json.loads((folder / STATE).read_text(encoding="utf-8"))
    if state["named"] != named:
        raise ValueError(f"{folder} holds the tokens of another network or of other scenes; name another folder")
    return int(state["rows"])


def _chunks(
    net: Any, world: World, prior: Any, pictures: int, seed: int, done: int, progress: bool
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    from tqdm.auto import tqdm

    for start in tqdm(range(done, pictures, CHUNK), desc="pictures", disable=not progress):
        draws = generator(seed * 1_000_003 + start)
        codes = prior.sample(min(CHUNK, pictures - start), draws)
        shown = draw(world, codes, draws)
        with torch.no_grad():
            last, before = (x.cpu() for x in net(shown.pixels.to(device())))
        z = {"cls": last[:, 0], "pooled": last[:, 1:].mean(1), "tokens": last[:, 1:], "penultimate": before[:, 1:]}
        found = {name: x.half().numpy() for name, x in z.items()}
        found |= {"codes": codes.numpy().astype(np.uint8), "objects": shown.objects.numpy().astype(np.int16)}
        yield start, found | {"on": (shown.on_patches(net.patch) > 0).numpy()}


def _array(path: Path, shape: tuple[int, ...], dtype: np.dtype, exists: bool) -> np.memmap:
    if exists:
        return np.lib.format.open_memmap(path, mode="r+")
    return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
