"""Pictures of the chapter on the audit: where an encoder stands, what its distances are made of, and usage layer by layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.audit import MADE, Audit, Estimate, FamilyAudit
from binding.frontier import cap_published
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PALETTE, SOFT
from binding.plots.light import box, picture, text

WIDTH, LEFT, RIGHT, ROW = 400, 112, 60, 42
"""Pixels of :func:`distances`: its width, what stands left and right of the bars, and the height of a row."""
ZOO = (0.25, 0.35)
"""Usage of the published cap between which eighteen deployed text encoders lie (L, Figure 3)."""
B32 = (0.112, 0.25)
"""δ and usage of CLIP B/32, published (L, Figure 11)."""


def position(ax: Axes, report: Audit, right: float = 1.5) -> list[Any]:
    """d against the published cap, with the published wedge of the zoo: a line a family over all wordings of its anchor.

    The captions of a family do not move from wording to wording, so its line is level; the mark is the wording that all
    families have, ``one_each``. Nothing lies above the dashed line d = cap.
    """
    reach = np.array([0, right])
    artists: list[Any] = [ax.fill_between(reach, ZOO[0] * reach, ZOO[1] * reach, color=SOFT, alpha=0.3, lw=0)]
    artists += ax.plot(reach, reach, "--", color=INK, lw=1.2)
    artists.append(ax.annotate("d = cap", (0.5, 0.5), (8, -6), textcoords="offset points", color=INK))
    artists.append(ax.annotate("the zoo, published", (right, ZOO[1] * right), color=INK, ha="right", va="bottom"))
    x = float(cap_published(B32[0]))
    artists += ax.plot(x, B32[1] * x, "*", color=INK, ms=12, zorder=5, label="CLIP B/32, published")
    for (family, entry), marker, color in zip(report.families.items(), MARKERS, PALETTE, strict=False):
        caps = {name: values["cap_published"].mean for name, values in entry.anchors.items() if name not in MADE}
        d = entry.measures["d"].mean
        artists += ax.plot([min(caps.values()), max(caps.values())], [d, d], color=color, lw=1.5)
        artists += ax.plot(caps["one_each"], d, marker, color=color, mfc="none", mew=1.8, ms=8, label=family, zorder=4)
    ax.set(xlabel="published cap 2√(2δ)", ylabel="swap distance d", xlim=(0, right), ylim=(0, 0.62))
    ax.legend(loc="upper left", fontsize=9)
    return artists


def distances(entry: FamilyAudit, top: float) -> str:
    """Swap d, order w and pairing d_sym of one family as SVG bars with their intervals; ``top`` fills the width."""
    rows = (("swap d", "d", ORANGE), ("order w", "w", BLUE), ("pairing d_sym", "d_sym", GREEN))
    scale = (WIDTH - LEFT - RIGHT) / top
    parts = []
    for place, (name, key, color) in enumerate(rows):
        e, y = entry.measures[key], 6 + place * ROW
        length = e.mean * scale
        parts.append(text(LEFT - 8, y + 21, name, text_anchor="end"))
        parts.append(box(LEFT, y, max(length, 1.5), ROW - 10, fill=color, fill_opacity=0.25 + 0.25 * place, stroke=color))
        if e.high > 0:
            parts.append(box(LEFT + e.low * scale, y + 15, (e.high - e.low) * scale, 2, fill=INK))
        parts.append(text(LEFT + e.high * scale + 8, y + 21, "0" if e.high == 0 else f"{e.mean:.3f}"))
    return picture(WIDTH, 3 * ROW + 8, *parts)


def by_layer(ax: Axes, names: Sequence[str], curves: Mapping[str, Sequence[Estimate]], label: str) -> list[Any]:
    """A measure by layer, one curve a name, with the intervals of each point."""
    artists: list[Any] = []
    for (name, estimates), marker, color, line in zip(curves.items(), MARKERS, PALETTE, LINES, strict=False):
        means = [estimate.mean for estimate in estimates]
        artists.append(
            ax.errorbar(
                range(len(means)),
                means,
                yerr=_arms(estimates),
                marker=marker,
                ls=line,
                mfc="none",
                color=color,
                capsize=2,
                label=name,
            )
        )
    ax.set_xticks(range(len(names)), names)
    ax.set(xlabel="layer", ylabel=label, ylim=(0, None))
    ax.legend(fontsize=9)
    return artists


def _arms(estimates: Sequence[Estimate]) -> np.ndarray:
    return np.array([[e.mean - e.low for e in estimates], [e.high - e.mean for e in estimates]]).clip(0)
