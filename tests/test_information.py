"""Exact priors over scene codes, held against a list of all codes that is made and counted without them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from math import comb, log, log2, prod, sqrt

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from binding.information import Balanced, Enumerated, Subsets, UpTo, coverings, features
from binding.numerics import generator

EPS = float(np.finfo(float).eps)
Law = dict[tuple[int, ...], Fraction]


def shown_by(code: tuple[int, ...], groups: tuple[int, ...]) -> tuple[int, ...]:
    """The features of a code, object by object."""
    f = [[0] * n for n in groups]
    for on, values in zip(code, product(*(range(n) for n in groups)), strict=True):
        for group, value in zip(f, values, strict=True):
            group[value] |= on
    return tuple(bit for group in f for bit in group)


def law_of(groups: tuple[int, ...], keep: Callable[[tuple[int, ...]], bool]) -> Law:
    """All codes that are kept, equally likely."""
    codes = [code for code in product((0, 1), repeat=prod(groups)) if keep(code)]
    return {code: Fraction(1, len(codes)) for code in codes}


def occupied(code: tuple[int, ...], groups: tuple[int, ...]) -> tuple[int, ...]:
    bits, ends = shown_by(code, groups), np.cumsum((0, *groups))
    return tuple(sum(bits[a:b]) for a, b in pairwise(ends))


@st.composite
def priors(draw: st.DrawFn) -> tuple[object, Law, tuple[int, ...]]:
    """A prior, the law that it should be, and its groups."""
    kind = draw(st.sampled_from(["subsets", "upto", "balanced", "enumerated"]))
    pairs = [(1, 3), (2, 2), (2, 3), (3, 2), (2, 4), (3, 3)]
    groups = draw(st.sampled_from(pairs if kind == "balanced" else [*pairs, (2, 2, 2), (5,)]))
    K = prod(groups)
    if kind == "enumerated":
        codes = draw(st.lists(st.tuples(*[st.integers(0, 1)] * K), min_size=1, max_size=9))
        weights = draw(st.lists(st.integers(1, 9), min_size=len(codes), max_size=len(codes)))
        law: Law = {}
        for code, weight in zip(codes, weights, strict=True):
            law[code] = law.get(code, Fraction(0)) + Fraction(weight, sum(weights))
        return Enumerated(torch.tensor(codes), groups, np.array(weights) / sum(weights)), law, groups
    k = draw(st.integers(0, K))
    if kind == "subsets":
        return Subsets(groups, k), law_of(groups, lambda code: sum(code) == k), groups
    if kind == "upto":
        return UpTo(groups, k), law_of(groups, lambda code: sum(code) <= k), groups
    shown = (draw(st.integers(1, groups[0])), draw(st.integers(1, groups[1])))
    assume(coverings(shown, k) > 0)
    return Balanced(groups, shown, k), law_of(groups, lambda c: sum(c) == k and occupied(c, groups) == shown), groups


def conditional(law: Law, row: tuple[int, ...], k: int) -> tuple[Fraction, Fraction]:
    """The mass of all rows that begin as this one does and go on with 1, and with 0."""
    return tuple(sum((p for code, p in law.items() if code[: k + 1] == (*row[:k], bit)), Fraction(0)) for bit in (1, 0))


def check_agreement(odds: torch.Tensor, law: Law, rows: list[tuple[int, ...]], after: int = 0) -> None:
    """Every log odds is that of the law; rows may have a beginning of ``after`` bits that is given and not coded."""
    assert odds.dtype == torch.float64
    for row, values in zip(rows, odds.tolist(), strict=True):
        for k, value in enumerate(values):
            one, zero = conditional(law, row, after + k)
            if not one or not zero:
                assert value == (float("inf") if one else float("-inf"))
                continue
            # Two sums of at most 2^9 positive terms and two logarithms, each of size below 50.
            assert abs(value - (log(one) - log(zero))) <= (2 * 512 + 200) * EPS


@settings(deadline=None, max_examples=60)
@given(priors())
def test_every_log_odds_is_that_of_the_list_of_all_codes(case) -> None:
    prior, law, groups = case
    codes = sorted(law)
    joint = {(*shown_by(code, groups), *code): p for code, p in law.items()}
    o = torch.tensor(codes, dtype=torch.uint8)
    f = features(o, groups)
    check_agreement(prior.log_odds(o), law, codes)
    check_agreement(prior.feature_log_odds(f), joint, [shown_by(code, groups) for code in codes])
    if len(groups) == 2 or isinstance(prior, Enumerated):
        check_agreement(
            prior.log_odds_given_features(o, f), joint, [(*shown_by(code, groups), *code) for code in codes], sum(groups)
        )


def bits(o: torch.Tensor, odds: torch.Tensor) -> torch.Tensor:
    """−log₂ of the probability that these odds give the bits."""
    return torch.where(o == 1, torch.log1p(torch.exp(-odds)), torch.log1p(torch.exp(odds))).sum(dim=-1) / log(2)


@settings(deadline=None, max_examples=60)
@given(priors())
def test_the_product_of_the_conditionals_is_the_probability_of_the_code(case) -> None:
    prior, law, groups = case
    o = torch.tensor(sorted(law))
    want = torch.tensor([-log2(law[tuple(row)]) for row in o.tolist()], dtype=torch.float64)
    given_f = torch.zeros(len(o), dtype=torch.float64)
    if len(groups) == 2 or isinstance(prior, Enumerated):
        given_f = bits(o, prior.log_odds_given_features(o, features(o, groups)))
        own = bits(features(o, groups), prior.feature_log_odds(features(o, groups)))
        # At most 15 terms, each within 1300 ε of its own (see above).
        assert float((own + given_f - want).abs().max()) <= 30 * 1300 * EPS
    assert float((bits(o, prior.log_odds(o)) - want).abs().max()) <= 15 * 1300 * EPS


@settings(deadline=None, max_examples=60)
@given(priors())
def test_entropies_are_those_of_the_list_of_all_codes(case) -> None:
    prior, law, groups = case
    of_features: dict[tuple[int, ...], Fraction] = {}
    for code, p in law.items():
        of_features[shown_by(code, groups)] = of_features.get(shown_by(code, groups), Fraction(0)) + p
    H, H_F = (-sum(float(p) * log2(p) for p in table.values()) for table in (law, of_features))
    # Sums of at most 512 terms below 10 bits.
    assert abs(prior.entropy - H) <= 5120 * EPS
    assert abs(prior.entropy_features - H_F) <= 5120 * EPS
    assert abs(prior.entropy_given_features - (H - H_F)) <= 10240 * EPS


@settings(deadline=None)
@given(st.sampled_from([(2, 3), (3, 3), (2, 2, 2), (4,)]), st.data())
def test_features_are_read_object_by_object(groups: tuple[int, ...], data: st.DataObject) -> None:
    code = data.draw(st.tuples(*[st.integers(0, 1)] * prod(groups)))
    got = features(torch.tensor([[code, code]], dtype=torch.bool), groups)
    assert got.dtype == torch.bool and got.shape == (1, 2, sum(groups))
    assert tuple(got[0, 1].int().tolist()) == shown_by(code, groups)


@pytest.mark.parametrize("sides", [(2, 2), (2, 3), (3, 3), (2, 2, 2), (1, 4)])
def test_coverings_count_what_a_list_counts(sides: tuple[int, ...]) -> None:
    full = (1,) * sum(sides)
    for k in range(prod(sides) + 1):
        brute = sum(sum(c) == k and shown_by(c, sides) == full for c in product((0, 1), repeat=prod(sides)))
        assert coverings(sides, k) == brute
        inner = product(*(range(a + 1) for a in sides))
        assert sum(prod(map(comb, sides, a)) * coverings(a, k) for a in inner) == comb(prod(sides), k)


def test_the_published_entropies() -> None:
    """F's constants: its test split has 131 of 784 feature codes, each with N_18(6, 6) object codes."""
    assert coverings((6, 6), 18) == 8_058_525_440
    prior = Balanced((8, 8), (6, 6), 18)
    assert prior.total == 784 * 8_058_525_440 == 6_317_883_944_960
    # Printed to four digits.
    assert abs(log2(131) + log2(8_058_525_440) - 39.9413) <= 5e-5 and abs(log2(131) - 7.0334) <= 5e-5
    assert abs(log2(522) + log2(8_058_525_440) - 41.9358) <= 5e-5
    assert abs(prior.entropy - 42.5226) <= 5e-5 and abs(prior.entropy_features - 9.6147) <= 5e-5
    for other, want in ((UpTo((7, 7), 16), (42.447, 4.569, 37.878)), (UpTo((4, 3), 12), (12, 3.111, 8.889))):
        got = other.entropy, other.entropy_features, other.entropy_given_features
        assert all(abs(a - b) <= 5e-4 for a, b in zip(got, want, strict=True))
    grown = [UpTo((n, n), min(16, n * n)).entropy_given_features for n in range(2, 8)]
    for got_bits, bits_to_know in zip(grown, (1.228, 5.872, 13.345, 22.843, 31.640, 37.878), strict=True):
        assert abs(got_bits - bits_to_know) <= 5e-4


def test_the_published_table_allows_the_test_part_and_no_other_set_of_features() -> None:
    """F prints losses L, binding bits B*, β_O = 1 − L / H(O) and β* = B* / H(O | F): half a unit of the last digit each way."""
    loss, binding = (34.2, 22.0, 20.6, 3.1), (0.3, 12.5, 13.9, 31.0)
    beta, beta_star = (0.143, 0.449, 0.485, 0.922), (0.008, 0.379, 0.424, 0.941)
    low = max((bits - 0.05) / (1 - share + 5e-4) for bits, share in zip(loss, beta, strict=True))
    high = min((bits + 0.05) / (1 - share - 5e-4) for bits, share in zip(loss, beta, strict=True))
    low_given = max((bits - 0.05) / (share + 5e-4) for bits, share in zip(binding, beta_star, strict=True))
    high_given = min((bits + 0.05) / (share - 5e-4) for bits, share in zip(binding, beta_star, strict=True))
    given = log2(coverings((6, 6), 18))
    assert low_given <= given <= high_given < log2(comb(36, 18))
    assert low <= log2(131) + given <= high < log2(522) + given


@pytest.mark.parametrize("prior", [Subsets((2, 3), 3), UpTo((2, 3), 3), Balanced((2, 3), (2, 2), 3)])
def test_no_rows_have_no_odds(prior) -> None:
    o, f = torch.zeros(0, 6, dtype=torch.uint8), torch.zeros(0, 5, dtype=torch.uint8)
    assert features(o, (2, 3)).shape == (0, 5) == prior.feature_log_odds(f).shape
    assert prior.log_odds(o).shape == (0, 6) == prior.log_odds_given_features(o, f).shape == prior.sample(0, generator(0)).shape


def test_the_published_prior_at_full_size_gives_every_code_the_same_length() -> None:
    prior = Balanced((8, 8), (6, 6), 18)
    o = prior.sample(300, generator(1))
    f = features(o, (8, 8))
    assert o.dtype == torch.uint8 and set(o.sum(dim=1).tolist()) == {18} and set(f.sum(dim=1).tolist()) == {12}
    # 64 (16) terms; counts below 2^53 are exact, so each is within a few roundings of numbers below 50.
    for length, want in (
        (bits(o, prior.log_odds(o)), prior.entropy),
        (bits(f, prior.feature_log_odds(f)), prior.entropy_features),
        (bits(o, prior.log_odds_given_features(o, f)), prior.entropy_given_features),
    ):
        assert float((length - want).abs().max()) <= 64 * 200 * EPS


@pytest.mark.parametrize("prior", [Subsets((2, 3), 3), UpTo((2, 2), 3), Balanced((3, 3), (2, 2), 2), Balanced((2, 3), (2, 3), 4)])
def test_samples_have_the_law(prior) -> None:
    drawn = prior.sample(20_000, generator(6)).tolist()
    found = {tuple(code): 0 for code in drawn}
    for code in drawn:
        found[tuple(code)] += 1
    # Hoeffding for each of the codes, together below 1e-9; a code that never came up is off by its whole probability.
    assert len(found) == prior.total
    bound = sqrt(log(2 * prior.total / 1e-9) / 40_000)
    assert all(abs(count / 20_000 - 1 / prior.total) <= bound for count in found.values())


def test_samples_of_a_list_have_its_law() -> None:
    prior = Enumerated(torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]]), (2, 2), [0.7, 0.2, 0.1])
    drawn = prior.sample(20_000, generator(6))
    for code, p in zip(prior.codes, prior.probabilities, strict=True):
        # Hoeffding, three codes.
        assert abs(float((drawn == code).all(dim=1).double().mean()) - p) <= sqrt(log(6 / 1e-9) / 40_000)


def test_the_same_seed_gives_the_same_codes() -> None:
    for prior in (Subsets((3, 3), 4), UpTo((3, 3), 4), Balanced((3, 3), (3, 2), 4), Enumerated(torch.eye(4).int(), (2, 2))):
        assert torch.equal(prior.sample(50, generator(3)), prior.sample(50, generator(3)))
        assert not torch.equal(prior.sample(50, generator(3)), prior.sample(50, generator(4)))


def test_a_list_adds_up_equal_codes_and_drops_impossible_ones() -> None:
    prior = Enumerated(torch.tensor([[0, 1], [1, 0], [0, 1], [1, 1]]), (1, 2), [0.25, 0.5, 0.25, 0.0])
    assert prior.codes.tolist() == [[0, 1], [1, 0]] and prior.probabilities.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="11, which has no probability"):
        prior.log_odds(torch.tensor([[1, 1]]))


O = torch.tensor([[1, 0, 0, 1]])  # noqa: E741
F = torch.ones(1, 4, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: features(O, ()), r"groups = \(\)"),
        (lambda: features(O, (2, 0)), r"groups = \(2, 0\)"),
        (lambda: features(O, (2, 3)), r"o has shape \(1, 4\); groups \(2, 3\) have 6"),
        (lambda: features(O * 2, (2, 2)), r"o has the entry 2 at \[0, 0\]"),
        (lambda: features(O * float("nan"), (2, 2)), "o has the entry nan"),
        (lambda: coverings((2, -1), 2), "must not be negative"),
        (lambda: Subsets((2, 2), 5), "5 objects do not fit the 4 cells"),
        (lambda: UpTo((2, 2), -1), "-1 objects do not fit"),
        (lambda: Balanced((2, 2, 2), (2, 2, 2), 4), "two groups"),
        (lambda: Balanced((3, 3), (3, 3), 2), "give 0 codes"),
        (lambda: Subsets((40, 30), 600), "need 1 to 2"),
        (lambda: Subsets((2, 2), 3).log_odds(O), "o has 2 objects in row 0"),
        (lambda: Balanced((3, 3), (2, 2), 3).log_odds(torch.tensor([[1, 1, 1, 0, 0, 0, 0, 0, 0]])), r"row 0 shows \(1, 3\)"),
        (lambda: Subsets((2, 2), 2).log_odds(O[0]), r"o has shape \(4,\), expected \(n, 4\)"),
        (lambda: Subsets((2, 2), 1).feature_log_odds(F), r"row 0 shows \(2, 2\)"),
        (lambda: Subsets((2, 2), 2).log_odds_given_features(O, F * 0), "is not the features of o in row 0"),
        (lambda: Subsets((2, 2), 2).log_odds_given_features(O, F[:, :3]), r"f, of shape \(1, 3\)"),
        (lambda: Subsets((2, 2, 2), 1).log_odds_given_features(torch.eye(8), torch.eye(8)[:, :6]), "two groups"),
        (lambda: Enumerated(O, (2, 2), [0.5]), "sum 0.5"),
        (lambda: Enumerated(O, (2, 2), [0.5, 0.5]), r"shape \(2,\)"),
        (lambda: Enumerated(torch.cat([O, O]), (2, 2), [1.5, -0.5]), "none negative"),
        (lambda: Enumerated(O[:0], (2, 2)), "sum 0"),
        (lambda: Enumerated(O, (2, 2)).log_odds_given_features(O, F * 0), "is not the features of o"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()
