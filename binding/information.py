"""Codes of scenes, their features, and exact priors over them: how many bits there are to know before anything is seen.

Every feature group g has n_g values (8 colours, 8 shapes). An object is one value of each group, so there are K = n₁ ⋯ n_G
objects, in row-major order (last group fastest). A scene is the code o ∈ {0,1}^K of the objects in it. Its features are
f ∈ {0,1}^(n₁ + … + n_G), which values occur at all: a function of o. Entropies are in bits, log odds in nats. F, section 2.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from math import comb, log, log2, prod
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor

Ints: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Prior(Protocol):
    """A law of scene codes with all that a probe starts from; its entropies are H(O), H(F) and H(O | F), in bits."""

    groups: tuple[int, ...]
    K: int
    entropy: float
    entropy_features: float
    entropy_given_features: float

    def log_odds(self, o: Tensor) -> Tensor:
        """log p(o_k = 1 | o_<k) / p(o_k = 0 | o_<k), (n, K) → (n, K) float64; ±∞ where o_<k leaves no choice."""

    def feature_log_odds(self, f: Tensor) -> Tensor:
        """log p(f_j = 1 | f_<j) / p(f_j = 0 | f_<j), (n, n₁ + … + n_G) → the same shape."""

    def log_odds_given_features(self, o: Tensor, f: Tensor) -> Tensor:
        """log p(o_k = 1 | o_<k, f) / p(o_k = 0 | o_<k, f), (n, K) and (n, n₁ + … + n_G) → (n, K)."""

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent codes, (n, K) uint8."""


def features(o: Tensor, groups: Sequence[int]) -> Tensor:
    """f of o: value v of group g occurs if some object with that value does; (*, K) → (*, n₁ + … + n_G), of o's type.

    Raises ``ValueError`` for a group without a value, another last dimension than K, or an entry that is not 0 or 1.

    >>> features(torch.tensor([1, 0, 0, 1]), (2, 2)), features(torch.tensor([1, 1, 0, 0]), (2, 2))
    (tensor([1, 1, 1, 1]), tensor([1, 0, 1, 1]))
    """
    groups = _check_groups(groups)
    if o.ndim < 1 or o.shape[-1] != prod(groups):
        raise ValueError(f"o has shape {tuple(o.shape)}; groups {groups} have {prod(groups)} objects, in the last dimension")
    _check_rows(o.reshape(-1, prod(groups)), prod(groups), "o")
    grid = o.reshape(*o.shape[:-1], *groups)
    first = o.ndim - 1
    marks = (grid.movedim(first + g, -1).reshape(*o.shape[:-1], prod(groups) // n, n).amax(dim=-2) for g, n in enumerate(groups))
    return torch.cat(list(marks), dim=-1)


def coverings(sides: Sequence[int], k: int) -> int:
    """N_k(a₁, …, a_G) = Σ_i (−1)^{Σ(a − i)} ∏ C(a_g, i_g) C(i₁ ⋯ i_G, k): the sets of k cells of a grid that miss no line of it.

    Inclusion–exclusion over the values that occur; exact. Raises ``ValueError`` for a negative side or k.

    >>> coverings((6, 6), 18), coverings((2, 2), 2)
    (8058525440, 2)
    """
    if k < 0 or any(a < 0 for a in sides):
        raise ValueError(f"sides {tuple(sides)} and k = {k} must not be negative")
    total = 0
    for inner in product(*(range(a + 1) for a in sides)):
        ways = prod(comb(a, i) for a, i in zip(sides, inner, strict=True))
        total += (-1) ** (sum(sides) - sum(inner)) * ways * comb(prod(inner), k)
    return total


class _Counted:
    """Uniform over all codes with an allowed number of objects and, if ``shown`` is given, so many values of each group."""

    def __init__(self, groups: Sequence[int], sizes: Sequence[int], shown: Sequence[int] | None = None) -> None:
        self.groups = _check_groups(groups)
        self.K = prod(self.groups)
        self.sizes = tuple(sizes)
        choices = [(s,) for s in shown] if shown is not None else [tuple(range(n + 1)) for n in self.groups]
        counts = {a: sum(coverings(a, k) for k in self.sizes) for a in product(*choices)}
        self._codes = {a: count for a, count in counts.items() if count}
        """By the number of values shown of each group: how many codes have exactly one given set of features."""
        mass = {a: count * prod(comb(n, s) for n, s in zip(self.groups, a, strict=True)) for a, count in self._codes.items()}
        self.total = sum(mass.values())
        """The number of codes."""
        if not 0 < self.total < 1 << 1000:  # float64 ends near 2^1024
            raise ValueError(
                f"{self.sizes} objects and {shown} values in groups {self.groups} give {self.total} codes, need 1 to 2^1000"
            )
        self.entropy = log2(self.total)
        self.entropy_given_features = sum(mass[a] / self.total * log2(self._codes[a]) for a in mass)
        self.entropy_features = sum(mass[a] / self.total * (self.entropy - log2(self._codes[a])) for a in mass)
        self._tables: dict[tuple[int, int], _Completions] = {}

    def feature_log_odds(self, f: Tensor) -> Tensor:
        """See :class:`Prior`. Raises ``ValueError`` for features that no code of this prior has."""
        bits = _check_rows(f, sum(self.groups), "f")
        self._check_features(bits)
        odds, before = np.empty(bits.shape), 0
        done: list[Ints] = []
        for n, tables in zip(self.groups, self._feature_counts, strict=True):
            seen = np.zeros(len(bits), dtype=np.intp)
            for j in range(n):
                odds[:, before + j] = _log_ratio(tables[j + 1][(*done, seen + 1)], tables[j + 1][(*done, seen)])
                seen = seen + bits[:, before + j]
            done.append(seen)
            before += n
        return torch.from_numpy(odds)

    def log_odds_given_features(self, o: Tensor, f: Tensor) -> Tensor:
        """See :class:`Prior`: given f, all sets of cells that miss no line of the shown rows and columns are equally likely.

        Raises ``ValueError`` for another number of groups than two, for a code outside this prior, and where f is not o's.
        """
        bits = self._check(o)
        if len(self.groups) != 2:
            raise ValueError(f"log odds given features are exact for two groups, got {self.groups}; use Enumerated")
        _check_own_features(o, f, self.groups)
        shown = f.cpu().numpy().astype(np.intp)
        n1, odds = self.groups[0], np.full(bits.shape, -np.inf)
        inside = (shown[:, :n1, None] & shown[:, None, n1:]).reshape(bits.shape).astype(bool)
        sides = np.stack([shown[:, :n1].sum(axis=1), shown[:, n1:].sum(axis=1)], axis=1)
        for a, b in np.unique(sides[sides[:, 0] > 0], axis=0).tolist():
            rows = np.flatnonzero((sides == (a, b)).all(axis=1))
            if (a, b) not in self._tables:
                self._tables[a, b] = _Completions((a, b), (a, b), self.sizes)
            cells = inside[rows]
            part = odds[rows]
            part[cells] = self._tables[a, b].log_odds(bits[rows][cells].reshape(len(rows), a * b)).ravel()
            odds[rows] = part
        return torch.from_numpy(odds)

    def _check(self, o: Tensor) -> Ints:
        """The bits of o, or ``ValueError`` that names the first row outside this prior."""
        bits = _check_rows(o, self.K, "o")
        bad = np.flatnonzero(~np.isin(bits.sum(axis=1), self.sizes))
        if bad.size:
            raise ValueError(f"o has {bits[bad[0]].sum()} objects in row {bad[0]}; codes of this prior have {self.sizes}")
        self._check_features(features(torch.from_numpy(bits), self.groups).numpy())
        return bits

    def _check_features(self, bits: Ints) -> None:
        ends = np.cumsum(self.groups)
        sides = np.stack([part.sum(axis=1) for part in np.split(bits, ends[:-1], axis=1)], axis=1)
        for side in np.unique(sides, axis=0):
            if tuple(side.tolist()) not in self._codes:
                row = int(np.flatnonzero((sides == side).all(axis=1))[0])
                raise ValueError(f"row {row} shows {tuple(side.tolist())} values of the groups, which no code of this prior does")

    @cached_property
    def _feature_counts(self) -> list[list[Floats]]:
        """For group g and bit j: the number of codes, by values shown of the groups before and among the first j of g."""
        counts = np.zeros([n + 1 for n in self.groups])
        for a, codes in self._codes.items():
            counts[a] = float(codes)
        found: list[list[Floats]] = []
        for n in reversed(self.groups):
            tables = [counts]
            for _ in range(n):
                tables.insert(0, tables[0][..., :-1] + tables[0][..., 1:])
            found.insert(0, tables)
            counts = tables[0][..., 0]
        return found


class Subsets(_Counted):
    """All sets of k of the K objects, equally likely. Raises ``ValueError`` unless 0 ≤ k ≤ K.

    >>> prior = Subsets((3, 3), 4)
    >>> prior.total, round(prior.entropy, 5), round(prior.entropy_features, 5), round(prior.entropy_given_features, 5)
    (126, 6.97728, 2.96735, 4.00993)
    """

    def __init__(self, groups: Sequence[int], k: int) -> None:
        self.k = _check_size(k, _check_groups(groups))
        super().__init__(groups, (k,))

    def log_odds(self, o: Tensor) -> Tensor:
        """log r / (m − r), with r objects still to come on m cells; see :class:`Prior`."""
        bits = self._check(o)
        to_come = self.k - (bits.cumsum(axis=1) - bits)
        return torch.from_numpy(_log_ratio(to_come, np.arange(self.K, 0, -1) - to_come))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """See :class:`Prior`."""
        return (_ranks(n, self.K, generator) < self.k).to(torch.uint8)


class UpTo(_Counted):
    """All codes of at most ``most`` objects, even none, equally likely. Raises ``ValueError`` unless 0 ≤ most ≤ K."""

    def __init__(self, groups: Sequence[int], most: int) -> None:
        self.most = _check_size(most, _check_groups(groups))
        super().__init__(groups, range(most + 1))

    def log_odds(self, o: Tensor) -> Tensor:
        """log A(q − 1) / A(q), with A(q) = Σ_{j ≤ q} C(cells after k, j) and q objects still allowed; see :class:`Prior`."""
        bits = self._check(o)
        allowed = self.most - (bits.cumsum(axis=1) - bits)
        after = np.arange(self.K - 1, -1, -1)
        ways = np.array([[comb(m, j) for j in range(self.most + 1)] for m in range(self.K)], dtype=float).cumsum(axis=1)
        ways = np.pad(ways, ((0, 0), (1, 0)))
        return torch.from_numpy(_log_ratio(ways[after, allowed], ways[after, allowed + 1]))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """See :class:`Prior`."""
        share = np.cumsum([comb(self.K, k) / self.total for k in self.sizes])
        sizes = np.searchsorted(share[:-1], _uniform((n, 1), generator), side="right")
        return (_ranks(n, self.K, generator) < torch.from_numpy(sizes)).to(torch.uint8)


class Balanced(_Counted):
    """``shown`` values of each of two groups and k of their cells that miss none of them, all such codes equally likely.

    The published ColorShape is ``Balanced((8, 8), (6, 6), 18)``. Raises ``ValueError`` unless there is such a code.

    >>> prior = Balanced((8, 8), (6, 6), 18)
    >>> prior.total, round(prior.entropy, 4), round(prior.entropy_features, 4), round(prior.entropy_given_features, 4)
    (6317883944960, 42.5226, 9.6147, 32.9079)
    """

    def __init__(self, groups: Sequence[int], shown: Sequence[int], k: int) -> None:
        if len(groups) != 2 or len(shown) != 2:
            raise ValueError(f"Balanced takes two groups and two numbers of values, got {tuple(groups)} and {tuple(shown)}")
        self.shown, self.k = (int(shown[0]), int(shown[1])), _check_size(k, _check_groups(groups))
        super().__init__(groups, (k,), shown)

    @cached_property
    def _completions(self) -> "_Completions":
        return _Completions((self.groups[0], self.groups[1]), self.shown, self.sizes)

    def log_odds(self, o: Tensor) -> Tensor:
        """By counting how many codes begin in either way; see :class:`Prior`."""
        return torch.from_numpy(self._completions.log_odds(self._check(o)))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """See :class:`Prior`; cell by cell, so that no draw is ever rejected."""
        return torch.from_numpy(self._completions.draw(_uniform((n, self.K), generator)))


class _Completions:
    """In how many ways the cells from k on can be filled, so that in the end so many rows and columns are occupied.

    Row-major order makes the columns left of the current cell alike, and those right of it. So the state has five numbers: rows
    occupied above, whether this row is, columns occupied on the left, and on the right (the current one is on the right), and
    objects so far. All sums are of positive terms: exact below 2^53, and within K ε of exact above.
    """

    def __init__(self, sides: tuple[int, int], occupied: tuple[int, int], sizes: Sequence[int]) -> None:
        self.sides = sides
        (n1, n2), (s1, s2), most = sides, occupied, max(sizes)
        # One more place on every axis stays zero: a state there can no longer be completed.
        below = np.zeros((s1 + 2, s2 + 2, most + 2))
        below[s1, s2, list(sizes)] = 1
        tables: list[Floats] = []
        for _ in range(n1):
            ways = np.zeros((s1 + 2, 2, s2 + 2, s2 + 2, most + 2))
            ways[:, 0, :, 0] = below
            ways[:-1, 1, :, 0] = below[1:]
            for right in range(1, n2 + 1):
                tables.append(ways)
                filled = np.zeros_like(ways)
                filled[:, :, :-1, :, :-1] = ways[:, 1:, 1:, :, 1:]
                # Columns on the right are alike: take the current one to be free, unless all of them are occupied.
                before = ways + filled
                if right <= s2:
                    before[:, :, :, right] = 0
                    before[:, :, :-1, right] = ways[:, :, 1:, right - 1]
                    before[:, :, :, right] += filled[:, :, :, right - 1]
                ways = before
            below = ways[:, 0, 0]
        self.tables = tables[::-1]
        """After every cell, in order: the number of ways, by the state."""
        self.total = float(below[0, 0, 0])

    def walk(self, n: int, choose: Callable[[int, Floats, Floats], Ints]) -> None:
        """Fill the cells of n codes in order; ``choose`` gets k and the ways with o_k = 1 and with 0, and says o_k."""
        n1, n2 = self.sides
        rows, objects, occupied = np.zeros(n, np.intp), np.zeros(n, np.intp), np.zeros((n, n2), np.intp)
        for i in range(n1):
            row = np.zeros(n, np.intp)
            for j in range(n2):
                left, here, right = occupied[:, :j].sum(axis=1), occupied[:, j], occupied[:, j + 1 :].sum(axis=1)
                ways = self.tables[i * n2 + j]
                on = choose(
                    i * n2 + j,
                    ways[rows, 1, left + 1, right, objects + 1],
                    ways[rows, row, left + here, right, objects],
                )
                row, objects = row | on, objects + on
                occupied[:, j] |= on
            rows = rows + row

    def log_odds(self, bits: Ints) -> Floats:
        """The log odds of every cell given those before it, (n, K), for codes that can be completed."""
        odds = np.empty(bits.shape)

        def follow(k: int, one: Floats, zero: Floats) -> Ints:
            odds[:, k] = _log_ratio(one, zero)
            return bits[:, k]

        self.walk(len(bits), follow)
        return odds

    def draw(self, uniform: Floats) -> np.ndarray:
        """Codes, (n, K) uint8, from independent uniform numbers of that shape."""
        codes = np.zeros(uniform.shape, dtype=np.uint8)

        def toss(k: int, one: Floats, zero: Floats) -> Ints:
            on = uniform[:, k] * (one + zero) < one
            codes[:, k] = on
            return on.astype(np.intp)

        self.walk(len(uniform), toss)
        return codes


class Enumerated:
    """Any law given as a list of codes (S, K) and their probabilities (uniform unless given); equal codes are added up.

    Raises ``ValueError`` for an entry that is not 0 or 1, or probabilities that are negative or do not sum to one.

    >>> prior = Enumerated(torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0]]), (2, 2))
    >>> prior.entropy, prior.entropy_features, prior.entropy_given_features
    (1.0, 0.0, 1.0)
    """

    def __init__(self, codes: Tensor, groups: Sequence[int], probabilities: Any = None) -> None:
        self.groups = _check_groups(groups)
        self.K = prod(self.groups)
        bits = _check_rows(codes, self.K, "codes")
        p = _check_law(np.full(len(bits), 1 / max(len(bits), 1)) if probabilities is None else probabilities, len(bits))
        unique, at = np.unique(bits[p > 0], axis=0, return_inverse=True)
        self.probabilities = np.bincount(at.ravel(), weights=p[p > 0])
        """(S,), those of ``codes``."""
        self.codes = torch.from_numpy(unique.astype(np.uint8))
        """(S, K) uint8, all different, in lexicographic order."""
        shown = features(self.codes, self.groups).numpy()
        self.labels = np.unique(shown, axis=0, return_inverse=True)[1].ravel()
        """(S,), equal numbers where the features are equal."""
        self.entropy = _entropy(self.probabilities)
        self.entropy_features = _entropy(np.bincount(self.labels, weights=self.probabilities))
        self.entropy_given_features = self.entropy - self.entropy_features
        self._odds = _prefix_log_odds(unique, self.probabilities)
        self._joint_odds = _prefix_log_odds(np.hstack([shown, unique]), self.probabilities)
        self._row, self._feature_row = ({row.tobytes(): i for i, row in enumerate(rows)} for rows in (self.codes.numpy(), shown))

    def log_odds(self, o: Tensor) -> Tensor:
        """By adding up the probabilities of all codes with the same beginning; see :class:`Prior`."""
        return torch.from_numpy(self._odds[self._find(o, self._row, self.K, "o")])

    def feature_log_odds(self, f: Tensor) -> Tensor:
        """The same for features; see :class:`Prior`."""
        n = sum(self.groups)
        return torch.from_numpy(self._joint_odds[self._find(f, self._feature_row, n, "f"), :n])

    def log_odds_given_features(self, o: Tensor, f: Tensor) -> Tensor:
        """The same among the codes with these features; see :class:`Prior`. Raises ``ValueError`` where f is not o's."""
        rows = self._find(o, self._row, self.K, "o")
        _check_own_features(o, f, self.groups)
        return torch.from_numpy(self._joint_odds[rows, sum(self.groups) :])

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """See :class:`Prior`."""
        return self.codes[np.searchsorted(self.probabilities.cumsum()[:-1], _uniform((n,), generator), side="right")]

    def _find(self, rows: Tensor, known: dict[bytes, int], n: int, name: str) -> Ints:
        bits = _check_rows(rows, n, name).astype(np.uint8)
        found = np.array([known.get(row.tobytes(), -1) for row in bits], dtype=np.intp)
        if (found < 0).any():
            row = int(np.flatnonzero(found < 0)[0])
            raise ValueError(f"{name} in row {row} is {''.join(map(str, bits[row]))}, which has no probability under this prior")
        return found


def _prefix_log_odds(rows: Ints, p: Floats) -> Floats:
    """The log odds of every bit of these rows given the bits before it, under the law p; (S, m)."""
    odds, prefix = np.empty(rows.shape), np.zeros(len(rows), dtype=np.intp)
    for k in range(rows.shape[1]):
        extended = 2 * prefix + rows[:, k]
        mass = np.bincount(extended, weights=p, minlength=2 * int(prefix.max()) + 2).reshape(-1, 2)
        odds[:, k] = _log_ratio(mass[prefix, 1], mass[prefix, 0])
        prefix = np.unique(extended, return_inverse=True)[1].ravel()
    return odds


def _log_ratio(one: Any, zero: Any) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(one) - np.log(zero), dtype=np.float64)


def _entropy(p: Any) -> float:
    return float(entr(p).sum() / log(2))


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> Floats:
    return torch.rand(shape, generator=generator, dtype=torch.float64).numpy()


def _ranks(n: int, K: int, generator: torch.Generator) -> Tensor:
    """Row by row, a random order of the cells: the rank of each, (n, K)."""
    return torch.rand(n, K, generator=generator, dtype=torch.float64).argsort(dim=1).argsort(dim=1)


def _check_groups(groups: Sequence[int]) -> tuple[int, ...]:
    if not groups or any(int(n) != n or n < 1 for n in groups):
        raise ValueError(f"groups = {groups!r} must be one or more numbers of values, each at least 1, as (8, 8)")
    return tuple(int(n) for n in groups)


def _check_size(k: int, groups: tuple[int, ...]) -> int:
    if not 0 <= k <= prod(groups):
        raise ValueError(f"{k} objects do not fit the {prod(groups)} cells of groups {groups}")
    return int(k)


def _check_rows(rows: Tensor, m: int, name: str) -> Ints:
    """The rows (n, m) as integers, or ``ValueError`` for another shape or an entry that is not 0 or 1."""
    values = rows.detach().cpu().numpy()
    if values.ndim != 2 or values.shape[1] != m:
        raise ValueError(f"{name} has shape {values.shape}, expected (n, {m})")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise ValueError(f"{name} has the entry {values[wrong][0]} at {np.argwhere(wrong)[0].tolist()}; bits are 0 or 1")
    return values.astype(np.intp)


def _check_law(p: Any, n: int) -> Floats:
    law = np.asarray(p, dtype=float)
    # A correct sum of n rounded terms is within n ε of one.
    if law.shape != (n,) or not n or not (law >= 0).all() or abs(law.sum() - 1) > 4 * n * np.finfo(float).eps:
        raise ValueError(f"probabilities have shape {law.shape} and sum {law.sum():.6g}; need ({n},), none negative, sum 1")
    return law


def _check_own_features(o: Tensor, f: Tensor, groups: tuple[int, ...]) -> None:
    own = features(o, groups)
    wrong = (own != f).any(dim=-1) if own.shape == f.shape else torch.ones(1)
    if wrong.any():
        raise ValueError(
            f"f, of shape {tuple(f.shape)}, is not the features of o in row {int(wrong.nonzero()[0])}; F is a function of O"
        )
