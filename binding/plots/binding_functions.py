"""Pictures of the chapter on scenes as sums of objects."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from binding.binding_functions import classical_mds
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PURPLE, SOFT
from binding.scene_bank import Bank, nearest

QUANTITIES = (("concepts", "concepts", BLUE), ("objects", "objects", ORANGE), ("swap", "swap choice", GREEN))
"""Key of a result, its name in the legend, its colour."""


def explained(ax: Axes, rows: Mapping[str, Mapping[str, float]]) -> list[Any]:
    """For each encoder R² of the sum over concepts and over objects, and the ceiling 1 − ς of a sum over concepts."""
    artists: list[Any] = []
    for y, found in zip(range(len(rows), 0, -1), rows.values(), strict=True):
        first, second, ceiling = found["r2_concepts"], found["r2_objects"], 1 - found["binding_share"]
        ax.plot([min(first, second), 1], [y, y], color=SOFT, lw=1, zorder=0)
        artists += ax.plot(first, y, "o", color=BLUE, ms=9, label="sum of concepts" if y == len(rows) else None)
        artists += ax.plot(
            second, y, "s", color=ORANGE, ms=9, mfc="none", mew=2, label="sum of objects" if y == len(rows) else None
        )
        artists += ax.plot(ceiling, y, "|", color=INK, ms=22, mew=2.5, label="1 − ς" if y == len(rows) else None)
    ax.set_yticks(range(len(rows), 0, -1), list(rows), fontsize=9)
    ax.set(xlabel="share of the variance explained", ylim=(0.4, len(rows) + 0.6))
    ax.legend(fontsize=9, loc="lower left", bbox_to_anchor=(-0.35, 1.0), ncols=3, handletextpad=0.3, columnspacing=1.0)
    return artists


def quadruple_map(
    ax: Axes, scenes: Mapping[str, Tensor], sums: Mapping[str, Tensor], others: Mapping[str, Mapping[str, Tensor]]
) -> Tensor:
    """Classical scaling of the scenes of one quadruple, their sums of objects, and what they are made of; returns the points.

    ``scenes`` and ``sums`` have the same names; ``others`` maps a legend to named vectors.
    """
    groups = {"scene": scenes, "sum of its objects": sums, **others}
    points = classical_mds(torch.stack([x for group in groups.values() for x in group.values()]))
    start, styles = 0, zip((INK, ORANGE, BLUE, GREEN), ("o", "s", "^", "D"), strict=True)
    place: dict[str, Tensor] = {}
    for (legend, group), (color, marker) in zip(groups.items(), styles, strict=False):
        part = points[start : start + len(group)]
        hollow = legend != "scene"
        ax.plot(*part.T, marker, color=color, ms=8, mfc="none" if hollow else color, mew=1.8, label=legend)
        for name, point in zip(group, part, strict=True):
            if legend == "sum of its objects":
                ax.plot(*torch.stack([place[name], point]).T, color=SOFT, lw=1, zorder=0)
                continue
            if legend == "scene":
                place[name] = point
            else:
                ax.plot(*torch.stack([place[name], point]).T, color=SOFT, lw=1, ls=":", zorder=0)
                continue
            ax.annotate(name, point.tolist(), xytext=(6, 4), textcoords="offset points", fontsize=8, color=color)
        start += len(group)
    ax.set(xticks=(), yticks=(), aspect="equal")
    ax.axis("off")
    ax.margins(0.2)
    ax.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2)
    return points


def removal_bars(ax: Axes, found: Mapping[str, tuple[float, float]]) -> list[Any]:
    """What is still read of the first object after each removal: its noun and the object, side by side."""
    y = -np.arange(len(found), dtype=float)
    artists: list[Any] = []
    for column, (label, color, shift) in enumerate((("its noun", BLUE, 0.2), ("the object", ORANGE, -0.2))):
        values = [row[column] for row in found.values()]
        artists += ax.barh(y + shift, values, 0.36, color=color, label=label, hatch=None if column == 0 else "//", ec="white")
        for value, at in zip(values, y + shift, strict=True):
            artists.append(ax.text(value + 0.02, at, f"{value:.2f}", va="center", fontsize=9))
    ax.set_yticks(y, list(found), fontsize=9)
    ax.set(xlabel="still read, share of scenes", xlim=(0, 1.15))
    ax.legend(fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return artists


def predicted(ax: Axes, found: Mapping[float, Sequence[Mapping[str, float]]]) -> dict[str, np.ndarray]:
    """Concepts, objects and swap choices against coverage, from the results of each split: means with the range over splits.

    Returns (mean, least, largest) of each quantity, (3, coverages).
    """
    coverages = np.array(list(found))
    drawn = {}
    for (key, label, color), marker, line, shift in zip(QUANTITIES, MARKERS, LINES, (-0.012, 0.0, 0.012), strict=False):
        values = [[row[key] for row in rows] for rows in found.values()]
        mean, low, high = drawn[key] = np.array([[np.mean(v), min(v), max(v)] for v in values]).T
        bars = mean - low, high - mean
        ax.errorbar(coverages + shift, mean, bars, color=color, marker=marker, ls=line, capsize=2, ms=5, label=label)
    ax.axhline(0.5, color=SOFT, lw=1, zorder=0)
    ax.set(ylim=(-0.05, 1.05), xlim=(0.24, 0.96), xticks=coverages)
    return drawn


class Map:
    """A map of a few scenes that share their second object, for edits of the first: what the widget of the chapter draws.

    Across: the direction in which scenes of different nouns differ most. Up: the one in which those of different adjectives do,
    at a right angle. Each has a scale of its own, since adjectives move a vector much less than nouns.
    """

    def __init__(self, bank: Bank, x: Tensor, u: Tensor, names: Sequence[str], firsts: Sequence[int], second: int) -> None:
        self.bank, self.x, self.u, self.firsts = bank, x, u, list(firsts)
        self.names = list(names)
        """What each of the M K objects is called."""
        pairs = torch.tensor([[o // bank.K, o % bank.K, second // bank.K, second % bank.K] for o in firsts])
        self.rows = bank.row(pairs)
        """The row of the bank for each first object."""
        self.second = second
        self.centre = x[self.rows].mean(dim=0)
        left = x[self.rows] - self.centre
        axes = []
        for value in (pairs[:, 0], pairs[:, 1]):
            means = torch.stack([left[value == v].mean(dim=0) for v in value.unique()])
            axes.append(torch.linalg.svd(means, full_matrices=False).Vh[0])
            left = left - (left @ axes[-1])[:, None] * axes[-1]
        self.axes = torch.stack(axes)
        self.reach = ((x[self.rows] - self.centre) @ self.axes.T).abs().amax(dim=0) * 1.6

    def edit(self, old: int, new: int, strength: float) -> tuple[Tensor, int, float]:
        """The edited vector, the row of its nearest scene in the bank, and its cosine with the target."""
        z = self.x[self.rows[self.firsts.index(old)]] + strength * (self.u[new] - self.u[old])
        target = self.x[self.rows[self.firsts.index(new)]]
        return z, int(nearest(z[None], self.x)), float(torch.cosine_similarity(z, target, dim=0))

    def called(self, row: int) -> str:
        """A scene of the bank in words."""
        first, second = self.bank.objects[row].tolist()
        return f"{self.names[first]} + {self.names[second]}"

    def frame(self, old: int, new: int, strength: float) -> str:
        """One frame as SVG text, written by hand, since a page holds many."""
        z, found, cosine = self.edit(old, new, strength)
        parts = []
        for first, row in zip(self.firsts, self.rows.tolist(), strict=True):
            at = self._place(self.x[row])
            aim, start = first == new, first == old
            color, size = (GREEN, 8) if aim else (BLUE, 6) if start else (SOFT, 5)
            fill = "none" if aim else color
            parts.append(f"<circle cx='{at[0]}' cy='{at[1]}' r='{size}' fill='{fill}' stroke='{color}'/>")
            parts.append(_text(at[0], at[1] - 12, self.names[first], color if aim or start else "#555"))
        here, start_at = self._place(z), self._place(self.x[self.rows[self.firsts.index(old)]])
        parts.append(f"<path d='M{start_at[0]} {start_at[1]}L{here[0]} {here[1]}' stroke='{PURPLE}' stroke-dasharray='5 3'/>")
        parts.append(f"<path d='M{here[0] - 7} {here[1]}h14M{here[0]} {here[1] - 7}v14' stroke='{ORANGE}' stroke-width='4'/>")
        verdict = "the target" if found == int(self.rows[self.firsts.index(new)]) else "not the target"
        parts.append(_text(260, 352, f"nearest of {len(self.x):,}: {self.called(found)} ({verdict})", INK))
        parts.append(_text(260, 374, f"cosine with the target {cosine:.3f}", INK))
        look = "font-family='DejaVu Sans,Verdana,sans-serif' font-size='13' text-anchor='middle' stroke-width='2'"
        sheet = "width='520' height='384' viewBox='0 0 520 384'"
        return f"<svg xmlns='http://www.w3.org/2000/svg' {sheet}><g {look}>{''.join(parts)}</g></svg>"

    def alt(self, old: int, new: int, strength: float) -> str:
        """The numbers of one frame in words."""
        _, found, cosine = self.edit(old, new, strength)
        return (
            f"Map of {len(self.firsts)} scenes with {self.names[self.second]}. From {self.names[old]} towards {self.names[new]},"
            f" strength {strength}: of {len(self.x):,} scenes the nearest is {self.called(found)};"
            f" cosine with the target {cosine:.3f}."
        )

    def _place(self, z: Tensor) -> tuple[int, int]:
        x, y = ((z - self.centre) @ self.axes.T / self.reach).tolist()
        return round(260 + 240 * x), round(165 - 150 * y)


def _text(x: float, y: float, text: str, color: str) -> str:
    return f"<text x='{x}' y='{y}' fill='{color}' stroke='none'>{html.escape(text)}</text>"
