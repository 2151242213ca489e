"""Pictures of coloured shapes: what is drawn is what the code says, nothing leaks into the split, and covering is counted."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from binding import colourshape
from binding.colourshape import COLOURS, GROUND, SHAPES, Pictures, Piled, World, buckets, captions, draw, masks, split
from binding.information import Subsets, UpTo
from binding.numerics import generator
from binding.vision import ASTRIDE, RAGGED

seeds = st.integers(0, 10_000)
NEAR = World(step=3)


def sample(n: int = 20, seed: int = 0, k: int = 8, world: World | None = None) -> torch.Tensor:
    return Subsets((world or World()).groups, k).sample(n, generator(seed))


def held(code: torch.Tensor) -> list[int]:
    return code.nonzero()[:, 0].tolist()


@settings(max_examples=20)
@given(seeds)
def test_a_picture_shows_its_objects_and_nothing_else(seed: int) -> None:
    """Read back: cut the picture at its places and look every cell up among the stamps of all objects under all shifts."""
    codes, known = sample(5, seed), stamps()
    shown = draw(World(), codes, generator(seed))
    for picture, code in zip(shown.pixels, codes, strict=True):
        cells = [picture[:, y : y + 8, x : x + 8] for y, x in product(range(0, 32, 8), repeat=2)]
        found = [known[tuple(cell.flatten().tolist())] for cell in cells if (cell != GROUND).any()]
        assert sorted(found) == held(code)


def stamps() -> dict[tuple[float, ...], int]:
    palette, shapes, found = torch.tensor(list(COLOURS.values())), masks(7), {}
    for c, s, y, x in product(range(6), range(6), (0, 1), (0, 1)):
        cell = torch.full((3, 8, 8), GROUND)
        cell[:, y : y + 7, x : x + 7] = torch.where(shapes[s].bool(), palette[c][:, None, None], GROUND)
        found[tuple(cell.flatten().tolist())] = 6 * c + s
    assert len(found) == 36 * 4  # no two objects look alike, wherever they are moved to
    return found


@pytest.mark.parametrize("size", range(7, 43))
def test_shapes_differ_at_every_size_wherever_they_are(size: int) -> None:
    """Cut to what is drawn, no shape is another one, so no shift makes two of them alike."""
    shapes = masks(size).bool()
    cut = {str(shape[shape.any(1)][:, shape.any(0)].int().tolist()) for shape in shapes}
    assert len(cut) == len(SHAPES) == len(shapes)


def test_smaller_shapes_are_refused_because_some_are_alike() -> None:
    for size, twins in ((5, ("disc", "diamond")), (6, ("disc", "square"))):
        one, two = (masks(size)[SHAPES.index(name)] for name in twins)
        assert torch.equal(one, two)
        with pytest.raises(ValueError, match=f"size = {size}"):
            World(size=size)


@given(seeds)
def test_objects_astride_lie_on_several_patches_each_and_cover_nothing(seed: int) -> None:
    shown = draw(ASTRIDE, sample(4, seed), generator(seed))
    assert (shown.visible == 1).all()
    crosses = shown.objects % 6 == SHAPES.index("cross")  # a thin one, which leaves one of its four patches empty
    assert torch.equal((shown.on_patches(8) > 0).sum(2), 4 - crosses.long())


def test_ragged_objects_cover_nothing_and_meet_the_borders_in_many_ways() -> None:
    shown = draw(RAGGED, sample(300), generator(0))
    assert (shown.visible == 1).all()
    assert ((shown.on_patches(8) > 0).sum(2) > 1).double().mean() > 0.9
    squares = (shown.objects % 6 == SHAPES.index("square")).nonzero()
    tops = {int((shown.owner[row] == slot).any(1).int().argmax()) % 8 for row, slot in squares.tolist()}
    assert tops == {3, 4, 5, 6, 7}  # a square leaves out one row of its seven; two shifts of four places
    same = draw(ASTRIDE, sample(300), generator(0))
    squares = (same.objects % 6 == SHAPES.index("square")).nonzero()
    assert {int((same.owner[row] == slot).any(1).int().argmax()) % 8 for row, slot in squares.tolist()} == {5, 6}


@given(seeds, st.sampled_from([2, 3, 5, 8]))
def test_the_owner_of_a_pixel_gives_its_colour_and_later_objects_cover(seed: int, step: int) -> None:
    world, codes = World(step=step), sample(4, seed)
    shown = draw(world, codes, generator(seed))
    palette = torch.cat([torch.tensor(list(COLOURS.values())), torch.full((1, 3), GROUND)])
    for picture, owner, objects in zip(shown.pixels, shown.owner, shown.objects, strict=True):
        colour = torch.cat([objects // 6, torch.tensor([8])])
        assert torch.equal(picture, palette[colour[owner]].permute(2, 0, 1))
    # The last object is covered by none, and the visible pixels of all are the pixels that are not ground.
    assert (shown.visible[:, -1] == 1).all()
    area = masks(7).sum((1, 2))[shown.objects % 6]
    assert torch.equal((shown.visible * area).sum(1).round().long(), (shown.owner < 8).sum((1, 2)))


def test_objects_cover_each_other_only_when_they_are_near_and_more_the_nearer_they_are() -> None:
    codes = sample(300)
    covered = [1 - float(draw(World(step=step), codes, generator(1)).visible.mean()) for step in (8, 7, 6, 5, 4, 3, 2)]
    assert covered[0] == 0
    assert covered == sorted(covered)
    assert covered[-1] > 0.3


@given(seeds, st.integers(0, 4))
def test_piled_objects_stand_on_the_first_ones_and_on_nothing_else(seed: int, piled: int) -> None:
    shown = draw(Piled(piled=piled, jitter=0), sample(4, seed), generator(seed))
    free = torch.ones(8, dtype=torch.bool)
    free[:piled] = False
    assert (shown.visible[:, free] == 1).all()
    on = shown.on_patches(8) > 0
    for below in range(piled):
        stamp, top = masks(7)[shown.objects[:, below] % 6], masks(7)[shown.objects[:, 8 - piled + below] % 6]
        seen = (stamp * (1 - top)).sum((1, 2)) / stamp.sum((1, 2))
        assert torch.equal(shown.visible[:, below], seen)
        assert not (on[:, below] & ~on[:, 8 - piled + below]).any()


def test_a_world_of_no_piles_is_the_plain_one() -> None:
    one, two = (draw(world, sample(), generator(2)) for world in (World(), Piled()))
    assert torch.equal(one.pixels, two.pixels)


@given(seeds)
def test_patches_count_every_visible_pixel_once(seed: int) -> None:
    shown = draw(NEAR, sample(4, seed), generator(seed))
    for patch in (4, 8, 16):
        on = shown.on_patches(patch)
        assert on.shape == (4, 8, (32 // patch) ** 2)
        assert torch.equal(on.sum(2), torch.stack([(shown.owner == slot).sum((1, 2)) for slot in range(8)], dim=1))
    aligned = draw(World(), sample(4, seed), generator(seed)).on_patches(8)
    assert ((aligned > 0).sum(2) == 1).all()  # a place is a patch
    by_hand = shown.on_patches(8)[2, 3, 5]
    assert by_hand == (shown.owner[2, 8:16, 8:16] == 3).sum()


@given(seeds)
def test_scenes_of_different_sizes_are_drawn_together(seed: int) -> None:
    codes = UpTo((3, 3), 5).sample(12, generator(seed))
    codes[0], codes[1] = 0, torch.tensor([1] + [0] * 8)
    world = World(3, 3)
    shown = draw(world, codes, generator(seed))
    for code, objects, visible in zip(codes, shown.objects, shown.visible, strict=True):
        assert sorted(x for x in objects.tolist() if x >= 0) == held(code)
        assert torch.equal(visible > 0, objects >= 0)
    assert (shown.pixels[0] == GROUND).all()


@given(seeds)
def test_captions_name_the_objects_in_an_order_of_their_own(seed: int) -> None:
    codes = sample(6, seed)
    tokens = captions(World(), codes, generator(seed))
    assert tokens.shape == (6, 16)
    for row, code in zip(tokens.reshape(6, 8, 2), codes, strict=True):
        assert sorted(6 * (c - 1) + (s - 7) for c, s in row.tolist()) == held(code)


def test_a_caption_of_few_objects_is_filled_up() -> None:
    codes = torch.zeros(2, 9, dtype=torch.uint8)
    codes[0, 4], codes[1, :3] = 1, 1
    assert captions(World(3, 3), codes, generator(0))[0].tolist() == [2, 5, 0, 0, 0, 0]


def test_orders_and_places_are_fair() -> None:
    codes = torch.zeros(20_000, 36, dtype=torch.uint8)
    codes[:, [3, 20]] = 1
    first = (draw(World(), codes, generator(4)).objects[:, 0] == 3).double().mean()
    said = (captions(World(), codes, generator(4))[:, 0] == 1).double().mean()
    # Hoeffding: a mean of 20,000 fair coins is off by 0.024 with probability below 1e-9.
    assert abs(first - 0.5) <= 0.024
    assert abs(said - 0.5) <= 0.024
    on = draw(World(), codes, generator(5)).on_patches(8)[:, 0] > 0
    assert abs(on.double().mean(0) - 1 / 16).max() <= 0.024
    shown = draw(World(), codes, generator(6))
    crosses = (shown.owner == (shown.objects % 6 == SHAPES.index("cross")).int().argmax(1)[:, None, None]).any(2)
    assert abs((crosses.int().argmax(1) % 8).double().mean() - 0.5) <= 0.024  # a shift of 0 or of 1, with equal chances


@given(seeds)
def test_the_split_depends_on_the_code_alone(seed: int) -> None:
    codes = UpTo((2, 3), 6).sample(60, generator(seed))
    parts = split(codes)
    assert sorted(np.concatenate(parts).tolist()) == list(range(60))
    seen = [{tuple(codes[row].tolist()) for row in part} for part in parts]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    order = torch.randperm(60, generator=generator(seed))
    assert (buckets(codes)[order] == buckets(codes[order])).all()


def test_the_parts_of_the_split_have_their_sizes() -> None:
    parts = split(sample(20_000))
    # 20,000 codes into ten buckets: off by 0.024 with probability below 1e-9 (Hoeffding).
    for part, share in zip(parts, (0.7, 0.1, 0.2), strict=True):
        assert abs(len(part) / 20_000 - share) <= 0.024


@settings(max_examples=20)
@given(seeds)
def test_a_seed_draws_the_same_picture_again(seed: int) -> None:
    codes = sample(3, seed)
    one, two = (draw(NEAR, codes, generator(seed)) for _ in range(2))
    assert torch.equal(one.pixels, two.pixels)
    assert torch.equal(one.objects, two.objects)


def with_entry(value: float) -> torch.Tensor:
    codes = torch.zeros(2, 36)
    codes[1, 5] = value
    return codes


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: World(colours=9), "colours = 9"),
        (lambda: World(shapes=0), "shapes = 0"),
        (lambda: World(size=6), "size = 6"),
        (lambda: World(places=0), "places = 0"),
        (lambda: World(jitter=-1), "jitter = -1"),
        (lambda: Piled(piled=-1), "piled = -1"),
        (lambda: draw(Piled(piled=5), sample(2), generator(0)), "5 piles of two need 10 objects, the scenes have 8"),
        (lambda: World(step=9), "35 pixels, the picture has 32"),
        (lambda: draw(World(), torch.zeros(3, 9), generator(0)), r"\(3, 9\).*\(n, 36\)"),
        (lambda: draw(World(), torch.zeros(0, 36), generator(0)), "n >= 1"),
        (lambda: draw(World(), with_entry(0.5), generator(0)), "code 0.5 in row 1"),
        (lambda: draw(World(), torch.ones(1, 36), generator(0)), "36 objects does not fit on 16"),
        (lambda: captions(World(), with_entry(2), generator(0)), "code 2 in row 1"),
        (lambda: draw(World(), sample(2), generator(0)).on_patches(5), "patches of 5 pixels"),
        (lambda: colourshape.check_patch(32, 0), "patches of 0 pixels"),
    ],
)
def test_bad_input_is_named(call, names: str) -> None:
    with pytest.raises(ValueError, match=names):
        call()


def test_pictures_is_what_draw_gives() -> None:
    shown = draw(World(), sample(2), generator(0))
    assert isinstance(shown, Pictures)
    assert shown.pixels.dtype == torch.float32
    assert 0 <= float(shown.pixels.min()) and float(shown.pixels.max()) <= 1
