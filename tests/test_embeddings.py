"""Laws of the contract of an encoder, of its cache, and of embeddings that were computed somewhere else."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding.embeddings import (
    BATCH,
    Cache,
    Stored,
    batches,
    check_captions,
    check_embeddings,
    distance,
    distances,
    embed_once,
    in_order,
    save_npz,
)

FAULTS = {
    "no captions": [],
    "bare string": "a red car",
    "blank": ["a red car", " "],
    "no string": ["a red car", 3],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_captions_are_named(fault: str) -> None:
    named = {"no captions": "empty", "bare string": "'a red car'", "blank": "caption 1 is blank", "no string": "caption 1 is 3"}
    with pytest.raises(ValueError, match=named[fault]):
        check_captions(FAULTS[fault])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[1.0]], "list"),
        (np.eye(2, dtype=int), "int"),
        (np.ones(3), "shape"),
        (np.eye(3), "shape"),
        (np.zeros((2, 0)), "shape"),
        (np.array([[1.0, 0.0], [np.nan, 0.0]]), "NaN"),
        (np.array([[1.0, 0.0], [0.6, 0.9]]), "row 1"),
    ],
)
def test_what_a_foreign_encoder_returns_is_checked(x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_embeddings(x, 2)
    with pytest.raises(ValueError, match=message):
        distance(lambda captions: x, "a cat", "a dog")
    assert check_embeddings(np.eye(2), 2) is not None


@given(st.lists(st.integers(1, 256), min_size=1, max_size=300))
def test_batches_hold_every_row_once_and_like_lengths_together(lengths: list[int]) -> None:
    grouped = batches(lengths, lambda longest: 4 * longest)
    assert sorted(row for rows in grouped for row in rows) == list(range(len(lengths)))
    assert max(map(len, grouped)) <= BATCH
    in_turn = [lengths[row] for rows in grouped for row in rows]
    assert in_turn == sorted(in_turn)


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_distances_are_a_metric(n: int, dimension: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((n, dimension))
    d = distances(x)
    assert np.array_equal(d, d.T)
    assert (np.diag(d) == 0).all()
    assert (d[:, None] <= (d[:, :, None] + d[None]) * (1 + 4 * (dimension + 4) * 2.0**-53)).all(), "triangle, up to rounding"
    assert d[0, -1] == pytest.approx(math.dist(x[0], x[-1]), rel=(dimension + 4) * 2.0**-52, abs=0)


def toy(captions: list[str]) -> np.ndarray:
    """A unit row that depends on the caption alone."""
    angle = np.array([sum(caption.encode()) for caption in captions], float)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@given(st.lists(st.text(st.characters(categories=["L"]), min_size=1, max_size=8), min_size=1, max_size=200), st.integers(0, 99))
def test_each_caption_is_embedded_once_and_comes_back_at_its_place(captions: list[str], seed: int) -> None:
    seen: list[str] = []

    def embed(batch: list[str]) -> np.ndarray:
        seen.extend(batch)
        return toy(batch)

    x = embed_once(captions, [len(c) for c in captions], embed, lambda longest: longest)
    assert np.array_equal(x, toy(captions))
    assert sorted(seen) == sorted(set(captions))


@given(st.lists(st.integers(1, 256), min_size=1, max_size=200))
def test_batches_put_together_are_the_rows_in_their_order(lengths: list[int]) -> None:
    parts = [(rows, np.array(rows)[:, None]) for rows in batches(lengths, lambda longest: longest)]
    assert np.array_equal(in_order(parts)[:, 0], np.arange(len(lengths)))


def test_a_small_memory_budget_makes_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINDING_MEMORY_MB", "1")
    assert max(map(len, batches([10] * 50, lambda longest: 30_000 * longest))) == 3


def test_a_batch_that_is_no_embedding_is_refused() -> None:
    with pytest.raises(ValueError, match="length 2"):
        embed_once(["a", "b"], [1, 1], lambda batch: 2 * toy(batch), lambda longest: longest)


def test_the_bar_goes_to_stderr_and_only_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    embed_once(["a", "b"], [1, 1], toy, lambda longest: longest)
    assert capfd.readouterr() == ("", "")
    embed_once(["a", "b"], [1, 1], toy, lambda longest: longest, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "2/2" in err


def test_the_cache_tells_encoders_and_captions_apart(tmp_path: Path) -> None:
    captions, x = ["a cat", "a dog"], toy(["a cat", "a dog"])
    cache = Cache(tmp_path / "new", "one")
    assert cache.recall(captions) is None
    cache.remember(captions, x)
    assert np.array_equal(cache.recall(captions), x)
    assert cache.recall(captions[::-1]) is None
    assert cache.recall(["a cat a dog"]) is None
    assert Cache(tmp_path / "new", "two").recall(captions) is None


def refuse(_: list[str]) -> np.ndarray:
    raise AssertionError("it was computed again")


def test_what_is_cached_is_not_computed_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "toy")
    x = embed_once(["b", "a", "b"], [1, 1, 1], toy, lambda longest: longest, cache=cache)
    assert np.array_equal(embed_once(["a", "b"], [1, 1], refuse, lambda longest: longest, cache=cache), x[1:])


def test_a_stored_table_is_an_encoder(tmp_path: Path) -> None:
    captions = ["a cat", "a dog", "a cat"]
    save_npz(tmp_path / "x.npz", captions=np.array(captions), embeddings=3 * toy(captions))
    encoder = Stored.load(tmp_path / "x.npz")
    x = check_embeddings(encoder(["a dog", "a cat", "a dog"]), 3)
    assert np.abs(x - toy(["a dog", "a cat", "a dog"])).max() <= 4 * 2.0**-53, "one product, one root, one division"
    with pytest.raises(ValueError, match="2 captions have no stored embedding, the first is 'a fox'"):
        encoder(["a fox", "a cat", "an owl", "a fox"])
    with pytest.raises(ValueError, match="blank"):
        encoder([" "])


@pytest.mark.parametrize(
    ("captions", "x", "message"),
    [
        (["a"], np.ones((2, 2)), "shape"),
        (["a", "b"], np.ones(2), "shape"),
        (["a", "b"], np.ones((2, 2), int), "int"),
        (["a", "a"], np.eye(2), "two different embeddings, in rows 0 and 1"),
        (["a", "b"], np.array([[1.0, 0.0], [0.0, 0.0]]), "zero in row 1"),
        (["a", "b"], np.array([[1.0, np.inf], [0.0, 1.0]]), "row 0"),
        (["a", "b"], np.array([[1.0, 0.0], [0.0, np.nan]]), "NaN or an infinity in row 1"),
        ([], np.ones((0, 2)), "empty"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(captions: list[str], x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stored(captions, x)


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("fault", ["absent", "noise", "cut", "no captions", "pickle", "one array"])
def test_a_file_that_is_no_table_is_one_clear_error_and_nothing_in_it_is_run(tmp_path: Path, fault: str) -> None:
    path, mark = tmp_path / "x.npz", tmp_path / "mark"
    if fault == "noise":
        path.write_bytes(b"no archive")
    elif fault == "cut":
        save_npz(path, captions=np.array(["a"]), embeddings=np.ones((1, 2)))
        path.write_bytes(path.read_bytes()[:-40])
    elif fault == "no captions":
        save_npz(path, embeddings=np.ones((1, 2)))
    elif fault == "pickle":
        np.savez(path, captions=np.array([Trap(mark)]), embeddings=np.ones((1, 2)))
    elif fault == "one array":
        with path.open("wb") as file:
            np.save(file, np.ones(3))
    with pytest.raises(ValueError, match=r"no file|is not an \.npz file"):
        Stored.load(path)
    assert not mark.exists()
