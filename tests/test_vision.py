"""The small vision transformer, what is read from it, published encoders from a folder, and sweeps that survive a stop."""

import base64
import json
from dataclasses import replace
from io import BytesIO
from itertools import product
from math import comb, factorial, log2, prod
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import timm
import torch
from conftest import ROOT
from PIL import Image
from safetensors.torch import save_file

from binding import vision, vit
from binding.activations import CHUNK, Pretrained, fill, opened
from binding.colourshape import TRAINED, Piled, World, buckets, captions, draw, split
from binding.information import Subsets
from binding.numerics import gaussian, generator
from binding.plots import figure, svg
from binding.plots.vision import TRUE_COLOURS, attention_alt, attention_frame, scene
from binding.pooling import feature_share
from binding.probes import Recipe, fit
from binding.runs import load
from binding.tables import count_share
from binding.vision import Run
from binding.vit import Encoder

SMALL = World(colours=3, shapes=3)
TINY = Encoder(world=SMALL, objects=3, width=16, layers=2, heads=2, steps=3, batch=8)
EPS32 = float(torch.finfo(torch.float32).eps)
STORED = ROOT / "binding" / "data" / "runs"


def pictures(n: int = 6, seed: int = 0, config: Encoder = TINY) -> torch.Tensor:
    draws = generator(seed)
    return draw(config.world, config.prior().sample(n, draws), draws).pixels


# The transformer


def test_patches_are_pieces_of_the_picture_row_by_row() -> None:
    pixels = pictures()
    cut = vit.patches(pixels, 8)
    assert cut.shape == (6, 16, 192)
    for t in range(16):
        y, x = 8 * (t // 4), 8 * (t % 4)
        assert torch.equal(cut[:, t], pixels[:, :, y : y + 8, x : x + 8].flatten(1))


def test_weights_come_from_the_seed_and_torchs_own_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    one, two = (vit.build(replace(TINY, objective="clip")).state_dict() for _ in range(2))
    other = vit.build(replace(TINY, objective="clip", seed=1)).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["image.embed.weight"], other["image.embed.weight"])


def test_weights_have_their_spread() -> None:
    wide = vit.build(Encoder(width=64)).state_dict()
    for name, weights in wide.items():
        if name.endswith(("norm1.weight", "norm2.weight", "norm.weight")):
            assert (weights == 1).all()
        elif name.endswith("bias"):
            assert not weights.any()
        else:
            wanted = 0.02 if weights.ndim == 3 else weights.shape[1] ** -0.5
            # Laurent and Massart: a sample variance of n normals is off by 2 √(x/n) + 2 x/n with probability below 2 e^−x.
            n, x = weights.numel(), 25
            assert abs(float(weights.double().pow(2).mean()) / wanted**2 - 1) <= 2 * (x / n) ** 0.5 + 2 * x / n, name


def test_encodings_are_the_tokens_that_the_blocks_give() -> None:
    """The same numbers by hand: every block in the open, with torch's functional attention."""
    net, pixels = vit.build(TINY)["image"].eval(), pictures()
    z = vit.encode(net, pixels)
    x = torch.cat([net.trunk.first.expand(6, -1, -1), net.embed(vit.patches(pixels, 8))], 1) + net.trunk.positions
    layers = []
    with torch.no_grad():
        for block in net.trunk.blocks:
            q, k, v = (block.norm1(x) @ block.self_attn.in_proj_weight.T + block.self_attn.in_proj_bias).chunk(3, dim=-1)
            heads = [
                ((a @ b.transpose(1, 2)) / 8**0.5).softmax(-1) @ c
                for a, b, c in zip(q.split(8, 2), k.split(8, 2), v.split(8, 2), strict=True)
            ]
            x = x + block.self_attn.out_proj(torch.cat(heads, 2))
            x = x + block.linear2(torch.nn.functional.gelu(block.linear1(block.norm2(x))))
            layers.append(x)
        last = net.trunk.norm(x)
    wanted = {"cls": last[:, 0], "pooled": last[:, 1:].mean(1), "tokens": last[:, 1:], "penultimate": layers[0][:, 1:]}
    for name, value in wanted.items():
        # Two blocks of sums of at most 64 terms, in two orders: 1000 roundings of float32 at the scale of the values.
        assert (z[name] - value).abs().max() <= 1000 * EPS32 * value.abs().max(), name


def test_a_picture_is_encoded_alike_in_any_company(monkeypatch: pytest.MonkeyPatch) -> None:
    net, pixels = vit.build(TINY)["image"].eval(), pictures()
    whole = vit.encode(net, pixels)
    monkeypatch.setenv("BINDING_MEMORY_MB", "2")  # chunks of two pictures
    for name, value in vit.encode(net, pixels).items():
        assert (value - whole[name]).abs().max() <= 100 * EPS32 * value.abs().max(), name


def test_the_scenes_trained_on_are_never_tested_on() -> None:
    codes = vit.training_codes(TINY, 100, generator(3))
    assert len(codes) == 100
    assert (buckets(codes) < TRAINED).all()
    assert (codes.sum(1) == 3).all()
    tested = TINY.prior().sample(300, generator(4))
    seen = {tuple(code) for code in codes.tolist()}
    assert not any(tuple(tested[row].tolist()) in seen for row in split(tested)[2])


def test_a_world_without_training_scenes_is_named() -> None:
    config = Encoder(world=World(3, 3), objects=9)  # one scene, and its code falls into the tests
    with pytest.raises(ValueError, match="none of 8 scenes of 9 objects"):
        vit.training_codes(config, 4, generator(0))


@pytest.mark.parametrize("objective", ["feature", "clip", "object"])
def test_training_lowers_the_loss_and_repeats(objective: str) -> None:
    config = replace(TINY, objective=objective, steps=40, batch=32, learning_rate=3e-3)
    net, losses = vit.train(config)
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert not any(weights.requires_grad for weights in net.parameters())
    again, repeated = vit.train(replace(config, steps=40))
    assert losses == repeated
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), again.parameters(), strict=True))


def test_before_training_every_answer_is_a_guess() -> None:
    """The loss of B captions starts in the neighbourhood of log B, and of bits of log 2."""
    codes = vit.training_codes(TINY, 8, generator(0))
    for objective, guess in (("clip", np.log(8)), ("feature", np.log(2)), ("object", np.log(2))):
        config = replace(TINY, objective=objective)
        found = vit.loss(vit.build(config), config, codes, generator(1)).item()
        assert 0.3 * guess < found < 8 * guess


def test_the_clip_loss_asks_both_ways() -> None:
    """Pictures among captions and captions among pictures, by hand from the vectors of both sides."""
    config = replace(TINY, objective="clip")
    net, codes = vit.build(config), vit.training_codes(config, 8, generator(0))
    found = vit.loss(net, config, codes, generator(1)).item()
    draws = generator(1)  # the same pictures and captions once more
    with torch.no_grad():
        seen = net["image"](draw(SMALL, codes, draws).pixels)[0][:, 0].double()
        said = net["head"](captions(SMALL, codes, draws)).double()
    scores = (seen / seen.norm(dim=1, keepdim=True)) @ (said / said.norm(dim=1, keepdim=True)).T / 0.07
    both = [-scores.log_softmax(dim).diagonal().mean() for dim in (0, 1)]
    assert abs(both[0] - both[1]) > 1e-3
    # Vectors of 16 entries in float32, scaled by 1 / 0.07: some thousand roundings.
    assert abs(found - float(sum(both)) / 2) <= 3000 * EPS32


def test_every_seed_trains_on_scenes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(vit, "loss", lambda net, config, codes, draws: seen.append(codes) or next(net.parameters()).sum())
    for seed in (0, 1):
        vit.train(replace(TINY, objective="feature", seed=seed, steps=1, batch=64))
    assert not torch.equal(seen[0], seen[1])


def test_an_untrained_net_is_not_trained() -> None:
    net, losses = vit.train(TINY)
    drawn = vit.build(TINY)["image"]
    assert losses == []
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), drawn.parameters(), strict=True))


def test_no_two_pictures_share_a_cls_vector() -> None:
    """Theorem: for almost all weights [CLS] tells any two pictures apart; in float64 the nearest pair is far above rounding."""
    config = replace(TINY, layers=2)
    net = vit.build(config)["image"].double().eval()
    pixels = pictures(400, 1).double().unique(dim=0)
    with torch.no_grad():
        read = net(pixels)[0][:, 0]
    nearest = torch.cdist(read, read).fill_diagonal_(float("inf")).min()
    # float64 rounds [CLS] at about 1000 ε ‖·‖, 1e-12; cdist by products loses half the digits, 1e-7.
    assert nearest > 1e-6


# What is read


def test_landing_by_hand() -> None:
    weights = torch.zeros(2, 4, 3)
    weights[0, 1] = torch.tensor([0.2, 0.7, 0.1])
    weights[0, 2] = torch.tensor([0.5, 0.3, 0.2])
    weights[1, 3] = torch.tensor([0.1, 0.1, 0.8])
    objects = torch.tensor([[1, 2], [3, -1]])
    on = torch.tensor([[[0, 1, 1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0]]]).bool()
    found = vision.landing(weights, objects, on)
    assert found["mass"][0] == pytest.approx((np.mean([0.8, 0.3]) + 0.8) / 2, abs=5e-5)  # stored with four digits
    assert found["hit"][0] == pytest.approx((np.mean([1, 0]) + 1) / 2, abs=5e-5)
    assert found["chance"][0] == pytest.approx((np.mean([2, 1]) / 3 + 1 / 3) / 2, abs=5e-5)


def test_an_object_that_is_covered_is_not_looked_for() -> None:
    weights = torch.full((2, 2, 2), 0.5)
    on = torch.tensor([[[1, 0], [0, 0]], [[0, 0], [0, 0]]]).bool()
    found = vision.landing(weights, torch.tensor([[0, 1], [0, 1]]), on)
    assert found["mass"] == found["chance"] == [0.5, 0.5, 0.5]


def test_errors_fall_from_all_to_none() -> None:
    prior = Subsets((3, 3), 3)
    codes = prior.sample(200, generator(0))
    parts = split(codes)
    noise = gaussian((200, 4), generator(1), dtype=torch.float32)
    blind = fit(Recipe("linear", epochs=1, learning_rate=1e-9), noise, codes, split=parts, anchor=prior.log_odds(codes))
    # Without a look, a bit is called when the prior is sure or more likely than not: with one object left in one cell, for one.
    by_prior = (prior.log_odds(codes) > 0) != codes.bool()
    assert vision.error_reduction(blind, noise, codes, prior) == pytest.approx(1 - float(by_prior.sum() / codes.sum()), abs=1e-3)


def test_controls_are_what_they_are_called() -> None:
    run = Run(TINY, pictures=100)
    z, codes, _ = vision.representations(run, vit.build(TINY)["image"].eval())
    for row, code in enumerate(codes.reshape(-1, 3, 3).tolist()):
        counts = [sum(line) for line in code] + [sum(column) for column in zip(*code, strict=True)]
        assert z["counts"][row].tolist() == counts
        assert z["features"][row].tolist() == [float(count > 0) for count in counts]
    assert torch.equal(z["codes"], codes.float())
    assert sorted(z["dealt"].flatten(1).tolist()) == sorted(z["penultimate"].flatten(1).tolist())
    stayed = (z["dealt"] == z["penultimate"]).flatten(1).all(1).sum()
    assert stayed <= 13  # fixed points of a random order: k or more with probability at most 1 / k!, 2e-10


def test_errors_and_landings_are_those_of_test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    run, seen = Run(TINY, pictures=300, epochs=1), []
    z, codes, shown = vision.representations(run, vit.build(TINY)["image"].eval())
    on = shown.on_patches(8) > 0
    test = split(codes)[2]
    monkeypatch.setattr(vision, "error_reduction", lambda fit, x, o, prior: seen.append((x, o)) or 0.0)
    monkeypatch.setattr(vision, "landing", lambda weights, objects, on, seed: seen.append((objects, on)) or {})
    vision.read(z["tokens"], "attention", codes, (shown.objects, on), run.encoder.prior(), 1, 0)
    for found, wanted in zip((*seen[0], *seen[1]), (z["tokens"], codes, shown.objects, on), strict=True):
        assert torch.equal(found, wanted[test])


def test_a_run_reads_what_is_there_and_nothing_where_there_is_nothing() -> None:
    rows = (("codes", "linear"), ("null", "quadratic"), ("penultimate", "attention"))
    run = Run(replace(TINY, width=32), rows, pictures=3000, epochs=30, maps=True)
    found = vision.measure(run)
    prior = run.encoder.prior()
    assert found["covered"] == 0
    assert found["codes linear"]["objects"][0] > 0.9 * prior.entropy
    assert found["null quadratic"]["objects"][0] < 0.05 * prior.entropy
    looked = found["penultimate attention"]
    assert looked["objects"][0] > found["null quadratic"]["objects"][0]
    assert looked["mass"][1] > looked["chance"][0]
    assert np.array(looked["map"]).shape == (9, 16)
    assert abs(np.array(looked["map"]).sum(1) - 1000).max() <= 8  # sixteen roundings by half a thousandth
    json.dumps(found, allow_nan=False)


# Published encoders


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model as timm stores one."""
    path = tmp_path_factory.mktemp("tiny")
    args = {"img_size": 80, "patch_size": 8, "embed_dim": 16, "depth": 3, "num_heads": 2, "reg_tokens": 2}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = timm.create_model("vit_tiny_patch16_224", num_classes=0, **args)
    save_file(net.state_dict(), path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"architecture": "vit_tiny_patch16_224", "model_args": args}))
    return path


BIG = World(2, 2, 80, 8, 4, 12, 2)


def test_a_published_encoder_gives_the_tokens_of_timm(folder: Path) -> None:
    net = Pretrained(str(folder), 80)
    pixels = torch.rand(3, 3, 80, 80, generator=generator(0))
    last, before = net(pixels)
    assert last.shape == before.shape == (3, 101, 16)
    with torch.no_grad():
        x = (pixels - 0.5) / 0.5  # what timm's configuration of this model says
        own = net.net.forward_features(x)
        skip = net.net.num_prefix_tokens
        assert skip == 3
        # The same operations in the same order, so only batching may round differently.
        assert (last - torch.cat([own[:, :1], own[:, skip:]], 1)).abs().max() <= 100 * EPS32
        after = net.net.norm(net.net.blocks[-1](torch.cat([before[:, :1], own[:, 1:skip] * 0, before[:, 1:]], 1)))
        assert not torch.equal(after[:, 0], last[:, 0])  # the registers were left out, so the next block says something else


def test_a_store_goes_on_where_it_was_stopped(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, prior = Pretrained(str(folder), 80), Subsets((2, 2), 2)
    n, about = 2 * CHUNK + 5, {"model": "tiny"}
    whole = fill(tmp_path / "whole", net, BIG, prior, 3, n, about)
    assert {name: x.dtype.name for name, x in whole.items() if name in ("cls", "tokens", "codes", "on")} == {
        "cls": "float16",
        "tokens": "float16",
        "codes": "uint8",
        "on": "bool",
    }
    assert whole["tokens"].shape == (n, 100, 16)
    assert whole["objects"].shape == (n, 3)
    assert isinstance(whole["tokens"], np.memmap)
    assert not np.array_equal(whole["objects"][:CHUNK], whole["objects"][CHUNK : 2 * CHUNK])
    calls = 0

    def fails(pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return net(pixels)

    fails.patch = net.patch  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "stopped", fails, BIG, prior, 3, n, about)
    stopped = fill(tmp_path / "stopped", net, BIG, prior, 3, n, about)
    for name, x in whole.items():
        assert np.array_equal(x, stopped[name]), name
    for row, code in zip(whole["objects"][:, :2], whole["codes"], strict=True):
        assert sorted(row) == np.flatnonzero(code).tolist()
    with pytest.raises(ValueError, match="another network"):
        fill(tmp_path / "stopped", net, BIG, prior, 3, n, {"model": "other"})


def test_the_full_command_runs_on_a_local_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--scale", "full", "--sweep", "occlusion", "--model", str(folder), "--side", "80"]
    arguments += ["--pictures", "150", "--epochs", "1", "--out", str(tmp_path)]
    vision.main(arguments)
    label = f"vision-occlusion-{folder.name}-80"
    configs = [replace(c, pictures=150, epochs=1) for c in vision.full_configurations("occlusion", str(folder), 80)]
    runs = load(tmp_path / f"{label}.json", configs)
    assert "4 runs" in capsys.readouterr().out
    assert [run["config"]["world"]["piled"] for run in runs] == [0, 3, 6, 9]
    assert "mass" in runs[0]["result"]["penultimate attention"]
    vision.main(arguments)  # all is kept: the second call only reads
    assert load(tmp_path / f"{label}.json", configs) == runs


def test_published_scenes_at_full_scale() -> None:
    (base,) = vision.full_configurations("ladder", "vit_large_patch14_dinov2.lvd142m", 224)
    assert base == vision.Full("vit_large_patch14_dinov2.lvd142m")
    assert base.prior().entropy_given_features == pytest.approx(32.9079, abs=5e-5)
    complex_ = vision.full_configurations("complexity", "any", 224)
    published = [4, 9, 16, 24.92, 34.31, 42.45]  # H(O) of n × n with at most min(16, n²) objects
    assert [run.prior().entropy for run in complex_] == pytest.approx(published, abs=0.005)
    for run in complex_ + [r for name in ("occlusion", "alignment") for r in vision.full_configurations(name, "any", 336)]:
        shown = draw(run.world, run.prior().sample(2, generator(0)), generator(0))
        assert shown.pixels.shape[-1] in (224, 336)
        assert isinstance(run.world, Piled) or (shown.visible[shown.objects >= 0] == 1).all()


# Pictures of the page


def test_a_frame_marks_the_patches_that_are_asked_for_and_keeps_its_colours() -> None:
    weights = [0] * 16
    weights[6], weights[9] = 700, 300
    pixels = pictures(1)[0]
    frame = attention_frame(pixels, weights, [6], "clip: blue disc?")
    tree = ElementTree.fromstring(frame)
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in tree.iter(f"{space}text")]
    assert texts == ["clip: blue disc?", *(f"{weight / 10:.0f}" for weight in weights)]
    thick = [rect for rect in tree.iter(f"{space}rect") if rect.get("stroke-width") == "4"]
    # Patch 6 of 4 × 4 is in row 1, column 2; cells are 60 wide, the two grids start at 8 and 272.
    assert [(int(r.get("x")), int(r.get("y"))) for r in thick] == [(8 + 120 + 2, 34 + 60 + 2), (272 + 120 + 2, 34 + 60 + 2)]
    image = next(tree.iter(f"{space}image")).get("href").removeprefix("data:image/png;base64,")
    levels = np.asarray(Image.open(BytesIO(base64.b64decode(image))))
    assert np.abs(levels.transpose(2, 0, 1) / 255 - pixels.numpy()).max() <= 0.5 / 255 + EPS32
    words = attention_alt(weights, [6], "clip: blue disc?")
    assert words.count("row 2, column 3") == 2
    assert "gets 70 %" in words
    assert "no patch shows it" in attention_alt(weights, [], "clip: red disc?")


def test_pictures_of_scenes_keep_their_colours_on_dark_pages() -> None:
    fig, ax = figure(2, 2)
    scene(ax, pictures(1)[0], 8)
    for text in (svg(fig), attention_frame(pictures(1)[0], [0] * 16, [], "")):
        assert text.count(TRUE_COLOURS) == 1
    assert f'[src*="{TRUE_COLOURS}"] {{ filter: none;' in (ROOT / "_static" / "site.css").read_text(encoding="utf-8")


# Stored runs


@pytest.mark.parametrize("name", vision.SWEEPS)
def test_stored_sweeps_are_those_of_the_configurations(name: str) -> None:
    runs = load(STORED / f"vision-{name}.json", vision.configurations(name))
    for run in runs:
        assert run["provenance"]["commit"] != "unknown"
        for row in run["result"].values():
            if isinstance(row, dict):
                low, value, high = (row["objects"][i] for i in (1, 0, 2))
                assert low <= value <= high


def test_stored_sweeps_say_what_the_page_says() -> None:
    """The claims of the page, worked out from the files once more."""
    counts, run_prior = 17.8062, Encoder().prior()  # counts: worked out in test_the_bar_of_the_counts
    runs = load(STORED / "vision-ladder.json", vision.configurations("ladder"))
    assert len(runs) == 12
    for run in runs:
        rows = run["result"]
        best = max(rows[f"cls {family}"]["objects"][0] for family in ("linear", "shared", "quadratic", "deep"))
        looked = rows["penultimate attention"]
        objective = run["config"]["encoder"]["objective"]
        if objective == "object":
            assert max(rows[f"cls {family}"]["objects"][1] for family in ("linear", "shared", "quadratic", "deep")) >= counts
        else:
            assert best <= counts
            assert looked["objects"][0] - best >= 2
        assert looked["objects"][1] - counts >= 1
        if objective == "untrained":
            assert looked["beta"][0] >= 0.8
            for name in ("null quadratic", "dealt attention"):
                assert abs(rows[name]["objects"][0]) <= 0.05
            assert 6 <= rows["features quadratic"]["objects"][2] <= run_prior.entropy_features
            assert 16 <= rows["counts quadratic"]["objects"][2] <= counts
        for row in (looked, rows["tokens attention"]):
            assert row["mass"][1] >= 3 * row["chance"][0]
            assert row["mass"][0] <= feature_share(5, 30, 8)
            assert row["chance"] == [0.0625] * 3  # every object lies on one of sixteen patches
    by_number: dict[int, list[float]] = {}
    for run in load(STORED / "vision-pictures.json", vision.configurations("pictures")):
        by_number.setdefault(run["config"]["pictures"], []).append(run["result"]["cls quadratic"]["objects"][0])
    assert (np.diff([np.mean(by_number[n]) for n in sorted(by_number)]) >= 1).all()
    whole = [
        run
        for run in load(STORED / "vision-occlusion.json", vision.configurations("occlusion"))
        if not run["config"]["encoder"]["world"]["piled"]
    ]
    ragged = [
        run
        for run in load(STORED / "vision-alignment.json", vision.configurations("alignment"))
        if run["config"]["encoder"]["objective"] == "untrained" and run["config"]["encoder"]["world"]["step"] == 9
    ]
    assert len(whole) == len(ragged) == 3
    for row, least in (("cls quadratic", 0.45), ("penultimate attention", 0.8)):
        assert min(run["result"][row]["beta"][0] for run in whole) > least
        assert max(run["result"][row]["beta"][0] for run in ragged) <= 0.2
    for name, axis, score in (("occlusion", "piled", "beta"), ("complexity", "colours", "beta_star")):
        means: dict[str, dict[int, list[float]]] = {}
        for run in load(STORED / f"vision-{name}.json", vision.configurations(name)):
            value = run["config"]["encoder"]["world"][axis]
            for row in ("cls quadratic", "penultimate attention"):
                means.setdefault(row, {}).setdefault(value, []).append(run["result"][row][score][0])
        for by_value in means.values():
            assert all(len(values) == 3 for values in by_value.values())
            for line in zip(*(by_value[value] for value in sorted(by_value)), strict=True):
                assert list(line) == sorted(line, reverse=True)


def test_the_bar_of_the_counts() -> None:
    """H(C) of eight objects among 6 × 6, from the number of tables with every margin, by filling row after row."""
    ways = {(0,) * 6: {(): 1}}
    for _ in range(6):
        grown: dict[tuple, dict[tuple, int]] = {}
        for columns, by_rows in ways.items():
            for ones in product((0, 1), repeat=6):
                after = tuple(a + b for a, b in zip(columns, ones, strict=True))
                if sum(after) <= 8:
                    into = grown.setdefault(tuple(sorted(after)), {})
                    for rows, count in by_rows.items():
                        key = tuple(sorted((*rows, sum(ones))))
                        into[key] = into.get(key, 0) + count
        ways = grown
    # A sorted key stands for all its orders, and each of these has equally many tables.
    total, spread = 0, 0.0
    for columns, by_rows in ways.items():
        if sum(columns) == 8:
            for rows, count in by_rows.items():
                orders = [factorial(6) // prod(factorial(side.count(value)) for value in set(side)) for side in (columns, rows)]
                total += count
                spread += count * log2(count // (orders[0] * orders[1]))
    assert total == comb(36, 8)
    assert log2(total) - spread / total == pytest.approx(17.8062, abs=5e-5)
    prior = Encoder().prior()
    bar = prior.entropy_features + count_share((6, 6), 8) * prior.entropy_given_features
    assert bar == pytest.approx(log2(total) - spread / total, abs=1e-9)  # sums of a few hundred terms below 25


def test_scores_over_seeds() -> None:
    runs = [{"result": {"cls linear": {"objects": [1.0, 0.5, 1.5], "error_reduction": 0.25}}}] * 2
    assert vision.over_seeds(runs, "cls linear", "objects") == [1.0, 1.0]
    assert vision.over_seeds(runs, "cls linear", "error_reduction") == [0.25, 0.25]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: Encoder("dino"), "objective = 'dino'"),
        (lambda: Encoder(patch=5), "patches of 5"),
        (lambda: Encoder(layers=0), "layers = 0"),
        (lambda: Encoder(width=30, heads=4), "width = 30"),
        (lambda: Encoder(batch=1), "batch = 1"),
        (lambda: Encoder(objects=17), "objects = 17"),
        (lambda: Run(pictures=10), "pictures = 10"),
        (lambda: Run(rows=(("cls", "cubic"),)), "'cubic'"),
        (lambda: vision.configurations("all"), "no sweep 'all'"),
        (lambda: vision.full_configurations("all", "x", 224), "no sweep 'all'"),
        (lambda: vision.over_seeds([{"result": {"cls linear": {}}}], "cls linear", "mass"), "no 'mass' of 'cls linear'"),
        (lambda: Pretrained("no_such_model", 64), "no model 'no_such_model'"),
        (lambda: Pretrained("vit_large_patch14_clip_224.openai", 224), "use vit_large_patch14_clip_quickgelu_224.openai"),
        (lambda: opened(Path("/nowhere")), "no stored tokens"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()


def test_a_folder_that_does_not_fit_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="takes pictures of 80 pixels, the scenes have 32"):
        Pretrained(str(folder), 32)
    with pytest.raises(ValueError, match="no description of a timm model"):
        Pretrained(str(tmp_path), 80)
    config = json.loads((folder / "config.json").read_text())
    config["model_args"]["embed_dim"] = 24
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="no safetensors file"):
        Pretrained(str(tmp_path), 80)
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="tensors differ"):
        Pretrained(str(tmp_path), 80)


def test_a_hub_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(repository: str, filename: str) -> str:
        raise OSError("no route to the hub")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", unreachable)
    with pytest.raises(ValueError, match=r"no model.safetensors of timm/vit_tiny.*no route.*hf download timm/vit_tiny"):
        Pretrained("vit_tiny_patch16_224.augreg_in21k", 224)


def test_full_and_model_go_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments in (["--scale", "full"], ["--model", "x"]):
        with pytest.raises(SystemExit):
            vision.main([*arguments, "--out", str(tmp_path)])
        assert "needs --model" in capsys.readouterr().err
