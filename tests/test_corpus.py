"""The swap-contrast rate of a corpus: the count against brute force, however the captions are written, divided or distributed."""

import csv
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, tool
from dask.distributed import LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from binding import contrast, scenes
from binding.captions import batches, decode, shards
from binding.cli import main
from binding.contrast import clauses, expected_log, expected_pairs, is_candidate, is_reordering, poisson_interval, rate, tokens
from binding.corpus import Contrasts, Report, from_json, marks, measure, table
from binding.plots import BLUE, figure
from binding.plots import corpus as pictures
from binding.synthetic import COLOUR_SHARE, PLACE_SHARE, generated, generated_pairs, generated_rate
from binding.throttle import jensen_bound, linear_bound

EPS = float(np.finfo(float).eps)

word = st.sampled_from("a and cat dog on mat red car Red CAT it's é кот 犬".split())
caption = st.lists(st.one_of(word, st.sampled_from([",", ".", "-", "\0", "ſ", "K", "İ"])), max_size=6).map(" ".join)


@st.composite
def corpora(draw: st.DrawFn) -> list[str]:
    """Up to 14 captions, most of them the words of two or three others in a new order, with other marks between them."""
    bags = draw(st.lists(st.permutations("a cat and a red dog on mat".split()).map(lambda w: w[:5]), min_size=2, max_size=3))
    mixed = st.sampled_from(bags).flatmap(st.permutations)
    between = st.text(",.; ", min_size=5, max_size=5)
    spoken = st.builds(lambda words, signs: " ".join(map("".join, zip(words, signs, strict=True))), mixed, between)
    return draw(st.lists(st.one_of(spoken, spoken, mixed.map(" ".join), caption), min_size=6, max_size=14))


def write_text(path: Path, captions: Sequence[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in captions), encoding="utf-8")
    return path


def write_parquet(path: Path, captions: Sequence[str | None], row_group: int = 3) -> Path:
    pq.write_table(pa.table({"id": list(range(len(captions))), "caption": pa.array(captions, pa.string())}), path, row_group)
    return path


def write_csv(path: Path, captions: Sequence[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(
            [["id", "caption"], *([n, text] for n, text in enumerate(captions))]
        )
    return path


def write_json(path: Path, captions: Sequence[str | None]) -> Path:
    path.write_text("".join(json.dumps({"id": n, "caption": text}) + "\n" for n, text in enumerate(captions)))
    return path


def brute_force(captions: Sequence[str]) -> dict[str, Any]:
    """All pairs of captions, one after another, by the definitions alone."""
    found: dict[str, Any] = {}
    for name, related in (
        ("candidates", is_candidate),
        ("swaps", lambda x, y: is_candidate(x, y) and not is_reordering(x, y)),
    ):
        partners = [sum(related(x, y) for y in captions) for x in captions]
        bags = {tuple(sorted(tokens(x))) for x, d in zip(captions, partners, strict=True) if d}
        found[name] = Contrasts(len(bags), {d: partners.count(d) for d in sorted({*partners} - {0})})
    return found


def counted(report: Report) -> dict[str, Any]:
    return {"candidates": report.candidates, "swaps": report.swaps}


# The definitions


@given(st.text(st.characters(codec="ascii"), min_size=1))
def test_words_are_those_of_the_book_for_ascii(text: str) -> None:
    if re.search("[A-Za-z0-9']", text):
        assert tokens(text) == scenes.words(text)
    else:
        assert tokens(text) == ()


@given(st.text())
def test_no_other_character_belongs_to_a_word(text: str) -> None:
    assert tokens(text) == tokens("".join(c if c.isascii() else " " for c in text))


@pytest.mark.parametrize("family", ["colour", "size", "material", "relation"])
def test_the_filter_knows_the_orders_and_the_swaps_of_the_book(family: str) -> None:
    """Every order variant is a reordering, no swap is one, in all four pairs of a quartet."""
    for q in scenes.quartets(family, 60, np.random.default_rng(0)):
        for own, other in ((q.captions[:2], q.captions[2:]), (q.captions[2:], q.captions[:2])):
            assert is_reordering(*own)
            assert all(is_candidate(x, y) and not is_reordering(x, y) for x in own for y in other)


def test_what_the_filter_cannot_know() -> None:
    """Two cleft sentences of one meaning, and two colours of one cat, count as swaps; a stack of places is taken for a list."""
    q = scenes.quartet("role", "dog", "cat", "chases")
    assert not is_reordering(q.caption, q.reorder)
    assert not is_reordering("a black and white cat", "a white and black cat")
    assert is_reordering("a cup on a box on a mat", "a cup on a mat on a box")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("a dog and a cat", "a cat and a dog", True),
        ("a dog, a cat", "a cat a dog", False),
        ("on a mat, a cat", "a cat on a mat", True),
        ("a bat on a field with a player", "a bat with a player on a field", True),
        ("a man in red and a woman in blue", "a man in blue and a woman in red", False),
        ("a man in red and a woman in blue", "a woman in blue and a man in red", True),
        ("a dog on a cat", "a cat on a dog", False),
        ("a dog chases a cat", "a cat chases a dog", False),
        ("a cat; a dog. an owl: a fox", "an owl, a fox and a dog, a cat", False),
        ("a cat; a dog. an owl: a fox", "an owl, a fox, a dog and a cat", False),
        ("a cat; a dog. an owl: a fox", "an owl, a fox, a dog, a cat", True),
    ],
)
def test_reorderings_by_example(first: str, second: str, same: bool) -> None:
    assert is_reordering(first, second) is is_reordering(second, first) is same


@given(st.lists(st.sampled_from("a cat on mat and , with dog".split()), max_size=9), st.randoms(use_true_random=False))
def test_clauses_keep_every_word_and_forget_only_order(words: list[str], shuffler: random.Random) -> None:
    parts = clauses(" ".join(words))
    kept = sorted(w for clause in parts for phrase in clause for w in phrase.split())
    assert kept == sorted(w for w in words if w not in ("and", ","))
    listed = [list(clause) for clause in parts]
    # A clause may be spoken in any order of clauses; one that opens with a preposition would run on into the next.
    if all(not phrases or phrases[0].split()[0] not in contrast.PREPOSITIONS for phrases in listed):
        shuffler.shuffle(listed)
        assert clauses(" and ".join(" ".join(phrases) for phrases in listed)) == parts


@given(st.lists(caption, min_size=3, max_size=3))
def test_both_relations_are_symmetric_and_neither_is_reflexive(three: list[str]) -> None:
    for related in (is_candidate, is_reordering):
        assert related(three[0], three[1]) == related(three[1], three[0])
        assert not related(three[0], three[0])


# The formulas


histogram = st.dictionaries(st.integers(1, 9), st.integers(1, 5), max_size=4)


@given(histogram, st.integers(0, 40), st.integers(2, 60))
def test_bounds_on_the_worth_hold_in_order(partners: dict[int, int], more: int, batch: int) -> None:
    """E log(1 + m) ≤ log(1 + E m) and ≤ log 2 E m, for whatever a corpus holds, up to 1e-9 of the special functions."""
    n = max(2, sum(partners.values()) + more, 1 + max(partners, default=1))
    batch = min(batch, n)
    worth, p = expected_log(partners, n, batch), rate(partners, n)
    assert worth <= linear_bound(batch, p) * (1 + 1e-9)
    assert worth <= jensen_bound(batch, p) * (1 + 1e-9)


@given(histogram, st.integers(0, 9), st.data())
def test_worth_is_the_sum_over_all_batches(partners: dict[int, int], more: int, data: st.DataObject) -> None:
    """Against exact counting of the batches: C(d, m) C(n − 1 − d, B − 1 − m) of C(n − 1, B − 1)."""
    n = max(2, sum(partners.values()) + more, 1 + max(partners, default=1))
    batch = data.draw(st.integers(2, n))
    exact = 0.0
    for d, c in partners.items():
        for m in range(1, min(d, batch - 1) + 1):
            chance = Fraction(comb(d, m) * comb(n - 1 - d, batch - 1 - m), comb(n - 1, batch - 1))
            exact += float(chance * c / n) * log(1 + m)
    # The hypergeometric law of scipy is good to 1e-11 at these sizes: logarithms of factorials below 100, and exponentials.
    assert abs(expected_log(partners, n, batch) - exact) <= 1e-11 * (1 + exact)


@given(corpora().map(lambda captions: captions[:8]), st.integers(2, 5))
@settings(max_examples=30)
def test_rate_and_pairs_are_means_over_all_batches(captions: list[str], batch: int) -> None:
    batch = min(batch, len(captions), 4)
    partners = brute_force(captions)["candidates"].partners
    related = {(i, j) for i, j in combinations(range(len(captions)), 2) if is_candidate(captions[i], captions[j])}
    held = [sum(pair in related for pair in combinations(b, 2)) for b in combinations(range(len(captions)), batch)]
    mean = Fraction(sum(held), len(held))
    # Five roundings: the rate, and the product.
    assert abs(expected_pairs(batch, rate(partners, len(captions))) - float(mean)) <= 5 * EPS * float(mean)


@pytest.mark.parametrize("events", [0, 1, 2, 5, 40, 583])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_poisson_interval_has_its_tails(events: int, level: float) -> None:
    """At its ends the count is just as unlikely as the level allows; 1e-9 relative is the quantile routine's."""
    low, high = poisson_interval(events, level)
    tail = (1 - level) / 2
    assert poisson.cdf(events, high) == pytest.approx(tail, rel=1e-9)
    assert low == 0 if events == 0 else poisson.sf(events - 1, low) == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rate({}, 1), "captions = 1; a contrast needs two"),
        (lambda: rate({3: 2}, 3), "do not fit 3 captions"),
        (lambda: rate({1: 6}, 5), "do not fit 5 captions"),
        (lambda: rate({1: -2}, 5), "do not fit 5 captions"),
        (lambda: expected_pairs(1, 0.5), "batch = 1"),
        (lambda: expected_pairs(2, 1.5), "p = 1.5"),
        (lambda: expected_log({1: 2}, 5, 6), "at most all 5 captions"),
        (lambda: expected_log({1: 2}, 5, 1), "batch = 1"),
        (lambda: poisson_interval(-1), "events = -1"),
        (lambda: poisson_interval(1, 1.0), "level = 1.0"),
        (lambda: generated(0, np.random.default_rng(0)), "n = 0"),
        (lambda: generated_pairs(1, swaps=True), "n = 1"),
        (lambda: measure([], memory=10**9), "no file given"),
        (lambda: measure(["x.txt"], memory=1000), "memory = 1,000 bytes"),
        (lambda: measure(["x.txt"], parts=0), "parts = 0"),
        (lambda: measure(["x.txt"], dask="tcp://x:1"), "name a folder"),
    ],
)
def test_bad_numbers_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# The count


@given(corpora())
@settings(max_examples=12)
def test_count_is_that_of_all_pairs(tmp_path_factory: pytest.TempPathFactory, captions: list[str]) -> None:
    path = write_parquet(tmp_path_factory.mktemp("c") / "c.parquet", captions)
    report = measure([path], threads=1)
    assert counted(report) == brute_force(captions)
    assert report.captions == len(captions)
    assert report.wordless == sum(not tokens(text) for text in captions)


@given(st.lists(st.text(max_size=8), max_size=6))
def test_marks_forget_order_and_nothing_that_a_bag_holds(texts: list[str]) -> None:
    """Equal bags of words have equal marks, whatever stands between the words."""
    written = pa.array([text.encode("utf-8", "replace") for text in texts], pa.binary())
    spoken = pa.array([" - ".join(sorted(tokens(text))).upper().encode() for text in texts], pa.binary())
    assert np.array_equal(marks(written), marks(spoken))
    assert np.array_equal(marks(written[2:]), marks(written)[2:])


def test_equal_marks_are_not_trusted(tmp_path: Path) -> None:
    """Anagrams have the same letters, so the same mark, and no partner."""
    path = write_text(tmp_path / "a.txt", ["a cat acts", "a act cats", "cat a acts"])
    assert len(set(marks(pa.array([b"a cat acts", b"a act cats", b"taccatsa"])).tolist())) == 1
    assert counted(measure([path], threads=1))["candidates"] == Contrasts(1, {1: 2})


@given(corpora(), st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=8)
def test_order_files_formats_and_parts_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, captions: list[str], shuffler: random.Random, parts: int, files: int
) -> None:
    folder = tmp_path_factory.mktemp("c")
    # A blank line of text is no caption, a line cannot hold a line break, and CSV readers differ over NUL.
    captions = [text.replace("\0", "|") if text.strip() else "-" for text in captions]
    one = measure([write_parquet(folder / "one.parquet", captions)], threads=1)
    shuffler.shuffle(captions)
    writers = (write_text, write_csv, write_json, write_parquet, write_csv)
    endings = (".txt", ".csv", ".jsonl", ".parquet", ".tsv")
    for number in range(files):
        kind = shuffler.randrange(5)
        writers[kind](folder / f"part-{number}{endings[kind]}", captions[number::files])
    other = measure([folder / "part-*"], threads=1, parts=parts)
    assert counted(other) == counted(one)
    assert (other.captions, other.files, other.examples) == (one.captions, files, one.examples)


def test_doubling_a_corpus_quadruples_its_pairs(tmp_path: Path) -> None:
    """Every caption r times: r² pairs for one, and r d partners for each copy."""
    captions = [text for q in scenes.quartets("colour", 20, np.random.default_rng(1)) for text in q.captions[: len(q.words) - 1]]
    once = measure([write_text(tmp_path / "1.txt", captions)], threads=1)
    thrice = measure([write_text(tmp_path / "3.txt", captions * 3)], threads=1)
    for one, three in ((once.candidates, thrice.candidates), (once.swaps, thrice.swaps)):
        assert three == Contrasts(one.groups, {3 * d: 3 * c for d, c in one.partners.items()})
        assert three.pairs == 9 * one.pairs > 0


def test_the_generated_corpus_has_its_closed_form(tmp_path: Path) -> None:
    """The engine against a plain count of the captions that can have a partner, and both against the formula."""
    n = 60_000
    texts = generated(n, np.random.default_rng(3)).to_pylist()
    assert len({text for text in texts if text[0] != "a"}) == sum(text[0] != "a" for text in texts)
    report = measure([write_text(tmp_path / "g.txt", texts)], threads=1)
    groups: dict[tuple[str, ...], list[str]] = {}
    for text in texts:
        if text.startswith("a "):
            groups.setdefault(tuple(sorted(text.split())), []).append(text)
    for swaps, kind in ((False, report.candidates), (True, report.swaps)):
        pairs = sum(
            is_candidate(x, y) and not (swaps and is_reordering(x, y)) for g in groups.values() for x, y in combinations(g, 2)
        )
        assert kind.pairs == pairs
    assert 0 < sum(" and " in text for text in texts) < 2 * COLOUR_SHARE * n
    assert 0 < sum(text.startswith("a ") and " and " not in text for text in texts) < 3 * PLACE_SHARE * n


@pytest.mark.parametrize("swaps", [False, True])
def test_the_closed_form_by_enumeration(swaps: bool) -> None:
    """Ordered pairs of captions with two coloured objects, in a world of 3 objects and 2 colours, and the same formula."""
    from unittest.mock import patch

    objects, colours, places = ("cat", "dog", "fox"), ("red", "blue"), ("on",)
    coloured = [f"a {c} {o} and a {d} {p}" for c in colours for o in objects for d in colours for p in objects]
    placed = [f"a {o} {r} a {p}" for o in objects for r in places for p in objects]
    by_hand = 0.0
    for share, texts in ((COLOUR_SHARE, coloured), (PLACE_SHARE, placed)):
        hits = sum(is_candidate(x, y) and not (swaps and is_reordering(x, y)) for x in texts for y in texts)
        by_hand += share**2 * hits / len(texts) ** 2
    with (
        patch("binding.synthetic._generated_words", lambda: (objects, colours)),
        patch("binding.synthetic.PLACES", places),
    ):
        # Twenty roundings of positive terms.
        assert abs(generated_rate(swaps=swaps) - by_hand) <= 20 * EPS * by_hand
        mean, deviation = generated_pairs(3, swaps=swaps)
        # Three pairs; two of them that share a caption depend on each other, so enumerate Var = 3 Var(1) + 6 Cov.
        both = 0.0
        for share, texts in ((COLOUR_SHARE, coloured), (PLACE_SHARE, placed)):
            for x in texts:
                hits = sum(is_candidate(x, y) and not (swaps and is_reordering(x, y)) for y in texts)
                both += share / len(texts) * (share * hits / len(texts)) ** 2
        p = by_hand
        assert abs(mean - 3 * p) <= 30 * EPS * p
        assert abs(deviation**2 - (3 * (p - p * p) + 6 * (both - p * p))) <= 100 * EPS * p


def test_a_report_goes_through_json(tmp_path: Path) -> None:
    report = measure([write_text(tmp_path / "a.txt", ["a red car", "red a car", "x, y", "y, x"])], threads=1)
    plain = json.loads(json.dumps(report.to_json([2, 4])))
    assert from_json(plain) == report
    assert plain["swaps"]["batches"][0] == report.batch(2)
    assert plain["candidates"]["pairs"] == report.candidates.pairs == 2
    low, high = report.interval()
    assert low < rate(report.swaps.partners, report.captions) < high
    assert "1 swap among 1 pair:" in table(report, [2, 100])


# Files


def test_bytes_that_are_no_text_are_counted_and_kept(tmp_path: Path) -> None:
    """The same three captions in four formats, one with a byte of Latin-1, which separates words and drops nothing."""
    bad = b"a red car\xe9 and a dog"
    lines = [bad, b"a dog and a red car", "a кот".encode()]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines))
    (tmp_path / "a.csv").write_bytes(b"caption\n" + b"\n".join(lines))
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(b'{"caption": "%s"}' % line for line in lines))
    pq.write_table(pa.table({"caption": pa.array(lines, pa.binary())}), tmp_path / "a.parquet")
    for ending in ("txt", "csv", "jsonl", "parquet"):
        report = measure([tmp_path / f"a.{ending}"], threads=1)
        assert (report.captions, report.not_utf8, report.missing, report.wordless) == (3, 1, 0, 0)
        assert report.candidates.pairs == 1
        assert ("a red car\ufffd and a dog", 1) in report.examples[0].orders


def test_half_a_surrogate_is_counted_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"caption": "a \\ud800 cat"}\n\n{"caption": null}\n{"caption": "\\ud83d\\ude00"}\n')
    report = measure([tmp_path / "a.jsonl"], threads=1)
    assert (report.captions, report.not_utf8, report.missing, report.wordless) == (2, 1, 1, 1)


def test_records_without_a_caption_count_nowhere(tmp_path: Path) -> None:
    captions = [None, "a b", None, "b a", "", None]
    for path in (write_parquet(tmp_path / "a.parquet", captions, 2), write_json(tmp_path / "a.jsonl", captions)):
        report = measure([path], threads=1)
        assert (report.captions, report.missing, report.wordless) == (3, 3, 1)
        assert report.candidates == Contrasts(1, {1: 2})


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())]
)
def test_every_kind_of_text_column_is_read(tmp_path: Path, kind: Any) -> None:
    plain = pa.array(["a b", "b a", None], pa.string())
    column = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain.cast(kind)
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    report = measure([tmp_path / "a.parquet"], column="text", threads=1)
    assert (report.captions, report.missing, report.candidates.pairs) == (2, 1, 1)


def test_large_files_are_read_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that break across portions, and row groups that make several shards, come out whole and in order."""
    captions = [f"{n} cat {'x' * (n % 50)}" for n in range(500)]
    monkeypatch.setattr("binding.captions.PORTION", 100)
    monkeypatch.setattr("binding.captions.SHARD_ROWS", 100)
    write_text(tmp_path / "a.txt", captions)
    write_json(tmp_path / "a.jsonl", captions)
    write_parquet(tmp_path / "a.parquet", captions, row_group=30)
    for ending, parts in (("txt", 1), ("jsonl", 1), ("parquet", 5)):
        found = shards([tmp_path / f"a.{ending}"])
        assert len(found) == parts
        assert [text for shard in found for batch in batches(shard) for text in decode(batch)[0].to_pylist()] == captions


def test_windows_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffa b\r\n\r\nb a\r\n".encode())
    (tmp_path / "a.csv").write_bytes('\ufeffcaption,n\r\n"a, ""b""\nc",1\r\n"c b a",2\r\n'.encode())
    assert measure([tmp_path / "a.txt"], threads=1).captions == 2
    assert counted(measure([tmp_path / "a.csv"], threads=1))["candidates"] == Contrasts(1, {1: 2})


BAD_FILES: dict[str, tuple[bytes | None, str]] = {
    "missing.txt": (None, "missing.txt cannot be read: No such file"),
    "a.doc": (b"x", "a.doc ends in .doc; captions are read from .parquet"),
    "a": (b"x", "a ends in nothing"),
    "a.csv": (b"id,text\n1,x\n", "a.csv has no column 'caption'; it has id, text"),
    "b.csv": (b"", "b.csv is empty"),
    "c.csv": (b"id,caption\n1,x\n2\n", "c.csv cannot be read: CSV parse error"),
    "a.jsonl": (b'{"text": "x"}\n', "a.jsonl has no column 'caption'; it has text"),
    "b.jsonl": (b"[1]\n", "its first line is no JSON object: [1]"),
    "c.jsonl": (b'{"caption": "x"}\n{"cap', "c.jsonl, line 2: no JSON object"),
    "d.jsonl": (b'{"caption": "x"}\n{"caption": 7}\n', "line 2: 'caption' holds 7, not text"),
    "a.parquet": (b"PAR1 no", "a.parquet cannot be read"),
    "empty.txt": (b"\n \n", "0 captions in the files given"),
    "one.txt": (b"a cat", "1 captions in the files given"),
    "utf16.txt": ("a cat\na dog".encode("utf-16"), "utf16.txt is UTF-16; save it as UTF-8"),
    "none*.txt": (None, "no file matches"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    content, message = BAD_FILES[name]
    path = tmp_path / "in" / name
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        measure([path], work=tmp_path / "work", threads=1)
    assert not list((tmp_path / "work").glob("run-*"))


def test_columns_that_hold_no_text_and_names_given_twice(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", ["a b", "b a"])
    with pytest.raises(ValueError, match="'id' holds int64, not text"):
        measure([path], column="id")
    with pytest.raises(ValueError, match="has no column 'text'; it has id, caption"):
        measure([path], column="text")
    with pytest.raises(ValueError, match="is named twice"):
        measure([path, tmp_path / "*.parquet"])
    with pytest.raises(ValueError, match="is a file; name a folder"):
        measure([path], work=path)


# Resuming, memory, the cluster


@pytest.fixture(scope="module")
def quartet_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files of captions with many partners, some of them the same in two files."""
    folder = tmp_path_factory.mktemp("quartets")
    texts = [t for f in ("colour", "relation") for q in scenes.quartets(f, 60, np.random.default_rng(2)) for t in q.captions]
    for number in range(6):
        write_parquet(folder / f"{number}.parquet", texts[number::7] + texts[::13], row_group=20)
    return folder


def test_a_stopped_run_goes_on_from_its_marks(quartet_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure([quartet_files / "*.parquet"], threads=1)
    read: list[str] = []

    def watched(shard: Any) -> Iterator[Any]:
        if len(read) == 4:
            raise KeyboardInterrupt
        read.append(shard.path)
        yield from batches(shard)

    monkeypatch.setattr("binding.corpus.batches", watched)
    with pytest.raises(KeyboardInterrupt):
        measure([quartet_files / "*.parquet"], work=tmp_path, threads=1)
    assert len(list(tmp_path.glob("*.marks.parquet"))) == 4
    read.clear()
    read.extend("resumed" for _ in range(5))
    assert measure([quartet_files / "*.parquet"], work=tmp_path, threads=1) == whole
    marked_again = len(read) - 5 - len(list(quartet_files.iterdir()))
    assert marked_again == 2


def test_a_killed_run_goes_on_from_its_marks(quartet_files: Path, tmp_path: Path) -> None:
    """SIGKILL while the third shard is read: no half-written marks are believed, and the result is the same."""
    script = (
        "import os, signal, binding.corpus as c\nold, seen = c.batches, []\n"
        "def batches(shard):\n    seen.append(shard)\n    for b in old(shard):\n        yield b\n"
        "        if len(seen) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"c.batches = batches\n"
        f"c.measure([{str(quartet_files / '*.parquet')!r}], work={str(tmp_path)!r}, threads=1, memory=10**9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("*.marks.parquet"))) == 2
    assert measure([quartet_files / "*.parquet"], work=tmp_path, threads=1) == measure([quartet_files / "*.parquet"], threads=1)
    assert not list(tmp_path.glob("run-*"))


def test_a_changed_file_is_marked_again(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", ["a b", "b c"])
    assert measure([path], work=tmp_path / "w", threads=1).candidates.pairs == 0
    write_text(path, ["a b", "b a"])
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 1))
    assert measure([path], work=tmp_path / "w", threads=1).candidates.pairs == 1


def test_little_memory_gives_the_same_count(quartet_files: Path) -> None:
    files = [quartet_files / "*.parquet"]
    assert measure(files, threads=1, memory=64_000_000, parts=3) == measure(files, threads=1)


def test_the_cluster_counts_the_same(quartet_files: Path, tmp_path: Path) -> None:
    """Two workers in processes of their own, all passes divided, against the engine in this process: equal in everything."""
    files = [quartet_files / "*.parquet"]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        report = measure(files, dask=cluster.scheduler_address, work=tmp_path, parts=2)
        with pytest.raises(ValueError, match="not text"):
            measure(
                [write_json(tmp_path / "a.jsonl", ["a", "b"]), _no_text(tmp_path)], dask=cluster.scheduler_address, work=tmp_path
            )
    assert report == measure(files, threads=1)
    assert report.swaps.pairs > 100


def _no_text(folder: Path) -> Path:
    path = folder / "bad.jsonl"
    path.write_text('{"caption": "x"}\n{"caption": [1]}\n')
    return path


# The command


def test_the_command_prints_json_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_text(tmp_path / "a.txt", ["a red car and a blue dog", "a blue car and a red dog", "a cat"])
    arguments = ["contrast-rate", str(path), "--batch", "2", "8", "--json", "--memory", "100"]
    assert main([*arguments, "--figure", str(tmp_path / "f.svg")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    plain = json.loads(out)
    assert from_json(plain) == measure([path])
    assert [row["batch"] for row in plain["swaps"]["batches"]] == [2, 8]
    assert (tmp_path / "f.svg").read_text(encoding="utf-8").startswith("<svg")
    assert main([*arguments, "--figure", str(tmp_path / "f.svg")]) == 2
    assert "--force" in capsys.readouterr().err


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_text(
        tmp_path / "a.txt", ["a red car and a blue dog", "a blue car and a red dog", "a cat and a dog", "犬", "a dog"]
    )
    assert main(["contrast-rate", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("5 captions in 1 file\nwithout a Latin word, counted: 1\n")
    assert "1 pair of 2 captions in 1 group\nrate p = 0.1," in out
    assert "1 × a blue car and a red dog" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.txt"], "no.txt cannot be read"),
        (["a.txt", "--batch", "1"], "--batch 1"),
        (["a.txt", "--figure", "a.png"], "does not end in .svg"),
        (["a.txt", "--memory", "1"], "give 64 MB at least"),
        (["a.txt", "--dask", "tcp://127.0.0.1:1"], "name a folder"),
    ],
)
def test_a_bad_command_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(Path("a.txt"), ["a b", "b a"])
    assert main(["contrast-rate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["a.txt"]


# What the chapter shows


def test_stored_corpora_are_measured_again(tmp_path: Path) -> None:
    """The stored counts are those of the data, where the data are; but for versions and seconds."""
    runs = tool("corpus_runs")
    folder = Path(os.environ.get("BINDING_SUGARCREPE", ROOT.parent / "shared" / "data" / "sugarcrepe"))
    if not folder.is_dir():
        pytest.skip("SugarCrepe is not at hand: set BINDING_SUGARCREPE to its folder 'data'")
    for name, captions in runs.corpora(folder).items():
        stored = json.loads((ROOT / "binding" / "data" / "runs" / f"corpus-{name}.json").read_text(encoding="utf-8"))
        fresh = json.loads(json.dumps(runs.report(captions, tmp_path)))
        assert set(fresh.pop("provenance")) == set(stored.pop("provenance")) >= {"duckdb", "seconds"}
        assert from_json(fresh) == from_json(stored)
        # Rates and bounds are floats: within the special functions of scipy on another machine.
        assert _close(fresh, stored)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return {*a} == {*b} and all(_close(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    return math.isclose(a, b, rel_tol=1e-9) if isinstance(a, float) else a == b


def test_no_corpus_is_made_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape("has no file such as swap_att.json")):
        tool("corpus_runs").corpora(tmp_path)


def test_pictures_show_what_was_counted() -> None:
    _, ax = figure()
    pictures.worth(ax, {"one": Report(1, 10, 0, 0, 0, Contrasts(1, {1: 2}), Contrasts(0, {}))}, swaps=False)
    bound = next(line for line in ax.lines if len(line.get_xdata()) == len(pictures.SIZES) and line.get_color() == BLUE)
    assert bound.get_ydata()[0] == pictures.best_bound(32, 2 / 90)
    assert "between 6e-05 and 0.01 nats" in pictures.extrapolation(4345, 1, 32768)
    assert "at most 0.009 nats" in pictures.extrapolation(4345, 0, 32768)
