"""The hand-written pictures show the numbers they were given, and the plane keeps lengths."""

import re
from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from binding.plots import figure
from binding.plots.bag import exchanges, exchanges_alt, layers, plane, quartet
from binding.plots.landing import UNIT, moves, moves_alt

SVG = "{http://www.w3.org/2000/svg}"
SAME, OTHER = {"a <b> & c": 0.25, "d": 0.0}, {"e": 1.5}


def letters(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_moves_draws_each_distance_to_scale_and_says_it() -> None:
    picture = moves("x < y", SAME, OTHER)
    bars = [float(box.get("width", "")) for box in ElementTree.fromstring(picture).iter(f"{SVG}rect") if box.get("stroke")]
    assert np.abs(np.array(bars) - UNIT * np.array([0.25, 0, 1.5])).max() <= 0.05, "widths are rounded to a tenth of a pixel"
    assert [t for t in letters(picture) if re.fullmatch(r"[\d.]+|exactly 0", t)] == ["0.250", "exactly 0", "1.500"]
    assert {"x < y", *SAME, *OTHER} <= set(letters(picture))
    alt = moves_alt("x < y", SAME, OTHER)
    assert all(said in alt for said in ("“a <b> & c” 0.250", "“d” exactly 0", "“e” 1.500"))


def test_exchanges_has_one_cell_for_each_pair_of_words() -> None:
    words = ["the", "dog", "the", "cat"]
    d = np.zeros((4, 4))
    d[1, 0], d[3, 1] = 0.123, 0.456
    picture = exchanges(words, d, top=0.4)
    assert sorted(t for t in letters(picture) if t[0].isdigit()) == ["0", "0", "0", "0", "0.12", "0.46"]
    assert [t for t in letters(picture) if not t[0].isdigit()] == ["dog", "the", "cat", "the", "dog", "the"]
    assert "the and dog 0.12" in exchanges_alt(words, d)
    assert "dog and cat 0.46" in exchanges_alt(words, d)
    assert "exactly 0 for each of the 6 pairs" in exchanges_alt(words, np.zeros((4, 4)))


@given(st.integers(0, 2**32 - 1), st.integers(3, 6), st.integers(2, 40))
def test_a_plane_set_keeps_its_distances(seed: int, n: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 2)) @ rng.standard_normal((2, dimension)) + rng.standard_normal(dimension)
    apart, seen = (np.linalg.norm(y[:, None] - y[None], axis=2) for y in (x, plane(x)))
    # Rotations keep lengths; the rounding of centring, SVD and product stays below 100 N u of the largest entry.
    assert np.abs(apart - seen).max() <= 100 * dimension * 2.0**-53 * max(1.0, np.abs(x).max())


def test_drawings_stand_where_the_data_stand() -> None:
    _, (left, right) = figure(ncols=2)
    x = np.random.default_rng(0).standard_normal((4, 5))
    drawn = np.array([line.get_xydata()[0] for line in quartet(left, x, half=3) if len(line.get_xydata()) == 1])
    assert np.array_equal(drawn, plane(x)[[2, 3, 0, 1]])
    curves = {"a": np.arange(7.0), "b": np.ones(7), "c": np.zeros(7)}
    lines = [artist.get_ydata() for artist in layers(right, curves) if hasattr(artist, "get_ydata")]
    assert np.array_equal(lines, list(curves.values()))
