"""Pictures of the chapter on caption corpora: what binding is worth to a loss, and how pairs grow with the corpus."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.contrast import poisson_interval, rate
from binding.corpus import Report
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, SOFT, label_line
from binding.throttle import jensen_bound, linear_bound

SIZES = tuple(2**power for power in range(5, 18))


def best_bound(batch: int, p: float) -> float:
    """The smaller of (B − 1) p log 2 and log(1 + (B − 1) p), in nats."""
    return min(linear_bound(batch, p), jensen_bound(batch, p))


def worth(ax: Axes, reports: Mapping[str, Report], *, swaps: bool = True) -> list[Any]:
    """The most that binding can save, in nats an example, against the batch size, a corpus, under the loss log B of a guess.

    A band is the 95 % Poisson interval of the rate; marks are E log(1 + m) exactly, where the corpus holds the batch.
    """
    sizes = np.array(SIZES)
    artists: list[Any] = ax.plot(sizes, np.log(sizes), color=SOFT, lw=1.5)
    label_line(ax, sizes[-1], log(sizes[-1]), "log B", SOFT)
    for i, (name, report) in enumerate(reports.items()):
        kind, color = report.swaps if swaps else report.candidates, (BLUE, ORANGE, GREEN)[i % 3]
        low, high = (np.array([best_bound(B, p) for B in SIZES]) for p in report.interval(swaps))
        artists.append(ax.fill_between(sizes, np.maximum(low, 1e-300), high, color=color, alpha=0.15, lw=0))
        if kind.pairs:
            bound = [best_bound(B, rate(kind.partners, report.captions)) for B in SIZES]
            artists += ax.plot(sizes, bound, LINES[i % 4], color=color)
            held = [B for B in SIZES if B <= report.captions]
            artists += ax.plot(
                held, [report.batch(B, swaps)["exact"] for B in held], MARKERS[i % 6], ms=4, mfc="white", color=color
            )
            label_line(ax, sizes[-1], bound[-1], name, color)
    ax.set(
        xscale="log", yscale="log", xlabel="batch size B", ylabel="nats an example", xlim=(sizes[0], sizes[-1]), ylim=(1e-9, 30)
    )
    ax.set_xticks([32, 256, 2048, 16384, 131072], ["32", "256", "2,048", "16,384", "131,072"], fontsize=9)
    ax.minorticks_off()
    return artists


def growth(ax: Axes, sizes: Sequence[int], pairs: Mapping[str, Sequence[int]], rates: Mapping[str, float]) -> list[Any]:
    """Pairs found against the size N of the corpus, with the lines ½ N (N − 1) p of the given rates."""
    N = np.array(sizes, float)
    artists: list[Any] = []
    for i, (name, counts) in enumerate(pairs.items()):
        color = (BLUE, ORANGE)[i]
        line = N * (N - 1) / 2 * rates[name]
        artists += ax.plot(N, line, LINES[i], color=color, lw=1.5)
        artists += ax.plot(N, counts, MARKERS[i], color=color, mfc="white", label=name)
    ax.set(xscale="log", yscale="log", xlabel="captions N", ylabel="pairs of candidates")
    ax.legend(loc="upper left")
    return artists


def extrapolation(ax: Axes, captions: int, pairs: int, batch: int) -> list[Any]:
    """What so many pairs among so many captions say about a batch: the bound with its 95 % interval, and log B."""
    all_pairs = captions * (captions - 1) / 2
    low, high = (best_bound(batch, min(1.0, end / all_pairs)) for end in poisson_interval(pairs))
    left = 1e-9
    artists: list[Any] = ax.plot([max(low, left), high], [0, 0], color=ORANGE, lw=7, solid_capstyle="butt")
    artists += ax.plot([high], [0], "|", color=INK, ms=16, mew=2)
    if pairs:
        artists += ax.plot([low], [0], "|", color=INK, ms=16, mew=2)
        artists += ax.plot([best_bound(batch, pairs / all_pairs)], [0], "D", color=INK, ms=7)
    artists.append(ax.axvline(log(batch), color=SOFT, lw=2, ls="--"))
    artists.append(ax.text(log(batch), 0.62, "log B ", ha="right", va="center", color=INK))
    said = f"{low:.1g} to {high:.1g} nats" if pairs else f"at most {high:.1g} nats"
    artists.append(ax.text(max(low, left), 0.45, said, va="center"))
    ax.set(xscale="log", xlim=(left, 30), ylim=(-0.5, 0.9), yticks=[], xlabel="most that binding can save, nats an example")
    ax.spines["left"].set_visible(False)
    return artists
