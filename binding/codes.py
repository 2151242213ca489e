"""Factored codes: captions that are sums of atom codes, what partial matches leak, and the margins that remain.

An atom x = (o, a) gets a code z(o, a), made from an object code u(o) and an attribute code v(a) by a rule ``bind``. The caption
of a scene is t = Σ z(x) / ‖Σ z(x)‖ over its k atoms, and its image is tied to it: i = t. The margin of an edit of the caption is
then <i, t − t'> = 1 − <t, t'>. Rows of factor codes have squared length N, as sign vectors do; L section E, Theorem E.7.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from binding.numerics import chunks, gaussian, memory_budget, unit

Bind: TypeAlias = Callable[[Tensor, Tensor], Tensor]
EDITS = ("swap", "replace", "replace_attribute", "replace_object", "add")
"""The edits of a caption: exchange the attributes of the first two atoms; put the spare atom, or only its attribute, or only its
object, in the place of the first; append the spare atom."""

NEAR_CACHE = 16_000_000
"""Bytes of scenes taken at a time: about what a processor keeps close, some three times faster than 1 GB portions."""


class Leakage(NamedTuple):
    """Mean inner products of a code over all pairs of atoms of each kind."""

    gain: float
    """g, an atom with itself."""
    object: float
    """ℓ_o, two atoms that share the object only."""
    attribute: float
    """ℓ_a, two atoms that share the attribute only."""
    neither: float
    """ℓ_0, two atoms that share nothing."""

    @property
    def interaction(self) -> float:
        """κ = g − ℓ_o − ℓ_a + ℓ_0, a quarter of the mean ‖z(o, a) + z(o', a') − z(o, a') − z(o', a)‖²."""
        return self.gain - self.object - self.attribute + self.neither


@dataclass(frozen=True)
class Draws:
    """Scenes as indices: rows of k atoms and, in the last column, one spare atom.

    Raises ``ValueError`` if the two tables differ in shape, have fewer than two columns, or name an object twice in a row.
    """

    objects: Tensor
    """Integers of shape (scenes, k + 1), all different within a row."""
    attributes: Tensor
    """Integers of shape (scenes, k + 1)."""

    def __post_init__(self) -> None:
        shape = tuple(self.objects.shape)
        if self.objects.shape != self.attributes.shape or len(shape) != 2 or shape[1] < 2:
            raise ValueError(
                f"objects have shape {shape}, attributes {tuple(self.attributes.shape)}; need one shape (scenes, k + 1), k >= 1"
            )
        ordered = self.objects.sort(dim=1).values
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(dim=1)
        if twice.any():
            row = int(twice.nonzero()[0])
            raise ValueError(f"scene {row} names an object twice: {self.objects[row].tolist()}; objects of a scene are distinct")

    @property
    def k(self) -> int:
        """Atoms in a scene."""
        return self.objects.shape[1] - 1


def draw(scenes: int, k: int, M: int, K: int, generator: torch.Generator) -> Draws:
    """Scenes of k atoms, and a spare one, with distinct objects out of M and distinct attributes out of K, uniformly.

    Raises ``ValueError`` unless scenes ≥ 1, k ≥ 1 and k + 1 ≤ min(M, K): the spare atom shares nothing with the scene.
    """
    if scenes < 1 or k < 1:
        raise ValueError(f"need at least one scene of at least one atom, got scenes = {scenes}, k = {k}")
    if k + 1 > min(M, K):
        raise ValueError(
            f"k = {k} atoms and a spare one need {k + 1} objects and attributes, got M = {M}, K = {K}: lower k or add some"
        )
    objects, attributes = (torch.rand(scenes, n, generator=generator).argsort(dim=1)[:, : k + 1] for n in (M, K))
    return Draws(objects, attributes)


def additive(u: Tensor, v: Tensor) -> Tensor:
    """The additive code z = (u + v) / √(2N), of shape (*, N): a bag of factors. Of length one if u ⊥ v.

    Raises ``ValueError`` if the two dimensions differ or are 0.
    """
    N = _same_dimension(u, v)
    return (u + v) / math.sqrt(2 * N)


def hadamard(u: Tensor, v: Tensor) -> Tensor:
    """The product code z = u ⊙ v / √N, of shape (*, N): of length one for sign vectors.

    Raises ``ValueError`` if the two dimensions differ or are 0.
    """
    N = _same_dimension(u, v)
    return u * v / math.sqrt(N)


def interpolated(u: Tensor, v: Tensor, theta: float) -> Tensor:
    """The code z_θ = cos θ (u + v) / √(2N) + sin θ u ⊙ v / √N, of shape (*, N), θ in radians: θ = 0 adds, θ = π/2 multiplies.

    Raises ``ValueError`` if the two dimensions differ or are 0, or if θ is not finite.
    """
    if not math.isfinite(theta):
        raise ValueError(f"theta = {theta} must be a finite angle in radians")
    return math.cos(theta) * additive(u, v) + math.sin(theta) * hadamard(u, v)


def tensor(u: Tensor, v: Tensor) -> Tensor:
    """The tensor code z = u ⊗ v / √(N_u N_v), of shape (*, N_u N_v): <z, z'> = <u, u'> <v, v'> / (N_u N_v), with no noise.

    Raises ``ValueError`` if a dimension is 0.
    """
    if u.shape[-1] < 1 or v.shape[-1] < 1:
        raise ValueError(f"dimensions are {u.shape[-1]} and {v.shape[-1]}, both must be at least 1")
    return (u[..., :, None] * v[..., None, :]).flatten(-2) / math.sqrt(u.shape[-1] * v.shape[-1])


def walsh(M: int, K: int) -> tuple[Tensor, Tensor]:
    """Sign codes u (M, N) and v (K, N) such that all u, all v and all u ⊙ v are orthogonal, without any chance.

    Rows are Walsh functions n ↦ (−1)^{popcount(i & n)}, whose products are Walsh functions again: objects own the high bits of
    i, attributes the low bits. N is the power of two 2^⌈log₂(M+1)⌉ · 2^⌈log₂(K+1)⌉. Raises ``ValueError`` if M or K is below 1.

    >>> u, v = walsh(40, 40)
    >>> u.shape[1], float(u[3] @ v[5]), float(u[3] @ (u[3] * v[5]))
    (4096, 0.0, 0.0)
    """
    if M < 1 or K < 1:
        raise ValueError(f"need at least one object and one attribute, got M = {M}, K = {K}")
    high, low = M.bit_length(), K.bit_length()
    bits = torch.arange(high + low)
    functions = torch.cat([torch.arange(1, M + 1) << low, torch.arange(1, K + 1)])
    points = torch.arange(1 << (high + low))
    ones = ((functions[:, None] >> bits) & 1).double() @ ((points[:, None] >> bits) & 1).double().T
    rows = 1 - 2 * (ones % 2)
    return rows[:M], rows[M:]


def simplex(n: int, N: int, generator: torch.Generator) -> Tensor:
    """Corners of a regular simplex in a random position, (n, N), of squared length N and inner products −N / (n − 1).

    The polar factor U Vᵀ of centred normal rows has Gram matrix U Uᵀ = I − 1/n, which is a simplex.
    Raises ``ValueError`` unless 2 ≤ n ≤ N + 1.
    """
    if not 2 <= n <= N + 1:
        raise ValueError(f"a simplex of n = {n} corners needs 2 <= n <= N + 1, got N = {N}")
    rows = gaussian((n, N), generator)
    U, _, V = torch.linalg.svd(rows - rows.mean(dim=0), full_matrices=False)
    return math.sqrt(N * n / (n - 1)) * U[:, : n - 1] @ V[: n - 1]


def table(bind: Bind, u: Tensor, v: Tensor) -> Tensor:
    """The codes of all atoms, z of shape (M, K, N)."""
    return bind(u[:, None], v[None, :])


def overlaps(z: Tensor) -> dict[str, Tensor]:
    """All inner products of a table of codes (M, K, N), each pair once, by what it shares: the fields of :class:`Leakage`.

    Raises ``ValueError`` for no table of at least two objects and attributes, or a Gram matrix over the memory budget.
    """
    M, K, _ = _table_shape(z)
    if 4 * 8 * (M * K) ** 2 > memory_budget():
        raise ValueError(f"M = {M} and K = {K} give {M * K} atoms, whose inner products do not fit BINDING_MEMORY_MB; use fewer")
    rows = z.reshape(M * K, -1)
    gram = rows @ rows.T
    atom = torch.arange(M * K)
    same_object = atom[:, None] // K == atom // K
    same_attribute = atom[:, None] % K == atom % K
    later = atom[:, None] < atom
    return {
        "gain": gram.diagonal(),
        "object": gram[same_object & later],
        "attribute": gram[same_attribute & later],
        "neither": gram[~same_object & ~same_attribute & later],
    }


def leakage(z: Tensor) -> Leakage:
    """Gain and mean leakages of a table of codes (M, K, N), from its sums over objects and attributes, without its Gram matrix.

    With G = Σ ‖z‖², O = Σ_o ‖Σ_a z‖², A = Σ_a ‖Σ_o z‖², T = ‖Σ z‖²: ℓ_o = (O − G) / MK(K−1), ℓ_a = (A − G) / MK(M−1),
    ℓ_0 = (T − O − A + G) / MK(M−1)(K−1). Raises ``ValueError`` for no table of at least two objects and attributes.
    """
    M, K, _ = _table_shape(z)
    G, O, A, T = (float(total.square().sum()) for total in (z, z.sum(dim=1), z.sum(dim=0), z.sum(dim=(0, 1))))  # noqa: E741
    pairs = M * K
    return Leakage(
        gain=G / pairs,
        object=(O - G) / (pairs * (K - 1)),
        attribute=(A - G) / (pairs * (M - 1)),
        neither=(T - O - A + G) / (pairs * (M - 1) * (K - 1)),
    )


def edit_margin(pooled: Tensor, change: Tensor) -> Tensor:
    """The tied margin <t, t − t'> of captions t = T / ‖T‖ and t' = (T + Δ) / ‖T + Δ‖, from T and Δ of shape (*, N).

    It is ‖t − t'‖²/2, so it is never negative. Raises ``ValueError`` if either caption is the zero vector.
    """
    t, other = unit(pooled, "the caption"), unit(pooled + change, "the edited caption")
    return (t * (t - other)).sum(dim=-1)


def margins(edits: Sequence[str], bind: Bind, u: Tensor, v: Tensor, draws: Draws) -> dict[str, Tensor]:
    """Measured tied margins of every scene, one entry an edit, each of shape (scenes,); u is (M, N) and v is (K, N).

    Scenes are taken in portions. Raises ``ValueError`` for an unknown edit, an index that has no
    code, a swap with k < 2 or of equal attributes, or a caption that is the zero vector.
    """
    for edit in edits:
        _check_edit(edit, draws.k)
    for name, index, codes in (("object", draws.objects, u), ("attribute", draws.attributes, v)):
        outside = index[(index < 0) | (index >= len(codes))]
        if len(outside):
            raise ValueError(f"the draws name {name} {int(outside[0])}, but the codes are those of 0 to {len(codes) - 1}")
    same = draws.attributes[:, 0] == draws.attributes[:, 1]
    if "swap" in edits and same.any():
        row = int(same.nonzero()[0])
        raise ValueError(f"scene {row} swaps attribute {int(draws.attributes[row, 0])} for itself; put two that differ first")
    found: dict[str, list[Tensor]] = {edit: [] for edit in edits}
    scene_bytes = 8 * 4 * (draws.k + 3) * bind(u[:1], v[:1]).shape[-1]
    for part in chunks(len(draws.objects), scene_bytes, min(memory_budget(), NEAR_CACHE)):
        o, a = draws.objects[part], draws.attributes[part]
        z = bind(u[o], v[a])
        pooled = z[:, :-1].sum(dim=1)
        for edit in edits:
            found[edit].append(edit_margin(pooled, _change(edit, bind, u, v, o, a)))
    return {edit: torch.cat(parts) for edit, parts in found.items()}


def _change(edit: str, bind: Bind, u: Tensor, v: Tensor, o: Tensor, a: Tensor) -> Tensor:
    """What the edit adds to the sum of atom codes, of shape (scenes, N)."""

    def z(i: int, j: int) -> Tensor:
        return bind(u[o[:, i]], v[a[:, j]])

    if edit == "swap":
        return z(0, 1) + z(1, 0) - z(0, 0) - z(1, 1)
    if edit == "add":
        return z(-1, -1)
    return z(0 if edit == "replace_attribute" else -1, 0 if edit == "replace_object" else -1) - z(0, 0)


def pooled_square(k: int, leak: Leakage) -> float:
    """‖Σ z‖² = k (g + (k − 1) ℓ_0) for k atoms that share nothing with each other.

    Raises ``ValueError`` if k < 1, or if the sum would have no positive length: no code has such leakages.
    """
    if k < 1:
        raise ValueError(f"a scene has k >= 1 atoms, got k = {k}")
    square = k * (leak.gain + (k - 1) * leak.neither)
    if not square > 0:
        raise ValueError(f"leakage {leak} leaves no caption at k = {k}: k (g + (k - 1) l_0) = {square:.3g}, must be positive")
    return square


def swap_margin(k: int, leak: Leakage) -> float:
    """The tied swap margin 2 (g − ℓ_o − ℓ_a + ℓ_0) / (k (g + (k − 1) ℓ_0)); for g = 1, ℓ_0 = 0 it is 2 (1 − ℓ_o − ℓ_a) / k.

    Exact for scenes of distinct objects and distinct attributes if all overlaps of a kind are equal; L Theorem E.7.
    Raises ``ValueError`` if k < 2 or as :func:`pooled_square` does.

    >>> swap_margin(2, Leakage(1, 0, 0, 0)), swap_margin(2, Leakage(1, 0.5, 0.5, 0))
    (1.0, 0.0)
    """
    _check_edit("swap", k)
    return 2 * leak.interaction / pooled_square(k, leak)


def replace_margin(k: int, leak: Leakage, keeps: str = "nothing") -> float:
    """The tied margin (g − ℓ) / (k (g + (k − 1) ℓ_0)) of one replaced atom, ℓ the leakage that the new atom keeps.

    ``keeps`` is "nothing" (ℓ_0), "object" (ℓ_o) or "attribute" (ℓ_a). With g = 1 and ℓ = ℓ_0 = 0 it is 1/k; L Theorem E.7.
    Raises ``ValueError`` for another word or as :func:`pooled_square` does.
    """
    kept = {"nothing": leak.neither, "object": leak.object, "attribute": leak.attribute}
    if keeps not in kept:
        raise ValueError(f"keeps is {keeps!r}, expected one of {tuple(kept)}")
    return (leak.gain - kept[keeps]) / pooled_square(k, leak)


def add_margin(k: int, leak: Leakage) -> float:
    """The tied margin 1 − √(k (g + k ℓ_0) / ((k + 1)(g + (k − 1) ℓ_0))) of one added atom; for ℓ_0 = 0 it is 1 − √(k / (k + 1)).

    L Theorem E.7. Raises ``ValueError`` as :func:`pooled_square` does.
    """
    return 1 - k / (k + 1) * math.sqrt(pooled_square(k + 1, leak) / pooled_square(k, leak))


def predicted(edit: str, k: int, leak: Leakage) -> float:
    """The closed form of the margin of one of EDITS. Raises ``ValueError`` as the three closed forms do, or for another edit."""
    _check_edit(edit, k)
    if edit == "swap":
        return swap_margin(k, leak)
    if edit == "add":
        return add_margin(k, leak)
    return replace_margin(k, leak, {"replace_attribute": "object", "replace_object": "attribute"}.get(edit, "nothing"))


def deviation(edit: str, k: int, N: int) -> float:
    """Standard deviation of a margin over random product sign codes, to first order in 1/N (new).

    swap (2/k) √((5 − 10/k + 8/k²)/N); replace, whatever it keeps, (1/k) √((3 − 4/k + 2/k²)/N); add 1 / ((k + 1) √(2N)).
    Raises ``ValueError`` for an unknown edit, k < 1 (a swap: k < 2) or N < 1.
    """
    _check_edit(edit, k)
    _check_dimension(N)
    if edit == "swap":
        return 2 / k * math.sqrt((5 - 10 / k + 8 / k**2) / N)
    if edit == "add":
        return 1 / ((k + 1) * math.sqrt(2 * N))
    return 1 / k * math.sqrt((3 - 4 / k + 2 / k**2) / N)


def bias(edit: str, k: int, N: int) -> float:
    """Mean of a margin over random product sign codes minus its value without leakage, to first order in 1/N (new).

    swap (2/k)(1 − 2/k)²/N; replace (1/k)(1 − 1/k)²/N; add √(k/(k + 1)) (2k − 1) / (4k(k + 1)N). Raises as :func:`deviation`.
    """
    _check_edit(edit, k)
    _check_dimension(N)
    if edit == "swap":
        return 2 / k * (1 - 2 / k) ** 2 / N
    if edit == "add":
        return math.sqrt(k / (k + 1)) * (2 * k - 1) / (4 * k * (k + 1) * N)
    return 1 / k * (1 - 1 / k) ** 2 / N


def ceiling(k: int, M: int, K: int) -> float:
    """The most that the smallest swap margin of a tied pooled code can be, 2MK / (k ((M − 1)(K − 1) + k − 1)) (new).

    For all unit atom codes, factored or not, if k ≥ 3, and for k = 2 if all captions have the same length before
    normalisation; reached when object and attribute codes are both simplices. Raises ``ValueError`` unless 2 ≤ k ≤ min(M, K).

    >>> round(ceiling(4, 40, 40) / (2 / 4), 3)
    1.05
    """
    if not 2 <= k <= min(M, K):
        raise ValueError(f"need 2 <= k <= min(M, K), got k = {k}, M = {M}, K = {K}")
    return 2 * M * K / (k * ((M - 1) * (K - 1) + k - 1))


def best_image(block: Tensor) -> Tensor:
    """The image of length one that separates a scene best from all its swaps, from the codes z(o_i, a_j), (*, k, k, N) (new).

    i ∝ Σ_i z(o_i, a_i) − (1/(k − 1)) Σ_{i≠j} z(o_i, a_j): for what is there, against what a swap would put there.
    Raises ``ValueError`` if the block is not square in k, k < 2, or the code is additive on the block: i is zero to the
    rounding k² ε Σ ‖z‖ of k² summands.
    """
    k = block.shape[-2] if block.ndim >= 3 else 0
    if k < 2 or block.shape[-3] != k:
        raise ValueError(f"the block has shape {tuple(block.shape)}, expected (*, k, k, N) with k >= 2")
    bound = block.diagonal(dim1=-3, dim2=-2).sum(dim=-1)
    image = bound - (block.sum(dim=(-3, -2)) - bound) / (k - 1)
    rounding = k**2 * torch.finfo(block.dtype).eps * block.norm(dim=-1).sum(dim=(-2, -1))
    if (image.norm(dim=-1) <= rounding).any():
        raise ValueError("the code is additive on this block: every swap leaves the caption as it is, no image can tell")
    return unit(image, "the image")


def best_image_margin(k: int, leak: Leakage) -> float:
    """The smallest margin of :func:`best_image` over all swaps, 2 √(κ / ((k − 1) k (g + (k − 1) ℓ_0))), κ the interaction (new).

    No image does better. With g = 1 and no leakage it is 2 / √(k (k − 1)). Hypotheses and errors as for :func:`swap_margin`.
    """
    _check_edit("swap", k)
    return 2 * math.sqrt(max(leak.interaction, 0.0) / ((k - 1) * pooled_square(k, leak)))


def mixing_angle(distance: float, k: int = 2) -> float:
    """The angle θ = arcsin(√k d / 2), in radians, of the code z_θ whose captions lie at distance d from their swaps (new).

    For a caption of k atoms of any encoder: the interpolated code that would have its swap distance; 0 is a bag of factors.
    Raises ``ValueError`` unless k ≥ 2 and 0 ≤ d ≤ 2/√k, the distance of the product code.

    >>> round(math.degrees(mixing_angle(0.5)), 1)
    20.7
    """
    _check_edit("swap", k)
    sine = math.sqrt(k) * distance / 2
    if not 0 <= sine <= 1 + 4 * torch.finfo(torch.float64).eps:  # three roundings on the way to the end of the range
        raise ValueError(f"swap distance {distance} is outside [0, {2 / math.sqrt(k):.3f}], the range of these codes at k = {k}")
    return math.asin(min(sine, 1.0))


def _same_dimension(u: Tensor, v: Tensor) -> int:
    if u.shape[-1] != v.shape[-1]:
        raise ValueError(f"object codes have dimension {u.shape[-1]}, attribute codes {v.shape[-1]}; draw both in the same N")
    return _check_dimension(u.shape[-1])


def _check_dimension(N: int) -> int:
    if N < 1:
        raise ValueError(f"the dimension must be N >= 1, got N = {N}")
    return N


def _check_edit(edit: str, k: int) -> None:
    if edit not in EDITS:
        raise ValueError(f"no edit {edit!r}; known: {', '.join(EDITS)}")
    least = 2 if edit == "swap" else 1
    if k < least:
        raise ValueError(f"the edit {edit!r} needs k >= {least} atoms, got k = {k}")


def _table_shape(z: Tensor) -> tuple[int, int, int]:
    if z.ndim != 3 or min(z.shape[:2]) < 2:
        raise ValueError(f"the table has shape {tuple(z.shape)}, expected (M, K, N) with at least two objects and two attributes")
    return z.shape[0], z.shape[1], z.shape[2]
