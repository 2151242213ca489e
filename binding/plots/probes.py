"""Pictures of the chapter on probes: estimated against exact bits, and one channel at many noises, with and without an anchor."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from binding.calibration import tolerance
from binding.plots import BLUE, GREEN, INK, MARKERS, ORANGE, PALETTE, SOFT

Readings = Mapping[tuple[str, str], Mapping[str, Any]]
WIDTH, TOP = 330, 6.98
"""Pixels of the longest bar of the widget, and the bits it stands for."""


def calibrated(ax: Axes, cases: Sequence[str], families: Sequence[str], found: Readings) -> list[Any]:
    """One row a case: a tick where the exact bits are, a grey band that a usable probe must reach, a mark a family."""
    artists: list[Any] = []
    for row, case in enumerate(cases):
        y, exact = -row, next(of for (name, _), of in found.items() if name == case)["exact"]["objects"]
        artists += ax.plot([exact, exact], [y - 0.4, y + 0.4], color=INK, lw=2.5, label="exact" if not row else None)
        ax.barh(y, tolerance(exact), 0.8, exact - tolerance(exact), color=SOFT, alpha=0.3, lw=0)
        for number, family in enumerate(families):
            if (case, family) in found:
                read = found[case, family]["read"]["objects"]
                shift = 0.28 - 0.56 * number / max(1, len(families) - 1)
                look: dict[str, Any] = {"color": PALETTE[number], "marker": MARKERS[number], "ms": 5, "ls": ""}
                artists += ax.plot([read], [y + shift], label=family if not row else None, **look)
    ax.set(xlabel="bits about the objects", xlim=(-0.3, 7.3), ylim=(-len(cases) + 0.4, 0.6))
    ax.set_yticks([-row for row in range(len(cases))], cases)
    ax.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.4, 1.2), ncols=3, handletextpad=0.2, columnspacing=1)
    return artists


def frame(found: Mapping[str, Any], flips: float, family: str, anchor: str) -> str:
    """One frame of the widget as SVG text: exact bits and what a probe read, as bars from zero."""
    exact, read = found["exact"]["objects"], found["read"]["objects"]
    parts, zero = [], 96
    for y, name, value, color in ((40, "exact", exact, GREEN), (84, "read", read, BLUE if anchor == "yes" else ORANGE)):
        width = WIDTH * abs(value) / TOP
        left = zero if value >= 0 else zero - width
        parts.append(f"<rect x='{left:.1f}' y='{y - 14}' width='{width:.1f}' height='28' fill='{color}'/>")
        parts.append(f"<text x='58' y='{y + 5}' text-anchor='end'>{name}</text>")
        parts.append(f"<text x='{max(left + width, zero) + 6:.1f}' y='{y + 5}'>{value:.2f}</text>")
    parts.append(f"<path d='M{zero} 14V110' stroke='{INK}' stroke-width='1.5'/>")
    parts.append(f"<text x='{zero}' y='128' text-anchor='middle'>0</text>")
    parts.append(f"<text x='{zero + WIDTH}' y='128' text-anchor='middle'>{TOP:.2f} bits</text>")
    parts.append(f"<path d='M{zero} 112H{zero + WIDTH}' stroke='{SOFT}'/>")
    look = f"font-family='DejaVu Sans,Verdana,sans-serif' font-size='14' fill='{INK}'"
    size = "width='490' height='140' viewBox='0 0 490 140'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}><g {look}>{''.join(parts)}</g></svg>"


def frame_alt(found: Mapping[str, Any], flips: float, family: str, anchor: str) -> str:
    """The numbers of one frame in words."""
    exact, read = found["exact"]["objects"], found["read"]["objects"]
    anchored = "with" if anchor == "yes" else "without"
    short = f"{read:.2f} bits of the {exact:.2f} that are there, {exact - read:.2f} fewer"
    return f"Flips {flips}, {family} probe {anchored} an anchor: reads {short}."
