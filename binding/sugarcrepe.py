"""SugarCrepe item by item: the ceiling of every pair of captions, and what words or lengths alone score (L, Corollary G.4).

An item is an image, its caption and a negative caption. Encoders come in as plain functions: ``text`` takes n captions and
``image`` takes n paths, and both return (n, N) rows of length one. Everything after them is computed in float64.
"""

import hashlib
import json
import math
import os
import platform
import re
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from binding.files import whole, write_json
from binding.numerics import check_unit, unit
from binding.scenes import word_multiset, words
from binding.score import ceiling, margin

Encode = Callable[[Sequence[Any]], np.ndarray]

COUNTS = {"replace_obj": 1652, "replace_att": 788, "replace_rel": 1406, "swap_obj": 245, "swap_att": 666}
COUNTS |= {"add_obj": 2062, "add_att": 692}
"""Items of each subset in the files as they are today."""
PUBLISHED_COUNTS = COUNTS | {"swap_obj": 246}
"""Items behind the published accuracies: swap_obj has since lost the item with the key 108."""
FIVE = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")
"""The subsets of L, Figure 12: all but the two of ADD, which the lengths of the captions give away."""
SHA256 = {
    "replace_obj": "9d299600639947e9d15281a9ded1382b376cf4ea088a8d08a1314bfe76e81898",
    "replace_att": "9fe55fd4c0a9ad1f85d486d9f6d0215b41f867eb025026e7f7b5ce44352545ee",
    "replace_rel": "356bcc2fc4c6aed3f4d9fd50acc58489bb1fe70c28791f9368d4cbf9ea39cdc9",
    "swap_obj": "073cdb8e253d053614e80710834d9773b09dbc1dd0a412f6f9492262caa1dcad",
    "swap_att": "7a7ce04e5c4c80412b48c6f0c1347fb1a2f5d54c0be6aa429b64d390e442f8d0",
    "add_obj": "1b9d76b93139a937b8dc1ada92a4f05ecc821bb3c291d752428bafadd4bb0682",
    "add_att": "012d88d729693d193760e6f3393b06a1cf874380a9db0062e937201199fe044d",
}
"""Of the published files ``<subset>.json``."""
SOURCE = "https://raw.githubusercontent.com/RAIVNLab/sugar-crepe/main/data/"
LARGEST_FILE, LONGEST_CAPTION = 16_000_000, 2_000
"""Bytes and characters; the published files have at most 484,593 and 210."""


class Item(NamedTuple):
    """One decision: which of two captions belongs to the image?"""

    subset: str
    key: str
    filename: str
    caption: str
    negative: str

    @property
    def pure(self) -> bool:
        """Whether both captions have the same words equally often: a pure swap, what Theorem D.2 is about."""
        return word_multiset(self.caption) == word_multiset(self.negative)

    @property
    def saved_words(self) -> int:
        """By how many words the caption is shorter than its negative."""
        return len(words(self.negative)) - len(words(self.caption))


class Tally(NamedTuple):
    """Decisions counted exactly: n in all, of which so many right and so many ties."""

    n: int
    right: int
    ties: int

    @property
    def accuracy(self) -> Fraction:
        """(right + ties / 2) / n: a tie is a coin not yet thrown, so it counts one half."""
        return Fraction(2 * self.right + self.ties, 2 * self.n)


class Deciles(NamedTuple):
    """Items sorted by their ceiling and cut into equal parts, the lowest first."""

    n: np.ndarray
    d: np.ndarray
    """Mean ceiling of each part."""
    accuracy: np.ndarray
    """Accuracy of each part."""


@dataclass(frozen=True)
class Run:
    """What was measured with one model, item by item; written and read by :meth:`save` and :func:`read_run`."""

    provenance: dict[str, Any]
    subset: np.ndarray
    key: np.ndarray
    d: np.ndarray
    """The ceiling of each item."""
    margin: np.ndarray
    """The score of the caption minus that of its negative; NaN where there is no image vector."""
    pure: np.ndarray
    saved_words: np.ndarray
    examples: tuple[Item, ...]
    """Of each subset, the items in the middle of each fifth of its ceilings, the lowest first, of those that have a margin."""

    def of(self, *subsets: str) -> np.ndarray:
        """Where the items of these subsets stand, as a mask.

        Raises ``ValueError`` for a subset of which the run has no item.
        """
        for name in subsets:
            if name not in self.subset:
                raise ValueError(f"the run has no subset {name!r}; it has {', '.join(dict.fromkeys(self.subset.tolist()))}")
        return np.isin(self.subset, subsets)

    def save(self, path: Path) -> None:
        """Write the run as JSON, whole or not at all, with six digits a number; a sign and an exact zero survive."""
        rows: dict[str, dict[str, list[Any]]] = {}
        for name in dict.fromkeys(self.subset.tolist()):
            here = self.of(name)
            rows[name] = {
                "key": self.key[here].tolist(),
                "d": [float(f"{x:.6g}") for x in self.d[here]],
                "margin": [None if math.isnan(x) else float(f"{x:.6g}") for x in self.margin[here]],
                "pure": self.pure[here].astype(int).tolist(),
                "saved_words": self.saved_words[here].tolist(),
            }
        write_json(path, {"provenance": self.provenance, "examples": self.examples, "subsets": rows}, indent=None)


def data_folder() -> Path | None:
    """The folder that ``BINDING_SUGARCREPE`` names, or none. Raises ``ValueError`` if it names no folder."""
    name = os.environ.get("BINDING_SUGARCREPE")
    if not name:
        return None
    if not Path(name).is_dir():
        raise ValueError(f"BINDING_SUGARCREPE={name!r} is no folder; name the one with swap_obj.json and the other files")
    return Path(name)


def download(folder: Path, source: str = SOURCE) -> None:
    """Fetch the seven files into a folder, each only if it is the published one; what already stands there is not fetched.

    Raises ``ValueError`` for a file with another sha256 and ``OSError`` where the source cannot be reached.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, digest in SHA256.items():
        path = folder / f"{name}.json"
        if path.exists():
            continue
        with urllib.request.urlopen(f"{source}{name}.json", timeout=30) as answer:
            content = answer.read(LARGEST_FILE + 1)
        _check_digest(f"{source}{name}.json", content, digest)
        with whole(path) as part:
            part.write_bytes(content)


def load(folder: Path, subsets: Iterable[str] = COUNTS, *, published: bool = True) -> tuple[Item, ...]:
    """The items of these subsets, in the order of their files ``<subset>.json``.

    With ``published`` each file must be the published one, to the byte; without, any file of the same form is read.
    Raises ``ValueError`` for a missing file or one that is not what it should be (:func:`read_subset`).
    """
    folder = Path(folder)
    chosen = list(subsets)
    for name in chosen:
        if name not in COUNTS and published:
            raise ValueError(f"no subset {name!r}; the published ones are {', '.join(COUNTS)}")
        path = folder / f"{name}.json"
        if not path.is_file():
            raise ValueError(f"no file {path}; fetch the published files with: binding sugarcrepe --data {folder} --download")
        if published:
            _check_digest(str(path), path.read_bytes(), SHA256[name])
    return tuple(item for name in chosen for item in read_subset(folder / f"{name}.json"))


def read_subset(path: Path) -> tuple[Item, ...]:
    """The items of one file: an object of entries with ``filename``, ``caption`` and ``negative_caption``.

    Raises ``ValueError`` that names the file, and the entry, for anything else: text that is cut off, another type, a key that
    stands twice, a caption that is blank, without a word, equal to its negative, or of more than ``LONGEST_CAPTION`` characters,
    and a file name that would lead out of the folder of images.
    """
    path = Path(path)
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes, more than {LARGEST_FILE:,}; that is no file of SugarCrepe")
    try:
        entries = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_key_twice)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply; it must be an object of entries") from None
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as JSON ({error}); fetch it again") from None
    if not isinstance(entries, dict) or not entries:
        raise ValueError(f"{path} holds {_kind(entries)}; it must be an object of entries, {{'0': {{'filename': …}}, …}}")
    return tuple(_item(path, key, entry) for key, entry in entries.items())


def bag_of_words_ceiling(pure: np.ndarray) -> Fraction:
    """1 − p/(2n): the most that a scorer blind to word order can get on n items of which p are pure swaps, (n) → number.

    New. On a pure swap it must tie, which counts one half (Theorem D.2); on every other item let it be right.

    >>> bag_of_words_ceiling(np.array([True, True, False]))
    Fraction(2, 3)
    """
    return 1 - Fraction(int(np.sum(pure)), 2 * _at_least_one(len(pure)))


def tally(margins: np.ndarray) -> Tally:
    """Decisions by the sign of a margin, exactly: above 0 right, equal to 0 a tie, (n) → counts.

    Raises ``ValueError`` for no margin or a NaN.

    >>> tally(np.array([0.2, 0.0, -0.1, 0.3])).accuracy
    Fraction(5, 8)
    """
    margins = np.asarray(margins)
    if np.isnan(margins).any():
        raise ValueError(f"{int(np.isnan(margins).sum())} margins are NaN; leave out the items without an image")
    return Tally(_at_least_one(len(margins)), int((margins > 0).sum()), int((margins == 0).sum()))


def measure(
    items: Sequence[Item],
    text: Encode,
    image: Encode | None = None,
    folder: Path = Path(),
    *,
    batch: int = 64,
    **provenance: Any,
) -> Run:
    """d = ‖t(c) − t(c⁻)‖ and the margin ⟨i(I), t(c) − t(c⁻)⟩ of every item; each caption and each image is encoded once.

    Without an image encoder the image is stood in for by the other captions of it (:func:`stand_ins`). No margin is larger
    than its ceiling, whatever stands for the image (L, Corollary G.4). More provenance is kept as it is given.
    Raises ``ValueError`` for no items, a missing image, vectors that are not of length one, or two lengths N.
    """
    _at_least_one(len(items))
    if image is not None:
        _check_images(items, folder)
    vectors = _encoded(text, [c for item in items for c in (item.caption, item.negative)], 1 << 30)
    t, t_negative = (
        np.stack([vectors[c] for c in column]) for column in zip(*((i.caption, i.negative) for i in items), strict=True)
    )
    if image is None:
        i, known = stand_ins(items, vectors)
    else:
        paths = [folder / item.filename for item in items]
        encoded = _encoded(image, paths, batch)
        i, known = np.stack([encoded[path] for path in paths]), np.ones(len(items), bool)
    d, margins = ceiling(t, t_negative), np.full(len(items), np.nan)
    margins[known] = margin(i[known], t[known], t_negative[known])
    versions = {name: metadata.version(name) for name in ("numpy", "torch")} | {"python": platform.python_version()}
    return Run(
        {"image": "the other captions of it" if image is None else "the image", "versions": versions, **provenance},
        subset=np.array([item.subset for item in items]),
        key=np.array([item.key for item in items]),
        d=d,
        margin=margins,
        pure=np.array([item.pure for item in items]),
        saved_words=np.array([item.saved_words for item in items]),
        examples=_examples(items, d, known),
    )


def stand_ins(items: Sequence[Item], vectors: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """i(I) = Σ t(c′) / ‖Σ t(c′)‖ over the other captions c′ ≠ c of the same image: vectors (n, N) and where there are any (n).

    New: with it a text encoder can be measured with no picture at hand. A row without another caption is zero.
    """
    of_image: dict[str, dict[str, None]] = {}
    for item in items:
        of_image.setdefault(item.filename, {})[item.caption] = None
    sums = np.stack(
        [
            np.sum([np.asarray(vectors[c], float) for c in of_image[item.filename] if c != item.caption], axis=0)
            + np.zeros_like(vectors[item.caption], float)
            for item in items
        ]
    )
    known = np.array([len(of_image[item.filename]) > 1 for item in items])
    sums[known] = unit(sums[known], "stand-ins")
    return sums, known


def deciles(d: np.ndarray, margins: np.ndarray, parts: int = 10) -> Deciles:
    """Accuracy by ceiling: items sorted by d and cut into equal parts, a tie counted one half, (n) × 2 → (parts) (L, Fig. 12 a).

    Raises ``ValueError`` for a NaN, two lengths, or fewer items than parts.
    """
    if len(d) != len(margins) or len(d) < parts:
        raise ValueError(f"{len(d)} ceilings and {len(margins)} margins; need as many of each, and at least {parts}")
    groups = np.array_split(np.argsort(d, kind="stable"), parts)
    counted = [tally(margins[group]) for group in groups]
    return Deciles(
        np.array([c.n for c in counted]),
        np.array([np.mean(d[group]) for group in groups]),
        np.array([float(c.accuracy) for c in counted]),
    )


def errors_below_median(d: np.ndarray, margins: np.ndarray) -> Fraction:
    """The share of errors on items whose d is below the median of d, a tie being half an error, (n) × 2 → number (L, Fig. 12 a).

    Raises ``ValueError`` for a NaN or if there is no error.
    """
    low = np.asarray(d) < np.median(d)
    errors = [c.n * (1 - c.accuracy) for c in (tally(margins[low]), tally(margins))]
    if not errors[1]:
        raise ValueError("there is no error, so no share of errors; every margin is above 0")
    return errors[0] / errors[1]


def published() -> dict[str, dict[str, float]]:
    """The published accuracies in percent, by model and subset (Hsieh et al. 2023, their table of 17 CLIP models)."""
    lines = resources.files("binding").joinpath("data/sugarcrepe_published.csv").read_text(encoding="utf-8").splitlines()
    head, *rows = [line.split(",") for line in lines if not line.startswith("#")]
    return {row[0]: dict(zip(head[1:], map(float, row[1:]), strict=True)) for row in rows}


def right_answers(percent: float, n: int) -> list[int]:
    """All k for which 100 k/n prints as this percentage with two decimals: how many right answers can stand behind it.

    >>> right_answers(61.79, 246), right_answers(61.79, 245)
    ([152], [])
    """
    near = math.floor(percent * n / 100)
    exact = Fraction(str(percent))
    return [k for k in range(max(near - 1, 0), near + 3) if abs(Fraction(100 * k, n) - exact) <= Fraction(1, 200)]


def read_run(path: Path | None = None) -> Run:
    """A run that was saved; without a path, the one of all-MiniLM-L6-v2 that ships with the book.

    Raises ``ValueError`` for a file of another form, and for a margin above its ceiling by more than their last digits.
    """
    where = path or resources.files("binding").joinpath("data/runs/sugarcrepe_minilm.json")
    try:
        stored = json.loads(where.read_text(encoding="utf-8"), object_pairs_hook=_no_key_twice)
        columns: dict[str, list[Any]] = {"subset": [], "key": [], "d": [], "margin": [], "pure": [], "saved_words": []}
        for name, rows in stored["subsets"].items():
            columns["subset"] += [name] * len(rows["key"])
            for column in list(columns)[1:]:
                columns[column] += rows[column]
        kinds = {"subset": str, "key": str, "d": float, "margin": float, "pure": bool, "saved_words": int}
        arrays: dict[str, Any] = {column: np.array(values, dtype=kinds[column]) for column, values in columns.items()}
        examples = tuple(Item(*map(str, row)) for row in stored["examples"])
        run = Run(dict(stored["provenance"]), **arrays, examples=examples)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{where} is no run of this command ({type(error).__name__}: {error}); measure it again") from None
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1 or not len(run.d) or not np.isfinite(run.d).all():
        raise ValueError(f"{where} is no whole run: lengths {lengths}, ceilings must be finite; measure it again")
    if (np.abs(run.margin) > run.d * (1 + 2e-5)).any():
        raise ValueError(f"{where} has a margin above its ceiling, which no encoder has; measure it again")
    return run


def _item(path: Path, key: str, entry: Any) -> Item:
    where = f"{path}, entry {key[:40]!r}"
    if not isinstance(entry, dict):
        raise ValueError(f"{where} is {_kind(entry)}; it must be an object with filename, caption and negative_caption")
    fields = []
    for name in ("filename", "caption", "negative_caption"):
        value = entry.get(name)
        if not isinstance(value, str):
            raise ValueError(f"{where}: {name} is {_kind(value)}; it must be a string")
        if len(value) > LONGEST_CAPTION or re.search(r"[\ud800-\udfff]", value):
            problem = (
                f"has {len(value):,} characters, more than {LONGEST_CAPTION:,}"
                if len(value) > LONGEST_CAPTION
                else "has half a character"
            )
            raise ValueError(f"{where}: {name} {problem}: {value[:40]!a}; fetch the file again")
        fields.append(value)
    filename, caption, negative = fields
    if not re.fullmatch(r"\w[\w.-]*", filename):
        raise ValueError(f"{where}: filename {filename[:40]!r} must be a plain name, without folders")
    try:
        same = words(caption) == words(negative)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if same:
        raise ValueError(f"{where}: caption and negative are both {caption[:60]!r}; there is nothing to decide")
    return Item(path.stem, key, filename, caption, negative)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            raise ValueError(f"the key {key[:40]!r} stands twice")
        keys.add(key)
    return dict(pairs)


def _check_digest(name: str, content: bytes, digest: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise ValueError(f"{name} has sha256 {found}, expected {digest}: not the published file; fetch it again")


def _check_images(items: Sequence[Item], folder: Path) -> None:
    names = dict.fromkeys(item.filename for item in items)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder} lacks {len(missing)} of {len(names)} images, the first {missing[0]}; get COCO's val2017")


def _examples(items: Sequence[Item], d: np.ndarray, known: np.ndarray) -> tuple[Item, ...]:
    chosen: list[Item] = []
    order = [row for row in np.argsort(d, kind="stable") if known[row] or not known.any()]
    for name in dict.fromkeys(item.subset for item in items):
        rows = [row for row in order if items[row].subset == name]
        chosen += [items[row] for row in dict.fromkeys(rows[(2 * k + 1) * len(rows) // 10] for k in range(5) if rows)]
    return tuple(chosen)


def _encoded(encode: Encode, inputs: Sequence[Any], batch: int) -> dict[Any, np.ndarray]:
    """The vector of each distinct input, encoded once, in batches; the rows must be of length one."""
    distinct = list(dict.fromkeys(inputs))
    starts = tqdm(range(0, len(distinct), batch), disable=None if len(distinct) > batch else True, unit="batch")
    parts = [np.asarray(encode(distinct[start : start + batch])) for start in starts]
    rows = check_unit(np.concatenate(parts), "embeddings")
    if rows.ndim != 2 or len(rows) != len(distinct):
        raise ValueError(f"the encoder returned shape {rows.shape} for {len(distinct)} inputs; it must return one row each")
    return dict(zip(distinct, rows, strict=True))


def _at_least_one(n: int) -> int:
    if n < 1:
        raise ValueError("there is no item; give at least one")
    return n


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
