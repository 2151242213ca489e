"""Depth: recursive role-binding codes, the margin of a deep edit, and the depth that a dimension can resolve.

A code of depth D pools b codes of depth D − 1, each multiplied by the role of its place, so its tree has b^D leaves. It is
evaluated depth first: what stands in memory is one vector a level, never the tree. Signs travel as bits, 64 in a word, so that
multiplying by a role is an exclusive or; a set bit is the sign −1.
"""

from dataclasses import dataclass
from fractions import Fraction

import torch

from binding.numerics import unit

BLOCK = 2**17
"""Signs that one vector of a batch of draws may hold, so that sums stay in the cache; the order of the draws depends on it."""
BYTES = 0x0101010101010101
"""A word whose eight bytes are each one."""


def margin_limit(b: int, D: int) -> Fraction:
    """The margin of an edit at depth D in the limit N → ∞, m(D) = 2 b^{−D} (Theorem 3.3), exactly.

    Raises ``ValueError`` unless b ≥ 2 and D ≥ 1.

    >>> margin_limit(3, 2)
    Fraction(2, 9)
    """
    _check(b, D, at_least=1)
    return Fraction(2, b**D)


def mean_correction(b: int, D: int) -> Fraction:
    """What finite N adds to the mean: E[m] = 2 b^{−D} (1 + c/N) + O(N⁻²), c = (1 − 2/b)² + (1 − 1/b) Σ_{d=2..D} (1 − 2 b^{−d}).

    New in this book. Raises ``ValueError`` unless b ≥ 2 and D ≥ 1.

    >>> mean_correction(2, 1)
    Fraction(0, 1)
    """
    _check(b, D, at_least=1)
    return (1 - Fraction(2, b)) ** 2 + (1 - Fraction(1, b)) * sum(1 - margin_limit(b, d) for d in range(2, D + 1))


def relative_variance(b: int, D: int) -> Fraction:
    """N Var[m] / E[m]² to first order in 1/N: 5 − 10/b + 8/b² + (2 − 2/b) Σ_{d=2..D} (1 − 2 b^{−d}).

    The first three terms belong to the edited node, each further summand to one more level of normalised pooling.
    New in this book. Raises ``ValueError`` unless b ≥ 2 and D ≥ 1.

    >>> relative_variance(2, 1), relative_variance(2, 2)
    (Fraction(2, 1), Fraction(5, 2))
    """
    _check(b, D, at_least=1)
    edited = 5 - Fraction(10, b) + Fraction(8, b**2)
    return edited + (2 - Fraction(2, b)) * sum(1 - margin_limit(b, d) for d in range(2, D + 1))


def deviation(b: int, D: int, N: int) -> float:
    """The standard deviation of a margin as a share of its mean, √(``relative_variance`` / N).

    Raises ``ValueError`` unless b ≥ 2, D ≥ 1 and N ≥ 1.
    """
    _check(b, D, N, at_least=1)
    return float(relative_variance(b, D) / N) ** 0.5


def noise_floor(N: int) -> float:
    """The margin below which an edit counts as lost, 10/√N: ten standard deviations of the overlap of two unrelated codes.

    Raises ``ValueError`` unless N ≥ 1.
    """
    _check(2, 1, N)
    return 10 / N**0.5


def resolvable_depth(b: int, N: int) -> int:
    """D* = ⌊log_b(√N / 5)⌋, the largest D with 2 b^{−D} ≥ 10/√N, that is with 25 b^{2D} ≤ N (Corollary 3.4); integers only.

    Raises ``ValueError`` unless b ≥ 2 and N ≥ 25: below that, not even depth 0 clears the floor.

    >>> [resolvable_depth(b, 65536) for b in (2, 3, 4)]
    [5, 3, 2]
    """
    _check(b, 1)
    if N < 25:
        raise ValueError(f"N = {N} resolves no depth at all, since 2 < 10/√N; use N >= 25")
    D = 0
    while dimension_for(b, D + 1) <= N:
        D += 1
    return D


def dimension_for(b: int, D: int) -> int:
    """The smallest dimension that resolves depth D, N = 25 b^{2D}: each further level costs a factor b².

    Raises ``ValueError`` unless b ≥ 2 and D ≥ 0.
    """
    _check(b, D)
    return 25 * b ** (2 * D)


def draw_words(shape: tuple[int, ...], N: int, generator: torch.Generator, to: torch.device | None = None) -> torch.Tensor:
    """Fair signs as bits: int64 words of shape (*shape, ⌈N/64⌉), drawn on the CPU generator and then moved.

    Raises ``ValueError`` unless N ≥ 1.
    """
    _check(2, 1, N)
    return torch.empty((*shape, -(-N // 64)), dtype=torch.int64).random_(-(2**63), None, generator=generator).to(to)


def unpack(words: torch.Tensor, N: int) -> torch.Tensor:
    """The N signs of packed words of shape (*, ⌈N/64⌉), as int8 of shape (*, N)."""
    return _sum_of_signs(words[None], N)


def _sum_of_signs(words: torch.Tensor, N: int) -> torch.Tensor:
    """Σ_i of b packed sign vectors, (b, *, ⌈N/64⌉) to int8 (*, N): b − 2 · (set bits), eight coordinates a word at once."""
    shifts = torch.arange(8, device=words.device)[:, None]
    counts = ((words[..., None, :] >> shifts) & BYTES).sum(0)
    return torch.rsub(counts.view(torch.int8), len(words), alpha=2).flatten(-2)[..., :N]


def fold(leaves: torch.Tensor, roles: torch.Tensor) -> torch.Tensor:
    """Definition L.1 as it stands, T_D = unit(Σ_i R_{D,i} ⊙ T_{D−1}^{(i)}), on a whole tree; costs the memory of the tree.

    ``leaves`` of shape (b^D, *, N) in the order of their paths, ``roles`` of shape (D, b, *, N) from the lowest level up; gives
    unit codes of shape (*, N). Raises ``ValueError`` if the leaves are not b^D, or where a sum is zero.
    """
    D, b = roles.shape[:2] if len(roles) else (0, 1)
    if len(leaves) != b**D:
        raise ValueError(f"{D} levels of {b} roles need {b**D} leaves, got {len(leaves)}")
    codes = unit(leaves, "leaves")
    for R in roles:
        codes = unit((R * codes.unflatten(0, (-1, b))).sum(1), "the sum of the children")
    return codes[0]


@dataclass(frozen=True)
class _Forest:
    """Trees with fresh leaves under given packed roles (D, b, draws, ⌈N/64⌉), evaluated depth first."""

    roles: torch.Tensor
    N: int
    generator: torch.Generator
    dtype: torch.dtype

    def leaves(self, n: int) -> torch.Tensor:
        """Fresh packed leaves, (n, draws, ⌈N/64⌉)."""
        return draw_words((n, self.roles.shape[2]), self.N, self.generator, self.roles.device)

    def sums(self, d: int, above: torch.Tensor) -> torch.Tensor:
        """P ⊙ Σ_i R_{d,i} ⊙ child_i, not normalised, for the product P of the roles above; (draws, N)."""
        roles = self.roles[d - 1] ^ above
        return _sum_of_signs(self.leaves(len(roles)) ^ roles, self.N).to(self.dtype) if d == 1 else self.pool(d - 1, roles)

    def pool(self, d: int, roles: torch.Tensor) -> torch.Tensor:
        """Σ_i R_i ⊙ T_d^{(i)} over fresh unit codes of depth d; roles of shape (n, draws, ⌈N/64⌉), result (draws, N)."""
        if d == 0:
            return _sum_of_signs(self.leaves(len(roles)) ^ roles, self.N).to(self.dtype) / self.N**0.5
        first, *others = roles
        total = self.sums(d, first)
        total *= 1 / _length(total)
        for role in others:
            child = self.sums(d, role)
            total.addcmul_(child, 1 / _length(child))
        return total


def code(
    b: int,
    D: int,
    N: int,
    draws: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float32,
    to: torch.device | None = None,
) -> torch.Tensor:
    """Codes of depth D with fresh roles and leaves, one a draw: unit vectors of shape (draws, N) (Definition L.1).

    Raises ``ValueError`` for b < 2 or b > 127, D < 0, N < 1, draws < 1, or N so small that a sum was zero.
    """
    _check(b, D, N, draws)
    codes = []
    for n in _blocks(N, draws):
        forest = _Forest(draw_words((D, b, n), N, generator, to), N, generator, dtype)
        leaf = draw_words((n,), N, generator, to) if D == 0 else None
        total = forest.sums(D, torch.zeros_like(forest.roles[0, 0])) if leaf is None else unpack(leaf, N).to(dtype)
        codes.append(total / _length(total))
    return _defined(torch.cat(codes), b, N)


def margins(
    b: int,
    D: int,
    N: int,
    draws: int,
    generator: torch.Generator,
    *,
    chain: bool = False,
    dtype: torch.dtype = torch.float32,
    to: torch.device | None = None,
) -> torch.Tensor:
    """Margins m(d) = 1 − <T_d, T'_d> of one edit seen from depth d = 1 … D of the same tree: float64 of shape (D, draws).

    The edit swaps the first two leaves of the tree. T'_d differs from T_d on the path to them alone, so every other subtree is
    evaluated once and serves both. All b^D leaves and all roles are drawn, afresh for each draw, on the CPU generator; in a
    ``chain`` the children beside the path are single leaves instead of trees, as in a phrase that nests on one side. ``to`` is
    where they are summed, for example CUDA. Subtrees beside the path are summed in ``dtype`` (float32 changes a margin by some
    1e-6 of it, far below its spread of 1/√N), the path in float64. Memory is O(D N) a draw; a batch of draws has
    at most ``BLOCK`` signs a vector, or one draw. Definition L.1, Theorem 3.3.
    Raises ``ValueError`` for b < 2 or b > 127, D < 1, N < 1, draws < 1, or N so small that a sum was zero.
    """
    _check(b, D, N, draws, at_least=1)
    found = []
    for n in _blocks(N, draws):
        forest = _Forest(draw_words((D, b, n), N, generator, to), N, generator, dtype)
        found.append(torch.stack(_path_margins(forest, chain)).cpu())
    return _defined(torch.cat(found, dim=1), b, N)


def _path_margins(forest: _Forest, chain: bool) -> list[torch.Tensor]:
    N, lowest = forest.N, forest.leaves(forest.roles.shape[1])
    swapped = torch.cat([lowest[1:2], lowest[0:1], lowest[2:]])
    T, edited = (_unit(_sum_of_signs(leaves ^ forest.roles[0], N).double()) for leaves in (lowest, swapped))
    found = [1 - (T * edited).sum(-1)]
    for d, (role, *beside) in enumerate(forest.roles[1:], start=1):
        rest = forest.pool(0 if chain else d, torch.stack(beside))
        sign = unpack(role, N)
        T, edited = _unit(sign * T + rest), _unit(sign * edited + rest)
        found.append(1 - (T * edited).sum(-1))
    return found


def _blocks(N: int, draws: int) -> list[int]:
    size = max(1, BLOCK // N)
    return [min(size, draws - start) for start in range(0, draws, size)]


def _length(x: torch.Tensor) -> torch.Tensor:
    # Not linalg.vector_norm: its float32 sum runs in order and loses some 2e-5 at N = 65,536, where this one works by halves.
    return x.square().sum(-1, keepdim=True).sqrt()


def _unit(x: torch.Tensor) -> torch.Tensor:
    return x / _length(x)


def _defined(x: torch.Tensor, b: int, N: int) -> torch.Tensor:
    if not x.isfinite().all():
        raise ValueError(f"a sum of b = {b} codes was zero in dimension N = {N}, and zero has no direction; use a larger N")
    return x


def _check(b: int, D: int, N: int = 1, draws: int = 1, *, at_least: int = 0) -> None:
    if not 2 <= b <= 127:
        raise ValueError(f"b = {b} children a node; need 2 <= b <= 127 (a sum of signs is kept in one byte)")
    if D < at_least:
        raise ValueError(f"depth D = {D}; need D >= {at_least}" + (": a code of depth 0 has nothing to swap" if at_least else ""))
    if N < 1 or draws < 1:
        raise ValueError(f"N = {N} and draws = {draws}; need N >= 1 and draws >= 1")
