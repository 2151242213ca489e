"""Pictures of the chapter "The setting": captions and an image on the sphere, distances in a quartet, the ceiling."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from binding.plots import BLUE, GREEN, INK, ORANGE, SOFT


def section(ax: Axes, d: float) -> list[Any]:
    """The great circle through t(c(s)) and t(c(σs)), to true scale for their distance d, with the image vector that attains d.

    The mean of the two captions points to the right, so the attaining image points straight up.
    """
    half = np.arcsin(d / 2)
    turn = np.linspace(0, 2 * np.pi, 181)
    circle = ax.plot(np.cos(turn), np.sin(turn), color=SOFT, lw=1)
    arrows = []
    for name, angle, color, place in (
        ("$t(c(s))$", half, BLUE, (6, 5)),
        ("$t(c(\\sigma s))$", -half, ORANGE, (6, -13)),
        ("$i$ along the difference", np.pi / 2, GREEN, (8, 5)),
    ):
        tip = (np.cos(angle), np.sin(angle))
        arrows.append(
            ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0})
        )
        arrows.append(ax.annotate(name, tip, place, textcoords="offset points", color=color))
    chord = ax.plot([np.cos(half)] * 2, [np.sin(half), -np.sin(half)], color=INK, lw=3, solid_capstyle="butt")
    ax.set(xlim=(-1.05, 1.75), ylim=(-0.3, 1.2), aspect="equal")
    ax.axis("off")
    return [*circle, *arrows, *chord]


def distance_matrix(ax: Axes, distance: np.ndarray, captions: Sequence[str]) -> list[Any]:
    """The distances (4, 4) of a quartet's captions as a table of shades; heavy frames hold the two captions of one scene."""
    image = ax.imshow(distance, cmap="Greys", vmin=0, vmax=3 * distance.max(), aspect="auto")
    texts = [
        ax.text(column, row, f"{distance[row, column]:.3f}" if row != column else "0", ha="center", va="center")
        for row in range(4)
        for column in range(4)
    ]
    frames = [
        ax.add_patch(Rectangle((at - 0.5, at - 0.5), 2, 2, fill=False, ec=color, lw=3, ls=line))
        for at, color, line in ((0, BLUE, "-"), (2, ORANGE, "--"))
    ]
    ax.set_xticks(range(4), [f"{number}" for number in range(1, 5)])
    ax.set_yticks(range(4), [f"{text}  {number}" for number, text in enumerate(captions, 1)])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return [image, *texts, *frames]


def ceiling_wedge(ax: Axes, d: np.ndarray, random: np.ndarray, best: np.ndarray) -> list[Any]:
    """Margins against the ceiling d (n,): random images (n, m) inside |M| ≤ d, the best images (n,) on its edge."""
    edge = np.array([0, 1.05 * d.max()])
    allowed = ax.fill_between(edge, -edge, edge, color=SOFT, alpha=0.2, lw=0)
    lines = [line for sign, style in ((1, "-"), (-1, "--")) for line in ax.plot(edge, sign * edge, color=INK, lw=1.2, ls=style)]
    dots = ax.plot(np.repeat(d, random.shape[1]), random.ravel(), ".", color=BLUE, ms=3)
    marks = ax.plot(d, best, "^", color=ORANGE, ms=4)
    ax.set(xlabel="ceiling $d(s)$", ylabel="margin $M(s)$", xlim=(0, edge[1]))
    labels = [
        ax.text(x * edge[1], y * edge[1], text, color=color, ha=align, va="center")
        for x, y, text, color, align in (
            (0.62, 0.86, "image along the difference", ORANGE, "right"),
            (0.98, -0.22, "random images", BLUE, "right"),
            (0.62, -0.86, "$M = -d$", INK, "right"),
        )
    ]
    return [allowed, *lines, *dots, *marks, *labels]


def three_distances(ax: Axes, captions: Sequence[str], values: Sequence[float], top: float) -> list[Any]:
    """How far the first of a quartet's captions lies from the other three, up to ``top``; hollow bars: the other pairing."""
    artists: list[Any] = [ax.text(0, -0.2, f"from {captions[0]}")]
    for row, (text, value, color) in enumerate(zip(captions[1:], values, (BLUE, ORANGE, ORANGE), strict=True), 1):
        bar = ax.barh(-row, value, height=0.34, color=color if row == 1 else "none", edgecolor=color, lw=2, clip_on=False)
        artists += [
            *bar,
            ax.text(0, -row + 0.27, text, color=color),
            ax.text(value + 0.02 * top, -row, f"{value:.3f}", va="center"),
        ]
    ax.set(xlim=(0, 1.15 * top), ylim=(-3.2, 0.2))
    ax.axis("off")
    return artists
