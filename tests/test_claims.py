"""The ledger refuses what is out of tolerance, and every row of it is complete and measured."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding.claims import MIME, Claim, ClaimError, Verdict, claim, ledger, verify

ROOT = Path(__file__).resolve().parent.parent

FLOAT = Claim(
    id="demo.x",
    source="this book",
    mark="new",
    statement="x is one.",
    kind="float64",
    chapter="demo",
    test="tests/test_claims.py::test_float",
    expected=1.0,
    tolerance=1e-9,
    tolerance_from="rounding of ten sums",
)


@given(st.floats(-3e-9, 3e-9))
def test_equality_holds_within_the_tolerance_and_only_there(error):
    value = 1.0 + error
    if abs(value - 1.0) <= 1e-9:
        assert isinstance(verify(FLOAT, value), Verdict)
    else:
        with pytest.raises(ClaimError, match=re.escape("demo.x")):
            verify(FLOAT, value)


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_bounds(measured, bound):
    below = replace(FLOAT, expected=bound, relation="<=", tolerance=0.0, tolerance_from="")
    above = replace(below, relation=">=")
    for entry, holds in ((below, measured <= bound), (above, measured >= bound)):
        if holds:
            verify(entry, measured)
        else:
            with pytest.raises(ClaimError):
                verify(entry, measured)


@pytest.mark.parametrize("relation", ["=", "<=", ">="])
def test_nan_never_holds(relation):
    with pytest.raises(ClaimError):
        verify(replace(FLOAT, relation=relation), math.nan)


def test_exact_claims_compare_fractions_and_integers():
    entry = replace(FLOAT, kind="exact", tolerance=0.0, tolerance_from="", expected=["2/3", 5])
    assert verify(entry, [Fraction(4, 6), 5]).measured == "2/3, 5"
    for wrong in ([Fraction(2, 3) + Fraction(1, 10**30), 5], [Fraction(2, 3)], [0.6666666666666666, 5], []):
        with pytest.raises(ClaimError):
            verify(entry, wrong)


def test_sequences_compare_entry_by_entry():
    entry = replace(FLOAT, expected=[1.0, 2.0])
    verify(entry, np.array([1.0, 2.0]))
    with pytest.raises(ClaimError):
        verify(entry, [2.0, 1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "sure"}, "kind is 'sure'"),
        ({"mark": "old"}, "mark is 'old'"),
        ({"relation": "<"}, "relation is '<'"),
        ({"kind": "published only", "command": ""}, "names the command"),
        ({"expected": None}, "states its expected value"),
        ({"kind": "exact"}, "tolerance 0, got 1e-09"),
        ({"tolerance_from": ""}, "without the reason"),
    ],
)
def test_incomplete_rows_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(FLOAT, **change)


def test_what_was_not_measured_cannot_be_claimed():
    entry = replace(FLOAT, kind="published only", command="binding audit --zoo")
    with pytest.raises(ValueError, match="run: binding audit --zoo"):
        verify(entry, 1.0)


def test_unknown_id_is_named():
    with pytest.raises(ValueError, match="no claim 'nowhere'"):
        claim("nowhere", 1)


def test_verdict_says_who_says_so_and_carries_the_number():
    verdict = verify(replace(FLOAT, published="1 (abstract)"), 1.0)
    assert str(verdict) == "✓ demo.x (new, float64): x is one. Measured 1; published 1 (abstract)."
    assert verdict._repr_mimebundle_()[MIME] == {"id": "demo.x", "measured": "1"}


def test_every_claim_names_a_test_that_exists_and_a_page_that_measures_it():
    assert ledger()
    for entry in ledger().values():
        file, name = entry.test.split("::")
        assert re.search(rf"^def {re.escape(name)}\(", (ROOT / file).read_text(encoding="utf-8"), re.M), entry.id
        page = ROOT / "book" / f"{entry.chapter}.md"
        assert page.exists(), entry.id
        if entry.kind != "published only":
            assert f'"{entry.id}"' in page.read_text(encoding="utf-8"), f"{entry.chapter}.md does not measure {entry.id}"


def test_every_measured_claim_stands_in_an_executed_twin():
    done = subprocess.run([sys.executable, "tools/generated.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (ROOT / "book" / "_generated" / "ledger.md").read_text(encoding="utf-8")
    for claim_id in ledger():
        assert f'id="claim-{claim_id.replace(".", "-")}"' in text
