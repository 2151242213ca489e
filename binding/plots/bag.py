"""Pictures of the chapter on the bag-of-words collapse: one point or four, words exchanged, order layer by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.plots import BLUE, GREEN, INK, ORANGE, label_line
from binding.plots.light import box, picture, text

CELL, ROW, LEFT = 50, 30, 84
"""Pixels of a cell of :func:`exchanges`, across and down, and of the words beside the cells."""


def plane(x: np.ndarray) -> np.ndarray:
    """The points ``x`` (n, N) seen in the plane through their mean that shows most of them: (n, 2), with true lengths in it."""
    centred = x.astype(np.float64) - x.astype(np.float64).mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T


def quartet(ax: Axes, x: np.ndarray, half: float) -> list[Any]:
    """The points of c(s), its reorder, c(σs) and its reorder (4, N) in their plane; one scene filled, the other hollow.

    Lines join the two orders of a scene. ``half`` is half the width of the window, the same for panels that are compared.
    """
    at = plane(x)
    artists: list[Any] = []
    for rows, color, face, line, sizes in (([2, 3], ORANGE, "#fff", "--", (17, 15)), ([0, 1], BLUE, BLUE, "-", (9, 8))):
        artists += ax.plot(*at[rows].T, color=color, lw=1.2, ls=line)
        for row, marker, size in zip(rows, "os", sizes, strict=True):
            artists += ax.plot(*at[row], marker, color=color, mfc=face, ms=size, mew=2)
    ax.set(xlim=(-half, half), ylim=(-half, half), aspect="equal", xticks=[], yticks=[])
    return artists


def exchanges(words: Sequence[str], d: np.ndarray, top: float) -> str:
    """How far a caption moves when its words i and j are exchanged, d (n, n), as SVG: darker is further, ``top`` is darkest."""
    n = len(words)
    parts = []
    for i in range(1, n):
        y = (i - 1) * ROW
        parts.append(text(LEFT - 6, y + 20, words[i], text_anchor="end"))
        for j in range(i):
            share = min(d[i, j] / top, 1.0)
            shade = "#" + "".join(f"{round(255 + (int(BLUE[k : k + 2], 16) - 255) * share):02x}" for k in (1, 3, 5))
            x = LEFT + j * CELL
            parts.append(box(x, y + 1, CELL - 2, ROW - 2, fill=shade, stroke=BLUE, stroke_width=0.6))
            parts.append(
                text(x + CELL / 2 - 1, y + 20, _number(d[i, j]), text_anchor="middle", fill="#fff" if share > 0.9 else INK)
            )
    parts += [text(LEFT + (j + 0.5) * CELL - 1, (n - 1) * ROW + 18, words[j], text_anchor="middle") for j in range(n - 1)]
    return picture(LEFT + 4 + (n - 1) * CELL, (n - 1) * ROW + 26, *parts)


def exchanges_alt(words: Sequence[str], d: np.ndarray) -> str:
    """What :func:`exchanges` shows, in words and numbers."""
    pairs = [(i, j) for i in range(len(words)) for j in range(i)]
    caption = " ".join(words)
    if all(d[pair] == 0 for pair in pairs):
        return f"Two words of “{caption}” exchanged: the distance is exactly 0 for each of the {len(pairs)} pairs."
    said = ", ".join(f"{words[j]} and {words[i]} {_number(d[i, j])}" for i, j in pairs)
    return f"Distance after two words of “{caption}” are exchanged: {said}."


def _number(distance: float) -> str:
    return "0" if distance == 0 else f"{distance:.2f}"


def layers(ax: Axes, curves: Mapping[str, np.ndarray]) -> list[Any]:
    """Relative distances by layer: each curve (layers + 1,) with its name at its end; the first layer is the input."""
    artists: list[Any] = []
    looks = zip((ORANGE, BLUE, GREEN), "os^", ("-", "--", "-."), strict=True)
    for (name, values), (color, marker, line) in zip(curves.items(), looks, strict=True):
        artists += ax.plot(values, color=color, marker=marker, ls=line, mfc="none" if color == ORANGE else color, mew=2)
        artists.append(label_line(ax, len(values) - 1, values[-1], name, color=color, annotation_clip=False))
    last = len(values) - 1
    ax.set(xlabel="layer", ylabel="distance / distance of random scenes", xlim=(-0.2, last + 1.6), ylim=(0, None))
    ax.set_xticks(range(last + 1), ["input", *map(str, range(1, last)), "output"])
    return artists
