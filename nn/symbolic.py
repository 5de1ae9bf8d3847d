"""Symbolic values: the result of `nn.Input`, and the results of layers and NumPy functions applied to it.

A symbolic value records the call that computes it. To infer shapes (and to create variables) the call is made once, on an example of zeros
with a batch of one. `nn.Model` repeats the calls on real data; in a traced function, this has no cost at run time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from adjit.ir.active import outside_builders
from adjit.ir.types import DType
from adjit.runtime.recording import suspended
from adjit.runtime.variable import Variable
from adjit.tracer.pytree import flatten, tree_map

__all__ = ["LayerCall", "Symbolic", "call_symbolically", "is_symbolic"]


class LayerCall:
    """A function, usually a layer, and its arguments, some of which are symbolic values."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> None:
        self.function, self.args, self.kwargs = function, tuple(args), dict(kwargs or {})

    def sources(self) -> Iterator[Symbolic]:
        """The symbolic values among its arguments."""
        return (leaf for leaf in flatten((self.args, self.kwargs))[0] if isinstance(leaf, Symbolic))

    def arguments(self, value: Callable[[Symbolic], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Its arguments, with each symbolic value replaced by `value(symbol)`."""
        args, kwargs = tree_map(lambda leaf: value(leaf) if isinstance(leaf, Symbolic) else leaf, (self.args, self.kwargs))
        return args, kwargs


class Symbolic(NDArrayOperatorsMixin):
    """A result of a call: operators, indexing and NumPy functions on it give further symbolic values."""

    __hash__ = object.__hash__

    def __init__(self, call: LayerCall, index: int, example: Any) -> None:
        self.call, self.index, self.example = call, index, example

    @property
    def key(self) -> tuple[int, int]:
        """Its identity: the call, and the index of the result."""
        return id(self.call), self.index

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, with None for the batch size."""
        return (None, *tuple(self.example.shape)[1:])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        return self.example.dtype  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        function = self.call.function
        kind = getattr(self.dtype, "name", self.dtype)
        return f"<Symbolic {kind}{list(self.shape)}, of {getattr(function, 'name', None) or getattr(function, '__name__', function)}>"

    def __getitem__(self, key: Any) -> Any:
        return call_symbolically(operator.getitem, (self, key), {})

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call_symbolically(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call_symbolically(function, args, kwargs)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"{self!r} has no value yet: pass it to layers, operators, functions of NumPy, or nn.Lambda(function); "
            "to compute, make nn.Model(inputs, outputs) and call it on arrays"
        )

    __array__ = __bool__ = __float__ = __int__ = __len__ = __iter__ = _refuse


def is_symbolic(structure: Any) -> bool:
    """Whether a structure contains a symbolic value."""
    return any(isinstance(leaf, Symbolic) for leaf in flatten(structure)[0])


def call_symbolically(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Record the call of a function on symbolic values; returns symbolic values in the structure of the function's result."""
    call = LayerCall(function, args, kwargs)
    for leaf in () if hasattr(function, "variables") else flatten((args, dict(kwargs)))[0]:
        if isinstance(leaf, Variable):
            raise TypeError(
                f"the variable {leaf.store.name or ''} is used with a symbolic value, but belongs to no layer: use it in a layer's call"
            )
    with outside_builders(), suspended():
        values, named = call.arguments(lambda symbol: symbol.example)
        if "training" in named:
            named["training"] = False  # examples must not update any state
        example = function(*values, **named)
    leaves, tree = flatten(example)
    return tree.unflatten([Symbolic(call, index, leaf) for index, leaf in enumerate(leaves)])
