"""What a probe is fed: rows of a representation that may be larger than memory, codes, splits, and standardised batches."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from binding.information import features
from binding.numerics import chunks, device, generator, memory_budget

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
"""What a shard of safetensors may hold, and how numpy reads it; BF16 as raw bits."""
Split = tuple[np.ndarray, np.ndarray, np.ndarray]
PARTS = ("training", "validation", "test")
Source = Tensor | np.ndarray | str | Path | Sequence[Any]


class Rows:
    """Rows (n, …) of an array, a memory-mapped file or shards one after the other; only the rows asked for are read.

    A shard is an array or the path of a ``.npy`` or of a ``.safetensors`` file with one tensor; both are mapped, not loaded,
    and no pickle is ever read. Raises ``ValueError`` for no rows, for shards of different widths, and for a file of another kind.
    """

    def __init__(self, source: Source, name: str = "z") -> None:
        parts = [source] if isinstance(source, (Tensor, np.ndarray, str, Path)) else list(source)
        self.name = name
        self.shards = [_shard(part, name) for part in parts]
        if not self.shards or not sum(len(shard) for shard in self.shards):
            raise ValueError(f"{name} has no rows")
        widths = {tuple(shard.shape[1:]) for shard in self.shards}
        if len(widths) > 1:
            raise ValueError(f"the shards of {name} have rows of different shapes, {' and '.join(map(str, sorted(widths)))}")
        self.shape = (sum(len(shard) for shard in self.shards), *widths.pop())
        self._ends = np.cumsum([len(shard) for shard in self.shards])

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row in float32."""
        return 4 * int(np.prod(self.shape[1:], dtype=np.int64))

    def read(self, index: np.ndarray) -> Tensor:
        """The rows of ``index`` in its order, float32 on the CPU. Files are read in ascending order, whatever order is asked."""
        order = np.argsort(index, kind="stable")
        ascending = np.asarray(index)[order]
        out = torch.empty((len(index), *self.shape[1:]), dtype=torch.float32)
        cuts = np.searchsorted(ascending, [0, *self._ends])
        start = 0
        for shard, low, high, end in zip(self.shards, cuts[:-1], cuts[1:], self._ends, strict=True):
            if high > low:
                out[torch.from_numpy(order[low:high])] = _float(shard, ascending[low:high] - start)
            start = int(end)
        return out

    def chunks(self, index: np.ndarray, budget: int | None = None) -> Iterator[tuple[slice, Tensor]]:
        """The rows of ``index`` piece by piece, each a tenth of the memory budget: sums in float64 need eight times a piece."""
        tenth = (memory_budget() if budget is None else budget) // 10
        for piece in chunks(len(index), self.row_bytes, tenth):
            yield piece, self.read(index[piece])


def moments(rows: Rows, index: np.ndarray, budget: int | None = None) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every feature over the rows of ``index`` (and over tokens), in one pass, (D) each.

    Pieces are merged in float64. A feature that is constant up to float32 rounding gets deviation 1: centred, it is zero.
    """
    total, mean, square = 0, torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    for _, piece in rows.chunks(index, budget):
        x = piece.reshape(-1, piece.shape[-1]).double()
        here, gap = len(x), x.mean(0) - mean
        square = square + ((x - x.mean(0)) ** 2).sum(0) + gap**2 * (total * here / (total + here))
        mean = mean + gap * (here / (total + here))
        total += here
    deviation = (square / total).sqrt()
    flat = deviation <= 1e-6 * mean.abs()
    return mean.float(), torch.where(flat, torch.ones_like(deviation), deviation).float()


def check_rows(rows: Rows, index: np.ndarray, budget: int | None = None) -> None:
    """Raise ``ValueError`` that names the first row of ``index`` with a NaN or an infinity."""
    for piece, x in rows.chunks(index, budget):
        bad = ~torch.isfinite(x.reshape(len(x), -1)).all(1)
        if bad.any():
            row = int(index[piece][int(bad.nonzero()[0])])
            raise ValueError(f"{rows.name} has a NaN or an infinity in row {row}; every entry must be finite")


def split_codes(codes: Any, shares: tuple[float, float, float] = (0.7, 0.1, 0.2), seed: int = 0) -> Split:
    """Training, validation and test rows such that no code stands in two of them: the distinct codes are dealt out.

    Raises ``ValueError`` if a share is not positive, and if there are too few codes for three parts.
    """
    distinct, of_row = np.unique(check_codes(codes, "codes").numpy(), axis=0, return_inverse=True)
    place = _deal(len(distinct), shares, seed)[of_row.reshape(-1)]
    return _parts(place, f"{len(distinct)} distinct codes")


def split_rows(n: int, shares: tuple[float, float, float] = (0.7, 0.1, 0.2), seed: int = 0) -> Split:
    """Training, validation and test rows at random: for rows that are independent draws, where a code may come again."""
    return _parts(_deal(n, shares, seed), f"{n} rows")


def check_split(split: Sequence[Any], n: int) -> Split:
    """The three parts as index arrays. Raises ``ValueError`` for a part that is empty, out of range, or shares a row."""
    if len(split) != 3:
        raise ValueError(f"a split has three parts, training, validation and test; got {len(split)}")
    found = [np.asarray(part).reshape(-1) for part in split]
    for name, part in zip(PARTS, found, strict=True):
        if not len(part):
            raise ValueError(f"the {name} part of the split is empty")
        if part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= n:
            raise ValueError(f"the {name} part of the split must hold row numbers from 0 to {n - 1}")
    rows, counts = np.unique(np.concatenate(found), return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"row {rows[counts > 1][0]} stands twice in the split; test rows must not stand in training")
    return found[0].astype(np.int64), found[1].astype(np.int64), found[2].astype(np.int64)


def check_codes(codes: Any, name: str) -> Tensor:
    """Rows of bits (n, K) as a tensor of the CPU, or ``ValueError`` that names the first entry that is no bit."""
    if not isinstance(codes, Tensor):
        codes = np.asarray(codes)
        if codes.dtype.kind not in "biuf":
            raise ValueError(f"{name} are of type {codes.dtype}; every bit is the number 0 or 1")
    found = torch.as_tensor(codes).cpu()
    if found.ndim != 2 or not all(found.shape):
        raise ValueError(f"{name} must be rows of bits, (n, K), got shape {tuple(found.shape)}")
    bad = (found != 0) & (found != 1)
    if bad.any():
        row, k = bad.nonzero()[0].tolist()
        raise ValueError(f"{name} hold {found[row, k].item()} in row {row}, bit {k}; every bit is 0 or 1")
    return found.to(torch.uint8)


def check_features(f: Any, o: Tensor, groups: Sequence[int]) -> Tensor:
    """Features as bits: those of the codes, or ``f`` if it is the same. Raises ``ValueError`` for the first row where not."""
    own = features(o, tuple(groups))
    if f is None:
        return own
    found = check_codes(f, "features")
    if found.shape != own.shape:
        raise ValueError(f"features have shape {tuple(found.shape)}, the codes have {tuple(own.shape)}")
    if (found != own).any():
        row = int((found != own).any(1).nonzero()[0, 0])
        raise ValueError(f"row {row} has the features {found[row].tolist()}, its code has {own[row].tolist()}")
    return own


def check_disjoint(o: Tensor, parts: Split) -> None:
    """Raise ``ValueError`` for the first test row whose code also stands in training."""
    seen = {code.tobytes(): int(row) for row, code in zip(parts[0], o[torch.from_numpy(parts[0])].numpy(), strict=True)}
    for row in parts[2]:
        twin = seen.get(o[int(row)].numpy().tobytes())
        if twin is not None:
            raise ValueError(
                f"test row {row} has the code of training row {twin}; split by codes (split_codes), or say"
                " disjoint=False if the rows are independent draws"
            )


def held_out(bits: np.ndarray, o: Tensor, parts: Split) -> float:
    """``log2 1/(1 − m)``, bits a row: how far above the truth a reading may come because test codes are new ones.

    m is the probability, under the law, of the codes in training and validation; ``bits``: (n,) −log2 p(o) of every row. A
    probe may put m on the test codes, which the law cannot; infinity if the law has no other codes.
    """
    known = np.concatenate(parts[:2])
    _, first = np.unique(o[torch.from_numpy(known)].numpy(), axis=0, return_index=True)
    rest = 1 - float((2.0 ** -bits[known][first]).sum())
    return -math.log2(rest) if rest > 1e-12 else math.inf


def check_anchor(anchor: Tensor, o: Tensor) -> None:
    """Refuse log odds of another shape than o, not a number, or certain of a bit that o contradicts, with ``ValueError``."""
    if anchor.shape != o.shape:
        raise ValueError(f"log odds of shape {tuple(anchor.shape)} for targets of shape {tuple(o.shape)}")
    if torch.isnan(anchor).any():
        raise ValueError(f"the log odds are not a number in row {int(torch.isnan(anchor).nonzero()[0, 0])}")
    bad = torch.isinf(anchor) & ((anchor > 0) != (o > 0))
    if bad.any():
        row, k = bad.nonzero()[0].tolist()
        raise ValueError(f"row {row} has probability 0: bit {k} is {int(o[row, k])} where the prior is certain of the contrary")


class Data:
    """Rows, targets, anchor and condition of one fit, checked, and handed out in standardised batches."""

    def __init__(
        self,
        z: Source,
        targets: Any,
        anchor: Any = None,
        condition: Any = None,
        tokens: bool = False,
    ) -> None:
        self.to, self.rows = device(), Rows(z)
        self.o = check_codes(targets, "targets")
        if len(self.rows.shape) != 2 + tokens:
            kind = "an attention probe reads tokens, (n, T, D)" if tokens else "this probe reads rows, (n, D)"
            raise ValueError(f"z has shape {self.rows.shape}; {kind}")
        self.anchor = None if anchor is None else torch.as_tensor(anchor).cpu()
        self.condition = None if condition is None else torch.as_tensor(condition).cpu().float()
        for name, x in (("z", self.rows), ("condition", self.condition)):
            if x is not None and len(x) != len(self.o):
                raise ValueError(f"{name} has {len(x)} rows, the targets have {len(self.o)}")
        if self.condition is not None and (self.condition.ndim != 2 or not torch.isfinite(self.condition).all()):
            raise ValueError(f"the condition must be (n, m) finite numbers, got shape {tuple(self.condition.shape)} or a NaN")
        if self.anchor is not None:
            if self.anchor.shape != self.o.shape:
                raise ValueError(f"the anchor has shape {tuple(self.anchor.shape)}, the targets {tuple(self.o.shape)}")
            check_anchor(self.anchor, self.o)
        self.D, self.K = self.rows.shape[-1], self.o.shape[1]
        self.kept: Tensor | None = None

    def moments(self, index: np.ndarray) -> tuple[Tensor, Tensor]:
        """Mean and deviation of z and of the condition over the training rows."""
        mean, scale = moments(self.rows, index)
        if self.condition is None:
            return mean, scale
        of_condition = moments(Rows(self.condition, "condition"), index)
        return torch.cat([mean, of_condition[0]]), torch.cat([scale, of_condition[1]])

    def standardise(self, mean: Tensor, scale: Tensor) -> None:
        """Hand out (z − mean) / scale from now on; what fits into half of the memory budget is read once and kept."""
        self.mean, self.scale = mean, scale
        if self.condition is not None:
            self.condition = (self.condition - mean[self.D :]) / scale[self.D :]
        if 2 * len(self.rows) * self.rows.row_bytes <= memory_budget():
            self.kept = self._standard(np.arange(len(self.rows)))

    def batches(self, order: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, Tensor, Tensor, Tensor | None, Tensor | None]]:
        """Index, z, targets, anchor and condition of the rows of ``order``, ``size`` at a time.

        Rows that are not kept are read a window ahead, as many as an eighth of the memory budget holds.
        """
        whole = max(1, memory_budget() // (8 * self.rows.row_bytes * size)) * size
        window = len(order) if self.kept is not None else whole
        exact = torch.float32 if self.to.type == "mps" else torch.float64  # MPS has no float64
        for start in range(0, len(order), max(1, window)):
            inside = order[start : start + window]
            ahead = None if self.kept is not None else self._standard(inside)
            for low in range(0, len(inside), size):
                index = inside[low : low + size]
                rows = torch.from_numpy(index)
                x = ahead[low : low + size] if ahead is not None else self.kept[rows.to(self.to)]  # type: ignore[index]
                anchor = None if self.anchor is None else self.anchor[rows].to(self.to, exact)
                beside = None if self.condition is None else self.condition[rows].to(self.to)
                yield index, x, self.o[rows].to(self.to, torch.float32), anchor, beside

    def _standard(self, index: np.ndarray) -> Tensor:
        return self.rows.read(index).sub_(self.mean[: self.D]).div_(self.scale[: self.D]).to(self.to)

    def fingerprint(self, about: str, parts: Split) -> str:
        """What a checkpoint must agree with: words ``about`` it, shapes, targets, split, anchor, condition, the ends of z."""
        ends = self.rows.read(parts[0][:64]), self.rows.read(parts[2][-64:])
        tensors = [self.o, *ends, *(x for x in (self.anchor, self.condition) if x is not None)]
        text = json.dumps([about, self.rows.shape, [list(x.shape) for x in tensors]])
        found = hashlib.sha256(text.encode())
        for x in (*parts, *(x.contiguous().numpy() for x in tensors)):
            found.update(np.ascontiguousarray(x).data)
        return found.hexdigest()


def _shard(part: Any, name: str) -> Tensor | np.ndarray:
    if isinstance(part, (str, Path)):
        part = _mapped(Path(part))
    if not isinstance(part, (Tensor, np.ndarray)):
        raise ValueError(f"{name} holds a {type(part).__name__}; give arrays, tensors, or paths of .npy or .safetensors files")
    plain = part.dtype.kind in "biuf" if isinstance(part, np.ndarray) else not part.is_complex()
    if not plain:
        raise ValueError(f"{name} is of type {part.dtype}; a probe reads real numbers")
    if part.ndim < 2:
        raise ValueError(f"{name} has shape {tuple(part.shape)}; it needs rows of features, (n, D), or of tokens, (n, T, D)")
    return part


def _mapped(path: Path) -> np.ndarray:
    if path.suffix == ".safetensors":
        return _mapped_safetensors(path)
    if path.suffix != ".npy":
        raise ValueError(f"{path} is no .npy and no .safetensors file; a shard is one of the two")
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is no array that can be mapped ({error})") from None


def _mapped_safetensors(path: Path) -> np.ndarray:
    """The one tensor of a file, mapped: eight bytes with the length of the header, the header in JSON, then the numbers."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= path.stat().st_size - 8:
                raise ValueError("its header does not fit into it")
            entries = json.loads(file.read(length))
        entries.pop("__metadata__", None)
        if len(entries) != 1:
            raise ValueError(f"it holds {len(entries)} tensors, a shard holds one")
        (entry,) = entries.values()
        kind, shape, start = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"][0]
        if kind not in DTYPES:
            raise ValueError(f"its numbers are {kind}")
        mapped = np.memmap(path, DTYPES[kind], "r", 8 + length + start, shape)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{path} is no safetensors file that can be mapped ({error})") from None
    return _BFloat.of(mapped) if kind == "BF16" else mapped


class _BFloat(np.ndarray):
    """Marks raw bits that are brain floats, a kind that numpy lacks."""

    @staticmethod
    def of(bits: np.ndarray) -> "np.ndarray":
        return bits.view(_BFloat)


def _float(shard: Tensor | np.ndarray, index: np.ndarray) -> Tensor:
    if isinstance(shard, Tensor):
        return shard.detach()[torch.from_numpy(index).to(shard.device)].to("cpu", torch.float32)
    taken = np.ascontiguousarray(shard[index])
    if isinstance(shard, _BFloat):
        return torch.from_numpy(taken.view(np.ndarray).view(np.int16)).view(torch.bfloat16).float()
    return torch.from_numpy(taken.astype(np.float32, copy=False).view(np.ndarray))


def _deal(n: int, shares: tuple[float, float, float], seed: int) -> np.ndarray:
    if len(shares) != 3 or min(shares) <= 0:
        raise ValueError(f"shares = {shares} must be three positive numbers")
    ends = np.round(np.cumsum(shares) / sum(shares) * n)
    place = np.empty(n, dtype=np.int64)
    place[torch.randperm(n, generator=generator(seed)).numpy()] = np.searchsorted(ends, np.arange(n), side="right")
    return place


def _parts(place: np.ndarray, what: str) -> Split:
    found = [np.flatnonzero(place == part) for part in range(3)]
    if not all(len(part) for part in found):
        raise ValueError(f"{what} are too few for a training, a validation and a test part")
    return found[0], found[1], found[2]
