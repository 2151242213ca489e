"""Calibration: probes on representations whose information is known exactly, before they may read any other.

Codes are the subsets of k cells of a small grid, all equally likely. Each case is a channel with a likelihood in closed form, so
Bayes' rule gives the exact code length of every test row, and the gap of a probe is measured against the same rows.

    python -m binding.calibration --out calibration.json
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from binding.information import Prior, Subsets, features
from binding.numerics import gaussian, generator, signs
from binding.probe_data import Split, split_rows
from binding.probe_heads import FAMILIES, Recipe, strict
from binding.probes import binding_information, code_length, fit
from binding.runs import store, sweep

GROUPS, OBJECTS = (3, 3), 4
TOKEN_NOISE = 0.3
CASES = ("nothing", "O", "F", "counts", "flips", "sum, d = 24", "sum, d = 6", "parity of 2", "parity of 3")
TOKEN_CASES = ("nothing", "tokens", "noisy tokens")
"""What the attention probe is calibrated on."""
FLIPS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)


@dataclass(frozen=True)
class Case:
    """Draws of a channel, and the exact code length of every row."""

    name: str
    z: Tensor
    """(n, D), or tokens (n, T, D)."""
    o: Tensor
    """(n, K) codes."""
    objects: np.ndarray
    """(n,) −log2 p(o | z), bits."""
    features: np.ndarray
    """(n,) −log2 p(f | z), bits."""

    @property
    def binding(self) -> np.ndarray:
        """(n,) −log2 p(o | z, f), bits."""
        return self.objects - self.features


@dataclass(frozen=True)
class Run:
    """One probe on one case. Raises ``ValueError`` for a case that is not one of CASES."""

    case: str
    family: str
    n: int = 15_000
    """Rows: half of them for training, a tenth for validation, the rest for the test."""
    flips: float = 0.1
    """Probability that the channel of the case "flips" turns a bit around."""
    anchored: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.case not in CASES + TOKEN_CASES:
            raise ValueError(f"case = {self.case!r}; choose one of {', '.join((*CASES, *TOKEN_CASES[1:]))}")


def prior() -> Subsets:
    """The law of the codes: all subsets of OBJECTS cells, equally likely."""
    return Subsets(GROUPS, OBJECTS)


def draw(name: str, n: int, seed: int = 0, flips: float = 0.1) -> Case:
    """``n`` independent draws of a case and their exact code lengths, by Bayes' rule over all codes."""
    draws = generator(seed)
    K = math.prod(GROUPS)
    codes = torch.tensor([[i in cells for i in range(K)] for cells in combinations(range(K), OBJECTS)], dtype=torch.uint8)
    own = torch.randint(len(codes), (n,), generator=draws)
    z, likelihood = _channel(name, codes, own, draws, flips)
    posterior = torch.log_softmax(likelihood, 1)
    f = features(codes, GROUPS)
    same = (f[own][:, None] == f).all(-1)
    rows = torch.arange(n)
    of_features = torch.logsumexp(posterior.masked_fill(~same, -math.inf), 1)
    bits = (-x.numpy() / math.log(2) for x in (posterior[rows, own], of_features))
    return Case(name, z, codes[own], *bits)


def _channel(name: str, codes: Tensor, own: Tensor, draws: torch.Generator, flips: float) -> tuple[Tensor, Tensor]:
    """z of every row, and log p(z | code) up to a constant, (n, codes)."""
    o, n, K = codes[own].double(), len(own), codes.shape[1]
    f = features(codes, GROUPS).double()
    grid = codes.view(-1, *GROUPS).double()
    counts = torch.cat([grid.sum(2), grid.sum(1)], 1)
    certain = torch.full((n, len(codes)), -math.inf, dtype=torch.float64)

    def told(by: Tensor) -> Tensor:
        """z is a function of the code: all codes with the same value fit, and no other."""
        return certain.masked_fill((by[own][:, None] == by).all(-1), 0.0)

    if name == "nothing":
        return gaussian((n, 8), draws), torch.zeros_like(certain)
    if name in ("O", "F", "counts"):
        by = {"O": codes.double(), "F": f, "counts": counts}[name]
        return by[own], told(by)
    if name == "flips":
        z = torch.where(torch.rand((n, K), generator=draws, dtype=torch.float64) < flips, 1 - o, o)
        wrong = torch.cdist(z, codes.double(), p=1)
        return z, torch.special.xlogy(wrong, flips) + torch.special.xlogy(K - wrong, 1 - flips)
    if name.startswith("sum"):
        sides, noise = ((4, 6), 0.4) if name.endswith("24") else ((2, 3), 0.25)
        means = codes.double() @ tensor_products(sides, draws)
        z = means[own] + noise * gaussian((n, means.shape[1]), draws)
        return z, -(torch.cdist(z, means, compute_mode="donot_use_mm_for_euclid_dist") ** 2) / (2 * noise**2)
    if name.startswith("parity"):
        keys = [signs((n, K), draws) for _ in range(int(name[-1]) - 1)]
        lock = torch.stack(keys).prod(0) * (2 * o - 1)
        return torch.cat([*keys, lock], 1), told(codes.double())
    places = o.nonzero()[:, 1].view(n, OBJECTS)
    order = torch.argsort(torch.rand((n, OBJECTS), generator=draws), 1)
    cells = torch.cat([torch.eye(GROUPS[0]).repeat_interleave(GROUPS[1], 0), torch.eye(GROUPS[1]).repeat(GROUPS[0], 1)], 1)
    tokens = cells.double()[places.gather(1, order)]
    if name == "tokens":
        return tokens, told(codes.double())
    tokens = tokens + TOKEN_NOISE * gaussian(tokens.shape, draws)
    return tokens, _any_order(tokens, cells.double(), codes)


def tensor_products(sides: tuple[int, int], generator: torch.Generator) -> Tensor:
    """A vector ``u_colour ⊗ v_shape`` for every cell of the grid, from random unit vectors, (K, sides[0] sides[1])."""
    u, v = (gaussian((n, side), generator) for n, side in zip(GROUPS, sides, strict=True))
    u, v = u / u.norm(dim=1, keepdim=True), v / v.norm(dim=1, keepdim=True)
    return torch.einsum("ia,jb->ijab", u, v).reshape(math.prod(GROUPS), -1)


def _any_order(tokens: Tensor, cells: Tensor, codes: Tensor) -> Tensor:
    """log p(tokens | code) up to a constant, (n, codes): the objects of a scene stand in any order, so all orders are added."""
    of_cell = -(torch.cdist(tokens, cells, compute_mode="donot_use_mm_for_euclid_dist") ** 2) / (2 * TOKEN_NOISE**2)
    places = codes.nonzero()[:, 1].view(len(codes), OBJECTS)
    total = torch.full((len(tokens), len(codes)), -math.inf, dtype=torch.float64)
    for order in permutations(range(OBJECTS)):
        one = torch.zeros_like(total)
        for token, k in enumerate(order):
            one += of_cell[:, token, places[:, k]]
        total = torch.logaddexp(total, one)
    return total


def linear_floor(K: int, k: int) -> float:
    """Bits that the best linear conditionals without an anchor lose on the k-subsets of K cells, all equally likely.

    ``Σ_i inf_{a, c} E KL(p_i(s) ‖ sigmoid(a + c s))`` with s the ones before cell i and p_i(s) = (k − s)/(K − i): by symmetry a
    linear conditional can do no better than to count. Two numbers a cell, found by descent on a convex loss; no data.
    """
    total = 0.0
    for i in range(K):
        s = np.arange(max(0, k - (K - i)), min(k, i) + 1)
        weight = np.array([math.comb(i, x) * math.comb(K - i, k - x) / math.comb(K, k) for x in s])
        p = (k - s) / (K - i)
        x = np.stack([np.ones(len(s)), s - s.mean()], 1)
        found = minimize(_cross_entropy, np.zeros(2), args=(x, weight, p), jac=True, method="BFGS")
        total += found.fun + (weight * (xlogy(p, p) + xlogy(1 - p, 1 - p))).sum()
    return total / math.log(2)


def sampled_floor(law: Prior, n: int, seed: int = 0) -> float:
    """The same for any law, by its draws: what linear conditionals lose that a long descent fits to these ``n`` codes, bits.

    Off the true floor by two small errors: below, since the same codes fit and measure (half a nat for every weight, over n),
    and above, where the descent stops.
    """
    codes = law.sample(n, generator(seed))
    o = codes.float()
    w = torch.zeros(law.K + 1, law.K, requires_grad=True)
    mask = torch.cat([strict(law.K, o), torch.ones(1, law.K)])
    x = torch.cat([o - 0.5, torch.ones(n, 1)], 1)
    descent = torch.optim.LBFGS([w], max_iter=100, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        descent.zero_grad()
        nats = binary_cross_entropy_with_logits(x @ (w * mask), o, reduction="none").sum(1).mean()
        nats.backward()
        return nats

    descent.step(loss)
    with torch.no_grad():
        found = (x @ (w * mask)).double()
    return float((code_length(found, codes) - code_length(law.log_odds(codes), codes)).mean())


def _cross_entropy(w: np.ndarray, x: np.ndarray, weight: np.ndarray, p: np.ndarray) -> tuple[float, np.ndarray]:
    odds = x @ w
    return float(weight @ (np.logaddexp(0, odds) - p * odds)), x.T @ (weight * (expit(odds) - p))


def tolerance(exact: float) -> float:
    """Bits that a probe may miss of ``exact`` and still be used for that kind of representation: 0.1 + 5 %."""
    return 0.1 + 0.05 * exact


def parts(n: int) -> Split:
    """Half of the rows for training, a tenth for validation, the rest for the test."""
    return split_rows(n, (5, 1, 4))


def measure(run: Run) -> dict[str, Any]:
    """Exact and estimated bits of one probe on one case, over the same test rows."""
    case, split, law = draw(run.case, run.n, run.seed, run.flips), parts(run.n), prior()
    test, recipe = split[2], Recipe(run.family, seed=run.seed)
    z = case.z if run.family != "attention" or case.z.ndim == 3 else case.z.view(len(case.z), 4, -1)
    o = case.o[test]
    f = features(o, GROUPS)
    exact = {
        "objects": code_length(law.log_odds(o), o) - case.objects[test],
        "features": code_length(law.feature_log_odds(f), f) - case.features[test],
        "binding": code_length(law.log_odds_given_features(o, f), o) - case.binding[test],
    }
    if not run.anchored:
        found = fit(recipe, z, case.o, split=split, groups=GROUPS)
        read = {"objects": law.entropy - found.bits.mean()}
    else:
        got = binding_information(z, case.o, prior=law, probe=recipe, split=split, disjoint=False, controls=False)
        names = ("objects", "features", "binding_difference", "binding_direct")
        read = {name.removeprefix("binding_"): getattr(got, name).value for name in names}
    rounded = {kind: {k: round(float(np.mean(x)), 4) for k, x in of.items()} for kind, of in (("exact", exact), ("read", read))}
    return {**rounded, "n_test": len(test)}


def usable(found: dict[str, Any]) -> bool:
    """Whether a probe came within :func:`tolerance` of the objects of a case."""
    return found["exact"]["objects"] - found["read"]["objects"] <= tolerance(found["exact"]["objects"])


def calibrate(families: Sequence[str], cases: Sequence[str] = CASES, **settings: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """:func:`measure` for every case and family, with ``settings`` of :class:`Run`: {(case, family): exact and read bits}."""
    return {(case, family): measure(Run(case, family, **settings)) for case in cases for family in families}


def configurations() -> list[Run]:
    """All runs of the page: every family on every case it can read, and the channel "flips" at all its noises."""
    flat = [family for family in FAMILIES if family != "attention"]
    found = [Run(case, family) for case in CASES for family in flat] + [Run(case, "attention") for case in TOKEN_CASES]
    found += [Run("nothing", family, anchored=False) for family in flat]
    swept = [(x, a) for x in FLIPS for a in (True, False) if x != 0.1 or not a]
    return found + [Run("flips", f, flips=x, anchored=a) for x, a in swept for f in ("linear", "quadratic", "deep")]


def main(argv: Sequence[str] | None = None) -> None:
    """Make all runs, kept one by one in a folder beside ``--out``, and write them into one file."""
    parser = argparse.ArgumentParser(prog="python -m binding.calibration", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="JSON")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args(argv)
    runs = sweep(configurations(), measure, arguments.out.with_suffix(".runs"), jobs=arguments.jobs)
    store(arguments.out, "python -m binding.calibration --out binding/data/runs/probes-calibration.json", runs)


if __name__ == "__main__":
    main()
