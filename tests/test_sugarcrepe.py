"""Laws of the SugarCrepe measurements, fuzzing of its loader, and the stored run measured again where the data is present."""

import json
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding import sugarcrepe
from binding.claims import ledger, verify
from binding.encoders import ROUNDING, minilm
from binding.numerics import unit
from binding.plots import figure
from binding.plots import sugarcrepe as pictures
from binding.scenes import word_multiset
from binding.sugarcrepe import COUNTS, FIVE, PUBLISHED_COUNTS, Item, Run, Tally

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BINDING_SUGARCREPE", ROOT.parent / "shared" / "data" / "sugarcrepe"))
WORDS = ("cat", "mat", "on", "a", "red")
GOOD = {
    "0": {"filename": "1.jpg", "caption": "A cat on a mat.", "negative_caption": "A mat on a cat."},
    "7": {"filename": "2.jpg", "caption": "A dog.", "negative_caption": "A red dog."},
}
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    if not DATA.is_dir():
        pytest.skip("the SugarCrepe files are absent: set BINDING_SUGARCREPE")
    return sugarcrepe.load(DATA)


@pytest.fixture(scope="module")
def run() -> Run:
    return sugarcrepe.read_run()


def drawn(seed: int, n: int) -> tuple[Item, ...]:
    """Items of random words; captions and images come back, and some pairs have the same words."""
    rng = np.random.default_rng(seed)
    made = []
    while len(made) < n:
        a = " ".join(rng.choice(WORDS, rng.integers(1, 5)))
        b = " ".join(rng.permutation(a.split())) if rng.random() < 0.5 else " ".join(rng.choice(WORDS, 3))
        if a != b:
            made.append(Item(str(rng.choice(FIVE)), str(len(made)), f"{rng.integers(max(n // 2, 1))}.jpg", a, b))
    return tuple(made)


class Drawn:
    """An encoder that gives each input a random direction of its own, and writes down what it was asked."""

    def __init__(self, seed: int, N: int = 6, turn: np.ndarray | None = None, see: Callable[[Any], Any] = str) -> None:
        self.seed, self.N, self.asked, self.see = seed, N, [], see
        self.turn = np.eye(N) if turn is None else turn

    def __call__(self, inputs: Sequence[Any]) -> np.ndarray:
        self.asked += list(inputs)
        rows = [np.random.default_rng([self.seed, *str(self.see(x)).encode()]).standard_normal(self.N) for x in inputs]
        return unit(np.stack(rows)) @ self.turn


def folder_of(items: Sequence[Item], folder: Path) -> Path:
    for name in {item.filename for item in items}:
        (folder / name).write_bytes(b"an image")
    return folder


def measured(items: Sequence[Item], seed: int, folder: Path, **options: Any) -> tuple[Run, Drawn, Drawn]:
    text, image = Drawn(seed), Drawn(seed + 1, see=lambda path: path.name)
    return sugarcrepe.measure(items, text, image, folder_of(items, folder), **options), text, image


# --- The measurement


@given(seeds, st.integers(1, 12), st.integers(1, 5))
def test_each_input_is_encoded_once_and_equals_the_loop_over_pairs(tmp_path_factory, seed: int, n: int, batch: int) -> None:  # type: ignore[no-untyped-def]
    """The published evaluator encodes image, caption and negative of every item; the numbers must be the same."""
    items = drawn(seed, n)
    found, text, image = measured(items, seed, tmp_path_factory.mktemp("images"), batch=batch)
    assert len(text.asked) == len(set(text.asked))
    assert len(image.asked) == len({item.filename for item in items})
    for k, item in enumerate(items):
        t, negative = text([item.caption, item.negative])
        (i,) = image([Path(item.filename)])
        # 3 inner products of N = 6 terms of unit vectors, each within (N + 2) u.
        assert abs(found.margin[k] - (i @ t - i @ negative)) <= 24 * 2.0**-52
        assert abs(found.d[k] - np.sqrt(((t - negative) ** 2).sum())) <= 24 * 2.0**-52


@given(seeds, st.integers(1, 12))
def test_no_margin_passes_its_ceiling(tmp_path_factory, seed: int, n: int) -> None:  # type: ignore[no-untyped-def]
    """Corollary G.4, for images and for what stands in for them; the slack is rounding, (N + 4) u of a unit vector."""
    items = drawn(seed, n)
    for found in (measured(items, seed, tmp_path_factory.mktemp("images"))[0], sugarcrepe.measure(items, Drawn(seed))):
        seen = ~np.isnan(found.margin)
        assert (np.abs(found.margin[seen]) <= found.d[seen] * (1 + 10 * 2.0**-52)).all()


@given(seeds, st.integers(1, 10))
def test_turning_the_space_or_shuffling_the_items_changes_nothing(seed: int, n: int) -> None:
    items = drawn(seed, n)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    order = rng.permutation(n)
    plain = sugarcrepe.measure(items, Drawn(seed))
    turned = sugarcrepe.measure(items, Drawn(seed, turn=turn))
    shuffled = sugarcrepe.measure([items[k] for k in order], Drawn(seed))
    # A rotation with rounding 10 N u moves unit vectors by no more than that, and stand-ins by it over the length of their sum,
    # which is above 0.01 for these draws; after shuffling, only that sum may run in another order.
    slack = 120 * 2.0**-52 / 0.01
    assert np.abs(turned.d - plain.d).max() <= slack
    assert np.nan_to_num(np.abs(turned.margin - plain.margin)).max() <= slack
    assert np.array_equal(shuffled.d, plain.d[order])
    assert np.nan_to_num(np.abs(shuffled.margin - plain.margin[order])).max() <= slack
    assert np.array_equal(np.isnan(shuffled.margin), np.isnan(plain.margin[order]))


@given(seeds, st.integers(1, 12))
def test_a_stand_in_is_the_mean_direction_of_the_other_captions(seed: int, n: int) -> None:
    items = drawn(seed, n)
    encode = Drawn(seed)
    vectors = {c: encode([c])[0] for item in items for c in (item.caption, item.negative)}
    rows, known = sugarcrepe.stand_ins(items, vectors)
    for item, row, has in zip(items, rows, known, strict=True):
        others = {other.caption for other in items if other.filename == item.filename} - {item.caption}
        assert has == bool(others)
        mean = sum((vectors[c] for c in others), np.zeros(6))
        # Parallel, the same way: |row| |mean| − ⟨row, mean⟩ = 0 up to rounding.
        assert abs(np.linalg.norm(row) * np.linalg.norm(mean) - row @ mean) <= 100 * 2.0**-52


def test_a_bag_of_words_ties_on_every_pure_swap_and_nowhere_else(items: tuple[Item, ...]) -> None:
    """Theorem D.2 on real captions: d and margin are exactly 0 where the words agree."""
    chosen = [item for item in items if item.subset.startswith("swap")][::12]
    plain = [
        item._replace(caption=" ".join(word_multiset(item.caption)), negative=" ".join(word_multiset(item.negative)))
        for item in chosen
    ]
    distinct = [item for item in plain if item.caption != item.negative]
    bags = {" ".join(word_multiset(c)) for item in chosen for c in (item.caption, item.negative)}
    x = dict(zip(sorted(bags), minilm().bag_of_words(sorted(bags)), strict=True))
    found = sugarcrepe.measure(chosen, lambda captions: np.stack([x[" ".join(word_multiset(c))] for c in captions]))
    assert ((found.d == 0) == found.pure).all()
    assert (found.margin[found.pure & ~np.isnan(found.margin)] == 0).all()
    assert 0 < len(distinct) < len(chosen)


# --- Exact counts


@given(st.lists(st.sampled_from([-0.5, -1e-300, 0.0, -0.0, 1e-300, 0.5]), min_size=1), st.lists(st.floats(-1, 1), min_size=1))
def test_tallies_add_up_and_turn_over(a: list[float], b: list[float]) -> None:
    one, two = sugarcrepe.tally(np.array(a)), sugarcrepe.tally(np.array(b))
    assert sugarcrepe.tally(np.array(a + b)) == Tally(*np.add(one, two).tolist())
    assert one.accuracy + sugarcrepe.tally(-np.array(a)).accuracy == 1
    assert one.ties == a.count(0.0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=12), seeds)
def test_no_bag_of_words_scorer_passes_its_ceiling_and_one_reaches_it(pairs: list[tuple[bool, int]], seed: int) -> None:
    pure = np.array([flag for flag, _ in pairs])
    any_scorer = np.where(pure, 0.0, np.random.default_rng(seed).standard_normal(len(pure)))
    oracle = np.where(pure, 0.0, 1.0)
    assert sugarcrepe.tally(any_scorer).accuracy <= sugarcrepe.bag_of_words_ceiling(pure) == sugarcrepe.tally(oracle).accuracy


@given(seeds, st.integers(10, 200), st.integers(2, 10))
def test_parts_hold_every_item_once_and_follow_the_order_of_d_only(seed: int, n: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    d, margins = rng.random(n), rng.choice([-1.0, 0.0, 1.0], n)
    found = sugarcrepe.deciles(d, margins, parts)
    assert found.n.sum() == n and np.ptp(found.n) <= 1
    assert (np.diff(found.d) > 0).all()
    # Sums of at most ten products of numbers up to n.
    assert abs(found.n @ found.accuracy - n * float(sugarcrepe.tally(margins).accuracy)) <= 100 * n * 2.0**-52
    assert np.array_equal(sugarcrepe.deciles(d**3, margins, parts).accuracy, found.accuracy)
    low = d < np.median(d)
    errors = (1 - np.sign(margins)) / 2
    if errors.sum():
        share = sugarcrepe.errors_below_median(d, margins)
        assert share == Fraction(int(2 * errors[low].sum()), int(2 * errors.sum()))


# --- The loader


def write(folder: Path, content: Any) -> Path:
    path = folder / "swap_obj.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    first, second = sugarcrepe.read_subset(write(tmp_path, GOOD))
    assert first == Item("swap_obj", "0", "1.jpg", "A cat on a mat.", "A mat on a cat.")
    assert first.pure and not second.pure
    assert (first.saved_words, second.saved_words) == (0, 1)
    assert sugarcrepe.load(tmp_path, ["swap_obj"], published=False) == (first, second)


def changed(**fields: Any) -> dict[str, Any]:
    return GOOD | {"7": GOOD["7"] | fields}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(GOOD)[:100].encode(), "cannot be read as JSON"),
        (b"", "cannot be read as JSON"),
        (b"\xff\xfe{", "cannot be read as JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"0": 1, "0": 2}', "'0' stands twice"),
        (b'{"0": ' + b"1" * 5000 + b"}", "cannot be read as JSON"),
        ([], "holds a list"),
        ({}, "holds a dict"),
        (None, "holds nothing"),
        ({"0": "A cat."}, "entry '0' is a str"),
        (changed(caption=None), "entry '7': caption is nothing"),
        (changed(caption=3), "caption is a int"),
        (changed(negative_caption=["a"]), "negative_caption is a list"),
        (changed(caption="cat " * 600), "2,400 characters, more than 2,000"),
        (changed(caption="a \ud800 cat"), "half a character"),
        (changed(caption="  "), "has no word"),
        (changed(negative_caption="?!"), "has no word"),
        (changed(negative_caption="a DOG"), "nothing to decide"),
        (changed(filename="../../etc/passwd"), "without folders"),
        (changed(filename=""), "without folders"),
        (changed(filename="a/b.jpg"), "without folders"),
    ],
)
def test_a_broken_file_is_named_with_its_entry(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(ValueError, match=r"swap_obj\.json.*" + said):
        sugarcrepe.read_subset(write(tmp_path, content))


def test_a_huge_file_is_not_even_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"")
    os.truncate(path, sugarcrepe.LARGEST_FILE + 1)
    with pytest.raises(ValueError, match="16,000,001 bytes"):
        sugarcrepe.read_subset(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["0", "filename", "caption", "negative_caption"]) | st.text(), inner)
    ),
)


def assert_read_or_named(path: Path) -> None:
    refusal = ""
    try:
        assert all(isinstance(item, Item) for item in sugarcrepe.read_subset(path))
    except ValueError as error:
        refusal = str(error)
    assert not refusal or str(path) in refusal


@given(JSON)
def test_any_json_is_read_or_refused_by_name(tmp_path_factory, value: Any) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path_factory.mktemp("fuzz"), value)
    assert_read_or_named(path)


@given(st.data())
def test_a_damaged_file_is_read_or_refused_by_name(tmp_path_factory, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    whole = bytearray(json.dumps(GOOD).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.mktemp("fuzz"), bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    assert_read_or_named(path)


def test_only_the_published_bytes_pass_as_published(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(ValueError, match=r"swap_obj\.json has sha256 .* not the published file"):
        sugarcrepe.load(tmp_path, ["swap_obj"])
    with pytest.raises(ValueError, match=r"no file .*swap_att\.json.*--download"):
        sugarcrepe.load(tmp_path, ["swap_att"])
    with pytest.raises(ValueError, match="no subset 'swap'"):
        sugarcrepe.load(tmp_path, ["swap"])


def test_a_download_is_kept_only_if_its_hash_is_right(tmp_path: Path, items: tuple[Item, ...]) -> None:
    there = tmp_path / "there"
    sugarcrepe.download(there, DATA.resolve().as_uri() + "/")
    assert sugarcrepe.load(there) == items
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "target"
    elsewhere.mkdir()
    (elsewhere / "replace_obj.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"replace_obj\.json has sha256"):
        sugarcrepe.download(target, elsewhere.as_uri() + "/")
    assert not list(target.iterdir())


def test_the_variable_names_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BINDING_SUGARCREPE", raising=False)
    assert sugarcrepe.data_folder() is None
    monkeypatch.setenv("BINDING_SUGARCREPE", str(tmp_path))
    assert sugarcrepe.data_folder() == tmp_path
    monkeypatch.setenv("BINDING_SUGARCREPE", str(tmp_path / "no"))
    with pytest.raises(ValueError, match="is no folder"):
        sugarcrepe.data_folder()


# --- Runs


@given(seeds, st.integers(1, 12))
def test_a_run_comes_back_with_six_digits_and_exact_signs(tmp_path_factory, seed: int, n: int) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("run") / "run.json"
    items = sorted(drawn(seed, n), key=lambda item: item.subset)
    before = sugarcrepe.measure(items, Drawn(seed), model="drawn")
    before.save(path)
    after = sugarcrepe.read_run(path)
    assert after.provenance == json.loads(json.dumps(before.provenance)) and after.provenance["model"] == "drawn"
    assert after.examples == before.examples and set(after.examples) <= set(items)
    for one in ("subset", "key", "pure", "saved_words"):
        assert (getattr(after, one) == getattr(before, one)).all()
    for one in ("d", "margin"):
        a, b = getattr(after, one), getattr(before, one)
        assert np.array_equal(np.sign(a), np.sign(b), equal_nan=True)
        assert np.nan_to_num(np.abs(a - b) - 5e-6 * np.abs(b)).max() <= 0
    assert [path] == list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: "{", "no run of this command"),
        (lambda s: s | {"subsets": []}, "no run of this command"),
        (lambda s: s["subsets"]["swap_obj"].pop("d") and s, "no run of this command"),
        (lambda s: s["subsets"]["swap_obj"]["d"].pop() and s, "no whole run"),
        (lambda s: s["subsets"]["swap_obj"]["d"].__setitem__(0, None) or s, "no whole run"),
        (lambda s: s["subsets"]["swap_obj"]["d"].__setitem__(0, 1e-9) or s, "above its ceiling"),
        (lambda s: s | {"subsets": {}}, "no whole run"),
    ],
)
def test_a_broken_run_is_refused(tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    items = [Item("swap_obj", str(k), "1.jpg", f"a {k} cat", f"a cat {k}") for k in range(3)]
    path = tmp_path / "run.json"
    sugarcrepe.measure(items, Drawn(0)).save(path)
    broken = change(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(broken if isinstance(broken, str) else json.dumps(broken), encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        sugarcrepe.read_run(path)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sugarcrepe.measure([], Drawn(0)), "no item"),
        (lambda: sugarcrepe.measure(drawn(0, 3), Drawn(0), Drawn(1), Path("/nowhere")), "lacks . of . images"),
        (lambda: sugarcrepe.measure(drawn(0, 3), lambda c: np.ones((len(c), 2))), "expected 1"),
        (lambda: sugarcrepe.measure(drawn(0, 3), lambda c: np.eye(2)[:1]), "one row each"),
        (lambda: sugarcrepe.tally(np.array([])), "no item"),
        (lambda: sugarcrepe.tally(np.array([0.1, np.nan])), "1 margins are NaN"),
        (lambda: sugarcrepe.bag_of_words_ceiling(np.array([])), "no item"),
        (lambda: sugarcrepe.deciles(np.ones(9), np.ones(9)), "at least 10"),
        (lambda: sugarcrepe.deciles(np.ones(9), np.ones(8), 2), "9 ceilings and 8 margins"),
        (lambda: sugarcrepe.errors_below_median(np.arange(3.0), np.ones(3)), "no error"),
        (lambda: sugarcrepe.read_run().of("swap"), "no subset 'swap'"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


# --- The published table and the published files


def test_every_published_accuracy_is_a_count_over_246() -> None:
    """Each of 119 percentages comes from one count; none of swap_obj could come from today's 245 items."""
    table = sugarcrepe.published()
    assert len(table) == 17 and all(list(row) == list(COUNTS) for row in table.values())
    for row in table.values():
        assert all(len(sugarcrepe.right_answers(row[s], PUBLISHED_COUNTS[s])) == 1 for s in COUNTS)
        assert not sugarcrepe.right_answers(row["swap_obj"], COUNTS["swap_obj"])


@given(st.integers(1, 3000), st.data())
def test_a_printed_count_is_found_again(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    assert k in sugarcrepe.right_answers(round(100 * k / n, 2), n)


def test_the_files_are_as_the_page_says(items: tuple[Item, ...], run: Run) -> None:
    """Recounted from the published files without the run, and the run agrees with them item by item."""
    assert {s: sum(item.subset == s for item in items) for s in COUNTS} == COUNTS
    keys = {int(item.key) for item in items if item.subset == "swap_obj"}
    assert set(range(246)) - keys == {108}
    assert [(i.subset, i.key, i.pure, i.saved_words) for i in items] == list(
        zip(run.subset.tolist(), run.key.tolist(), run.pure.tolist(), run.saved_words.tolist(), strict=True)
    )
    assert set(run.examples) <= set(items)
    others: dict[str, set[str]] = {}
    for item in items:
        others.setdefault(item.filename, set()).add(item.caption)
    assert [len(others[item.filename]) == 1 for item in items] == np.isnan(run.margin).tolist()


def test_the_stored_run_is_measured_again(items: tuple[Item, ...], run: Run) -> None:
    """A sample of images, with all their captions: d moves by two roundings at most, a margin by four."""
    images = np.random.default_rng(0).choice(sorted({item.filename for item in items}), 20, replace=False)
    rows = [k for k, item in enumerate(items) if item.filename in images]
    again = sugarcrepe.measure([items[k] for k in rows], minilm())
    digits = 5e-6
    assert np.abs(again.d - run.d[rows]).max() <= 2 * ROUNDING + 2 * digits
    # The stand-in is a unit vector along a sum; that sum is longer than one vector here, so it moves by at most 2 ROUNDING.
    off = np.abs(again.margin - run.margin[rows])
    assert np.nan_to_num(off).max() <= 4 * ROUNDING + 2 * digits
    assert np.array_equal(np.isnan(again.margin), np.isnan(run.margin[rows]))


# --- The page


def plainly(run: Run, subsets: Sequence[str]) -> list[tuple[float, float]]:
    """(d, margin) of the items with a margin, sorted by d, without numpy."""
    rows = zip(run.subset.tolist(), run.d.tolist(), run.margin.tolist(), strict=True)
    return sorted((d, m) for s, d, m in rows if s in subsets and m == m)


def test_the_numbers_of_the_page(run: Run) -> None:
    """The stored run and the published table give the ledger's numbers by plain loops."""
    table = sugarcrepe.published().values()
    clip = {s: sum(row[s] for row in table) / len(table) for s in FIVE}
    d = {s: sum(x for x, name in zip(run.d.tolist(), run.subset.tolist(), strict=True) if name == s) / COUNTS[s] for s in FIVE}
    own = {s: sum(m > 0 for _, m in plainly(run, [s])) / len(plainly(run, [s])) for s in FIVE}
    rows = plainly(run, FIVE)
    wrong = [d < np.median([d for d, _ in rows]) for d, m in rows if m < 0]
    measured = {
        "sugarcrepe.under": [
            sum(row["swap_obj"] < 100 * 163 / 245 for row in table),
            sum(row["swap_att"] < 7700 / 111 for row in table),
        ],
        "sugarcrepe.hardest": sorted(sorted(FIVE, key=clip.get)[:2]) + sorted(sorted(FIVE, key=d.get)[:2]),  # type: ignore[arg-type]
        "sugarcrepe.mean_d": [float(np.mean(run.d[run.of(s)])) for s in COUNTS],
        "sugarcrepe.other_encoder": np.corrcoef(list(d.values()), list(clip.values()))[0, 1],
        "sugarcrepe.own_encoder": np.corrcoef(list(d.values()), list(own.values()))[0, 1],
        "sugarcrepe.errors": sum(wrong) / len(wrong),
        "sugarcrepe.deciles": [np.mean([m > 0 for _, m in part]) for part in np.array_split(np.array(rows), 10)],
    }
    for name, value in measured.items():
        verify(ledger()[name], value)
    assert not any(m == 0 for _, m in rows), "no tie, so signs are all there is to count"


def test_the_wedge_is_where_its_usage_says() -> None:
    _, ax = figure()
    artists = pictures.zoo(ax, {"one": (0.8, 0.24)}, 0.25, 0.35)
    corners = artists[0].get_paths()[0].vertices
    sides = {round(y / x, 12) for x, y in corners if x > 0}
    assert sides == {0.25, 0.35}


@pytest.mark.parametrize(
    ("margin", "said"), [(0.125, "+0.125, right"), (-0.125, "−0.125, wrong"), (0.0, "a tie"), (np.nan, "no other")]
)
def test_the_picture_of_an_item_shows_its_numbers(margin: float, said: str) -> None:
    shown = Item("swap_obj", "0", "1.jpg", "A <cat> & a mat. ", "A mat & a cat.")
    svg = ElementTree.fromstring(pictures.item(shown, 0.5, margin))
    letters = [element.text or "" for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A <cat> & a mat.", "A mat & a cat.", "ceiling d = 0.500"} <= set(letters)
    assert said in letters[-1] and said in pictures.item_alt(shown, 0.5, margin)
    band, _, *bar = svg.iter("{http://www.w3.org/2000/svg}rect")
    assert float(band.get("width", "")) == 2 * pictures.UNIT * 0.5
    assert [float(b.get("x", "")) + 3 - pictures.MIDDLE for b in bar] == ([] if margin != margin else [pictures.UNIT * margin])
