"""Models of symbolic inputs and outputs: layers called on what `Input` gives, then `Model(inputs, outputs)`.

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
from .symbolic import Call, Symbolic

__all__ = ["Input", "Model"]


def Input(shape: Sequence[int | None], batch_size: int | None = None, dtype: Any = None, name: str | None = None) -> Symbolic:  # noqa: N802
    """A symbolic input, given its shape without the batch axis; also the first of the layers of a `Sequential`, which is built at once.

    A size may be None, for one that varies: layers that need to know it will say so when they are called with another.
    """
    layer = InputLayer(shape, dtype, batch_size, name=name)
    return Symbolic(Call(layer), 0, layer.example())


class Model(Module):
    """What leads from symbolic inputs to outputs, both one value or several in a list, tuple or dict.

    It is called on values in the structure of the inputs, or on a dict by the names of the inputs.
    """

    def __init__(self, inputs: Any, outputs: Any, **more: Any) -> None:
        super().__init__(**more)
        self.inputs, self.outputs = inputs, outputs
        given = {"": inputs} if isinstance(inputs, Symbolic) else inputs if isinstance(inputs, dict) else dict(enumerate(inputs))
        for what, values in (("inputs", given.values()), ("outputs", flatten(outputs)[0])):
            for value in values:
                if not isinstance(value, Symbolic):
                    raise TypeError(f"{self.name}: {what} are symbolic, made of nn.Input, and not {value!r}")
        names = given if isinstance(inputs, dict) else (getattr(s.call.function, "name", str(key)) for key, s in given.items())
        self._entries = dict(zip(names, given.values(), strict=True))
        self._calls = self._sorted([s.call for s in flatten(outputs)[0]], {id(s.call) for s in given.values()})
        functions = [*(s.call.function for s in given.values()), *(call.function for call in self._calls)]
        self.layers = list(dict.fromkeys(f for f in functions if isinstance(f, Module)))

    def _sorted(self, ends: Sequence[Call], known: set[int]) -> list[Call]:
        """The calls that lead to `ends`, each after those that it needs. No recursion: models may be deep."""
        out: list[Call] = []
        stack = [(call, False) for call in reversed(ends)]
        while stack:
            call, ready = stack.pop()
            if ready:
                out.append(call)
            elif id(call) not in known:
                known.add(id(call))
                if isinstance(call.function, InputLayer):
                    raise ValueError(f"{self.name}: the outputs need the input {call.function.name!r}, which is not among the inputs")
                stack.append((call, True))
                stack.extend((source.call, False) for source in call.sources())
        return out

    def call(self, x: Any, mask: Any = None) -> Any:
        results: dict[int, tuple[list[Any], Any]] = {}  # of each call: its results, and the mask that goes with them
        for symbol, value in zip(self._entries.values(), self._given(x), strict=True):
            function = symbol.call.function
            results[id(symbol.call)] = [function(value) if isinstance(function, InputLayer) else value], mask

        def value_of(symbol: Symbolic) -> Any:
            return results[id(symbol.call)][0][symbol.index]

        for call in self._calls:
            args, kwargs = call.arguments(value_of)
            first = next(call.sources(), None)
            out, following = call_masked(call.function, args, kwargs, None if first is None else results[id(first.call)][1])
            results[id(call)] = flatten(out)[0], following
        return tree_map(value_of, self.outputs)

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
