"""Tools for nested structures of arrays: models, parameters, optimizer states."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import promote
from adjit.tracer.convert import present, to_operand
from adjit.tracer.pytree import TreeDef, flatten

from .create import zeros
from .shapes import concatenate

__all__ = ["ravel_pytree", "tree_flatten", "tree_leaves", "tree_structure", "tree_unflatten"]


def tree_flatten(structure: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a nested structure in order, and its `TreeDef`, from which `tree_unflatten` rebuilds it.

    >>> leaves, tree = tree_flatten({"w": [1.0, 2.0], "b": 3.0})
    >>> leaves
    [3.0, 1.0, 2.0]
    """
    return flatten(structure, is_leaf)


def tree_unflatten(tree: TreeDef, leaves: Iterable[Any]) -> Any:
    """Return the structure described by `tree`, with these leaves.

    >>> _, tree = tree_flatten({"w": [1.0, 2.0], "b": 3.0})
    >>> tree_unflatten(tree, "xyz")
    {'w': ['y', 'z'], 'b': 'x'}
    """
    return tree.unflatten(leaves)


def tree_leaves(structure: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a nested structure in order.

    >>> tree_leaves({"w": [1.0, 2.0], "b": 3.0})
    [3.0, 1.0, 2.0]
    """
    return flatten(structure, is_leaf)[0]


def tree_structure(structure: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """Return the `TreeDef` of a nested structure; it is hashable, and equal for equal structures.

    >>> tree_structure([1, 2]) == tree_structure([3, 4])
    True
    """
    return flatten(structure, is_leaf)[1]


def ravel_pytree(structure: Any) -> tuple[Operand, Callable[[Any], Any]]:
    """Return all elements of a structure of arrays as one vector, and a function that turns such a vector back into the structure.

    The vector has the dtype that the arrays promote to; the function restores the shapes and dtypes of the arrays. Both are differentiable,
    so optimizers that work on vectors (`scipy.optimize.minimize`) can fit any structure of parameters.

    >>> import numpy as np
    >>> flat, unravel = ravel_pytree({"w": np.ones((2, 2)), "b": np.zeros(1)})
    >>> flat
    Tensor([0., 1., 1., 1., 1.], f64[5])
    >>> unravel(flat * 2.0)["w"]
    Tensor([[2., 2.],
            [2., 2.]], f64[2,2])
    """
    leaves, tree = flatten(structure)
    arrays = [to_operand(leaf) for leaf in leaves]
    types = [a.type for a in arrays]
    if not arrays:
        return zeros(0), lambda flat: structure
    dtype = functools.reduce(promote, (t.dtype for t in types))
    whole = concatenate([ops.reshape(ops.cast(a, dtype), (a.type.size,)) for a in arrays])
    size = functools.reduce(operator.add, (t.size for t in types))

    def unravel(flat: Any) -> Any:
        flat = to_operand(flat)
        if flat.shape != (size,):
            raise ShapeError(f"unravel: takes a vector of {size} elements, not {flat.type}")
        out, start = [], 0
        for t in types:
            out.append(present(ops.reshape(ops.cast(flat[start : start + t.size], t.dtype), t.shape)))
            start += t.size
        return tree.unflatten(out)

    return present(whole), unravel


end_at_callers(globals())
