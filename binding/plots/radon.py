"""Pictures of the chapter on the Radon bound."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from binding.dichotomies import curve_fraction, gaussian_fraction, typical_dimension
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PURPLE, SOFT, figure, img
from binding.radon import Floats, Separator, radon, separate


def circle(ax: Axes, points: Floats, present: Sequence[int]) -> list[Any]:
    """Atoms on the circle, a set of them, and the proof whether it separates: a line with its functional, or the common point."""
    proof = separate(points, present)
    absent = [i for i in range(len(points)) if i not in present]
    around = np.linspace(0, 2 * np.pi, 200)
    artists: list[Any] = ax.plot(np.cos(around), np.sin(around), color=SOFT, lw=1)
    if isinstance(proof, Separator):
        w, along = proof.direction, np.array([-proof.direction[1], proof.direction[0]])
        ends = np.array([proof.threshold * w - 1.25 * along, proof.threshold * w + 1.25 * along])
        artists += ax.plot(*ends.T, "--", color=INK)
        accepted = ax.fill(*np.vstack([ends, ends[::-1] + 2 * w]).T, color=GREEN, alpha=0.15, lw=0)[0]
        accepted.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
        artists.append(accepted)
        artists.append(
            ax.annotate("", (0.75 * w[0], 0.75 * w[1]), (0, 0), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 2})
        )
        artists.append(ax.text(0.4 * w[0] + 0.14 * along[0], 0.4 * w[1] + 0.14 * along[1], "$w$", ha="center", va="center"))
    else:
        for side, color, style in ((present, GREEN, "-"), (absent, ORANGE, "--")):
            used = [i for i in side if abs(proof.weights[i]) > 1e-12]
            artists += ax.plot(*points[used if len(used) < 3 else [*used, used[0]]].T, style, color=color)
        artists += ax.plot(*proof.point, marker="*", ms=15, color=PURPLE, zorder=4)
    artists += ax.plot(*points[list(present)].T, "o", ms=11, color=GREEN, zorder=3)
    artists += ax.plot(*points[absent].T, "s", ms=10, mfc="white", mec=ORANGE, mew=2, zorder=3)
    for i, x in enumerate(points):
        artists.append(ax.text(1.24 * x[0], 1.24 * x[1], f"$x_{{{i + 1}}}$", ha="center", va="center"))
    ax.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), aspect="equal")
    ax.axis("off")
    return artists


def live_circle(degrees: Sequence[int]) -> str:
    """Four atoms on the circle that the reader moves: ``_static/radon.js`` brings it to life, without it the picture stays.

    Raises ``ValueError`` if there are not four angles.
    """
    if len(degrees) != 4:
        raise ValueError(f"got {len(degrees)} angles, the movable circle takes four")
    turns = np.radians(degrees)
    points = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    found = radon(points)
    fig, ax = figure(3.2, 3.2)
    circle(ax, points, found.left)
    left, right = (" and ".join(f"x{i + 1}" for i in side) for side in (found.left, found.right))
    x, y = found.point
    picture = img(fig, f"Four atoms on a circle. The chord of {left} crosses the chord of {right} at ({x:.2f}, {y:.2f}).")
    return f'<div data-live="radon-circle" data-angles="{",".join(map(str, degrees))}">{picture}</div>'


def shares(ax: Axes, N: int, M: int) -> list[Any]:
    """The fraction of separable j-subsets against j, on the moment curve and for Gaussian atoms, with the size ⌊N/2⌋."""
    sizes = np.arange(1, M)
    curve = [float(curve_fraction(N, M, int(j))) for j in sizes]
    random = [gaussian_fraction(int(j), M, N) for j in sizes]
    artists: list[Any] = [ax.axvline(N // 2, color=SOFT, ls=":")]
    artists += ax.plot(sizes, curve, MARKERS[0] + LINES[0], color=BLUE, label="moment curve")
    artists += ax.plot(sizes, random, MARKERS[1] + LINES[1], color=ORANGE, mfc="white", label="Gaussian, mean")
    ax.annotate("⌊N/2⌋", (N // 2, 0), xytext=(4, 8), textcoords="offset points", color=INK)
    ax.set(xlabel="present atoms j", ylabel="fraction that separates", ylim=(0, 1.05), xlim=(0.5, M - 0.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return artists


def margins(ax: Axes, atoms: Sequence[int], lines: dict[str, Sequence[float]], ceiling: Sequence[float]) -> list[Any]:
    """The smallest margin over all k-subsets against the number of atoms, one line a configuration, under the ceiling."""
    artists: list[Any] = ax.plot(atoms, ceiling, color=INK, lw=5, alpha=0.3, label="ceiling")
    for i, (name, values) in enumerate(lines.items()):
        style = (BLUE, GREEN, PURPLE, ORANGE)[i]
        artists += ax.plot(atoms, values, MARKERS[i] + LINES[i], color=style, ms=5, label=name)
    ax.set(xlabel="atoms M", ylabel="smallest margin", yscale="log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.legend(loc="lower left", fontsize=9)
    return artists


def phase(ax: Axes, N: int, atoms: Sequence[int], sizes: Sequence[int], fractions: Floats) -> list[Any]:
    """Fractions of shape (atoms, sizes) as a table of shades, in percent, with the worst-case size and the typical one."""
    shade = LinearSegmentedColormap.from_list("separates", ["#ffffff", BLUE])
    artists: list[Any] = [
        ax.pcolormesh(np.arange(len(sizes) + 1), np.arange(len(atoms) + 1), fractions, cmap=shade, vmin=0, vmax=1)
    ]
    for row, column in np.ndindex(fractions.shape):
        value = fractions[row, column]
        artists.append(
            ax.text(
                column + 0.5,
                row + 0.5,
                f"{100 * value:.0f}",
                ha="center",
                va="center",
                fontsize=10,
                color="w" if value > 0.6 else INK,
            )
        )

    def across(j: float) -> float:
        return float(np.interp(j, sizes, np.arange(len(sizes)) + 0.5))

    typical = [next((j for j in range(1, M) if typical_dimension(j, M) > N or 2 * j > M), M) - 0.5 for M in atoms]
    inside = [i for i, j in enumerate(typical) if j < sizes[-1]]
    artists += ax.plot([across(typical[i]) for i in inside], [i + 0.5 for i in inside], color=SOFT, lw=9, alpha=0.45)
    artists.append(ax.axvline(int(np.searchsorted(sizes, N // 2, side="right")), color=ORANGE, ls="--", lw=2.5))
    ax.set_xticks(np.arange(len(sizes)) + 0.5, [f"{j / N:.2g}" for j in sizes], fontsize=10)
    ax.set_yticks(np.arange(len(atoms)) + 0.5, [f"{M / N:g}" for M in atoms], fontsize=10)
    ax.set(xlabel="present atoms j / N", ylabel="atoms M / N")
    ax.spines[["top", "right"]].set_visible(True)
    return artists


def slices(ax: Axes, exact: dict[int, float], measured: dict[str, dict[int, float]], slack: float) -> list[Any]:
    """The exact expected fraction against j as a line, measured fractions with bars of the given half width beside it."""
    artists: list[Any] = ax.plot(list(exact), list(exact.values()), color=INK, label="exact, Gaussian")
    for i, (name, values) in enumerate(measured.items()):
        x = np.array(list(values)) + 0.16 * (2 * i - 1)
        color, marker = (BLUE, ORANGE)[i], MARKERS[i]
        artists.append(
            ax.errorbar(x, list(values.values()), slack, fmt=marker, color=color, mfc="white", ms=5, lw=1.2, label=name)
        )
    ax.set(xlabel="present atoms j", ylabel="fraction that separates", ylim=(-0.1, 1.1))
    ax.legend(loc="upper right", fontsize=9)
    return artists
