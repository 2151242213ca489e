"""Pictures of the chapter on SugarCrepe: one item under its ceiling, ceilings by stratum, accuracy by ceiling, the zoo."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PALETTE, SOFT
from binding.plots.light import box, picture, text
from binding.sugarcrepe import Deciles, Item

WIDTH, MIDDLE, UNIT = 360, 180, 140
"""Pixels of :func:`item`: the picture, its zero, and a score of one."""
COLUMNS = 42
"""Letters in a line of a caption."""


def item(shown: Item, d: float, margin: float) -> str:
    """One item as SVG: its two captions, the band of margins that images can reach, and the margin measured."""
    parts, y = [], 18
    for name, caption in (("right", shown.caption), ("wrong", shown.negative)):
        for k, line in enumerate(textwrap.wrap(" ".join(caption.split()), COLUMNS)):
            parts.append(text(4, y, name if k == 0 else "", font_weight="bold", font_size=13))
            parts.append(text(58, y, line, font_size=13))
            y += 17
        y += 5
    top = max(104, y)
    parts.append(box(MIDDLE - UNIT * d, top, 2 * UNIT * d, 24, fill=BLUE, fill_opacity=0.25, stroke=BLUE))
    parts.append(box(MIDDLE - 0.75, top - 8, 1.5, 40, fill=INK))
    if not np.isnan(margin):
        parts.append(box(MIDDLE + UNIT * margin - 3, top - 4, 6, 32, fill=GREEN if margin > 0 else ORANGE))
    for score in (-1, 0, 1):
        parts.append(
            text(MIDDLE + UNIT * score, top + 48, f"{score:+d}".replace("+0", "0").replace("-", "−"), text_anchor="middle")
        )
    parts.append(text(4, top + 72, f"ceiling d = {d:.3f}"))
    parts.append(text(WIDTH - 4, top + 72, _said(margin), text_anchor="end"))
    return picture(WIDTH, top + 80, *parts)


def item_alt(shown: Item, d: float, margin: float) -> str:
    """What :func:`item` shows, in words and numbers."""
    pair = f"Right: “{shown.caption.strip()}” Wrong: “{shown.negative.strip()}”"
    return f"{pair} Margins reach from −{d:.3f} to {d:.3f}; {_said(margin)}."


def _said(margin: float) -> str:
    if np.isnan(margin):
        return "no other caption"
    verdict = "right" if margin > 0 else "wrong" if margin < 0 else "a tie"
    return f"margin {margin:+.3f}, {verdict}".replace("-", "−")


def ceilings(ax: Axes, strata: Mapping[str, np.ndarray]) -> list[Any]:
    """Ceilings of each stratum, one row each: a line from 5 to 95 %, a bar from 25 to 75 %, a mark at the median."""
    artists: list[Any] = []
    for row, (name, d) in enumerate(strata.items()):
        low, left, middle, right, high = np.quantile(d, (0.05, 0.25, 0.5, 0.75, 0.95))
        color = ORANGE if "swap" in name else BLUE if "replace" in name else SOFT
        artists += ax.plot([low, high], [row, row], color=color, lw=1.5)
        artists += ax.plot([left, right], [row, row], color=color, lw=7, alpha=0.5, solid_capstyle="butt")
        artists += ax.plot(middle, row, MARKERS[1 if "swap" in name else 0], color=color, zorder=4)
    ax.set_yticks(range(len(strata)), list(strata))
    ax.invert_yaxis()
    ax.set(xlabel="ceiling d of an item", xlim=(0, None))
    ax.grid(axis="x", color=SOFT, alpha=0.3)
    return artists


def under_the_bag(ax: Axes, accuracies: Mapping[str, Sequence[float]], limits: Mapping[str, float]) -> list[Any]:
    """Published accuracies in percent, one mark a model, against what a scorer blind to word order can reach (a bar)."""
    artists: list[Any] = []
    for row, (name, values) in enumerate(accuracies.items()):
        ordered = np.sort(values)
        spread = row + 0.28 * (np.arange(len(ordered)) % 3 - 1)
        artists += ax.plot(ordered, spread, MARKERS[0], mfc="none", mec=BLUE, mew=1.5)
        artists += ax.plot([limits[name]] * 2, [row - 0.45, row + 0.45], color=ORANGE, lw=4, solid_capstyle="butt")
        artists.append(
            ax.annotate(
                f"{limits[name]:.1f}", (limits[name], row - 0.45), (0, 3), textcoords="offset points", color=ORANGE, ha="center"
            )
        )
    artists.append(ax.axvline(50, color=SOFT, ls=":"))
    ax.set_yticks(range(len(accuracies)), list(accuracies))
    ax.set(xlabel="accuracy, percent", ylim=(len(accuracies) - 0.4, -0.85))
    return artists


def by_ceiling(ax: Axes, curves: Mapping[str, Deciles]) -> list[Any]:
    """Accuracy against the mean ceiling of equal parts of the items, one line a stratum, with the coin at one half."""
    artists: list[Any] = [ax.axhline(0.5, color=SOFT, ls=":")]
    for k, (name, curve) in enumerate(curves.items()):
        artists += ax.plot(
            curve.d, curve.accuracy, MARKERS[k] + LINES[k], color=PALETTE[k], mfc="white" if k else None, label=name
        )
    ax.set(xlabel="mean ceiling d of the part", ylabel="accuracy", ylim=(0.4, 1.0), xlim=(0, None))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.2))
    return artists


def by_subset(ax: Axes, d: Mapping[str, float], columns: Mapping[str, Mapping[str, float]]) -> list[Any]:
    """Accuracy in percent against the mean ceiling of each subset; the first column filled and named, the others hollow."""
    artists: list[Any] = []
    for k, (name, column) in enumerate(columns.items()):
        style: dict[str, Any] = {"mfc": PALETTE[k] if k == 0 else "white", "mec": PALETTE[k], "mew": 2}
        artists += ax.plot([d[s] for s in column], list(column.values()), MARKERS[k], ls="", label=name, ms=8, **style)
    for s in d:
        top = max(column[s] for column in columns.values())
        near = [d[other] - d[s] for other in d if 0 < abs(d[other] - d[s]) < 0.05]
        place, align = ((0, 9), "center") if not near else ((-9, 0), "right") if near[0] > 0 else ((9, 0), "left")
        artists.append(ax.annotate(s, (d[s], top), place, textcoords="offset points", ha=align, va="center", fontsize=10))
    artists.append(ax.axhline(50, color=SOFT, ls=":"))
    ax.set(xlabel="mean ceiling d of the subset (all-MiniLM-L6-v2)", ylabel="accuracy, percent", xlim=(0.05, 0.8), ylim=(48, 101))
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.08), fontsize=10)
    return artists


def zoo(ax: Axes, points: Mapping[str, tuple[float, float]], low: float, high: float, right: float = 1.2) -> list[Any]:
    """Ceiling d against cap, to one scale: the wedge of published usage, the line d = cap, and the points measured here."""
    edge = np.array([0, right])
    artists: list[Any] = [ax.fill_between(edge, low * edge, high * edge, color=SOFT, alpha=0.35, lw=0)]
    artists += ax.plot(edge, edge, color=INK, lw=1)
    artists.append(ax.annotate("d = cap", (0.55, 0.57), rotation=45, ha="center", va="bottom", rotation_mode="anchor"))
    for k, (name, (cap, d)) in enumerate(points.items()):
        artists += ax.plot(cap, d, MARKERS[k], mfc="white", mec=PALETTE[k], mew=2, ms=8, ls="", label=name)
    ax.set(xlabel="cap, mean of 2√(2δ)", ylabel="mean swap distance d", xlim=(0, right), ylim=(0, 0.7), aspect="equal")
    ax.legend(loc="upper left", fontsize=9)
    return artists
