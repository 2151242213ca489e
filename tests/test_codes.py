"""Factored codes: leakage, the three closed forms, their spread over random signs, the ceiling, and the best image."""

import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
import torch
import torchhd
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from torch import Tensor

from binding.codes import (
    EDITS,
    Draws,
    Leakage,
    additive,
    best_image,
    best_image_margin,
    bias,
    ceiling,
    deviation,
    draw,
    edit_margin,
    hadamard,
    interpolated,
    leakage,
    margins,
    mixing_angle,
    overlaps,
    pooled_square,
    predicted,
    replace_margin,
    simplex,
    swap_margin,
    table,
    tensor,
    walsh,
)
from binding.numerics import gaussian, generator, signs

EPS = torch.finfo(torch.float64).eps
NONE = Leakage(1.0, 0.0, 0.0, 0.0)
seeds = st.integers(0, 10**6)
edits = st.sampled_from(EDITS)


def rounding(N: int, k: int) -> float:
    """First-order float64 bound for a margin of captions of k unit codes in R^N whose pooled length is at least one.

    Pooling k + 4 vectors errs by at most (k + 4)² ε in length, a normalisation by (N/2 + 2) ε, an inner product by N ε.
    A margin has two captions and two inner products, and its closed form adds less; 4 covers both and the codes' own rounding.
    """
    return 4 * (2 * N + (k + 4) ** 2) * EPS


def least(edit: str) -> int:
    return 2 if edit == "swap" else 1


def homogeneous(M: int, K: int, weights: tuple[float, ...], seed: int) -> tuple[Tensor, Tensor, object, Leakage]:
    """A code whose overlaps depend only on what two atoms share, with all four of its eigenspaces filled as ``weights`` say.

    Its leakages come from the weights alone: a simplex has inner products −1/(n − 1), a constant 1.
    """
    total = math.sqrt(sum(w * w for w in weights))
    c = [w / total for w in weights]
    g = generator(seed)
    u, v = simplex(M, M + 1, g), simplex(K, K + 2, g)

    def bind(a: Tensor, b: Tensor) -> Tensor:
        both = tensor(a, b)
        shape = both.shape[:-1]
        parts = [a / math.sqrt(M + 1), b / math.sqrt(K + 2), torch.ones(1, dtype=a.dtype)]
        return torch.cat([c[0] * both, *(w * p.expand(*shape, p.shape[-1]) for w, p in zip(c[1:], parts, strict=True))], dim=-1)

    def overlap(o: float, a: float) -> float:
        return c[0] ** 2 * o * a + c[1] ** 2 * o + c[2] ** 2 * a + c[3] ** 2

    p, q = -1 / (M - 1), -1 / (K - 1)
    return u, v, bind, Leakage(overlap(1, 1), overlap(1, q), overlap(p, 1), overlap(p, q))


def fresh(edit: str, k: int, N: int, scenes: int, g: torch.Generator) -> Tensor:
    """Margins of scenes that share no factor code, so they are independent."""
    rows = torch.arange(scenes * (k + 1)).view(scenes, k + 1)
    u, v = (signs((scenes * (k + 1), N), g) for _ in range(2))
    return margins([edit], hadamard, u, v, Draws(rows, rows))[edit]


# The codes themselves.


@given(st.integers(1, 9), st.integers(1, 9))
def test_walsh_factors_and_their_products_are_orthogonal(M: int, K: int) -> None:
    """Sums of at most 256 signs are exact in float64."""
    u, v = walsh(M, K)
    rows = torch.cat([u, v, (u[:, None] * v).flatten(0, 1)])
    N = u.shape[1]
    assert N == 2 ** math.ceil(math.log2(M + 1)) * 2 ** math.ceil(math.log2(K + 1))
    assert torch.equal(rows @ rows.T, N * torch.eye(len(rows), dtype=torch.float64))


@given(st.integers(2, 8), st.integers(0, 20), seeds)
def test_simplex_has_equal_negative_overlaps(n: int, more: int, seed: int) -> None:
    N = n - 1 + more
    rows = simplex(n, N, generator(seed))
    wanted = N * (n * torch.eye(n, dtype=torch.float64) - 1) / (n - 1)
    assert (rows @ rows.T - wanted).abs().max() <= rounding(N, n) * N


@given(seeds)
def test_simplex_is_drawn(seed: int) -> None:
    """Two seeds give two positions: equal normal numbers have probability zero."""
    assert torch.equal(simplex(4, 9, generator(seed)), simplex(4, 9, generator(seed)))
    assert not torch.equal(simplex(4, 9, generator(seed)), simplex(4, 9, generator(seed + 1)))


@given(seeds, st.integers(1, 20), st.floats(-4, 4))
def test_interpolation_is_the_mixture_of_its_ends(seed: int, N: int, theta: float) -> None:
    g = generator(seed)
    u, v = signs((3, N), g), signs((3, N), g)
    mixture = math.cos(theta) * (u + v) / math.sqrt(2 * N) + math.sin(theta) * u * v / math.sqrt(N)
    assert (interpolated(u, v, theta) - mixture).abs().max() <= 8 * EPS
    assert torch.equal(interpolated(u, v, 0.0), additive(u, v))


@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_tensor_code_multiplies_overlaps(seed: int, n: int, m: int) -> None:
    g = generator(seed)
    u, v = signs((4, n), g), signs((5, m), g)
    z = table(tensor, u, v)
    wanted = (u @ u.T)[:, None, :, None] * (v @ v.T)[None, :, None, :] / (n * m)
    assert (torch.einsum("okn,pln->okpl", z, z) - wanted).abs().max() <= 4 * (n * m + 4) * EPS


@given(seeds, st.integers(1, 200))
def test_swapped_sign_codes_differ_in_a_binomial_number_of_places(seed: int, N: int) -> None:
    """Δ = (u − u') ⊙ (v − v') / √N, up to sign: ‖Δ‖² is 16/N times the number of places where both factors differ."""
    g = generator(seed)
    u, v = signs((2, N), g), signs((2, N), g)
    z = table(hadamard, u, v)
    change = z[0, 1] + z[1, 0] - z[0, 0] - z[1, 1]
    places = int(((u[0] != u[1]) & (v[0] != v[1])).sum())
    assert abs(change.square().sum() - 16 * places / N) <= 16 * (N + 8) * EPS


# Leakage.


@given(seeds, st.integers(2, 6), st.integers(2, 6), st.integers(1, 12))
def test_leakage_is_the_mean_of_the_overlaps(seed: int, M: int, K: int, N: int) -> None:
    """Two computations, by sums of codes and by the whole Gram matrix. Each adds at most (MK)² terms of size at most g."""
    z = gaussian((M, K, N), generator(seed))
    found, listed = leakage(z), overlaps(z)
    largest = float(z.square().sum(-1).max())
    for kind, value in found._asdict().items():
        assert abs(value - listed[kind].mean()) <= 8 * (M * K) ** 2 * (N + 8) * EPS * largest
    counts = [len(listed[kind]) for kind in Leakage._fields]
    assert counts == [M * K, M * math.comb(K, 2), K * math.comb(M, 2), M * K * (M - 1) * (K - 1) // 2]


@given(seeds, st.integers(2, 4), st.integers(2, 4))
def test_interaction_is_a_quarter_of_the_mean_square_change(seed: int, M: int, K: int) -> None:
    z = gaussian((M, K, 5), generator(seed))
    changes = [
        (z[o, a] + z[p, b] - z[o, b] - z[p, a]).square().sum()
        for o, p in combinations(range(M), 2)
        for a, b in combinations(range(K), 2)
    ]
    assert abs(leakage(z).interaction - sum(changes) / len(changes) / 4) <= 2000 * EPS * float(z.square().sum())


@given(seeds)
@settings(max_examples=5)
def test_random_sign_codes_leak_little(seed: int) -> None:
    """Hoeffding and a union over 780 + 780 distinct overlaps: one is above √(2 ln(2·1560·10⁹)/N) with probability <= 1e-9."""
    g = generator(seed)
    N = 4096
    u, v = signs((40, N), g), signs((40, N), g)
    z = table(hadamard, u, v)
    assert torch.equal(z.square().sum(-1), torch.ones(40, 40, dtype=torch.float64))
    bound = math.sqrt(2 * math.log(2 * 1560 * 1e9) / N)
    partial = overlaps(z)
    assert float(torch.cat([partial["object"], partial["attribute"]]).abs().max()) <= bound


# Margins.


@given(seeds, st.integers(1, 6), st.integers(0, 4), st.integers(0, 4))
def test_draws_hold_distinct_objects_attributes_and_a_spare_atom(seed: int, k: int, more: int, other: int) -> None:
    M, K = k + 1 + more, k + 1 + other
    d = draw(5, k, M, K, generator(seed))
    assert d.k == k
    for rows, n in ((d.objects, M), (d.attributes, K)):
        assert rows.shape == (5, k + 1)
        assert all(len(set(row)) == k + 1 and set(row) <= set(range(n)) for row in rows.tolist())


def test_draws_are_uniform_and_independent() -> None:
    """Two of three objects and attributes, in order: 36 equally likely scenes. Hoeffding and a union, 1e-9 in all."""
    n = 100_000
    d = draw(n, 2, 3, 3, generator(0))
    scenes, counts = torch.cat([d.objects[:, :2], d.attributes[:, :2]], dim=1).unique(dim=0, return_counts=True)
    assert len(scenes) == 36
    assert (counts / n - 1 / 36).abs().max() <= math.sqrt(math.log(2 * 36 * 1e9) / (2 * n))


def test_additive_codes_swap_to_the_same_caption_exactly() -> None:
    """In integers, for every object and attribute code, with repeated attributes too: the margin is exactly zero."""

    @given(seeds, st.integers(2, 7), st.integers(1, 9), st.integers(1, 10**6))
    def law(seed: int, k: int, N: int, size: int) -> None:
        g = generator(seed)
        u, v = (torch.randint(-size, size + 1, (9, N), generator=g).double() for _ in range(2))
        u[:, 0] = 1
        v[:, 0] = 0
        d = draw(3, k, 9, 9, g)
        attributes = d.attributes.clone()
        attributes[:, -2] = attributes[:, 0]
        if k > 2:
            d = Draws(d.objects, attributes)
        assert torch.equal(margins(["swap"], lambda a, b: a + b, u, v, d)["swap"], torch.zeros(3, dtype=torch.float64))

    law()


@given(seeds, st.integers(2, 5))
def test_additive_codes_lose_only_the_swap(seed: int, k: int) -> None:
    u, v = walsh(6, 6)
    found = margins(EDITS, additive, u, v, draw(4, k, 6, 6, generator(seed)))
    wanted = {"swap": 0.0, "replace": 1 / k, "replace_attribute": 1 / (2 * k), "replace_object": 1 / (2 * k)}
    wanted["add"] = 1 - math.sqrt(k / (k + 1))
    for edit in EDITS:
        assert (found[edit] - wanted[edit]).abs().max() <= rounding(u.shape[1], k)


@given(seeds, st.integers(2, 7))
def test_walsh_codes_sit_on_the_lines_exactly(seed: int, k: int) -> None:
    """In integers: swap 2/k, replace 1/k, and cos² = k/(k + 1) for the added atom."""
    u, v = (rows.long() for rows in walsh(8, 8))
    N = u.shape[1]
    d = draw(1, k, 8, 8, generator(seed))
    o, a = d.objects[0], d.attributes[0]

    def pooled(objects: Tensor, attributes: Tensor) -> Tensor:
        return (u[objects] * v[attributes]).sum(0)

    def inner(x: Tensor, y: Tensor) -> int:
        return int((x * y).sum())

    scene = pooled(o[:-1], a[:-1])
    swapped = pooled(o[:-1], torch.cat([a[[1, 0]], a[2:-1]]))
    replaced = pooled(o[1:], a[1:])
    added = pooled(o, a)
    assert inner(scene, scene) == inner(swapped, swapped) == inner(replaced, replaced) == k * N
    assert 1 - Fraction(inner(scene, swapped), k * N) == Fraction(2, k)
    assert 1 - Fraction(inner(scene, replaced), k * N) == Fraction(1, k)
    assert Fraction(inner(scene, added) ** 2, k * N * inner(added, added)) == Fraction(k, k + 1)


@given(seeds, edits, st.integers(2, 5), st.floats(0, math.pi))
def test_interpolated_walsh_codes_sit_on_the_closed_form(seed: int, edit: str, k: int, theta: float) -> None:
    """Leakages cos² θ / 2, none between atoms that share nothing: the swap margin is 2 sin² θ / k."""
    u, v = walsh(6, 7)
    found = margins([edit], lambda a, b: interpolated(a, b, theta), u, v, draw(3, k, 6, 7, generator(seed)))[edit]
    half = math.cos(theta) ** 2 / 2
    assert (found - predicted(edit, k, Leakage(1.0, half, half, 0.0))).abs().max() <= rounding(u.shape[1], k)
    if edit == "swap":
        assert (found - 2 * math.sin(theta) ** 2 / k).abs().max() <= rounding(u.shape[1], k)


@given(
    seeds,
    edits,
    st.integers(3, 6),
    st.integers(3, 6),
    st.tuples(*[st.floats(0.2, 1)] * 4),
    st.integers(1, 5),
)
def test_closed_forms_hold_for_every_homogeneous_code(
    seed: int, edit: str, M: int, K: int, weights: tuple[float, ...], k: int
) -> None:
    """With leakage of all three kinds, ℓ_0 included. ``pooled_square`` can be small, so its inverse scales the rounding."""
    k = max(least(edit), min(k, M - 1, K - 1))
    u, v, bind, leak = homogeneous(M, K, weights, seed)
    found = margins([edit], bind, u, v, draw(3, k, M, K, generator(seed)))[edit]
    scale = k**2 / min(1.0, pooled_square(k, leak))
    assert (found - predicted(edit, k, leak)).abs().max() <= scale * rounding((M + 2) * (K + 3), k)
    measured = leakage(table(bind, u, v))
    assert all(abs(x - y) <= rounding(M * K * 60, k) for x, y in zip(measured, leak, strict=True))


@given(seeds, st.integers(2, 5), st.integers(1, 6))
def test_swap_margin_of_any_code_is_its_change_and_its_lengths(seed: int, k: int, N: int) -> None:
    """M = (‖Δ‖² − (n − n')²) / (2 n n'), a numpy computation that knows nothing of leakage; codes are arbitrary."""
    z = gaussian((6, 6, N), generator(seed))
    d = draw(4, k, 6, 6, generator(seed))
    o, a = d.objects.numpy(), d.attributes.numpy()
    index = torch.arange(6, dtype=torch.float64)[:, None]

    def bind(x: Tensor, y: Tensor) -> Tensor:
        return z[x[..., 0].long(), y[..., 0].long()]

    found = margins(["swap"], bind, index, index, d)["swap"].numpy()
    for row in range(4):
        T = z.numpy()[o[row, :k], a[row, :k]].sum(0)
        mixed = np.r_[a[row, 1], a[row, 0], a[row, 2:k]]
        other = z.numpy()[o[row, :k], mixed].sum(0)
        n, m = np.linalg.norm(T), np.linalg.norm(other)
        wanted = (((T - other) ** 2).sum() - (n - m) ** 2) / (2 * n * m)
        size = np.linalg.norm(z.numpy()[o[row, :k], a[row, :k]], axis=-1).sum() + n + m
        assert abs(found[row] - wanted) <= (1 + size / min(n, m)) ** 2 * rounding(N, k)
        assert found[row] >= -rounding(N, k)


@given(seeds, st.integers(2, 5), st.floats(0.05, math.pi / 2 - 0.05))
def test_mixing_angle_reads_the_angle_off_two_captions(seed: int, k: int, theta: float) -> None:
    """θ comes back from d alone. Away from the ends, d² = 2 M errs by the rounding of M, and dθ/dM = k / (4 sin θ cos θ).

    At the end a sine that is three roundings off has an angle off by at most √(6 ε).
    """
    u, v = walsh(6, 6)
    margin = margins(["swap"], lambda a, b: interpolated(a, b, theta), u, v, draw(1, k, 6, 6, generator(seed)))["swap"]
    found = mixing_angle(math.sqrt(2 * float(margin[0])), k)
    assert abs(found - theta) <= k / (math.sin(theta) * math.cos(theta)) * rounding(u.shape[1], k)
    assert (mixing_angle(0.0, k), mixing_angle(2 / math.sqrt(k), k)) == (
        0.0,
        pytest.approx(math.pi / 2, rel=0, abs=math.sqrt(6 * EPS)),
    )


@given(seeds, st.integers(3, 6), st.floats(0.1, 1.5), st.integers(1, 4))
def test_repeated_attributes_lengthen_the_caption(seed: int, k: int, theta: float, groups: int) -> None:
    """R ordered pairs of atoms with one attribute: ‖Σ z‖² = k + ℓ_a R, and the swap margin is 2 κ over it."""
    u, v = walsh(7, 7)
    d = draw(1, k, 7, 7, generator(seed))
    attributes = d.attributes % (groups + 1)
    attributes[0, :2] = torch.tensor([0, 1])
    half = math.cos(theta) ** 2 / 2
    counts = torch.bincount(attributes[0, :k])
    square = k + half * int((counts * (counts - 1)).sum())
    found = margins(["swap"], lambda a, b: interpolated(a, b, theta), u, v, Draws(d.objects, attributes))["swap"]
    assert abs(float(found[0]) - 2 * math.sin(theta) ** 2 / square) <= rounding(u.shape[1], k)


@given(seeds, edits, st.integers(2, 6))
def test_margins_do_not_depend_on_the_order_of_atoms(seed: int, edit: str, k: int) -> None:
    g = generator(seed)
    N = 32
    u, v = signs((8, N), g) + 0.1, signs((8, N), g) - 0.2
    d = draw(3, k, 8, 8, g)
    rest = 2 + torch.randperm(k - 2, generator=g)
    front = torch.tensor([1, 0] if edit == "swap" else [0, 1])
    order = torch.cat([front, rest, torch.tensor([k])])
    moved = Draws(d.objects[:, order], d.attributes[:, order])
    before, after = (margins([edit], hadamard, u, v, x)[edit] for x in (d, moved))
    assert (before - after).abs().max() <= 10 * rounding(N, k)


@given(seeds, edits, st.integers(2, 6))
def test_margins_do_not_depend_on_signs_or_places_of_coordinates(seed: int, edit: str, k: int) -> None:
    """Flip or permute coordinates of one factor table and, for additive codes, of both: no inner product of two atoms changes."""
    g = generator(seed)
    N = 64
    u, v, flips, places = signs((8, N), g), signs((8, N), g), signs((N,), g), torch.randperm(N, generator=g)
    d = draw(3, k, 8, 8, g)
    before = margins([edit], hadamard, u, v, d)[edit]
    for other in ((u * flips, v), (u, v * flips), (u[:, places], v[:, places]), (-u, v)):
        assert (before - margins([edit], hadamard, *other, d)[edit]).abs().max() <= rounding(N, k)
    rotation = torch.linalg.qr(gaussian((N, N), g)).Q
    added, turned = (margins([edit], additive, *pair, d)[edit] for pair in ((u, v), (u @ rotation, v @ rotation)))
    assert (added - turned).abs().max() <= 4 * N * rounding(N, k)


@given(seeds, edits, st.integers(2, 6), st.sampled_from([16, 64, 256]))
def test_torchhd_and_plain_numpy_agree(seed: int, edit: str, k: int, N: int) -> None:
    """Bind is ⊙ and bundle is + in torchhd's MAP algebra; the second program is numpy alone. Their sums of signs are exact."""
    g = generator(seed)
    u, v = signs((9, N), g), signs((9, N), g)
    d = draw(1, k, 9, 9, g)
    o, a = d.objects[0].tolist(), d.attributes[0].tolist()
    atoms = list(zip(o[:k], a[:k], strict=True))
    other = {
        "swap": [(o[0], a[1]), (o[1], a[0]), *atoms[2:]],
        "replace": [(o[k], a[k]), *atoms[1:]],
        "replace_attribute": [(o[0], a[k]), *atoms[1:]],
        "replace_object": [(o[k], a[0]), *atoms[1:]],
        "add": [*atoms, (o[k], a[k])],
    }[edit]
    hu, hv = (torchhd.ensure_vsa_tensor(x, "MAP") for x in (u, v))
    captions = [torchhd.multiset(torch.stack([torchhd.bind(hu[i], hv[j]) for i, j in scene])) for scene in (atoms, other)]
    lengths = [math.sqrt(float((c * c).sum())) for c in captions]
    inner = [np.sum([u[i].numpy() * v[j].numpy() for i, j in scene], axis=0) for scene in (atoms, other)]
    if min(lengths) == 0:
        return
    hd = 1 - float(torchhd.dot_similarity(captions[0], captions[1])) / math.prod(lengths)
    plain = 1 - inner[0] @ inner[1] / math.sqrt((inner[0] @ inner[0]) * (inner[1] @ inner[1]))
    found = float(margins([edit], hadamard, u, v, d)[edit])
    assert abs(found - plain) <= rounding(N, k)
    assert abs(found - hd) <= rounding(N, k)


def test_portions_do_not_change_the_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each scene is summed on its own, so portions change nothing but the order of work."""
    g = generator(0)
    u, v = signs((9, 256), g), signs((9, 256), g)
    d = draw(50, 4, 9, 9, g)
    whole = margins(EDITS, hadamard, u, v, d)
    monkeypatch.setenv("BINDING_MEMORY_MB", "0.2")
    parts = margins(EDITS, hadamard, u, v, d)
    assert all((whole[edit] - parts[edit]).abs().max() <= rounding(256, 4) for edit in EDITS)
    assert whole["swap"].shape == (50,)


# The spread over random signs.


def moments(edit: str, k: int) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Means and covariances of (T_n², T_n T'_n, T'_n²) at one coordinate, from all signs of k + 1 objects and attributes."""
    n = k + 1
    sums = np.zeros(3, dtype=np.int64)
    squares = np.zeros((3, 3), dtype=np.int64)
    for u in product((-1, 1), repeat=n):
        w = np.array(list(product((-1, 1), repeat=n)))
        z = w * np.array(u)
        T = z[:, :k].sum(1)
        new = {
            "swap": lambda u=u, w=w, z=z, T=T: T - z[:, 0] - z[:, 1] + u[0] * w[:, 1] + u[1] * w[:, 0],
            "replace": lambda z=z, T=T: T - z[:, 0] + z[:, k],
            "replace_attribute": lambda u=u, w=w, z=z, T=T: T - z[:, 0] + u[0] * w[:, k],
            "replace_object": lambda u=u, w=w, z=z, T=T: T - z[:, 0] + u[k] * w[:, 0],
            "add": lambda z=z, T=T: T + z[:, k],
        }[edit]()
        x = np.stack([T * T, T * new, new * new])
        sums += x.sum(1)
        squares += x @ x.T
    count = 4**n
    mean = [Fraction(int(s), count) for s in sums]
    return mean, [[Fraction(int(squares[i, j]), count) - mean[i] * mean[j] for j in range(3)] for i in range(3)]


@pytest.mark.parametrize(("edit", "k"), [(edit, k) for edit in EDITS for k in range(least(edit), 6)])
def test_spread_and_bias_follow_from_all_sign_patterns(edit: str, k: int) -> None:
    """A margin is 1 − B/√(AC) for means A, B, C over N independent coordinates: the delta method, with exact rational moments.

    Exact up to the factor B/√(AC), which is a root for "add": ten roundings there and in the closed forms.
    """
    (A, B, C), cov = moments(edit, k)
    gradient = [Fraction(-1, 2) / A, 1 / B if B else None, Fraction(-1, 2) / C]
    if B == 0:
        # Nothing is kept: the cosine is B/√(AC) around 0.
        scale = 1 / math.sqrt(A * C)
        variance, second = cov[1][1], -Fraction(1, 2) * cov[0][1] / A - Fraction(1, 2) * cov[1][2] / C
    else:
        scale = float(B) / math.sqrt(A * C)
        variance = sum(gradient[i] * gradient[j] * cov[i][j] for i in range(3) for j in range(3))
        curved = [Fraction(3, 4) / A**2, Fraction(0), Fraction(3, 4) / C**2]
        second = sum(curved[i] * cov[i][i] for i in range(3)) / 2
        second += sum(gradient[i] * gradient[j] * cov[i][j] for i, j in combinations(range(3), 2))
    N = 100
    assert abs(deviation(edit, k, N) - scale * math.sqrt(variance / N)) <= 10 * EPS
    assert abs(bias(edit, k, N) + scale * float(second) / N) <= 10 * EPS
    assert abs(1 - scale * (B != 0) - predicted(edit, k, NONE)) <= 10 * EPS


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("k", [2, 5])
def test_spread_and_mean_of_independent_scenes(edit: str, k: int) -> None:
    """Normal to first order: the mean is off by over 6.2 σ/√n, a sample's σ by 6.2/√(2n), with probability below 1e-9.

    What the first order leaves out is O(1/N) of σ and of the mean's shift; 8/N covers it at N = 1,024.
    """
    N, scenes = 1024, 1200
    found = fresh(edit, k, N, scenes, generator(5))
    σ = deviation(edit, k, N)
    assert abs(float(found.std()) / σ - 1) <= 6.2 / math.sqrt(2 * scenes) + 8 / N
    mean = predicted(edit, k, NONE) + bias(edit, k, N)
    assert abs(float(found.mean()) - mean) <= 6.2 * σ / math.sqrt(scenes) + 8 / N * σ


# The ceiling and the best image.


def every_swap(z: Tensor, k: int) -> Tensor:
    """Swap margins of all scenes of k distinct objects and attributes, for a table (M, K, N) of arbitrary codes."""
    M, K, _ = z.shape
    scenes = [(o, a) for o in permutations(range(M), k) for a in permutations(range(K), k)]
    o, a = (torch.tensor([s[i] for s in scenes]) for i in range(2))
    pooled = z[o, a].sum(1)
    change = z[o[:, 0], a[:, 1]] + z[o[:, 1], a[:, 0]] - z[o[:, 0], a[:, 0]] - z[o[:, 1], a[:, 1]]
    return edit_margin(pooled, change)


@given(seeds, st.sampled_from([(3, 3, 3), (3, 4, 3), (4, 4, 3), (4, 4, 4)]), st.floats(1e-3, 3))
@settings(max_examples=30)
def test_no_code_beats_the_ceiling(seed: int, size: tuple[int, int, int], noise: float) -> None:
    """Codes near the two simplices, where the ceiling is reached, and far from them: the smallest margin is never above it."""
    M, K, k = size
    g = generator(seed)
    z = table(tensor, simplex(M, M - 1, g), simplex(K, K - 1, g))
    z = z + noise * gaussian(z.shape, g) / math.sqrt(z.shape[-1])
    z = z / z.norm(dim=-1, keepdim=True)
    assert float(every_swap(z, k).min()) <= ceiling(k, M, K) + rounding(z.shape[-1], k)


@given(seeds, st.integers(2, 5), st.integers(2, 5), st.integers(2, 5))
def test_two_simplices_reach_the_ceiling(seed: int, M: int, K: int, k: int) -> None:
    k = min(k, M, K)
    g = generator(seed)
    u, v = simplex(M, M - 1, g), simplex(K, K - 1, g)
    leak = leakage(table(tensor, u, v))
    assert abs(swap_margin(k, leak) - ceiling(k, M, K)) <= rounding(M * K * 10, k)
    if k < min(M, K):
        found = margins(["swap"], tensor, u, v, draw(3, k, M, K, g))["swap"]
        assert (found - ceiling(k, M, K)).abs().max() <= rounding(M * K, k)


def test_two_atoms_of_unequal_length_can_beat_the_ceiling() -> None:
    """At k = 2 the theorem needs equal lengths: cube roots of unity at (o + a) mod 3 turn every caption into its opposite."""
    turn = 2 * math.pi / 3 * (torch.arange(3)[:, None] + torch.arange(3)).double()
    found = every_swap(torch.stack([turn.cos(), turn.sin()], dim=-1), 2)
    assert (found - 2).abs().max() <= rounding(2, 2)
    assert ceiling(2, 3, 3) < 2


@given(st.integers(3, 9), st.integers(0, 9), st.integers(0, 9))
def test_ceiling_is_between_two_over_k_and_one(k: int, more: int, other: int) -> None:
    """What the proof for k ≥ 3 uses, in exact arithmetic, and that orthogonal codes lose little."""
    M, K = k + more, k + other
    value = Fraction(2 * M * K, k * ((M - 1) * (K - 1) + k - 1))
    assert Fraction(2, k) < value <= 1
    assert abs(ceiling(k, M, K) - value) <= EPS


@given(seeds, st.integers(3, 5), st.integers(2, 5), st.tuples(*[st.floats(0.2, 1)] * 4))
@settings(max_examples=40)
def test_best_image_is_the_nearest_point_of_the_hull_of_differences(
    seed: int, M: int, k: int, weights: tuple[float, ...]
) -> None:
    """max over images of the smallest margin = distance of 0 to the hull of t − t'; nnls knows nothing of the closed form.

    nnls stops at a residual of 10 √ε; a nearest point is found to its square, times the inverse of the distance squared.
    """
    k = min(k, M)
    u, v, bind, leak = homogeneous(M, M, weights, seed)
    z = table(bind, u, v)[:k, :k]
    pooled = z.diagonal(dim1=0, dim2=1).sum(-1)
    n = pooled.norm()
    pairs = list(combinations(range(k), 2))
    differences = torch.stack([z[i, i] + z[j, j] - z[i, j] - z[j, i] for i, j in pairs]) / n
    measured = differences @ best_image(z)
    wanted = best_image_margin(k, leak)
    slack = 100 * rounding(z.shape[-1], k) / min(1.0, float(n))
    assert (measured - wanted).abs().max() <= slack
    lifted = np.vstack([differences.numpy().T, np.ones(len(pairs))])
    weight = nnls(lifted, np.r_[np.zeros(len(lifted) - 1), 1.0])[0]
    assert abs(np.linalg.norm(weight @ differences.numpy()) / weight.sum() - wanted) <= 1e-7 / wanted**2
    assert wanted >= swap_margin(k, leak) - slack


# Bad input.

U, V = walsh(4, 4)
ROWS = torch.tensor([[0, 1, 2]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw(0, 2, 4, 4, generator(0)), "scenes = 0"),
        (lambda: draw(3, 0, 4, 4, generator(0)), "k = 0"),
        (lambda: draw(3, 4, 4, 9, generator(0)), "k = 4 atoms .* M = 4"),
        (lambda: draw(3, 4, 9, 4, generator(0)), "K = 4"),
        (lambda: Draws(ROWS, ROWS[:, :2]), r"\(1, 2\)"),
        (lambda: Draws(ROWS[0], ROWS[0]), r"\(3,\)"),
        (lambda: Draws(ROWS[:, :1], ROWS[:, :1]), r"\(1, 1\)"),
        (lambda: Draws(torch.tensor([[0, 1, 0]]), ROWS), r"scene 0 names an object twice: \[0, 1, 0\]"),
        (lambda: Draws(torch.tensor([[0, 1, 2], [2, 1, 2]]), ROWS[[0, 0]]), "scene 1 names an object twice"),
        (lambda: additive(U, V[:, :3]), "dimension 64, attribute codes 3"),
        (lambda: hadamard(U[:, :0], V[:, :0]), "N = 0"),
        (lambda: interpolated(U, V, math.nan), "theta = nan"),
        (lambda: tensor(U[:, :0], V), "dimensions are 0 and 64"),
        (lambda: walsh(0, 3), "M = 0"),
        (lambda: walsh(3, 0), "K = 0"),
        (lambda: simplex(1, 3, generator(0)), "n = 1"),
        (lambda: simplex(5, 3, generator(0)), "N = 3"),
        (lambda: leakage(U), r"shape \(4, 64\)"),
        (lambda: overlaps(table(hadamard, U[:1], V)), r"shape \(1, 4, 64\)"),
        (lambda: edit_margin(torch.zeros(3), torch.ones(3)), "the caption is zero"),
        (lambda: edit_margin(torch.ones(3), -torch.ones(3)), "the edited caption is zero"),
        (lambda: margins(["shuffle"], hadamard, U, V, Draws(ROWS, ROWS)), "no edit 'shuffle'"),
        (lambda: margins(["swap"], hadamard, U, V, Draws(ROWS[:, :2], ROWS[:, :2])), "k >= 2 atoms, got k = 1"),
        (lambda: margins(["add"], hadamard, U[:2], V, Draws(ROWS, ROWS)), "object 2"),
        (lambda: margins(["add"], hadamard, U, V, Draws(ROWS, ROWS - 1)), "attribute -1"),
        (lambda: margins(["swap"], hadamard, U, V, Draws(ROWS, torch.tensor([[3, 3, 1]]))), "swaps attribute 3 for itself"),
        (
            lambda: margins(["swap"], hadamard, U, V, Draws(ROWS[[0, 0]], torch.tensor([[0, 1, 2], [3, 3, 1]]))),
            "scene 1 swaps attribute 3",
        ),
        (lambda: pooled_square(0, NONE), "k = 0"),
        (lambda: pooled_square(3, Leakage(1, 0, 0, -0.5)), "k = 3"),
        (lambda: swap_margin(1, NONE), "k = 1"),
        (lambda: replace_margin(2, NONE, "colour"), "keeps is 'colour'"),
        (lambda: predicted("shuffle", 2, NONE), "no edit 'shuffle'"),
        (lambda: deviation("swap", 1, 9), "k = 1"),
        (lambda: deviation("add", 2, 0), "N = 0"),
        (lambda: bias("replace", 0, 9), "k = 0"),
        (lambda: bias("replace", 1, 0), "N = 0"),
        (lambda: ceiling(1, 4, 4), "k = 1"),
        (lambda: ceiling(5, 9, 4), "K = 4"),
        (lambda: best_image(torch.ones(3, 2, 5)), r"shape \(3, 2, 5\)"),
        (lambda: best_image(torch.ones(1, 1, 5)), r"shape \(1, 1, 5\)"),
        (lambda: best_image(table(additive, U[:2], V[:2])), "additive"),
        (lambda: best_image_margin(1, NONE), "k = 1"),
        (lambda: mixing_angle(1.5, 2), r"distance 1.5 is outside \[0, 1.414\]"),
        (lambda: mixing_angle(-0.1, 2), "distance -0.1"),
        (lambda: mixing_angle(math.nan, 2), "distance nan"),
        (lambda: mixing_angle(0.1, 1), "k = 1"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_table_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINDING_MEMORY_MB", "0.001")
    with pytest.raises(ValueError, match="BINDING_MEMORY_MB"):
        overlaps(table(hadamard, U, V))
