"""Pictures and widgets: alternative text, steady SVG, every frame of the grid behind its slider, budgets, refusals."""

import html
import itertools
import re
import urllib.parse
import xml.etree.ElementTree as ElementTree

import ipywidgets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binding import plots, widgets


def line(**values):
    fig, ax = plots.figure(2, 1.5)
    ax.plot([*values.values(), 0])
    return fig


def reading(**values):
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def test_svg_is_well_formed_and_the_same_each_time():
    first, second = plots.svg(line(a=1)), plots.svg(line(a=1))
    assert first == second
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert plots.svg(line(a=2)) != first


def test_rounding_touches_only_paths():
    text = plots.svg(line(a=1))
    assert all(len(number) <= 2 for path in re.findall(r' d="([^"]*)"', text) for number in re.findall(r"\.(\d+)", path))
    assert "scale(0.11 -0.11)" in text  # a glyph's scale is not rounded away


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip))
def test_alternative_text_survives(alt):
    tag = plots.img("<svg></svg>", alt)
    assert html.unescape(re.search(r'alt="([^"]*)"', tag)[1]) == alt
    assert urllib.parse.unquote(re.search(r'src="data:image/svg\+xml,([^"]*)"', tag)[1]) == "<svg></svg>"


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_alternative_text_is_required(alt):
    with pytest.raises(ValueError, match="alternative text"):
        plots.img("<svg></svg>", alt)


def contrast(colour, ground):
    def luminance(code):
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_palette_is_legible_as_graphics_and_text():
    # WCAG 2.2: 3 : 1 for graphics (1.4.11), 4.5 : 1 for text (1.4.3).
    assert contrast(plots.INK, "#ffffff") >= 4.5
    assert all(contrast(colour, "#ffffff") >= 3 for colour in (*plots.PALETTE, plots.SOFT))


def walk(stack, path):
    for position in path:
        stack = stack.children[position]
    return stack


@settings(max_examples=15)
@given(st.lists(st.integers(2, 3), min_size=1, max_size=3))
def test_each_slider_position_leads_to_its_own_frame(sizes):
    axes = {name: list(range(10 * i, 10 * i + size)) for i, (name, size) in enumerate(zip("abc", sizes, strict=False))}
    explorer = widgets.explore(line, alt=reading, **axes)
    *sliders, root = explorer.children
    assert [slider.description for slider in sliders] == list(axes)
    for path in itertools.product(*(range(size) for size in sizes)):
        frame = walk(root, path).value
        expected = reading(**{name: values[position] for (name, values), position in zip(axes.items(), path, strict=True)})
        assert f'alt="{expected}"' in frame
    assert repr(explorer) == "Explorer(" + " x ".join(f"{n}: {len(v)}" for n, v in axes.items()) + ")"


def test_sliders_drive_every_stack_of_their_axis_in_the_browser():
    before = set(ipywidgets.widgets.widget._instances)
    explorer = widgets.explore(line, alt=reading, a=[1, 2], b=[3, 4, 5])
    new = [w for key, w in ipywidgets.widgets.widget._instances.items() if key not in before]
    links = [w for w in new if type(w).__name__ == "Link"]
    slider_a, slider_b, root = explorer.children
    pairs = {(link.source[0].model_id, link.target[0].model_id) for link in links}
    assert pairs == {(slider_a.model_id, root.model_id), *((slider_b.model_id, stack.model_id) for stack in root.children)}
    assert all(link.source[1] == "index" and link.target[1] == "selected_index" for link in links)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({}, "got 0: none"),
        ({name: [1, 2] for name in "abcd"}, "got 4: a, b, c, d"),
        ({"a": [1]}, "axis a needs two or more values"),
        ({"a": [1, "1"]}, "axis a needs two or more values that read differently"),
    ],
)
def test_explore_refuses_before_drawing(axes, message):
    def never(**values):
        raise AssertionError("drawn")

    with pytest.raises(ValueError, match=message):
        widgets.explore(never, alt=reading, **axes)


def test_explore_keeps_the_page_light(monkeypatch):
    monkeypatch.setattr(widgets, "FRAME_BUDGET", 10_000)
    with pytest.raises(ValueError, match=r"of 40 frames weigh .* over 10,000"):
        widgets.explore(line, alt=reading, a=list(range(40)))
