"""Pictures of the chapter on factored codes: leakage, margins by size, their spread, and what can lift them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from torch import Tensor

from binding.codes import Leakage, best_image_margin, ceiling, deviation, predicted
from binding.plots import BLUE, GREEN, INK, MARKERS, ORANGE, PURPLE, SOFT

LOOK = {"swap": (BLUE, "o", "-"), "replace": (ORANGE, "s", "--"), "add": (GREEN, "^", "-.")}
NONE = Leakage(1.0, 0.0, 0.0, 0.0)


def leakage_histogram(ax: Axes, found: Mapping[str, Tensor]) -> list[Any]:
    """How often an inner product occurs among exact matches, partial matches (object or attribute shared) and strangers."""
    partial = np.concatenate([found["object"].numpy(), found["attribute"].numpy()])
    bins = [-0.2 + 0.02 * i for i in range(66)]
    filled: dict[str, Any] = {"histtype": "stepfilled", "ec": "white", "lw": 0.3}
    artists: list[Any] = []
    for name, values, look in (
        ("partial match", partial, {**filled, "color": ORANGE, "hatch": "//"}),
        ("exact match", found["gain"].numpy(), {**filled, "color": BLUE}),
        ("nothing shared", found["neither"].numpy(), {"histtype": "step", "color": INK, "lw": 1.5}),
    ):
        share = np.full(len(values), 1 / len(values))
        artists.append(ax.hist(values, bins, weights=share, label=name, **look)[2])
    ax.set(xlim=(-0.2, 1.1), ylim=(0, 1.08), yticks=[0, 0.5, 1], ylabel="share of pairs")
    return artists


def margins_by_size(ax: Axes, found: Mapping[str, Mapping[int, Tensor]]) -> list[Any]:
    """Measured margins (means, bars of one standard deviation over scenes) against k, over the closed forms without leakage."""
    artists: list[Any] = []
    for edit, by_size in found.items():
        color, marker, line = LOOK[edit]
        sizes = sorted(by_size)
        artists += ax.plot(sizes, [predicted(edit, k, NONE) for k in sizes], line, color=color, lw=1.3)
        mean, sd = ([float(getattr(by_size[k], name)()) for k in sizes] for name in ("mean", "std"))
        artists.append(ax.errorbar(sizes, mean, sd, fmt=marker, color=color, ms=5, capsize=3, lw=1.3, label=edit))
    _log_sizes(ax, sorted({k for by_size in found.values() for k in by_size}))
    _log_values(ax, "tied margin")
    return artists


def spread_by_size(ax: Axes, found: Mapping[str, Mapping[int, Tensor]], N: int) -> list[Any]:
    """Measured standard deviations times √N, with two standard errors, over the law of :func:`binding.codes.deviation`."""
    artists: list[Any] = []
    for edit, by_size in found.items():
        color, marker, line = LOOK[edit]
        sizes = sorted(by_size)
        artists += ax.plot(sizes, [deviation(edit, k, 1) for k in sizes], line, color=color, lw=1.3)
        sd = np.array([float(by_size[k].std()) for k in sizes]) * math.sqrt(N)
        error = 2 * sd / np.sqrt([2 * len(by_size[k]) for k in sizes])
        artists.append(ax.errorbar(sizes, sd, error, fmt=marker, color=color, ms=5, capsize=3, lw=1.3, label=edit))
    _log_sizes(ax, sorted({k for by_size in found.values() for k in by_size}))
    _log_values(ax, "standard deviation × √N")
    return artists


def spread(found: Mapping[str, Tensor], lines: Mapping[str, float]) -> str:
    """One row an edit, as small SVG: range of the margins (thin), one standard deviation (thick), mean, closed form (upright)."""
    left, unit_, top = 88, 250, 18

    def x(margin: float) -> str:
        return f"{left + unit_ * margin:.1f}"

    def line(a: str, b: float, c: str, d: float, color: str, width: float, extra: str = "") -> str:
        return f'<line x1="{a}" y1="{b:g}" x2="{c}" y2="{d:g}" stroke="{color}" stroke-width="{width:g}"{extra}/>'

    def text(a: str, b: float, words: str, anchor: str = "middle") -> str:
        return f'<text x="{a}" y="{b:g}" text-anchor="{anchor}">{words}</text>'

    bottom = top + 40 * len(found)
    parts = [line(x(-0.05), bottom, x(1.5), bottom, INK, 1), line(x(0), top, x(0), bottom, SOFT, 1, ' stroke-dasharray="2 3"')]
    for tick in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5):
        parts += [line(x(tick), bottom, x(tick), bottom + 4, INK, 1), text(x(tick), bottom + 20, f"{tick:g}")]
    parts.append(text(x(0.75), bottom + 41, "tied margin"))
    for row, (edit, values) in enumerate(found.items()):
        y, color = top + 20 + 40 * row, LOOK[edit][0]
        low, high, mean, sd = (float(v) for v in (values.min(), values.max(), values.mean(), values.std()))
        parts += [
            text(str(left - 22), y + 5, edit, "end"),
            line(x(low), y, x(high), y, color, 1.5),
            line(x(mean - sd), y, x(mean + sd), y, color, 8, ' opacity="0.6"'),
            f'<circle cx="{x(mean)}" cy="{y}" r="4.5" fill="{color}"/>',
            line(x(lines[edit]), y - 15, x(lines[edit]), y + 15, INK, 2),
        ]
    box = f'viewBox="0 0 480 {bottom + 50}" width="480" height="{bottom + 50}" font-family="DejaVu Sans, Verdana, sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-size="16" fill="{INK}">' + "".join(parts) + "</svg>"


def lift(ax: Axes, k: int, counts: Sequence[int], rows: Mapping[str, Sequence[tuple[float, float]]]) -> list[Any]:
    """Swap margins ÷ (2/k) against the number K of attributes, as (mean, standard deviation), over K/(K − 1) and the ceiling."""
    artists: list[Any] = []
    every = range(min(counts), max(counts) + 1)
    artists += ax.plot(every, [K / (K - 1) for K in every], "--", color=BLUE, lw=1.3)
    artists += ax.plot(every, [ceiling(k, K, K) * k / 2 for K in every], "-", color=PURPLE, lw=1.3)
    for (name, values), color, marker in zip(rows.items(), (BLUE, ORANGE, PURPLE), MARKERS, strict=False):
        mean, sd = zip(*values, strict=True)
        artists.append(ax.errorbar(counts, mean, sd, fmt=marker, color=color, ms=5, capsize=3, lw=1.3, label=name))
    ax.axhline(1, color=SOFT, lw=1)
    ax.set(xscale="log", xlabel="number of attributes K", ylabel="swap margin ÷ (2/k)")
    ax.set_xticks(list(counts), [str(K) for K in counts])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend()
    return artists


def images_by_size(ax: Axes, sizes: Sequence[int], leak: Leakage, single: Callable[[int], float]) -> list[Any]:
    """Swap margins of three images: best against one swap alone, best against all swaps at once, and tied to its caption."""
    rows = (
        ("best against one swap", [single(k) for k in sizes], PURPLE, ":", "D"),
        ("best against all swaps", [best_image_margin(k, leak) for k in sizes], GREEN, "--", "^"),
        ("tied to its caption", [predicted("swap", k, leak) for k in sizes], BLUE, "-", "o"),
    )
    artists: list[Any] = []
    for name, values, color, line, marker in rows:
        artists += ax.plot(sizes, values, line, marker=marker, color=color, lw=1.5, ms=5, label=name)
    _log_sizes(ax, sizes)
    _log_values(ax, "swap margin")
    return artists


def _log_sizes(ax: Axes, sizes: Sequence[int]) -> None:
    shown = [k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if k in sizes]
    ax.set(xscale="log", xlabel="atoms in the scene, k")
    ax.set_xticks(shown, [str(k) for k in shown])
    ax.xaxis.set_minor_locator(NullLocator())


def _log_values(ax: Axes, name: str) -> None:
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1]
    ax.set(yscale="log", ylabel=name)
    low, high = ax.get_ylim()
    shown = [tick for tick in ticks if low <= tick <= high]
    ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.legend(loc="lower left")
