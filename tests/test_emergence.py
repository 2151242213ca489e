"""Splits that leak nothing, exact floors, encoders and losses against loops, runs that repeat, sweeps that survive a kill."""

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from binding import codes, emergence
from binding.coverage_split import (
    EMPTY,
    Split,
    World,
    bag_floor,
    draw_scenes,
    rectangles,
    split,
    split_floors,
    status_floor,
    swapped,
)
from binding.emergence import COVERAGES, SWEEPS, Config
from binding.numerics import gaussian, generator
from binding.object_encoders import KINDS, Transformer, draw_weights, positions, tokenise
from binding.runs import digest, load, sweep

EPS64 = torch.finfo(torch.float64).eps
TINY = Config(0.6, 5, width=8, hidden=16, layers=1, heads=2, dimension=8, steps=3, batch=16)
RUNS = ROOT / "binding" / "data" / "runs"
seeds = st.integers(0, 10_000)
worlds = st.builds(World, st.integers(2, 3), st.integers(2, 7))


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINDING_DEVICE", "cpu")


def shown(world: World, coverage: float) -> bool:
    return world.values <= round(coverage * world.objects) < world.objects


# Worlds and splits


@given(worlds)
def test_objects_are_numbered_with_the_last_concept_fastest(world: World) -> None:
    values = list(product(range(world.values), repeat=world.concepts))
    assert [tuple(row) for row in world.rows(torch.arange(world.objects)).tolist()] == values
    alone = world.rows(torch.arange(world.objects, world.queries)).tolist()
    V = world.values
    assert alone == [[v if c == own else V for c in range(world.concepts)] for own in range(world.concepts) for v in range(V)]
    expected = [[world.objects + c * V + v for c, v in enumerate(row)] for row in values]
    assert world.concepts_of(torch.arange(world.objects)).tolist() == expected


@given(worlds, st.floats(0.02, 0.98), seeds, st.sampled_from([0, 1, 10]))
@settings(max_examples=200)
def test_a_split_shows_every_value_and_never_a_held_out_object(world: World, coverage: float, seed: int, planted: int) -> None:
    if not shown(world, coverage):
        with pytest.raises(ValueError, match=r"coverage = .* shows"):
            split(world, coverage, generator(seed), planted)
        return
    part = split(world, coverage, generator(seed), planted)
    seen, held = part.seen.tolist(), part.held.tolist()
    assert sorted(seen + held) == list(range(world.objects))
    assert len(seen) == round(coverage * world.objects)
    assert (world.rows(part.seen).T.sort(dim=1).values.diff(dim=1) <= 1).all()
    assert [len(set(column)) for column in world.rows(part.seen).T.tolist()] == [world.values] * world.concepts
    scenes = draw_scenes(part.seen, 64, generator(seed))
    assert set(scenes.flatten().tolist()) <= {EMPTY, *seen}
    assert part.held_table().flatten().nonzero()[:, 0].tolist() == held


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("values", [5, 10, 20, 30])
@pytest.mark.parametrize("pool", ["all", "batch"])
def test_training_never_meets_a_held_out_object(monkeypatch: pytest.MonkeyPatch, coverage: float, values: int, pool: str) -> None:
    met: set[int] = set()
    real = emergence.batch_loss

    def spy(dual, part, scene, candidates, weight):
        met.update(scene.flatten().tolist(), candidates[candidates < part.world.objects].tolist())
        assert set(range(part.world.objects, part.world.queries)) <= set(candidates.tolist())
        return real(dual, part, scene, candidates, weight)

    monkeypatch.setattr(emergence, "batch_loss", spy)
    config = replace(TINY, coverage=coverage, values=values, pool=pool)
    part = emergence.train(config).part
    assert met <= {EMPTY, *part.seen.tolist()}
    assert len(met) > values


def test_planted_rectangles_are_there_at_every_coverage() -> None:
    for coverage, seed in product(COVERAGES, range(3)):
        part = split(World(2, 20), coverage, generator(seed), planted=10)
        assert len(rectangles(part, 10_000, generator(0))) >= 20  # ten rectangles, two scenes each
    few = [len(rectangles(split(World(2, 20), 0.9, generator(seed), planted=0), 10_000, generator(0))) for seed in range(20)]
    assert np.mean(few) < 16  # C(20, 2)² 0.1⁴ = 3.6 rectangles on average, 7.2 scenes; twice that is no such split


def test_every_object_is_held_out_by_some_split() -> None:
    """Also those that a rule could shield: the ones on a diagonal, the first and the last."""
    world = World(2, 5)
    often = torch.zeros(world.objects)
    for seed in range(200):
        often[split(world, 0.6, generator(seed), planted=0).held] += 1
    # Each is held out in 0.4 of the splits: 80 ± 7 of 200. Seven deviations either way.
    assert often.min() > 80 - 49 and often.max() < 80 + 49


# Swaps and matched scenes


@given(worlds, seeds)
def test_a_swap_exchanges_last_concepts_and_undoes_itself(world: World, seed: int) -> None:
    scene = draw_scenes(torch.arange(world.objects), 20, generator(seed), least=2)
    other = swapped(world, scene)
    assert torch.equal(swapped(world, other), scene)
    before, after = world.rows(scene), world.rows(other)
    assert torch.equal(before[..., :-1], after[..., :-1])
    assert torch.equal(before[..., -1], after.flip(1)[..., -1])


@given(st.integers(2, 6), st.integers(2, 3), seeds)
def test_matched_scenes_are_all_held_out_rectangles(values: int, concepts: int, seed: int) -> None:
    world = World(concepts, values)
    part = split(world, max(0.5, 1 / values), generator(seed), planted=0)
    held = set(part.held.tolist())
    expected = set()
    for one, two in combinations(sorted(held), 2):
        (*p, b), (*r, d) = world.rows(torch.tensor([one, two])).tolist()
        if p != r and b != d and set(swapped(world, torch.tensor([one, two])).tolist()) <= held:
            expected.add((one, two))
    found = rectangles(part, 10**6, generator(seed))
    assert len(found) == len(expected) and {tuple(sorted(row)) for row in found.tolist()} == expected
    if len(found) > 2:
        some = rectangles(part, 1, generator(seed))
        assert len(some) == 2 and {tuple(sorted(row)) for row in some.tolist()} <= expected
    assert torch.equal(found[1::2], swapped(world, found[::2]))


def test_matched_scenes_are_drawn_evenly_where_there_are_too_many() -> None:
    """Columns 0 and 1 share four held-out rows, so six rectangles; columns 1 and 2 share two, so one more."""
    world = World(2, 5)
    held = torch.tensor([5 * row + column for row in range(4) for column in (0, 1)] + [2, 7])
    seen = torch.tensor(sorted(set(range(25)) - set(held.tolist())))
    part = Split(world, seen, held.sort().values)
    every = {tuple(sorted(row)) for row in rectangles(part, 100, generator(0)).tolist()}
    draws = generator(0)
    drawn = [tuple(sorted(row)) for _ in range(2000) for row in rectangles(part, 2, draws).tolist()]
    counts = np.array([drawn.count(scene) for scene in sorted(every)])
    assert len(every) == 2 * 8 and counts.sum() == len(drawn) == 8000  # columns 0 and 2 share the same two rows
    # 4000 rectangles, each of eight with probability 1/8: 500 ± 21. Seven deviations either way.
    assert (np.abs(counts - 500) < 7 * 21).all()


@given(st.integers(5, 9), seeds, st.integers(1, 6))
def test_a_bag_of_concepts_chooses_right_exactly_half_the_time(values: int, seed: int, dimension: int) -> None:
    """Any scene embedding that depends on the concepts only, any queries: one of a scene and its swap is right."""
    world, draws = World(2, values), generator(seed)
    part = split(world, 0.4, draws, planted=2)
    pairs = rectangles(part, 500, draws)
    if not len(pairs):
        return
    table, q = gaussian((world.queries, dimension), draws), gaussian((world.objects, dimension), draws)
    first, second = (table[column] for column in world.concepts_of(pairs).permute(2, 0, 1))
    mixed = (first[:, 0] + first[:, 1]) * (second[:, 0] + second[:, 1])  # a bag, though no sum of concepts
    assert emergence.choice(emergence.margins(first.sum(1) + second.sum(1) + mixed.sin(), q, pairs, world)) == 0.5
    assert emergence.choice(emergence.margins(torch.ones(len(pairs), dimension).double(), q, pairs, world)) == 0.5


def test_choice_counts_a_tie_as_one_half() -> None:
    assert emergence.choice(torch.tensor([2.0, -1.0, 0.0, 0.0, 3.0])) == 3 / 5


# Floors


@pytest.mark.parametrize("values", [2, 3, 5, 7])
def test_bag_floor_by_counting_all_scenes(values: int) -> None:
    own, ties = Fraction(0), Fraction(0)
    for a, b, c, d in product(range(values), repeat=4):
        present, top = {(a, b), (c, d)}, {(a, b), (c, d), (a, d), (c, b)}  # the candidates that a bag scores highest
        own += present == top
        ties += Fraction(1, math.comb(len(top), len(present)))
    assert bag_floor(values) == own / values**4
    assert bag_floor(values, ties=True) == ties / values**4


def bag(part, scene, bonus):
    """Embeddings and queries of a perfect bag of concepts, with a bonus for held-out objects, written out."""
    V, n = part.world.values, len(scene)
    x, q = torch.zeros(n, 2 * V + 1).double(), torch.zeros(V * V, 2 * V + 1).double()
    for row, objects in enumerate(scene.tolist()):
        for o in objects:
            x[row, o // V], x[row, V + o % V] = 1, 1
    x[:, -1] = 1
    for o in range(V * V):
        q[o, o // V], q[o, V + o % V] = 1, 1
    q[part.held, -1] = bonus
    return x, q


@given(st.integers(3, 8), st.floats(0.3, 0.9), seeds)
@settings(max_examples=50)
def test_both_floors_are_what_a_bag_scores_without_and_with_a_bonus(values: int, coverage: float, seed: int) -> None:
    world = World(2, values)
    if not shown(world, coverage):
        return
    part = split(world, coverage, generator(seed), planted=1)
    scene = torch.cartesian_prod(part.held, part.held)
    for floor, bonus in zip(split_floors(part), (0.0, 0.5), strict=True):
        x, q = bag(part, scene, bonus)
        assert Fraction(round(emergence.strict(x, q, scene) * len(scene)), len(scene)) == floor
        pairs = rectangles(part, 100, generator(0))
        if len(pairs):
            x, q = bag(part, pairs, bonus)
            assert emergence.choice(emergence.margins(x, q, pairs, world)) == 0.5  # the matched choice does not see the bonus


@pytest.mark.parametrize("coverage", [0.3, 0.6, 0.9])
def test_status_floor_is_the_limit_of_many_objects(coverage: float) -> None:
    found = [float(split_floors(split(World(2, 40), coverage, generator(seed), planted=0))[1]) for seed in range(3)]
    # A rectangle's other corners are nearly independent of its diagonal: the correction is of the order 1/V.
    assert abs(np.mean(found) - status_floor(40, coverage)) < 1 / 40
    assert status_floor(20, Fraction(0)) == float(bag_floor(20)) and status_floor(20, Fraction(1)) == 1.0


@given(seeds)
@settings(max_examples=20)
def test_status_tells_a_bonus_from_none(seed: int) -> None:
    world = World(2, 8)
    part = split(world, 0.5, generator(seed))
    scene = draw_scenes(part.held, 10, generator(seed), least=2)
    x, q = bag(part, scene, 0.5)
    assert emergence.status(x @ q.T, scene, part) == 1.0
    assert emergence.status(torch.zeros(10, 64), scene, part) == 0.5
    noise = gaussian((10, 64), generator(seed))
    expected = []
    held = set(part.held.tolist())
    for s, objects in zip(noise.tolist(), scene.tolist(), strict=True):
        first, second = {o // 8 for o in objects}, {o % 8 for o in objects}
        half = [o for o in range(64) if (o // 8 in first) != (o % 8 in second)]
        new, old = [s[o] for o in half if o in held], [s[o] for o in half if o not in held]
        if new and old:
            expected.append(np.mean([[a > b for b in old] for a in new]))
    assert emergence.status(noise, scene, part) == pytest.approx(np.mean(expected), abs=64 * EPS64)  # a mean of ratios


# Encoders


def encoder(kind: str, world: World, seed: int = 0) -> torch.nn.Module:
    config = replace(TINY, model=kind, values=world.values, concepts=world.concepts, coverage=0.6)
    part = split(world, 0.6, generator(0))
    return emergence.build(config, part, generator(seed)).double().eval().scene


@pytest.mark.parametrize("kind", KINDS)
def test_encoders_give_unit_vectors_and_ignore_empty_places(kind: str) -> None:
    world, f = World(2, 5), encoder(kind, World(2, 5))
    scene = draw_scenes(torch.arange(world.objects), 12, generator(1), most=3)
    with torch.no_grad():
        x = f(scene)
        bound = 200 * EPS64  # sums of a few dozen terms of size one, twice
        assert (x.norm(dim=1) - 1).abs().max() <= bound
        for row, s in zip(x, scene, strict=True):
            assert (f(s[s != EMPTY][None])[0] - row).abs().max() <= bound
        backwards = f(draw_scenes(torch.arange(25), 12, generator(1), least=2).flip(1))
        forwards = f(draw_scenes(torch.arange(25), 12, generator(1), least=2))
    assert ((backwards - forwards).abs().max() <= bound) == (kind != "tokens")


def test_sum_encoder_is_its_formula() -> None:
    world, f = World(2, 5), encoder("sum", World(2, 5))
    total = torch.zeros(8).double()
    for a, b in ((1, 3), (4, 0)):
        inner = f.first.weight @ (f.words[0, a] + f.words[1, b]) + f.first.bias
        total = total + f.second.weight @ torch.nn.functional.gelu(inner) + f.second.bias
    found = f(torch.tensor([[8, 20]]))[0]
    assert (found - total / total.norm()).abs().max() <= 100 * EPS64  # sums of up to 16 terms
    concept = world.objects + world.values + 3  # the value 3 of the second concept
    alone = f.codes(torch.tensor([concept]))[0]
    inner = f.first.weight @ (f.words[0, 5] + f.words[1, 3]) + f.first.bias
    assert (alone - f.second.weight @ torch.nn.functional.gelu(inner) - f.second.bias).abs().max() <= 100 * EPS64


@given(worlds, seeds)
def test_tokens_are_brackets_around_concepts(world: World, seed: int) -> None:
    scene = draw_scenes(torch.arange(world.queries), 6, generator(seed), most=3)
    soo, eoo, eos, pad = range(world.concepts * world.values, world.concepts * world.values + 4)
    token, end = tokenise(world, scene)
    for objects, row, place in zip(scene.tolist(), token.tolist(), end.tolist(), strict=True):
        expected = []
        for o in objects:
            if o >= world.objects:
                expected.append(o - world.objects)
            elif o != EMPTY:
                values = world.rows(torch.tensor(o)).tolist()
                expected += [soo, *(c * world.values + v for c, v in enumerate(values)), eoo]
        assert row == [*expected, eos, *[pad] * ((world.concepts + 2) * 3 - len(expected))]
        assert place == len(expected)


def test_positions_are_sines_and_cosines() -> None:
    found = positions(9, 6)
    for t, i in product(range(9), range(3)):
        angle = t / 10_000 ** (2 * i / 6)
        assert found[t, 2 * i] == pytest.approx(math.sin(angle), abs=1e-6)  # float32
        assert found[t, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_the_published_encoder_has_its_published_size() -> None:
    """7.92 M a tower at d = 256, six blocks of hidden width 2,048."""
    trunk = Transformer(256, 6, 4, 2048, 64)
    assert round(sum(p.numel() for p in trunk.parameters()) / 1e6, 2) in (7.90, 7.91, 7.92)


def test_weights_come_from_the_generator_alone() -> None:
    for kind in KINDS:
        config, state = replace(TINY, model=kind), torch.get_rng_state()
        part = split(World(2, 5), 0.6, generator(0))
        first, again, other = (emergence.build(config, part, generator(seed)) for seed in (3, 3, 4))
        assert torch.equal(torch.get_rng_state(), state)
        pairs = list(zip(first.parameters(), again.parameters(), other.parameters(), strict=True))
        assert all(torch.equal(a, b) for a, b, _ in pairs)
        assert all(torch.equal(a, c) == (a.ndim < 2) for a, _, c in pairs)
        draw_weights(first.scene, generator(3))
        assert all(torch.isfinite(p).all() for p in first.parameters())


# The loss


@given(seeds)
def test_contents_and_loss_against_loops(seed: int) -> None:
    world, draws = World(2, 4), generator(seed)
    part = split(world, 0.6, draws)
    scene = draw_scenes(part.seen, 9, draws)
    pool = torch.cat([part.seen, torch.arange(world.objects, world.queries)])
    present = emergence.contents(world, scene, pool)
    for row, s in zip(present.tolist(), scene.tolist(), strict=True):
        named = {o for o in s if o != EMPTY}
        named |= {16 + o // 4 for o in named if o < 16} | {20 + o % 4 for o in named if o < 16}
        assert row == [y in named for y in pool.tolist()]
    logits = gaussian(present.shape, draws)
    soft = present.double() / present.sum(dim=1, keepdim=True)
    expected = torch.nn.functional.cross_entropy(logits, soft)
    assert abs(emergence.soft_cross_entropy(logits, present) - expected) <= 100 * EPS64  # means of a few dozen terms


def test_loss_weighs_concepts() -> None:
    part = split(World(2, 5), 0.6, generator(0))
    dual = emergence.build(TINY, part, generator(1)).double()
    scene = draw_scenes(part.seen, 8, generator(2))
    pool = emergence.candidates(TINY, part, scene)
    with torch.no_grad():
        zero, one, three = (float(emergence.batch_loss(dual, part, scene, pool, weight)) for weight in (0.0, 1.0, 3.0))
        joint = float(emergence.soft_cross_entropy(dual(scene, pool), emergence.contents(part.world, scene, pool)))
        assert float(emergence.batch_loss(dual, part, scene, pool, None)) == joint
    assert three - zero == pytest.approx(3 * (one - zero), abs=100 * EPS64)


def test_a_pool_of_a_batch_holds_its_objects_and_their_seen_swaps() -> None:
    part = split(World(2, 5), 0.6, generator(0))
    scene = draw_scenes(part.seen, 6, generator(2))
    found = emergence.candidates(replace(TINY, pool="batch"), part, scene).tolist()
    objects = {o for row in scene.tolist() for o in row if o != EMPTY}
    for o, other in scene.tolist():
        if other != EMPTY:
            objects |= {o - o % 5 + other % 5, other - other % 5 + o % 5} & set(part.seen.tolist())
    assert found == [*sorted(objects), *range(25, 35)]


# Scores


@given(st.integers(1, 5), seeds)
def test_strict_accuracy_against_a_loop(j: int, seed: int) -> None:
    draws = generator(seed)
    x, q = gaussian((7, 3), draws), gaussian((6, 3), draws)
    right = torch.randint(0, 6, (7, j), generator=draws)
    won = 0
    for row, answers in zip((x @ q.T).tolist(), right.tolist(), strict=True):
        rest = [s for i, s in enumerate(row) if i not in answers]
        won += min(row[i] for i in answers) > max(rest) if rest else 1
    assert emergence.strict(x, q, right) == won / 7


@given(st.integers(4, 8), seeds)
def test_the_mean_margin_of_a_sum_is_its_interaction(values: int, seed: int) -> None:
    """Exactly, for any codes and queries, as long as no length is divided out."""
    world, draws = World(2, values), generator(seed)
    pairs = rectangles(split(world, 0.5, draws, planted=1), 200, draws)
    z, q = gaussian((values**2, 6), draws), gaussian((values**2, 6), draws)
    if len(pairs):
        leak, pooled = emergence.cross_leakage(z, q, pairs, world)
        summed = z[pairs].sum(dim=1)
        mean = float(emergence.margins(summed, q, pairs, world).mean())
        assert 2 * leak.interaction == pytest.approx(mean, abs=1e4 * EPS64)  # sums of 8 products of size up to ten
        assert pooled == pytest.approx(float(summed.square().sum(dim=1).mean()), abs=1e4 * EPS64)


@given(st.integers(4, 7), seeds)
def test_leakages_are_named_by_what_is_shared(values: int, seed: int) -> None:
    world, draws = World(2, values), generator(seed)
    pairs = rectangles(split(world, 0.5, draws, planted=1), 50, draws)
    z, q = gaussian((values**2, 4), draws), gaussian((values**2, 4), draws)
    found: dict[tuple[bool, bool], list[float]] = {}
    for scene in pairs.tolist():
        for o, other in product(scene, [*scene, *swapped(world, torch.tensor(scene)).tolist()]):
            shared = (o // values == other // values, o % values == other % values)
            found.setdefault(shared, []).append(float(z[o] @ q[other]))
    if len(pairs):
        leak, _ = emergence.cross_leakage(z, q, pairs, world)
        named = (leak.gain, leak.object, leak.attribute, leak.neither)
        for name, shared in zip(named, ((True, True), (True, False), (False, True), (False, False)), strict=True):
            assert name == pytest.approx(np.mean(found[shared]), abs=1e4 * EPS64)  # means of a few hundred products up to ten


def test_pooled_margin_is_the_law_of_the_codes_chapter_when_queries_are_codes() -> None:
    u, v = codes.walsh(5, 5)
    z = codes.table(codes.hadamard, u, v).flatten(0, 1)
    pairs = rectangles(split(World(2, 5), 0.4, generator(0), planted=2), 200, generator(0))
    leak, pooled = emergence.cross_leakage(z, z, pairs, World(2, 5))
    law = codes.swap_margin(2, codes.Leakage(*leak)) * math.sqrt(codes.pooled_square(2, codes.Leakage(*leak)))
    assert emergence.pooled_margin(leak, pooled) == pytest.approx(law, abs=100 * EPS64)  # eight products of Walsh codes
    assert emergence.pooled_margin(leak, pooled) == pytest.approx(math.sqrt(2), abs=100 * EPS64)
    x = torch.nn.functional.normalize(z[pairs].sum(dim=1), dim=1)
    margin = emergence.margins(x, z, pairs, World(2, 5))
    assert (margin - math.sqrt(2)).abs().max() <= 100 * EPS64


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_monotone_is_scipys(y: list[float]) -> None:
    assert np.abs(emergence.monotone(y) - isotonic_regression(y).x).max() <= 32 * np.finfo(float).eps  # means of nine numbers


@given(st.lists(st.floats(0.01, 0.3), min_size=2, max_size=8), st.floats(0.05, 0.95))
def test_crossing_lies_on_the_line(steps: list[float], share: float) -> None:
    x = np.cumsum(steps).tolist()
    y = [2 * value + 1 for value in x]
    level = y[0] + share * (y[-1] - y[0])
    assert emergence.crossing(x, y, level) == pytest.approx((level - 1) / 2, abs=1e-12)  # rounding of numbers below four
    assert emergence.crossing(x, y, y[0]) is None and emergence.crossing(x, y, y[-1] + 1) is None


# Runs and sweeps


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_repeats_to_the_bit(kind: str) -> None:
    config = replace(TINY, model=kind, steps=8, values=6)
    first, again = emergence.train(config), emergence.train(config)
    assert first.losses == again.losses
    assert all(torch.equal(a, b) for a, b in zip(first.dual.parameters(), again.dual.parameters(), strict=True))
    assert emergence.measure(first, config) == emergence.measure(again, config)
    assert emergence.train(replace(config, seed=1)).losses != first.losses


@pytest.mark.parametrize("kind", KINDS)
def test_other_arithmetic_gives_nearly_the_same_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """float64 stands for another device: sums round otherwise there, by what float32 can lose. CUDA too, if there is one."""
    config = replace(TINY, model=kind, steps=20, values=6)
    here = np.array(emergence.train(config).losses)
    runs = [emergence.train(config, dtype=torch.float64).losses]
    if torch.cuda.is_available():
        monkeypatch.setenv("BINDING_DEVICE", "cuda")
        runs.append(emergence.train(config).losses)
    for other in runs:
        # Adam divides by the size of a gradient, so a weight moves by up to the learning rate on a sign that rounding decides;
        # after 20 steps losses of about 2 nats were 3e-6 apart at most: thirty times that.
        assert np.abs(here - np.array(other)).max() <= 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_training_lowers_the_loss_of_every_encoder(kind: str) -> None:
    losses = emergence.train(replace(TINY, model=kind, steps=60, learning_rate=1e-2)).losses
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.2


def test_a_small_world_is_learned_and_no_additive_probe_sees_it() -> None:
    config = Config(0.8, 10, steps=400, probes=True)
    found = emergence.run(config)
    assert found["matched"] >= 0.85 and found["concepts"] >= 0.9 and found["seen"] >= 0.9
    assert found["probes"]["additive"]["matched"] == 0.5
    assert found["probes"]["global"]["matched"] > 0.7
    assert found["margin"] > 0.05 and abs(found["from_objects"] / found["margin"] - 1) < 0.2


def test_probes_see_training_objects_and_leakages_held_out_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, tried, counted = [], [], []
    monkeypatch.setattr(emergence, "PRODUCTS", ("global",))
    monkeypatch.setattr(emergence, "PROBED", 400)
    first, products, score, reading = emergence.additive, emergence.product, emergence.r2, emergence.gain_and_leakage
    monkeypatch.setattr(emergence, "additive", lambda slots, x, **more: fitted.append(slots) or first(slots, x, **more))
    monkeypatch.setattr(
        emergence, "product", lambda slots, x, *kind, **more: fitted.append(slots) or products(slots, x, *kind, **more)
    )
    monkeypatch.setattr(emergence, "r2", lambda fit, slots, x: tried.append(slots) or score(fit, slots, x))
    monkeypatch.setattr(emergence, "gain_and_leakage", lambda h, slots, which: counted.append(which) or reading(h, slots, which))
    config = replace(TINY, values=8, probes=True)
    part = split(World(2, 8), config.coverage, generator(config.seed), config.planted)
    emergence.run(config)

    def objects(slots: list[torch.Tensor]) -> set[int]:
        return {o for s in slots for o in (8 * s[:, ::2] + s[:, 1::2]).flatten().tolist()}

    assert len(fitted) == len(tried) == 2 and len(counted) == 1
    assert objects(fitted) == set(part.seen.tolist())
    assert objects(tried) == set(part.held.tolist())
    assert torch.equal(counted[0], part.held_table())


def test_few_objects_are_told_by_elimination() -> None:
    """|O| = 100, ρ = 0.4: strictly right where the swap was seen, wrong where all four objects are new."""
    dual, part, _ = emergence.train(Config(0.4, 10, seed=1))
    q = emergence.queries(dual, part.world)[:100]
    scenes = [(o, p) for o, p in product(part.held.tolist(), repeat=2) if o // 10 != p // 10 and o % 10 != p % 10]
    held = set(part.held.tolist())
    by: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    for o, p in scenes:
        by[len({o - o % 10 + p % 10, p - p % 10 + o % 10} & held)].append((o, p))
    right = [emergence.strict(emergence.embed(dual, torch.tensor(by[n])), q, torch.tensor(by[n])) for n in range(3)]
    assert right[0] > 0.75 and right[2] < 1 / 6 and right[0] - right[2] >= 0.6


def test_leakage_of_a_trained_model_depends_on_the_status_of_the_swap() -> None:
    """In a model of the page's kind on fewer objects: ℓ₀ of two held-out objects, by how many objects of their swap were seen."""
    config = Config(0.6, 15, steps=400)
    dual, part, _ = emergence.train(config)
    world = part.world
    alone = torch.stack([torch.arange(world.objects), torch.full((world.objects,), EMPTY)], dim=1)
    z, q = emergence.embed(dual, alone), emergence.queries(dual, world)[: world.objects]
    found: dict[int, list[float]] = {0: [], 1: [], 2: []}
    held = set(part.held.tolist())
    for o, other in product(sorted(held), repeat=2):
        if o // 15 != other // 15 and o % 15 != other % 15:
            swap = {o - o % 15 + other % 15, other - other % 15 + o % 15}
            found[len(swap & held)].append(float(z[o] @ q[other]))
    assert np.mean(found[0]) < np.mean(found[1]) < np.mean(found[2])


def test_three_concepts_are_measured_too() -> None:
    found = emergence.run(replace(TINY, concepts=3, values=4, model="tokens", pool="batch", concept_weight=None))
    assert 0 <= found["matched"] <= 1 and "probes" not in found and "status" not in found
    json.dumps(found, allow_nan=False)


KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_emergence import TINY
from binding.emergence import run
from binding.runs import sweep
sweep([replace(TINY, steps=60, seed=seed) for seed in range(200)], run, Path({folder!r}), progress=False)
"""


def test_a_killed_sweep_loses_at_most_the_run_in_flight(tmp_path: Path) -> None:
    code = KILLED.format(tests=str(ROOT / "tests"), folder=str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while len(list(tmp_path.glob("*.json"))) < 3 and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, child.stderr.read().decode()
    done = sorted(tmp_path.glob("*.json"))
    n = len(done)
    assert 3 <= n < 200
    configs = [replace(TINY, steps=60, seed=seed) for seed in range(n + 1)]
    assert {path.stem for path in done} == {digest(config) for config in configs[:n]}
    before = {path: path.stat().st_mtime_ns for path in done}
    rows = sweep(configs, emergence.run, tmp_path, progress=False)
    assert {path: path.stat().st_mtime_ns for path in done} == before  # read, not made again
    assert rows[0]["result"] == json.loads(json.dumps(emergence.run(configs[0])))


def test_one_command_makes_a_sweep_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    configs = [replace(TINY, seed=seed) for seed in range(2)]
    monkeypatch.setattr(emergence, "configurations", lambda name: configs)
    emergence.main(["--scale", "wide", "--out", str(tmp_path)])
    assert "2 runs in" in capsys.readouterr().out
    runs = load(tmp_path / "emergence-wide.json", configs)
    assert emergence.curves(runs, "seen") == {5: {s: {0.6: runs[s]["result"]["seen"]} for s in range(2)}}


def test_the_full_sweep_is_the_published_model() -> None:
    configs = emergence.configurations("full")
    assert {c.model for c in configs} == {"tokens"} and {World(c.concepts, c.values).objects for c in configs} == {
        400,
        2500,
        125_000,
    }
    first = configs[0]
    assert (first.width, first.layers, first.heads, first.hidden, first.dimension) == (256, 6, 4, 2048, 64)
    assert (first.steps, first.batch, first.learning_rate, first.weight_decay, first.pool) == (50_000, 512, 3e-5, 0.1, "batch")
    assert len({digest(c) for c in configs}) == len(configs)


@pytest.mark.parametrize("name", SWEEPS)
def test_the_stored_sweeps_are_complete_and_no_additive_fit_binds(name: str) -> None:
    rows = load(RUNS / f"emergence-{name}.json", emergence.configurations(name))
    said = {"commit", "python", "binding", "numpy", "torch", "device", "machine", "threads", "seconds", "processor_seconds"}
    for row in rows:
        config, found = Config(**row["config"]), row["result"]
        assert set(row["provenance"]) == said
        assert all(0 <= found[score] <= 1 for score in ("held", "seen", "concepts"))
        part = split(World(config.concepts, config.values), config.coverage, generator(config.seed), config.planted)
        assert [found["bag_floor"], found["status_floor"]] == [float(floor) for floor in split_floors(part)]
        assert (found["matched"] is None) == (found["matched_scenes"] == 0)
        assert ("probes" in found) == config.probes
        if config.probes:
            assert found["probes"]["additive"]["matched"] == 0.5
            assert set(found["probes"]) == {"additive", "global", "per_object", "pairwise"}


def test_where_the_stored_curves_cross() -> None:
    """The statements of the page about |O| = 400, read from the stored sweep by another way than the page's."""
    rows = load(RUNS / "emergence-curve.json", emergence.configurations("curve"))
    large = [row for row in rows if row["config"]["values"] == 20]
    for seed in range(3):
        curve = {row["config"]["coverage"]: row["result"] for row in large if row["config"]["seed"] == seed}
        assert curve[0.2]["matched"] < 0.75 < curve[0.5]["matched"]
        assert curve[0.3]["held"] < 0.5 < curve[0.6]["held"]
        assert all(curve[coverage]["concepts"] >= 0.98 for coverage in COVERAGES if coverage >= 0.3)
    for score, level, place in (("held", 0.5, 0.41), ("matched", 0.75, 0.29)):
        found = []
        for seed in range(3):
            ordered = sorted((row["config"]["coverage"], row["result"][score]) for row in large if row["config"]["seed"] == seed)
            x, y = np.array(ordered).T
            fine = np.linspace(0.2, 0.9, 7001)
            found.append(fine[np.interp(fine, x, isotonic_regression(y).x) >= level][0])
        assert abs(np.mean(found) - place) < 0.05


def test_a_live_run_falls_into_the_stored_band() -> None:
    """The live run of the page at ρ = 0.8, whose seed the sweep does not hold, against three seeds, 0.1 beyond either end."""
    rows = load(RUNS / "emergence-curve.json", emergence.configurations("curve"))
    stored = [row["result"] for row in rows if (row["config"]["values"], row["config"]["coverage"]) == (20, 0.8)]
    found = emergence.run(Config(0.8, seed=17))
    for score in ("matched", "held", "seen", "concepts"):
        band = [result[score] for result in stored]
        assert len(band) == 3 and min(band) - 0.1 <= found[score] <= max(band) + 0.1


def test_what_the_stored_probes_explain() -> None:
    curve = load(RUNS / "emergence-curve.json", emergence.configurations("curve"))
    probed = [row for row in curve if "probes" in row["result"] and 0.6 <= row["config"]["coverage"] <= 0.8]
    assert len(probed) == 9
    for coverage in (0.6, 0.7, 0.8):
        rows = [row["result"]["probes"]["global"]["matched"] for row in probed if row["config"]["coverage"] == coverage]
        assert len(rows) == 3 and np.mean(rows) >= 0.85
    weights = load(RUNS / "emergence-weights.json", emergence.configurations("weights"))
    for row in weights:
        bag = row["config"]["concept_weight"] in (1.0, None)
        assert (row["result"]["matched"] <= 0.65) == bag and (row["result"]["matched"] >= 0.95) == (not bag)
    gains: dict[bool, list[float]] = {True: [], False: []}
    for row in weights + [row for row in probed if row["config"]["coverage"] == 0.6]:
        fits = row["result"]["probes"]
        gains[row["result"]["matched"] >= 0.95].append(fits["global"]["r2"] - fits["additive"]["r2"])
    assert [len(gains[True]), len(gains[False])] == [7, 4] and min(gains[True]) - max(gains[False]) >= 0.02
    for row in load(RUNS / "emergence-attention.json", emergence.configurations("attention")):
        binds, fits = row["config"]["coverage"] == 0.8, row["result"]["probes"]
        assert (row["result"]["matched"] >= 0.8) == binds and (row["result"]["matched"] <= 0.6) == (not binds)
        assert (fits["global"]["r2"] > fits["additive"]["r2"]) == binds


def test_margins_of_sums_are_their_inner_products_in_the_stored_runs() -> None:
    for name in SWEEPS:
        rows = load(RUNS / f"emergence-{name}.json", emergence.configurations(name))
        for found in (row["result"] for row in rows if row["config"]["model"] == "sum"):
            if found["matched_scenes"] >= 20 and found["concepts"] >= 0.95:
                assert abs(found["from_objects"] - found["margin"]) <= 0.01


def test_the_stored_benchmark_says_what_it_ran() -> None:
    stored = json.loads((RUNS / "emergence-benchmark.json").read_text(encoding="utf-8"))
    assert set(stored) == {"schema", "command", "result", "provenance"} and "bench_emergence.py" in stored["command"]
    race = stored["result"]["race"]
    assert race["ratio"] == pytest.approx(race["seconds"]["loops"] / race["seconds"]["ours"], rel=1e-12)  # one division
    assert race["ratio"] > 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: World(1, 5), "C = 1"),
        (lambda: Config(0.01), "coverage = 0.01 shows 4 of 400"),
        (lambda: Config(1.0), "coverage = 1.0 shows 400"),
        (lambda: Config(0.5, model="mlp"), "model = 'mlp'"),
        (lambda: Config(0.5, pool="half"), "pool = 'half'"),
        (lambda: Config(0.5, steps=0), "steps = 0"),
        (lambda: Config(0.5, concept_weight=-1.0), "concept_weight = -1.0"),
        (lambda: Config(0.5, width=6), "width = 6"),
        (lambda: Config(0.5, 5, 3, probes=True), "concepts = 3"),
        (lambda: Config(0.5, warmup=1.0), "warmup = 1.0"),
        (lambda: draw_scenes(torch.arange(3), 2, generator(0), least=3), "scenes of 3 to 2"),
        (lambda: bag_floor(1), "V = 1"),
        (lambda: split_floors(split(World(3, 4), 0.5, generator(0))), "C = 3"),
        (lambda: emergence.pooled_margin(codes.Leakage(1, 0, 0, 0), 0.0), "pooled_square = 0.0"),
        (lambda: emergence.configurations("huge"), "no sweep 'huge'"),
        (lambda: emergence.crossing([0.1, 0.1], [0, 1], 0.5), "must increase"),
        (lambda: emergence.curves([], "held"), "no run has a score 'held'"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
