"""The small world behind the pictures of binding information: its codes, its bits, and alternative texts that tell them."""

import re
from itertools import pairwise
from math import erfc

import numpy as np
import pytest

from binding.channels import pair_bits
from binding.plots import figure
from binding.plots.information import (
    WIDGET_CODES,
    WIDGET_NOISES,
    against_noise,
    explorer,
    explorer_alt,
    margin_against_bits,
    measured,
    towers,
    where_bits_are,
    world,
)

EPS = float(np.finfo(float).eps)
# Vectors of length one and at most 256 entries; the change of captions is rounded to 1e-12 in every entry.
ROUNDED = 1e-10


@pytest.mark.parametrize(("k", "scenes", "sets"), [(2, 72, 36), (3, 96, 16)])
def test_the_world_has_all_scenes_and_swaps_that_keep_the_features(k: int, scenes: int, sets: int) -> None:
    listed = world(k)
    assert len({tuple(sorted(zip(*scene, strict=True))) for scene in listed}) == scenes == len(listed)
    for both in towers(k).values():
        assert len(np.unique(both.labels)) == sets
        assert (both.swap[both.swap] == np.arange(scenes)).all() and (both.swap != np.arange(scenes)).all()
        assert (both.labels[both.swap] == both.labels).all()
        for rows in (both.image, both.caption):
            assert float(np.abs((rows**2).sum(axis=1) - 1).max()) <= 300 * EPS


@pytest.mark.parametrize("k", [2, 3])
def test_margins_are_those_of_the_codes_chapter(k: int) -> None:
    codes = towers(k)
    for name in ("bag of words", "partly product", "slots", "moment curve", "product", "tensor"):
        both = codes[name]
        assert float(np.abs(both.margins - both.distances**2 / 2).max()) <= ROUNDED
    # 2 κ / k with the interaction κ = 1, sin² θ and 1/2 (one of the two factors of a slot differs), and 0.
    for name, kappa in (("product", 1), ("tensor", 1), ("partly product", np.sin(np.radians(20.7)) ** 2), ("slots", 0.5)):
        assert float(np.abs(codes[name].margins - 2 * kappa / k).max()) <= ROUNDED
    assert not codes["bag of words"].margins.any() and not codes["product, bag captions"].margins.any()
    assert float(np.abs(codes["product, mirrored captions"].margins + 2 / k).max()) <= ROUNDED


@pytest.mark.parametrize("noise", [0.3, 0.8])
def test_bits_lie_between_what_margins_promise_and_spread_allows(noise: float) -> None:
    for both in towers(2).values():
        kept = both.kept(noise)
        exact = float(pair_bits(both.distances / (2 * noise)).mean())
        # Six standard errors of a fixed draw, and rounding.
        assert abs(kept.binding - exact) <= 6 * kept.errors[2] + 1e-9
        assert both.floor(noise) - 1e-9 <= exact <= both.ceiling(noise) + 1e-9
        assert both.accuracy(noise) == 0.5 or both.margins.any()
        if both.image is both.caption:
            assert abs(both.floor(noise) - exact) <= 1e-9  # the change of captions is rounded to 1e-12


def test_a_mirrored_score_is_wrong_as_often_as_the_straight_one_is_right() -> None:
    codes = towers()
    for noise in (0.3, 0.8):
        # Q(−√2 / 2η), margins within 1e-10 of ±1.
        assert abs(codes["product"].accuracy(noise) - (1 - erfc(1 / (2 * noise)) / 2)) <= 1e-9
        assert abs(codes["product"].accuracy(noise) + codes["product, mirrored captions"].accuracy(noise) - 1) <= 1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_tensor_and_product_codes_have_the_same_inner_products(k: int) -> None:
    product, tensor = (towers(k)[name].image for name in ("product", "tensor"))
    # Sums of at most 64 terms of vectors of length one.
    assert float(np.abs(product @ product.T - tensor @ tensor.T).max()) <= 200 * EPS


def test_crowding_costs_margin_and_share_and_not_bits() -> None:
    few, more, most = (towers(k)["product"] for k in (2, 3, 4))
    kept = [both.kept(0.3, draws=1000) for both in (few, more, most)]
    for first, second in pairwise(kept):
        # Ten standard errors of a fixed draw lie between the values: 0.96, 2.26, 3.5 bits and shares 0.96, 0.87, 0.76.
        assert second.binding - first.binding > 10 * (first.errors[2] + second.errors[2])
        assert first.beta_star - second.beta_star > 3 * second.errors[2] / second.entropy_given_features
    assert few.margins.mean() > more.margins.mean() > most.margins.mean()


def test_every_frame_tells_its_numbers() -> None:
    for code in WIDGET_CODES:
        kept, accuracy = measured(code, WIDGET_NOISES[3])
        text = explorer_alt(code, WIDGET_NOISES[3])
        assert f"{kept.features:.2f} of" in text and f"about {accuracy:.2f} of the swaps" in text
        frame = explorer(code, WIDGET_NOISES[3])
        widths = [float(width) for width in re.findall(r"<rect [^>]*width='(\d+)'", frame)]
        shares = (kept.features / kept.entropy_features, max(kept.beta_star, 0), accuracy)
        # Half a pixel of 200.
        assert all(abs(width - 200 * share) <= 0.5 for width, share in zip(widths, shares, strict=True))
        assert f"{kept.features:.2f} of" in frame and re.search(r">-?\d\.\d\d; chance 0\.50<", frame)


def test_the_figures_draw_what_they_return() -> None:
    _, ax = figure()
    bars = where_bits_are(ax, 7.0, 20.0, 12.0, {"linear": 0.5, "attention": 31.0})
    assert [bar[0].get_width() for bar in bars] == [7.0, 20.0, 12.0, 0.5, 31.0]
    assert [bar[0].get_x() for bar in bars] == [0.0, 7.0, 27.0, 7.0, 7.0]
    # The whole line ends the features, the dashed one the counts.
    assert [line.get_xdata()[0] for line in ax.lines] == [7.0, 27.0]
    _, axes = figure(ncols=2)
    drawn = against_noise(axes, ("bag of words", "product"), (0.3, 0.8))
    assert [list(line.get_ydata()) for line in axes[1].lines] == [[one.beta_star for one in kept] for kept in drawn.values()]
    _, ax = figure()
    points = margin_against_bits(ax, 0.3)
    shown = {line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if line.get_label() in points}
    assert shown == points and len(points) == len(towers())
    M, J = ax.lines[0].get_data()
    for name, (margin, bits) in points.items():
        if "captions" not in name:
            # Six standard errors of 8,000 draws, and a chord of the curve between 101 margins.
            assert bits <= np.interp(margin, M, J) + 6 * towers()[name].kept(0.3, 8000).errors[2] + 2e-3
    one = points["partly product"]
    assert abs(one[1] - np.interp(one[0], M, J)) <= 6 * towers()["partly product"].kept(0.3, 8000).errors[2] + 2e-3


def test_bells_are_as_wide_as_the_noise() -> None:
    for path in re.findall(r"<path d='M([^']*)' stroke='[^']*' fill='none' stroke-dasharray", explorer("slots", 0.3))[:2]:
        x, y = np.array([[float(v) for v in point.split()] for point in path.split("L")]).T
        height = 110 - y[1:-1]
        moved = (x[1:-1] - 230) / 120
        # Slots lie 1 apart, so the bells stand at ±1/2; a tenth of a pixel of 120, and of the height 95.
        centre = moved[height.argmax()]
        assert abs(abs(centre) - 0.5) <= 2e-3
        inside = np.abs(moved) < 1.89
        assert np.abs(height - 95 * np.exp(-((moved - centre) ** 2) / (2 * 0.3**2)))[inside].max() <= 0.6
