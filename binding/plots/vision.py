"""Pictures of the chapter on vision transformers."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.colourshape import COLOURS, SHAPES, World
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PURPLE, SOFT

OBJECTIVE_COLOURS = {"untrained": SOFT, "feature": GREEN, "clip": BLUE, "object": ORANGE}
ROW_NAMES = {
    "cls linear": "[CLS], linear",
    "cls shared": "[CLS], shared",
    "cls quadratic": "[CLS], quadratic",
    "cls deep": "[CLS], deep",
    "pooled quadratic": "mean token, quadratic",
    "tokens attention": "last tokens, attention",
    "penultimate attention": "tokens before, attention",
}


def object_name(number: int, world: World) -> str:
    """Colour and shape of an object.

    >>> object_name(7, World())
    'green square'
    """
    return f"{list(COLOURS)[number // world.shapes]} {SHAPES[number % world.shapes]}"


TRUE_COLOURS = "binding-photo"
"""An SVG in which this name stands keeps its colours on a dark page (``_static/site.css``): a yellow object stays yellow."""


def scene(ax: Axes, pixels: Any, patch: int) -> None:
    """A picture (3, side, side) with the borders of its patches, in its true colours on dark pages, too."""
    side = pixels.shape[-1]
    ax.set_gid(TRUE_COLOURS)
    ax.imshow(np.asarray(pixels).transpose(1, 2, 0), interpolation="nearest", extent=(0, side, side, 0))
    for at in range(patch, side, patch):
        ax.axhline(at, color="white", lw=0.6, alpha=0.6)
        ax.axvline(at, color="white", lw=0.6, alpha=0.6)
    ax.set_axis_off()


def ladder(ax: Axes, shares: Mapping[str, Mapping[str, Sequence[float]]], counts: float) -> list[Any]:
    """β of every row, one mark a seed: ``shares[objective][row]``; dashed, what the counts hold."""
    artists: list[Any] = []
    rows = list(ROW_NAMES)
    shifts = np.linspace(0.27, -0.27, len(shares))
    for (objective, of_rows), marker, shift in zip(shares.items(), MARKERS, shifts, strict=False):
        x = [value for row in rows for value in of_rows[row]]
        y = [-number + shift for number, row in enumerate(rows) for _ in of_rows[row]]
        look: dict[str, Any] = {"color": OBJECTIVE_COLOURS[objective], "ms": 5, "ls": "", "label": objective}
        artists += ax.plot(100 * np.array(x), y, marker, **look)
    artists.append(ax.axvline(100 * counts, color=INK, lw=1.2, ls="--"))
    ax.text(100 * counts - 0.6, 0.62, "counts", ha="right", fontsize=9)
    for number in range(len(rows) - 1):
        ax.axhline(-number - 0.5, color=SOFT, lw=0.4)
    ax.set_yticks(-np.arange(len(rows)), [ROW_NAMES[row] for row in rows], fontsize=9)
    ax.set(xlim=(42, 100), ylim=(0.5 - len(rows), 0.95), xlabel="β: bits read, % of H(O)")
    ax.legend(ncols=4, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.32, -0.14), columnspacing=0.9, handletextpad=0.1)
    return artists


def landings(ax: Axes, mass: Mapping[str, Mapping[str, Sequence[float]]], bars: Mapping[str, float]) -> list[Any]:
    """Attention on the patch of the object that is asked for, one mark a seed: ``mass[layer][objective]``; lines at the bars."""
    artists: list[Any] = []
    names = list(OBJECTIVE_COLOURS)
    for (layer, of), marker, color, shift in zip(mass.items(), ("o", "^"), (BLUE, ORANGE), (0.12, -0.12), strict=True):
        x = [100 * value for name in names for value in of[name]]
        y = [shift - number for number, name in enumerate(names) for _ in of[name]]
        artists += ax.plot(x, y, marker, color=color, ms=6, label=layer)
    for (name, height), style in zip(bars.items(), (":", "--", "-."), strict=False):
        artists.append(ax.axvline(100 * height, color=INK, lw=1.2, ls=style))
        ax.text(100 * height + 0.8, -0.5, name, fontsize=9, va="center")
    ax.set_yticks(-np.arange(len(names)), names)
    ax.set(xlim=(0, 100), ylim=(0.5 - len(names), 0.5), xlabel="attention on the patch of the object, %")
    ax.legend(fontsize=9, loc="lower right")
    return artists


def against(ax: Axes, x: Sequence[float], lines: Mapping[str, Sequence[Sequence[float]]], xlabel: str, ylabel: str) -> list[Any]:
    """Shares in per cent against x: one line a row through the means over seeds, one mark a seed; ``lines[row][x][seed]``."""
    artists: list[Any] = []
    for (name, values), color, marker, style in zip(lines.items(), (ORANGE, BLUE, PURPLE, GREEN), MARKERS, LINES, strict=False):
        table = 100 * np.array(values)
        artists += ax.plot(x, table.mean(axis=1), style, color=color, label=name)
        ax.plot(np.repeat(x, table.shape[1]), table.ravel(), marker, color=color, ms=5)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(fontsize=9)
    return artists


def with_more(ax: Axes, bits: Mapping[int, Sequence[float]], counts: float, whole: float) -> list[Any]:
    """Bits read against the number of pictures, one mark a seed; dashed, what the counts hold, and dotted, H(O)."""
    numbers = list(bits)
    artists = ax.plot(numbers, [np.mean(values) for values in bits.values()], color=BLUE)
    ax.plot([n for n in numbers for _ in bits[n]], [x for n in numbers for x in bits[n]], "o", color=BLUE, ms=5)
    for height, style, name in ((counts, "--", "counts"), (whole, ":", "H(O)")):
        artists.append(ax.axhline(height, color=INK, lw=1.2, ls=style))
        ax.text(numbers[0], height + 0.3, name, fontsize=9)
    ax.set_xscale("log", base=2)
    ax.set_xticks(numbers, [f"{n:,}" for n in numbers])
    ax.set(xlabel="pictures", ylabel="bits read", ylim=(0, whole + 2))
    return artists


def png(pixels: Any) -> str:
    """A picture (3, side, side) of values in [0, 1] as the text of a PNG file in base 64."""
    from PIL import Image

    buffer = io.BytesIO()
    levels = (255 * np.asarray(pixels)).round().astype(np.uint8).transpose(1, 2, 0)
    Image.fromarray(levels).save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def attention_frame(pixels: Any, weights: Sequence[int], asked: Sequence[int], title: str) -> str:
    """One frame of the widget as SVG text: the picture, and the weight of every patch in per cent.

    ``weights``: thousandths, row by row. ``asked``: patches of the object that is asked for; they have a thick border.
    """
    side = int(len(weights) ** 0.5)
    cell = 240 // side
    parts = [
        "<image x='8' y='34' width='240' height='240' style='image-rendering:pixelated'"
        f" href='data:image/png;base64,{png(pixels)}'/>"
    ]
    for t, weight in enumerate(weights):
        x, y = 272 + cell * (t % side), 34 + cell * (t // side)
        parts.append(f"<rect x='{x}' y='{y}' width='{cell}' height='{cell}' fill-opacity='{weight / 1000:.2f}'/>")
        ink = " fill='#fff'" if weight > 600 else f" fill='{INK}'"
        parts.append(f"<text x='{x + cell // 2}' y='{y + cell // 2 + 7}'{ink}>{weight / 10:.0f}</text>")
    for t in asked:
        for left in (8, 272):
            x, y = left + cell * (t % side), 34 + cell * (t // side)
            size = f"width='{cell - 4}' height='{cell - 4}'"
            parts.append(f"<rect x='{x + 2}' y='{y + 2}' {size} fill='none' stroke='{ORANGE}' stroke-width='4'/>")
    parts.append(f"<rect x='272' y='34' width='240' height='240' fill='none' stroke='{SOFT}'/>")
    look = f"font-family='DejaVu Sans,Verdana,sans-serif' font-size='18' text-anchor='middle' fill='{BLUE}'"
    head = f"<text x='260' y='22' fill='{INK}'>{title}</text>"
    size = "width='520' height='282' viewBox='0 0 520 282'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' id='{TRUE_COLOURS}' {size}><g {look}>{head}{''.join(parts)}</g></svg>"


def attention_alt(weights: Sequence[int], asked: Sequence[int], title: str) -> str:
    """The numbers of one frame in words."""
    best = int(np.argmax(weights))
    side = int(len(weights) ** 0.5)
    where = f"row {best // side + 1}, column {best % side + 1}, with {weights[best] / 10:.0f} %"
    if not asked:
        return f"{title}: no patch shows it. The strongest patch is {where}."
    mass = sum(weights[t] for t in asked) / 10
    places = " and ".join(f"row {t // side + 1}, column {t % side + 1}" for t in asked)
    return f"{title}: it is in {places}, which gets {mass:.0f} % of the attention. The strongest patch is {where}."
