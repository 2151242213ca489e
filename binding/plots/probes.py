"""Pictures of the chapter on probes: estimated against exact bits, and one channel at many noises, with and without an anchor."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from binding.calibration import tolerance
from binding.plots import BLUE, GREEN, INK, MARKERS, ORANGE, PALETTE, SOFT

Readings = Mapping[tuple[str, str], Mapping[str, Any]]
Grid = Mapping[tuple[float, str, str], Mapping[str, Any]]
WIDTH, TOP, MISSED = 290, 6.98, 0.3
"""Pixels of the longest bar of the widget, the bits it stands for, and the upper end of the axis of missed bits."""


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


def frame(found: Grid, flips: float, family: str, anchor: str) -> str:
    """One frame of the widget as SVG text: exact and read bits as bars, and below what is missed at every noise."""
    of = found[flips, family, anchor]
    exact, read = of["exact"]["objects"], of["read"]["objects"]
    parts: list[str] = []
    zero = 96
    for y, name, value, color in ((24, "exact", exact, GREEN), (60, "read", read, BLUE if anchor == "yes" else ORANGE)):
        width = max(0.0, WIDTH * value / TOP)
        parts.append(f"<rect x='{zero}' y='{y - 12}' width='{width:.1f}' height='24' fill='{color}'/>")
        parts += [_text(90, y + 5, name, "end"), _text(zero + width + 6, y + 5, f"{value:.2f} bits")]
    for state, color, dashes in (("yes", BLUE, ""), ("no", ORANGE, " stroke-dasharray='7 4'")):
        line = {x: found[x, family, state] for x in sorted({key[0] for key in found})}
        places = {x: _place(x, r["exact"]["objects"] - r["read"]["objects"]) for x, r in line.items()}
        path = "L".join(f"{x:.0f} {y:.0f}" for x, y in places.values())
        parts.append(f"<path d='M{path}' fill='none' stroke='{color}' stroke-width='2'{dashes}/>")
        last = list(places.values())[-1]
        parts.append(_text(last[0] + 12, last[1] + 5, "anchored" if state == "yes" else "free"))
        if state == anchor:
            at = places[flips]
            parts.append(f"<circle cx='{at[0]:.0f}' cy='{at[1]:.0f}' r='7' fill='none' stroke='{INK}' stroke-width='2'/>")
    low, high = _place(0, 0), _place(0.4, MISSED)
    parts.append(f"<path d='M{low[0]:.0f} {high[1]:.0f}V{low[1]:.0f}H{high[0]:.0f}' fill='none' stroke='{INK}'/>")
    parts += [
        _text(90, low[1] + 5, "0", "end"),
        _text(90, high[1] + 5, f"{MISSED}", "end"),
        _text(90, 162, "bits", "end"),
        _text(90, 180, "missed", "end"),
    ]
    parts += [_text(_place(x, 0)[0], low[1] + 20, f"{x}", "middle") for x in (0.1, 0.2, 0.3, 0.4)]
    parts.append(_text(230, low[1] + 38, "share of bits flipped", "middle"))
    look = f"font-family='DejaVu Sans,Verdana,sans-serif' font-size='14' fill='{INK}'"
    size = "width='500' height='276' viewBox='0 0 500 276'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}><g {look}>{''.join(parts)}</g></svg>"


def _place(flips: float, missed: float) -> tuple[float, float]:
    return 96 + 290 * flips / 0.4, 232 - 128 * missed / MISSED


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    turned = "" if anchor == "start" else f" text-anchor='{anchor}'"
    return f"<text x='{x:.0f}' y='{y:.0f}'{turned}>{text}</text>"


def frame_alt(found: Grid, flips: float, family: str, anchor: str) -> str:
    """The numbers of one frame in words."""
    missed = {}
    for state in ("yes", "no"):
        r = found[flips, family, state]
        missed[state] = r["exact"]["objects"] - r["read"]["objects"]
    r = found[flips, family, anchor]
    exact, read = r["exact"]["objects"], r["read"]["objects"]
    how = "with an anchor" if anchor == "yes" else "free"
    both = f"Anchored it misses {missed['yes']:.2f}, free {missed['no']:.2f}"
    return f"Flips {flips}, {family} probe, {how}: reads {read:.2f} of {exact:.2f} bits. {both}."
