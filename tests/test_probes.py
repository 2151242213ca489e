"""Probes: all conditionals at once against a loop over them, laws of the families, and fits against exact posteriors."""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from binding import probes
from binding.files import load_tensors
from binding.information import Enumerated, Subsets, features
from binding.numerics import gaussian, generator
from binding.pages import stored_run
from binding.probe_data import Data, Rows, check_split, held_out, moments, split_codes, split_rows
from binding.probe_heads import FAMILIES, Recipe, Size, attend, count, initial, logits, shapes
from binding.probes import binding_information, code_length, fit, intervals, one_cycle

GROUPS = (2, 3)
K, D, B = 6, 5, 7
FLAT = [family for family in FAMILIES if family != "attention"]
# Σ log2 q/p over test rows exceeds t with probability below 2^−t, because E ∏ q/p ≤ 1 (Markov); 30 bits are 1e-9.
CHANCE = 30.0


def drawn(recipe: Recipe, size: Size, seed: int) -> dict[str, Tensor]:
    """Weights of a trained probe would be like these: none is zero."""
    draws = generator(seed)
    return {name: gaussian(shape, draws) for name, shape in shapes(recipe, size).items()}


def inputs(recipe: Recipe, seed: int, beside: int = 2) -> tuple[Size, Tensor, Tensor, Tensor]:
    draws = generator(seed)
    tokens = recipe.family == "attention"
    size = Size(D, K, beside + D * (tokens and recipe.cls), GROUPS)
    z = gaussian((B, 4, D) if tokens else (B, D), draws)
    o = torch.randint(0, 2, (B, K), generator=draws).double()
    return size, z, o, gaussian((B, beside), draws)


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def one_at_a_time(recipe: Recipe, size: Size, w: dict[str, Tensor], z: Tensor, o: Tensor, beside: Tensor) -> Tensor:
    """The published access pattern: for every row and every bit, its own input [z, y_<k] and its own forms."""
    r, out = recipe.rank, torch.zeros(len(z), K, dtype=torch.float64)
    for b, k in itertools.product(range(len(z)), range(K)):
        y = torch.tensor([o[b, i] - 0.5 if i < k else 0.0 for i in range(K)], dtype=torch.float64)
        x = torch.cat([z[b], beside[b]]) if z.ndim == 2 else beside[b]
        if recipe.family == "made":
            h = gelu(x @ w["z"] + w["k"][k] + y @ w["y"])
            out[b, k] = gelu(h @ w["w"] + w["w0"]) @ w["out"][k] + w["b"][k]
            continue
        own = torch.zeros(0, dtype=torch.float64)
        if recipe.family == "deep":
            x = torch.cat([x, gelu(gelu(x @ w["t"] + w["t0"]) @ w["w"] + w["w0"])])
        if recipe.family == "attention":
            tokens = z[b, 1:] if recipe.cls else z[b]
            query = w["base"][k] + y @ w["query"]
            own = (tokens @ query / D**0.5).softmax(0) @ tokens
            x = torch.cat([z[b, 0], beside[b]]) if recipe.cls else beside[b]
        columns = [0] if recipe.family == "linear" else [0, 1, 2]
        forms = []
        for part in columns:
            rows, cols = divmod(k, GROUPS[1])
            if part == 0:
                of_x, of_y, of_own = slice(k, k + 1), slice(k, k + 1), slice(0, 1)
            else:
                start = K + (part - 1) * K * r + k * r
                of_y, of_own = slice(start, start + r), slice(1 + (part - 1) * r, 1 + part * r)
                of_x = of_y
                if recipe.family == "shared":
                    at = K + (rows * r if part == 1 else GROUPS[0] * r + cols * r)
                    of_x = slice(at, at + r)
            found = x @ w["z"][:, of_x] + y @ w["y"][:, of_y] + w["b"][of_y]
            forms.append(found + own @ w["own"][k][:, of_own] if len(own) else found)
        out[b, k] = forms[0] + (forms[1] @ forms[2] / (D + K) ** 0.5 if len(forms) > 1 else 0)
    return out


@pytest.mark.parametrize("family", [*FAMILIES, "attention with cls"])
@given(seed=st.integers(0, 1000))
def test_all_conditionals_at_once_are_those_of_a_loop(family: str, seed: int) -> None:
    recipe = Recipe(family.split()[0], rank=2, hidden=3, cls=family.endswith("cls"))
    size, z, o, beside = inputs(recipe, seed)
    w = drawn(recipe, size, seed + 1)
    expected = one_at_a_time(recipe, size, w, z, o, beside)
    # Float64 rounding: sums of at most 200 products, each of a few dozen in size.
    found = logits(recipe, size, w, z, o - 0.5, beside)
    assert (found - expected).abs().max() <= 1e-12 * (1 + expected.abs().max())


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 1000), j=st.integers(0, K - 1))
def test_no_conditional_sees_its_own_bit_or_a_later_one(family: str, seed: int, j: int) -> None:
    recipe = Recipe(family, rank=2, hidden=3)
    size, z, o, beside = inputs(recipe, seed)
    w = drawn(recipe, size, seed + 1)
    turned = o.clone()
    turned[:, j] = 1 - turned[:, j]
    before, after = (logits(recipe, size, w, z, x - 0.5, beside) for x in (o, turned))
    # A running sum takes y_j in and out again, so a conditional may move by rounding.
    assert (before - after)[:, : j + 1].abs().max() <= 1e-11
    assert j == K - 1 or ((before - after)[:, j + 1 :].abs() > 1e-6).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_probe_starts_from_its_anchor(family: str) -> None:
    recipe = Recipe(family, rank=2, hidden=3)
    size, z, o, beside = inputs(recipe, 0)
    w = {name: x.double() for name, x in initial(recipe, size, generator(0)).items()}
    assert not logits(recipe, size, w, z, o - 0.5, beside).any()


@given(seed=st.integers(0, 1000))
def test_the_ladder_is_nested(seed: int) -> None:
    """Linear inside shared and quadratic, shared inside quadratic, quadratic inside deep: the same logits from weights put in."""
    size, z, o, beside = inputs(Recipe(), seed)
    y, r = o - 0.5, 2
    of = {family: drawn(Recipe(family, rank=r, hidden=3), size, seed) for family in FLAT}

    def run(family: str, w: dict[str, Tensor]) -> Tensor:
        return logits(Recipe(family, rank=r, hidden=3), size, w, z, y, beside)

    linear, shared, quadratic, deep = (dict(of[name]) for name in ("linear", "shared", "quadratic", "deep"))
    for w, family in ((dict(shared), "shared"), (dict(quadratic), "quadratic")):
        w = {name: x.clone() for name, x in w.items()}
        for name in w:
            w[name][..., :K] = linear[name]
            w[name][..., K:] = 0
        assert (run(family, w) - run("linear", linear)).abs().max() <= 1e-12 * 100
    n1, n2 = GROUPS
    first = shared["z"][:, K : K + n1 * r].reshape(-1, n1, 1, r).expand(-1, n1, n2, r).reshape(-1, K * r)
    second = shared["z"][:, K + n1 * r :].reshape(-1, 1, n2, r).expand(-1, n1, n2, r).reshape(-1, K * r)
    unfolded = shared | {"z": torch.cat([shared["z"][:, :K], first, second], 1)}
    assert (run("quadratic", unfolded) - run("shared", shared)).abs().max() <= 1e-12 * 100
    inside = deep | {name: quadratic[name] for name in ("y", "b")}
    inside["z"] = torch.cat([quadratic["z"], torch.zeros_like(deep["z"][len(quadratic["z"]) :])])
    assert (run("deep", inside) - run("quadratic", quadratic)).abs().max() <= 1e-12 * 100


@pytest.mark.parametrize("family", ["linear", "shared", "quadratic"])
@given(seed=st.integers(0, 1000))
def test_an_invertible_map_of_z_is_a_change_of_weights(family: str, seed: int) -> None:
    """So the best probe of these families reads the same bits from z and from M z; no probe of them can tell the two apart."""
    recipe = Recipe(family, rank=2)
    size, z, o, _ = inputs(recipe, seed, beside=0)
    w = drawn(recipe, size, seed)
    q, _ = torch.linalg.qr(gaussian((D, D), generator(seed)))
    M = q * torch.linspace(0.5, 2, D, dtype=torch.float64)
    moved = w | {"z": torch.linalg.solve(M, w["z"])}
    same = logits(recipe, size, w, z, o - 0.5), logits(recipe, size, moved, z @ M, o - 0.5)
    # Condition number 4.
    assert (same[0] - same[1]).abs().max() <= 1e-12 * (1 + same[0].abs().max())


@pytest.mark.parametrize("family", ["linear", "shared", "quadratic", "deep"])
def test_bfloat16_moves_logits_by_its_rounding(family: str) -> None:
    """Eight bits of mantissa: the products of training move by a fraction of a per cent, and are not those of float32."""
    recipe = Recipe(family, rank=2, hidden=3)
    size, z, o, beside = inputs(recipe, 0)
    w = {name: x.float() / 4 for name, x in drawn(recipe, size, 1).items()}
    z, y, beside = z.float(), o.float() - 0.5, beside.float()
    full, fast = (logits(recipe, size, w, z, y, beside, fast=fast) for fast in (False, True))
    assert 1e-5 < (full - fast).abs().max() <= 0.05 * full.abs().max()


def test_published_sizes() -> None:
    """The released linear probe has as many weights as ours; the quadratic one lacks our linear part and affine constants."""
    size = Size(1024, 64, 0, (8, 8))
    assert count(Recipe("linear"), size) == 69_696
    assert count(Recipe("quadratic", rank=16), size) == 2_228_288 + (1024 + 64) * 64 + 2 * 64 * 16
    one_network = (1088 + 1) * 2048 + 2 * (2048 + 1) * 2048 + 2048 + 1
    assert 64 * one_network == 680_001_600


# Fits against exact posteriors.

CODES = torch.tensor([[i in c for i in range(6)] for c in itertools.combinations(range(6), 3)], dtype=torch.uint8)
PRIOR = Subsets((2, 3), 3)


def channel(n: int, seed: int, flip: float = 0.1) -> tuple[Tensor, Tensor]:
    """Codes drawn from the prior, and their bits seen through a binary symmetric channel."""
    draws = generator(seed)
    o = CODES[torch.randint(len(CODES), (n,), generator=draws)]
    noise = torch.rand((n, 6), generator=draws, dtype=torch.float64) < flip
    return o, (o.bool() ^ noise).float()


def exact_bits(o: Tensor, z: Tensor, flip: float = 0.1) -> np.ndarray:
    """−log2 p(o | z), by Bayes over all codes."""
    wrong = (z[:, None] != CODES).sum(-1).double()
    likelihood = flip**wrong * (1 - flip) ** (6 - wrong)
    own = (o[:, None] == CODES).all(-1)
    return -torch.log2((likelihood * own).sum(1) / likelihood.sum(1)).numpy()


@pytest.fixture(scope="module")
def seen() -> tuple[Tensor, Tensor, Any]:
    o, z = channel(6000, 0)
    return o, z, split_rows(6000, (4, 1, 3), seed=0)


@pytest.mark.parametrize("family", FLAT)
def test_a_fit_is_above_the_exact_conditional_entropy_and_near_it(family: str, seen: Any) -> None:
    o, z, split = seen
    found = fit(Recipe(family, epochs=12), z, o, split=split, anchor=PRIOR.log_odds(o), groups=(2, 3))
    gap = found.bits - exact_bits(o[split[2]], z[split[2]])
    assert gap.sum() >= -CHANCE
    assert gap.mean() <= 0.25  # measured at most 0.12; an untrained probe is 2.2 bits off
    again = found.code_length(z[split[2]], o[split[2]], anchor=PRIOR.log_odds(o[split[2]]))
    assert np.abs(again - found.bits).max() <= 1e-5  # another batch, in float32


def test_zero_weights_read_the_prior_exactly(seen: Any) -> None:
    """Epoch 0 is the anchor: its validation bits are the code length of the prior to rounding, log2 of the number of codes."""
    o, z, split = seen
    found = fit(Recipe("linear", epochs=1), z, o, split=split, anchor=PRIOR.log_odds(o))
    assert abs(found.history[0]["validation"] - math.log2(len(CODES))) <= 1e-12


def test_a_null_representation_reads_nothing_when_anchored_and_less_when_not(seen: Any) -> None:
    o, _, split = seen
    z = gaussian((len(o), 4), generator(5))
    anchored = fit(Recipe("linear"), z, o, split=split, anchor=PRIOR.log_odds(o))
    free = fit(Recipe("linear"), z, o, split=split)
    prior = math.log2(len(CODES))
    assert -0.02 <= prior - anchored.bits.mean() <= CHANCE / len(split[2])
    assert prior - free.bits.mean() <= -0.03


def test_where_the_prior_is_certain_a_bit_costs_nothing() -> None:
    odds = torch.tensor([[math.inf, -math.inf, 0.0]])
    assert code_length(odds, torch.tensor([[1, 0, 1]])) == pytest.approx([1.0], abs=1e-15)
    with pytest.raises(ValueError, match="row 0 has probability 0: bit 1 is 1"):
        code_length(odds, torch.tensor([[1, 1, 1]]))


def test_attention_finds_the_token_that_carries_the_bit() -> None:
    """Bit k stands in the token that is marked k, wherever that is: only a query can find it, and it mostly looks there."""
    n, draws = 3000, generator(0)
    o = torch.randint(0, 2, (n, 3), generator=draws)
    place = torch.stack([torch.randperm(5, generator=draws)[:3] for _ in range(n)])
    tokens = 0.1 * gaussian((n, 5, 8), draws, dtype=torch.float32)
    rows = torch.arange(n)
    for k in range(3):
        tokens[rows, place[:, k], k] += 1
        tokens[rows, place[:, k], 3] += 2 * o[:, k] - 1.0
    split = split_rows(n, seed=1)
    found = fit(Recipe("attention", epochs=15), tokens, o, split=split)
    assert found.bits.mean() <= 0.2  # of 3 bits; measured 0.02
    weights = found.scores(tokens[split[2]], o[split[2]])
    assert (weights.sum(-1) - 1).abs().max() <= 1e-5
    # Measured 0.69, chance 0.2. It need not be 1: a readout may also find the bit by what a query leaves out.
    assert (weights.argmax(-1) == place[split[2]]).float().mean() >= 0.5


def test_attention_weights_are_a_softmax_of_scores() -> None:
    size, z, o, _ = inputs(Recipe("attention"), 3)
    w = drawn(Recipe("attention", rank=2), size, 3)
    found = attend(w["base"], w["query"], z, o - 0.5)
    y = torch.triu((o - 0.5)[:, :, None].expand(-1, K, K), 1).transpose(1, 2)  # y_bki = o_bi − ½ for i < k
    expected = torch.einsum("bkd,btd->bkt", w["base"] + y @ w["query"], z) / D**0.5
    assert (found - expected.softmax(-1)).abs().max() <= 1e-12


# Resumed, streamed, split.


CHILD = """
import sys

import torch
from safetensors.torch import load_file

from binding import probes
from binding.probe_data import split_rows
from binding.probe_heads import Recipe

if sys.argv[3] == "die":
    import os
    import signal

    epoch = probes._Run._epoch

    def dies(self, done):
        if done == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return epoch(self, done)

    probes._Run._epoch = dies
data = load_file(sys.argv[1])
recipe = Recipe("quadratic", epochs=6, batch=64)
torch.set_num_threads(1)
found = probes.fit(recipe, data["z"], data["o"], split=split_rows(900), anchor=data["anchor"], checkpoint=sys.argv[2])
print([x.hex() for x in found.bits.tolist()], found.history)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_process_that_is_killed_goes_on_in_another_to_the_same_numbers(tmp_path: Any) -> None:
    o, z = channel(900, 1)
    save_file({"z": z, "o": o, "anchor": PRIOR.log_odds(o)}, tmp_path / "data.safetensors")

    def run(checkpoint: str, how: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", CHILD, str(tmp_path / "data.safetensors"), str(tmp_path / checkpoint), how]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    killed = run("fit.safetensors", "die")
    assert killed.returncode == -signal.SIGKILL and killed.stdout == ""
    assert len(json.loads(load_tensors(tmp_path / "fit.safetensors")[1]["state"])["history"]) == 4  # the anchor and three epochs
    resumed, whole = run("fit.safetensors", "live"), run("other.safetensors", "live")
    assert resumed.returncode == 0 and resumed.stdout == whole.stdout != ""


class Killed(Exception):
    pass


@pytest.mark.parametrize("family", ["quadratic", "attention"])
def test_a_killed_fit_goes_on_to_the_same_numbers(family: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    o, z = channel(900, 1)
    z = z if family != "attention" else torch.stack([z, 1 - z], 1)
    recipe, kwargs = Recipe(family, epochs=6, batch=64), {"split": split_rows(900), "anchor": PRIOR.log_odds(o)}
    whole = fit(recipe, z, o, **kwargs)
    epoch = probes._Run._epoch

    def dies(self: Any, done: int) -> float:
        if done == 3:
            raise Killed
        return epoch(self, done)

    monkeypatch.setattr(probes._Run, "_epoch", dies)
    with pytest.raises(Killed):
        fit(recipe, z, o, checkpoint=tmp_path / "fit.safetensors", **kwargs)
    monkeypatch.setattr(probes._Run, "_epoch", epoch)
    resumed = fit(recipe, z, o, checkpoint=tmp_path / "fit.safetensors", **kwargs)
    assert resumed.history == whole.history
    assert (resumed.bits == whole.bits).all()
    assert all((resumed.weights[name] == w).all() for name, w in whole.weights.items())
    # Finished: nothing is trained again.
    monkeypatch.setattr(probes._Run, "_epoch", dies)
    monkeypatch.setattr(probes._Run, "_restore", lambda *_: None)
    assert (fit(recipe, z, o, checkpoint=tmp_path / "fit.safetensors", **kwargs).bits == whole.bits).all()
    with pytest.raises(ValueError, match="checkpoint of another run"):
        fit(replace(recipe, seed=1), z, o, checkpoint=tmp_path / "fit.safetensors", **kwargs)
    assert "generator" in load_tensors(tmp_path / "fit.safetensors")[0]


@pytest.mark.parametrize("kind", ["memmap", "npy shards", "safetensors shards", "tensors"])
def test_streamed_rows_give_the_same_numbers(kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is larger than the budget is read window by window, and nothing else changes."""
    o, z = channel(1200, 2)
    z = torch.cat([z, gaussian((1200, 30), generator(0), dtype=torch.float32)], 1)
    kwargs = {"split": split_rows(1200), "anchor": PRIOR.log_odds(o)}
    recipe = Recipe(epochs=3, batch=32)
    expected = fit(recipe, z, o, **kwargs)
    monkeypatch.setenv("BINDING_MEMORY_MB", "0.05")  # z has 0.17 MB
    source: Any = [z[:500], z[500:]]
    if kind == "memmap":
        np.save(tmp_path / "z.npy", z.numpy())
        source = np.load(tmp_path / "z.npy", mmap_mode="r")
    elif kind != "tensors":
        source = []
        for number, part in enumerate((z[:1], z[1:700], z[700:])):
            source.append(tmp_path / f"{number}.{kind.split()[0]}")
            np.save(source[-1], part.numpy()) if kind.startswith("npy") else save_file({"z": part.contiguous()}, source[-1])
    data = Data(source, o)
    data.standardise(*moments(data.rows, np.arange(1200)))
    assert data.kept is None
    found = fit(recipe, source, o, **kwargs)
    assert found.best_epoch == expected.best_epoch
    # The moments are merged in pieces, so they differ by float64 rounding, and training carries that on in float32.
    assert np.abs(found.bits - expected.bits).max() <= 1e-3


def test_half_precision_shards_are_read_as_they_are(tmp_path: Any) -> None:
    x = gaussian((9, 4), generator(0))
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        save_file({"x": x.to(dtype)}, tmp_path / "x.safetensors")
        index = np.array([8, 0, 3, 3])
        assert (Rows(tmp_path / "x.safetensors").read(index) == x.to(dtype).float()[index]).all()


@given(cut=st.integers(1, 40), seed=st.integers(0, 100))
def test_moments_of_pieces_are_those_of_all_rows(cut: int, seed: int) -> None:
    x = gaussian((41, 3), generator(seed)) * torch.tensor([1.0, 100.0, 0.0]) + torch.tensor([5.0, -1e3, 7.0])
    rows = Rows([x[:cut], x[cut:]])
    mean, scale = moments(rows, np.arange(41), budget=rows.row_bytes * 7)
    kept = x.float().double()  # rows are read in float32
    assert torch.allclose(mean.double(), kept.mean(0), rtol=1e-6, atol=0)  # float32 rounding of the result
    assert torch.allclose(scale.double()[:2], kept.std(0, correction=0)[:2], rtol=1e-6, atol=0)
    assert scale[2] == 1


def test_validation_rows_choose_and_test_rows_only_measure() -> None:
    """The weights of the best validation epoch are kept; scales are those of training rows; no test row moves either."""
    o, z = channel(400, 3)
    split = split_rows(400)
    recipe, anchor = Recipe("quadratic", epochs=12, batch=32, learning_rate=0.1), PRIOR.log_odds(o)
    found = fit(recipe, z, o, split=split, anchor=anchor)
    validation = [epoch["validation"] for epoch in found.history]
    assert found.best_epoch == int(np.argmin(validation)) < len(validation) - 1  # it overfits, so the last epoch is not the best
    assert found.code_length(z[split[1]], o[split[1]], anchor=anchor[split[1]]).mean() == pytest.approx(min(validation), abs=1e-5)
    assert torch.allclose(found.mean, z[split[0]].mean(0), rtol=0, atol=1e-6)  # float32 rounding
    assert torch.allclose(found.scale, z[split[0]].std(0, correction=0), rtol=0, atol=1e-6)
    other_z, other_o = z.clone(), o.clone()
    other_z[split[2]], other_o[split[2]] = 5 - z[split[2]], o[split[2]].flip(0)
    other = fit(recipe, other_z, other_o, split=split, anchor=PRIOR.log_odds(other_o))
    assert other.history == found.history and other.best_epoch == found.best_epoch
    assert all((other.weights[name] == w).all() for name, w in found.weights.items())


def test_patience_ends_a_training_that_brings_nothing() -> None:
    o, _ = channel(300, 4)
    recipe = Recipe("deep", hidden=16, epochs=30, patience=2, batch=32)
    found = fit(recipe, gaussian((300, 8), generator(0)), o, split=split_rows(300), anchor=PRIOR.log_odds(o))
    assert len(found.history) == found.best_epoch + 1 + 2


@pytest.mark.parametrize("changed", ["z", "o", "anchor", "condition", "split"])
def test_a_checkpoint_belongs_to_its_data(changed: str, tmp_path: Any) -> None:
    o, z = channel(100, 5)
    given: dict[str, Any] = {"z": z, "o": o, "anchor": PRIOR.log_odds(o), "condition": z[:, :2], "split": split_rows(100)}

    def run(given: dict[str, Any]) -> probes.Fit:
        kwargs = {name: given[name] for name in ("anchor", "condition", "split")}
        return fit(Recipe("linear", epochs=1), given["z"], given["o"], checkpoint=tmp_path / "fit.safetensors", **kwargs)

    assert (run(given).bits == run(given).bits).all()
    swapped = o.flip(0)
    other = {"z": z + 1, "o": swapped, "anchor": given["anchor"] / 2, "condition": 1 - z[:, :2], "split": split_rows(100, seed=1)}
    new = given | {changed: other[changed]} | ({"anchor": PRIOR.log_odds(swapped)} if changed == "o" else {})
    with pytest.raises(ValueError, match="checkpoint of another run"):
        run(new)


def test_parts_have_their_shares() -> None:
    assert [len(part) for part in split_rows(1000)] == [700, 100, 200]
    assert [len(part) for part in split_rows(10, (5, 1, 4))] == [5, 1, 4]
    o = torch.tensor(list(itertools.product((0, 1), repeat=6)))[:50]
    assert [len(part) for part in split_codes(o)] == [35, 5, 10]


@given(n=st.integers(30, 200), seed=st.integers(0, 100))
def test_a_split_by_codes_has_no_code_twice(n: int, seed: int) -> None:
    o = CODES[torch.randint(len(CODES), (n,), generator=generator(seed))]
    parts = split_codes(o, seed=seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    kinds = [{tuple(code) for code in o[part].tolist()} for part in parts]
    assert sum(map(len, kinds)) == len(set().union(*kinds))
    assert check_split(split_rows(n, seed=seed), n)


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [one_cycle(share, 2.0) for share in np.linspace(0, 1, 201)]
    top = int(np.argmax(rates))
    assert rates[top] == pytest.approx(2.0) and 0 < rates[0] < 0.1 and abs(rates[-1]) < 1e-12
    assert all(a <= b for a, b in itertools.pairwise(rates[: top + 1]))
    assert all(a >= b for a, b in itertools.pairwise(rates[top:]))


# The one call.


def test_intervals_are_paired_and_of_the_right_width() -> None:
    a, b = gaussian((2, 4000), generator(0)).numpy()
    found = intervals({"a": a, "sum": a + b, "rest": b + 3 - b, "twice": 2 * a})
    assert found["rest"].high - found["rest"].low <= 1e-12
    assert found["twice"].low == pytest.approx(2 * found["a"].low, rel=1e-12)
    width = found["a"].high - found["a"].low
    assert width == pytest.approx(2 * 1.96 / 4000**0.5, rel=0.15)  # 1,000 draws fix a percentile to about 5 %
    assert found["sum"].value == pytest.approx(a.mean() + b.mean(), abs=1e-12)


def test_binding_information_is_below_the_exact_one_and_near_it(seen: Any) -> None:
    """On the channel of which the exact values are known by Bayes' rule."""
    o, z, split = seen
    found = binding_information(z, o, prior=PRIOR, split=split, disjoint=False)
    exact = exact_bits(o[split[2]], z[split[2]])
    objects = PRIOR.entropy - exact.mean()
    assert objects - 0.25 <= found.objects.value <= objects + CHANCE / len(exact)
    assert found.objects.low <= found.objects.value <= found.objects.high
    assert found.beta.value == pytest.approx(found.objects.value / PRIOR.entropy)
    assert found.binding_difference.value == pytest.approx(found.objects.value - found.features.value)
    assert found.beta_star.value == pytest.approx(found.binding_direct.value / PRIOR.entropy_given_features)
    share = found.binding_difference.high / PRIOR.entropy_given_features
    assert found.beta_star_difference.high == pytest.approx(share) and found.flags == ()
    assert found.null is not None and abs(found.null.value) <= 0.03
    assert found.from_features is not None
    assert PRIOR.entropy_features - 0.2 <= found.from_features.value <= PRIOR.entropy_features + CHANCE / len(exact)
    assert set(found.fits) == {"objects", "features", "direct", "null", "from_features"}
    assert "fits" not in found.to_json() and found.to_json()["beta"]["value"] == found.beta.value


def test_features_alone_have_no_binding_by_the_direct_bound(seen: Any) -> None:
    o, _, split = seen
    f = features(o, GROUPS).float()
    found = binding_information(f, o, prior=PRIOR, split=split, disjoint=False, controls=False)
    assert abs(found.binding_direct.value) <= 0.03
    assert found.null is None


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ({"objects": 1, "features": 0, "direct": 1, "null": 0, "from_features": 1}, "is more than these rows hold"),
        ({"objects": 0, "features": 0, "direct": 0, "null": 1, "from_features": 1}, "where there is nothing"),
        ({"objects": 1, "features": 1, "direct": 1, "null": 0, "from_features": 1}, None),
    ],
)
def test_what_is_wrong_is_flagged(reads: dict[str, int], said: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With probes that read all or nothing, in the order in which they are asked."""
    share = iter(reads.values())

    def all_or_nothing(recipe: Recipe, z: Any, targets: Tensor, *, split: Any, anchor: Tensor, **_: Any) -> probes.Fit:
        bits = code_length(anchor[split[2]], targets[split[2]]) * (1 - next(share))
        return probes.Fit(recipe, Size(1, 1), {}, torch.zeros(1), torch.ones(1), bits, [])

    monkeypatch.setattr(probes, "fit", all_or_nothing)
    o, z = channel(300, 0)
    flags = binding_information(z, o, prior=PRIOR, split=split_rows(300), disjoint=False).flags
    assert len(flags) == (said is not None) and all(said in flag for flag in flags)


def test_codes_that_break_the_law_are_flagged_by_the_control() -> None:
    """The first object is in every scene, and the law that is named does not know it: noise is then read as bits."""
    o = CODES[CODES[:, 0] == 1][torch.randint(10, (900,), generator=generator(0))]
    found = binding_information(gaussian((900, 3), generator(1)), o, prior=PRIOR, split=split_rows(900), disjoint=False)
    assert found.null is not None and found.null.value > 0.5  # log2 of 20 / 10 codes is 1 bit
    assert any("the codes do not follow this law" in flag for flag in found.flags)


def test_codes_held_out_of_a_small_law_are_flagged() -> None:
    """A probe that knows which codes training holds may give all its mass to the rest: log2 1/(1 − m) bits, and no more."""
    o, z = CODES.repeat(30, 1), CODES.repeat(30, 1).float()
    found = binding_information(z, o, prior=PRIOR, probe=Recipe("linear", epochs=1), controls=False)
    parts = split_codes(o)
    left = len({tuple(code) for code in o[parts[2]].tolist()})
    assert found.held_out == pytest.approx(math.log2(20 / left), abs=1e-9)
    assert any(f"up to {math.log2(20 / left):.1f} bits too high" in flag for flag in found.flags)
    # The bound is reached by the law of what is left, and the law of the channel is never above it.
    left_law = Enumerated(torch.unique(o[parts[2]], dim=0), GROUPS)
    assert PRIOR.entropy - code_length(left_law.log_odds(o[parts[2]]), o[parts[2]]).mean() == pytest.approx(found.held_out)
    again = binding_information(z, o, prior=PRIOR, probe=Recipe("linear", epochs=1), controls=False, disjoint=False)
    assert again.held_out == 0 and again.flags == ()
    first, second, third = np.array_split(np.arange(600), 3)
    assert held_out(np.full(600, math.log2(20)), o, (first, second, third)) == math.inf


def test_the_other_families_of_priors_go_through() -> None:
    """An enumerated law that is not uniform: anchors are certain in places, and the exact posterior still bounds the reading."""
    draws = generator(4)
    codes = CODES[:7]
    law = np.arange(1, 8) / 28
    prior = Enumerated(codes, GROUPS, law)
    o = prior.sample(2000, draws)
    found = binding_information(o.float(), o, prior=prior, split=split_rows(2000), disjoint=False, probe="shared")
    assert found.objects.value == pytest.approx(prior.entropy, abs=0.15)


GOOD: dict[str, Any] = {"o": CODES.repeat(30, 1), "z": CODES.repeat(30, 1).float()}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"o": GOOD["o"].float() * 2}, "codes hold 2.0 in row 0, bit 0; every bit is 0 or 1"),
        ({"z": GOOD["z"][:9]}, "z has 9 rows, the targets have 600"),
        ({"z": torch.full((600, 3), math.nan)}, "NaN or an infinity in row"),
        ({"z": GOOD["z"][:, 0]}, "it needs rows of features"),
        ({"z": GOOD["z"][:, None]}, "this probe reads rows"),
        ({"z": []}, "z has no rows"),
        ({"z": [GOOD["z"], GOOD["z"][:, :2]]}, "rows of different shapes"),
        ({"z": "z.pt"}, "no .npy and no .safetensors file"),
        ({"f": GOOD["o"][:, :5]}, "has the features"),
        ({"f": GOOD["o"]}, "features have shape"),
        ({"split": split_rows(600)}, "has the code of training row"),
        ({"split": ([0, 1], [2], [])}, "the test part of the split is empty"),
        ({"split": ([0, 1], [2], [1])}, "row 1 stands twice in the split"),
        ({"split": ([0, 1], [2], [600])}, "row numbers from 0 to 599"),
        ({"split": ([0, 1], [2])}, "a split has three parts"),
        ({"probe": "cubic"}, "'cubic' is no probe"),
        ({"o": 1 - GOOD["o"][:, :5]}, "shape"),
    ],
)
def test_bad_input_stops_before_training(changed: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes._Run, "train", lambda *_: pytest.fail("trained"))
    given = {**GOOD, **changed}
    with pytest.raises(ValueError, match=said):
        binding_information(given.pop("z"), given.pop("o"), given.pop("f", None), prior=PRIOR, **given)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rank": 0}, "rank = 0"),
        ({"epochs": 0}, "epochs = 0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"precision": "float8"}, "precision = 'float8'"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_a_recipe_that_makes_no_probe_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Recipe(**changed)


def test_more_bad_input_of_a_fit(tmp_path: Any) -> None:
    o, z = channel(60, 0)
    kwargs: dict[str, Any] = {"split": split_rows(60)}
    with pytest.raises(ValueError, match="the shared family needs the groups"):
        fit(Recipe("shared"), z, o, groups=(2, 2), **kwargs)
    with pytest.raises(ValueError, match="the anchor has shape"):
        fit(Recipe(), z, o, anchor=torch.zeros(60, 5), **kwargs)
    with pytest.raises(ValueError, match="not a number in row 3"):
        fit(Recipe(), z, o, anchor=torch.zeros(60, 6).index_fill(0, torch.tensor([3]), math.nan), **kwargs)
    with pytest.raises(ValueError, match="the condition must be"):
        fit(Recipe(), z, o, condition=torch.full((60, 1), math.inf), **kwargs)
    with pytest.raises(ValueError, match="has no attention"):
        fit(Recipe(epochs=1), z, o, **kwargs).scores(z, o)
    (tmp_path / "x.safetensors").write_bytes(b"12")
    with pytest.raises(ValueError, match="no safetensors file that can be mapped"):
        Rows(tmp_path / "x.safetensors")


def test_the_stored_benchmark_is_whole() -> None:
    """Equal logits, ratios of one run, and the command that makes it again."""
    bench = json.loads(stored_run("probes-benchmark.json").read_text(encoding="utf-8"))
    assert bench["schema"] == 1 and bench["command"].startswith("python benchmarks/bench_probes.py")
    assert {"commit", "torch", "threads"} <= set(bench["provenance"]) and bench["provenance"]["threads"] == 1
    for family, least in (("linear", 1), ("quadratic", 46), ("shared", 155)):
        step = bench["steps"][family]
        assert step["apart"] <= 1e-5  # float32 rounding of sums of 1,088 products
        assert step["peer"] / step["bfloat16"] >= least
    race = bench["race"]
    assert race["ours"]["bits"] <= race["peer"]["bits"] and race["peer"]["apart"] <= 1e-4
    assert bench["memory"]["streamed"] < 1049 / 2
