"""The text-only audit of an encoder: how far captions move under a swap, under a reordering, and how much of the cap that uses.

It needs captions alone, no image. Everything is measured per quartet and then averaged, with bootstrap intervals over quartets.
An encoder is any function that keeps the contract of ``embeddings``.
"""

import json
import re
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from binding.embeddings import Encoder, check_embeddings
from binding.files import write_text
from binding.frontier import cap, cap_published, cross_distances, deviation, tightest_anchor
from binding.numerics import unit
from binding.runs import backend, provenance
from binding.scenes import Quartet, families, quartets
from binding.score import ceiling

SCHEMA = 1
QUARTETS, DRAWS, LEVEL = 240, 2000, 0.95
LABELS = {"d": "d", "w": "w", "d_sym": "d_sym", "d < w": "shorter", "nearest": "nearest"}
ANCHOR_LABELS = {"δ": "delta", "cap, published": "cap_published", "cap, exact": "cap", "usage": "usage"}
"""Rows of the printed report, and the measures in them."""
MADE = ("centroid", "tightest")
"""Anchors that are made from the four captions of a quartet, beside those that are written."""


class Estimate(NamedTuple):
    """A mean over quartets, and the ends of its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class FamilyAudit:
    """What was measured on the quartets of one family."""

    measures: dict[str, Estimate]
    """The entries of :func:`quartet_measures`."""
    anchors: dict[str, dict[str, Estimate]]
    """The entries of :func:`anchor_measures` for each anchor: the written ones, then ``centroid`` and ``tightest``."""

    def best_wording(self) -> str:
        """The written anchor with the smallest mean cap, which gives the largest share of it to the same captions."""
        return min((name for name in self.anchors if name not in MADE), key=lambda name: self.anchors[name]["cap"].mean)


@dataclass(frozen=True)
class Audit:
    """The report on one encoder. ``json.dumps(audit.to_json())`` keeps it, :func:`read` brings it back."""

    model: str
    dimension: int
    quartets: int
    """Quartets a family."""
    seed: int
    draws: int
    """Of the bootstrap."""
    level: float
    """Of the intervals."""
    families: dict[str, FamilyAudit]
    provenance: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, numbers to six digits after the point."""
        return {"schema": SCHEMA, **_rounded(asdict(self))}


def quartet_measures(t: np.ndarray) -> dict[str, np.ndarray]:
    """What a quartet says without an anchor, from c(s), its reorder c′(s), c(σs), its reorder c′(σs): (n, 4, N) to (n) each.

    ``d`` = ‖t(c(s)) − t(c(σs))‖, the ceiling (L, Corollary G.4). ``w`` = ‖t(c(s)) − t(c′(s))‖, the order control.
    ``d_sym`` = ½ ‖t(c(s)) + t(c′(s)) − t(c(σs)) − t(c′(σs))‖, the order averaged away. ``d_cross``: the root mean square of the
    four distances between a caption of s and one of σs. ``nearest``: 1 where c′(s) is the nearest of the three others to c(s),
    1/m in a tie of m; a third by guessing. ``shorter``: 1 where d < w, ½ where they are equal.

    Raises ``ValueError`` for another shape or rows that are not of length one.
    """
    if t.ndim != 3 or t.shape[1] != 4:
        raise ValueError(f"t has shape {t.shape}, expected (n, 4, N): the four captions of n quartets")
    c, reorder, swap, swap_reorder = np.moveaxis(t, 1, 0)
    d, w, other = ceiling(c, swap), ceiling(c, reorder), ceiling(c, swap_reorder)
    nearest = np.minimum(w, np.minimum(d, other))
    ties = (w == nearest) * 1.0 + (d == nearest) + (other == nearest)
    return {
        "d": d,
        "w": w,
        "d_sym": ceiling(c + reorder, swap + swap_reorder) / 2,
        "d_cross": np.sqrt((cross_distances(t[:, :2], t[:, 2:]) ** 2).mean(axis=(1, 2))),
        "nearest": (w == nearest) / ties,
        "shorter": (d < w) + (d == w) / 2,
    }


def anchor_measures(t: np.ndarray, anchor: np.ndarray) -> dict[str, np.ndarray]:
    """What a quartet says against its anchor t̄, (n, 4, N), (n, N) to (n) each.

    ``delta``: the largest deviation 1 − ⟨t, t̄⟩ of the four captions, ``delta_mean`` their mean. ``cap`` = 2√(δ(2 − δ)) and
    ``cap_published`` = 2√(2δ) at the largest δ bound every cross distance; ``usage`` = d / cap and ``usage_published`` likewise.
    ``cap_of_mean`` is the exact cap at the mean δ; it bounds the root mean square of the four cross distances and no single
    one, so ``usage_of_mean`` = d_cross / cap_of_mean. All three usages are at most 1, and 0 where d is.

    Raises ``ValueError`` for rows that are not of length one, or shapes that do not match.
    """
    deltas = deviation(t, np.broadcast_to(anchor[:, None], t.shape))
    delta, mean = deltas.max(axis=1), deltas.mean(axis=1)
    own = quartet_measures(t)
    return {
        "delta": delta,
        "delta_mean": mean,
        "cap": cap(delta),
        "cap_published": cap_published(delta),
        "cap_of_mean": cap(mean),
        "usage": _share(own["d"], cap(delta)),
        "usage_published": _share(own["d"], cap_published(delta)),
        "usage_of_mean": _share(own["d_cross"], cap(mean)),
    }


def made_anchors(t: np.ndarray) -> dict[str, np.ndarray]:
    """Anchors made from the captions themselves, (n, 4, N) to (n, N) each: no wording stands between the encoder and its cap.

    ``centroid``: the direction of their mean, with the smallest mean deviation. ``tightest``: the anchor with the smallest
    largest one. Captions that surround the centre of the sphere have cap 2 at every anchor; then the first caption serves.
    """
    mean = t.mean(axis=1)
    centred = np.linalg.norm(mean, axis=-1, keepdims=True) == 0
    return {"centroid": unit(np.where(centred, t[:, 0], mean)), "tightest": np.stack([_tightest(rows) for rows in t])}


def bootstrap(values: np.ndarray, generator: np.random.Generator, draws: int = DRAWS, level: float = LEVEL) -> np.ndarray:
    """Percentile intervals of the means of ``values`` (n, q) over n quartets, drawn with replacement, as (2, q): low, high.

    Raises ``ValueError`` for fewer than two rows, no draws, or a level outside (0, 1).
    """
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"values has shape {values.shape}, expected (n, q) with n >= 2: one quartet has no interval")
    if draws < 1 or not 0 < level < 1:
        raise ValueError(f"need draws >= 1 and 0 < level < 1, got draws = {draws} and level = {level}")
    n = len(values)
    counts = generator.multinomial(n, np.full(n, 1 / n), size=draws)
    return np.quantile(counts @ values / n, [(1 - level) / 2, (1 + level) / 2], axis=0)


def audit(
    encoder: Encoder,
    model: str = "encoder",
    *,
    chosen: Sequence[str] | None = None,
    n: int = QUARTETS,
    seed: int = 0,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Audit:
    """Measure an encoder on n quartets of each chosen family (all five unless given).

    The encoder is called once, with all captions. Raises ``ValueError`` for an unknown family, n < 2 or more than a family has,
    a setting that :func:`bootstrap` refuses, and an encoder that does not keep its contract.
    """
    drawn = draw(chosen, n, seed)
    if n < 2:
        raise ValueError(f"n = {n}: an interval needs two quartets of a family at least")
    start = time.perf_counter()
    texts = captions_of(drawn)
    x = unit(check_embeddings(encoder(texts), len(texts), f"what {model} returned").astype(np.float64))
    row = {text: index for index, text in enumerate(texts)}
    measured = {}
    for family, items in drawn.items():
        t = x[[[row[text] for text in q.captions] for q in items]]
        written = [name for name, _ in items[0].anchors]
        anchors = {name: x[[row[dict(q.anchors)[name]] for q in items]] for name in written} | made_anchors(t)
        measures = {"": quartet_measures(t)} | {name: anchor_measures(t, anchor) for name, anchor in anchors.items()}
        measured[family] = _estimates(measures, np.random.default_rng((seed, 1)), draws, level)
    made = provenance() | {"seconds": f"{time.perf_counter() - start:.1f}", "captions": str(len(texts))}
    return Audit(model, x.shape[1], n, seed, draws, level, measured, made)


def draw(chosen: Sequence[str] | None = None, n: int = QUARTETS, seed: int = 0) -> dict[str, tuple[Quartet, ...]]:
    """The quartets of each chosen family, each family from the seed alone, so that leaving one out changes no other."""
    return {family: quartets(family, n, np.random.default_rng(seed)) for family in chosen or families()}


def captions_of(drawn: dict[str, tuple[Quartet, ...]]) -> list[str]:
    """Every different caption and anchor that an audit of these quartets embeds, sorted."""
    return sorted({text for items in drawn.values() for q in items for text in (*q.captions, *(a.text for a in q.anchors))})


def read(path: Path) -> Audit:
    """A report that was kept as JSON.

    Raises ``ValueError`` if the file is missing, broken, of another schema, or the record of a model that could not be measured.
    """
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        if stored.get("schema") != SCHEMA:
            raise ValueError(f"it has schema {stored.get('schema')}, expected {SCHEMA}")
        if "error" in stored:
            raise ValueError(f"the model was not measured: {stored['error']}")
        kept = {
            family: FamilyAudit(_numbers(entry["measures"]), {name: _numbers(row) for name, row in entry["anchors"].items()})
            for family, entry in stored.pop("families").items()
        }
        del stored["schema"]
        return Audit(families=kept, **stored)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no audit report ({error})") from None


def table(report: Audit) -> str:
    """The report as text: a column a family, a row a measure, then the usage against every anchor."""
    entries = report.families.values()
    best = [entry.anchors[entry.best_wording()] for entry in entries]
    rows = {name: [entry.measures[key] for entry in entries] for name, key in LABELS.items()}
    rows |= {name: [anchor[key] for anchor in best] for name, key in ANCHOR_LABELS.items()}
    names = dict.fromkeys(name for entry in entries for name in entry.anchors)
    usage = {name: [entry.anchors[name]["usage"] if name in entry.anchors else None for entry in entries] for name in names}
    head = " " * 14 + "".join(f"{family:>12}" for family in report.families)
    return "\n".join(
        [
            f"{report.model}: N = {report.dimension}, {report.quartets} quartets a family",
            "",
            head,
            *(_line(name, row) for name, row in rows.items()),
            "",
            "usage of the exact cap, by anchor",
            head,
            *(_line(name, row) for name, row in usage.items()),
            "",
            f"± spans the {report.level:.0%} bootstrap interval over quartets.",
            "δ, caps and usage of the first table: for the wording with the smallest cap.",
            "d < w: how often a swap moves the caption less than a reordering does.",
            "nearest: how often the reordering is the nearest of three; guessing: 0.333.",
            "Where d is mostly w, it is order and not binding: read d_sym.",
        ]
    )


def _line(name: str, row: Sequence[Estimate | None]) -> str:
    return f"{name:<14}" + "".join(f"{_cell(estimate) if estimate else '–':>12}" for estimate in row)


def _cell(estimate: Estimate) -> str:
    half = max(estimate.high - estimate.mean, estimate.mean - estimate.low)
    return "0" if estimate == (0, 0, 0) else f"{estimate.mean:.3f}±{half:.3f}"


@dataclass(frozen=True)
class Entry:
    """An encoder of the zoo."""

    name: str
    model: str
    """What ``binding audit`` takes."""
    dimension: int | None = None
    context: int | None = None
    tower: str = ""
    """Entries with the same mark have nearly the same text tower."""
    note: str = ""


class Outcome(NamedTuple):
    """What became of an entry of the zoo."""

    entry: Entry
    status: str
    """"measured", "kept" from an earlier run, or "failed"."""
    report: Audit | None
    error: str


def zoo(path: Path | None = None) -> tuple[Entry, ...]:
    """The list of eighteen deployed encoders (``binding/data/zoo.toml``), or a list of your own in the same form.

    Raises ``ValueError`` for a file that is no such list, an entry without a name or a model, or a name that stands twice.
    """
    source = resources.files("binding").joinpath("data/zoo.toml") if path is None else Path(path)
    try:
        entries = tuple(Entry(**row) for row in tomllib.loads(source.read_text(encoding="utf-8"))["encoder"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{source} is no list of encoders ({error}); each is an [[encoder]] with a name and a model") from None
    names = [_slug(entry) for entry in entries]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not entries:
        raise ValueError(f"{source} {f'names {twice[0]!r} twice' if twice else 'lists no encoder'}")
    return entries


def run_zoo(
    entries: Sequence[Entry],
    load: Callable[[str], Encoder],
    folder: Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    **settings: Any,
) -> list[Outcome]:
    """Audit every entry, each an independent task, and keep a JSON file for each in ``folder``.

    ``load`` makes an encoder of ``Entry.model``; ``settings`` go to :func:`audit`. A report of the same model and settings is
    kept and not measured again, so a run that was stopped goes on. A model that fails is recorded with its reason and tried
    again next time; none is skipped silently. Tasks run through joblib: ``jobs`` processes here, or the Dask cluster at ``dask``.
    Raises ``ValueError`` if Dask is asked for and absent.
    """
    import joblib

    with backend(dask):
        tasks = (joblib.delayed(_task)(entry, load, Path(folder), settings) for entry in entries)
        return list(joblib.Parallel(n_jobs=-1 if dask else jobs)(tasks))


def line_of(outcome: Outcome) -> str:
    """An outcome as one line: what the first family says of the encoder, or why it was not measured."""
    head = f"{outcome.entry.name:<24} {outcome.status:<8} "
    if outcome.report is None:
        return head + outcome.error.splitlines()[0]
    family, entry = next(iter(outcome.report.families.items()))
    cells = {name: entry.measures[name] for name in ("d", "w", "d_sym")} | {"usage": entry.anchors[entry.best_wording()]["usage"]}
    return head + f"{family}: " + ", ".join(f"{name} {_cell(estimate)}" for name, estimate in cells.items())


def _task(entry: Entry, load: Callable[[str], Encoder], folder: Path, settings: dict[str, Any]) -> Outcome:
    path = folder / f"{_slug(entry)}.json"
    kept = _kept(path, entry, settings)
    if kept:
        return Outcome(entry, "kept", kept, "")
    try:
        report = audit(load(entry.model), entry.model, **settings)
        if entry.dimension not in (None, report.dimension):
            raise ValueError(f"the list says N = {entry.dimension}, the encoder gave {report.dimension}: another model")
    except Exception as error:  # whatever stops one model must not stop the others, and stands in its record
        reason = f"{type(error).__name__}: {error}"
        write_text(path, json.dumps({"schema": SCHEMA, "model": entry.model, "error": reason}, ensure_ascii=False))
        return Outcome(entry, "failed", None, reason)
    write_text(path, json.dumps(report.to_json(), ensure_ascii=False))
    return Outcome(entry, "measured", report, "")


def _kept(path: Path, entry: Entry, settings: dict[str, Any]) -> Audit | None:
    """The report of an earlier run of the same model with the same settings."""
    try:
        report = read(path)
    except ValueError:
        return None
    given: dict[str, Any] = {"n": QUARTETS, "seed": 0, "draws": DRAWS, "level": LEVEL, "chosen": None} | settings
    wanted = entry.model, given["n"], given["seed"], given["draws"], given["level"], set(given["chosen"] or families())
    found = report.model, report.quartets, report.seed, report.draws, report.level, set(report.families)
    return report if found == wanted else None


def _estimates(
    measures: dict[str, dict[str, np.ndarray]], generator: np.random.Generator, draws: int, level: float
) -> FamilyAudit:
    """Means and intervals of all measures, from one set of resampled quartets; the key "" holds what needs no anchor."""
    keys = [(anchor, name) for anchor, columns in measures.items() for name in columns]
    values = np.stack([measures[anchor][name] for anchor, name in keys], axis=1)
    low, high = bootstrap(values, generator, draws, level)
    found: dict[str, dict[str, Estimate]] = {anchor: {} for anchor in measures}
    for (anchor, name), *numbers in zip(keys, values.mean(axis=0), low, high, strict=True):
        found[anchor][name] = Estimate(*map(float, numbers))
    return FamilyAudit(found.pop(""), found)


def _share(d: np.ndarray, cap: np.ndarray) -> np.ndarray:
    """d / cap, and 0 where d is 0 (there the cap may be 0, too)."""
    return np.divide(d, cap, out=np.zeros_like(d), where=d > 0)


def _tightest(t: np.ndarray) -> np.ndarray:
    try:
        return tightest_anchor(t)
    except ValueError:  # the hull of the captions holds 0, so every anchor has one of them at δ ≥ 1
        return t[0]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def _numbers(stored: dict[str, Any]) -> dict[str, Estimate]:
    return {name: Estimate(*map(float, numbers)) for name, numbers in stored.items()}


def _slug(entry: Entry) -> str:
    return re.sub(r"[^a-z0-9]+", "-", entry.name.lower()).strip("-")
