"""Laws of the audit: what no rotation and no order of quartets changes, what no encoder can pass; a zoo that hides nothing."""

import json
import re
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from dask.distributed import LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from scipy.stats import binom
from scipy.stats import t as student

from binding import audit as module
from binding import numerics, training
from binding.audit import (
    MADE,
    Audit,
    Entry,
    anchor_measures,
    audit,
    bootstrap,
    captions_of,
    draw,
    line_of,
    made_anchors,
    quartet_measures,
    read,
    run_zoo,
    table,
    zoo,
)
from binding.claims import ledger, verify
from binding.cli import main
from binding.embeddings import save_npz
from binding.encoders import ROUNDING, minilm
from binding.files import write_text
from binding.models import load
from binding.numerics import unit
from binding.plots import figure, svg
from binding.plots.audit import LEFT, RIGHT, WIDTH, by_layer, distances, position
from binding.scenes import families, word_multiset
from binding.score import margin
from binding.towers import untrained

RUNS = Path(__file__).resolve().parent.parent / "binding" / "data" / "runs"
U = 2.0**-53
SIZES = st.tuples(st.integers(2, 8), st.integers(2, 12), st.integers(0, 2**32 - 1), st.floats(0.05, 3))


def drawn(size: tuple[int, int, int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Quartets (n, 4, N) that scatter around an anchor (n, N) each, from close to all over the sphere."""
    n, N, seed, spread = size
    generator = np.random.default_rng(seed)
    anchor = unit(generator.standard_normal((n, N)))
    return unit(anchor[:, None] + spread * generator.standard_normal((n, 4, N))), anchor


def random_words(captions: list[str]) -> np.ndarray:
    """An encoder that reads words, and order a little: a fixed Gaussian vector for each word, and one for each word and place."""
    rows = []
    for caption in captions:
        words = enumerate(caption.split())
        parts = [vector(word) + 0.2 * vector(f"{word} {place}") for place, word in words]
        rows.append(np.sum(parts, axis=0))
    return unit(np.stack(rows)).astype(np.float32)


@cache
def vector(key: str) -> np.ndarray:
    return np.random.default_rng(list(key.encode())).standard_normal(16)


def bag(captions: list[str]) -> np.ndarray:
    """The same without places, by the letters' words alone: equal words, equal bits."""
    return unit(np.stack([np.sum([vector(word) for word in word_multiset(c)], axis=0) for c in captions])).astype(np.float32)


@cache
def report() -> Audit:
    return audit(random_words, "words", n=20, draws=200)


@given(SIZES)
def test_no_encoder_passes_its_caps(size: tuple[int, int, int, float]) -> None:
    """Three bounds, each for what it bounds; the slack is the rounding of δ, of the distances and of one root each.

    Distances and √(2δ) are off by at most (2N + 10) u for unit rows; the slope of the cap in √(2δ) is at most 2.
    """
    t, anchor = drawn(size)
    slack = 4 * (2 * t.shape[-1] + 10) * U
    for a in (anchor, *made_anchors(t).values()):
        found = anchor_measures(t, a)
        own = quartet_measures(t)
        every = np.linalg.norm(t[:, :2, None] - t[:, None, 2:], axis=-1).max(axis=(1, 2))
        assert (every <= found["cap"] + slack).all()
        assert (found["cap"] <= found["cap_published"] + slack).all()
        assert (own["d_cross"] <= found["cap_of_mean"] + slack).all()
        room = 1 + slack / np.maximum(found["cap"], slack)
        assert (found["usage"] <= room).all() and (found["usage_published"] <= room).all()
        assert (found["usage_of_mean"] <= 1 + slack / np.maximum(found["cap_of_mean"], slack)).all()


def test_the_cap_of_the_mean_bounds_no_single_pair() -> None:
    """Which is why ``usage_of_mean`` divides the root mean square: one pair far out, the rest at the anchor."""
    anchor = np.array([[1.0, 0.0]])
    turned = np.array([[[np.cos(a), np.sin(a)] for a in (1.0, 0.0, -1.0, 0.0)]])
    found, own = anchor_measures(turned, anchor), quartet_measures(turned)
    assert own["d"][0] > found["cap_of_mean"][0] > own["d_cross"][0]


@given(SIZES)
def test_rotating_the_space_changes_nothing(size: tuple[int, int, int, float]) -> None:
    """Up to rounding: the rotation moves a unit row by at most N² u, and as much again by its own error; distances twice that.

    Usages divide by a cap, and caps pass through a root of δ: the slack of a distance over the cap.
    """
    t, anchor = drawn(size)
    N = t.shape[-1]
    rotation, _ = np.linalg.qr(np.random.default_rng(size[2]).standard_normal((N, N)))
    turned = unit(t @ rotation)
    slack = 20 * (N**2 + 10) * U
    for name, values in quartet_measures(t).items():
        if name not in ("nearest", "shorter"):
            assert np.abs(quartet_measures(turned)[name] - values).max() <= slack, name
    after = anchor_measures(turned, unit(anchor @ rotation))
    for name, values in anchor_measures(t, anchor).items():
        least = anchor_measures(t, anchor)["cap_of_mean"].min()
        assert np.abs(after[name] - values).max() <= slack * (2 / least if "usage" in name else 2), name


@given(SIZES, st.randoms(use_true_random=False))
def test_the_order_of_the_quartets_does_not_matter(size: tuple[int, int, int, float], random: Any) -> None:
    t, anchor = drawn(size)
    order = list(range(len(t)))
    random.shuffle(order)
    for of in (quartet_measures, lambda x: anchor_measures(x, anchor if x is t else anchor[order])):
        for name, values in of(t).items():
            assert np.array_equal(of(t[order])[name], values[order]), name


@given(SIZES)
def test_no_image_has_a_larger_margin_than_d_and_one_has_it(size: tuple[int, int, int, float]) -> None:
    t, _ = drawn(size)
    d = quartet_measures(t)["d"]
    images = unit(np.random.default_rng(size[2]).standard_normal((50, 1, t.shape[-1])))
    slack = 4 * t.shape[-1] * U
    assert (np.abs(margin(images, t[:, 0], t[:, 2])) <= d + slack).all()
    assert np.abs(margin(unit(t[:, 0] - t[:, 2]), t[:, 0], t[:, 2]) - d).max() <= slack


@given(SIZES)
def test_what_survives_a_reordering_is_at_most_the_pairing(size: tuple[int, int, int, float]) -> None:
    """The smallest of four margins, for random images and for the best candidates; and how d, w and d_sym hang together."""
    t, _ = drawn(size)
    n, N = len(t), t.shape[-1]
    own, slack = quartet_measures(t), 4 * (2 * N + 10) * U
    y = unit(t[:, :2].mean(axis=1) - t[:, 2:].mean(axis=1))
    images = unit(np.concatenate([[y], y + np.random.default_rng(size[2]).standard_normal((40, n, N))]))
    four = [margin(images, t[:, a], t[:, b]) for a in (0, 1) for b in (2, 3)]
    assert (np.min(four, axis=0) <= own["d_sym"] + slack).all()
    assert np.abs(np.mean(four, axis=0)[0] - own["d_sym"]).max() <= slack, "the mean of the four is attained along y"
    other = quartet_measures(t[:, [1, 0, 3, 2]])["d"]
    w_swap = quartet_measures(t[:, [2, 3, 0, 1]])["w"]
    assert (own["d_sym"] <= (own["d"] + other) / 2 + slack).all()
    assert (own["d"] <= own["d_sym"] + (own["w"] + w_swap) / 2 + slack).all()


@given(SIZES)
def test_the_made_anchors_are_the_best_of_their_kind(size: tuple[int, int, int, float]) -> None:
    """No other anchor has a smaller mean deviation than the centroid, or a smaller largest one than the tightest."""
    t, anchor = drawn(size)
    found = {name: anchor_measures(t, a) for name, a in (made_anchors(t) | {"other": anchor}).items()}
    slack = 100 * t.shape[-1] * np.sqrt(U)  # the weights of the tightest anchor solve a least squares problem
    for name in found:
        assert (found["centroid"]["delta_mean"] <= found[name]["delta_mean"] + slack).all()
        assert (np.minimum(found["tightest"]["delta"], 1) <= np.minimum(found[name]["delta"], 1) + slack).all()


def test_captions_around_the_centre_have_the_whole_cap() -> None:
    t = np.array([[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    for anchor in made_anchors(t).values():
        assert anchor_measures(t, anchor)["cap"] == 2


def test_ties_share_the_nearest_place() -> None:
    same = np.zeros((1, 4, 3))
    same[..., 0] = 1
    assert quartet_measures(same)["nearest"] == 1 / 3
    assert quartet_measures(same)["shorter"] == 0.5
    two = same.copy()
    two[0, 3] = [0, 1, 0]
    assert quartet_measures(two)["nearest"] == 0.5
    two[0, 2] = [0, 1, 0]
    assert quartet_measures(two)["nearest"] == 1
    assert quartet_measures(two[:, [0, 2, 1, 3]])["nearest"] == 0


def test_a_bag_of_words_has_d_exactly_zero_in_every_family() -> None:
    for encoder in (bag, minilm().bag_of_words):
        found = audit(encoder, n=10, draws=50)
        for family, entry in found.families.items():
            assert entry.measures["d"] == (0, 0, 0), family
            assert all(anchor["usage"] == (0, 0, 0) for anchor in entry.anchors.values()), family
            assert entry.measures["nearest"].mean == (0 if entry.measures["w"].mean else pytest.approx(1 / 3, rel=1e-15, abs=0))


def test_bootstrap_intervals_cover_as_often_as_they_say() -> None:
    """2,000 synthetic models at once. For normal data the percentile interval is x̄ ± 1.96 s √((n − 1)/n)/√n, so that its coverage
    is a Student probability p; the count is binomial, held to p ± 0.01 (for the draws) with a failure probability of 1e-9.
    """
    n, models = 60, 2000
    values = np.random.default_rng(0).standard_normal((n, models))
    low, high = bootstrap(values, np.random.default_rng(1), draws=4000)
    p = 1 - 2 * student.sf(1.959964 * np.sqrt((n - 1) / n), n - 1)
    covered = ((low <= 0) & (high >= 0)).sum()
    assert binom.ppf(5e-10, models, p - 0.01) <= covered <= binom.isf(5e-10, models, p + 0.01)
    narrow_low, narrow_high = bootstrap(values, np.random.default_rng(1), draws=4000, level=0.8)
    assert (narrow_low > low).all() and (narrow_high < high).all()


@pytest.mark.parametrize(
    ("values", "draws", "level"),
    [(np.ones((1, 2)), 10, 0.9), (np.ones(3), 10, 0.9), (np.ones((3, 1)), 0, 0.9), (np.ones((3, 1)), 10, 1.0)],
)
def test_bootstrap_refuses_what_has_no_interval(values: np.ndarray, draws: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"n >= 2|draws >= 1"):
        bootstrap(values, np.random.default_rng(0), draws, level)


def test_the_audit_by_another_path() -> None:
    """Caption by caption with inner products, against the report; float32 rows of 16 entries lose less than 1e-6 in a chord."""
    found = audit(random_words, n=6, draws=20, chosen=["role"]).families["role"]
    usages = {"one_each": [], "centroid": []}
    d, w = [], []
    for q in draw(["role"], 6)["role"]:
        x = random_words(list(q.captions)).astype(float)
        d.append(np.sqrt(2 - 2 * x[0] @ x[2]))
        w.append(np.sqrt(2 - 2 * x[0] @ x[1]))
        for name, anchor in (("one_each", random_words([dict(q.anchors)["one_each"]])[0]), ("centroid", unit(x.mean(axis=0)))):
            angle = np.arccos(np.clip(x @ anchor, -1, 1)).max()
            usages[name].append(d[-1] / (2 * np.sin(angle) if angle < np.pi / 2 else 2))
    assert abs(found.measures["d"].mean - np.mean(d)) < 1e-6
    assert abs(found.measures["w"].mean - np.mean(w)) < 1e-6
    for name, values in usages.items():
        assert abs(found.anchors[name]["usage"].mean - np.mean(values)) < 1e-5


def test_colour_quartets_of_minilm_say_what_the_first_page_says() -> None:
    captions = [c for q in draw(["colour"])["colour"] for c in q.captions]
    found = {name: values.mean() for name, values in quartet_measures(minilm()(captions).reshape(240, 4, -1)).items()}
    assert verify(ledger()["index.swap_is_shorter"], found["shorter"])
    assert verify(ledger()["index.nearest"], found["nearest"])
    for claim, measure in (("layers_swap", "d"), ("layers_order", "w"), ("layers_pairing", "d_sym")):
        entry = ledger()[f"bag-of-words.{claim}"]
        assert abs(entry.expected[-1] - found[measure]) <= entry.tolerance


def test_the_stored_runs_are_what_the_code_gives() -> None:
    """MiniLM in one family to float32 rounding; the untrained tower in another, with its intervals, to the six digits kept."""
    captions = [c for q in draw(["role"])["role"] for c in q.captions]
    kept = read(RUNS / "audit-minilm.json").families["role"].measures
    for name, values in quartet_measures(minilm()(captions).reshape(240, 4, -1)).items():
        if name not in ("nearest", "shorter"):
            assert abs(values.mean() - kept[name].mean) <= 2 * ROUNDING, name
    small = {"embed_dim": 64, "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 4, "layers": 2}}
    again = audit(untrained(small, seed=0), chosen=["role"]).families["role"]
    stored = read(RUNS / "audit-untrained.json").families["role"]
    for name, entry in again.anchors.items():
        assert np.abs(np.subtract(entry["usage"], stored.anchors[name]["usage"])).max() <= 1e-4, "float32, over caps above 0.2"


def test_leaving_a_family_out_changes_no_other() -> None:
    alone = audit(random_words, "words", n=20, draws=200, chosen=["size"])
    assert alone.families["size"] == report().families["size"]
    assert list(report().families) == list(families())


def test_the_encoder_is_called_once_with_different_captions() -> None:
    calls: list[list[str]] = []

    def counting(captions: list[str]) -> np.ndarray:
        calls.append(captions)
        return random_words(captions)

    audit(counting, n=5, draws=10)
    (captions,) = calls
    assert captions == captions_of(draw(n=5)) == sorted(set(captions))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 1}, "two quartets"),
        ({"n": 0}, "between 1 and"),
        ({"n": 10**6}, "between 1 and"),
        ({"chosen": ["smell"]}, "no family 'smell'"),
        ({"n": 3, "draws": 0}, "draws"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit(random_words, **settings)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(np.zeros_like, "length 0"), (lambda x: x * np.nan, "NaN"), (lambda x: x[:-1], "shape"), (list, "list")],
)
def test_an_encoder_that_breaks_the_contract_is_named(spoil: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"what mine returned .*{message}"):
        audit(lambda captions: spoil(random_words(captions)), "mine", n=3)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="expected \\(n, 4, N\\)"):
        quartet_measures(np.ones((3, 2, 2)))


def test_a_report_comes_back_from_its_json(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "x.json", json.dumps(report().to_json()))
    back = read(tmp_path / "new" / "x.json")
    assert back.to_json() == report().to_json()
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "x.json"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"schema": 9}', '{"schema": 1, "model": "x"}', '{"schema": 1, "families": 3}', "\0"]
)
def test_a_file_that_is_no_report_is_one_clear_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match="no audit report"):
        read(tmp_path / "x.json")
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ValueError, match="no audit report"):
        read(tmp_path / "x.json")


@pytest.mark.parametrize("size", range(1, 6))
def test_cut_reports_are_refused(tmp_path: Path, size: int) -> None:
    text = json.dumps(report().to_json())
    (tmp_path / "x.json").write_text(text[: len(text) * size // 6])
    with pytest.raises(ValueError, match="no audit report"):
        read(tmp_path / "x.json")


def test_the_table_says_every_number_of_the_report() -> None:
    text = table(report())
    for family, entry in report().families.items():
        assert family in text
        assert f"{entry.measures['d_sym'].mean:.3f}" in text
        assert entry.best_wording() not in MADE
        for anchor in entry.anchors.values():
            assert f"{anchor['usage'].mean:.3f}" in text
    assert max(map(len, text.splitlines())) <= 80


# The zoo


def test_the_list_is_eighteen_encoders_that_open_clip_knows() -> None:
    from binding.towers import check_tag

    entries = zoo()
    assert len(entries) == 18
    for entry in entries:
        kind, _, rest = entry.model.partition(":")
        name, _, tag = rest.partition("/")
        config = open_clip.get_model_config(name)
        assert (kind, config["embed_dim"], config["text_cfg"].get("context_length", 77)) == (
            "open_clip",
            entry.dimension,
            entry.context,
        )
        if not tag.endswith(".safetensors"):
            assert check_tag(name, tag)["hf_hub"], "nothing on the list exists only as a pickle"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "x",
        "encoder = 3",
        "[[encoder]]\nname = 'a'",
        "[[encoder]]\nname='a'\nmodel='m'\nsize=3",
        "[[encoder]]\nname='a'\nmodel='m'\n" * 2,
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match=r"list"):
        zoo(tmp_path / "absent.toml")
    (tmp_path / "x.toml").write_text(content)
    with pytest.raises(ValueError, match=r"no list of encoders|twice"):
        zoo(tmp_path / "x.toml")


def only_two(model: str, log: Path) -> Any:
    """Stands in for ``models.load``, in another process, too: one sound encoder, one that fails, and a record of the calls."""
    with log.open("a") as file:
        file.write(f"{model}\n")
    if model == "broken":
        raise RuntimeError("no such weights\nand more lines")
    return random_words


ENTRIES = (Entry("Words A", "a", dimension=16), Entry("Broken", "broken"), Entry("Words B", "b"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_zoo_skips_nothing_goes_on_where_it_stopped_and_tries_failures_again(tmp_path: Path, jobs: int) -> None:
    log, folder = tmp_path / "log", tmp_path / "reports"
    run = partial(run_zoo, load=partial(only_two, log=log), folder=folder, jobs=jobs, n=4, draws=20, chosen=["colour"])
    first = run(ENTRIES[:2])
    assert [outcome.status for outcome in first] == ["measured", "failed"]
    assert first[1].error == "RuntimeError: no such weights\nand more lines"
    assert "no such weights" in line_of(first[1]) and "\n" not in line_of(first[1])
    second = run(ENTRIES)
    assert [outcome.status for outcome in second] == ["kept", "failed", "measured"]
    assert second[0].report.families == read(folder / "words-a.json").families
    assert sorted(log.read_text().split()) == ["a", "b", "broken", "broken"]
    assert sorted(path.name for path in folder.iterdir()) == ["broken.json", "words-a.json", "words-b.json"]
    with pytest.raises(ValueError, match="was not measured: RuntimeError"):
        read(folder / "broken.json")
    assert [outcome.status for outcome in run(ENTRIES[:1], seed=1)] == ["measured"], "other settings, another report"


def test_an_encoder_of_another_size_than_the_list_says_is_a_failure(tmp_path: Path) -> None:
    (outcome,) = run_zoo([Entry("Words", "a", dimension=17)], lambda _: random_words, tmp_path, n=3, draws=5)
    assert outcome.status == "failed" and "N = 17, the encoder gave 16" in outcome.error


def test_the_cluster_measures_the_same(tmp_path: Path) -> None:
    """Two workers in processes of their own against this process; the failure of one model reaches the reader from there, too."""
    run = partial(run_zoo, ENTRIES, load=partial(only_two, log=tmp_path / "log"), n=4, draws=20, chosen=["colour"])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = run(folder=tmp_path / "there", dask=cluster.scheduler_address)
    here = run(folder=tmp_path / "here")
    assert [outcome.status for outcome in there] == ["measured", "failed", "measured"]
    assert [outcome.error for outcome in there] == [outcome.error for outcome in here]
    assert there[0].report.families == here[0].report.families


def test_dask_is_asked_for_and_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(ValueError, match="pip install 'dask"):
        run_zoo(ENTRIES, lambda _: random_words, tmp_path, dask="tcp://localhost:1")


def test_a_clip_that_met_swaps_forgets_the_order() -> None:
    """The two runs of the page, from another seed: contrast with swaps makes order small beside pairing."""
    sets = training.split()[1]
    scene = training.scenes(sets, torch.zeros(len(sets), dtype=torch.bool))
    pictures = training.render(scene, numerics.generator(1))
    four = training.quartet_captions(scene)
    ratio = {}
    for rate in (0.0, 1.0):
        model = training.train(training.Config(rate, seed=1, steps=300, warmup=50))
        t = torch.stack(training.embed(model, pictures, *four)[1:], dim=1).numpy()
        found = quartet_measures(t)
        ratio[rate] = found["w"].mean() / found["d_sym"].mean()
    assert ratio[1.0] <= 0.5
    assert ratio[0.0] >= 0.8


# By name


TINY: dict[str, Any] = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 40, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model as open_clip saves it, text tower alone."""
    tower = untrained(TINY, seed=2)
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": TINY}))
    save_file(
        {name: tensor.contiguous() for name, tensor in tower._net.state_dict().items()}, tmp_path / "open_clip_model.safetensors"
    )
    return tmp_path


def test_a_folder_of_open_clip_is_loaded_by_its_path(folder: Path) -> None:
    assert np.array_equal(load(str(folder))(["a cat"]), untrained(TINY, seed=2)(["a cat"]))
    open_clip.factory._MODEL_CONFIGS["tiny-audit"] = TINY
    named = load(f"open_clip:tiny-audit/{folder / 'open_clip_model.safetensors'}")
    assert np.array_equal(named(["a cat"]), untrained(TINY, seed=2)(["a cat"]))


def test_a_folder_of_sentence_transformers_is_loaded_by_its_path(tmp_path: Path) -> None:
    from binding.encoders import _installed

    assert np.linalg.norm(load(str(_installed()))(["a cat"]) - minilm()(["a cat"])) <= ROUNDING
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ValueError, match="no weights"):
        load(str(tmp_path))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"only pickled weights .*safe_serialization"):
        load(str(tmp_path))


def test_a_function_and_a_table_are_loaded_by_their_names(tmp_path: Path) -> None:
    assert load(f"python:{__name__}:random_words") is random_words
    save_npz(tmp_path / "x.npz", captions=np.array(["a cat"]), embeddings=np.ones((1, 4)))
    assert np.array_equal(load(str(tmp_path / "x.npz"))(["a cat"]), np.full((1, 4), 0.5))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("minilmm", "did you mean minilm"),
        ("openclip:ViT-B-32/openai", "did you mean open_clip"),
        ("qwertz", "Known forms"),
        ("open_clip:ViT-B-32", "names no weights"),
        ("open_clip:/openai", "names no weights"),
        ("open_clip:ViT-B-32/openai", "use open_clip:ViT-B-32-quickgelu/openai"),
        ("open_clip:ViT-B-32/negclip.pth", "Convert it once"),
        ("open_clip:ViT-B-32/absent.safetensors", "cannot be read"),
        ("python:no_such_module:f", "cannot be imported"),
        ("python:json:nothing", "cannot be imported"),
        ("python:json", "cannot be imported"),
        ("python:sys:path", "is list and no function"),
        ("absent.npz", "no file"),
        (".", "holds no known encoder"),
    ],
)
def test_a_name_that_is_no_encoder_is_one_clear_error(
    model: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        load(model)


# The command and the pictures


def test_the_command_prints_writes_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = f"python:{__name__}:random_words"
    out, picture = tmp_path / "x.json", tmp_path / "x.svg"
    assert main(["audit", model, "--quartets", "20", "--out", str(out), "--picture", str(picture)]) == 0
    printed, err = capsys.readouterr()
    assert err == "" and printed.startswith(f"{model}: N = 16, 20 quartets a family")
    assert read(out).families["colour"].measures["d"].mean == pytest.approx(
        report().families["colour"].measures["d"].mean, abs=1e-6
    )
    assert picture.read_text().startswith("<svg")
    assert main(["audit", model, "--quartets", "20", "--family", "size", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["families"]) == ["size"]


def test_embeddings_from_elsewhere_give_the_same_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--captions", str(tmp_path / "c.txt"), "--quartets", "5"]) == 0
    captions = (tmp_path / "c.txt").read_text().splitlines()
    assert captions == captions_of(draw(n=5))
    save_npz(tmp_path / "x.npz", captions=np.array(captions), embeddings=random_words(captions))
    assert main(["audit", str(tmp_path / "x.npz"), "--quartets", "5", "--out", str(tmp_path / "x.json")]) == 0
    direct = audit(random_words, n=5)
    assert read(tmp_path / "x.json").to_json()["families"] == direct.to_json()["families"]
    assert main(["audit", str(tmp_path / "x.npz"), "--quartets", "6"]) == 2
    assert "have no stored embedding" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no encoder 'nothing'"),
        (["--quartets", "0"], "between 1 and"),
        (["--family", "smell"], "no family"),
        (["--out", "x.txt"], "does not end in .json"),
        (["--picture", "x.png"], "does not end in .svg"),
        (["--captions", "c.json"], "does not end in .txt"),
        (["--out", "there.json"], "--force"),
        (["--zoo", "reports", "--list", "absent.toml"], "no list of encoders"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "audit", lambda *_, **__: pytest.fail("measured before the input was checked"))
    Path("there.json").write_text("precious")
    assert main(["audit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert Path("there.json").read_text() == "precious"


def test_the_zoo_on_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Small local models: one of open_clip, one function, one that is not there."""
    list_ = tmp_path / "list.toml"
    models = {"Tiny": str(folder), "Words": f"python:{__name__}:random_words", "Absent": "absent.npz"}
    list_.write_text("".join(f"[[encoder]]\nname = '{name}'\nmodel = '{model}'\n" for name, model in models.items()))
    command = ["audit", "--zoo", str(tmp_path / "reports"), "--list", str(list_), "--quartets", "3", "--family", "colour"]
    assert main(command) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [["Tiny", "measured"], ["Words", "measured"], ["Absent", "failed"]]
    assert "no file absent.npz" in lines[2] and lines[3].startswith("2 of 3 encoders measured")
    assert main(command) == 1
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[:3]] == ["kept", "kept", "failed"]


def test_the_pictures_show_what_was_measured() -> None:
    fig, ax = figure()
    position(ax, report())
    marks = {line.get_label(): line.get_xydata()[0] for line in ax.get_lines()}
    for family, entry in report().families.items():
        expected = entry.anchors["one_each"]["cap_published"].mean, entry.measures["d"].mean
        assert np.array_equal(marks[family], expected)
    assert svg(fig).startswith("<svg")
    fig, ax = figure()
    by_layer(ax, ["input", "1"], {"d": [entry.measures["d"] for entry in list(report().families.values())[:2]]}, "d")
    drawn_to_scale = distances(report().families["role"], top=1.0)
    for key in ("d", "w", "d_sym"):
        mean = report().families["role"].measures[key].mean
        assert f">{mean:.3f}<" in drawn_to_scale
        assert re.search(rf'width="{re.escape(f"{mean * (WIDTH - LEFT - RIGHT):.1f}"[:-1])}', drawn_to_scale)
    assert svg(fig).startswith("<svg")
