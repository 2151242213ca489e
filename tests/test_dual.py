"""Both towers of a small open_clip model with random weights, on generated pictures, up to the command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from binding import sugarcrepe
from binding.dual import both_towers
from binding.towers import CONFIG, WEIGHTS

TINY: dict[str, Any] = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 40, "vocab_size": 49408, "width": 48, "heads": 4, "layers": 2},
}
PREPROCESS = {"size": 32, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "interpolation": "bicubic", "resize_mode": "squash"}
ROUNDING = 64 * 12 * 2.0**-24
"""n·u for the longest inner product, n = 16 · 16 · 3: what another batch may round differently."""
DATA = {
    "0": {"filename": "1.png", "caption": "A cat on a mat.", "negative_caption": "A mat on a cat."},
    "1": {"filename": "1.png", "caption": "A cat.", "negative_caption": "A dog."},
    "2": {"filename": "2.png", "caption": "A red dog.", "negative_caption": "A green dog."},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in open_clip's own form, with its weights, beside pictures and items."""
    there = tmp_path_factory.mktemp("tiny")
    configs = there / "configs"
    configs.mkdir()
    (configs / "tiny-dual.json").write_text(json.dumps(TINY))
    open_clip.add_model_config(configs)
    torch.manual_seed(1)
    whole = open_clip.create_model("tiny-dual").eval()
    save_file({name: tensor.contiguous() for name, tensor in whole.state_dict().items()}, there / WEIGHTS)
    (there / CONFIG).write_text(json.dumps({"model_cfg": TINY, "preprocess_cfg": PREPROCESS}))
    rng = np.random.default_rng(0)
    for k in (1, 2):
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(there / f"{k}.png")
    (there / "swap_obj.json").write_text(json.dumps(DATA))
    return there


def test_margins_are_those_of_the_published_evaluator(folder: Path) -> None:
    """It encodes image, caption and negative of every item one by one, and takes the difference of two scores."""
    items = sugarcrepe.load(folder, ["swap_obj"], published=False)
    found = sugarcrepe.measure(items, *both_towers(str(folder)), folder)
    whole, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    whole.eval()
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    for item, margin in zip(items, found.margin, strict=True):
        with torch.inference_mode():
            i = whole.encode_image(preprocess(Image.open(folder / item.filename))[None], normalize=True)
            t = whole.encode_text(tokenizer([item.caption, item.negative]), normalize=True)
        scores = (i @ t.T)[0]
        # Each of the three vectors may be rounded another way.
        assert abs(float(scores[0] - scores[1]) - margin) <= 3 * ROUNDING
    assert (np.abs(found.margin) > 100 * ROUNDING).any(), "the margins are no rounding"
    assert found.provenance["image"] == "the image"


def test_the_picture_and_the_preprocessing_matter(folder: Path) -> None:
    _, image = both_towers(str(folder))
    _, other = both_towers(f"open_clip:tiny-dual/{folder / WEIGHTS}")
    x, y = image([folder / "1.png", folder / "2.png"]), other([folder / "1.png"])
    assert x.dtype == np.float32
    assert np.linalg.norm(x[0] - x[1]) > 10 * ROUNDING
    assert np.linalg.norm(x[0] - y[0]) > 10 * ROUNDING, "a bare file is prepared as CLIP's pictures are"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("minilm", "has no image tower"),
        ("open_clip:tiny-dual", "has no image tower"),
        ("open_clip:tiny-dual/no-such-tag", "no weights 'no-such-tag'"),
        ("open_clip:tiny-dual/weights.pt", "no weights"),
    ],
)
def test_a_model_without_pictures_is_refused(folder: Path, model: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        both_towers(model)


def test_weights_without_an_image_tower_are_refused(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    whole = open_clip.create_model("tiny-dual")
    only_text = {n: t.contiguous() for n, t in whole.state_dict().items() if not n.startswith("visual.")}
    save_file(only_text, tmp_path / "text.safetensors")
    with pytest.raises(ValueError, match="cannot be loaded whole"):
        both_towers(f"open_clip:tiny-dual/{tmp_path / 'text.safetensors'}")


def test_a_broken_picture_is_named(folder: Path, tmp_path: Path) -> None:
    _, image = both_towers(str(folder))
    whole = (folder / "1.png").read_bytes()
    for content in (b"", b"no picture", whole[: len(whole) // 2]):
        (tmp_path / "x.png").write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.png is no whole picture"):
            image([tmp_path / "x.png"])
