"""Banks, edits and readers: exact on embeddings that are sums, at chance where a theorem says so, and nothing held out leaks."""

import json
import re
from fractions import Fraction
from functools import partial
from itertools import product as grid

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from binding.binding_functions import (
    COVERAGES,
    ENCODERS,
    PREDICTORS,
    Config,
    Readers,
    averages,
    classical_mds,
    complexity,
    configurations,
    decomposition,
    from_concepts,
    interventions,
    network,
    predictor,
    reader,
    recognised,
    removals,
    replaced,
    small_clip,
)
from binding.binding_functions import main as run_sweep
from binding.cli import main
from binding.codes import leakage
from binding.encoders import minilm
from binding.numerics import gaussian, generator
from binding.pages import stored_run
from binding.runs import load
from binding.scene_bank import (
    ADJECTIVES,
    NOUNS,
    Bank,
    binding_share,
    draw_split,
    draw_targets,
    hits,
    hold_out_pairs,
    nearest,
    presence,
    swap_choice,
    swap_r2,
)
from binding.structure import Fit, additive, atom_codes, product, r2, swap_margins

seeds = st.integers(0, 10**6)
sides = st.integers(3, 5)
ROUNDING = 1e-9
"""Of sums of some hundred float64 numbers of size ten; a wrong row or sign moves results by 0.01 or more."""
few = settings(deadline=None, max_examples=12)


def object_sums(bank: Bank, N: int, draws: torch.Generator, *, ordered: bool = True) -> torch.Tensor:
    """Embeddings that are sums of one vector an object, with a table for each place or one for both."""
    tables = gaussian((2, bank.M * bank.K, N), draws)
    second = tables[1] if ordered else tables[0]
    return tables[0][bank.objects[:, 0]] + second[bank.objects[:, 1]]


@given(sides, sides)
@settings(deadline=None, max_examples=9)
def test_a_bank_holds_each_scene_its_swap_and_its_order_once(M: int, K: int) -> None:
    bank = Bank(M, K)
    rows = [tuple(row) for row in bank.slots.tolist()]
    assert len(set(rows)) == len(rows) == M * (M - 1) * K * (K - 1)
    o, a, p, b = bank.slots.T
    # Tensors, not lists: pytest would explain how two lists of thousands differ.
    assert torch.equal(bank.slots[bank.swap], torch.stack([o, b, p, a], dim=1))
    assert torch.equal(bank.slots[bank.reorder], torch.stack([p, b, o, a], dim=1))
    assert torch.equal(bank.objects, torch.stack([K * o + a, K * p + b], dim=1))
    assert torch.equal(bank.row(bank.slots), torch.arange(len(rows)))


def test_captions_say_the_scene() -> None:
    bank = Bank(8, 8)
    texts = bank.captions()
    row = bank.row(torch.tensor([[4, 0, 0, 1]]))
    assert texts[row] == "a red car and a blue dog"
    assert texts[bank.swap[row]] == "a blue car and a red dog"
    assert texts[bank.reorder[row]] == "a blue dog and a red car"
    assert len(set(texts)) == len(texts) == 3136


@few
@given(seeds, sides)
def test_averages_are_the_best_sum_where_the_design_is_a_full_grid(seed: int, M: int) -> None:
    """Oracle: conditional means. On a bank they are not the best sum, since partners are not evenly spread over objects."""
    draws = generator(seed)
    bank = Bank(M, 3)
    x = object_sums(bank, 4, draws)
    every = torch.ones(len(x), dtype=torch.bool)
    fit = averages(bank, x, every)
    for place in (0, 1):
        means = [x[bank.objects[:, place] == o].mean(dim=0) - x.mean(dim=0) for o in range(bank.M * bank.K)]
        assert float((fit.sums[place] - torch.stack(means)).abs().max()) < ROUNDING
    best = additive(bank.objects, x)
    assert r2(best, bank.objects, x) == pytest.approx(1, abs=ROUNDING)
    assert r2(fit, bank.objects, x) < 1 - 1e-6
    plain = averages(bank, x, every, position=False)
    assert plain.sums[0] == pytest.approx((fit.sums[0] + fit.sums[1]) / 2, abs=ROUNDING)


@few
@given(seeds, sides)
def test_a_replacement_is_exact_on_sums_of_objects_and_only_there(seed: int, M: int) -> None:
    draws = generator(seed)
    bank = Bank(M, 4)
    rows = torch.randperm(len(bank.slots), generator=draws)[:40]
    target = draw_targets(bank, rows, "object", draws)
    x = object_sums(bank, 6, draws)
    for place in (0, 1):
        goal = target if place == 0 else draw_targets(bank, rows, "object", draws, place=1)
        edited = replaced(bank, x, additive(bank.objects, x), rows, bank.objects[goal, place], place=place)
        assert float((edited - x[goal]).abs().max()) < 1e-7
    crossed = x + gaussian(x.shape, draws)
    edited = replaced(bank, crossed, additive(bank.objects, crossed), rows, bank.objects[target, 0])
    assert float((edited - crossed[target]).norm(dim=1).min()) > 1e-3


@few
@given(seeds, st.integers(2, 6), st.integers(2, 6), st.integers(1, 4))
def test_the_error_of_a_replacement_is_what_the_sum_leaves_out(seed: int, n: int, m: int, N: int) -> None:
    """On a full grid of n first and m second objects the mean ‖error‖² of a replacement is 2n/(n − 1) mean ‖residual‖²."""
    x = gaussian((n, m, N), generator(seed))
    slots = torch.tensor(list(grid(range(n), range(m))))
    fit = additive(slots, x.reshape(n * m, N))
    left = (x.reshape(n * m, N) - fit.predict(slots)).reshape(n, m, N)
    u = fit.sums[0]
    errors = [(x[o] - u[o] + u[p] - x[p]).square().sum(dim=1).mean() for o, p in grid(range(n), repeat=2) if o != p]
    assert float(torch.stack(errors).mean()) == pytest.approx(
        2 * n / (n - 1) * float(left.square().sum(dim=2).mean()), rel=1e-9, abs=1e-12
    )


@few
@given(seeds, sides)
def test_no_sum_over_concepts_chooses_between_a_scene_and_its_swap(seed: int, M: int) -> None:
    draws = generator(seed)
    bank = Bank(M, 4)
    x = gaussian((len(bank.slots), 7), draws)
    every = torch.ones(len(x), dtype=torch.bool)
    for shared in (None, (0, 1, 0, 1)):
        guess = additive(bank.slots, x, shared=shared).predict(bank.slots)
        assert swap_choice(bank, x, guess, every) == 0.5
        assert swap_r2(bank, x, guess, every) == pytest.approx(0, abs=ROUNDING)
    free = bank.order_free(x)
    best = r2(additive(bank.slots, free), bank.slots, free)
    assert best <= 1 - binding_share(bank, x) + ROUNDING
    assert swap_choice(bank, x, x, every) == 1 and swap_r2(bank, x, x, every) == 1
    assert swap_choice(bank, x, x[bank.swap], every) == 0


def test_one_order_alone_can_be_right_three_times_in_four() -> None:
    """Tables of its own for each place: over a scene, its swap and their orders the margins cancel, the number right need not."""
    draws = generator(0)
    shares, sums = set(), []
    for _ in range(2000):
        u = gaussian((4, 2, 3), draws)  # a table a slot, two values each
        query = gaussian((2, 2, 3), draws)
        scenes = torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]])
        f = sum(u[s][scenes[:, s]] for s in range(4))
        margin = swap_margins(torch.einsum("sn,oan->soa", f, query), scenes)
        sums.append(float(margin.sum()))
        shares.add(Fraction(int((margin > 0).sum()), 4))
    assert np.abs(sums).max() < ROUNDING
    assert shares == {Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)}


@few
@given(seeds, sides)
def test_the_binding_share_of_a_sum_of_objects_is_the_interaction_of_its_codes(seed: int, M: int) -> None:
    """ς = κ / Σ‖x̄ − mean‖² per scene, with κ from the leakages of the codes chapter: two ways to one number."""
    draws = generator(seed)
    bank = Bank(M, 4)
    x = object_sums(bank, 5, draws, ordered=False)
    z = torch.zeros(bank.M * bank.K, 5, dtype=torch.float64)
    z[bank.objects[:, 0]] = additive(bank.objects, x, shared=(0, 0)).sums[0][bank.objects[:, 0]]
    variance = float((x - x.mean(dim=0)).square().sum(dim=1).mean())
    κ = leakage(z.reshape(bank.M, bank.K, 5)).interaction
    assert binding_share(bank, x) == pytest.approx(κ / variance, rel=1e-7)


@few
@given(seeds)
def test_a_product_for_each_object_is_a_hadamard_code(seed: int) -> None:
    draws = generator(seed)
    bank = Bank(4, 3)
    x = gaussian((len(bank.slots), 6), draws)
    fit = product(bank.slots, x, "per_object", rank=3, steps=4, seed=seed % 100)
    o, a, p, b = bank.slots.T
    codes = [atom_codes(fit, i) for i in (0, 1)]
    assert float((fit.predict(bank.slots) - fit.mean - codes[0][o, a] - codes[1][p, b]).abs().max()) < ROUNDING
    bare = additive(bank.slots, x)
    assert leakage(atom_codes(bare)).interaction == pytest.approx(0, abs=ROUNDING)


def test_edits_find_the_right_scene_among_all_and_controls_do_not() -> None:
    """Sums of random object vectors in 64 dimensions: distinct scenes lie far apart, so exact edits are found. A control that
    hits 12 of 200 targets among 400 scenes has probability below 1e-9 (binomial)."""
    draws = generator(4)
    bank = Bank(5, 5)
    x = object_sums(bank, 64, draws)
    rows = torch.randperm(len(x), generator=draws)[:200]
    found = interventions(bank, x, additive(bank.objects, x), rows)
    assert found["object"] == 1 and found["none"] == 0 and found["permuted"] < 0.06
    assert torch.equal(nearest(3 * x[rows], x), rows)
    assert hits(bank, bank.reorder[rows], rows) == 0 and hits(bank, bank.reorder[rows], rows, ordered=False) == 1


@pytest.mark.parametrize("what", ["object", "first", "second"])
@pytest.mark.parametrize("place", [0, 1])
def test_targets_change_what_they_say_to_values_that_are_new(what: str, place: int) -> None:
    bank = Bank(5, 4)
    rows = torch.arange(len(bank.slots))
    old, new = bank.slots, bank.slots[draw_targets(bank, rows, what, generator(1), place=place)]
    changed = {"object": {0, 1}, "first": {0}, "second": {1}}[what]
    for column in range(4):
        moved = column // 2 == place and column % 2 in changed
        assert torch.equal(new[:, column] != old[:, column], torch.full((len(rows),), moved))
        if moved:
            assert (new[:, [column]] != old[:, [column % 2, column % 2 + 2]]).all()


def test_removing_a_vector_removes_what_it_names() -> None:
    """One orthogonal direction for each noun, adjective and object, and a little noise, so that nothing ties."""
    bank = Bank(4, 4)
    directions = torch.linalg.qr(gaussian((24, 24), generator(0))).Q
    x = sum(
        directions[base + index]
        for base, index in (
            (0, bank.slots[:, 0]), (0, bank.slots[:, 2]), (4, bank.slots[:, 1]), (4, bank.slots[:, 3]),
            (8, bank.objects[:, 0]), (8, bank.objects[:, 1]),
        )
    )  # fmt: skip
    rows = torch.randperm(len(x), generator=generator(3))[:40]
    found = removals(bank, x + 0.05 * gaussian(x.shape, generator(1)), rows)
    assert found["original"] == (1, 1)
    assert found["other concept"] == (1, 1) and found["other object"] == (1, 1)
    assert found["concept"][0] < 0.6 and found["concept"][1] == 1
    assert found["object"][0] < 0.6 and found["object"][1] < 0.2


def test_removals_read_scenes_that_no_reader_and_no_vector_has_seen() -> None:
    """Noise in more dimensions than scenes: a fit that saw them would know them all. Of 60 fair draws of 2 in 16 objects more
    than 30 are right with probability below 1e-12."""
    bank = Bank(4, 4)
    rows = torch.randperm(len(bank.slots), generator=generator(1))[:60]
    found = removals(bank, gaussian((len(bank.slots), 200), generator(0)), rows)
    assert found["original"][1] < 0.5


@few
@given(seeds)
def test_readers_are_ridge_regression(seed: int) -> None:
    """Oracle: least squares on rows extended by √λ 1."""
    draws = generator(seed)
    x, y = gaussian((30, 4), draws), presence(torch.randint(0, 5, (30, 2), generator=draws), 5)
    read = reader(x, y, ridge=0.1)
    centred, aim = x - x.mean(dim=0), y.double() - y.double().mean(dim=0)
    λ = 0.1 * float((centred.T @ centred).diagonal().mean())
    rows = np.vstack([centred, np.sqrt(λ) * np.eye(4)])
    W = np.linalg.lstsq(rows, np.vstack([aim, np.zeros((4, 5))]), rcond=None)[0]
    assert np.abs(read.weight.numpy() - W).max() < ROUNDING
    assert float((read(x) - (centred @ torch.tensor(W) + y.double().mean(dim=0))).abs().max()) < ROUNDING


def test_recognition_is_strict() -> None:
    present = torch.tensor([[True, True, False, False]])
    for scores, right in (([3.0, 2.0, 1.0, 0.0], True), ([3.0, 1.0, 1.0, 0.0], False), ([3.0, 0.5, 1.0, 0.0], False)):
        assert bool(recognised(torch.tensor([scores]), present)) == right


@few
@given(seeds, sides)
def test_held_out_pairs_are_held_out_in_both_orders(seed: int, M: int) -> None:
    bank = Bank(M, 4)
    held = hold_out_pairs(bank, 0.2, generator(seed))
    assert torch.equal(held, held[bank.reorder])
    assert int(held.sum()) == 2 * round(0.2 * len(held) / 2)


@given(seeds, st.sampled_from(COVERAGES))
@settings(deadline=None, max_examples=25)
def test_splits_show_their_share_every_value_and_never_all_of_a_rectangle(seed: int, coverage: float) -> None:
    bank = Bank(8, 8)
    shown = draw_split(bank, coverage, generator(seed))
    table = shown.reshape(8, 8)
    assert int(shown.sum()) == round(64 * coverage) and table.any(dim=0).all() and table.any(dim=1).all()
    test = (~shown[bank.objects]).all(dim=1)
    assert (test & test[bank.swap]).any()


@pytest.mark.parametrize("name", PREDICTORS)
def test_no_scene_of_an_object_that_is_not_shown_reaches_a_fit(name: str) -> None:
    """Poison: embeddings of all other scenes are made NaN, which would spread through any fit that saw one."""
    bank = Bank(4, 4)
    shown = draw_split(bank, 0.6, generator(3))[bank.objects].all(dim=1)
    x = gaussian((len(bank.slots), 5), generator(0))
    clean = predictor(name, bank, x, shown, 0)(bank.slots)
    poisoned = torch.where(shown[:, None], x, torch.full_like(x, float("nan")))
    assert torch.equal(predictor(name, bank, poisoned, shown, 0)(bank.slots), clean)


def test_complexity_tells_a_product_from_noise() -> None:
    """Scenes whose pairing is a product of concept tables: on most splits the product predicts it for objects not shown.
    With a random vector an object nothing can: swap choices are fair coins, and each of 12 splits has a rectangle of its own, so
    that all of them fall alike with probability below 2⁻¹¹ for other seeds than these."""
    draws = generator(8)
    bank = Bank(8, 8)
    tables, W = 1 + 0.5 * gaussian((2, 8, 4), draws), gaussian((4, 24), draws)
    o, a, p, b = bank.slots.T
    bound = (tables[0][o] * tables[1][a] + tables[0][p] * tables[1][b]) @ W
    random = object_sums(bank, 24, draws, ordered=False)
    names = ("additive", "per_object")
    good = [complexity(bank, bound, 0.8, seed, names) for seed in range(4)]
    bad = [complexity(bank, random, 0.8, seed, names) for seed in range(12)]
    assert all(found["true"]["r2"] == 1 and found["true"]["swap"] == 1 for found in good + bad)
    assert all(found["additive"]["swap"] == 0.5 for found in good + bad)
    assert all(found["per_object"]["r2"] > found["additive"]["r2"] + 0.05 for found in good)
    assert np.mean([found["per_object"]["swap"] for found in good]) > 0.8
    assert 0.05 < np.mean([found["per_object"]["swap"] for found in bad]) < 0.95


def test_what_a_sum_carries_is_counted_where_neither_scene_nor_swap_was_fitted() -> None:
    bank = Bank(5, 4)
    x = gaussian((len(bank.slots), 12), generator(2))
    test = hold_out_pairs(bank, 0.2, generator(3))
    guess = additive(bank.objects[~test], x[~test], sizes=(20, 20)).predict(bank.objects)
    fair, leaky = (swap_r2(bank, x, guess, rows) for rows in (test & test[bank.swap], test))
    sums = additive(bank.slots[~test], x[~test], sizes=(5, 4, 5, 4))
    assert decomposition(bank, x, 3)["r2_concepts"] == pytest.approx(r2(sums, bank.slots[test], x[test]), abs=ROUNDING)
    as_objects = from_concepts(sums).predict(bank.objects)
    assert float((as_objects - sums.predict(bank.slots)).abs().max()) < ROUNDING
    assert decomposition(bank, x, 3)["carried"] == pytest.approx(fair, abs=ROUNDING) != pytest.approx(leaky, abs=0.01)


def test_decomposition_of_a_sum_is_perfect_and_holds_pairs_out() -> None:
    bank = Bank(5, 4)
    x = object_sums(bank, 40, generator(1))
    found = decomposition(bank, x)
    assert found["r2_objects"] == pytest.approx(1, abs=1e-6) and found["carried"] == pytest.approx(1, abs=1e-6)
    assert found["retrieval"] == 1 and found["replace_object"] == 1
    assert found["r2_concepts"] < found["r2_average_position"] < found["r2_objects"]
    noise = decomposition(bank, gaussian(x.shape, generator(2)))
    assert noise["r2_objects"] < 0.1 and noise["retrieval"] < 0.2


@few
@given(seeds, st.integers(3, 9))
def test_classical_scaling_keeps_all_distances_if_it_may(seed: int, n: int) -> None:
    draws = generator(seed)
    flat = gaussian((n, 2), draws)
    x = flat @ torch.linalg.qr(gaussian((5, 5), draws)).Q[:2] + 3.0
    assert float((torch.cdist(classical_mds(x), classical_mds(x)) - torch.cdist(flat, flat)).abs().max()) < 1e-6
    high = gaussian((n, 6), draws)
    assert (torch.cdist(classical_mds(high), classical_mds(high)) <= torch.cdist(high, high) + 1e-6).all()


def test_a_network_learns_a_table_and_a_seed_repeats_it() -> None:
    bank = Bank(4, 4)
    x = object_sums(bank, 3, generator(1), ordered=False)
    fits = [network(bank.slots, x, 64, seed, sizes=(4, 4, 4, 4))(bank.slots) for seed in (0, 0, 1)]
    assert torch.equal(fits[0], fits[1]) and not torch.equal(fits[0], fits[2])
    assert 1 - float((x - fits[0]).square().sum() / (x - x.mean(dim=0)).square().sum()) > 0.95


def test_the_sweep_names_every_cell_once() -> None:
    assert len(set(configurations(4))) == 3 * 4 * len(COVERAGES)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b, x: Bank(1, 3), "need two values"),
        (lambda b, x: b.row(torch.tensor([[0, 0, 0, 1]])), "repeats a value"),
        (lambda b, x: b.captions(("dog",), ("red",)), "1 nouns"),
        (lambda b, x: b.embeddings(x[1:]), "one row a scene"),
        (lambda b, x: averages(b, x, torch.zeros(len(x), dtype=torch.bool)), "no scene"),
        (lambda b, x: binding_share(b, 0 * x), "one embedding"),
        (lambda b, x: swap_r2(b, 0 * x, x, torch.ones(len(x), dtype=torch.bool)), "no pairing to carry"),
        (lambda b, x: swap_choice(b, x, x, torch.zeros(len(x), dtype=torch.bool)), "no scene"),
        (lambda b, x: draw_targets(b, torch.arange(3), "colour", generator(0)), "what is 'colour'"),
        (lambda b, x: draw_targets(Bank(2, 2), torch.arange(1), "first", generator(0)), "no third one"),
        (lambda b, x: hold_out_pairs(b, 1.0, generator(0)), "share = 1.0"),
        (lambda b, x: draw_split(b, 0.95, generator(0)), "shows 9 of 9"),
        (lambda b, x: draw_split(b, float("nan"), generator(0)), "coverage = nan; give a share"),
        (lambda b, x: draw_split(b, 1.5, generator(0)), "coverage = 1.5; give a share"),
        (lambda b, x: predictor("forest", b, x, torch.ones(len(x), dtype=torch.bool), 0), "predictor 'forest'"),
        (lambda b, x: network(b.slots, x, 0, 0, sizes=(3,) * 4), "hidden = 0"),
        (lambda b, x: reader(x, x > 0, ridge=0), "ridge = 0"),
        (lambda b, x: classical_mds(x[:3], 3), "2 dimensions"),
        (lambda b, x: Config("clip", 0.5), "encoder = 'clip'"),
    ],
)
def test_bad_input_is_named(call, words: str) -> None:
    bank = Bank(3, 3)
    with pytest.raises(ValueError, match=words):
        call(bank, gaussian((len(bank.slots), 2), generator(0)))


def test_fits_of_averages_predict_with_the_mean() -> None:
    bank = Bank(3, 3)
    x = gaussian((len(bank.slots), 2), generator(0))
    fit = averages(bank, x, torch.ones(len(x), dtype=torch.bool), position=False)
    assert isinstance(fit, Fit)
    o, p = bank.objects.T
    assert float((fit.predict(bank.objects) - fit.mean - fit.sums[0][o] - fit.sums[0][p]).abs().max()) < ROUNDING


def test_the_packaged_encoder_is_nearly_a_sum() -> None:
    """On 900 captions of 6 × 6 objects, a part of the chapter's bank; the bounds are those of its claims, or wider."""
    bank = Bank(6, 6)
    x = bank.embeddings(minilm()(bank.captions(NOUNS[:6], ADJECTIVES[:6])))
    found = decomposition(bank, x)
    assert found["r2_average_position"] > 0.8 and found["r2_objects"] > 0.9
    assert found["binding_share"] < 0.01 and found["carried"] < 0.2
    assert found["replace_object"] > 0.85 and max(found["replace_permuted"], found["replace_none"]) < 0.02
    seen = removals(bank, x, torch.randperm(len(x), generator=generator(0))[:200])
    assert seen["object"][1] <= 0.1 and min(seen[name][1] for name in ("original", "concept", "other object")) >= 0.95
    rest = ~hold_out_pairs(bank, 0.2, generator(0))
    assert float(Readers.of(bank, x, rest).concepts_and_objects(x)[1][~rest].double().mean()) >= 0.9
    rows = [complexity(bank, x, 0.5, seed, ("additive", "mlp 64")) for seed in range(3)]
    for name in ("additive", "mlp 64"):
        assert min(row[name]["concepts"] for row in rows) >= 0.8 and max(row[name]["objects"] for row in rows) <= 0.2
    assert abs(np.mean([row["mlp 64"]["swap"] for row in rows]) - 0.5) <= 0.2
    bag = removals(bank, additive(bank.slots, x).predict(bank.slots), torch.arange(0, len(x), 5))
    assert bag["concept"][1] <= 0.5 <= seen["concept"][1]  # a bag that knows the places loses the object with its noun


def test_a_clip_trained_with_swaps_binds_by_objects() -> None:
    """Half the steps of the chapter's; the bounds are those of its claims, or wider."""
    bank = Bank(8, 8)
    towers = small_clip(0.5, seed=1, steps=300)
    for x in towers:
        found = decomposition(bank, x, ordered=False)
        assert found["binding_share"] > 0.05 and found["carried"] > 0.4
        assert found["r2_objects"] > found["r2_concepts"] + 0.03
        free = decomposition(bank, bank.order_free(x), ordered=False)
        assert free["r2_objects"] > 1 - free["binding_share"] > free["r2_concepts"]
    rows = [complexity(bank, towers[0], 0.5, seed, ("mlp 64",))["mlp 64"] for seed in range(3)]
    assert np.mean([row["concepts"] for row in rows]) > 0.7 and np.mean([row["objects"] for row in rows]) < 0.2
    assert np.mean([row["swap"] for row in rows]) > 0.6


def test_the_sweep_is_kept_and_stored(tmp_path, monkeypatch) -> None:
    bank = Bank(8, 8)
    x = object_sums(bank, 6, generator(0))
    monkeypatch.setattr("binding.binding_functions.embedded", lambda encoder, seed: x)
    monkeypatch.setattr("binding.binding_functions.PREDICTORS", ("additive",))
    monkeypatch.setattr("binding.binding_functions.COVERAGES", (0.5,))
    monkeypatch.setattr("binding.binding_functions.complexity", partial(complexity, names=("additive",)))
    run_sweep(["--out", str(tmp_path), "--seeds", "1"])
    cells = [Config(encoder, 0.5, 0) for encoder in ENCODERS]
    stored = load(tmp_path / "binding-functions.json", cells)
    assert [row["config"]["encoder"] for row in stored] == list(ENCODERS)
    assert all(row["result"]["additive"]["swap"] == 0.5 for row in stored)
    assert all(row["result"]["decomposition"]["r2_objects"] == pytest.approx(1, abs=1e-3) for row in stored)


def test_the_stored_sweep_says_what_the_page_says() -> None:
    runs = load(stored_run("binding-functions.json"), configurations(2))
    swap = {
        (encoder, name): np.mean([row["result"][name]["swap"] for row in runs if row["config"] == {**row["config"], **cell}])
        for encoder in ENCODERS
        for name in PREDICTORS
        for cell in ({"encoder": encoder, "coverage": 0.5},)
    }
    assert all(swap[encoder, "additive"] == 0.5 for encoder in ENCODERS)
    assert swap[ENCODERS[2], "global"] > 0.7 and swap[ENCODERS[2], "global"] > swap[ENCODERS[2], "per_object"] + 0.1
    assert all(abs(swap[encoder, "global"] - 0.5) < 0.15 for encoder in ENCODERS[:2])
    trained = [row["result"]["decomposition"] for row in runs if row["config"]["encoder"] == ENCODERS[2]]
    assert min(row["binding_share"] for row in trained) > 0.1 and min(row["carried"] for row in trained) > 0.5


def test_the_command_measures_embeddings_from_anywhere(tmp_path, capsys) -> None:
    """Embeddings that are exact sums of objects, from a file: all that sums should do they do."""
    bank, file = Bank(8, 8), tmp_path / "captions.txt"
    assert main(["decompose", "--captions", str(file)]) == 0
    texts = file.read_text(encoding="utf-8").splitlines()
    assert texts == bank.captions()
    np.savez(tmp_path / "x.npz", captions=texts, embeddings=object_sums(bank, 70, generator(0)).numpy())
    capsys.readouterr()
    assert main(["decompose", str(tmp_path / "x.npz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["decomposition"]
    assert found["r2_objects"] > 0.9 and found["replace_object"] > 0.9 > 0.1 > found["replace_permuted"]
    assert main(["decompose", str(tmp_path / "x.npz"), "--coverage", "0.99"]) == 2
    assert "coverage = 0.99 shows 63 of 64" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["minilm", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["minilm", "--coverage", "nan"], "coverage = nan"),
        (["minilm", "--coverage", "0.05"], "shows 3 of 64 objects; need 8 to 60"),
        (["--captions", "captions.csv"], "does not end in .txt"),
        (["few.npz"], "3135 captions have no stored embedding, the first is 'a red dog and a blue cat'"),
        (["bare.npz"], "'captions' \\(text\\) and 'embeddings'"),
        (["equal.npz"], "all rows of x are equal"),
        (["none.npz"], "no file"),
    ],
)
def test_the_command_names_what_is_wrong(arguments, words, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    texts = Bank(8, 8).captions()
    np.savez("few.npz", captions=["a red car and a blue dog"], embeddings=np.ones((1, 4)))
    np.savez("bare.npz", embeddings=np.ones((1, 4)))
    np.savez("equal.npz", captions=texts, embeddings=np.ones((len(texts), 4)))
    assert main(["decompose", *arguments]) == 2
    assert re.search(words, capsys.readouterr().err)


def test_the_command_says_how_few_choices_a_split_leaves(tmp_path, monkeypatch, capsys) -> None:
    bank = Bank(8, 8)
    monkeypatch.setattr("binding.binding_functions.PREDICTORS", ("additive",))
    monkeypatch.setattr("binding.binding_functions.complexity", partial(complexity, names=("additive",)))
    np.savez(tmp_path / "x.npz", captions=bank.captions(), embeddings=object_sums(bank, 9, generator(0)).numpy())
    assert main(["decompose", str(tmp_path / "x.npz"), "--coverage", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "20 scenes of objects not shown, 4 of them with a swap to choose from" in out
    assert "swap  0.500" in out


def test_the_command_keeps_a_file_of_captions_unless_forced(tmp_path, capsys) -> None:
    file = tmp_path / "captions.txt"
    file.write_text("mine", encoding="utf-8")
    assert main(["decompose", "--captions", str(file)]) == 2
    assert "--force" in capsys.readouterr().err and file.read_text(encoding="utf-8") == "mine"
    assert main(["decompose", "--captions", str(file), "--force"]) == 0
    assert file.read_text(encoding="utf-8") != "mine"
