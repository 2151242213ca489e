"""Probes: how many bits about the objects of a scene a probe can read from a representation, anchored on the exact prior.

A probe q(o | z) = ∏_k q(o_k | o_<k, z) starts from the prior's own conditionals and learns what z adds. Its code length on
test rows bounds H(O | Z) from above, so what it saves against the prior bounds I(O; Z) from below. See ``probe_heads`` for
the families and ``probe_data`` for representations larger than memory.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from binding.files import load_tensors, save_tensors
from binding.information import Prior
from binding.numerics import generator
from binding.probe_data import (
    Data,
    Source,
    Split,
    check_anchor,
    check_codes,
    check_disjoint,
    check_features,
    check_rows,
    check_split,
    held_out,
    split_codes,
    split_rows,
)
from binding.probe_heads import Recipe, Size, attend, initial, logits, shapes

CHANCE_BITS = 30.0
"""Σ log2 q/p over the test rows exceeds t bits with probability at most 2^−t: here about 1e-9, whatever the probe."""


@dataclass(frozen=True)
class Fit:
    """A trained probe and the code length of every test row."""

    recipe: Recipe
    size: Size
    weights: dict[str, Tensor]
    mean: Tensor
    scale: Tensor
    """Of z and, after it, of the condition: the probe sees (z − mean) / scale."""
    bits: np.ndarray
    """(n_test,) code length of every test row, bits, in the order of the split."""
    history: list[dict[str, float]] = field(repr=False)
    """One entry an epoch: mean bits on training and validation rows; epoch 0 is the anchor alone."""
    best_epoch: int = 0

    def log_odds(self, z: Source, targets: Any, *, anchor: Any = None, condition: Any = None) -> Tensor:
        """Log odds of every bit given the bits before it, (n, K), nats; where the anchor is certain, so is the probe."""
        data = Data(z, targets, anchor, condition, tokens=self.recipe.family == "attention")
        data.standardise(self.mean, self.scale)
        parts = []
        for _, x, o, a, beside in data.batches(np.arange(len(data.o)), self.recipe.batch):
            with torch.no_grad():
                found = logits(self.recipe, self.size, _on(self.weights, data.to), x, o - 0.5, beside).double().cpu()
            parts.append(found if a is None else found + a.double().cpu())
        return torch.cat(parts)

    def code_length(self, z: Source, targets: Any, *, anchor: Any = None, condition: Any = None) -> np.ndarray:
        """Code length of every row, (n,), bits."""
        odds = self.log_odds(z, targets, anchor=anchor, condition=condition)
        return code_length(odds, targets)

    def scores(self, tokens: Source, targets: Any) -> Tensor:
        """Attention weights of every bit over the tokens, (n, K, T). Raises ``ValueError`` for a probe without attention."""
        if self.recipe.family != "attention":
            raise ValueError(f"a {self.recipe.family} probe has no attention; train the attention family on tokens")
        data = Data(tokens, targets, tokens=True)
        data.standardise(self.mean, self.scale)
        first, parts = int(self.recipe.cls), []
        w = _on(self.weights, data.to)
        for _, x, o, _, _ in data.batches(np.arange(len(data.o)), self.recipe.batch):
            parts.append(attend(w["base"], w["query"], x[:, first:], o - 0.5).cpu())
        return torch.cat(parts)


def code_length(log_odds: Any, targets: Any) -> np.ndarray:
    """Code length ``Σ_k log2(1 + exp(∓ log odds_k))`` of every row, (n,), bits; − for a bit that is one.

    A bit of which the log odds are certain costs nothing. Raises ``ValueError`` for log odds that are not a number and for a
    row of probability zero: one that has a bit of which the contrary was certain.
    """
    odds = torch.as_tensor(log_odds).double().cpu()
    o = check_codes(targets, "targets").double()
    check_anchor(odds, o)
    forced = torch.isinf(odds)
    nats = binary_cross_entropy_with_logits(odds.masked_fill(forced, 0), o, reduction="none").masked_fill(forced, 0)
    return (nats.sum(1) / math.log(2)).numpy()


def one_cycle(share: float, peak: float) -> float:
    """The learning rate after a share of all steps: up to ``peak`` along a cosine in the first 15 %, then down to 0."""
    if share < 0.15:
        return peak * (0.04 + 0.96 * (1 - math.cos(math.pi * share / 0.15)) / 2)
    return peak * (1 + math.cos(math.pi * (share - 0.15) / 0.85)) / 2


def fit(
    recipe: Recipe,
    z: Source,
    targets: Any,
    *,
    split: Sequence[Any],
    anchor: Any = None,
    condition: Any = None,
    groups: tuple[int, ...] | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = False,
) -> Fit:
    """Train a probe and measure its code length on test rows.

    ``z``: (n, D) or, for the attention family, tokens (n, T, D): an array, a memory-mapped one, or shards. ``targets``: (n, K) of
    0 and 1. ``split``: indices of training, validation and test rows. ``anchor``: (n, K) log odds of the prior, nats, ±∞ where a
    bit is certain. ``condition``: (n, m) numbers that the probe sees beside z. ``checkpoint``: a file written after every
    epoch; a later call with the same data goes on from it, to the same numbers.

    The weights with the fewest validation bits are kept, and no training at all counts as epoch 0, so a probe is not worse on
    validation rows than its anchor. Raises ``ValueError`` before training for targets that are not 0 or 1, shapes that do not
    fit, an empty or overlapping split, a NaN, a row that the anchor excludes, and a checkpoint of another run.
    """
    data = Data(z, targets, anchor, condition, tokens=recipe.family == "attention")
    size = size_of(recipe, data, groups)
    parts = check_split(split, len(data.o))
    for part in parts:
        check_rows(data.rows, part)
    data.standardise(*data.moments(parts[0]))
    path = None if checkpoint is None else Path(checkpoint)
    run = _Run(recipe, size, data, parts, path)
    run.train(progress)
    bits = run.bits(run.best, parts[2])
    return Fit(recipe, size, run.best, data.mean, data.scale, bits, run.history, run.best_epoch)


def size_of(recipe: Recipe, data: Data, groups: tuple[int, ...] | None) -> Size:
    """The size of the probe that a recipe makes for these data. Raises ``ValueError`` for the shared family without a grid."""
    beside = 0 if data.condition is None else data.condition.shape[1]
    size = Size(data.D, data.K, beside + data.D * (recipe.family == "attention" and recipe.cls), tuple(groups or ()))
    shapes(recipe, size)
    return size


class _Run:
    """The state of one training: weights, optimiser, generator, and the best weights so far."""

    def __init__(self, recipe: Recipe, size: Size, data: Data, parts: Split, path: Path | None) -> None:
        self.recipe, self.size, self.data, self.parts, self.path = recipe, size, data, parts, path
        self.draws = generator(self.recipe.seed)
        self.weights = {name: w.to(data.to) for name, w in initial(self.recipe, self.size, self.draws).items()}
        self.named = "" if path is None else data.fingerprint(json.dumps([asdict(recipe), asdict(size)]), parts)
        self.history: list[dict[str, float]] = []
        self.best, self.best_epoch = {name: w.cpu().clone() for name, w in self.weights.items()}, 0
        stored = self._stored()
        for w in self.weights.values():
            w.requires_grad_(True)
        fused = data.to.type in ("cpu", "cuda")
        settings: dict[str, Any] = {"betas": (0.9, 0.99), "weight_decay": self.recipe.weight_decay, "fused": fused}
        self.optimiser = torch.optim.AdamW(self.weights.values(), lr=self.recipe.rate, **settings)
        if stored is not None:
            self._restore(stored)

    def train(self, progress: bool) -> None:
        """All epochs that are left, or until ``patience`` of them brought nothing."""
        from tqdm.auto import tqdm

        if not self.history:
            self.history.append({"epoch": 0, "train": math.nan, "validation": self._validation()})
            self.history[0]["train"] = self.history[0]["validation"]
        bar = tqdm(total=self.recipe.epochs, initial=len(self.history) - 1, desc=self.recipe.family, disable=not progress)
        with bar:
            while (done := len(self.history) - 1) < self.recipe.epochs and done - self.best_epoch < self.recipe.patience:
                train = self._epoch(done)
                validation = self._validation()
                if validation < self.history[self.best_epoch]["validation"]:
                    self.best_epoch = done + 1
                    self.best = {name: w.detach().cpu().clone() for name, w in self.weights.items()}
                self.history.append({"epoch": done + 1, "train": train, "validation": validation})
                bar.set_postfix_str(f"{validation:.3f} bits")
                bar.update()
                self._store()

    def bits(self, weights: dict[str, Tensor], index: np.ndarray) -> np.ndarray:
        """Code length of every row of ``index``, bits."""
        data, w, found = self.data, _on(weights, self.data.to), []
        with torch.no_grad():
            for _, x, o, anchor, beside in data.batches(index, self.recipe.batch):
                logit = logits(self.recipe, self.size, w, x, o - 0.5, beside).cpu().double()
                found.append(_nats(logit, o.cpu().double(), None if anchor is None else anchor.cpu()))
        return (torch.cat(found) / math.log(2)).numpy()

    def _validation(self) -> float:
        return float(self.bits({name: w.detach() for name, w in self.weights.items()}, self.parts[1]).mean())

    def _epoch(self, done: int) -> float:
        data, n, steps = self.data, len(self.parts[0]), math.ceil(len(self.parts[0]) / self.recipe.batch)
        order = self.parts[0][torch.randperm(n, generator=self.draws).numpy()]
        total = torch.zeros((), dtype=torch.float64, device=data.to if data.to.type != "mps" else "cpu")
        for step, (_, x, o, anchor, beside) in enumerate(data.batches(order, self.recipe.batch)):
            share = (done * steps + step) / (self.recipe.epochs * steps)
            self.optimiser.param_groups[0]["lr"] = one_cycle(share, self.recipe.rate)
            self.optimiser.zero_grad()
            logit = logits(self.recipe, self.size, self.weights, x, o - 0.5, beside, fast=self.recipe.precision == "bfloat16")
            loss = _nats(logit, o, anchor)
            loss.mean().backward()
            self.optimiser.step()
            total += loss.detach().sum().to(total.device)
        bits = float(total) / n / math.log(2)
        if not math.isfinite(bits):
            raise ValueError(f"training diverged in epoch {done + 1}; lower learning_rate = {self.recipe.rate}")
        return bits

    def _store(self) -> None:
        if self.path is None:
            return
        tensors = {"generator": self.draws.get_state()}
        for name, w in self.weights.items():
            moved = self.optimiser.state[w]
            tensors |= {f"weights.{name}": w.detach(), f"best.{name}": self.best[name]}
            tensors |= {f"first.{name}": moved["exp_avg"], f"second.{name}": moved["exp_avg_sq"], f"step.{name}": moved["step"]}
        state = {"history": self.history, "best_epoch": self.best_epoch}
        save_tensors(self.path, tensors, {"run": self.named, "state": json.dumps(state)})

    def _stored(self) -> dict[str, Tensor] | None:
        if self.path is None or not self.path.exists():
            return None
        tensors, about = load_tensors(self.path)
        if about.get("run") != self.named:
            raise ValueError(f"{self.path} is the checkpoint of another run; move it away or name another file")
        state = json.loads(about["state"])
        self.history, self.best_epoch = state["history"], state["best_epoch"]
        for name, w in self.weights.items():
            w.copy_(tensors[f"weights.{name}"])
            self.best[name] = tensors[f"best.{name}"]
        self.draws.set_state(tensors["generator"])
        return tensors

    def _restore(self, tensors: dict[str, Tensor]) -> None:
        for name, w in self.weights.items():
            pair = {"exp_avg": tensors[f"first.{name}"], "exp_avg_sq": tensors[f"second.{name}"]}
            self.optimiser.state[w] = {"step": tensors[f"step.{name}"].to(w.device)} | _on(pair, self.data.to)


def _nats(logit: Tensor, o: Tensor, anchor: Tensor | None) -> Tensor:
    """Code length of every row, nats, (B,); bits of which the anchor is certain cost nothing and teach nothing."""
    if anchor is None:
        return binary_cross_entropy_with_logits(logit, o, reduction="none").sum(1)
    forced = torch.isinf(anchor)
    offset = anchor.masked_fill(forced, 0).to(logit.dtype)
    return binary_cross_entropy_with_logits(logit + offset, o, reduction="none").masked_fill(forced, 0).sum(1)


def _on(weights: dict[str, Tensor], to: torch.device) -> dict[str, Tensor]:
    return {name: w.to(to) for name, w in weights.items()}


@dataclass(frozen=True)
class Estimate:
    """A mean over test rows with its bootstrap interval at 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Binding:
    """What a family of probes reads from a representation; bits unless said otherwise, each with its interval."""

    objects: Estimate
    """I(O; Z), from below."""
    features: Estimate
    """I(F; Z), from below."""
    binding_difference: Estimate
    """I(O; Z | F) as the difference of the two: of two bounds, so no bound."""
    binding_direct: Estimate
    """I(O; Z | F), from below: H(O | F) less the code length of a probe that sees F."""
    beta: Estimate
    """``objects`` / H(O)."""
    beta_star: Estimate
    """``binding_direct`` / H(O | F)."""
    beta_star_difference: Estimate
    """``binding_difference`` / H(O | F)."""
    null: Estimate | None
    """The reading of the same probe on rows of z that are dealt out anew: nothing is there to be read."""
    from_features: Estimate | None
    """The reading of the same probe on z = F, where H(F) bits are there."""
    entropy: float
    entropy_features: float
    entropy_given_features: float
    held_out: float
    """Bits a row by which readings may stand above the truth because no test code stands in training; 0 for independent draws."""
    n_test: int
    probe: Recipe
    flags: tuple[str, ...]
    """What is wrong with the numbers above, if anything."""
    fits: dict[str, Fit] = field(repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Everything but the fits, as plain data."""
        return {name: value for name, value in asdict(replace(self, fits={})).items() if name != "fits"}


def intervals(rows: Mapping[str, np.ndarray], seed: int = 0, draws: int = 1000) -> dict[str, Estimate]:
    """Means over test rows with paired bootstrap intervals: every draw takes the same rows for all of them.

    ``rows``: arrays of one number a row, all of one length. Percentiles 2.5 and 97.5 of ``draws`` means.
    """
    table = torch.from_numpy(np.stack(list(rows.values())))
    n, coins = table.shape[1], generator(seed)
    means = torch.stack([table[:, torch.randint(n, (n,), generator=coins)].mean(1) for _ in range(draws)])
    low, high = np.percentile(means.numpy(), [2.5, 97.5], axis=0)
    return {name: Estimate(float(table[i].mean()), float(low[i]), float(high[i])) for i, name in enumerate(rows)}


def binding_information(
    z: Source,
    o: Any,
    f: Any = None,
    *,
    prior: Prior,
    probe: str | Recipe = "quadratic",
    split: Sequence[Any] | None = None,
    disjoint: bool = True,
    controls: bool = True,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: bool = False,
) -> Binding:
    """Binding information of a representation: three probes on it, two on controls, and every scalar with its interval.

    ``z``: as in :func:`fit`. ``o``: (n, K) codes; ``f``: (n, n_F) features, computed from o unless given. ``prior``: the law
    of the codes. ``disjoint=False`` admits test codes that also stand in training, right only where the rows are independent
    draws of the whole channel. ``split``: three arrays of row numbers; unless given, the distinct codes are dealt out, or the
    rows if not ``disjoint``. ``controls``: also probe z with its rows dealt out anew, and z = F. ``folder``: keep checkpoints
    there, to go on after a kill. The shared family reads features, which are no grid, as the quadratic one. The intervals
    take test rows as independent, and the trained probes as they are.

    Raises ``ValueError`` before training for codes that are not 0 or 1, features that are not those of the codes, test codes
    that stand in training, and whatever :func:`fit` refuses.
    """
    recipe = Recipe(probe, seed=seed) if isinstance(probe, str) else probe
    o = check_codes(o, "codes")
    f = check_features(f, o, prior.groups)
    if split is None:
        split = split_codes(o, seed=seed) if disjoint else split_rows(len(o), seed=seed)
    parts = check_split(split, len(o))
    if disjoint:
        check_disjoint(o, parts)
    anchors = {"objects": prior.log_odds(o), "features": prior.feature_log_odds(f)}
    anchors["direct"] = prior.log_odds_given_features(o, f)
    of_features = replace(recipe, family="quadratic") if recipe.family == "shared" else recipe

    def read(name: str, recipe: Recipe, z: Source, targets: Tensor, anchor: Tensor, **more: Any) -> Fit:
        path = None if folder is None else Path(folder) / f"{name}.safetensors"
        return fit(recipe, z, targets, split=parts, anchor=anchor, checkpoint=path, progress=progress, **more)

    fits = {
        "objects": read("objects", recipe, z, o, anchors["objects"], groups=prior.groups),
        "features": read("features", of_features, z, f, anchors["features"]),
        "direct": read("direct", recipe, z, o, anchors["direct"], groups=prior.groups, condition=f),
    }
    if controls:
        dealt = _dealt(parts, len(o), seed)
        fits["null"] = read("null", recipe, z, o[dealt], anchors["objects"][dealt], groups=prior.groups)
        as_z = f.float() if recipe.family != "attention" else f.float()[:, None].repeat(1, 1 + recipe.cls, 1)
        fits["from_features"] = read("from_features", recipe, as_z, o, anchors["objects"], groups=prior.groups)
    above = held_out(code_length(anchors["objects"], o), o, parts) if disjoint else 0.0
    return _summary(recipe, fits, anchors, (o, f), parts, prior, seed, above)


def _dealt(parts: Split, n: int, seed: int) -> Tensor:
    """A permutation of the rows inside each part, so that z says nothing about o and the parts keep their codes."""
    order, draws = torch.arange(n), generator(seed)
    for part in parts:
        rows = torch.from_numpy(part)
        order[rows] = rows[torch.randperm(len(rows), generator=draws)]
    return order


def _summary(
    recipe: Recipe,
    fits: dict[str, Fit],
    anchors: dict[str, Tensor],
    codes: tuple[Tensor, Tensor],
    parts: Split,
    prior: Prior,
    seed: int,
    above: float,
) -> Binding:
    test = torch.from_numpy(parts[2])
    o, f = (x[test] for x in codes)
    of_prior = {name: code_length(anchor[test], f if name == "features" else o) for name, anchor in anchors.items()}
    rows = {name: of_prior[name] - fits[name].bits for name in anchors}
    rows["difference"] = rows["objects"] - rows["features"]
    if "null" in fits:
        dealt = _dealt(parts, len(codes[0]), seed)[test]
        rows["null"] = code_length(anchors["objects"][dealt], codes[0][dealt]) - fits["null"].bits
        rows["from_features"] = of_prior["objects"] - fits["from_features"].bits
    found = intervals(rows, seed)
    given = prior.entropy_given_features
    flags = []
    # On the same rows: what is saved on objects less what is saved on features is more than the prior has to give.
    if fits["objects"].bits.mean() < fits["features"].bits.mean():
        whole = f"H(O | F) = {given:.2f} on average"
        flags.append(f"the difference, {found['difference']}, is more than these rows hold, {whole}: read the direct bound")
    if "null" in fits and len(parts[2]) * (found["null"].value - above) > CHANCE_BITS:
        flags.append(f"the probe reads {found['null']} bits where there is nothing: the codes do not follow this law")
    elif "null" in fits and found["objects"].value < found["null"].value:
        flags.append(f"the probe reads {found['objects']} bits of objects, and {found['null']} where there is nothing")
    if above > 0.1:
        flags.append(f"training and validation hold so many of all codes that a reading may be up to {above:.1f} bits too high")

    def over(name: str, whole: float) -> Estimate:
        e = found[name]
        return Estimate(e.value / whole, e.low / whole, e.high / whole) if whole > 0 else Estimate(0.0, 0.0, 0.0)

    return Binding(
        objects=found["objects"],
        features=found["features"],
        binding_difference=found["difference"],
        binding_direct=found["direct"],
        beta=over("objects", prior.entropy),
        beta_star=over("direct", given),
        beta_star_difference=over("difference", given),
        null=found.get("null"),
        from_features=found.get("from_features"),
        entropy=prior.entropy,
        entropy_features=prior.entropy_features,
        entropy_given_features=given,
        held_out=above,
        n_test=len(parts[2]),
        probe=recipe,
        flags=tuple(flags),
        fits=fits,
    )
