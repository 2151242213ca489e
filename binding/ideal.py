"""Encoders that satisfy every axiom of binding at once, and the margins that they leave.

An atom is an object with an attribute, numbered x = o·A + a (object-major, A attributes); M = objects × A atoms. A scene is a
set of at most k atoms with distinct objects, written as its ascending indices. Everything is float64; the theorems are those
of the chapter *Can all the axioms hold at once?*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import comb, factorial, inf, log, pi, sqrt

import numpy as np

from binding.numerics import check_finite, check_unit, chunks, unit

Scene = tuple[int, ...]


def moment_curve(theta: np.ndarray | float, k: int) -> np.ndarray:
    """The trigonometric moment curve v(θ) = (cos θ, sin θ, …, cos kθ, sin kθ)/√k on the unit sphere, (*,) → (*, 2k).

    Angles are in radians. Raises ``ValueError`` if k < 1.

    >>> moment_curve(0.0, 2).round(3).tolist()
    [0.707, 0.0, 0.707, 0.0]
    """
    _check_k(k)
    phase = np.asarray(theta, dtype=float)[..., None] * np.arange(1, k + 1)
    pairs = np.stack([np.cos(phase), np.sin(phase)], axis=-1)
    return pairs.reshape(*phase.shape[:-1], 2 * k) / sqrt(k)


def polynomial(theta: np.ndarray | float, roots: Sequence[float] | np.ndarray) -> np.ndarray:
    """p(θ) = ∏ (1 − cos(θ − ϑ)) over the roots ϑ: never negative, zero exactly at the roots; (*,), (j,) → (*,)."""
    return np.prod(1 - np.cos(np.asarray(theta, dtype=float)[..., None] - np.asarray(roots, dtype=float)), axis=-1)


def coefficients(roots: Sequence[float] | np.ndarray) -> np.ndarray:
    """The coefficients (a₀, a₁, b₁, …, a_j, b_j) of p(θ) = a₀ + Σ a_m cos mθ + b_m sin mθ, (*, j) → (*, 2j + 1).

    One factor 1 − ½(e^{−iϑ} e^{iθ} + e^{iϑ} e^{−iθ}) is multiplied in at a time. Each step rounds by at most 5 ε of the sum of
    the moduli, which is 2^j, so the computed coefficients are within 5 j 2^j ε of the exact ones in the 1-norm.

    >>> (coefficients([0.0, pi]).round(3) + 0.0).tolist()  # (1 − cos θ)(1 + cos θ) = ½ − ½ cos 2θ
    [0.5, 0.0, 0.0, -0.5, 0.0]
    """
    roots = np.asarray(roots, dtype=float)
    fourier = np.ones((*roots.shape[:-1], 1), dtype=complex)
    zero = np.zeros_like(fourier)
    for turn in np.moveaxis(np.exp(1j * roots), -1, 0)[..., None]:
        raised, lowered = np.concatenate([zero, zero, fourier], -1), np.concatenate([fourier, zero, zero], -1)
        fourier = np.concatenate([zero, fourier, zero], -1) - (turn.conj() * raised + turn * lowered) / 2
    j = roots.shape[-1]
    positive = fourier[..., j + 1 :]
    pairs = np.stack([2 * positive.real, -2 * positive.imag], axis=-1)
    return np.concatenate([fourier[..., j : j + 1].real, pairs.reshape(*roots.shape[:-1], 2 * j)], axis=-1)


def normal(roots: Sequence[float] | np.ndarray, k: int) -> np.ndarray:
    """n_s = −(a₁, b₁, …, a_k, b_k)/‖·‖, which scores the scene's atoms equally and all others lower, (*, j) → (*, 2k).

    ⟨n_s, v(θ)⟩ = (a₀ − p(θ))/(√k ‖(a₁, …, b_k)‖), by the definition of the coefficients; ``rounding(k)`` bounds its error.
    Raises ``ValueError`` for no root, more than k roots, a root that is not finite, or two roots that float64 cannot tell apart.
    """
    _check_k(k)
    roots = np.atleast_1d(np.asarray(roots, dtype=float))
    if not 1 <= roots.shape[-1] <= k:
        raise ValueError(f"a scene has 1 to k = {k} atoms, got {roots.shape[-1]} angles; raise k or leave atoms out")
    _check_distinct(roots)
    c = -coefficients(roots)[..., 1:]
    return unit(np.concatenate([c, np.zeros((*c.shape[:-1], 2 * k - c.shape[-1]))], axis=-1), "the normal")


def rounding(k: int) -> float:
    """A bound 16 k 4^k ε on the error of a score ⟨n_s, v(θ)⟩.

    The coefficients are off by at most 5 k 2^k ε (see :func:`coefficients`) and the last pair alone has length 2^{1−k}, so the
    unit vector is off by at most 2 · 2 · 5 k 2^k ε / 2^{1−k} = 10 k 4^k ε. The rest, at least 24 k ε, covers the phases mθ of v
    (|θ| ≤ 2π: at most 5 k ε) and the 4k roundings of the norm and of the score.
    """
    return 16 * k * 4.0**k * float(np.finfo(float).eps)


def scenes(objects: int, attributes: int, k: int) -> tuple[Scene, ...]:
    """All scenes of one to k atoms with distinct objects, by size, then lexicographic.

    Raises ``ValueError`` if k < 1, if a scene of k atoms would need more objects than there are, or if there is no attribute.

    >>> scenes(2, 2, 2)
    ((0,), (1,), (2,), (3,), (0, 2), (0, 3), (1, 2), (1, 3))
    """
    _check_k(k)
    if attributes < 1:
        raise ValueError(f"attributes = {attributes}; an atom needs at least 1 attribute")
    if k > objects:
        raise ValueError(f"k = {k} atoms with distinct objects need {k} objects, got {objects}; lower k or add objects")
    return tuple(
        scene
        for size in range(1, k + 1)
        for scene in combinations(range(objects * attributes), size)
        if len({x // attributes for x in scene}) == size
    )


def swaps(scene: Scene, attributes: int) -> tuple[Scene, ...]:
    """The scenes σs ≠ s in which two objects of s have exchanged their attributes.

    Two objects with the same attribute give σs = s: that is the same scene and no swap.
    Raises ``ValueError`` for a negative atom, or two atoms of one object.

    >>> swaps((0, 3), 2), swaps((0, 2), 2)
    (((1, 2),), ())
    """
    _check_scene(scene, attributes)
    swapped = []
    for x, y in combinations(scene, 2):
        shift = y % attributes - x % attributes
        if shift:
            swapped.append(tuple(sorted({*scene} - {x, y} | {x + shift, y - shift})))
    return tuple(swapped)


@dataclass(frozen=True)
class Encoder:
    """What a dual encoder does to every scene of a small world: unit vectors for its image and for its caption.

    Raises ``ValueError`` if the rows do not match the scenes or are not of length one, if the one-atom scenes do not come first,
    or if a scene is there without its swaps.
    """

    scenes: tuple[Scene, ...]
    """The n scenes, as :func:`scenes` lists them: the M one-atom scenes first."""
    attributes: int
    """Number of attributes A, so that atom x is object x // A with attribute x % A."""
    image: np.ndarray
    """i(I_s), shape (n, N)."""
    caption: np.ndarray
    """t(c(s)), shape (n, N)."""

    def __post_init__(self) -> None:
        n, M, known = len(self.scenes), self.atoms, set(self.scenes)
        if self.image.shape != self.caption.shape or self.image.shape[0] != n or self.image.ndim != 2:
            raise ValueError(
                f"{n} scenes need image and caption of one shape ({n}, N), got {self.image.shape} and {self.caption.shape}"
            )
        if not M or self.scenes[:M] != tuple((x,) for x in range(M)):
            raise ValueError(f"the first scenes are {self.scenes[:3]}, …; list all one-atom scenes (0,), (1,), … first")
        for scene in self.scenes:
            if max(scene) >= M:
                raise ValueError(f"scene {scene} names an atom beyond the {M} one-atom scenes; add the missing ones")
            for other in swaps(scene, self.attributes):
                if other not in known:
                    raise ValueError(f"scene {scene} is here and its swap {other} is not; A4 compares the two, so add it")
        check_unit(self.image, "image")
        check_unit(self.caption, "caption")

    @property
    def atoms(self) -> int:
        """Number of atoms M."""
        return sum(len(s) == 1 for s in self.scenes)

    @property
    def dimension(self) -> int:
        """Dimension N."""
        return int(self.image.shape[1])


@dataclass(frozen=True)
class Margins:
    """The smallest margin of every axiom; an axiom holds if its margin is positive, and is vacuous if it is infinite."""

    norm_error: float
    """A1: largest |‖·‖² − 1| over images and captions."""
    atoms: float
    """A2: smallest ⟨i(I_s), t(x)⟩ − ⟨i(I_s), t(y)⟩ over scenes s, present atoms x and absent atoms y."""
    swap: float
    """A4: smallest ⟨i(I_s), t(c(s)) − t(c(σs))⟩ over scenes and swaps σs ≠ s."""
    image_to_caption: float
    """A5: smallest lead of an image's own caption over every other scene's caption."""
    caption_to_image: float
    """A5: smallest lead of a caption's own image over every other scene's image."""
    dimension: int
    """Dimension N."""

    @property
    def violated(self) -> tuple[str, ...]:
        """Names of the axioms that fail; a margin counts as positive only above the rounding of an inner product, (N + 4) ε."""
        floor = (self.dimension + 4) * float(np.finfo(float).eps)
        good = {
            "A1": self.norm_error <= floor,
            "A2": self.atoms > floor,
            "A4": self.swap > floor,
            "A5": min(self.image_to_caption, self.caption_to_image) > floor,
        }
        return tuple(name for name, holds in good.items() if not holds)


def margins(encoder: Encoder) -> Margins:
    """Enumerate A1, A2, A4 and A5 over every scene and return the smallest margin of each.

    A3 leaves nothing to enumerate here, since an :class:`Encoder` holds one caption a scene; see :func:`order_error`.
    """
    both = np.concatenate([encoder.image, encoder.caption])
    return Margins(
        norm_error=float(np.abs((both**2).sum(-1) - 1).max()),
        atoms=_atom_margin(encoder),
        swap=_swap_margin(encoder),
        image_to_caption=_retrieval_margin(encoder.image, encoder.caption),
        caption_to_image=_retrieval_margin(encoder.caption, encoder.image),
        dimension=encoder.dimension,
    )


def order_error(worlds: Sequence[Scene], angles: np.ndarray, k: int) -> float:
    """A3: the largest distance between n_s computed from two orders of one scene's atoms; zero but for ``2 * rounding(k)``."""
    pairs = [(order, s) for s in worlds for order in permutations(s)]
    return max(float(np.linalg.norm(normal(angles[list(order)], k) - normal(angles[list(s)], k))) for order, s in pairs)


def tied_encoder(
    objects: int, attributes: int, k: int, *, angles: np.ndarray | None = None, dimension: int | None = None
) -> Encoder:
    """The encoder of theorem `sat-theorem`, in dimension 2k: i(I_s) = t(c(s)), v(θ_x) for one atom x, n_s for more.

    ``angles`` (M,) default to 2πx/M; a ``dimension`` above 2k is filled with zeros.
    Raises ``ValueError`` for a dimension below 2k, and as :func:`scenes` and :func:`normal` do.
    """
    worlds = scenes(objects, attributes, k)
    angles = _angles(objects * attributes, angles)
    rows = _pad(_directions(worlds, angles, k, moment_curve(angles, k)), 2 * k, dimension)
    return Encoder(worlds, attributes, rows, rows)


def coded_encoder(
    objects: int,
    attributes: int,
    k: int,
    *,
    codes: np.ndarray | None = None,
    angles: np.ndarray | None = None,
    alpha: float | None = None,
    dimension: int | None = None,
) -> Encoder:
    """The encoder of theorem `sat-codes`, in dimension 2k + q: larger scenes get unit codes w_s in q more dimensions.

    t(c(s)) = (0, w_s) and i(I_s) = (√α n_s, √(1 − α) w_s); for one atom t = (v(θ_x), 0) and i = (n_s, 0).
    ``codes`` (S, q) holds a code for each of the S larger scenes, by default S points on a circle (q = 2); ``alpha`` is 1/(4k)
    by default. A4 and A5 need distinct codes. Raises ``ValueError`` unless 0 < α < min(1/2, 1/k), for codes of another number
    or not of length one, for a dimension below 2k + q, and as :func:`scenes` and :func:`normal` do.
    """
    worlds = scenes(objects, attributes, k)
    angles = _angles(objects * attributes, angles)
    M, S = objects * attributes, len(worlds) - objects * attributes
    alpha = 1 / (4 * k) if alpha is None else alpha
    if not 0 < alpha < min(1 / 2, 1 / k):
        raise ValueError(f"alpha = {alpha} must lie strictly between 0 and min(1/2, 1/k) = {min(1 / 2, 1 / k):g}")
    codes = circle_codes(S) if codes is None else np.asarray(codes, dtype=float)
    if codes.ndim != 2 or len(codes) != S:
        raise ValueError(f"codes has shape {codes.shape}; the {S} scenes of two or more atoms need shape ({S}, q)")
    check_unit(codes, "codes")
    n = _directions(worlds, angles, k, normal(angles[:, None], k))
    image = np.concatenate([n, np.zeros((M + S, codes.shape[1]))], axis=1)
    caption = np.zeros_like(image)
    caption[:M, : 2 * k] = moment_curve(angles, k)
    caption[M:, 2 * k :] = codes
    image[M:, : 2 * k] *= sqrt(alpha)
    image[M:, 2 * k :] = sqrt(1 - alpha) * codes
    need = 2 * k + codes.shape[1]
    return Encoder(worlds, attributes, unit(_pad(image, need, dimension)), _pad(caption, need, dimension))


def superposition(atoms: np.ndarray, objects: int, attributes: int, k: int) -> Encoder:
    """The encoder that adds up its atoms: i(I_s) = t(c(s)) = Σ_{x∈s} t(x)/‖·‖, from atom vectors of shape (M, N).

    Raises ``ValueError`` for a wrong number of atoms, a sum that is zero, and as :func:`scenes` does.
    """
    worlds = scenes(objects, attributes, k)
    if len(atoms) != objects * attributes:
        raise ValueError(f"got {len(atoms)} atom vectors for {objects} objects × {attributes} attributes; give one for each pair")
    check_finite(atoms, "atoms")
    sums = np.stack([atoms[list(s)].sum(axis=0) for s in worlds])
    for s, length in zip(worlds, np.linalg.norm(sums, axis=-1), strict=True):
        # k − 1 additions of rounded coordinates are off by at most (k + 1) ε of the lengths: less than that has no direction.
        if length <= (k + 1) * np.finfo(float).eps * np.linalg.norm(atoms[list(s)], axis=-1).sum():
            raise ValueError(f"the atoms of scene {s} add up to zero, which has no direction; choose other atom vectors")
    rows = unit(sums)
    return Encoder(worlds, attributes, rows, rows)


def circle_codes(S: int) -> np.ndarray:
    """S codes at equal angles on the circle, w_s = (cos 2πs/S, sin 2πs/S), shape (S, 2); the nearest two score cos(2π/S)."""
    return moment_curve(2 * pi * np.arange(S) / max(S, 1), 1)


def simplex_codes(S: int) -> np.ndarray:
    """The S corners of a regular simplex in S − 1 dimensions, all scoring −1/(S − 1) with each other, shape (S, S − 1).

    No S unit vectors have a smaller largest score. Raises ``ValueError`` if S < 2.
    """
    if S < 2:
        raise ValueError(f"a simplex of codes needs at least 2 scenes of two or more atoms, got {S}; raise k or add atoms")
    helmert = np.tril(np.ones((S, S)), -1)[1:]
    helmert[np.arange(S - 1), np.arange(1, S)] = -np.arange(1, S)
    return unit(unit(helmert).T)


def random_codes(S: int, q: int, generator: np.random.Generator) -> np.ndarray:
    """S independent codes of q fair signs, w_s ∈ {±1}^q/√q, shape (S, q). Raises ``ValueError`` if q < 1."""
    if q < 1:
        raise ValueError(f"q = {q}; a random code needs at least 1 dimension")
    return unit(generator.choice([-1.0, 1.0], size=(S, q)))


def largest_score_bound(pairs: int, q: float, failure: float = 1.0) -> float:
    """ε = √(2 log(pairs / failure) / q): the largest of that many scores of random codes is over ε at most that often.

    Hoeffding: P(⟨w, w'⟩ ≥ ε) ≤ exp(−q ε²/2) for one pair, then the union bound: P(largest ≥ ε) ≤ ``failure``. With
    ``failure`` = 1 the same number bounds the expectation of the largest score (Jensen, applied to its exponential).
    Raises ``ValueError`` if there is no pair, q < 1 or ``failure`` is outside (0, 1].
    """
    if pairs < 1 or q < 1 or not 0 < failure <= 1:
        raise ValueError(f"need pairs ≥ 1, q ≥ 1 and 0 < failure ≤ 1, got {pairs}, {q} and {failure}")
    return sqrt(2 * log(pairs / failure) / q)


def cluster_product(k: int) -> int:
    """D_k = ⌊k/2⌋! ⌈k/2⌉!, the least product of the distances from one point of a circle to k others, in steps (1, 1, 2, 2, …).

    Raises ``ValueError`` if k < 1.
    """
    _check_k(k)
    return factorial(k // 2) * factorial(k - k // 2)


def atom_margin_floor(M: int, k: int, j: int) -> float:
    """16^j D_j² / (M^{2j} √(2k C(4j, 2j))): no ⟨n_s, v(θ_x) − v(θ_y)⟩ of a scene of j atoms is smaller (`sat-shrink`).

    Raises ``ValueError`` unless 1 ≤ j ≤ k and M > j.
    """
    _check_cluster(M, k, j)
    return 16.0**j * cluster_product(j) ** 2 / (float(M) ** (2 * j) * sqrt(2 * k * comb(4 * j, 2 * j)))


def atom_margin_limit(M: float, k: int) -> float:
    """D_k² (2π/M)^{2k} / √(2k (C(4k, 2k) − C(2k, k)²)): the same of the tightest scene of k atoms, M → ∞ (`sat-shrink`).

    Raises ``ValueError`` unless k ≥ 1 and M > k.
    """
    _check_cluster(M, k, k)
    return cluster_product(k) ** 2 * (2 * pi / M) ** (2 * k) / sqrt(2 * k * (comb(4 * k, 2 * k) - comb(2 * k, k) ** 2))


def _directions(worlds: tuple[Scene, ...], angles: np.ndarray, k: int, single: np.ndarray) -> np.ndarray:
    """Rows of ``single`` for the one-atom scenes, then n_s for the others, shape (n, 2k)."""
    rows = [single]
    for size in range(2, k + 1):
        rows.append(normal(angles[[s for s in worlds if len(s) == size]], k))
    return np.concatenate(rows)


def _pad(rows: np.ndarray, need: int, dimension: int | None) -> np.ndarray:
    if dimension is not None and dimension < need:
        raise ValueError(f"dimension = {dimension} is below the {need} that this construction needs; ask for at least {need}")
    return np.pad(rows, ((0, 0), (0, (dimension or need) - need)))


def _angles(M: int, angles: np.ndarray | None) -> np.ndarray:
    if angles is None:
        return 2 * pi * np.arange(M) / M
    angles = np.asarray(angles, dtype=float)
    if angles.shape != (M,):
        raise ValueError(f"angles has shape {angles.shape}; {M} atoms need shape ({M},)")
    _check_distinct(angles)
    return angles


def _atom_margin(encoder: Encoder) -> float:
    scores = encoder.image @ encoder.caption[: encoder.atoms].T
    present = np.zeros_like(scores, dtype=bool)
    for row, scene in enumerate(encoder.scenes):
        present[row, list(scene)] = True
    return float((np.where(present, scores, inf).min(-1) - np.where(present, -inf, scores).max(-1)).min())


def _swap_margin(encoder: Encoder) -> float:
    row = {s: i for i, s in enumerate(encoder.scenes)}
    pairs = [(row[s], row[other]) for s in encoder.scenes for other in swaps(s, encoder.attributes)]
    if not pairs:
        return inf
    s, other = np.array(pairs).T
    return float((encoder.image[s] * (encoder.caption[s] - encoder.caption[other])).sum(-1).min())


def _retrieval_margin(queries: np.ndarray, targets: np.ndarray) -> float:
    smallest = inf
    for rows in chunks(len(queries), 24 * len(targets)):
        scores = queries[rows] @ targets.T
        own = np.arange(len(queries))[rows]
        mine = scores[np.arange(len(own)), own].copy()
        scores[np.arange(len(own)), own] = -inf
        smallest = min(smallest, float((mine - scores.max(-1)).min()))
    return smallest


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k = {k}; a scene has at least 1 atom, so take k ≥ 1")


def _check_cluster(M: float, k: int, j: int) -> None:
    _check_k(k)
    if not 1 <= j <= k or M <= j:
        raise ValueError(f"need 1 ≤ j ≤ k and more than j atoms, got M = {M}, k = {k}, j = {j}")


def _check_scene(scene: Scene, attributes: int) -> None:
    if attributes < 1:
        raise ValueError(f"attributes = {attributes}; an atom needs at least 1 attribute")
    if any(x < 0 for x in scene):
        raise ValueError(f"scene {scene} has a negative atom; atoms are numbered from 0")
    if len({x // attributes for x in scene}) < len(scene):
        raise ValueError(f"scene {scene} names one object twice; a scene has distinct objects")


def _check_distinct(angles: np.ndarray) -> None:
    check_finite(angles, "angles")
    for shift in range(1, angles.shape[-1]):
        same = np.cos(angles - np.roll(angles, shift, axis=-1)) == 1
        if same.any():
            raise ValueError(f"angle {angles[same][0]:.6g} stands twice (modulo 2π, in float64); give every atom its own angle")
