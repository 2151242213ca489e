"""Coverage, connectivity and the sign gauge: what a set of exposed pairs tells about pairs that were never shown.

Exposed pairs (o, a) are the edges of a bipartite graph. The learner sees w(o, a) = u(o) ⊙ v(a) on them and nothing else.
Codes have entries −1, 0 or 1; an entry is non-zero with probability p, so p = 1 is a dense sign code. A graph is a table of
booleans of shape (objects, attributes). A scene is two objects and two attributes: u and v of shape (*, 2, N), where
u[0] ⊙ v[0] + u[1] ⊙ v[1] is the caption as it stands and the exchange of v[0] with v[1] is its swap.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Parts: TypeAlias = tuple[int, int, int, int]
"""Components of (o₁, o₂, a₁, a₂)."""
Matcher: TypeAlias = Callable[[Floats, Floats], Floats]

OPEN, SIGN, EXACT = 0, 1, 2
"""What the exposed products say about one coordinate of a pair: nothing, its magnitude, or all of it."""


def check_chance(value: float, name: str) -> float:
    """Return a probability unchanged, or raise ``ValueError`` if it lies outside [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} = {value} is outside [0, 1]; it is a probability")
    return float(value)


def check_count(value: int, name: str) -> int:
    """Return a count unchanged, or raise ``ValueError`` if it is below 1."""
    if value < 1:
        raise ValueError(f"{name} = {value} is too small; need {name} >= 1")
    return int(value)


def check_noise(noise: float, positive: bool = False) -> float:
    """Return a noise level unchanged, or raise ``ValueError`` if it is negative, infinite, or zero where it must not be."""
    if not 0 <= noise < np.inf or (positive and noise == 0):
        raise ValueError(f"noise = {noise} must be a finite number {'above' if positive else 'of at least'} 0")
    return float(noise)


def check_exposed(exposed: Any) -> Bools:
    """The graph as booleans of shape (objects, attributes). Raises ``ValueError`` if it is no such table or has no edge."""
    graph = np.asarray(exposed)
    if graph.ndim != 2 or graph.dtype != np.bool_:
        raise ValueError(f"got {graph.dtype} of shape {graph.shape}, expected booleans of shape (objects, attributes)")
    if not graph.any():
        raise ValueError(f"the exposure graph of shape {graph.shape} is empty; expose at least one pair")
    return graph


def graph_of(pairs: Iterable[tuple[Hashable, Hashable]]) -> tuple[Bools, list[Any], list[Any]]:
    """The exposure graph of named pairs, with the names of its rows and columns in order of first appearance.

    Raises ``ValueError`` if there is no pair.

    >>> graph_of([("car", "red"), ("dog", "red"), ("dog", "blue")])[0].astype(int).tolist()
    [[1, 0], [1, 1]]
    """
    edges = list(pairs)
    objects, attributes = (list(dict.fromkeys(edge[side] for edge in edges)) for side in (0, 1))
    exposed = np.zeros((len(objects), len(attributes)), dtype=bool)
    for o, a in edges:
        exposed[objects.index(o), attributes.index(a)] = True
    return check_exposed(exposed), objects, attributes


def blocks(*sides: tuple[int, int]) -> Bools:
    """Complete blocks of (objects, attributes) with no pair between them: components by construction.

    Raises ``ValueError`` if there is no block or one has a side below 1.
    """
    for m, n in sides:
        check_count(min(m, n), "the side of a block")
    of_object, of_attribute = (np.repeat(np.arange(len(sides)), [block[side] for block in sides]) for side in (0, 1))
    return check_exposed(np.equal.outer(of_object, of_attribute))


def components(exposed: Any) -> tuple[Ints, Ints]:
    """The connected component of every object and of every attribute, as two arrays of labels 0, 1, …

    An atom that was never shown is a component of its own. Raises ``ValueError`` as :func:`check_exposed`.

    >>> [side.tolist() for side in components(blocks((2, 1), (1, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    graph = check_exposed(exposed)
    m, atoms = len(graph), sum(graph.shape)
    o, a = np.nonzero(graph)
    labels = connected_components(coo_array((np.ones(len(o)), (o, m + a)), shape=(atoms, atoms)), directed=False)[1]
    return labels[:m].astype(np.int64), labels[m:].astype(np.int64)


def covered(exposed: Any) -> Bools:
    """Pairs whose object and whose attribute were both shown, in whatever company; shape (objects, attributes)."""
    graph = check_exposed(exposed)
    return np.logical_and.outer(graph.any(axis=1), graph.any(axis=0))


def connected(exposed: Any) -> Bools:
    """Pairs whose object and attribute lie in one component; shape (objects, attributes)."""
    return np.equal.outer(*components(exposed))


def missing_links(exposed: Any) -> list[tuple[int, int]]:
    """A smallest set of pairs that makes the graph connected: one fewer than there are components.

    Each joins one component to the largest; fewer cannot do, since one pair joins at most two components.
    """
    of_object, of_attribute = components(exposed)
    pairs = np.argwhere(np.asarray(exposed))
    main = int(np.bincount(of_object[pairs[:, 0]]).argmax())
    hub_o, hub_a = int(np.argmax(of_object == main)), int(np.argmax(of_attribute == main))
    links = []
    for part in sorted({*of_object.tolist(), *of_attribute.tolist()} - {main}):
        inside = np.flatnonzero(of_object == part)
        links.append((int(inside[0]), hub_a) if inside.size else (hub_o, int(np.argmax(of_attribute == part))))
    return links


def scene_parts(exposed: Any, objects: tuple[int, int], attributes: tuple[int, int]) -> Parts:
    """The components of (o₁, o₂, a₁, a₂) in this graph.

    Raises ``ValueError`` for an object or an attribute outside the graph, or the same one twice.
    """
    sides = components(exposed)
    for name, chosen, labels in zip(("object", "attribute"), (objects, attributes), sides, strict=True):
        for index in chosen:
            if not 0 <= index < len(labels):
                raise ValueError(f"{name} {index} is unknown; the graph has {name}s 0 to {len(labels) - 1}")
        if chosen[0] == chosen[1]:
            raise ValueError(f"{name} {chosen[0]} stands twice in the scene; a swap needs two different {name}s")
    o, a = sides
    return int(o[objects[0]]), int(o[objects[1]]), int(a[attributes[0]]), int(a[attributes[1]])


def pair_inside(parts: Parts) -> bool:
    """Does one of the four pairs (oᵢ, aⱼ) of the scene lie inside a component? For dense sign codes this decides all."""
    return not {parts[0], parts[1]}.isdisjoint(parts[2:])


def codes(shape: Sequence[int], p: float, generator: np.random.Generator) -> Floats:
    """Independent entries of the given shape: 0 with probability 1 − p, else a fair sign. p = 1 is the dense sign code.

    Raises ``ValueError`` for p outside [0, 1] or an empty shape.
    """
    check_chance(p, "p")
    for size in shape:
        check_count(size, "N")
    return np.where(generator.random(tuple(shape)) < p, generator.choice([-1.0, 1.0], tuple(shape)), 0.0)


def products(u: Floats, v: Floats) -> Floats:
    """w(o, a) = u(o) ⊙ v(a) for all pairs; u of shape (objects, N), v of shape (attributes, N), w of (objects, attributes, N)."""
    return u[:, None, :] * v[None, :, :]


@dataclass(frozen=True)
class Factors:
    """What the exposed products say about the codes, up to the gauge; made by :func:`recover`."""

    u: Floats
    v: Floats
    """û of shape (objects, N) and v̂ of (attributes, N): a sign in some gauge, or 0 where no exposed product is non-zero."""
    u_zero: Bools
    v_zero: Bools
    """Where u and v are known to be 0, because a product with a non-zero entry of the other is 0."""
    u_part: Ints
    v_part: Ints
    """Which piece of the non-zero products an entry hangs on; signs are comparable within a piece only."""


def recover(w: Floats, exposed: Any) -> Factors:
    """û and v̂ with û(o) ⊙ v̂(a) = w(o, a) on every exposed pair, unique up to one sign for each piece and coordinate.

    Coordinate n keeps the edges with w ≠ 0. Each atom x is split into (x, +) and (x, −); a product +1 joins equal signs and −1
    joins opposite ones. A piece of the graph then lifts to two components, and x has the sign of its copy in the first of them.

    w has shape (objects, attributes, N); entries off the exposed pairs are never read. Raises ``ValueError`` for another shape,
    an exposed entry that is not −1, 0 or 1, or a cycle whose product is −1, which no codes explain.
    """
    graph = check_exposed(exposed)
    if w.ndim != 3 or w.shape[:2] != graph.shape or w.shape[2] < 1:
        raise ValueError(f"w has shape {w.shape}, expected {graph.shape} and then N >= 1 coordinates")
    seen = np.where(graph[:, :, None], w, 0.0)
    if not np.isin(seen, (-1, 0, 1)).all():
        raise ValueError(f"w has the entry {seen[~np.isin(seen, (-1, 0, 1))][0]} on an exposed pair; entries are -1, 0 or 1")
    m = len(graph)
    plus, minus = _lift(seen)
    if (clash := plus == minus).any():
        raise ValueError(
            f"coordinate {int(np.argwhere(clash)[0][1])}: the products around a cycle give -1; no codes explain that"
        )
    sign, part = np.where(plus < minus, 1.0, -1.0), np.minimum(plus, minus)
    active_u, active_v = (seen != 0).any(axis=1), (seen != 0).any(axis=0)
    silent = graph[:, :, None] & (seen == 0)
    return Factors(
        u=np.where(active_u, sign[:m], 0.0),
        v=np.where(active_v, sign[m:], 0.0),
        u_zero=(silent & active_v[None, :, :]).any(axis=1),
        v_zero=(silent & active_u[:, None, :]).any(axis=0),
        u_part=part[:m],
        v_part=part[m:],
    )


def identified(factors: Factors, exposed: Any) -> Ints:
    """What is known of w(o, a)[n] for every pair: EXACT, SIGN (|w| = 1 but not its sign) or OPEN (−1, 0 and 1 all fit).

    EXACT where the pair was exposed, or one factor is known to be zero, or both factors are known and hang on one piece.
    SIGN where both are known and hang on different pieces. Shape (objects, attributes, N).
    """
    graph = check_exposed(exposed)
    zero = factors.u_zero[:, None] | factors.v_zero[None]
    both = (factors.u[:, None] != 0) & (factors.v[None] != 0)
    same = factors.u_part[:, None] == factors.v_part[None]
    return np.where(graph[:, :, None] | zero | (both & same), EXACT, np.where(both, SIGN, OPEN))


def template(u: Floats, v: Floats) -> Floats:
    """T = u₁ ⊙ v₁ + u₂ ⊙ v₂ of shape (*, N), for u and v of shape (*, 2, N). The swap is ``template(u, swapped(v))``.

    Raises ``ValueError`` if u or v has not two rows of one length.
    """
    if u.shape[-2:] != v.shape[-2:] or u.ndim < 2 or u.shape[-2] != 2:
        raise ValueError(f"u and v have shapes {u.shape} and {v.shape}; a scene needs (*, 2, N) for both")
    return (u * v).sum(axis=-2)


def swapped(v: Floats) -> Floats:
    """The two attributes exchanged, (v₂, v₁); shape (*, 2, N)."""
    return v[..., ::-1, :]


def linear(image: Floats, T: Floats) -> Floats:
    """The plain matcher Σ I T / ‖T‖ of shape (*); an empty template scores 0."""
    norm = np.sqrt((T**2).sum(axis=-1))
    return (image * T).sum(axis=-1) / np.where(norm > 0, norm, 1.0)


def energy(image: Floats, T: Floats) -> Floats:
    """The sign-agnostic matcher Σ I² T² / ‖T²‖ of shape (*): the plain one on squares."""
    return linear(image**2, T**2)


def margin(matcher: Matcher, image: Floats, u: Floats, v: Floats) -> Floats:
    """matcher(I, T) − matcher(I, T′) for the caption's template T and its swap's T′; positive means "as captioned"."""
    return matcher(image, template(u, v)) - matcher(image, template(u, swapped(v)))


def contrast(image: Floats, u: Floats, v: Floats, noise: float) -> Floats:
    """Σ (I² − η²) (u₁² − u₂²) (v₁² − v₂²) of shape (*): the energy contrast, which no gauge changes.

    By T² − T′² = (u₁² − u₂²)(v₁² − v₂²) this weighs the energy above noise by the difference of the templates' energies.
    """
    u2, v2 = u**2, v**2
    informative = (u2[..., 0, :] - u2[..., 1, :]) * (v2[..., 0, :] - v2[..., 1, :])
    return ((image**2 - check_noise(noise) ** 2) * informative).sum(axis=-1)


def contrast_bound(p: float, noise: float, N: int) -> float:
    """An upper bound on the error of :func:`contrast`: x / (1 + x) with x = (2 (1 + 2η²)² − r) / (r N) and r = (2p(1 − p))².

    Cantelli's inequality; the N summands are independent with mean r / 2 and second moment r (1 + 2η²)² / 2.
    One where r = 0: dense codes, or none at all.
    """
    r = (2 * check_chance(p, "p") * (1 - p)) ** 2
    if r == 0:
        return 1.0
    x = (2 * (1 + 2 * check_noise(noise) ** 2) ** 2 - r) / (r * check_count(N, "N"))
    return x / (1 + x)


def known_pair(image: Floats, w: Floats) -> Floats:
    """Σ I w − N / 2 of shape (*), for the known product w = u₁ ⊙ v₁ of a pair inside one component; dense codes."""
    return (image * w).sum(axis=-1) - w.shape[-1] / 2


def known_pair_bound(noise: float, N: int) -> float:
    """An upper bound on the error of :func:`known_pair` for random dense codes: exp(−N / (8 (2 + η²))).

    Σ I w has mean N or 0; what is left are N signs (or two times N) and N normals: a sub-Gaussian of variance at most N (2 + η²).
    """
    return exp(-check_count(N, "N") / (8 * (2 + check_noise(noise) ** 2)))


def evidence(image: Floats, u: Floats, v: Floats, parts: Parts, noise: float) -> Floats:
    """log P(I | T) − log P(I | T′) of shape (*) under a uniform gauge and normal noise: no rule errs less (Neyman–Pearson).

    log P(I | T) = Σ_n log mean_g exp(−(I_n − T_{g,n})² / 2η²) + const, over the signs g of the components named in ``parts``.
    Values of T are summed in sorted order, so that equal image laws give exactly 0. Raises ``ValueError`` unless noise > 0.
    """
    check_noise(noise, positive=True)
    turned = [_turn(u, v, gauge) for gauge in _gauges(parts)]

    def log_likelihood(templates: list[Floats]) -> Floats:
        values = np.sort(np.stack(templates), axis=0)
        return np.asarray(np.logaddexp.reduce(-((image - values) ** 2) / (2 * noise**2), axis=0).sum(axis=-1))

    return log_likelihood([template(s, t) for s, t in turned]) - log_likelihood([template(s, swapped(t)) for s, t in turned])


@dataclass(frozen=True)
class Trials:
    """Independent decisions: an image, what the learner has, and whether the image shows the caption or its swap."""

    image: Floats
    """T + ηz or T′ + ηz of shape (trials, N)."""
    u: Floats
    v: Floats
    """û and v̂ of shape (trials, 2, N), in the learner's gauge."""
    truth: Bools
    """True where the image shows the caption as it stands; fair coins of shape (trials,)."""


def draw_trials(
    parts: Parts, p: float, noise: float, N: int, trials: int, generator: np.random.Generator, degree: int | None = None
) -> Trials:
    """Fresh codes, a fair coin between scene and swap, normal noise, and a fair gauge sign for each component and coordinate.

    Without ``degree`` the learner knows every factor up to the gauge. With degree d it has only products: both objects were shown
    with the same d attributes, both attributes with the same d objects. An entry then shows itself with chance 1 − (1 − p)^d.
    Raises ``ValueError`` for p outside [0, 1], noise below 0, or N, trials or degree below 1.
    """
    check_noise(noise)
    u, v = codes((check_count(trials, "trials"), 2, N), p, generator), codes((trials, 2, N), p, generator)
    truth = generator.random(trials) < 0.5
    image = np.where(truth[:, None], template(u, v), template(u, swapped(v))) + noise * generator.standard_normal((trials, N))
    named, at = np.unique(parts, return_inverse=True)
    gauge = generator.choice([-1.0, 1.0], (trials, len(named), N))[:, at]
    if degree is not None:
        chance = 1 - (1 - p) ** check_count(degree, "degree")
        u, v = (factor * (generator.random((trials, 1, N)) < chance) for factor in (u, v))
    return Trials(image, *_turn(u, v, gauge), truth)


def accuracy(margins: Floats, truth: Bools) -> float:
    """The share of decisions whose margin has the sign of the truth; a tie counts one half."""
    return float(np.where(margins == 0, 0.5, (margins > 0) == truth).mean())


def image_laws(u: Sequence[int], v: Sequence[int], parts: Parts) -> tuple[Counter[int], Counter[int]]:
    """How many gauges give each value of T and of T′ in one coordinate, u = (u₁, u₂) and v = (v₁, v₂), by enumeration.

    >>> image_laws((1, 1), (1, -1), (0, 0, 1, 1))
    (Counter({0: 4}), Counter({0: 4}))
    """
    turned = [_turn(np.array(u)[:, None], np.array(v)[:, None], gauge) for gauge in _gauges(parts)]
    scene = Counter(int(template(s, t)[0]) for s, t in turned)
    return scene, Counter(int(template(s, swapped(t))[0]) for s, t in turned)


def total_variation(left: Counter[int], right: Counter[int]) -> Fraction:
    """½ Σ |P − P′| of two laws given as counts; one noiseless look decides rightly with probability (1 + this) / 2 at best."""
    return (
        sum((abs(Fraction(left[x], left.total()) - Fraction(right[x], right.total())) for x in {*left, *right}), Fraction(0)) / 2
    )


def partitions() -> list[Parts]:
    """The fifteen ways to divide (o₁, o₂, a₁, a₂) into components, as labels in order of first appearance."""
    first = ((0, b, c, d) for b, c, d in product(range(2), range(3), range(4)))
    return [p for p in first if p[2] <= p[1] + 1 and p[3] <= max(p[1], p[2]) + 1]


def _lift(seen: Floats) -> tuple[Ints, Ints]:
    """Component labels of the copies (x, +) and (x, −) of every atom and coordinate, each of shape (objects + attributes, N)."""
    m, n, N = seen.shape
    half = (m + n) * N
    o, a, k = np.nonzero(seen)
    x, y, turn = o * N + k, (m + a) * N + k, np.where(seen[o, a, k] < 0, half, 0)
    edges = np.r_[x, x + half], np.r_[y + turn, y + half - turn]
    lifted = coo_array((np.ones(2 * len(x), dtype=np.int8), edges), shape=(2 * half, 2 * half))
    plus, minus = connected_components(lifted, directed=False)[1].astype(np.int64).reshape(2, m + n, N)
    return plus, minus


def _gauges(parts: Parts) -> Floats:
    """Every choice of a sign for each component of a scene, spelled out for its four atoms; shape (choices, 4, 1)."""
    named, at = np.unique(parts, return_inverse=True)
    return np.array(list(product((1.0, -1.0), repeat=len(named))))[:, at, None]


def _turn(u: Floats, v: Floats, g: Floats) -> tuple[Floats, Floats]:
    """u ⊙ g and v ⊙ g for signs g of (o₁, o₂, a₁, a₂), of shape (*, 4, N) or (*, 4, 1)."""
    return u * g[..., :2, :], v * g[..., 2:, :]
