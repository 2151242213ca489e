"""Pictures of the chapter on satisfiability: a scene's score along the curve, how margins shrink, what scene codes buy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from binding.ideal import moment_curve, normal
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PALETTE, SOFT, img, label_line


def score_along_curve(ax: Axes, angles: np.ndarray, present: Sequence[int], k: int) -> list[Any]:
    """⟨n_s, v(θ)⟩ over one turn of the curve, with the threshold that the present atoms share, and every atom on it."""
    turn = np.linspace(0, 2 * np.pi, 361)
    n = normal(angles[list(present)], k)
    scores = moment_curve(angles, k) @ n
    absent = [x for x in range(len(angles)) if x not in present]
    curve = ax.plot(np.degrees(turn), moment_curve(turn, k) @ n, color=SOFT)
    threshold = ax.axhline(scores[present[0]], color=INK, ls="--", lw=1)
    dots = [
        ax.plot(np.degrees(angles[list(rows)]), scores[list(rows)], marker, color=color, mfc=fill, ms=9, mew=2, ls="", label=name)
        for rows, marker, color, fill, name in (
            (present, "o", BLUE, BLUE, "present"),
            (absent, "s", ORANGE, "white", "absent"),
        )
    ]
    ax.set(xlabel="angle θ (degrees)", ylabel="score with the image", xticks=range(0, 361, 90))
    ax.legend(loc="lower right", ncols=2, bbox_to_anchor=(1, 1), borderaxespad=0)
    return [*curve, threshold, *dots]


def movable(picture: Figure, alt: str) -> None:
    """Show a picture that the site replaces by one that moves (``_static/polynomial.js``); without scripts it stays as it is."""
    from IPython.display import HTML, display

    display(HTML(f'<div class="binding-polynomial">{img(picture, alt)}</div>'))


def shrinking_margins(
    ax: Axes, M: Mapping[int, Sequence[int]], margin: Mapping[int, Sequence[float]], limit: Callable[[float, int], float]
) -> list[Any]:
    """Measured A2 margins (marks) against M for every k, over the lines ``limit(M, k)``, on logarithmic axes."""
    artists: list[Any] = []
    for (k, sizes), color, marker, line in zip(M.items(), PALETTE, MARKERS, LINES, strict=False):
        grid = np.geomspace(min(sizes), max(sizes), 50)
        artists += ax.plot(grid, [limit(m, k) for m in grid], line, color=color, lw=1.5)
        artists += ax.plot(sizes, margin[k], marker, color=color)
        artists.append(label_line(ax, sizes[-1], margin[k][-1], f" k = {k}", color, annotation_clip=False))
    ax.set(xscale="log", yscale="log", xlabel="number of atoms M", ylabel="smallest A2 margin")
    ticks = sorted({m for sizes in M.values() for m in sizes})
    ax.set_xticks(ticks, [str(m) for m in ticks])
    ax.minorticks_off()
    return artists


def code_margins(
    ax: Axes, q: Sequence[int], margin: np.ndarray, bound: Callable[[float], float], *, simplex: float, circle: float
) -> list[Any]:
    """Margins of random codes, shape (draws, len(q)), with the bound on their mean and the levels of simplex and circle."""
    spread = np.array([margin.mean(0) - margin.min(0), margin.max(0) - margin.mean(0)])
    bars = ax.errorbar(q, margin.mean(0), yerr=spread, fmt="o", color=BLUE, capsize=3)
    grid = np.geomspace(q[0], q[-1], 60)
    line = ax.plot(grid, [bound(x) for x in grid], "-", color=BLUE, lw=1.5)
    artists: list[Any] = [bars, *line]
    for level, color, style, name in ((simplex, GREEN, "--", "simplex"), (circle, ORANGE, "-.", "circle")):
        artists.append(ax.axhline(level, color=color, ls=style, lw=1.5))
        artists.append(ax.annotate(name, (q[0], level), (0, 4), textcoords="offset points", color=color, va="bottom"))
    place: dict[str, Any] = {"xytext": (0, -12), "textcoords": "offset points", "ha": "right", "va": "top"}
    artists.append(ax.annotate("random signs", (q[-1], margin.mean(0)[-1]), color=BLUE, **place))
    ax.set(xscale="log", xlabel="extra dimensions q", ylabel="margin between scenes", ylim=(-0.05, simplex + 0.12))
    ax.set_xticks(q, [str(x) for x in q])
    ax.minorticks_off()
    return artists
