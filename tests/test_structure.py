"""Sums and products of concept tables: planted models come back, best sums are the ANOVA sums, and what a swap margin sees."""

from itertools import pairwise
from itertools import product as grid

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from binding.codes import leakage
from binding.numerics import gaussian, generator
from binding.structure import (
    KINDS,
    additive,
    atom_codes,
    gain_and_leakage,
    object_slots,
    product,
    r2,
    swap_margins,
)

seeds = st.integers(0, 10**6)
ROUNDING = 1e-8
"""Of float64 through one normal equation: its condition number is at most some thousands here, squared in no place, so errors
stay near 1e-12 of entries of size ten; a wrong term moves them by more than 0.01."""
few = settings(deadline=None, max_examples=15)


def draw_slots(n: int, V: int, draws: torch.Generator, S: int = 4) -> torch.Tensor:
    return torch.randint(0, V, (n, S), generator=draws)


def planted(slots: torch.Tensor, V: int, N: int, draws: torch.Generator) -> torch.Tensor:
    tables = gaussian((slots.shape[1], V, N), draws)
    return sum(tables[s][slots[:, s]] for s in range(slots.shape[1])) + gaussian((N,), draws)


@few
@given(seeds, st.integers(2, 5), st.integers(1, 6))
def test_a_planted_sum_comes_back(seed: int, V: int, N: int) -> None:
    draws = generator(seed)
    scenes = draw_slots(30 * V, V, draws)
    scenes[:V] = torch.arange(V)[:, None]  # every value is seen
    everything = torch.tensor(list(grid(range(V), repeat=4)))
    x = planted(torch.cat([scenes, everything]), V, N, draws)
    fit = additive(scenes, x[: len(scenes)])
    assert float((fit.predict(everything) - x[len(scenes) :]).abs().max()) < ROUNDING
    for table, s in zip(fit.sums, range(4), strict=True):
        assert float(table[scenes[:, s]].mean(dim=0).abs().max()) < ROUNDING


@few
@given(seeds)
def test_the_best_sum_is_that_of_an_independent_solver(seed: int) -> None:
    """scipy-free oracle: numpy's least squares on a table of zeros and ones, written out value by value."""
    draws = generator(seed)
    scenes, x = draw_slots(60, 4, draws), gaussian((60, 3), draws)
    hot = np.array([[1.0] + [float(c == v) for c in row for v in range(4)] for row in scenes.tolist()])
    theirs = hot @ np.linalg.lstsq(hot, x.numpy(), rcond=None)[0]
    assert np.abs(additive(scenes, x).predict(scenes).numpy() - theirs).max() < ROUNDING


@few
@given(seeds)
def test_on_a_full_grid_the_best_sum_is_made_of_conditional_means(seed: int) -> None:
    draws = generator(seed)
    scenes = torch.tensor(list(grid(range(3), range(2), range(4))))
    x = gaussian((len(scenes), 5), draws)
    fit = additive(scenes, x)
    for s, table in enumerate(fit.sums):
        means = torch.stack([x[scenes[:, s] == v].mean(dim=0) for v in range(len(table))]) - x.mean(dim=0)
        assert float((table - means).abs().max()) < ROUNDING
    explained = sum(float(table[scenes[:, s]].square().sum()) for s, table in enumerate(fit.sums))
    assert r2(fit, scenes, x) == pytest.approx(explained / float((x - x.mean(dim=0)).square().sum()), abs=ROUNDING)


@few
@given(seeds)
def test_r2_is_the_same_in_every_frame(seed: int) -> None:
    draws = generator(seed)
    scenes, held = draw_slots(80, 4, draws), draw_slots(20, 4, draws)
    scenes[:4] = torch.arange(4)[:, None]
    x, y = gaussian((80, 5), draws), gaussian((20, 5), draws)
    Q = torch.linalg.qr(gaussian((5, 5), draws)).Q
    move = 3 * gaussian((5,), draws)
    assert r2(additive(scenes, x), held, y) == pytest.approx(
        r2(additive(scenes, 2 * x @ Q + move), held, 2 * y @ Q + move), abs=ROUNDING
    )


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_rotated_and_moved_rows_fit_as_well(kind: str) -> None:
    """Each solved step turns with the rows; 10 rounds, so that rounding cannot grow along the way."""
    draws = generator(5)
    scenes, x = draw_slots(200, 3, draws), gaussian((200, 6), draws)
    Q = torch.linalg.qr(gaussian((6, 6), draws)).Q
    found = [r2(product(scenes, rows, kind, rank=2, steps=10), scenes, rows) for rows in (x, x @ Q - 4.0)]
    assert found[0] == pytest.approx(found[1], abs=1e-6)


@few
@given(seeds)
def test_the_order_of_the_scenes_changes_nothing(seed: int) -> None:
    draws = generator(seed)
    scenes, x = draw_slots(50, 3, draws), gaussian((50, 4), draws)
    order = torch.randperm(50, generator=draws)
    one, other = additive(scenes, x), additive(scenes[order], x[order])
    assert float((one.predict(scenes) - other.predict(scenes)).abs().max()) < ROUNDING


@pytest.mark.parametrize("kind", KINDS)
def test_more_rounds_and_products_never_fit_worse(kind: str) -> None:
    """With next to no ridge, so that the objective is the error itself; the fitted sum is the start of all."""
    draws = generator(2)
    scenes, x = draw_slots(150, 4, draws), gaussian((150, 7), draws)
    found = [r2(additive(scenes, x), scenes, x)]
    found += [r2(product(scenes, x, kind, rank=3, steps=n, ridge=1e-9), scenes, x) for n in (1, 2, 4, 8, 16)]
    assert r2(product(scenes, x, kind, rank=3), scenes, x) > found[0]
    assert all(later >= earlier - ROUNDING for earlier, later in pairwise(found))
    assert found[-1] > found[0] + 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_pays_for_leaving_one(kind: str) -> None:
    """The objective, written out here, falls from round to round; 1e-9 is rounding of some thousand squares of size one."""
    draws = generator(4)
    scenes, x, ridge = draw_slots(150, 4, draws), gaussian((150, 7), draws), 5.0
    scale = float((x - x.mean(dim=0)).square().sum(dim=1).mean())
    paid = []
    for steps in (1, 2, 3, 5, 9, 20):
        fit = product(scenes, x, kind, rank=3, steps=steps, ridge=ridge)
        error = float((x - fit.predict(scenes)).square().sum()) / scale
        far = sum(float((f - 1).square().sum()) for term in fit.terms for f in term.factors)
        paid.append(error + ridge * (far + sum(float(term.map.square().sum()) / scale for term in fit.terms)))
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(paid))
    assert paid[-1] < paid[0] - 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_product_generalises_where_no_sum_does(kind: str) -> None:
    """Tables of mean one and spread ½, as U's; alternating least squares may stop at a local best, so 0.95 and not 1."""
    draws = generator(7)
    V, N, R = 5, 16, 3
    groups = {"global": [(0, 1, 2, 3)], "per_object": [(0, 1), (2, 3)], "pairwise": [(0, 1), (0, 2), (1, 3)]}[kind]
    scenes, held = draw_slots(500, V, draws), draw_slots(300, V, draws)
    both = torch.cat([scenes, held])
    x = planted(both, V, N, draws)
    for group in groups:
        tables = 1 + 0.5 * gaussian((len(group), V, R), draws)
        term = torch.stack([tables[i][both[:, s]] for i, s in enumerate(group)]).prod(dim=0)
        x = x + 4 * term @ gaussian((R, N), draws)
    fit = product(scenes, x[:500], kind, rank=4)
    assert r2(fit, held, x[500:]) > 0.95 > r2(additive(scenes, x[:500]), held, x[500:])


def test_values_that_were_not_seen_count_as_average() -> None:
    draws = generator(3)
    scenes, x = draw_slots(100, 3, draws), gaussian((100, 4), draws)
    fit = additive(scenes, x, sizes=(5, 3, 3, 3))
    new, means = torch.tensor([[4, 1, 1, 1]]), torch.zeros(4)
    seen = torch.tensor([[v, 1, 1, 1] for v in range(3)])
    weight = torch.bincount(scenes[:, 0], minlength=3) / 100.0
    means = (weight.double()[:, None] * fit.predict(seen)).sum(dim=0)
    assert float((fit.predict(new)[0] - means).abs().max()) < ROUNDING
    bound = product(scenes, x, rank=2, steps=3, sizes=(5, 3, 3, 3))
    assert torch.isfinite(bound.predict(new)).all()
    means = (weight.double()[:, None] * bound.predict(seen)).sum(dim=0)
    assert float((bound.predict(new)[0] - means).abs().max()) < ROUNDING


@few
@given(seeds)
def test_shared_tables_do_not_know_which_object_comes_first(seed: int) -> None:
    draws = generator(seed)
    scenes, x = draw_slots(60, 4, draws), gaussian((60, 3), draws)
    fit = additive(scenes, x, shared=(0, 1, 0, 1))
    turned = scenes[:, [2, 3, 0, 1]]
    swapped = scenes[:, [0, 3, 2, 1]]
    assert torch.equal(fit.predict(turned).round(decimals=8), fit.predict(scenes).round(decimals=8))
    # and no sum of concepts, shared over the objects, tells a scene from its swap
    assert float((fit.predict(swapped) - fit.predict(scenes)).abs().max()) < ROUNDING


def test_object_vectors_hold_every_sum_of_objects_and_concept_vectors_do_not() -> None:
    draws = generator(9)
    scenes = draw_slots(200, 3, draws)
    objects = object_slots(scenes, 2, (3, 3))
    assert objects[0].tolist() == [int(3 * scenes[0, 0] + scenes[0, 1]), int(3 * scenes[0, 2] + scenes[0, 3])]
    x = planted(objects, 9, 5, draws)
    assert r2(additive(objects, x), objects, x) == pytest.approx(1, abs=ROUNDING)
    assert r2(additive(scenes, x), scenes, x) < 0.9


@few
@given(seeds)
def test_the_fitted_codes_of_atoms_add_up_to_the_scene(seed: int) -> None:
    draws = generator(seed)
    scenes, x = draw_slots(120, 3, draws), gaussian((120, 4), draws)
    fit = product(scenes, x, "per_object", rank=2, steps=3)
    a, b, c, d = scenes.T
    z = [atom_codes(fit, i) for i in (0, 1)]
    assert float((fit.mean + z[0][a, b] + z[1][c, d] - fit.predict(scenes)).abs().max()) < ROUNDING
    # a sum of tables has no interaction, so the whole of κ is the product's
    bare = atom_codes(additive(scenes, x), 0)
    assert leakage(bare).interaction == pytest.approx(0, abs=ROUNDING)
    assert leakage(z[0]).interaction > 0


@few
@given(seeds, st.integers(3, 6))
def test_scores_that_are_sums_over_objects_have_the_margin_that_leakage_predicts(seed: int, V: int) -> None:
    """All scenes of two objects that differ in both concepts: the mean margin is 2κ exactly, whatever the scores."""
    t = gaussian((V, V, V, V), generator(seed))  # t[o, a, :, :]: the scores that the object (o, a) gives
    scenes = torch.tensor([s for s in grid(range(V), repeat=4) if s[0] != s[2] and s[1] != s[3]])
    a, b, c, d = scenes.T
    found = gain_and_leakage(t[a, b] + t[c, d], scenes)
    rows = t.reshape(V * V, V * V)
    i = torch.arange(V * V)
    o, k = (i[:, None] // V == i // V), (i[:, None] % V == i % V)
    pure = [float(rows[mask].mean()) for mask in (o & k, o & ~k, ~o & k, ~o & ~k)]
    assert list(found.leakage) == pytest.approx(pure, abs=ROUNDING)
    assert found.margin == pytest.approx(float(swap_margins(t[a, b] + t[c, d], scenes).mean()), abs=ROUNDING)
    assert 0 <= found.accuracy <= 1


@few
@given(seeds)
def test_a_swap_margin_sees_only_the_interaction_of_the_scores(seed: int) -> None:
    draws = generator(seed)
    h = gaussian((40, 4, 5), draws)
    rows, columns = gaussian((40, 4, 1), draws), gaussian((40, 1, 5), draws)
    scenes = torch.stack([torch.randperm(4, generator=draws)[[0, 1]] for _ in range(40)])
    others = torch.stack([torch.randperm(5, generator=draws)[[0, 1]] for _ in range(40)])
    scenes = torch.stack([scenes[:, 0], others[:, 0], scenes[:, 1], others[:, 1]], dim=1)
    moved = swap_margins(h + rows + columns, scenes)
    assert float((moved - swap_margins(h, scenes)).abs().max()) < ROUNDING
    assert float(swap_margins(rows + columns, scenes).abs().max()) < ROUNDING
    assert torch.equal(swap_margins(h, scenes[:, [0, 3, 2, 1]]), -swap_margins(h, scenes))


def test_noise_in_the_scores_is_the_spread_and_gives_the_accuracy() -> None:
    """Scores of gain κ at present objects plus normal noise. Of n = 20,000 independent choices the share that is right lies
    within 6.2 standard deviations, 6.2 √(¼ / n) < 0.022, with probability above 1 − 1e-9; centring takes 1 − (1 − 1/20)² off."""
    draws, V, n = generator(11), 20, 20_000
    scenes = torch.cat([torch.rand(n, V, generator=draws).argsort(dim=1)[:, :2] for _ in range(2)], dim=1)[:, [0, 2, 1, 3]]
    h = gaussian((n, V, V), draws)
    row = torch.arange(n)
    for o, k in ((0, 1), (2, 3)):
        h[row, scenes[:, o], scenes[:, k]] += 0.8
    found = gain_and_leakage(h, scenes)
    assert found.margin == pytest.approx(1.6, abs=0.05)
    assert found.spread == pytest.approx(0.95, abs=0.02)
    assert found.accuracy == pytest.approx(float((swap_margins(h, scenes) > 0).double().mean()), abs=0.04)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, x: additive(s.double(), x), "expected integers"),
        (lambda s, x: additive(s - 1, x), "slot 0 of scene 0 is -1, expected 0 or more"),
        (lambda s, x: additive(s, x[:-1]), "slots has 6 rows and x has 5"),
        (lambda s, x: additive(s, x, sizes=(2, 3, 3, 3)), "expected 0 to 1"),
        (lambda s, x: additive(s, x, shared=(0, 2, 0, 2)), "name one of the tables"),
        (lambda s, x: additive(s, x, shared=(0, 0, 1, 1), sizes=(3, 4, 3, 3)), "share a table but have 3 and 4"),
        (lambda s, x: additive(s, x * float("nan")), "NaN"),
        (lambda s, x: product(s, x, "triple"), "kind is 'triple'"),
        (lambda s, x: product(s, x, objects=3), "do not make 3 objects"),
        (lambda s, x: product(s, x, rank=0), "rank = 0"),
        (lambda s, x: product(s, x, ridge=0), "ridge = 0 must be positive"),
        (lambda s, x: r2(additive(s, x), s, x[:, :1]), "the model predicts"),
        (lambda s, x: r2(additive(s, x), s, x * 0), "nothing to explain"),
        (lambda s, x: additive(s, x).predict(s[:, :3]), "3 columns, expected 4"),
        (lambda s, x: atom_codes(product(s, x, rank=1, steps=1)), "fit kind='per_object'"),
        (lambda s, x: atom_codes(additive(s, x), 2), "no object 2"),
        (lambda s, x: object_slots(s, 2, (3, 2)), "expected 0 to 1"),
        (lambda s, x: swap_margins(torch.zeros(6, 3, 3), s), "share a value"),
        (lambda s, x: swap_margins(torch.zeros(6, 3), s), "expected \\(n, M, K\\)"),
        (lambda s, x: gain_and_leakage(torch.zeros(1, 3, 3), s[2:3], torch.zeros(3, 3)), "no candidate shares first"),
        (lambda s, x: gain_and_leakage(torch.zeros(1, 3, 3), s[2:3], torch.zeros(3, 2)), "candidates has shape"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    slots = torch.tensor([[0, 0, 1, 2], [1, 0, 1, 0], [2, 1, 0, 2], [0, 2, 2, 1], [1, 1, 2, 2], [2, 2, 0, 0]])
    with pytest.raises(ValueError, match=words):
        call(slots, gaussian((6, 3), generator(0)))
