"""Devices, draws, unit vectors and memory: what every other module stands on."""

import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch

Array = TypeVar("Array", np.ndarray, torch.Tensor)


def device() -> torch.device:
    """The device that long work runs on: ``BINDING_DEVICE`` if set, else CUDA, else MPS, else the CPU.

    Raises ``ValueError`` if ``BINDING_DEVICE`` names no device that torch knows.
    """
    name = os.environ.get("BINDING_DEVICE")
    if name:
        try:
            return torch.device(name)
        except RuntimeError:
            raise ValueError(f"BINDING_DEVICE={name!r} is no torch device; use for example 'cpu' or 'cuda:0'") from None
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def generator(seed: int) -> torch.Generator:
    """A CPU generator with this seed: draws are made on the CPU and then moved, so every device sees the same ones.

    Raises ``ValueError`` if the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    draws = torch.Generator("cpu")
    draws.manual_seed(seed)
    return draws


def signs(
    shape: Sequence[int], generator: torch.Generator, *, dtype: torch.dtype = torch.float64, to: torch.device | None = None
) -> torch.Tensor:
    """Independent fair signs, each −1 or +1, of the given shape."""
    bits = torch.randint(0, 2, tuple(shape), generator=generator, dtype=torch.int8)
    return (2 * bits - 1).to(device=to, dtype=dtype)


def gaussian(
    shape: Sequence[int], generator: torch.Generator, *, dtype: torch.dtype = torch.float64, to: torch.device | None = None
) -> torch.Tensor:
    """Independent standard normal numbers of the given shape, drawn in float64 before any rounding to ``dtype``."""
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float64).to(device=to, dtype=dtype)


def check_finite(x: Array, name: str = "x") -> Array:
    """Return ``x`` of shape (*, N) unchanged, or raise ``ValueError`` that names the first row with a NaN or infinity."""
    bad = ~np.isfinite(_rows(x)).all(axis=-1)
    if bad.any():
        raise ValueError(f"{name} has a NaN or an infinity in row {_first(bad)}; every entry must be finite")
    return x


def unit(x: Array, name: str = "x") -> Array:
    """Rows scaled to length one, x / ‖x‖, of shape (*, N).

    Raises ``ValueError`` for a row that is zero or not finite.
    """
    check_finite(x, name)
    norm = _norms(x)
    if (norm == 0).any():
        raise ValueError(f"{name} is zero in row {_first(norm == 0)}; a zero vector has no direction")
    return x / _like(x, norm)[..., None]


def check_unit(x: Array, name: str = "x") -> Array:
    """Return ``x`` of shape (*, N) unchanged, or raise ``ValueError`` that names the first row that is not of length one.

    The tolerance is rounding: normalising in floating point leaves a squared length within (N + 4) ε of one.
    """
    check_finite(x, name)
    norm = _norms(x)
    off = np.abs(norm**2 - 1) > (x.shape[-1] + 4) * _eps(x)
    if off.any():
        row = _first(off)
        raise ValueError(f"{name} has length {norm[row]:.6g} in row {row}, expected 1; pass it through numerics.unit first")
    return x


def memory_budget() -> int:
    """Bytes that one step of long work may use: ``BINDING_MEMORY_MB`` in MB, 1,024 MB unless set.

    Raises ``ValueError`` if the variable holds no positive number.
    """
    text = os.environ.get("BINDING_MEMORY_MB", "1024")
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = -1.0
    if not megabytes > 0:
        raise ValueError(f"BINDING_MEMORY_MB={text!r} must be a positive number of megabytes")
    return int(megabytes * 1_000_000)


def chunks(n: int, item_bytes: int, budget: int | None = None) -> Iterator[slice]:
    """Slices that cover range(n) in order, each of at most ``budget`` bytes (``memory_budget()`` unless given).

    A slice holds at least one item, even if that item alone is over the budget.
    Raises ``ValueError`` for a negative n or an item of no bytes.
    """
    if n < 0 or item_bytes <= 0:
        raise ValueError(f"need n >= 0 and item_bytes > 0, got n = {n} and item_bytes = {item_bytes}")
    size = max(1, (memory_budget() if budget is None else budget) // item_bytes)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _rows(x: Array) -> np.ndarray:
    return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def _norms(x: Array) -> np.ndarray:
    return np.linalg.norm(_rows(x).astype(np.float64), axis=-1)


def _like(x: Array, values: np.ndarray) -> Array:
    if isinstance(x, torch.Tensor):
        return torch.as_tensor(values, dtype=x.dtype, device=x.device)
    return values.astype(x.dtype)


def _eps(x: Array) -> float:
    return float(torch.finfo(x.dtype).eps if isinstance(x, torch.Tensor) else np.finfo(x.dtype).eps)


def _first(mask: np.ndarray) -> int | tuple[int, ...]:
    index = tuple(int(i) for i in np.argwhere(mask)[0])
    return index[0] if len(index) == 1 else index
