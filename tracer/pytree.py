"""Nested structures of arguments and results: flattened to leaves, and rebuilt from them.

    leaves, tree = flatten({"w": [x, y], "b": None})
    tree.paths()                    # ["['w'][0]", "['w'][1]"]
    tree.unflatten(leaves)

Nodes are lists, tuples, named tuples, dicts, dataclasses, None, and classes registered by `register_pytree_node`; anything else is a
leaf. The keys of a dict are sorted if possible, so that two dicts with the same keys have the same structure; a rebuilt dict has the order
of the one that was flattened, and an OrderedDict is another structure in another order. A `TreeDef` is stored flat: structures may nest as
deep as memory allows, and comparing or hashing one does not recurse.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from adjit.ir.errors import TraceError
from adjit.ir.records import NamedTuple

MAX_DEPTH = 100_000  # levels: a deeper structure is assumed to contain itself

Key: TypeAlias = tuple[str, Any]  # ("index", 3), ("key", "w") or ("field", "bias")


class NodeType(NamedTuple):
    """How instances of a node class are flattened and rebuilt."""

    flatten: Callable[[Any], tuple[Iterable[Any], Hashable]]
    unflatten: Callable[[type[Any], Any, Sequence[Any]], Any]
    keys: Callable[[Any, int], Sequence[Key]]


class TreeNode(NamedTuple):
    """One inner node of a TreeDef: its class, the data kept besides the children, and the number of children."""

    cls: type[Any]
    kept: Hashable
    arity: int

    def text(self, children: Sequence[str]) -> str:
        """The node as Python spells it, with the texts of its children: `{'w': *, 'b': *}`."""
        keys = node_type(self.cls).keys(self.kept, self.arity)
        if self.cls is type(None):
            return "None"
        if self.cls is tuple:
            return f"({', '.join(children)}{',' if len(children) == 1 else ''})"
        if self.cls is dict:
            return f"{{{', '.join(f'{key!r}: {child}' for (_, key), child in zip(keys, children, strict=True))}}}"
        if self.cls is list:
            return f"[{', '.join(children)}]"
        named = (f"{key}={child}" if how == "field" else child for (how, key), child in zip(keys, children, strict=True))
        return f"{self.cls.__name__}({', '.join(named)})"


class Keys(tuple[Any, ...]):
    """The sorted keys of a dict whose own order is `order`, which does not count in comparisons."""

    order: tuple[Any, ...]


class TreeDef:
    """The structure of flattened leaves: nodes in preorder, with None for each leaf. Immutable and hashable."""

    __slots__ = ("entries", "leaves", "_hash")

    def __init__(self, entries: Sequence[TreeNode | None]) -> None:
        self.entries = tuple(entries)
        self.leaves = self.entries.count(None)
        self._hash: int | None = None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Rebuild the structure with these leaves."""
        given = list(leaves)
        if len(given) != self.leaves:
            raise TraceError(f"the structure {self} takes {self.leaves} leaves, not {len(given)}")
        if self is LEAF:
            return given[0]
        stack: list[Any] = []
        for entry in reversed(self.entries):
            if entry is None:
                stack.append(given.pop())
            else:
                children = [stack.pop() for _ in range(entry.arity)]
                stack.append(node_type(entry.cls).unflatten(entry.cls, entry.kept, children))
        return stack[0]

    def key_paths(self) -> list[tuple[Key, ...]]:
        """Return the keys that lead to each leaf."""
        out: list[tuple[Key, ...]] = []
        stack: list[tuple[Key, ...]] = [()]
        for entry in self.entries:
            path = stack.pop()
            if entry is None:
                out.append(path)
            else:
                stack.extend((*path, key) for key in reversed(node_type(entry.cls).keys(entry.kept, entry.arity)))
        return out

    def paths(self) -> list[str]:
        """Return the path to each leaf as a Python expression: `['w'][0].bias`."""
        return [spelled(path) for path in self.key_paths()]

    def with_order(self) -> TreeDef:
        """The same structure, which equals only those whose dicts have the keys in the same order."""
        return OrderedTree(self.entries) if any(len(key_order(e) or ()) > 1 for e in self.entries) else self

    def same(self, other: TreeDef) -> bool:
        """Whether both are equal, and their dicts have the keys in the same order."""
        return self == other and in_same_order(self, other)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TreeDef) and hash(self) == hash(other) and self.entries == other.entries)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.entries)
        return self._hash

    def __repr__(self) -> str:
        stack: list[str] = []
        for entry in reversed(self.entries):
            stack.append("*" if entry is None else entry.text([stack.pop() for _ in range(entry.arity)]))
        return f"TreeDef({', '.join(reversed(stack))})"


class OrderedTree(TreeDef):
    """A structure whose dicts have an order of keys that counts in comparisons."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TreeDef) and super().__eq__(other) and in_same_order(self, other))

    __hash__ = TreeDef.__hash__


LEAF = TreeDef([None])


def flatten(structure: Any, is_leaf: Callable[[Any], bool] | None = None, in_order: bool = False) -> tuple[list[Any], TreeDef]:
    """Return the leaves in order, and the structure that contained them. With `in_order`, keys of dicts are not sorted."""
    if is_leaf is None and find_node_type(type(structure)) is None:
        return [structure], LEAF
    leaves: list[Any] = []
    entries: list[TreeNode | None] = []
    stack: list[tuple[Any, int]] = [(structure, 0)]
    while stack:
        item, depth = stack.pop()
        kind = None if is_leaf is not None and is_leaf(item) else find_node_type(type(item))
        if kind is None:
            leaves.append(item)
            entries.append(None)
            continue
        if depth > MAX_DEPTH:
            raise TraceError(f"a structure nests deeper than {MAX_DEPTH} levels: it seems to contain itself")
        children, kept = flatten_dict(item, True) if in_order and kind is _DICT else kind.flatten(item)
        children = list(children)
        entries.append(TreeNode(type(item), kept, len(children)))
        stack.extend((child, depth + 1) for child in reversed(children))
    return leaves, (LEAF if entries == [None] else TreeDef(entries))


def tree_map(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Return the structure with `function` applied to each leaf (and to the corresponding leaves of `others`).

    >>> aj.tree_map(lambda w, g: w - 0.5 * g, {"w": [1.0, 2.0]}, {"w": [1.0, 1.0]})
    {'w': [0.5, 1.5]}
    """
    leaves, tree = flatten(structure)
    columns = [leaves]
    for other in others:
        more, its_tree = flatten(other)
        if its_tree != tree:
            raise TraceError(f"structures differ: {tree} and {its_tree}")
        columns.append(more)
    return tree.unflatten([function(*row) for row in zip(*columns, strict=True)])


def spelled(path: Sequence[Key]) -> str:
    """Return the path to a leaf, for messages: `['w'][0].bias`."""
    return "".join(f".{key}" if kind == "field" else f"[{key!r}]" for kind, key in path)


def dotted(path: Sequence[Key]) -> str:
    """Return the path to a leaf, for names of IR values: `.w.0.bias`."""
    return "".join(f".{''.join(c if c.isalnum() or c == '_' else '_' for c in str(key))}" for _, key in path)


# ---- node classes

_types: dict[type[Any], NodeType | None] = {}  # None: a leaf; only for classes that can never be registered as nodes later


def register_pytree_node(
    cls: type[Any], flatten: Callable[[Any], tuple[Iterable[Any], Hashable]], unflatten: Callable[[Any, Sequence[Any]], Any]
) -> None:
    """Register `cls` as a pytree node; returns None. `flatten(x)` returns children and hashable data, `unflatten(data, children)` x.

    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> aj.register_pytree_node(Point, lambda p: ((p.x, p.y), None), lambda _, children: Point(*children))
    >>> aj.grad(lambda p: p.x * p.y)(Point(2.0, 3.0)).x
    Tensor(3., f64[])
    """
    if _types.get(cls) not in (None, _NAMED_TUPLE, _DICT, _DATACLASS):
        raise TraceError(f"{cls.__name__} is already a pytree node")
    _types[cls] = NodeType(flatten, lambda _, kept, children: unflatten(kept, children), indices)


def find_node_type(cls: type[Any]) -> NodeType | None:
    """Return how instances of `cls` are flattened; None for leaves."""
    if cls in _types:
        return _types[cls]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        found = _NAMED_TUPLE
    elif issubclass(cls, dict):
        found = _DICT
    elif hasattr(cls, "__dataclass_fields__"):
        found = _DATACLASS
    else:
        return None
    _types[cls] = found
    return found


def add_leaf_class(cls: type[Any]) -> None:
    """Register `cls` as a class of leaves, which `flatten` then recognises without further checks."""
    _types[cls] = None


def node_type(cls: type[Any]) -> NodeType:
    found = find_node_type(cls)
    if found is None:
        raise TraceError(f"{cls.__name__} is not a pytree node")
    return found


def indices(kept: Any, arity: int) -> list[Key]:
    return [("index", i) for i in range(arity)]


def flatten_dict(d: dict[Any, Any], in_order: bool = False) -> tuple[list[Any], Hashable]:
    order = tuple(d)
    try:
        keys = order if in_order or isinstance(d, OrderedDict) else tuple(sorted(order))
    except TypeError:
        keys = order
    if keys != order:
        keys = Keys(keys)
        keys.order = order
    factory = d.default_factory if isinstance(d, defaultdict) else None
    return [d[k] for k in keys], (keys, factory)


def unflatten_dict(cls: type[Any], kept: Any, children: Sequence[Any]) -> Any:
    keys, factory = kept
    items = dict(zip(keys, children, strict=True))
    if isinstance(keys, Keys):
        items = {key: items[key] for key in keys.order}
    if cls is dict:
        return items
    return defaultdict(factory, items) if cls is defaultdict else cls(items)


def key_order(entry: TreeNode | None) -> tuple[Any, ...] | None:
    """Return the keys of a dict in its own order; None for any other node."""
    if entry is None or node_type(entry.cls) is not _DICT:
        return None
    keys: tuple[Any, ...] = entry.kept[0]  # type: ignore[index]
    return keys.order if isinstance(keys, Keys) else keys


def in_same_order(one: TreeDef, other: TreeDef) -> bool:
    """Whether the dicts of two equal structures have their keys in the same order."""
    return all(a is b or key_order(a) == key_order(b) for a, b in zip(one.entries, other.entries, strict=True))


def flatten_dataclass(x: Any) -> tuple[list[Any], Hashable]:
    names = tuple(name for name in x.__dataclass_fields__ if hasattr(x, name))
    return [getattr(x, name) for name in names], names


def unflatten_dataclass(cls: type[Any], kept: Any, children: Sequence[Any]) -> Any:
    """Rebuild without calling `__init__`, which may compute, raise or not accept all fields."""
    out = object.__new__(cls)
    for name, child in zip(kept, children, strict=True):
        object.__setattr__(out, name, child)
    return out


def kept_fields(kept: Any, arity: int) -> list[Key]:
    return [("field", name) for name in kept]


_NAMED_TUPLE = NodeType(lambda x: (x, type(x)._fields), lambda cls, kept, children: cls._make(children), kept_fields)
_DICT = NodeType(flatten_dict, unflatten_dict, lambda kept, arity: [("key", k) for k in kept[0]])
_DATACLASS = NodeType(flatten_dataclass, unflatten_dataclass, kept_fields)

_types.update(dict.fromkeys((bool, int, float, complex, str, np.ndarray), None))
_types[list] = NodeType(lambda x: (x, None), lambda cls, kept, children: list(children), indices)
_types[tuple] = NodeType(lambda x: (x, None), lambda cls, kept, children: tuple(children), indices)
_types[type(None)] = NodeType(lambda x: ((), None), lambda cls, kept, children: None, indices)
_types[deque] = NodeType(lambda x: (x, x.maxlen), lambda cls, kept, children: deque(children, kept), indices)
for _cls in (dict, OrderedDict, defaultdict):
    find_node_type(_cls)
