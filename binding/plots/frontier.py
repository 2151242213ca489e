"""Pictures of the chapter on the smoothness–binding frontier: the cap on the sphere, and the region of what can be achieved."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Ellipse
from scipy.spatial import ConvexHull

from binding.frontier import cap, cap_published
from binding.plots import BLUE, GREEN, INK, MARKERS, ORANGE, PALETTE, PURPLE, RED, SOFT

ELEVATION = np.radians(20)
"""How far above the rim's plane the reader looks from."""


def sphere(ax: Axes, delta: float, apart: float) -> list[Any]:
    """The cap of deviation δ ≤ 1 on the sphere, two captions ``apart`` degrees from each other on its rim, and three lengths.

    The reader looks along the bisector of the captions, so the chord between them is seen in its true length; the three bars
    have the same scale: the chord, the exact cap 2√(δ(2 − δ)) and the published one 2√(2δ).
    """
    height, radius = 1 - delta, np.sqrt(delta * (2 - delta))
    turn = np.linspace(0, 2 * np.pi, 49)
    rim = _project(radius * np.sin(turn), radius * np.cos(turn), np.full_like(turn, height))
    outline = np.stack([np.cos(turn), np.sin(turn)])
    inside = outline[:, outline[1] * np.cos(ELEVATION) >= height]  # points of the outline that lie in the cap
    hull = np.hstack([rim, inside]).T
    artists: list[Any] = ax.fill(*hull[ConvexHull(hull).vertices].T, color=SOFT, alpha=0.25, lw=0)
    squeezed = 2 * radius * np.sin(ELEVATION)
    for curve in (Circle((0, 0), 1), Ellipse((0, height * np.cos(ELEVATION)), 2 * radius, squeezed)):
        curve.set(fill=False, ec=SOFT, lw=1)
        artists.append(ax.add_patch(curve))
    half = np.radians(apart) / 2
    chord = 2 * radius * np.sin(half)
    left, right = (_project(sign * chord / 2, radius * np.cos(half), height) for sign in (-1, 1))
    top = _project(0.0, 0.0, 1.0)
    for tip, color, marker, name, place in (
        (top, GREEN, "^", r"$\bar t$", (0, 9)),
        (left, BLUE, "o", "$t$", (-11, 3)),
        (right, ORANGE, "s", "$t'$", (11, 3)),
    ):
        artists += ax.plot(*tip, marker, ms=8, color=color, zorder=4)
        artists.append(
            ax.annotate(
                name, (float(tip[0]), float(tip[1])), place, textcoords="offset points", color=color, ha="center", zorder=5
            )
        )
    artists += ax.plot(*np.stack([left, right], axis=1), color=INK, lw=3, zorder=3)
    rows = (
        ("chord", chord, INK, "-"),
        ("exact", float(cap(delta)), PURPLE, "-"),
        ("published", float(cap_published(delta)), RED, "--"),
    )
    for row, (name, length, color, line) in enumerate(rows):
        y = -1.42 - 0.36 * row
        artists += ax.plot([-length / 2, length / 2], [y, y], line, color=color, lw=4, solid_capstyle="butt")
        artists.append(ax.text(0, y + 0.07, f"{name} {length:.3f}", color=color, ha="center", va="bottom", fontsize=10))
    for tip in (left, right):
        artists += ax.plot([tip[0], tip[0]], [tip[1], -1.12], ":", color=SOFT, lw=1, zorder=1)
    ax.set(xlim=(-1.5, 1.5), ylim=(-2.25, 1.25), aspect="equal")
    ax.axis("off")
    return artists


def region(ax: Axes, right: float = 0.6, top: float = 1.7) -> list[Any]:
    """The (δ, M) plane: what two captions can achieve (shaded), the exact curve, the published one, and the corner δ = 0."""
    grid = right * np.linspace(0, 1, 80) ** 2  # dense where the curves are steep
    exact, published = cap(grid), cap_published(grid)
    artists: list[Any] = [ax.fill_between(grid, 0, exact, color=PURPLE, alpha=0.12, lw=0)]
    artists += ax.plot(grid, exact, color=PURPLE)
    artists += ax.plot(grid, published, "--", color=RED, lw=1.5)
    ends: dict[str, Any] = {"textcoords": "offset points", "ha": "right"}
    artists.append(ax.annotate("published", (right, published[-1]), (-30, -1), color=RED, va="bottom", **ends))
    artists.append(ax.annotate("exact", (right, exact[-1]), (-2, -16), color=PURPLE, va="top", **ends))
    artists += ax.plot(0, 0, "X", color=INK, ms=9, clip_on=False, zorder=5)
    ax.set(xlabel="deviation δ from the anchor", ylabel="margin, or its ceiling d", xlim=(0, right), ylim=(0, top))
    return artists


def published_point(ax: Axes, delta: float, usage: float) -> list[Any]:
    """CLIP B/32 as published: an open circle on the published curve, a star at its usage, and the unused part between them."""
    high = float(cap_published(delta))
    artists: list[Any] = ax.plot([delta, delta], [usage * high, high], ":", color=INK, lw=1.5)
    artists += ax.plot(delta, high, "o", mfc="white", mec=INK, ms=7, zorder=5)
    artists += ax.plot(delta, usage * high, "*", color=INK, ms=12, zorder=5, label="CLIP B/32, published")
    return artists


def encoders(ax: Axes, points: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> list[Any]:
    """Measured encoders: for each name its δ and d, one marker and colour a name, hollow so that points may overlap."""
    artists: list[Any] = []
    for (name, (delta, d)), marker, color in zip(points.items(), MARKERS, PALETTE, strict=False):
        artists += ax.plot(delta, d, marker, mfc="none", mec=color, mew=1.8, ms=7, label=name, clip_on=False, zorder=4)
    return artists


def by_anchor(ax: Axes, usage: Mapping[str, Mapping[str, float]]) -> list[Any]:
    """Usage for every anchor (rows) and every family (marks), in percent."""
    names = list(usage)
    artists: list[Any] = []
    families = list(dict.fromkeys(family for row in usage.values() for family in row))
    for family, marker, color in zip(families, MARKERS, PALETTE, strict=False):
        rows = [i for i, name in enumerate(names) if family in usage[name]]
        values = [100 * usage[names[i]][family] for i in rows]
        artists += ax.plot(values, rows, marker, mfc="none", mec=color, mew=1.8, ms=7, label=family)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel="usage, percent of the exact cap", xlim=(0, 100))
    ax.grid(axis="x", color=SOFT, alpha=0.3)
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, fontsize=9, columnspacing=1, handletextpad=0.2)
    return artists


def _project(x: Any, y: Any, z: Any) -> np.ndarray:
    """Seen from the front (y towards the reader), a little from above: right and up, (2, …)."""
    return np.stack([np.asarray(x, float), np.asarray(z * np.cos(ELEVATION) - y * np.sin(ELEVATION), float)])
