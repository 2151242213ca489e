"""The picture of the first page: how far one caption moves when its words change, and when its scene changes."""

from collections.abc import Mapping

from binding.plots import BLUE, ORANGE, SOFT
from binding.plots.light import box, picture, text

WIDTH, UNIT, ROW = 400, 225, 45
"""Pixels: of the picture, of a distance of 1, of a row."""


def moves(caption: str, same: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Distances from ``caption`` to captions of the ``same`` scene (solid bars) and of an ``other`` one (hollow bars), as SVG.

    One bar a caption, 225 pixels for a distance of 1.
    """
    parts, y = [text(4, 18, caption, font_weight="bold")], 46
    for heading, group, look in (
        ("The same scene in other words", same, {"fill": BLUE, "stroke": BLUE}),
        ("Another scene", other, {"fill": "none", "stroke": ORANGE}),
    ):
        parts += [text(4, y, heading, fill=look["stroke"]), box(4, y + 6, WIDTH - 8, 1, fill=SOFT)]
        y += 26
        for words, distance in group.items():
            length = round(UNIT * distance, 1)
            parts += [
                text(4, y, words),
                box(5, y + 6, length, 11, stroke_width=2, **look),
                text(length + 12, y + 16.5, _number(distance), font_weight="bold"),
            ]
            y += ROW
        y += 8
    return picture(WIDTH, y - 20, *parts)


def moves_alt(caption: str, same: Mapping[str, float], other: Mapping[str, float]) -> str:
    """What :func:`moves` shows, in words and numbers."""
    said = [", ".join(f"“{words}” {_number(distance)}" for words, distance in group.items()) for group in (same, other)]
    return f"Distances from “{caption}”. The same scene in other words: {said[0]}. Another scene: {said[1]}."


def _number(distance: float) -> str:
    return "exactly 0" if distance == 0 else f"{distance:.3f}"
