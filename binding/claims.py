"""The claims ledger: every published or derived statement with a number, and what we measured.

The statements live in ``binding/data/claims/*.toml``, one file a chapter. A page calls :func:`claim`; the ledger page is
made from what the executed pages stored, so it cannot say more than what ran.
"""

import html
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from numbers import Real
from typing import Any

KINDS = ("exact", "float64", "statistical", "published only")
MARKS = ("published", "reconstructed", "new")
RELATIONS = ("=", "<=", ">=")
MIME = "application/vnd.binding.claim+json"


class ClaimError(AssertionError):
    """A measured value is outside the tolerance that the ledger states."""


@dataclass(frozen=True)
class Claim:
    """One row of the ledger."""

    id: str
    """``chapter.name``, unique."""
    source: str
    """Where it stands: for example "L Fig. 2a", or "this book"."""
    mark: str
    """One of MARKS: who says so."""
    statement: str
    """The statement in words, with its number."""
    kind: str
    """One of KINDS."""
    chapter: str
    """The page that measures it, without its ending."""
    test: str
    """The test that holds it: ``tests/test_x.py::test_y``."""
    expected: Any = None
    """What our measurement must give; none for "published only"."""
    relation: str = "="
    """How the measured value stands to the expected one."""
    tolerance: float = 0.0
    """Largest allowed distance from ``expected``."""
    tolerance_from: str = ""
    """Where the tolerance comes from."""
    published: str = ""
    """The published value, as printed."""
    command: str = ""
    """For what was not measured here: the command that measures it."""

    def __post_init__(self) -> None:
        for field, value, allowed in (
            ("kind", self.kind, KINDS),
            ("mark", self.mark, MARKS),
            ("relation", self.relation, RELATIONS),
        ):
            if value not in allowed:
                raise ValueError(f"claim {self.id}: {field} is {value!r}, expected one of {allowed}")
        if self.kind == "published only":
            if not self.command:
                raise ValueError(f"claim {self.id}: a claim that is not measured names the command that would measure it")
        elif self.expected is None:
            raise ValueError(f"claim {self.id}: a measured claim states its expected value")
        if self.kind == "exact" and self.tolerance:
            raise ValueError(f"claim {self.id}: an exact claim has tolerance 0, got {self.tolerance}")
        if self.tolerance and not self.tolerance_from:
            raise ValueError(f"claim {self.id}: tolerance {self.tolerance} without the reason for it")


@dataclass(frozen=True)
class Verdict:
    """A claim that held, with the measured value; shown on the page as one line."""

    claim: Claim
    measured: str

    def __str__(self) -> str:
        claim = self.claim
        published = f"; published {claim.published}" if claim.published else ""
        return f"✓ {claim.id} ({claim.mark}, {claim.kind}): {claim.statement} Measured {self.measured}{published}."

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        row = f'<p class="binding-claim" data-claim="{self.claim.id}">{html.escape(str(self))}</p>'
        return {"text/plain": str(self), "text/html": row, MIME: {"id": self.claim.id, "measured": self.measured}}


@cache
def ledger() -> dict[str, Claim]:
    """All claims by id, in the order of their files and of their rows.

    Raises ``ValueError`` for a row that is incomplete, of an unknown kind, or has an id twice.
    """
    claims: dict[str, Claim] = {}
    for file in sorted(resources.files("binding").joinpath("data/claims").iterdir(), key=lambda f: f.name):
        for row in tomllib.loads(file.read_text(encoding="utf-8")).get("claim", []):
            entry = Claim(**row)
            if entry.id in claims:
                raise ValueError(f"claim {entry.id} stands twice in the ledger")
            claims[entry.id] = entry
    return claims


def verify(entry: Claim, measured: Any) -> Verdict:
    """Hold a measured value against a claim.

    ``=``: |measured − expected| ≤ tolerance; ``<=``: measured ≤ expected + tolerance; ``>=``: measured ≥ expected − tolerance,
    entry by entry where both are sequences. Raises :class:`ClaimError` where that fails (a NaN always fails).
    """
    if entry.kind == "published only":
        raise ValueError(f"claim {entry.id} is not measured here; run: {entry.command}")
    got, want = _flat(measured), _flat(entry.expected)
    if len(want) == 1:
        want = want * len(got)
    if not got or len(got) != len(want) or not all(_holds(g, w, entry) for g, w in zip(got, want, strict=True)):
        raise ClaimError(
            f"claim {entry.id}: measured {_text(measured)}, expected {entry.relation} {_text(entry.expected)}"
            f" within {entry.tolerance:g} ({entry.tolerance_from or 'exact'})"
        )
    return Verdict(entry, _text(measured))


def claim(id: str, measured: Any) -> None:
    """Check a measured value against the ledger and show the verdict as one line of the page.

    Raises ``ValueError`` for an unknown id and :class:`ClaimError` for a value out of tolerance.
    """
    from IPython.display import display

    if id not in ledger():
        raise ValueError(f"no claim {id!r} in the ledger; known: {', '.join(ledger())}")
    display(verify(ledger()[id], measured))


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [x for item in value for x in _flat(item)]
    return [value]


def _holds(got: Any, want: Any, entry: Claim) -> bool:
    if isinstance(want, str) and isinstance(got, Real):
        want = Fraction(want)
    exact = entry.relation == "=" and entry.tolerance == 0
    if exact or isinstance(got, str) or isinstance(want, str):
        return bool(got == want)
    if math.isnan(got):
        return False
    if entry.relation == "=":
        return abs(got - want) <= entry.tolerance
    return got <= want + entry.tolerance if entry.relation == "<=" else got >= want - entry.tolerance


def _text(value: Any) -> str:
    items = [x if isinstance(x, (str, int, Fraction)) else f"{x:.4g}" for x in _flat(value)]
    return ", ".join(str(x) for x in items)
