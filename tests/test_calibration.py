"""Calibration: exact code lengths against counting and sampling, and the quick version of what the page shows."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit

from binding import calibration
from binding.calibration import (
    CASES,
    TOKEN_CASES,
    Run,
    calibrate,
    draw,
    linear_floor,
    measure,
    parts,
    prior,
    sampled_floor,
    usable,
)
from binding.information import features
from binding.pages import stored_run
from binding.probes import CHANCE_BITS, code_length
from binding.runs import load

CODES = 126


@pytest.mark.parametrize("case", CASES + TOKEN_CASES[1:])
def test_exact_code_lengths_lie_between_nothing_and_the_prior(case: str) -> None:
    """Every code length is at least 0, and on average at most that of the prior."""
    found = draw(case, 3000)
    law = prior()
    for bits, whole in ((found.objects, law.entropy), (found.features, law.entropy_features), (found.binding, math.inf)):
        assert (bits >= -1e-9).all() and bits.mean() <= whole + 0.15
    assert found.z.shape[0] == 3000 and found.o.sum(1).eq(calibration.OBJECTS).all()


@pytest.mark.parametrize(
    ("case", "objects", "features"),
    [
        ("nothing", math.log2(CODES), 2.967354),
        ("O", 0.0, 0.0),
        ("F", 4.009926, 0.0),
        ("parity of 2", 0.0, 0.0),
        ("parity of 3", 0.0, 0.0),
        ("tokens", 0.0, 0.0),
    ],
)
def test_exact_bits_where_they_are_known_by_counting(case: str, objects: float, features: float) -> None:
    found = draw(case, 4000)
    # log2 of the size of a class of codes is at most 7, so a mean over 4,000 rows is off by 0.4 with probability below 1e-9.
    assert abs(found.objects.mean() - objects) <= 0.4 * (0 < objects < 6.9) + 1e-9
    assert abs(found.features.mean() - features) <= 0.4 * (features > 0) + 1e-9


def test_flips_against_a_sum_over_all_outcomes() -> None:
    """The code length of every row, by Bayes' rule written out for one row at a time."""
    found = draw("flips", 40, seed=3)
    codes = torch.unique(draw("O", 4000).o, dim=0)
    assert len(codes) == CODES
    for z, o, bits in zip(found.z, found.o, found.objects, strict=True):
        likelihood = [math.prod(0.1 if a != b else 0.9 for a, b in zip(z.tolist(), code, strict=True)) for code in codes.tolist()]
        own = likelihood[codes.tolist().index(o.tolist())]
        assert bits == pytest.approx(-math.log2(own / sum(likelihood)), abs=1e-9)


def test_tokens_in_any_order_have_the_same_posterior() -> None:
    """The likelihood of noisy tokens does not change when the tokens of a scene are dealt out anew."""
    o = torch.unique(draw("O", 4000).o, dim=0)
    cells = torch.eye(9, dtype=torch.float64)
    tokens = torch.randn((5, 4, 9), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    before = calibration._any_order(tokens, cells, o)
    assert (before - calibration._any_order(tokens[:, [2, 0, 3, 1]], cells, o)).abs().max() <= 1e-9


@pytest.mark.parametrize(("K", "k"), [(5, 2), (6, 3), (9, 4)])
def test_the_floor_of_linear_conditionals_is_what_a_regression_on_all_codes_finds(K: int, k: int) -> None:
    """Weights of their own for every bit before k, fitted to all codes, do no better than counting."""
    from itertools import combinations

    codes = np.array([[i in c for i in range(K)] for c in combinations(range(K), k)], dtype=float)
    nats = 0.0
    for i in range(K):
        x, y = np.concatenate([np.ones((len(codes), 1)), codes[:, :i]], 1), codes[:, i]

        def loss(w: np.ndarray, x: np.ndarray = x, y: np.ndarray = y) -> tuple[float, np.ndarray]:
            odds = x @ w
            return float(np.mean(np.logaddexp(0, odds) - y * odds)), x.T @ (expit(odds) - y) / len(x)

        nats += minimize(loss, np.zeros(i + 1), jac=True, method="BFGS", options={"gtol": 1e-7}).fun
    # Both stop where a forced bit costs less than 1e-5; the rest is rounding.
    assert linear_floor(K, k) == pytest.approx(nats / math.log(2) - math.log2(len(codes)), abs=2e-4)


def test_the_floor_on_draws_is_that_by_counting() -> None:
    """45 weights fitted to n draws hide 45/2n nats, 0.004 bits; luck moves the rest by less than that."""
    assert sampled_floor(prior(), 8_000) == pytest.approx(linear_floor(9, 4), abs=0.01)


def test_the_quick_calibration() -> None:
    """Each family reads what it can represent, misses what it cannot, and none reads more than there is."""
    found = calibrate(("linear", "quadratic"), ("nothing", "O", "F", "flips", "parity of 2"), n=5000)
    for run in found.values():
        for kind, whole in (("objects", "objects"), ("features", "features"), ("direct", "binding")):
            assert run["read"][kind] <= run["exact"][whole] + CHANCE_BITS / run["n_test"] + 1e-3
    for family, cases in (
        ("linear", ("nothing", "O", "flips")),
        ("quadratic", ("nothing", "O", "F", "flips", "parity of 2")),
    ):
        assert all(usable(found[case, family]) for case in cases)
    assert abs(found["parity of 2", "linear"]["read"]["objects"]) <= 0.1


def test_exact_and_read_bits_are_of_the_same_rows() -> None:
    """With few test rows the mean of −log2 p(f) is far from H(F), and the exact bits follow the rows."""
    found = measure(Run("O", "deep", n=600))
    o = draw("O", 600).o[parts(600)[2]]
    f = features(o, calibration.GROUPS)
    drawn = code_length(prior().feature_log_odds(f), f).mean()
    assert abs(drawn - prior().entropy_features) > 0.02
    assert found["exact"]["features"] == pytest.approx(drawn, abs=1e-4)
    assert found["exact"]["binding"] == pytest.approx(math.log2(CODES) - drawn, abs=1e-4)
    for kind, whole in (("objects", "objects"), ("features", "features"), ("direct", "binding")):
        assert found["read"][kind] <= found["exact"][whole] + 1e-4


def test_attention_reads_tokens() -> None:
    found = calibrate(("attention",), ("nothing", "tokens"), n=4000)
    assert all(map(usable, found.values()))


def test_a_usable_probe_misses_at_most_a_tenth_and_a_twentieth() -> None:
    for missed, good in ((0.39, True), (0.41, False)):
        assert usable({"exact": {"objects": 6.0}, "read": {"objects": 6.0 - missed}}) is good
    assert not usable({"exact": {"objects": 0.0}, "read": {"objects": -0.11}})


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(ValueError, match="case = 'noise'"):
        Run("noise", "linear")


def test_the_stored_run_is_complete_and_keeps_the_bounds() -> None:
    """No anchored probe of the stored run reads more than there is; the difference does, in places."""
    runs = load(stored_run("probes-calibration.json"), calibration.configurations())
    overshoots = 0
    for run in runs:
        exact, read, n = run["result"]["exact"], run["result"]["read"], run["result"]["n_test"]
        assert read["objects"] <= exact["objects"] + CHANCE_BITS / n + 1e-4
        if run["config"]["anchored"]:
            assert read["features"] <= exact["features"] + CHANCE_BITS / n + 1e-4
            assert read["direct"] <= exact["binding"] + CHANCE_BITS / n + 1e-4
            overshoots += read["difference"] > exact["binding"] + 2 * CHANCE_BITS / n
    assert overshoots >= 2
    stored = json.loads(stored_run("probes-calibration.json").read_text())
    assert len(stored["runs"]) == len(runs)


def test_one_stored_run_again() -> None:
    """The cheapest rows of the stored run, made here: training on another CPU rounds differently, by far less than this band."""
    configs = [Run("O", "linear"), Run("flips", "quadratic")]
    for config, stored in zip(configs, load(stored_run("probes-calibration.json"), configs), strict=True):
        assert stored["config"] == asdict(config)
        again = measure(config)
        for kind in ("objects", "features", "direct"):
            assert again["read"][kind] == pytest.approx(stored["result"]["read"][kind], abs=0.1)
        assert again["exact"] == pytest.approx(stored["result"]["exact"], abs=1e-3)
    assert len(parts(100)[2]) == 40
