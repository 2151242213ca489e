"""Random exposure graphs: how many pairs must be shown until every pair is covered, and until every pair is connected.

Each of the m objects meets each of the n attributes with probability ρ, independently. A pair that was not shown is covered if
both of its atoms were shown in some other pair, and connected if a path of shown pairs leads from the one to the other.
"""

from math import comb, exp
from typing import Any, TypeAlias

import numpy as np
from scipy.special import lambertw

Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


def check_graph(ρ: float, objects: int, attributes: int) -> tuple[float, int, int]:
    """Return ρ, m and n, or raise ``ValueError`` for a probability outside [0, 1] or a side below 1."""
    if not 0 <= ρ <= 1:
        raise ValueError(f"ρ = {ρ} is outside [0, 1]; it is the probability that a pair is shown")
    for name, count in (("objects", objects), ("attributes", attributes)):
        if count < 1:
            raise ValueError(f"{name} = {count} is too small; a graph needs at least 1")
    return float(ρ), int(objects), int(attributes)


def random_graph(objects: int, attributes: int, ρ: float, generator: np.random.Generator) -> Bools:
    """Every pair shown independently with probability ρ, as booleans of shape (objects, attributes); it may come out empty.

    Raises ``ValueError`` as :func:`check_graph`, as do the functions below.
    """
    ρ, m, n = check_graph(ρ, objects, attributes)
    return generator.random((m, n)) < ρ


def coverage_rate(ρ: float, objects: int, attributes: int) -> float:
    """The chance that a pair that was not shown is covered, (1 − (1 − ρ)^{n−1}) (1 − (1 − ρ)^{m−1}).

    Exact: the n − 1 other pairs of the object and the m − 1 other pairs of the attribute are different pairs.
    """
    ρ, m, n = check_graph(ρ, objects, attributes)
    return (1 - (1 - ρ) ** (n - 1)) * (1 - (1 - ρ) ** (m - 1))


def component_law(ρ: float, objects: int, attributes: int) -> Floats:
    """The chance that the component of one object has i objects and j attributes, of shape (objects + 1, attributes + 1).

    Breadth first: if f atoms of one side are on the frontier, each of the atoms of the other side not yet reached joins with
    probability 1 − (1 − ρ)^f, so the number that joins is binomial; the search ends when none does. The last entry is the
    chance that the whole graph is connected. Every term is positive, so nothing cancels: at most m + n + 1 steps, each a sum
    of at most m + n products of powers up to m + n, leave a relative rounding error below 8 (m + n + 1)² ε.
    """
    ρ, m, n = check_graph(ρ, objects, attributes)
    law = np.zeros((m + 1, n + 1))
    frontier = np.zeros((m + 1, n + 1, m + 1)), np.zeros((m + 1, n + 1, n + 1))
    frontier[0][1, 0, 1] = 1.0
    for total in range(1, m + n + 1):
        for i in range(max(1, total - n), min(m, total) + 1):
            j = total - i
            for side, rest in ((1, n - j), (0, m - i)):
                joins = frontier[1 - side][i, j, 1:] @ _joining(ρ, (m, n)[1 - side], rest)
                law[i, j] += joins[0]
                k = np.arange(1, rest + 1)
                frontier[side][i + k * (side == 0), j + k * (side == 1), k] += joins[1:]
    return law


def connection_rate(ρ: float, objects: int, attributes: int) -> float:
    """The chance that a pair that was not shown is connected, (E[J] / n − ρ) / (1 − ρ).

    J counts the attributes in the object's component (:func:`component_law`), so E[J] / n is the chance without the condition;
    a shown pair is always connected. Raises ``ValueError`` for ρ = 1, where every pair is shown.
    """
    ρ, m, n = check_graph(ρ, objects, attributes)
    if ρ == 1:
        raise ValueError("ρ = 1 shows every pair, so there is none to ask about; need ρ < 1")
    return float(((component_law(ρ, m, n) @ np.arange(n + 1)).sum() / n - ρ) / (1 - ρ))


def isolation_limit(ρ: float, objects: int, attributes: int) -> float:
    """exp(−m (1 − ρ)^n − n (1 − ρ)^m), the limit of the chance that the graph is connected, near ρ = log n / n.

    The exponent is the mean number of atoms that were never shown (Poisson limit); near the threshold nothing else keeps a
    random graph from being connected (Erdős and Rényi 1959; bipartite: Palásti 1963).
    """
    ρ, m, n = check_graph(ρ, objects, attributes)
    return exp(-m * (1 - ρ) ** n - n * (1 - ρ) ** m)


def giant_share(c: float) -> float:
    """The share β of atoms in the giant component at m = n, ρ = c / n: the largest root of β = 1 − e^{−cβ}.

    β = 1 + W(−c e^{−c}) / c with Lambert's W, and 0 for c ≤ 1 (Erdős and Rényi 1960). Raises ``ValueError`` for c below 0.
    """
    if not c >= 0:
        raise ValueError(f"c = {c} must be at least 0; it is the mean number of pairs that an atom is shown in")
    return 0.0 if c <= 1 else float(1 + lambertw(-c * exp(-c)).real / c)


def _joining(ρ: float, frontier: int, rest: int) -> Floats:
    """The chance that k = 0 … rest atoms join a frontier of f = 1 … frontier; shape (frontier, rest + 1)."""
    k, f = np.arange(rest + 1), np.arange(1, frontier + 1)[:, None]
    with np.errstate(divide="ignore"):
        log_stay = f * np.log1p(-ρ)
    return np.array([comb(rest, int(j)) for j in k], dtype=float) * (-np.expm1(log_stay)) ** k * np.exp(log_stay) ** (rest - k)
