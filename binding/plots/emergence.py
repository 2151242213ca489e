"""Pictures of the chapter on emergence: curves over coverage, the floors of a bag, what probes explain, predicted margins."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.coverage_split import bag_floor, status_floor
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PALETTE, PURPLE, SOFT

Curves = Mapping[int, Mapping[float, float]]
"""A score of runs: {seed: {ρ: score}}."""
GRID = np.linspace(0.15, 0.95, 41)


def over_seeds(curves: Curves) -> dict[float, list[float]]:
    """{seed: {ρ: score}} → {ρ: [scores]}, by increasing ρ."""
    found: dict[float, list[float]] = {}
    for scores in curves.values():
        for coverage, score in scores.items():
            found.setdefault(coverage, []).append(score)
    return dict(sorted(found.items()))


def curve(ax: Axes, curves: Curves, name: str, style: int, color: str, small: bool = False) -> list[Any]:
    """A line through the means over seeds, and one mark a run."""
    found = over_seeds(curves)
    artists: list[Any] = ax.plot(list(found), [np.mean(v) for v in found.values()], LINES[style % 4], color=color, label=name)
    x = [coverage for coverage, values in found.items() for _ in values]
    y = [value for values in found.values() for value in values]
    return artists + ax.plot(x, y, MARKERS[style], color=color, mfc="white", ms=4 if small else 5, ls="none")


def axis(ax: Axes, label: str) -> None:
    """Coverage to the right, a share upwards."""
    ax.set(xlabel="coverage ρ", ylabel=label, xlim=(0.15, 0.95), ylim=(-0.03, 1.03))
    ax.set_xticks((0.2, 0.4, 0.6, 0.8))


def floors(ax: Axes, values: int) -> list[Any]:
    """What a bag of concepts scores strictly: without a bonus for held-out objects, and with one."""
    artists: list[Any] = [ax.axhline(float(bag_floor(values)), color=SOFT, ls=":", lw=1.5, label="bag")]
    return artists + ax.plot(GRID, [status_floor(values, ρ) for ρ in GRID], "-.", color=SOFT, lw=1.5, label="bag with bonus")


def generalisation(axes: Sequence[Axes], held: Mapping[int, Curves], matched: Mapping[int, Curves]) -> list[Any]:
    """Strict accuracy on held-out objects with both floors of V = 20 (left), and matched choice with the coin (right), by |O|."""
    artists = floors(axes[0], 20)
    for i, values in enumerate(sorted(held)):
        artists += curve(axes[0], held[values], f"|O| = {values**2}", i, PALETTE[i], small=True)
    axes[1].axhline(0.5, color=SOFT, ls=":", lw=1.5)
    for values in sorted(matched):
        i = sorted(held).index(values)
        artists += curve(axes[1], matched[values], f"|O| = {values**2}", i, PALETTE[i], small=True)
    axis(axes[0], "strict accuracy, held out")
    axis(axes[1], "matched choice")
    axes[0].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return artists


def one_world(ax: Axes, scores: Mapping[str, Curves], values: int, coverage: float) -> list[Any]:
    """The curves of one |O| over coverage and both floors of a bag, with marks at one coverage; little ink, as it is a frame."""
    artists: list[Any] = [ax.axhline(float(bag_floor(values)), color=SOFT, ls=":", lw=1.5, label="bag")]
    few = np.linspace(0.15, 0.95, 9)
    artists += ax.plot(few, [status_floor(values, ρ) for ρ in few], color=SOFT, lw=1, label="with bonus")
    for i, (name, curves) in enumerate(scores.items()):
        found = over_seeds(curves)
        color = (BLUE, ORANGE, GREEN)[i]
        artists += ax.plot(list(found), [np.mean(v) for v in found.values()], LINES[i], color=color, label=name)
        if coverage in found:
            artists += ax.plot(coverage, np.mean(found[coverage]), MARKERS[i], color=color, ms=9)
    ax.set(xlabel="ρ", xlim=(0.15, 0.95), ylim=(-0.03, 1.03))
    ax.set_xticks((0.2, 0.5, 0.8))
    ax.set_yticks((0, 0.5, 1))
    ax.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return artists


def transitions(ax: Axes, rows: Mapping[str, tuple[Sequence[float], tuple[float, float, float] | None]]) -> list[Any]:
    """Where curves cross: one mark a seed, and the mean with its interval if there is one; a row a curve."""
    artists: list[Any] = []
    for row, (seeds, interval) in enumerate(rows.values()):
        artists += ax.plot(seeds, [row + 0.16] * len(seeds), MARKERS[0], color=SOFT, mfc="white", ms=5, ls="none")
        if interval is not None:
            mean, low, high = interval
            bar = ax.errorbar(mean, row - 0.08, xerr=[[mean - low], [high - mean]], fmt="D", color=BLUE, capsize=4, ms=5)
            artists.append(bar)
    ax.set(xlim=(0.15, 0.95), ylim=(len(rows) - 0.5, -0.5), xlabel="coverage ρ")
    ax.set_yticks(range(len(rows)), list(rows))
    return artists


def forms(axes: Sequence[Axes], matched: Mapping[str, Curves], explained: Mapping[str, Curves]) -> list[Any]:
    """Matched choice of the model and of what each probe predicts for it; R² of the probes on held-out scenes."""
    artists: list[Any] = [axes[0].axhline(0.5, color=SOFT, ls=":", lw=1.5)]
    names = list(matched)
    for ax, found in zip(axes, (matched, explained), strict=True):
        for name, curves in found.items():
            i = names.index(name)
            artists += curve(ax, curves, name, i, (INK, ORANGE, BLUE, GREEN, PURPLE)[i], small=True)
    axis(axes[0], "matched choice")
    axis(axes[1], "R², held out")
    axes[0].set_ylim(0.4, 1.03)
    axes[1].set_ylim(0, 1.03)
    axes[0].legend(fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return artists


def predicted(ax: Axes, groups: Mapping[str, Sequence[tuple[float, float]]]) -> list[Any]:
    """Measured margins against predicted ones, (predicted, measured) a run, with the line where they agree."""
    every = [value for pairs in groups.values() for pair in pairs for value in pair]
    ends = [min(every) - 0.02, max(every) + 0.02]
    artists: list[Any] = ax.plot(ends, ends, color=SOFT, ls=":", lw=1.5)
    for i, (name, pairs) in enumerate(groups.items()):
        x, y = zip(*pairs, strict=True)
        artists += ax.plot(x, y, MARKERS[i], color=PALETTE[i], mfc="none", ms=5, ls="none", label=name)
    ax.set(xlabel="predicted margin", ylabel="measured margin", xlim=ends, ylim=ends)
    ax.legend(fontsize=9, loc="upper left")
    return artists
