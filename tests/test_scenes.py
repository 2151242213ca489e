"""Scenes: swaps are involutions, captions of s and σs name the same words, anchors cannot tell s from σs."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding.scenes import (
    Atom,
    Quartet,
    Scene,
    caption,
    families,
    order_variants,
    quartet,
    quartet_count,
    quartets,
    swaps,
    vocabulary,
    word_multiset,
    words,
)

ATTRIBUTE_FAMILIES = ("colour", "size", "material")
RELATION_FAMILIES = ("relation", "role")
TYPED = st.from_regex(r"[a-z0-9][a-z0-9'-]{0,7}", fullmatch=True)


@st.composite
def typed_quartets(draw: st.DrawFn, among: tuple[str, ...] = ATTRIBUTE_FAMILIES + RELATION_FAMILIES) -> Quartet:
    """A quartet of a drawn family from words that no list of ours holds."""
    family = draw(st.sampled_from(among))
    objects = draw(st.lists(TYPED, min_size=2, max_size=2, unique=True))
    size = 2 if family in ATTRIBUTE_FAMILIES else 1
    return quartet(family, *objects, *draw(st.lists(TYPED, min_size=size, max_size=size, unique=True)))


@st.composite
def scenes(draw: st.DrawFn, least: int = 1, most: int = 4) -> Scene:
    """A scene of typed words, attributes possibly equal."""
    objects = draw(st.lists(TYPED, min_size=least, max_size=most, unique=True))
    return Scene.of(*((name, draw(TYPED)) for name in objects))


def check_laws(made: Quartet) -> None:
    """What every quartet satisfies, whoever chose its words."""
    assert len({word_multiset(text) for text in made.captions}) == 1
    assert len({word_multiset(text) for text in made.plain}) == 1
    assert len(set(made.captions)) == 4
    assert len(set(made.plain)) == 2
    other = made.swapped()
    assert other.captions == (made.swap, made.swap_reorder, made.caption, made.reorder)
    assert other.plain == made.plain[::-1]
    assert other.scene == made.scene.swap(*made.objects) != made.scene
    assert other.anchors == made.anchors
    assert other.swapped() == made
    for anchor in made.anchors:
        named = made.objects if anchor.name == "no_attributes" else made.words
        assert not Counter(words(" ".join(named))) - Counter(words(anchor.text))


@given(typed_quartets())
def test_laws_hold_for_words_that_a_reader_types(made: Quartet) -> None:
    check_laws(made)


@pytest.mark.parametrize("family", families())
def test_laws_hold_for_the_vocabularies(family: str) -> None:
    drawn = quartets(family, 240, np.random.default_rng(0))
    assert len({frozenset({made.scene, made.swapped().scene}) for made in drawn}) == 240
    for made in drawn:
        check_laws(made)


@given(typed_quartets(ATTRIBUTE_FAMILIES))
def test_attribute_captions_are_those_of_the_scene(made: Quartet) -> None:
    """Two routes to the four captions: the sentences of the data file, and the scene's own order variants."""
    swapped = made.scene.swap(*made.objects)
    assert (made.caption, made.reorder) == order_variants(made.scene)
    assert (made.swap, made.swap_reorder) == order_variants(swapped)
    assert made.plain == (made.caption, made.swap)


@given(typed_quartets())
def test_anchors_do_not_depend_on_the_order_of_the_words(made: Quartet) -> None:
    first, second, *rest = made.words
    assert quartet(made.family, second, first, *reversed(rest)).anchors == made.anchors


def test_a_relation_is_a_scene_whose_attributes_are_roles() -> None:
    made = quartet("role", "dog", "cat", "chases")
    assert made.scene == Scene.of(("cat", "patient of 'chases'"), ("dog", "agent of 'chases'"))
    assert made.captions == (
        "it is the dog that chases the cat",
        "it is the cat that the dog chases",
        "it is the cat that chases the dog",
        "it is the dog that the cat chases",
    )
    assert made.plain == ("the dog chases the cat", "the cat chases the dog")


@given(scenes(), st.randoms(use_true_random=False))
def test_a_scene_is_a_set(scene: Scene, shuffler: random.Random) -> None:
    shuffled = Scene(tuple(shuffler.sample(scene.atoms, len(scene.atoms))))
    assert shuffled == scene
    assert hash(shuffled) == hash(scene)
    assert scene != Scene((*scene.atoms, Atom("an object of two words", "any")))
    assert scene != "a string"


@given(scenes())
def test_order_variants_are_the_k_factorial_orders(scene: Scene) -> None:
    variants = order_variants(scene)
    assert len(variants) == math.factorial(len(scene.atoms))
    assert variants[0] == caption(scene)
    assert {word_multiset(text) for text in variants} == {word_multiset(caption(scene))}


def test_order_variants_of_a_scene_read_differently() -> None:
    scene = Scene.of(("car", "red"), ("dog", "blue"), ("owl", "green"), ("hat", "red"))
    assert len(set(order_variants(scene))) == math.factorial(4)


@given(scenes(least=2))
def test_swaps_exchange_one_unequal_pair_and_undo_themselves(scene: Scene) -> None:
    unequal = [(x, y) for x, y in itertools.combinations(scene.atoms, 2) if x.attribute != y.attribute]
    found = swaps(scene)
    assert len(found) == len(set(found)) == len(unequal)
    for (x, y), swapped in zip(unequal, found, strict=True):
        assert swapped.swap(x.object, y.object) == swapped.swap(y.object, x.object) == scene
        assert set(scene.atoms) - set(swapped.atoms) == {x, y}
        assert word_multiset(caption(swapped)) == word_multiset(caption(scene))


def test_one_atom_has_no_swap() -> None:
    assert swaps(Scene.of(("car", "red"))) == ()


@given(st.lists(st.from_regex(r"[a-z0-9']+", fullmatch=True), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_word_multisets_forget_order_case_and_punctuation(tokens: list[str], shuffler: random.Random) -> None:
    shuffled = shuffler.sample(tokens, len(tokens))
    assert words("  ".join(tokens).upper()) == tuple(tokens)
    assert word_multiset(", ".join(shuffled)) == word_multiset(" ".join(tokens) + ".") == tuple(sorted(tokens))


def test_word_multisets_count() -> None:
    assert word_multiset("a cat") != word_multiset("a cat, a cat")


def test_a_hyphen_parts_words_and_an_apostrophe_does_not() -> None:
    assert words("An X-ray of the dog's tooth") == ("an", "x", "ray", "of", "the", "dog's", "tooth")


@pytest.mark.parametrize(
    ("word", "phrase"),
    [
        ("red", "a red car"),
        ("orange", "an orange car"),
        ("Orange", "an Orange car"),
        ("honest", "an honest car"),
        ("unicorn", "a unicorn car"),
        ("used", "a used car"),
        ("uncut", "an uncut car"),
        ("one-eyed", "a one-eyed car"),
        ("european", "a european car"),
        ("x-ray", "an x-ray car"),
        ("hot", "a hot car"),
    ],
)
def test_articles_follow_the_sound(word: str, phrase: str) -> None:
    assert caption(Scene.of(("car", word))) == phrase


@pytest.mark.parametrize("family", families())
def test_each_family_has_enough_quartets(family: str) -> None:
    assert quartet_count(family) >= 240


def test_quartet_count_agrees_with_an_enumeration_of_scenes() -> None:
    """C(m, 2) C(c, 2) against the set of all {s, σs}, made from ordered words; and drawing all of them draws each once."""
    lists = vocabulary()
    objects, sizes = lists["animals"] + lists["things"], lists["sizes"]
    found = {
        frozenset({scene := Scene.of((o, a), (p, b)), scene.swap(o, p)})
        for o, p in itertools.permutations(objects, 2)
        for a, b in itertools.permutations(sizes, 2)
    }
    drawn = quartets("size", quartet_count("size"), np.random.default_rng(1))
    assert quartet_count("size") == len(found)
    assert {frozenset({made.scene, made.swapped().scene}) for made in drawn} == found


def test_relation_count_is_pairs_times_relations() -> None:
    lists = vocabulary()
    assert quartet_count("role") == math.comb(len(lists["animals"] + lists["people"]), 2) * len(lists["verbs"])


def test_quartets_follow_their_generator() -> None:
    first, again, other = (quartets("colour", 20, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again != other


def test_quartets_draw_s_and_its_order_evenly() -> None:
    """Four orders of two objects and two attributes, a quarter each: Hoeffding, failure probability at most 1e-9."""
    n = 2000
    place = {word: index for index, word in enumerate(itertools.chain.from_iterable(vocabulary().values()))}
    drawn = quartets("colour", n, np.random.default_rng(5))
    seen = Counter(tuple(place[first] < place[second] for first, second in (made.words[:2], made.words[2:])) for made in drawn)
    slack = math.sqrt(n * math.log(2 * 4 / 1e-9) / 2)
    assert len(seen) == 4
    assert all(abs(count - n / 4) <= slack for count in seen.values())


def test_no_word_stands_in_two_lists() -> None:
    entries = Counter(word for entry in vocabulary().values() for word in entry)
    assert set(entries.values()) == {1}
    heads = Counter(words(entry)[0] for entry in entries)
    assert set(heads.values()) == {1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Scene(()), "has no atom"),
        (lambda: Scene.of(("car", "red"), ("car", "blue")), "'car' twice"),
        (lambda: Scene.of(("car", "red")).swap("car", "dog"), "one atom"),
        (lambda: Scene.of(("car", "red"), ("dog", "blue")).swap("car", "cat"), "no object 'cat'"),
        (lambda: Scene.of(("car", "red"), ("dog", "blue")).swap("dog", "dog"), "'dog' twice"),
        (lambda: Scene.of(("car", "red"), ("dog", "red")).swap("car", "dog"), "both 'red'"),
        (lambda: caption(Scene.of(("car", "red"), ("dog", "blue")), (0, 0)), r"\[0, 0\] is no permutation"),
        (lambda: words(""), "has no word"),
        (lambda: words("¿…?"), "has no word"),
        (lambda: quartet("shape", "car", "dog", "red", "blue"), "no family 'shape'; choose one of colour, size"),
        (lambda: quartets("shape", 1, np.random.default_rng(0)), "no family 'shape'"),
        (lambda: quartet("colour", "car", "dog", "red"), "takes 4 words .* got 3: car, dog, red"),
        (lambda: quartet("role", "dog", "cat", "chases", "sees"), "takes 3 words"),
        (lambda: quartet("colour", "car", " Car ", "red", "blue"), "two objects are both 'car'"),
        (lambda: quartet("colour", "car", "dog", "red", "RED"), "two attributes are both 'red'"),
        (lambda: quartet("colour", "car", "dog", "", "blue"), "the word '' must begin"),
        (lambda: quartet("relation", "cat", "mat", "größer"), "the word 'größer'"),
        (lambda: quartet("colour", "red car", "car", "blue", "blue red"), "read alike"),
        (lambda: quartets("role", 0, np.random.default_rng(0)), "between 1 and 2310, got 0"),
        (lambda: quartets("role", 2311, np.random.default_rng(0)), "between 1 and 2310, got 2311"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
