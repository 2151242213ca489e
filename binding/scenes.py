"""Scenes, their swaps, and the captions that name the same words in another pairing (L, Definitions B.1 to B.9).

The words and the sentences are data: ``binding/data/scenes.toml``.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

WORD = re.compile(r"[a-z0-9']+")


@dataclass(frozen=True)
class Atom:
    """An atom x = (o, a): one object with one attribute."""

    object: str
    attribute: str


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene s: a set of k ≥ 1 atoms with distinct objects; ``atoms`` is V(s) in the order of its caption.

    Two scenes with the same atoms are equal, whatever their order. Raises ``ValueError`` for no atom or an object named twice.

    >>> Scene.of(("car", "red"), ("dog", "blue")) == Scene.of(("dog", "blue"), ("car", "red"))
    True
    """

    atoms: tuple[Atom, ...]

    def __post_init__(self) -> None:
        objects = [atom.object for atom in self.atoms]
        twice = [name for name in objects if objects.count(name) > 1]
        if twice or not objects:
            problem = f"names the object {twice[0]!r} twice" if twice else "has no atom"
            raise ValueError(f"the scene {problem}; give one atom or more, each with an object of its own")

    @classmethod
    def of(cls, *pairs: tuple[str, str]) -> "Scene":
        """The scene of these (object, attribute) pairs."""
        return cls(tuple(Atom(*pair) for pair in pairs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and set(self.atoms) == set(other.atoms)

    def __hash__(self) -> int:
        return hash(frozenset(self.atoms))

    def swap(self, first: str, second: str) -> "Scene":
        """σs: the scene in which two objects have exchanged their attributes.

        Raises ``ValueError`` for a scene of one atom, an object that is not in the scene or is named twice, and equal
        attributes, where σs = s.

        >>> Scene.of(("car", "red"), ("dog", "blue")).swap("car", "dog").atoms
        (Atom(object='car', attribute='blue'), Atom(object='dog', attribute='red'))
        """
        attribute = {atom.object: atom.attribute for atom in self.atoms}
        if len(attribute) == 1:
            raise ValueError(f"a scene of one atom has no swap; add an object beside {self.atoms[0].object!r}")
        for name in (first, second):
            if name not in attribute:
                raise ValueError(f"no object {name!r} in the scene; it has {', '.join(attribute)}")
        if first == second:
            raise ValueError(f"a swap exchanges two objects, got {first!r} twice")
        if attribute[first] == attribute[second]:
            raise ValueError(f"{first!r} and {second!r} are both {attribute[first]!r}, so their swap is the scene itself")
        exchanged = attribute | {first: attribute[second], second: attribute[first]}
        return Scene.of(*exchanged.items())


def swaps(scene: Scene) -> tuple[Scene, ...]:
    """Every swap σs ≠ s of the scene: at most k(k − 1)/2, none for one atom."""
    pairs = itertools.combinations(scene.atoms, 2)
    return tuple(scene.swap(x.object, y.object) for x, y in pairs if x.attribute != y.attribute)


def caption(scene: Scene, order: Sequence[int] | None = None) -> str:
    """c(s): the caption that names the atoms in the given order, the scene's own unless given.

    Raises ``ValueError`` if ``order`` is no permutation of 0 … k − 1.

    >>> caption(Scene.of(("car", "red"), ("umbrella", "orange")), order=(1, 0))
    'an orange umbrella and a red car'
    """
    k = len(scene.atoms)
    order = range(k) if order is None else order
    if sorted(order) != list(range(k)):
        raise ValueError(f"order {list(order)} is no permutation of the positions 0 to {k - 1}")
    return " and ".join(_fill("a {a} {o}", {"o": scene.atoms[i].object, "a": scene.atoms[i].attribute}) for i in order)


def order_variants(scene: Scene) -> tuple[str, ...]:
    """C(s): the k! captions of the scene, one an order of its atoms, ``caption(scene)`` first."""
    return tuple(caption(scene, order) for order in itertools.permutations(range(len(scene.atoms))))


def words(caption: str) -> tuple[str, ...]:
    """The words of a caption in their order: lower-case runs of a–z, 0–9 and the apostrophe.

    Raises ``ValueError`` for a caption without a word.

    >>> words("On a mat, a cat.")
    ('on', 'a', 'mat', 'a', 'cat')
    """
    found = tuple(WORD.findall(caption.lower()))
    if not found:
        raise ValueError(f"the caption {caption!r} has no word; write it in letters a to z")
    return found


def word_multiset(caption: str) -> tuple[str, ...]:
    """The words of a caption in alphabetical order, each as often as it occurs: equal for c(s) and c(σs)."""
    return tuple(sorted(words(caption)))


class Anchor(NamedTuple):
    """A paraphrase that names the words of a scene and no pairing."""

    name: str
    text: str


@dataclass(frozen=True)
class Quartet:
    """The four captions of a scene s of two atoms and of its swap σs, in two orders each, and what s and σs share.

    In a relation ("a cat on a mat") the two roles are the attributes: the atoms are (cat, figure of 'on') and
    (mat, ground of 'on'), and the swap exchanges who has which role. Made by :func:`quartet`.
    """

    family: str
    words: tuple[str, ...]
    """The words it is made from: two objects, then two attributes or one relation."""
    attributes: tuple[str, str]
    """The attribute, or the role, of each object in s."""
    caption: str
    """c(s)."""
    reorder: str
    """The other order of c(s)."""
    swap: str
    """c(σs)."""
    swap_reorder: str
    """The other order of c(σs)."""
    plain: tuple[str, str]
    """The plainest sentences for s and σs; the first of each pair above, except where that is a cleft."""
    anchors: tuple[Anchor, ...]
    """Pairing-neutral anchors, the same for s and σs: words in alphabetical order, so their order tells no pairing."""

    @property
    def objects(self) -> tuple[str, str]:
        """The two objects."""
        return self.words[0], self.words[1]

    @property
    def scene(self) -> Scene:
        """The scene s."""
        return Scene.of(*zip(self.objects, self.attributes, strict=True))

    @property
    def captions(self) -> tuple[str, str, str, str]:
        """c(s), its reorder, c(σs), its reorder."""
        return self.caption, self.reorder, self.swap, self.swap_reorder

    def swapped(self) -> "Quartet":
        """The quartet of σs: the same captions and anchors, with s and σs exchanged."""
        return quartet(self.family, *_exchange(self.words))


def families() -> tuple[str, ...]:
    """The names of the quartet families."""
    return tuple(_data()["family"])


def quartet(family: str, *words: str) -> Quartet:
    """The quartet of a family from words that a reader chose: two objects, then two attributes or one relation.

    Raises ``ValueError`` for an unknown family, the wrong number of words, a word that is not made of a–z, 0–9, ' and -,
    two equal objects or attributes, and words whose captions read alike.

    >>> quartet("colour", "car", "dog", "red", "blue").swap
    'a blue car and a red dog'
    >>> quartet("relation", "cat", "mat", "on").captions
    ('a cat on a mat', 'on a mat, a cat', 'a mat on a cat', 'on a cat, a mat')
    >>> quartet("role", "dog", "cat", "chases").reorder
    'it is the cat that the dog chases'
    """
    template = _template(family)
    attributes = _family(family).get("attributes")
    wanted = ("object", "object", *(("attribute",) * 2 if attributes else ("relation",)))
    if len(words) != len(wanted):
        raise ValueError(
            f"family {family!r} takes {len(wanted)} words ({', '.join(wanted)}), got {len(words)}: {', '.join(words)}"
        )
    words = tuple(_clean(word) for word in words)
    for kind, pair in (("objects", words[:2]), ("attributes", words[2:])):
        if len(pair) == 2 and pair[0] == pair[1]:
            raise ValueError(f"the two {kind} are both {pair[0]!r}; a swap needs two that differ")
    slots, other = _slots(words), _slots(_exchange(words))
    first, second = ("{a1}", "{a2}") if attributes else template["roles"]
    plain = template.get("plain", template["caption"])
    made = Quartet(
        family=family,
        words=words,
        attributes=(_fill(first, slots), _fill(second, slots)),
        caption=_fill(template["caption"], slots),
        reorder=_fill(template["reorder"], slots),
        swap=_fill(template["caption"], other),
        swap_reorder=_fill(template["reorder"], other),
        plain=(_fill(plain, slots), _fill(plain, other)),
        anchors=_anchors(template, words, attributes),
    )
    if len(set(made.captions)) < 4:
        raise ValueError(f"the words {', '.join(words)} give captions that read alike: {made.caption!r}; use other words")
    return made


def quartets(family: str, n: int, generator: np.random.Generator) -> tuple[Quartet, ...]:
    """n distinct quartets drawn evenly from the family's vocabulary, without replacement, each with a random s and order.

    Two quartets are the same if they share the pair {s, σs}. Raises ``ValueError`` for n < 1 or more than there are.
    """
    pairs, rest = _choices(family)
    total = len(pairs) * len(rest)
    if not 1 <= n <= total:
        raise ValueError(f"family {family!r} has {total} distinct quartets, so n must lie between 1 and {total}, got {n}")
    drawn = []
    for index in generator.choice(total, size=n, replace=False):
        objects, others = pairs[index // len(rest)], rest[index % len(rest)]
        drawn.append(quartet(family, *generator.permutation(objects).tolist(), *generator.permutation(others).tolist()))
    return tuple(drawn)


def quartet_count(family: str) -> int:
    """How many distinct quartets the vocabulary of a family makes: C(#objects, 2) times C(#attributes, 2) or #relations."""
    return math.prod(len(choice) for choice in _choices(family))


def vocabulary() -> dict[str, tuple[str, ...]]:
    """The word lists by name; no word stands in two of them."""
    return {name: tuple(entries) for name, entries in _data()["vocabulary"].items()}


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files("binding").joinpath("data/scenes.toml").read_text(encoding="utf-8"))


def _family(family: str) -> dict[str, Any]:
    if family not in families():
        raise ValueError(f"no family {family!r}; choose one of {', '.join(families())}")
    return _data()["family"][family]


def _template(family: str) -> dict[str, Any]:
    return _data()["template"][_family(family)["template"]]


def _choices(family: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The pairs of objects, and the pairs of attributes or the single relations."""
    entry, lists = _family(family), vocabulary()
    pairs = itertools.combinations(itertools.chain.from_iterable(lists[name] for name in entry["objects"]), 2)
    rest = itertools.combinations(lists[entry["attributes"]], 2) if "attributes" in entry else zip(lists[entry["relation"]])
    return list(pairs), list(rest)


def _exchange(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of σs: attributes exchanged; in a relation, objects exchanged, which is the same as exchanging their roles."""
    first, second, *rest = words
    return (first, second, *reversed(rest)) if len(rest) == 2 else (second, first, *rest)


def _slots(words: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(("o1", "o2", "a1", "a2") if len(words) == 4 else ("o1", "o2", "r"), words, strict=True))


def _anchors(template: dict[str, Any], words: tuple[str, ...], attributes: str | None) -> tuple[Anchor, ...]:
    slots = _slots((*sorted(words[:2]), *sorted(words[2:]))) | {"attributes": attributes or ""}
    return tuple(Anchor(name, _fill(text, slots)) for name, text in template["anchors"].items())


def _fill(template: str, slots: dict[str, str]) -> str:
    """The template with its slots filled and "a" turned into "an" where the next word wants it."""
    return re.sub(
        r"(\ba )?\{(\w+)\}", lambda slot: (f"{_article(slots[slot[2]])} " if slot[1] else "") + slots[slot[2]], template
    )


def _article(word: str) -> str:
    beginnings = _data()["article"]
    vowel = word.lower().startswith(tuple("aeiou")) and not word.lower().startswith(tuple(beginnings["a"]))
    return "an" if vowel or word.lower().startswith(tuple(beginnings["an"])) else "a"


def _clean(word: str) -> str:
    """The word in lower case with single spaces."""
    clean = " ".join(word.lower().split())
    if not re.fullmatch(r"[a-z0-9][a-z0-9' -]*", clean):
        raise ValueError(f"the word {word!r} must begin with a letter or digit and have only a-z, 0-9, ', - and spaces")
    return clean
