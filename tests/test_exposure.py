"""Random exposure graphs: exact chances against enumeration, a second recursion, and their limits."""

from fractions import Fraction
from itertools import product
from math import comb, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding.exposure import (
    check_graph,
    component_law,
    connection_rate,
    coverage_rate,
    giant_share,
    isolation_limit,
    random_graph,
)

EPS = float(np.finfo(float).eps)
sides = st.integers(1, 9)
chances = st.floats(0, 1)


def rounding(m: int, n: int) -> float:
    """The relative error that ``component_law`` states."""
    return 8 * (m + n + 1) ** 2 * EPS


def reached(graph: np.ndarray, o: int) -> tuple[set[int], set[int]]:
    """The component of object o, by walking."""
    objects, attributes = {o}, set()
    while True:
        more = {a for x in objects for a in np.flatnonzero(graph[x]).tolist()}
        back = {x for a in more for x in np.flatnonzero(graph[:, a]).tolist()} | {o}
        if (back, more) == (objects, attributes):
            return objects, attributes
        objects, attributes = back, more


def every_graph(m: int, n: int, ρ: Fraction) -> list[tuple[np.ndarray, Fraction]]:
    graphs = (np.array(bits, dtype=bool).reshape(m, n) for bits in product((0, 1), repeat=m * n))
    return [(graph, ρ ** int(graph.sum()) * (1 - ρ) ** int((~graph).sum())) for graph in graphs]


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 3), (2, 2), (3, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("ρ", [Fraction(1, 16), Fraction(1, 2), Fraction(7, 8)])
def test_all_three_chances_are_those_of_all_graphs(m: int, n: int, ρ: Fraction) -> None:
    law = np.full((m + 1, n + 1), Fraction(0))
    covered = connected = isolated = Fraction(0)
    for graph, weight in every_graph(m, n, ρ):
        objects, attributes = reached(graph, 0)
        law[len(objects), len(attributes)] += weight
        isolated += weight * int((~graph.any(axis=0)).sum() + (~graph.any(axis=1)).sum())
        if not graph[0, 0]:
            covered += weight * int(graph[0].any() and graph[:, 0].any())
            connected += weight * int(0 in attributes)
    want = law.astype(float)
    got = component_law(float(ρ), m, n)
    assert (np.abs(got - want) <= rounding(m, n) * want).all()
    # The powers of 1 − ρ carry (m + n) ε each; the difference E[J] / n − ρ is at most as large as the error of a number below 1.
    assert abs(coverage_rate(float(ρ), m, n) - float(covered / (1 - ρ))) <= 2 * (m + n) * EPS
    assert abs(connection_rate(float(ρ), m, n) - float(connected / (1 - ρ))) <= rounding(m, n) / float(1 - ρ)
    # The exponent is the mean number of words never shown; e^{−x} moves by at most x e^{−x} < 1 times its relative error.
    assert abs(isolation_limit(float(ρ), m, n) - exp(-isolated)) <= 2 * (m + n) * EPS


@pytest.mark.parametrize("ρ", [Fraction(1, 20), Fraction(1, 4)])
def test_connected_graphs_by_gilberts_recursion(ρ: Fraction) -> None:
    """Independent: 1 = Σ over the size (i, j) of the first object's component, solved for the full size in exact arithmetic."""
    m, n = 5, 6
    C: dict[tuple[int, int], Fraction] = {}
    for i, j in product(range(1, m + 1), range(n + 1)):
        C[i, j] = 1 - sum(
            (
                comb(i - 1, k - 1) * comb(j, h) * C[k, h] * (1 - ρ) ** (k * (j - h) + h * (i - k))
                for k, h in product(range(1, i + 1), range(j + 1))
                if (k, h) != (i, j)
            ),
            Fraction(0),
        )
    law = component_law(float(ρ), m, n)
    for k, h in product(range(1, m + 1), range(n + 1)):
        want = float(comb(m - 1, k - 1) * comb(n, h) * C[k, h] * (1 - ρ) ** (k * (n - h) + h * (m - k)))
        assert abs(law[k, h] - want) <= rounding(m, n) * want


@given(chances, sides, sides)
def test_a_component_has_some_size(ρ: float, m: int, n: int) -> None:
    law = component_law(ρ, m, n)
    assert (law >= 0).all()
    assert abs(law.sum() - 1) <= rounding(m, n)
    assert not law[0].any()


@given(st.floats(0, 0.999), sides, sides)
def test_objects_and_attributes_may_change_roles(ρ: float, m: int, n: int) -> None:
    assert abs(coverage_rate(ρ, m, n) - coverage_rate(ρ, n, m)) <= 2 * EPS
    assert abs(connection_rate(ρ, m, n) - connection_rate(ρ, n, m)) <= 2 * rounding(m, n) / (1 - ρ)
    assert isolation_limit(ρ, m, n) == isolation_limit(ρ, n, m)


@given(st.floats(0, 0.999), sides, sides)
def test_connected_pairs_are_covered(ρ: float, m: int, n: int) -> None:
    assert connection_rate(ρ, m, n) <= coverage_rate(ρ, m, n) + 2 * rounding(m, n) / (1 - ρ)


@given(st.floats(0, 0.9), st.floats(0, 0.09), sides, sides)
def test_more_exposure_covers_and_connects_more(ρ: float, more: float, m: int, n: int) -> None:
    slack = 2 * rounding(m, n) / (1 - ρ - more)
    assert coverage_rate(ρ + more, m, n) >= coverage_rate(ρ, m, n) - slack
    assert connection_rate(ρ + more, m, n) >= connection_rate(ρ, m, n) - slack


@pytest.mark.parametrize("c", [-1.0, 0.0, 1.5])
def test_connectivity_tends_to_its_limit(c: float) -> None:
    """At ρ = (log n + c) / n the distance to the limit falls with n, and the limit itself tends to exp(−2 e^{−c})."""
    sizes = [8, 16, 32, 64]
    chances = [(log(n) + c) / n for n in sizes]
    gaps = [abs(component_law(ρ, n, n)[-1, -1] - isolation_limit(ρ, n, n)) for ρ, n in zip(chances, sizes, strict=True)]
    far = [abs(isolation_limit((log(n) + c) / n, n, n) - exp(-2 * exp(-c))) for n in (100, 10_000, 1_000_000)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < gaps[0] / 4
    assert far == sorted(far, reverse=True)


@given(st.floats(0, 30))
def test_giant_share_is_the_largest_fixed_point(c: float) -> None:
    β = giant_share(c)
    # Rounding of W and of the exponential: a few ε each, times the slope 1 + c of the two sides.
    assert abs(β - (1 - exp(-c * β))) <= 8 * EPS * (1 + c)
    assert (β > 0) == (
        c > 1
    ) or c < 1 + 1e-7  # Just above one, the share 2(c − 1) is below the rounding √ε of W at its branch point.
    assert all(x < 1 - exp(-c * x) for x in np.linspace(0.05, 0.95, 10) if x < β - 1e-6)


def test_connected_share_tends_to_the_square_of_the_giant() -> None:
    for c in (0.5, 2.0, 3.0):
        gaps = [abs(connection_rate(c / n, n, n) - giant_share(c) ** 2) for n in (16, 32, 64)]
        assert gaps == sorted(gaps, reverse=True)


def test_random_graphs_have_the_frequency_that_was_asked_for() -> None:
    graph = random_graph(200, 300, 0.2, np.random.default_rng(6))
    # Hoeffding: 60,000 independent pairs are this far off with probability at most 1e-9.
    assert abs(graph.mean() - 0.2) <= sqrt(log(2e9) / (2 * graph.size))
    assert not random_graph(4, 5, 0.0, np.random.default_rng(0)).any()
    assert random_graph(4, 5, 1.0, np.random.default_rng(0)).all()


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: check_graph(1.5, 2, 2), "ρ = 1.5"),
        (lambda: check_graph(float("nan"), 2, 2), "ρ = nan"),
        (lambda: random_graph(0, 2, 0.5, np.random.default_rng(0)), "objects = 0"),
        (lambda: component_law(0.5, 2, -3), "attributes = -3"),
        (lambda: coverage_rate(-0.1, 2, 2), "ρ = -0.1"),
        (lambda: isolation_limit(2, 2, 2), "ρ = 2"),
        (lambda: connection_rate(1, 2, 2), "ρ = 1"),
        (lambda: giant_share(-2), "c = -2"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()
