"""Laws of the open_clip text towers: the same vectors as the whole model, and every silent mistake an early error."""

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from binding import towers
from binding.embeddings import check_embeddings
from binding.scenes import families, quartets
from binding.towers import Tower, check_tag, from_file, from_folder, from_hub, read_text, untrained

TINY: dict[str, Any] = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 40, "vocab_size": 49408, "width": 48, "heads": 4, "layers": 2},
}
ROUNDING = 48 * 4 * 2.0**-24
"""n·u for the longest inner product of the tiny network, n = 4 · 48: what another batch or length may round differently."""
CAPTIONS = ["a red car and a blue dog", "a blue car and a red dog", "A  Photo of a cat", "it rains", "a red car and a blue dog"]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models under names of their own, so that open_clip knows them."""
    folder = tmp_path_factory.mktemp("configs")
    (folder / "tiny-binding.json").write_text(json.dumps(TINY))
    (folder / "tiny-binding-quickgelu.json").write_text(json.dumps(TINY | {"quick_gelu": True}))
    (folder / "tiny-apart.json").write_text(json.dumps(TINY | {"custom_text": True}))
    open_clip.add_model_config(folder)
    return folder


@pytest.fixture(scope="module", params=["tiny-binding", "tiny-binding-quickgelu", "tiny-apart"])
def model(request: pytest.FixtureRequest, known: Path) -> tuple[str, Any, Path]:
    """A name, the whole model of open_clip with random weights, and its checkpoint."""
    torch.manual_seed(1)
    whole = open_clip.create_model(request.param).eval()
    path = known / f"{request.param}.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in whole.state_dict().items()}, path)
    return request.param, whole, path


def by_open_clip(whole: Any, captions: list[str], context: int = 40) -> np.ndarray:
    tokens = open_clip.SimpleTokenizer()(captions, context_length=context)
    with torch.inference_mode():
        return whole.encode_text(tokens, normalize=True).numpy()


def test_a_tower_gives_what_the_whole_model_gives(model: tuple[str, Any, Path]) -> None:
    name, whole, path = model
    tower = from_file(name, path)
    x = check_embeddings(tower(CAPTIONS), len(CAPTIONS))
    assert x.dtype == np.float32 and tower.trims
    assert np.linalg.norm(x - by_open_clip(whole, CAPTIONS), axis=1).max() <= ROUNDING
    assert tower.activation == ("QuickGELU" if "quick" in name else "GELU")


def test_the_activation_of_the_name_decides(known: Path, model: tuple[str, Any, Path]) -> None:
    _, _, path = model
    plain, quick = from_file("tiny-binding", path)(CAPTIONS), from_file("tiny-binding-quickgelu", path)(CAPTIONS)
    assert np.linalg.norm(plain - quick, axis=1).min() > 100 * ROUNDING


def test_ending_at_the_end_token_changes_rounding_only() -> None:
    tower = untrained(TINY, seed=3)
    captions = [c for family in families() for q in quartets(family, 6, np.random.default_rng(0)) for c in q.captions]
    trimmed = tower(captions)
    tower.trims = False
    assert np.linalg.norm(tower(captions) - trimmed, axis=1).max() <= ROUNDING


@cache
def drawn() -> Tower:
    return untrained(TINY, seed=3)


@given(st.permutations(CAPTIONS[:4]))
def test_the_order_of_captions_changes_no_bit(captions: list[str]) -> None:
    tower = drawn()
    x = dict(zip(CAPTIONS, tower(CAPTIONS[:4]), strict=False))
    assert all(np.array_equal(row, x[caption]) for caption, row in zip(captions, tower(captions), strict=True))


def test_a_seed_draws_one_tower_and_leaves_the_global_generator_alone() -> None:
    state = torch.random.get_rng_state()
    a, b, other = (untrained(TINY, seed=seed)(CAPTIONS) for seed in (3, 3, 4))
    assert np.array_equal(a, b) and not np.array_equal(a, other)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_tower_that_reads_both_ways_is_never_cut_short() -> None:
    """SigLIP's kind: no causal mask, the last position is read, so the padding counts."""
    config = TINY | {"text_cfg": TINY["text_cfg"] | {"no_causal_mask": True, "pool_type": "last", "proj_bias": True}}
    tower = untrained(config)
    assert not tower.trims
    assert check_embeddings(tower(CAPTIONS), len(CAPTIONS)).shape == (5, 32)


@pytest.mark.parametrize("fault", [[], "a cat", ["a cat", " "], ["a cat", 3]])
def test_bad_captions_are_refused(fault: Any) -> None:
    with pytest.raises(ValueError, match="caption"):
        drawn()(fault)


def test_a_caption_that_would_be_cut_is_refused_and_the_longest_is_read_to_its_end() -> None:
    tower = drawn()
    fits = ["word " * 37 + end for end in ("red", "blue")]
    assert tower.lengths(fits) == [40, 40]
    assert np.linalg.norm(np.subtract(*tower(fits))) > 100 * ROUNDING
    with pytest.raises(ValueError, match=r"caption 1 .* 41 tokens .* 40"):
        tower(["a cat", "word " * 39])


def test_a_hugging_face_tokenizer_is_counted_without_its_padding() -> None:
    from binding.encoders import _installed

    hugging = open_clip.tokenizer.HFTokenizer(str(_installed()), context_length=40)
    config = TINY | {"text_cfg": TINY["text_cfg"] | {"no_causal_mask": True, "pool_type": "last"}}
    tower = Tower(config, hugging, None, "untrained")
    assert tower.lengths(["a cat", "word " * 38]) == [4, 40]
    with pytest.raises(ValueError, match="41 tokens"):
        tower(["word " * 39])


def test_a_saved_folder_is_the_same_model(model: tuple[str, Any, Path], tmp_path: Path) -> None:
    name, _, path = model
    config = open_clip.get_model_config(name)
    (tmp_path / towers.CONFIG).write_text(json.dumps({"model_cfg": config}))
    (tmp_path / towers.WEIGHTS).write_bytes(path.read_bytes())
    assert np.array_equal(from_folder(tmp_path)(CAPTIONS), from_file(name, path)(CAPTIONS))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model_cfg": {"embed_dim": 3}}', '{"model_cfg": []}', "\0"])
def test_a_broken_description_is_one_clear_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match="no description"):
        from_folder(tmp_path)
    (tmp_path / towers.CONFIG).write_text(content)
    with pytest.raises(ValueError, match="no description"):
        from_folder(tmp_path)


def test_the_digest_tells_weights_activation_and_seed_apart(model: tuple[str, Any, Path]) -> None:
    name, _, path = model
    digests = [
        from_file(name, path).digest,
        from_file("tiny-apart" if "quick" in name else "tiny-binding-quickgelu", path).digest,
        *(untrained(TINY, seed=seed).digest for seed in (0, 1)),
    ]
    assert len(set(digests)) == 4


def test_the_cache_answers_for_the_tower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tower = untrained(TINY)
    tower.cache = tmp_path
    x = tower(CAPTIONS)
    monkeypatch.setattr(Tower, "_embed", lambda *_: pytest.fail("computed again"))
    assert np.array_equal(tower(CAPTIONS[::-1]), x[::-1])


def test_a_tower_that_gives_no_direction_is_refused(known: Path) -> None:
    tower = untrained(TINY)
    torch.nn.init.zeros_(tower._net.text_projection)
    with pytest.raises(ValueError, match="zero in row 0"):
        tower(CAPTIONS)
    torch.nn.init.constant_(tower._net.text_projection, torch.nan)
    with pytest.raises(ValueError, match="NaN"):
        tower(CAPTIONS)


def test_openai_weights_want_the_quickgelu_name() -> None:
    with pytest.raises(ValueError, match=r"use open_clip:ViT-B-32-quickgelu/openai"):
        from_hub("ViT-B-32", "openai")
    assert check_tag("ViT-B-32-quickgelu", "openai")["quick_gelu"]
    with pytest.raises(ValueError, match=r"has no weights 'laion2b_s34b_b79k' for ViT-B-32-quickgelu"):
        from_hub("ViT-B-32-quickgelu", "laion2b_s34b_b79k")


@pytest.mark.parametrize(
    ("name", "tag", "message"),
    [
        ("ViT-B32", "openai", "did you mean .*ViT-B-32"),
        ("ViT-B-32", "laion2b_s34b_b97k", "did you mean ViT-B-32/laion2b_s34b_b79k"),
        ("nothing like it at all", "openai", "list_models"),
    ],
)
def test_an_unknown_name_or_tag_is_met_with_near_ones(name: str, tag: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_hub(name, tag)


@pytest.mark.parametrize("offline", [True, False])
def test_an_unreachable_hub_is_one_clear_error_within_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offline: bool
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError(-2, "Name or service not known")))
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"the hub gave no .* run `hf download timm/vit_base_patch32_clip_224.openai`"):
        from_hub("ViT-B-32-quickgelu", "openai")
    assert time.perf_counter() - start < 10, "not the minutes of a client that tries again"


def test_what_the_hub_has_is_loaded_as_from_a_file(model: tuple[str, Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, path = model
    monkeypatch.setattr(towers, "check_tag", lambda *_: {"hf_hub": "somebody/model/"})
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: str(path))
    assert np.array_equal(from_hub(name, "tag")(CAPTIONS), from_file(name, path)(CAPTIONS))


def test_weights_that_exist_only_as_a_pickle_are_refused(monkeypatch: pytest.MonkeyPatch, known: Path) -> None:
    monkeypatch.setattr(towers, "check_tag", lambda *_: {"url": "somewhere/x.pt"})
    with pytest.raises(ValueError, match=r"pickle .* weights_only=True"):
        from_hub("tiny-binding", "tag")


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("suffix", [".pt", ".bin", ".safetensors"])
def test_a_pickle_is_refused_with_the_way_to_convert_it_and_never_run(tmp_path: Path, known: Path, suffix: str) -> None:
    path, mark = tmp_path / f"x{suffix}", tmp_path / "mark"
    torch.save({"state": Trap(mark)}, path)
    with pytest.raises(ValueError, match="cannot be read as safetensors" if suffix == ".safetensors" else "Convert it once"):
        from_file("tiny-binding", path)
    assert not mark.exists()


def test_the_conversion_that_is_recommended_works(model: tuple[str, Any, Path], tmp_path: Path) -> None:
    name, whole, path = model
    torch.save({"state_dict": {f"module.{key}": tensor for key, tensor in whole.state_dict().items()}}, tmp_path / "x.pt")
    code = towers.CONVERT.replace("IN", str(tmp_path / "x.pt")).replace("OUT", str(tmp_path / "x.safetensors"))
    exec(code)
    assert np.array_equal(from_file(name, tmp_path / "x.safetensors")(CAPTIONS), from_file(name, path)(CAPTIONS))


@pytest.mark.parametrize("fault", ["absent", "empty", "cut", "no text", "other width", "one missing"])
def test_weights_that_do_not_fit_are_one_clear_error(model: tuple[str, Any, Path], tmp_path: Path, fault: str) -> None:
    name, whole, path = model
    broken = tmp_path / "x.safetensors"
    weights = {key: tensor.contiguous() for key, tensor in whole.state_dict().items()}
    last = next(key for key in weights if key.endswith("text_projection"))
    if fault == "empty":
        broken.write_bytes(b"")
    elif fault == "cut":
        broken.write_bytes(path.read_bytes()[:-1000])
    elif fault == "no text":
        save_file({"visual.proj": torch.ones(2)}, broken)
    elif fault == "other width":
        save_file(weights | {last: torch.ones(48, 31)}, broken)
    elif fault == "one missing":
        save_file({key: tensor for key, tensor in weights.items() if key != last}, broken)
    with pytest.raises(ValueError, match=r"cannot be read|no text tower|not those of this tower: text_projection"):
        from_file(name, broken)


def test_the_image_tower_is_not_read(model: tuple[str, Any, Path]) -> None:
    weights, digest = read_text(model[2])
    assert len(digest) == 64
    assert not [key for key in weights if "visual" in key or key == "logit_scale"]
