"""Structures are flattened and rebuilt."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.errors import TraceError
from adjit.tracer.pytree import LEAF, flatten, register_pytree_node, tree_map


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any = None
    hidden: Any = field(default=0, init=False)


class Custom:
    def __init__(self, items: list[Any], name: str) -> None:
        self.items, self.name = items, name


register_pytree_node(Custom, lambda c: (c.items, c.name), lambda name, items: Custom(list(items), name))

structures = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.builds(Layer, inner, inner)
    ),
    max_leaves=12,
)


@given(structures)
def test_round_trip(structure: Any) -> None:
    leaves, tree = flatten(structure)
    again = tree.unflatten(leaves)
    assert again == structure
    assert type(again) is type(structure)
    assert len(tree.paths()) == tree.leaves == len(leaves)
    same_leaves, same_tree = flatten(again)
    assert (same_leaves, same_tree, hash(same_tree)) == (leaves, tree, hash(tree))


def test_paths_are_how_python_spells_them() -> None:
    _, tree = flatten({"w": [1, (2,)], "n": None, "p": Pair(3, Layer(4, {0: 5}))})
    assert tree.paths() == ["['p'].left", "['p'].right.w", "['p'].right.b[0]", "['p'].right.hidden", "['w'][0]", "['w'][1][0]"]


def test_dicts_with_the_same_keys_have_one_structure() -> None:
    assert flatten({"b": 1, "a": 2}) == flatten({"a": 2, "b": 1})
    assert flatten({"b": 1, 3: 2})[0] == [1, 2]  # keys that do not compare keep their order


def test_kinds_of_dicts_are_kept() -> None:
    for d in (OrderedDict(a=1, b=2), defaultdict(list, a=1)):
        leaves, tree = flatten(d)
        again = tree.unflatten(leaves)
        assert type(again) is type(d)
        assert again == d
    again = flatten(defaultdict(list, a=1))[1].unflatten([1])
    assert again["new"] == []


def test_structures_that_differ_compare_so() -> None:
    trees = [flatten(s)[1] for s in ([1], (1,), [1, 2], {"a": 1}, {"b": 1}, None, 1, Pair(1, 2), (1, 2), Layer(1), [[1]])]
    assert len(set(trees)) == len(trees)
    assert flatten(7)[1] is LEAF


def test_registered_classes() -> None:
    leaves, tree = flatten([Custom([1, 2], "x"), 3])
    assert leaves == [1, 2, 3]
    again = tree.unflatten([10, 20, 30])
    assert (again[0].items, again[0].name, again[1]) == ([10, 20], "x", 30)
    assert tree != flatten([Custom([1, 2], "y"), 3])[1]
    with pytest.raises(TraceError, match="already"):
        register_pytree_node(Custom, lambda c: (c.items, c.name), lambda name, items: None)


def test_a_dataclass_of_the_users_may_be_registered_otherwise() -> None:
    @dataclass
    class Kept:
        x: Any
        label: str

    assert flatten(Kept(1, "a"))[0] == [1, "a"]
    register_pytree_node(Kept, lambda k: ((k.x,), k.label), lambda label, children: Kept(children[0], label))
    assert flatten(Kept(1, "a"))[0] == [1]


def test_deep_structures_do_not_recurse() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    leaves, tree = flatten(deep)
    assert leaves == [1]
    assert hash(tree) == hash(flatten(tree.unflatten(leaves))[1])
    while isinstance(deep, list):  # taken apart by hand: Python itself recurses when it frees or compares
        deep = deep[0]


def test_a_structure_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TraceError, match="contain itself"):
        flatten(loop)


def test_tree_map() -> None:
    assert tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]}) == {"x": 11, "y": [22]}
    with pytest.raises(TraceError, match="differ"):
        tree_map(lambda a, b: a, [1], (1,))


def test_the_number_of_leaves_is_checked() -> None:
    with pytest.raises(TraceError, match="takes 2 leaves, not 1"):
        flatten([1, 2])[1].unflatten([1])


def test_dicts_come_back_in_their_own_order() -> None:
    leaves, tree = flatten({"b": 1, "a": {"d": 2, "c": 3}})
    assert leaves == [3, 2, 1]
    out = tree.unflatten(leaves)
    assert list(out) == ["b", "a"]
    assert list(out["a"]) == ["d", "c"]
    other = flatten({"a": {"d": 2, "c": 3}, "b": 1})[1]
    assert tree == other
    assert hash(tree) == hash(other)
    assert not tree.same(other)
    assert flatten(out, in_order=True)[0] == [1, 2, 3]
