"""The scenes, captions and batches of the trained encoder, what its loss can and cannot see, and sweeps that survive a stop."""

import json
from dataclasses import asdict, replace
from math import exp, log

import pytest
import torch
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from binding import training
from binding.numerics import generator
from binding.training import Config

TINY = Config(0.5, steps=4, warmup=2, batch=8, width=32, image_layers=1, text_layers=1, scored=16)
STORED = ROOT / "binding" / "data" / "runs" / "throttle-laptop.json"
seeds = st.integers(0, 10_000)


@pytest.fixture(scope="module")
def model():
    return training.build(TINY).eval()


def words(tokens):
    return [training.WORDS[token] for token in tokens.tolist()]


def everything(n=40, seed=0):
    draws = generator(seed)
    sets = training.concept_sets()[torch.randint(0, 784, (n,), generator=draws)]
    return training.scenes(sets, torch.randint(0, 2, (n,), generator=draws) == 1)


# Scenes and captions


def test_concept_sets_and_split_cover_all_scenes_once():
    sets, (known, held) = training.concept_sets(), training.split()
    assert len(sets) == 28 * 28 == len({tuple(row) for row in sets.tolist()})
    assert sorted(torch.cat([known, held]).tolist()) == sorted(sets.tolist())
    assert len(held) == int(0.2 * 784)


@given(seeds)
def test_a_swap_undoes_itself_and_keeps_the_words(seed):
    scene = everything(seed=seed)
    swapped = training.swap(scene)
    assert torch.equal(training.swap(swapped), scene)
    assert torch.equal(scene[:, 1::2], swapped[:, 1::2])
    assert (scene[:, ::2] != swapped[:, ::2]).all()
    for later in (torch.zeros(40, dtype=torch.bool), torch.ones(40, dtype=torch.bool)):
        a, b = training.captions(scene, later), training.captions(swapped, later)
        assert torch.equal(a.sort(dim=1).values, b.sort(dim=1).values)
        assert (a != b).any(dim=1).all()


@given(seeds)
def test_captions_say_what_is_there(seed):
    scene = everything(seed=seed)
    colours, shapes = list(training.COLOURS), training.SHAPES
    for row, tokens in zip(scene.tolist(), training.captions(scene, torch.zeros(40, dtype=torch.bool)), strict=True):
        a, x, b, y = row
        assert words(tokens) == ["<start>", "a", colours[a], shapes[x], "and", "a", colours[b], shapes[y], "<end>"]


@given(seeds)
def test_the_four_captions_of_a_quartet_are_two_orders_of_two_pairings(seed):
    scene = everything(seed=seed)
    own, reorder, other, other_reorder = (
        [[set(words(row)[2:4]), set(words(row)[6:8])] for row in tokens] for tokens in training.quartet_captions(scene)
    )
    assert own == [pairs[::-1] for pairs in reorder]
    assert other == [pairs[::-1] for pairs in other_reorder]
    assert all(sorted(map(sorted, a)) != sorted(map(sorted, b)) for a, b in zip(own, other, strict=True))


def test_shapes_differ_and_fill_their_cell():
    shapes = training.masks(training.CELL)
    assert shapes.shape == (8, training.CELL, training.CELL)
    assert set(shapes.unique().tolist()) == {0.0, 1.0}
    distance = (shapes[:, None] - shapes).abs().sum(dim=(2, 3)) + 1000 * torch.eye(8)
    assert distance.min() >= 16  # pixels, of 169


def test_pictures_show_the_colours_of_the_scene_and_nothing_of_its_order():
    scene = everything(200)
    draws = generator(3)
    pictures = training.render(scene, draws, noise=0.0)
    assert torch.equal(pictures, training.render(scene, generator(3), noise=0.0))
    palette = torch.tensor(list(training.COLOURS.values()))
    left = 0
    for picture, (a, _, b, _) in zip(pictures, scene.tolist(), strict=True):
        seen = {tuple(colour) for colour in picture.flatten(1).T.tolist()} - {(training.GROUND,) * 3}
        assert seen == {tuple(palette[a].tolist()), tuple(palette[b].tolist())}
        left += tuple(palette[a].tolist()) in {tuple(colour) for colour in picture[:, :, :16].flatten(1).T.tolist()}
    assert 60 <= left <= 140  # of 200 fair coins: outside with probability 2 exp(−2 · 40²/200) < 1e-6, and the seed is fixed


def test_pixel_noise_has_its_standard_deviation():
    scene = everything(200)
    noise = training.render(scene, generator(3), noise=0.1) - training.render(scene, generator(3), noise=0.0)
    # Variance of n = 614,400 pixels: relative deviation below 2 √(log(2e9)/n) + 2 log(2e9)/n < 1.2 % but for 1e-9
    # (Laurent and Massart).
    assert abs(float(noise.double().var()) / 0.01 - 1) <= 0.012


@given(seeds)
def test_replaced_scenes_have_one_new_word(seed):
    scene, none = everything(seed=seed), torch.zeros(40, dtype=torch.bool)
    for what in ("colour", "shape"):
        other = training.replaced(scene, what, generator(seed))
        assert ((training.captions(scene, none) != training.captions(other, none)).sum(dim=1) == 1).all()
        for old, new in zip(scene.tolist(), other.tolist(), strict=True):
            column = 0 if what == "colour" else 1
            assert new[column] not in (old[column], old[column + 2]) and 0 <= new[column] < 8


# Batches


@given(seeds)
def test_only_contrast_batches_hold_swaps(seed):
    config = replace(TINY, batch=32)
    for contrast in (False, True):
        scene, _ = training.draw_scenes(config, contrast, generator(seed))
        assert scene.shape == (32, 4)
        have = [tuple(row) for row in scene.tolist()]
        assert len(set(have)) == 32
        partners = [tuple(row) in have for row in training.swap(scene).tolist()]
        assert all(partners) if contrast else not any(partners)
        held = {tuple(row) for row in training.split()[1].tolist()}
        assert not held & {(*sorted(row[::2]), *sorted(row[1::2])) for row in have}


def test_plain_batches_have_the_typical_pairing():
    scene, _ = training.draw_scenes(replace(TINY, batch=64), False, generator(0))
    assert ((scene[:, 0] < scene[:, 2]) == (scene[:, 1] < scene[:, 3])).all()


# What the loss sees


def swap_gradient(contrast):
    """The gradient of ClipLoss with respect to the scores of images with the swaps of their captions, one batch, free scores.

    Scores are free numbers here, one for each image and caption of the scenes and of their swaps: whatever an encoder could say.
    """
    scene, _ = training.draw_scenes(TINY, contrast, generator(1))
    everyone = torch.cat([scene, training.swap(scene)])
    named = {tuple(row): number for number, row in enumerate(everyone.tolist())}
    own = torch.tensor([named[tuple(row)] for row in scene.tolist()])
    swapped = torch.tensor([named[tuple(row)] for row in training.swap(scene).tolist()])
    scores = torch.zeros(len(everyone), len(everyone), requires_grad=True)
    logits = scores[own][:, own]
    target = torch.arange(len(scene))
    (torch.nn.functional.cross_entropy(logits, target) + torch.nn.functional.cross_entropy(logits.T, target)).backward()
    return scores.grad[own, swapped]


def test_the_loss_scores_a_swap_in_contrast_batches_only():
    assert (swap_gradient(contrast=True) > 0).all()
    assert torch.equal(swap_gradient(contrast=False), torch.zeros(TINY.batch))


def test_plain_batches_give_no_gradient_to_a_pairing_channel(model):
    """Give both towers one free direction that tells a scene from its swap: plain batches do not reveal that it is there."""
    found = {}
    for contrast in (True, False):
        scene, later = training.draw_scenes(TINY, contrast, generator(2))
        pictures, tokens = training.render(scene, generator(3)), training.captions(scene, later)
        image, text = model.encode_image(pictures, normalize=True), model.encode_text(tokens, normalize=True)
        typical = (scene[:, 0] < scene[:, 2]) == (scene[:, 1] < scene[:, 3])
        gate = torch.zeros((), requires_grad=True)
        # The image's and the text's sign of the pairing, multiplied: the score of a swap falls, of the scene itself rises.
        sign = torch.where(typical, 1.0, -1.0)
        logits = 10 * (image @ text.T).detach() + gate * sign[:, None] * sign
        target = torch.arange(len(scene))
        (torch.nn.functional.cross_entropy(logits, target) + torch.nn.functional.cross_entropy(logits.T, target)).backward()
        found[contrast] = float(gate.grad)
    assert found[True] < -0.1
    assert abs(found[False]) <= 16 * torch.finfo(torch.float32).eps  # the weights of a row sum to one up to float32 rounding


def test_rate_decides_which_batches_come(monkeypatch):
    seen = []
    real = training.draw_scenes
    monkeypatch.setattr(
        training, "draw_scenes", lambda config, contrast, draws: seen.append(contrast) or real(config, contrast, draws)
    )
    for rate, expected in ((0.0, {False}), (1.0, {True})):
        seen.clear()
        training.train(replace(TINY, rate=rate))
        assert set(seen) == expected and len(seen) == TINY.steps


# Losses


@given(seeds)
@settings(max_examples=20)
def test_symmetric_loss_is_that_of_open_clip(seed):
    from open_clip.loss import ClipLoss

    draws = generator(seed)
    image, text = (torch.nn.functional.normalize(torch.randn(6, 5, generator=draws), dim=-1) for _ in range(2))
    want = float(ClipLoss()(image, text, torch.tensor(7.0)))
    assert abs(training.symmetric_loss(7 * image @ text.T) - want) <= 64 * torch.finfo(torch.float32).eps * 7


@pytest.mark.parametrize("contrast", [True, False])
def test_blocks_hold_all_four_pairings_and_their_average_is_blind(model, contrast):
    four = training.blocks(model, TINY, contrast, generator(4))
    assert four.shape == (2, 2, 8, 8)
    average = four.mean(dim=(0, 1))
    if contrast:
        other = torch.arange(8).roll(4)
        assert torch.equal(four[0, 1], four[0, 0][:, other])
        assert torch.equal(four[1, 0], four[0, 0][other])
        bound = 8 * torch.finfo(torch.float64).eps  # four numbers of at most one, added in another order
        assert (average - average[:, other]).abs().max() <= bound and (average - average[other]).abs().max() <= bound
        # A caption and its swap score alike, so no batch is cheaper than log 2, whatever else the encoder knows.
        assert training.symmetric_loss(100 * average) >= log(2) - 100 * bound


def test_log_two_is_reached_when_words_are_certain():
    pairs = torch.eye(4).repeat(2, 2) * 60
    assert (
        abs(training.symmetric_loss(pairs.double()) - log(2)) <= 6 * exp(-60) + 1e-14
    )  # six other captions; rounding of logits 60


def test_accuracy_counts_a_tie_as_one_half():
    assert training.accuracy(torch.tensor([1.0, -1.0, 0.0, 0.0])) == 0.5
    assert training.accuracy(torch.tensor([1.0, 2.0, 0.0])) == pytest.approx(2.5 / 3, abs=1e-15)


# Draws and runs


def test_initial_weights_come_from_the_seed_and_torch_is_left_alone():
    state = torch.get_rng_state()
    first, again, other = (training.build(replace(TINY, seed=seed)) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    pairs = list(zip(first.parameters(), again.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any(not torch.equal(a, c) for a, _, c in pairs)


def test_a_run_repeats_and_training_changes_the_model(monkeypatch):
    monkeypatch.setenv("BINDING_DEVICE", "cpu")
    first, again = (training.measure(training.train(TINY), TINY) for _ in range(2))
    assert first == again
    assert first != training.measure(training.build(TINY).eval(), TINY)
    assert first["contrast_loss_blind"] >= log(2)


def test_learning_rate_rises_and_falls():
    config = Config(0.0)
    rates = [training.learning_rate(config, step) for step in range(config.steps)]
    assert rates[0] == pytest.approx(1e-5, rel=1e-3) and max(rates) <= config.learning_rate
    assert rates[:90] == sorted(rates[:90]) and rates[100:] == sorted(rates[100:], reverse=True)
    assert config.learning_rate / 20 <= rates[-1] <= config.learning_rate / 19


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    configs = [replace(TINY, rate=rate, steps=1) for rate in (0.0, 0.5, 1.0)]
    real, calls = training.train, []

    def failing(config, progress=False):
        calls.append(config.rate)
        if config.rate == 1.0 and calls.count(1.0) == 1:
            raise KeyboardInterrupt
        return real(config, progress)

    monkeypatch.setattr(training, "train", failing)
    with pytest.raises(KeyboardInterrupt):
        training.sweep(configs, tmp_path, progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{config.name}.json" for config in configs[:2])
    runs = training.sweep(configs, tmp_path, progress=False)
    assert calls == [0.0, 0.5, 1.0, 1.0]
    assert [row["config"] for row in runs] == [asdict(config) for config in configs]
    assert not list(tmp_path.glob("*.part"))


def test_names_of_runs_differ_wherever_configurations_do():
    changed = {
        "rate": 0.25,
        "seed": 9,
        "steps": 5,
        "warmup": 3,
        "batch": 6,
        "learning_rate": 2e-3,
        "width": 64,
        "image_layers": 2,
    }
    changed |= {"text_layers": 2, "scored": 8}
    assert set(changed) == set(asdict(TINY))
    assert len({TINY.name, *(replace(TINY, **{field: value}).name for field, value in changed.items())}) == len(changed) + 1


def test_one_command_makes_a_sweep_that_loads(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        training, "configurations", lambda scale="laptop": [replace(TINY, seed=seed, steps=1) for seed in range(2)]
    )
    training.main(["--out", str(tmp_path)])
    stored = training.load(tmp_path / "throttle-laptop.json")
    assert "2 runs" in capsys.readouterr().out
    assert training.by_rate(stored, "swap_margin", text_layers=1) == {
        0.5: [row["scores"]["swap_margin"] for row in stored["runs"]]
    }
    assert training.by_rate(stored, "swap_margin", text_layers=2) == {}


def test_the_stored_sweep_is_complete_and_says_where_it_comes_from():
    stored = training.load(STORED)
    scores = set(stored["runs"][0]["scores"])
    assert len(scores) == 15
    for row in stored["runs"]:
        assert set(row) == {"config", "scores", "provenance"} and set(row["scores"]) == scores
        said = {"commit", "source", "python", "torch", "open_clip", "device", "machine", "threads"}
        assert set(row["provenance"]) == said | {"seconds", "processor_seconds"}
        assert said <= set(training.made_with())
        assert all(0 <= value <= 1 for name, value in row["scores"].items() if "accuracy" in name)
        assert row["scores"]["contrast_loss_blind"] >= log(2)
        assert abs(row["scores"]["swap_margin"]) <= row["scores"]["ceiling"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Config(1.5), "rate = 1.5"),
        (lambda: Config(0.5, seed=-1), "seed = -1"),
        (lambda: Config(0.5, batch=7), "batch = 7"),
        (lambda: Config(0.5, batch=700), "batch = 700"),
        (lambda: Config(0.5, steps=0), "steps = 0"),
        (lambda: Config(0.5, width=48), "width = 48"),
        (lambda: Config(0.5, learning_rate=0.0), "learning_rate = 0.0"),
        (lambda: training.configurations("huge"), "scale = 'huge'"),
        (lambda: training.render(everything(2), generator(0), -0.1), "noise = -0.1"),
        (lambda: training.by_rate({"runs": [{"scores": {"a": 1}}]}, "b"), "no score 'b' .* it has a"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no stored sweep"),
        ({"schema": 0, "command": "again"}, "schema 0"),
        ({"runs": []}, "holds other runs than the laptop"),
    ],
)
def test_a_sweep_that_does_not_fit_is_refused(tmp_path, content, message):
    path = tmp_path / "throttle-laptop.json"
    if content is not None:
        path.write_text(json.dumps(training.collected("laptop", []) | content), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        training.load(path)
