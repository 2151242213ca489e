"""Both towers of an open_clip model, for the measurements that look at pictures; everything else needs the text tower only."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from binding.numerics import device, unit
from binding.towers import CONFIG, Tower, from_file, from_folder, from_hub


class ImageTower:
    """The image tower of an open_clip model with its own preprocessing: paths of pictures in, float32 unit rows (n, N) out.

    Computed in float32: half precision would make ties of scores that differ.
    """

    def __init__(self, model: Any, preprocess: Any) -> None:
        self._model, self._preprocess = model.eval().float().requires_grad_(False).to(device()), preprocess

    def __call__(self, paths: Sequence[Path], /) -> np.ndarray:
        """One row a picture, in their order. Raises ``ValueError`` for a file that is no whole picture."""
        pixels = torch.stack([self._preprocess(_picture(path)) for path in paths]).to(device())  # n x 3 x H x W
        with torch.inference_mode():
            features = self._model.encode_image(pixels)
        return unit(features.float().cpu().numpy(), "what the image tower returned")


def both_towers(model: str) -> tuple[Tower, ImageTower]:
    """Text and image tower of ``open_clip:NAME/TAG``, of ``open_clip:NAME/FILE.safetensors``, or of a saved folder.

    The text tower is loaded first: its checks (name, tag, activation, hub, pickles) say early what would go wrong. A single file
    does not say how pictures are prepared; open_clip's default is taken, which is that of CLIP. Raises ``ValueError`` for a model
    that has no image tower, and for weights that do not fit.
    """
    import open_clip

    name, _, rest = model.removeprefix("open_clip:").partition("/")
    try:
        if (Path(model) / CONFIG).is_file():
            text = from_folder(Path(model))
            whole, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{model}")
        elif not model.startswith("open_clip:") or not rest:
            raise ValueError(f"{model!r} has no image tower; name open_clip:NAME/TAG, or a folder with {CONFIG}")
        else:
            text = from_file(name, Path(rest)) if rest.endswith(".safetensors") else from_hub(name, rest)
            whole, _, preprocess = open_clip.create_model_and_transforms(name, pretrained=rest)
    except RuntimeError as error:
        raise ValueError(f"{model} cannot be loaded whole ({str(error).splitlines()[0][:160]})") from None
    return text, ImageTower(whole, preprocess)


def _picture(path: Path) -> Any:
    from PIL import Image

    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} is no whole picture ({error}); fetch it again") from None
