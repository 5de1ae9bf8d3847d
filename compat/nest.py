"""tf.nest: flattens and rebuilds structures of tensors. None is a leaf, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.tracer.pytree import TreeDef, find_node_type
from adjit.tracer.pytree import flatten as _flatten


def _parts(structure: Any) -> tuple[list[Any], TreeDef]:
    return _flatten(structure, is_leaf=lambda x: x is None)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """All leaves, in order; those of a dict are sorted by key."""
    return _parts(structure)[0]


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """The structure with its leaves replaced."""
    tree, leaves = _parts(structure)[1], list(flat_sequence)
    if tree.leaves != len(leaves):
        raise ValueError(f"The target structure has {tree.leaves} elements, but flat_sequence had {len(leaves)} elements.")
    return tree.unflatten(leaves)


def map_structure(func: Callable[..., Any], *structures: Any, **options: Any) -> Any:
    """Apply `func` to the corresponding leaves of structures, and return the results in the same structure."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func!r}")
    if not structures:
        raise ValueError("Must provide at least one structure")
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    columns = [flatten(structure) for structure in structures]
    return pack_sequence_as(structures[0], [func(*leaves) for leaves in zip(*columns, strict=True)])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    first, second = _parts(nest1)[1], _parts(nest2)[1]
    if first != second:
        raise ValueError(f"The two structures don't have the same nested structure.\n\nFirst: {nest1}\n\nSecond: {nest2}")


def is_nested(seq: Any) -> bool:
    return seq is not None and find_node_type(type(seq)) is not None


__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def __dir__() -> list[str]:
    return __all__
