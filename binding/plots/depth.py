"""Pictures of the chapter on depth: the share that an edit keeps, the depth law, its spread, and the staircase."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from binding.depth import deviation, margin_limit, noise_floor, resolvable_depth
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, SOFT
from binding.plots.light import box, picture, text

COLORS = (BLUE, ORANGE, GREEN)
Found = Mapping[int, np.ndarray]
"""Margins of shape (D, draws) by the number b of children."""


def shares(b: int, D: int, N: int) -> str:
    """The root code, cut along the path to an edit at depth D (after Figure 1), and the margin that this leaves, as an SVG image.

    Row d is what the edit shares at depth d; filled, the b^{−d} that it keeps. On the right the margin 2 b^{−d} on a logarithmic
    scale; a dashed line is the floor 10/√N, and points are hollow beyond it.
    """
    top, height, left, width = 26, 34, 24, 176
    bottom = top + height * (D + 1)
    floor = _at(noise_floor(N))
    parts = [text(0, 15, "depth"), text(left + 40, 15, "the edit keeps"), text(290, 15, "margin")]
    parts += [_line(floor, top, floor, bottom + 6, BLUE, "6 4")]
    for d in range(D + 1):
        y, kept = top + height * d, width * float(b) ** -d
        parts.append(text(left - 8, y + 22, str(d), text_anchor="end"))
        parts += [box(left + i * kept, y, kept, height, fill="#fff", stroke=SOFT) for i in range(1, b if d else 1)]
        parts.append(box(left, y, max(kept, 1), height, fill=ORANGE, stroke=INK))
        parts.append(text(left + width + 62, y + 22, f"1/{b**d:,}" if d else "all", text_anchor="end"))
    for d in range(1, D + 1):
        x, face = _at(float(margin_limit(b, d))), ORANGE if d <= resolvable_depth(b, N) else "#fff"
        middle = top + height * (d + 0.5)
        parts.append(f'<circle cx="{x:.1f}" cy="{middle:g}" r="5" fill="{face}" stroke="{ORANGE}" stroke-width="2"/>')
    parts.append(_line(285, bottom + 6, 448, bottom + 6, INK))
    for value in (1, 0.1, 0.01, 0.001):
        parts += [_line(_at(value), bottom + 6, _at(value), bottom + 11, INK)]
        parts += [text(round(_at(value)), bottom + 26, f"{value:g}", text_anchor="middle")]
    return picture(450, bottom + 34, *parts)


def _at(margin: float) -> float:
    """Where a margin stands on the ruler of :func:`shares`, in pixels: 42 a power of ten."""
    return 300 - 42 * math.log10(margin)


def _line(x: float, y: float, to_x: float, to_y: float, color: str, dashes: str = "none") -> str:
    return f'<path d="M{x:.1f} {y:g}L{to_x:.1f} {to_y:g}" stroke="{color}" stroke-dasharray="{dashes}"/>'


def law(ax: Axes, found: Found, N: int) -> list[Any]:
    """Measured mean margins on the lines 2 b^{−D}, with the floor (Figure 2a)."""
    artists: list[Any] = [ax.axhline(noise_floor(N), color=SOFT, ls=":", lw=1.5)]
    ax.annotate(
        "10/√N", (0.99, noise_floor(N)), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=INK, fontsize=9
    )
    for (b, m), color, marker, line in zip(found.items(), COLORS, MARKERS, LINES, strict=False):
        depths = range(1, len(m) + 1)
        artists += ax.plot(depths, [float(margin_limit(b, d)) for d in depths], line, color=color, lw=1.2)
        artists += ax.plot(depths, m.mean(axis=1), marker, color=color, ms=6, label=f"b = {b}")
    ax.set(yscale="log", xlabel="depth D of the edit", ylabel="margin m(D)", xticks=range(1, 11), ylim=(1e-3, 2))
    ax.legend(fontsize=9)
    return artists


def products(ax: Axes, found: Found, N: int, band: float) -> list[Any]:
    """m · b^D with one standard error from the draws, the deviation that the law predicts for the mean, and a band around 2."""
    artists: list[Any] = [ax.axhspan(2 - band, 2 + band, facecolor="#e8e8e8", lw=0), ax.axhline(2, color=INK, lw=1)]
    for i, ((b, m), color, marker, line) in enumerate(zip(found.items(), COLORS, MARKERS, LINES, strict=False)):
        depths = np.arange(1, len(m) + 1)
        scaled = m * float(b) ** depths[:, None]
        error = scaled.std(axis=1, ddof=1) / m.shape[1] ** 0.5
        predicted = [2 * deviation(b, int(d), N * m.shape[1]) for d in depths]
        artists += ax.plot(depths, 2 + np.array(predicted), line, depths, 2 - np.array(predicted), line, color=color, lw=1)
        artists.append(
            ax.errorbar(depths + 0.12 * (i - 1), scaled.mean(axis=1), error, fmt=marker, color=color, ms=5, label=f"b = {b}")
        )
    ax.set(xlabel="depth D of the edit", ylabel="m(D) · b^D", xticks=range(1, 11))
    ax.legend(fontsize=9, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.16))
    return artists


def spread(ax: Axes, found: Found, N: int) -> list[Any]:
    """Relative standard deviation of the margin times √N: measured, with two standard errors, over the finite-N law."""
    artists: list[Any] = []
    for i, ((b, m), color, marker, line) in enumerate(zip(found.items(), COLORS, MARKERS, LINES, strict=False)):
        depths = np.arange(1, len(m) + 1)
        artists += ax.plot(depths, [deviation(b, int(d), 1) for d in depths], line, color=color, lw=1.2)
        measured = relative_deviation(b, m) * N**0.5
        error = 2 * measured / (2 * m.shape[1]) ** 0.5
        artists.append(ax.errorbar(depths + 0.08 * (i - 1), measured, error, fmt=marker, color=color, ms=5, label=f"b = {b}"))
    ax.set(xlabel="depth D of the edit", ylabel="relative std · √N", ylim=(0, None))
    ax.legend(fontsize=9, loc="lower right")
    return artists


def relative_deviation(b: int, m: np.ndarray) -> np.ndarray:
    """Standard deviation of measured margins (D, draws) as a share of the limit 2 b^{−D}, shape (D,)."""
    return m.std(axis=1, ddof=1) / [float(margin_limit(b, d)) for d in range(1, len(m) + 1)]


def staircase(ax: Axes, dimensions: Sequence[int], measured: Mapping[int, Sequence[int]]) -> list[Any]:
    """The last depth above the floor, measured at each dimension, on the steps ⌊log_b(√N / 5)⌋ (Figure 2b)."""
    fine = np.unique(np.round(np.geomspace(min(dimensions), max(dimensions), 400)).astype(int))
    artists: list[Any] = []
    for i, ((b, depths), color, marker, line) in enumerate(zip(measured.items(), COLORS, MARKERS, LINES, strict=False)):
        lift = 0.06 * (1 - i)
        steps = [resolvable_depth(b, int(N)) + lift for N in fine]
        artists += ax.plot(fine, steps, line, color=color, lw=1.2, drawstyle="steps-post")
        artists += ax.plot(dimensions, np.array(depths) + lift, marker, color=color, ms=6, label=f"b = {b}")
    ax.set(xlabel="dimension N", ylabel="resolvable depth", ylim=(-0.3, 5.5))
    ax.set_xscale("log", base=2)
    ax.set_xticks([256, 1024, 4096, 16384, 65536], ["256", "1,024", "4,096", "16,384", "65,536"])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(fontsize=9, loc="upper left")
    return artists
