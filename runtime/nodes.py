"""Structures of arguments and results as the native entry reads them: nodes in preorder, or None for unsupported types."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from adjit.codegen.entry.route import ARRAY, DICT, LIST, MAX_DEPTH, MAX_NODES, NOTHING, SAME, TUPLE, Node
from adjit.ir.types import NUMBERS, TensorType, as_dtype
from adjit.tracer import pytree

from .signature import number_class
from .tensor import Tensor, WeakTensor

SEQUENCES: dict[type, int] = {tuple: TUPLE, list: LIST}
SINGLE = (NoneType, bool, str)  # static arguments of these types: the same object means the same value


def argument_nodes(x: Any, arrays: tuple[type, ...], depth: int = 0) -> list[Node] | None:
    """Return the nodes of an argument. `arrays` are the classes of traced leaves: arrays, tensors and numbers."""
    kind = type(x)
    if kind in arrays:
        number = kind if kind in NUMBERS else number_class(x) if kind is WeakTensor else None
        if number is None and kind is WeakTensor:
            return None
        return [Node(ARRAY, type=TensorType(as_dtype(x.dtype), x.shape)) if number is None else Node(ARRAY, cls=number)]
    if kind in SINGLE:
        return [Node(SAME, same=x)]
    if depth == MAX_DEPTH:
        return None
    # Containers are read once: another thread may change them, and the nodes must describe the children that follow.
    if kind in SEQUENCES:
        children = list(x)
        nodes = [Node(SEQUENCES[kind], len(children))]
    elif kind is dict:
        order = tuple(x)
        if not all(type(key) is str for key in order):
            return None
        keys = tuple(sorted(order))
        nodes, children = [Node(DICT, len(keys), keys, order=order)], [x[key] for key in keys]
    else:
        return None
    for child in children:
        inner = argument_nodes(child, arrays, depth + 1)
        if inner is None or len(nodes) + len(inner) > MAX_NODES:
            return None
        nodes += inner
    return nodes


def result_nodes(entries: Sequence[pytree.TreeNode | None], classes: Sequence[type[Tensor]]) -> list[Node] | None:
    """Return the nodes of a call's result, from the traced structure; `classes` are those of its tensors."""
    nodes = []
    leaves = iter(classes)
    for entry in entries:
        if entry is None:
            nodes.append(Node(ARRAY, cls=next(leaves)))
        elif entry.cls in SEQUENCES:
            nodes.append(Node(SEQUENCES[entry.cls], entry.arity))
        elif entry.cls is NoneType:
            nodes.append(Node(NOTHING))
        elif entry.cls is dict and all(type(key) is str for key in entry.kept[0]):  # type: ignore[index]
            nodes.append(Node(DICT, entry.arity, entry.kept[0]))  # type: ignore[index]
        else:
            return None
    return nodes if len(nodes) <= MAX_NODES else None
