"""Pictures of the chapter on coverage and the sign gauge."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations, product
from string import ascii_uppercase
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from binding.exposure import connection_rate, coverage_rate, random_graph
from binding.gauge import (
    Bools,
    Floats,
    Parts,
    accuracy,
    components,
    connected,
    covered,
    draw_trials,
    energy,
    evidence,
    linear,
    margin,
    scene_parts,
)
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PALETTE, PURPLE, SOFT

WIDGET_N, WIDGET_TRIALS, SIDE = 128, 300, 6
"""The widget's length of a code, decisions behind one accuracy, and number of objects and of attributes."""
WIDGET_CODES = (("dense", 1.0), ("sparse", 0.3))
"""The widget's codes, with their share of non-zero entries."""


def letters(exposed: Bools) -> tuple[list[str], list[str]]:
    """A letter for the component of every object and attribute, in order of appearance; "–" for an atom that was never shown."""
    sides = components(exposed)
    seen = exposed.any(axis=1), exposed.any(axis=0)
    names: dict[int, str] = {}
    for labels, shown in zip(sides, seen, strict=True):
        for label in labels[shown].tolist():
            names.setdefault(label, ascii_uppercase[len(names)])
    first, second = ([names.get(label, "–") for label in labels.tolist()] for labels in sides)
    return first, second


MARKS = {"●": INK, "=": GREEN, "±": ORANGE, "?": SOFT}
"""What is known of a pair of dense codes, with its colour: shown, exact though not shown, up to sign, an atom never shown."""


def marks(exposed: Bools) -> np.ndarray:
    """The sign of MARKS for every pair, of shape (objects, attributes)."""
    return np.where(exposed, "●", np.where(connected(exposed), "=", np.where(covered(exposed), "±", "?")))


def nested_graph(ρ: float) -> Bools:
    """The widget's graph at density ρ: a pair stays shown when ρ grows, so that the eye can follow."""
    return np.random.default_rng(27).random((SIDE, SIDE)) < ρ


def unseen_scenes(exposed: Bools) -> Counter[Parts]:
    """The scenes of known words none of whose four pairs was shown, counted by the way they fall into components."""
    m, n = exposed.shape
    known = covered(exposed) & ~exposed
    found: Counter[Parts] = Counter()
    for o, a in product(combinations(range(m), 2), combinations(range(n), 2)):
        if known[np.ix_(o, a)].all():
            parts = scene_parts(exposed, o, a)
            first, second, third, fourth = (list(dict.fromkeys(parts)).index(part) for part in parts)
            found[first, second, third, fourth] += 1
    return found


@cache
def accuracies(parts: Parts, p: float, noise: float, N: int, trials: int, seed: int = 16) -> tuple[float, float, float]:
    """Measured accuracy of the plain matcher, the energy matcher and the best rule (which needs noise above 0)."""
    drawn = draw_trials(parts, p, noise, N, trials, np.random.default_rng(seed))
    margins = [margin(matcher, drawn.image, drawn.u, drawn.v) for matcher in (linear, energy)]
    margins.append(evidence(drawn.image, drawn.u, drawn.v, parts, noise))
    plain, squares, best = (accuracy(values, drawn.truth) for values in margins)
    return plain, squares, best


def widget_bars(exposed: Bools, noise: float) -> dict[str, Floats]:
    """Mean accuracy of the three rules over :func:`unseen_scenes`, for dense and for sparse codes."""
    scenes = unseen_scenes(exposed)
    weights = np.array(list(scenes.values()), dtype=float)
    rows = {name: [accuracies(parts, p, noise, WIDGET_N, WIDGET_TRIALS) for parts in scenes] for name, p in WIDGET_CODES}
    return {name: weights @ np.array(values) / weights.sum() for name, values in rows.items()}


def explorer(ρ: float, noise: float) -> str:
    """One frame of the widget as SVG text: the graph, what is known of every pair, and who tells an unseen scene from its swap.

    Written out by hand: with text as text a frame is a fifth of what a figure would weigh, and a page holds many.
    """
    exposed = nested_graph(ρ)
    of_object, of_attribute = letters(exposed)
    colors = {letter: color for letter, color in zip(ascii_uppercase, PALETTE, strict=False)} | {"–": SOFT}
    y, x = [44 + 36 * i for i in range(SIDE)], [312 + 36 * i for i in range(SIDE)]
    parts = [_line(62, y[o], 182, y[a], colors[of_object[o]]) for o, a in np.argwhere(exposed).tolist()]
    for at, away, name, side in ((62, 36, "o", of_object), (182, 208, "a", of_attribute)):
        for i, letter in enumerate(side):
            circle = f"<circle cx='{at}' cy='{y[i]}' r='11' fill='#fff' stroke='{colors[letter]}'/>"
            parts += [circle, _text(at, y[i], letter, colors[letter]), _text(away, y[i], f"{name}{i + 1}")]
    parts += [_text(x[a], y[o], str(mark), MARKS[str(mark)]) for (o, a), mark in np.ndenumerate(marks(exposed))]
    parts += [_text(x[i], 14, f"a{i + 1}") + _text(280, y[i], f"o{i + 1}") for i in range(SIDE)]
    for left, (name, values) in zip((92, 322), widget_bars(exposed, noise).items(), strict=True):
        for label, value, color, top in zip(
            ("plain", "energy", "best"), values, (ORANGE, BLUE, GREEN), (280, 306, 332), strict=True
        ):
            parts.append(f"<rect x='{left}' y='{top - 9}' width='{120 * value:.0f}' height='18' fill='{color}'/>")
            parts += [_text(left - 30, top, label), _text(left + 140, top, f"{value:.2f}")]
        parts += [
            _line(left + 60, 266, left + 60, 346, INK),
            _text(left + 60, 358, "chance"),
            _text(left + 60, 256, f"{name} codes"),
        ]
    look = f"font-family='DejaVu Sans,Verdana,sans-serif' font-size='13' text-anchor='middle' fill='{INK}' stroke-width='2'"
    size = "width='520' height='372' viewBox='0 0 520 372'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}><g {look}>{''.join(parts)}</g></svg>"


def _text(x: float, y: float, text: str, color: str = INK) -> str:
    fill = "" if color == INK else f" fill='{color}'"
    return f"<text x='{x}' y='{y + 5}'{fill}>{text}</text>"


def _line(x: float, y: float, to_x: float, to_y: float, color: str) -> str:
    return f"<path d='M{x} {y}L{to_x} {to_y}' stroke='{color}'/>"


def explorer_alt(ρ: float, noise: float) -> str:
    """The numbers of one frame in words."""
    exposed = nested_graph(ρ)
    count = len({*letters(exposed)[0], *letters(exposed)[1]} - {"–"})
    pairs = int((~exposed).sum())
    inside, cover = int((connected(exposed) & ~exposed).sum()), int(covered(exposed)[~exposed].sum())
    bars = ". ".join(
        f"{name.capitalize()} codes: plain {plain:.2f}, energy {squares:.2f}, best {best:.2f}"
        for name, (plain, squares, best) in widget_bars(exposed, noise).items()
    )
    return (
        f"ρ = {ρ}, noise {noise}: {int(exposed.sum())} of {exposed.size} pairs are shown, in {count} components with a pair."
        f" Of {pairs} other pairs, {inside} are exact, {cover - inside} known up to sign, {pairs - cover} not covered."
        f" Accuracy on unseen scenes. {bars}."
    )


GROUPS: tuple[tuple[str, Parts], ...] = (
    ("all four together", (0, 0, 0, 0)),
    ("three together", (0, 0, 0, 1)),
    ("both pairs of\none caption", (0, 1, 0, 1)),
    ("one pair", (0, 1, 0, 2)),
    ("objects | attributes", (0, 0, 1, 1)),
    ("objects together", (0, 0, 1, 2)),
    ("nothing together", (0, 1, 2, 3)),
)
"""The partitions up to names: which of o₁, o₂, a₁, a₂ share a component. The last three hold no pair."""


def who_decides(ax: Axes, p: float, noise: float, N: int, trials: int) -> list[tuple[float, float, float]]:
    """Accuracy of the three rules for the ways that a scene can fall into components; returns the rows that it drew."""
    rows = [accuracies(parts, p, noise, N, trials) for _, parts in GROUPS]
    y = -np.arange(len(GROUPS), dtype=float)
    ax.axhspan(-6.5, -3.5, color=SOFT, alpha=0.15, lw=0)
    ax.axvline(0.5, color=INK, lw=1, ls=":")
    styles = zip(("plain", "energy", "best rule"), (ORANGE, BLUE, GREEN), ("o", "s", "D"), (0.22, 0.0, -0.22), strict=True)
    for column, (label, color, marker, shift) in enumerate(styles):
        ax.plot([row[column] for row in rows], y + shift, marker, color=color, label=label, ms=6)
    ax.set(xlim=(0.4, 1.05), ylim=(-6.6, 0.6), xticks=(0.5, 0.75, 1.0), xlabel="accuracy")
    ax.set_yticks(y, [name for name, _ in GROUPS], fontsize=9)
    return rows


def against_noise(
    ax: Axes, measured: Mapping[str, Sequence[float]], tied: Sequence[float], noises: Sequence[float], trials: int
) -> list[Any]:
    """Accuracy against noise, one line a code, with bars of two standard deviations of a mean of ``trials`` decisions.

    ``tied`` is the energy matcher on dense codes: every decision is a tie, so there is nothing to vary and it has no bars.
    """
    artists: list[Any] = []
    for (label, values), color, marker, line in zip(measured.items(), PALETTE, MARKERS, LINES, strict=False):
        spread = 2 * np.sqrt(np.array(values) * (1 - np.array(values)) / trials)
        artists.append(ax.errorbar(noises, values, spread, color=color, marker=marker, ls=line, capsize=3, label=label))
    artists += ax.plot(noises, tied, marker="v", ms=5, color=INK, lw=1, label="energy, dense")
    ax.set(xlabel="noise η", ylabel="accuracy", ylim=(0.42, 1.04))
    ax.legend(fontsize=9, loc="center left", bbox_to_anchor=(0.02, 0.5))
    return artists


def simulated_shares(n: int, density: float, graphs: int, generator: np.random.Generator) -> tuple[float, float, float]:
    """Over random graphs: the shares of pairs not shown that are covered and connected, and of scenes with a pair inside.

    The scenes are random ones, none of whose four pairs was shown. An empty graph counts as one where nothing is known.
    """
    counts = np.zeros(5)
    for _ in range(graphs):
        exposed = random_graph(n, n, density, generator)
        hidden = ~exposed
        inside, known = (connected(exposed), covered(exposed)) if exposed.any() else (exposed, exposed)
        first = generator.integers(n, size=(2, 4 * n, 1))
        o, a = np.concatenate([first, (first + generator.integers(1, n, size=first.shape)) % n], axis=2)
        corners = o[:, :, None], a[:, None, :]
        new = hidden[corners].all(axis=(1, 2))
        counts += (
            hidden.sum(),
            (known & hidden).sum(),
            (inside & hidden).sum(),
            new.sum(),
            inside[corners].any(axis=(1, 2))[new].sum(),
        )
    return float(counts[1] / counts[0]), float(counts[2] / counts[0]), float(counts[4] / counts[3])


def thresholds(ax: Axes, n: int, degrees: Sequence[float], simulated: Sequence[tuple[float, float, float]]) -> list[Any]:
    """Shares against c = ρn: pairs covered and connected in closed form, simulated as markers; scenes with a pair inside."""
    c = np.linspace(0.05, 7, 26)
    closed = ([rate(x / n, n, n) for x in c] for rate in (coverage_rate, connection_rate))
    artists: list[Any] = []
    styles = zip(closed, ("covered", "connected"), (GREEN, BLUE), ("-", "--"), ("o", "s"), strict=True)
    for column, (values, label, color, style, marker) in enumerate(styles):
        artists += ax.plot(c, values, style, color=color, label=label)
        artists += ax.plot(degrees, [row[column] for row in simulated], marker, color=color, ms=5)
    artists += ax.plot(degrees, [row[2] for row in simulated], "^:", color=PURPLE, lw=1.5, label="scene with a pair inside")
    for x, text in ((1.0, "1"), (np.log(n), "log n")):
        ax.axvline(x, color=SOFT, lw=1)
        artists.append(ax.text(x + 0.08, 0.03, text, color=INK, fontsize=9))
    ax.set(xlabel="mean number of pairs a word is shown in, ρn", ylabel="share", xlim=(0, 7), ylim=(0, 1.05))
    ax.legend(fontsize=9, loc=(0.5, 0.13))
    return artists


def support_from_products(ax: Axes, degrees: Sequence[int], measured: Mapping[float, Sequence[float]], trials: int) -> list[Any]:
    """Accuracy of the energy matcher from shown products alone, against the number of pairs that each atom was shown in."""
    artists: list[Any] = []
    for (p, values), color, marker, line in zip(measured.items(), PALETTE, MARKERS, LINES, strict=False):
        spread = 2 * np.sqrt(np.array(values) * (1 - np.array(values)) / trials)
        artists.append(ax.errorbar(degrees, values, spread, color=color, marker=marker, ls=line, capsize=3, label=f"p = {p}"))
    ax.axhline(0.5, color=INK, lw=1, ls=":")
    ax.set_xscale("log", base=2)
    ax.set_xticks(degrees, [str(d) for d in degrees])
    ax.set(xlabel="pairs that each word was shown in, d", ylabel="accuracy", ylim=(0.42, 1.04))
    ax.legend(fontsize=9, loc="center left", bbox_to_anchor=(0.02, 0.6))
    return artists
