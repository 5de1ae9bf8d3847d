"""`np.vectorize(f)(x)` on traced values: a loop over the elements, or over the parts that a signature names, which is not unrolled."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import Shape, broadcast_shapes

from ..control import map as map_rows
from ..conversion import convert
from ..convert import array_of_list, to_operand
from ..frames import user_location
from ..pytree import flatten
from ..regions import is_traced

Names = tuple[str, ...]


def vectorized(function: np.vectorize) -> Callable[..., Any]:
    """Return what is called in place of an object of `np.vectorize`."""

    def public(*args: Any, **options: Any) -> Any:
        if not any(map(is_traced, (*args, *options.values()))):
            return function(*args, **options)
        named: dict[Any, Any] = {**dict(enumerate(args)), **options}
        varying = [key for key in named if key not in function.excluded]
        taken, made = dimensions(function.signature, len(varying))
        rows, shape = parts([named[key] for key in varying], taken)
        of_part = convert(function.pyfunc)

        def call(row: Sequence[Any]) -> Any:
            given = {**named, **dict(zip(varying, row, strict=True))}
            return of_part(*(given[k] for k in range(len(args))), **{name: given[name] for name in options})

        leaves, tree = flatten(map_rows(call, rows))
        dtypes = function.otypes or [None] * len(leaves)
        typed = [leaf if dtype is None else leaf.astype(dtype) for leaf, dtype in zip(leaves, dtypes, strict=True)]
        if made is not None:
            check_results(typed, made)
        return tree.unflatten([ops.reshape(leaf, (*shape, *leaf.shape[1:])) for leaf in typed])

    return public


def dimensions(signature: str | None, count: int) -> tuple[list[Names], list[Names] | None]:
    """Parse "(m,n),(n)->(m)": return the names of the axes that the function takes from each argument, and of those of each result."""
    if signature is None:
        return [()] * count, None
    taken, made = ([tuple(re.findall(r"\w+", part)) for part in re.findall(r"\(([^)]*)\)", side)] for side in signature.split("->"))
    if len(taken) != count:
        raise ShapeError(f"np.vectorize: the signature {signature!r} names {len(taken)} arguments; {count} are given").at(user_location())
    return taken, made


def parts(args: Sequence[Any], taken: Sequence[Names]) -> tuple[list[Operand], Shape]:
    """Return the arguments as rows, a part of each to a call, and the shape of the axes that are looped over."""
    arrays = [to_operand(array_of_list(x)) for x in args]
    for x, names in zip(arrays, taken, strict=True):
        if x.ndim < len(names):
            raise ShapeError(f"np.vectorize: {x.type} has fewer axes than the signature names, {len(names)}").at(user_location())
    inner = [x.shape[x.ndim - len(names) :] for x, names in zip(arrays, taken, strict=True)]
    check_sizes(taken, inner)
    shape = broadcast_shapes("np.vectorize", *(x.shape[: x.ndim - len(names)] for x, names in zip(arrays, taken, strict=True)))
    count = int(np.prod(shape))
    return [ops.reshape(ops.broadcast_to(x, (*shape, *core)), (count, *core)) for x, core in zip(arrays, inner, strict=True)], shape


def check_sizes(named: Sequence[Names], shapes: Sequence[Shape]) -> None:
    sizes: dict[str, int] = {}
    for names, shape in zip(named, shapes, strict=True):
        for name, size in zip(names, shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ShapeError(f"np.vectorize: the axis {name!r} has {sizes[name]} elements in one argument and {size} in another").at(
                    user_location()
                )


def check_results(leaves: Sequence[Operand], made: Sequence[Names]) -> None:
    if len(leaves) != len(made):
        raise ShapeError(f"np.vectorize: the signature names {len(made)} results; the function returns {len(leaves)}").at(user_location())
    for x, names in zip(leaves, made, strict=True):
        if x.ndim - 1 != len(names):
            raise ShapeError(f"np.vectorize: the signature names {len(names)} axes of a result; the function returns {x.ndim - 1}").at(
                user_location()
            )
