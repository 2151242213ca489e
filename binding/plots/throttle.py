"""Pictures of the chapter on the throttle: slivers to scale, gaps against π, offsets, batches, and the trained encoder."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PURPLE, SOFT, img
from binding.throttle import Throttle, batch_reward, mean_interval

Values = Mapping[float, Sequence[float]]


def examples(axes: Sequence[Axes], pictures: np.ndarray, captions: Sequence[str]) -> list[Any]:
    """Pictures (n, 3, H, W) with a caption below each."""
    artists: list[Any] = []
    for ax, picture, caption in zip(axes, pictures, captions, strict=True):
        artists.append(ax.imshow(np.clip(picture.transpose(1, 2, 0), 0, 1), interpolation="nearest"))
        ax.set(xticks=[], yticks=[])
        ax.set_xlabel(caption.replace(" and ", "\nand "), fontsize=9)
        ax.spines[:].set_visible(False)
    return artists


def show_photos(picture: Figure, alt: str) -> None:
    """Show a figure whose colours mean something: it stays on white, where a dark page would turn its colours over."""
    from IPython.display import HTML, display

    display(HTML(img(picture, alt).replace("binding-figure dark-light", "binding-photo")))


def levels(ax: Axes, bound: float, gaps: Throttle, rate: float) -> list[Any]:
    """L_π of the binding score, of its average and of its reversal on one loss axis, to scale, from zero on."""
    losses = (bound, bound + gaps.blind_gap(rate), bound + gaps.reversed_gap(rate))
    artists: list[Any] = list(ax.barh(range(3), losses, height=0.6, color=(BLUE, SOFT, ORANGE)))
    for row, value in enumerate(losses):
        more = f" (+{value - bound:.3f})" if row else ""
        artists.append(ax.text(value + 0.04, row, f"{value:.3f}{more}", va="center"))
    ax.set(xlim=(0, 3), ylim=(2.5, -0.5), yticks=range(3), yticklabels=("binds", "blind", "reversed"))
    ax.set_xticks((0, log(2), 2), ("0", "log 2", "2 nats"))
    return artists


def slivers(ax: Axes, batch: int, rates: Sequence[float]) -> list[Any]:
    """For each swap rate p, the loss from zero to log B to scale, with E log(1 + m), all that binding can earn, marked off."""
    rewards = [batch_reward(batch, p) for p in rates]
    rows = range(len(rates))
    artists: list[Any] = [*ax.barh(rows, [log(batch)] * len(rates), height=0.5, color=SOFT, alpha=0.3)]
    artists += ax.barh(rows, rewards, height=0.5, color=ORANGE, edgecolor=ORANGE, lw=1)
    for row, reward in zip(rows, rewards, strict=True):
        artists.append(ax.text(reward + 0.2, row, f"{reward:.2g} of {log(batch):.1f} nats", va="center"))
    ax.set(xlim=(0, 12.2), ylim=(len(rates) - 0.5, -0.5), yticks=[])
    ax.set_xticks((0, 5, 10))
    return artists


def power(p: float) -> str:
    """A power of ten as a label."""
    return f"$10^{{{np.log10(p):.0f}}}$"


def gap_lines(ax: Axes, rates: Sequence[float], measured: Mapping[str, np.ndarray], lines: Throttle) -> list[Any]:
    """Both gaps against π: measured (mean, 95 % half width), (π, 2) each, on the lines of the closed form, with their ends."""
    artists: list[Any] = []
    grid = np.array([0.0, 1.0])
    for i, (name, gap, ends) in enumerate(
        (("reversed", lines.reversed_gap, (lines.c0, lines.cost)), ("blind", lines.blind_gap, (lines.c1, lines.reward)))
    ):
        color = (ORANGE, BLUE)[i]
        artists += ax.plot(grid, [gap(x) for x in grid], LINES[i], color=color)
        mean, half = measured[name].T
        artists.append(ax.errorbar(rates, mean, half, fmt=MARKERS[i], color=color, mfc="white", lw=1.5, capsize=3))
        for x, y, symbol in ((0, ends[0], ("$c_0$", "$c_1$")[i]), (1, ends[1], ("E $M^*$", "log 2 − E ℓ")[i])):
            side = "right" if x == 0 else "left"
            artists.append(
                ax.annotate(
                    symbol, (x, y), xytext=(-7 if x == 0 else 7, 0), textcoords="offset points", ha=side, va="center", color=color
                )
            )
        artists.append(ax.text(0.5, gap(0.5) + 0.1, f"{name} ", color=color, ha="right"))
    ax.set(xlim=(-0.13, 1.27), ylim=(0, 2.2), xlabel="swap-contrast rate π", ylabel="loss above $L_\\pi(S^*)$ (nats)")
    ax.set_xticks(np.linspace(0, 1, 6))
    return artists


def offset_curves(ax: Axes, knob: Sequence[float], found: Sequence[Throttle]) -> list[Any]:
    """c₁ and c₀ against a knob on logarithmic axes."""
    artists: list[Any] = []
    for i, (name, values) in enumerate((("$c_0$", [t.c0 for t in found]), ("$c_1$", [t.c1 for t in found]))):
        artists += ax.plot(knob, values, MARKERS[i] + LINES[i], color=(ORANGE, BLUE)[i], mfc="white", ms=5)
        artists.append(
            ax.annotate(name, (knob[0], values[0]), xytext=(0, 7), textcoords="offset points", color=(ORANGE, BLUE)[i])
        )
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(knob, [f"{x:g}" for x in knob])
    ax.minorticks_off()
    return artists


def cloud(axes: Sequence[Axes], draws: Sequence[Throttle], published: Throttle, error: float) -> list[Any]:
    """Closed-form constants of many code draws against their mean margin, and the published point with its stated error."""
    artists: list[Any] = []
    for ax, name, label in zip(axes, ("c1", "c0", "reward"), ("$c_1$", "$c_0$", "log 2 − E ℓ"), strict=True):
        artists += ax.plot([d.cost for d in draws], [getattr(d, name) for d in draws], "o", color=BLUE, ms=3, alpha=0.5)
        y = getattr(published, name)
        artists.append(ax.errorbar(published.cost, y, error, error, fmt="D", color=ORANGE, mfc="white", ms=5, lw=1.5))
        ax.set(xlabel="E $M^*$", title="")
        ax.set_ylabel(label, labelpad=2)
        ax.locator_params(nbins=3)
        ax.tick_params(labelsize=9)
    return artists


def batch_rewards(ax: Axes, sizes: Sequence[int], measured: np.ndarray, exact: Mapping[str, Sequence[float]]) -> list[Any]:
    """Measured reward (sizes, 2: mean, 95 % half width) against the batch size, under the exact curve and the two bounds."""
    artists: list[Any] = []
    for (name, values), color, line in zip(exact.items(), (SOFT, PURPLE, GREEN, INK), LINES, strict=False):
        artists += ax.plot(sizes, values, line, color=color, label=name, lw=1.8)
    mean, half = measured.T
    artists.append(ax.errorbar(sizes, mean, half, fmt="o", color=BLUE, mfc="white", capsize=3, lw=1.5, label="measured"))
    ax.set(xscale="log", yscale="log", xlabel="batch size B", ylabel="reward for binding (nats)")
    ax.set_xticks(sizes, [str(b) for b in sizes])
    ax.minorticks_off()
    ax.legend(fontsize=9, loc="upper left")
    return artists


def rate_axis(ax: Axes, rates: Sequence[float]) -> np.ndarray:
    """A logarithmic axis of rates with a place for π = 0 at its left; the positions of the rates."""
    smallest = min(r for r in rates if r > 0)
    where = np.array([np.log10(r) if r > 0 else np.log10(smallest) - 0.6 for r in rates])
    ax.set_xticks(where, [f"{r:g}" for r in rates], fontsize=9)
    ax.set_xlabel("rate of contrast batches π")
    return where


def trained_margins(ax: Axes, lines: Mapping[str, Values]) -> list[Any]:
    """Scores of a sweep against π on a logarithmic axis: a mark a seed, the geometric mean, and its interval over seeds."""
    artists: list[Any] = []
    for i, (name, values) in enumerate(lines.items()):
        where = rate_axis(ax, list(values))
        color = (BLUE, SOFT, GREEN)[i]
        centre, low, high = np.exp([mean_interval([log(x) for x in v]) for v in values.values()]).T
        artists += ax.plot(where, centre, LINES[i], color=color)
        artists.append(ax.fill_between(where, low, high, color=color, alpha=0.18, lw=0))
        for x, v in zip(where, values.values(), strict=True):
            artists += ax.plot([x] * len(v), v, MARKERS[i], color=color, mfc="white", ms=4)
        artists.append(
            ax.annotate(name, (where[-1], centre[-1]), xytext=(7, 0), textcoords="offset points", va="center", color=color)
        )
    ax.set(yscale="log", ylabel="margin (difference of cosines)", xlim=(where[0] - 0.15, where[-1] + 0.7))
    return artists


def trained_accuracy(ax: Axes, lines: Mapping[str, Values]) -> list[Any]:
    """Accuracies of a sweep against π, the mean over seeds and a mark a seed, with the level of a coin."""
    artists: list[Any] = [ax.axhline(0.5, color=INK, ls=":", lw=1.2)]
    for i, (name, values) in enumerate(lines.items()):
        where = rate_axis(ax, list(values))
        color = (GREEN, BLUE, PURPLE, ORANGE)[i]
        artists += ax.plot(where, [np.mean(v) for v in values.values()], LINES[i], color=color, label=name)
        for x, v in zip(where, values.values(), strict=True):
            artists += ax.plot([x] * len(v), v, MARKERS[i], color=color, mfc="white", ms=4)
    ax.set(ylabel="accuracy", ylim=(0.45, 1.02))
    ax.legend(fontsize=9, loc="lower right", bbox_to_anchor=(1.02, 0.06))
    return artists


def trained_rewards(ax: Axes, rates: Sequence[float], lines: Mapping[str, Values]) -> list[Any]:
    """What a trained encoder earns in its own loss against π, with intervals over seeds, beside the most it can earn, π log 2."""
    grid = np.linspace(0, 1, 50)
    artists: list[Any] = ax.plot(grid, grid * log(2), color=INK, ls="--", label="π log 2")
    for i, (name, values) in enumerate(lines.items()):
        centre, low, high = np.array([mean_interval(v) for v in values.values()]).T
        color = (BLUE, ORANGE)[i]
        artists.append(
            ax.errorbar(
                rates,
                centre,
                [centre - low, high - centre],
                fmt=MARKERS[i],
                color=color,
                mfc="white",
                capsize=3,
                lw=1.5,
                label=name,
            )
        )
    ax.set(xlabel="rate of contrast batches π", ylabel="reward (nats)")
    ax.legend(fontsize=9, loc="upper left")
    return artists
