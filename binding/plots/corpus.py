"""Pictures of the chapter on caption corpora: what binding is worth to a loss, and how pairs grow with the corpus."""

from collections.abc import Mapping, Sequence
from math import log, log10
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.contrast import poisson_interval, rate
from binding.corpus import Report
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, SOFT, label_line
from binding.plots.light import box, picture, text
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
    """Pairs found against the size n of the corpus, with the lines ½ n (n − 1) p of the given rates."""
    n = np.array(sizes, float)
    artists: list[Any] = []
    for i, (name, counts) in enumerate(pairs.items()):
        color = (BLUE, ORANGE)[i]
        line = n * (n - 1) / 2 * rates[name]
        artists += ax.plot(n, line, LINES[i], color=color, lw=1.5)
        artists += ax.plot(n, counts, MARKERS[i], color=color, mfc="white", label=name)
    ax.set(xscale="log", yscale="log", xlabel="captions n", ylabel="pairs of candidates")
    ax.legend(loc="upper left")
    return artists


def extrapolation(captions: int, pairs: int, batch: int) -> str:
    """What so many pairs among so many captions say about a batch, as an SVG image: the bound, its 95 % interval, and log B.

    The scale is logarithmic. With no pair the interval has no lower end, and fades out to the left.
    """
    all_pairs = captions * (captions - 1) / 2
    low, high = (best_bound(batch, min(1.0, end / all_pairs)) for end in poisson_interval(pairs))
    start, end, guess = _at(low) if pairs else _at(1e-10), _at(high), _at(log(batch))
    parts = [box(start, 48, end - start, 14, fill=ORANGE, opacity=1 if pairs else 0.35)]
    parts += [box(x - 1, 42, 2, 26, fill=INK) for x in ((start, end) if pairs else (end,))]
    if pairs:
        x = _at(best_bound(batch, pairs / all_pairs))
        parts.append(f'<path d="M{x:.0f} 46l8 9l-8 9l-8 -9z" fill="{INK}"/>')
    said = f"between {low:.1g} and {high:.1g} nats" if pairs else f"at most {high:.1g} nats"
    parts.append(text(10, 20, f"worth {said}, of log B = {log(batch):.1f}"))
    parts.append(f'<path d="M{guess:.0f} 32V84" stroke="{SOFT}" stroke-width="3" stroke-dasharray="6 4"/>')
    parts.append(box(10, 84, 430, 1.5, fill=INK))
    for value, name in ((1e-9, "10⁻⁹"), (1e-6, "10⁻⁶"), (1e-3, "0.001"), (1, "1")):
        parts += [box(_at(value), 84, 1.5, 6, fill=INK), text(round(_at(value)), 106, name, text_anchor="middle")]
    return picture(450, 112, *parts)


def _at(nats: float) -> float:
    """Where a number of nats stands on the ruler of :func:`extrapolation`, in pixels: 36 a power of ten."""
    return 10 + 36 * max(0.0, log10(nats) + 10)
