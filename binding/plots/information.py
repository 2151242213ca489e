"""Pictures of the chapter on binding information, and the small world of scenes and codes that they show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from math import radians
from typing import Any, TypeAlias

import numpy as np
import torch
from matplotlib.axes import Axes

from binding import codes, ideal
from binding.channels import Kept, binding_ceiling, binding_floor, deployed_error, of_gaussian, pair_bits
from binding.numerics import generator, unit
from binding.plots import BLUE, GREEN, INK, LINES, MARKERS, ORANGE, PALETTE, PURPLE, SOFT, label_line

Floats: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Scene: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
SIDE = 4
"""Objects, and attributes, of the small world."""


@dataclass(frozen=True)
class Towers:
    """Unit vectors of all scenes of k atoms with distinct objects and distinct attributes, out of SIDE each."""

    image: Floats
    """x_s of shape (S, N), what is probed."""
    caption: Floats
    """t(c(s)) of shape (S, N), what deployment compares it with."""
    labels: Floats
    """(S,), equal where the features are equal."""
    swap: Floats
    """(S,), the number of the scene in which the first two objects have exchanged their attributes."""

    @property
    def law(self) -> Floats:
        """All scenes are equally likely."""
        return np.full(len(self.image), 1 / len(self.image))

    @property
    def change(self) -> Floats:
        """t(c(s)) − t(c(σs)) of shape (S, N); what is left of a tie after rounding, some 1e-16, is no difference."""
        return (self.caption - self.caption[self.swap]).round(12)

    @property
    def margins(self) -> Floats:
        """M(s) = ⟨x_s, t(c(s)) − t(c(σs))⟩, (S,)."""
        return (self.image * self.change).sum(axis=1)

    @property
    def ceilings(self) -> Floats:
        """d(s) = ‖t(c(s)) − t(c(σs))‖, (S,)."""
        return np.linalg.norm(self.change, axis=1)

    @property
    def distances(self) -> Floats:
        """‖x_s − x_σs‖, (S,)."""
        return np.linalg.norm(self.image - self.image[self.swap], axis=1)

    def kept(self, noise: float, draws: int = 2000, seed: int = 6) -> Kept:
        """What an image vector with this noise in every coordinate keeps."""
        return of_gaussian(self.image, self.law, self.labels, noise, generator(seed), draws)

    def accuracy(self, noise: float) -> float:
        """How often the score of a noisy image prefers its own caption to that of the swap."""
        errors = (deployed_error(m, d, noise) for m, d in zip(self.margins, self.ceilings, strict=True))
        return 1 - float(np.mean(list(errors)))

    def floor(self, noise: float) -> float:
        """What the margins promise of B*."""
        return binding_floor(self.margins, self.margins[self.swap], self.ceilings, noise)

    def ceiling(self, noise: float) -> float:
        """What the spread of the vectors allows of B*."""
        return binding_ceiling(self.image, self.law, self.labels, noise)


def world(k: int) -> list[Scene]:
    """All scenes of k atoms: ascending objects, and their attributes."""
    return [(o, a) for o in combinations(range(SIDE), k) for a in permutations(range(SIDE), k)]


@cache
def towers(k: int = 2) -> dict[str, Towers]:
    """The codes of the chapter by name; where towers differ, the image comes first."""
    scenes = world(k)
    number = {scene: row for row, scene in enumerate(scenes)}
    swap = np.array([number[o, (a[1], a[0], *a[2:])] for o, a in scenes])
    labels = np.unique([(*o, *sorted(a)) for o, a in scenes], axis=0, return_inverse=True)[1].ravel()
    u, v = codes.walsh(SIDE, SIDE)
    eye = SIDE**0.5 * torch.eye(SIDE, dtype=torch.float64)
    slots = codes.walsh(k * SIDE, k * SIDE)

    def pooled(bind: codes.Bind, u: torch.Tensor = u, v: torch.Tensor = v, stride: int = 0) -> Floats:
        table = codes.table(bind, u, v)
        atoms = [[(stride * i + x, stride * i + y) for i, (x, y) in enumerate(zip(o, a, strict=True))] for o, a in scenes]
        sums = [torch.stack([table[at] for at in scene]).sum(dim=0) for scene in atoms]
        return unit(torch.stack(sums)).numpy()

    bag, product = pooled(codes.additive), pooled(codes.hadamard)
    partly = pooled(lambda a, b: codes.interpolated(a, b, radians(20.7)))
    ordered = pooled(codes.additive, *slots, stride=SIDE)
    curve = ideal.tied_encoder(SIDE, SIDE, k)
    row = {scene: i for i, scene in enumerate(curve.scenes)}
    on_curve = curve.image[[row[tuple(o * SIDE + a for o, a in zip(*scene, strict=True))] for scene in scenes]]
    pairs = {
        "bag of words": (bag, bag),
        "partly product": (partly, partly),
        "slots": (ordered, ordered),
        "moment curve": (on_curve, on_curve),
        "product": (product, product),
        "tensor": (pooled(codes.tensor, eye, eye),) * 2,
        "product, bag captions": (product, bag),
        "product, mirrored captions": (product, product[swap]),
    }
    return {name: Towers(image, caption, labels, swap) for name, (image, caption) in pairs.items()}


WIDGET_CODES = tuple(name for name in towers() if name != "tensor")
"""The codes of the widget; the tensor code has the inner products of the product code, so the same bits."""
WIDGET_NOISES = (0.1, 0.2, 0.3, 0.5, 0.8, 1.2)


@cache
def measured(code: str, noise: float) -> tuple[Kept, float]:
    """Bits and deployed accuracy of one frame."""
    both = towers()[code]
    return both.kept(noise), both.accuracy(noise)


def explorer(code: str, noise: float) -> str:
    """One frame of the widget as SVG text: a scene and its swap in the noise, and three bars."""
    both = towers()[code]
    kept, accuracy = measured(code, noise)
    bars = (
        ("features", kept.features / kept.entropy_features, f"{kept.features:.2f} of {kept.entropy_features:.2f} bits", GREEN),
        ("binding", kept.beta_star, f"{abs(kept.binding):.2f} of {kept.entropy_given_features:.2f} bits", BLUE),
        ("swaps right", accuracy, f"{accuracy:.2f}; chance 0.50", ORANGE),
    )
    parts = [
        _bell(both.distances.mean() / 2 * side, noise, color, dash) for side, color, dash in ((-1, BLUE, ""), (1, PURPLE, "6 4"))
    ]
    parts.append(_text(230, 138, "noisy images of a scene and its swap, at mean distance"))
    for (name, share, text, color), top in zip(bars, (170, 206, 242), strict=True):
        parts.append(f"<rect x='104' y='{top - 10}' width='{200 * max(share, 0):.0f}' height='20' fill='{color}'/>")
        parts.append(f"<path d='M104 {top - 10}h200v20h-200z' stroke='{SOFT}' fill='none'/>")
        parts += [_text(98, top, name, "end"), _text(312, top, text, "start")]
    parts.append(f"<path d='M204 228v28' stroke='{INK}' stroke-dasharray='2 3'/>")
    parts.append(_text(230, 280, f"swap margin: mean {_signed(both.margins.mean())}, least {_signed(both.margins.min())}"))
    look = f"font-family='DejaVu Sans,Verdana,sans-serif' font-size='14' fill='{INK}' stroke-width='2'"
    size = "width='470' height='296' viewBox='0 0 470 296'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}><g {look}>{''.join(parts)}</g></svg>"


def _bell(centre: float, noise: float, color: str, dash: str) -> str:
    """A normal density of this width around the centre, one unit of length being 120 px."""
    z = np.clip(centre + noise * np.linspace(-4, 4, 61), -1.9, 1.9)
    z = np.concatenate([[-1.9], z, [1.9]])
    y = 110 - 95 * np.exp(-((z - centre) ** 2) / (2 * noise**2))
    points = "L".join(f"{230 + 120 * x:.1f} {h:.1f}" for x, h in zip(z, y, strict=True))
    return f"<path d='M{points}' stroke='{color}' fill='none' stroke-dasharray='{dash}'/>"


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f"<text x='{x}' y='{y + 5}' text-anchor='{anchor}'>{text}</text>"


def _signed(value: float) -> str:
    """Three digits, with no minus before a zero."""
    return f"{value + 0.0:.3f}" if abs(value) >= 5e-4 else "0.000"


def explorer_alt(code: str, noise: float) -> str:
    """The numbers of one frame in words."""
    both = towers()[code]
    kept, accuracy = measured(code, noise)
    return (
        f"{code}, noise {noise}: the image keeps {kept.features:.2f} of {kept.entropy_features:.2f} bits on features and"
        f" {abs(kept.binding):.2f} of {kept.entropy_given_features:.2f} bits on binding. The swap margin is"
        f" {_signed(both.margins.mean())} on average and {_signed(both.margins.min())} at least; deployed scores are right about"
        f" {accuracy:.2f} of the swaps. A scene and its swap lie {both.distances.mean():.2f} apart on average."
    )


def where_bits_are(ax: Axes, features: float, counts: float, pairing: float, published: Mapping[str, float]) -> list[Any]:
    """The bits of O as one bar: which values occur, how many objects have each, and who has which; below it published B*.

    A published B* is drawn from where the features end.
    """
    artists: list[Any] = []
    left = 0.0
    for name, bits, color, hatch in (
        ("which\nvalues", features, GREEN, "//"),
        ("how many of each", counts, ORANGE, ".."),
        ("paired how", pairing, BLUE, ""),
    ):
        artists.append(ax.barh(0, bits, left=left, height=0.7, color=color, hatch=hatch, edgecolor="white", lw=1))
        ax.text(left + bits / 2, 0.45, f"{name}\n{bits:.1f}", ha="center", va="bottom", fontsize=9)
        left += bits
    for row, bits in enumerate(published.values(), start=1):
        artists.append(ax.barh(-row, bits, left=features, height=0.45, color=SOFT))
        ax.text(features + bits + 0.4, -row, f"{bits:.1f}", va="center", fontsize=9)
    ax.axvline(features, ymax=0.77, color=INK, lw=1)
    ax.axvline(features + counts, ymax=0.77, color=INK, lw=1, ls="--")
    ax.set_yticks([0, *(-row for row in range(1, len(published) + 1))], ["all bits", *published], fontsize=9)
    ax.set(xlabel="bits", xlim=(0, left + 0.5), ylim=(-len(published) - 0.5, 1.9))
    ax.tick_params(axis="y", length=0)
    return artists


def against_noise(axes: Sequence[Axes], names: Sequence[str], noises: Sequence[float]) -> dict[str, list[Kept]]:
    """Shares of the feature bits (left) and of the binding bits (right) that the codes keep; returns what was drawn."""
    found = {name: [towers()[name].kept(noise) for noise in noises] for name in names}
    for (name, kept), color, marker, line in zip(found.items(), PALETTE, MARKERS, LINES, strict=False):
        style: dict[str, Any] = {"color": color, "marker": marker, "ls": line, "ms": 5, "label": name}
        axes[0].plot(noises, [one.features / one.entropy_features for one in kept], **style)
        axes[1].plot(noises, [one.beta_star for one in kept], **style)
    for ax, label in zip(axes, ("share of feature bits", "share of binding bits, β*"), strict=True):
        ax.set_xscale("log")
        ax.set_xticks(noises, [f"{noise:g}" for noise in noises])
        ax.minorticks_off()
        ax.set(xlabel="noise η", ylabel=label, ylim=(-0.04, 1.06))
    axes[1].legend(fontsize=8, loc="upper right")
    return found


def margin_against_bits(ax: Axes, noise: float) -> dict[str, tuple[float, float]]:
    """Mean swap margin and B* of every code, with the curve J(√(2M) / 2η) of tied codes; returns the points."""
    M = np.linspace(0, 1, 101)
    ax.plot(M, pair_bits(np.sqrt(2 * M) / (2 * noise)), color=SOFT, lw=2)
    label_line(ax, 0.62, float(pair_bits(1.24**0.5 / (2 * noise))) - 0.1, "towers agree,\nall pairs alike", INK, fontsize=9)
    points: dict[str, tuple[float, float]] = {}
    for (name, both), marker in zip(towers().items(), "osD^vPXd", strict=False):
        points[name] = float(both.margins.mean()), both.kept(noise, 8000).binding
        own = BLUE if name.count("captions") == 0 else ORANGE
        ax.plot(*points[name], marker, color=own, ms=8, label=name, ls="", mec="white")
    ax.axvline(0, color=INK, lw=1, ls=":")
    ax.set(
        xlabel="mean swap margin as deployed",
        ylabel="binding bits B*",
        ylim=(-0.05, 1.09),
        xlim=(-1.12, 1.12),
        xticks=(-1, -0.5, 0, 0.5, 1),
    )
    ax.legend(fontsize=8, loc="lower left")
    return points
