"""Laws of the ground floor: unit rows, draws, chunks, and every refusal."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from binding import numerics

rows = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6),
    elements=st.floats(-1e6, 1e6).filter(lambda v: abs(v) > 1e-6),
)


@given(rows)
def test_unit_has_length_one_and_keeps_direction(x):
    u = numerics.unit(x)
    # (N + 4) eps bounds the rounding of a squared length; see check_unit.
    bound = (x.shape[-1] + 4) * np.finfo(np.float64).eps
    assert (np.abs((u * u).sum(-1) - 1) <= bound).all()
    assert np.array_equal(np.sign(u), np.sign(x))
    assert numerics.check_unit(u) is u


@given(rows)
def test_unit_agrees_between_numpy_and_torch(x):
    ours, theirs = numerics.unit(x), numerics.unit(torch.from_numpy(x)).numpy()
    assert np.array_equal(ours, theirs)


@given(rows, st.floats(1e-3, 1e3))
def test_unit_forgets_length(x, scale):
    # Three roundings (scale, norm, quotient), each relative eps, on both sides.
    assert np.max(np.abs(numerics.unit(x) - numerics.unit(scale * x))) <= (x.shape[-1] + 8) * np.finfo(np.float64).eps


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_unit_refuses_what_is_not_finite(bad):
    x = np.ones((3, 4))
    x[1, 2] = bad
    with pytest.raises(ValueError, match="captions has a NaN or an infinity in row 1"):
        numerics.unit(x, "captions")


def test_unit_refuses_zero():
    with pytest.raises(ValueError, match=r"zero in row \(1, 0\)"):
        numerics.unit(torch.tensor([[[1.0, 0.0]], [[0.0, 0.0]]]))


@given(st.floats(1.0001, 3.0))
def test_check_unit_names_row_and_length(scale):
    x = numerics.unit(np.eye(3) + 0.5)
    x[2] *= scale
    with pytest.raises(ValueError, match=r"has length .* in row 2, expected 1"):
        numerics.check_unit(x)


def test_check_unit_takes_float32_rows():
    x = numerics.unit(np.random.default_rng(0).standard_normal((50, 384)).astype(np.float32))
    assert x.dtype == np.float32
    numerics.check_unit(x)


@given(st.integers(0, 2**31), st.integers(1, 50))
def test_draws_depend_on_the_seed_alone(seed, n):
    first, second = (numerics.signs((n, 3), numerics.generator(seed)) for _ in range(2))
    assert torch.equal(first, second)
    assert set(first.unique().tolist()) <= {-1.0, 1.0}
    assert torch.equal(*(numerics.gaussian((n, 3), numerics.generator(seed)) for _ in range(2)))


def test_dtype_does_not_change_the_draw():
    exact, rounded = (numerics.gaussian((100,), numerics.generator(1), dtype=dtype) for dtype in (torch.float64, torch.float32))
    assert torch.equal(exact.to(torch.float32), rounded)


def test_signs_are_fair_and_gaussians_standard():
    # Hoeffding for n = 2^20 signs: P(|mean| > t) <= 2 exp(-n t^2 / 2) = 1e-9 at t below.
    n = 2**20
    assert abs(numerics.signs((n,), numerics.generator(0)).mean().item()) <= np.sqrt(2 * np.log(2e9) / n)
    # A mean of n standard normals has deviation n^-1/2, their variance sqrt(2/n); beyond 6.2 and 6.5 of them lies under 1e-9.
    x = numerics.gaussian((n,), numerics.generator(0))
    assert abs(x.mean().item()) <= 6.2 / np.sqrt(n)
    assert abs(x.var().item() - 1) <= 6.5 * np.sqrt(2 / n)


def test_generator_refuses_negative_seed():
    with pytest.raises(ValueError, match="got -1"):
        numerics.generator(-1)


@given(st.integers(0, 500), st.integers(1, 50), st.integers(1, 1000))
def test_chunks_cover_everything_once_within_the_budget(n, item, budget):
    slices = list(numerics.chunks(n, item, budget))
    assert [i for s in slices for i in range(n)[s]] == list(range(n))
    assert all((s.stop - s.start) * item <= max(budget, item) for s in slices)


@pytest.mark.parametrize(("n", "item"), [(-1, 1), (3, 0)])
def test_chunks_refuse_before_any_work(n, item):
    with pytest.raises(ValueError, match=f"n = {n} and item_bytes = {item}"):
        numerics.chunks(n, item)


def test_memory_budget_reads_the_environment(monkeypatch):
    monkeypatch.setenv("BINDING_MEMORY_MB", "3")
    assert numerics.memory_budget() == 3_000_000
    assert [s.stop - s.start for s in numerics.chunks(5, 1_000_000)] == [3, 2]
    for bad in ("none", "-1", "nan"):
        monkeypatch.setenv("BINDING_MEMORY_MB", bad)
        with pytest.raises(ValueError, match=bad):
            numerics.memory_budget()


def test_device_obeys_the_environment(monkeypatch):
    monkeypatch.setenv("BINDING_DEVICE", "cpu")
    assert numerics.device() == torch.device("cpu")
    monkeypatch.setenv("BINDING_DEVICE", "abacus")
    with pytest.raises(ValueError, match="abacus"):
        numerics.device()
    monkeypatch.delenv("BINDING_DEVICE")
    assert numerics.device().type in {"cpu", "cuda", "mps"}
