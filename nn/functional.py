"""Models from symbolic inputs and outputs: call layers on the result of `Input`, then `Model(inputs, outputs)`.

image = nn.Input((28, 28, 1))
h = nn.Conv2D(8, 3, padding="same", activation="relu")(image)
h = h + nn.Conv2D(8, 3, padding="same", activation="relu")(h)
model = nn.Model(image, nn.Dense(10)(nn.Flatten()(h)))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir.errors import ShapeError
from adjit.tracer.pytree import flatten, tree_map

from .core import InputLayer, call_masked
from .module import Module
from .symbolic import LayerCall, Symbolic

__all__ = ["Input", "Model"]


def Input(shape: Sequence[int | None], batch_size: int | None = None, dtype: Any = None, name: str | None = None) -> Symbolic:  # noqa: N802
    """Return a symbolic input, given its shape without the batch axis; also the first layer of a `Sequential`, which is then built at once.

    A size may be None if it varies: layers that depend on it raise an error when they are called with another size.

    >>> x = aj.nn.Input([4])
    >>> aj.nn.Model(x, aj.nn.Dense(2)(x))(np.ones((3, 4), "f4")).shape
    (3, 2)
    """
    layer = InputLayer(shape, dtype, batch_size, name=name)
    return Symbolic(LayerCall(layer), 0, layer.example())


class Model(Module):
    """The model that computes outputs from symbolic inputs; each is one value or several in a list, tuple or dict.

    It is called on values in the structure of the inputs, or on a dict with the names of the inputs as keys.

    >>> a, b = aj.nn.Input([2]), aj.nn.Input([2])
    >>> model = aj.nn.Model([a, b], aj.nn.Dense(1)(a * b))
    >>> model([np.ones((3, 2), "f4"), np.ones((3, 2), "f4")]).shape
    (3, 1)
    """

    def __init__(self, inputs: Any, outputs: Any, **more: Any) -> None:
        super().__init__(**more)
        self.inputs, self.outputs = inputs, outputs
        given = {"": inputs} if isinstance(inputs, Symbolic) else inputs if isinstance(inputs, dict) else dict(enumerate(inputs))
        for what, values in (("inputs", given.values()), ("outputs", flatten(outputs)[0])):
            for value in values:
                if not isinstance(value, Symbolic):
                    raise TypeError(f"{self.name}: {what} must be symbolic values, made with nn.Input, not {value!r}")
        self._entries = {(key if isinstance(inputs, dict) else label(symbol)): symbol for key, symbol in given.items()}
        if len(self._entries) < len(given):
            raise ValueError(f"{self.name}: inputs have the same name ({', '.join(map(label, given.values()))}); give each its own")
        self._calls = self._sorted(flatten(outputs)[0])
        functions = [symbol.call.function for symbol in given.values()] + [call.function for call in self._calls]
        self.layers = list(dict.fromkeys(f for f in functions if isinstance(f, Module)))

    def _sorted(self, ends: Sequence[Symbolic]) -> list[LayerCall]:
        """The calls that `ends` depend on, in topological order. Not recursive, because models may be deep."""
        given = {symbol.key for symbol in self._entries.values()}
        out: list[LayerCall] = []
        known: set[int] = set()
        stack = [(symbol.call, False) for symbol in reversed(ends) if symbol.key not in given]
        while stack:
            call, ready = stack.pop()
            if ready:
                out.append(call)
            elif id(call) not in known:
                known.add(id(call))
                if isinstance(call.function, InputLayer):
                    raise ValueError(f"{self.name}: the outputs need the input {call.function.name!r}, which is not among the inputs")
                stack.append((call, True))
                stack.extend((source.call, False) for source in call.sources() if source.key not in given)
        return out

    def call(self, x: Any, mask: Any = None) -> Any:
        values: dict[tuple[int, int], tuple[Any, Any]] = {}  # for each symbol: its value and mask
        for symbol, value in zip(self._entries.values(), self._given(x), strict=True):
            function = symbol.call.function
            values[symbol.key] = function(value) if isinstance(function, InputLayer) else value, mask
        for call in self._calls:
            args, kwargs = call.arguments(lambda symbol: values[symbol.key][0])
            first = next(call.sources(), None)
            out, following = call_masked(call.function, args, kwargs, None if first is None else values[first.key][1])
            for index, result in enumerate(flatten(out)[0]):
                values.setdefault((id(call), index), (result, following))  # values that were passed in are kept
        return tree_map(lambda symbol: values[symbol.key][0], self.outputs)

    def _given(self, x: Any) -> list[Any]:
        """Values in the order of the inputs."""
        if isinstance(self.inputs, Symbolic):
            return [x]
        fits = isinstance(x, list | tuple) and len(x) == len(self._entries)
        named = x if isinstance(x, dict) else dict(zip(self._entries, x, strict=True)) if fits else {}
        if set(named) != set(self._entries):
            wanted = ", ".join(f"{name} {list(symbol.shape)}" for name, symbol in self._entries.items())
            leaves, tree = flatten(x)
            given = ", ".join(f"{path} {list(np.shape(leaf))}".strip() for path, leaf in zip(tree.paths(), leaves, strict=True))
            raise ShapeError(f"{self.name}: takes {len(self._entries)} inputs ({wanted}), called with {given}")
        return [named[name] for name in self._entries]


def label(symbol: Symbolic) -> str:
    """A name for an input: that of its layer, and the index of the result if there are several."""
    name = getattr(symbol.call.function, "name", "input")
    return f"{name}.{symbol.index}" if symbol.index else name
