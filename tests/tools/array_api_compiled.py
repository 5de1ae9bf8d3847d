"""adjit as an Array API namespace in which every function, method and operator is compiled by `@function`, once per call.

For array-api-tests, which is not part of this repository: in its folder, with data-apis/array-api as `array-api/`,

    PYTHONPATH=<adjit>/tests/tools ARRAY_API_TESTS_MODULE=array_api_compiled pytest --max-examples 20 --disable-deadline array_api_tests

Arrays among the arguments of a call become arguments of the compiled function, at any depth of tuples and lists; everything else is static.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import adjit as aj

# They return information about dtypes, or take arrays of other libraries: there is nothing to compile.
PLAIN = {"__array_namespace_info__", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype", "result_type"}
OPERATORS = """
    abs add and eq floordiv ge getitem gt invert le lshift lt matmul mod mul ne neg or pos pow radd rand rfloordiv rlshift
    rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor sub truediv xor
"""

inside = False  # a compiled function: the functions that it calls are traced, not compiled again


def compiled(of: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(of)
    def call(*args: Any, **kwargs: Any) -> Any:
        if inside:
            return of(*args, **kwargs)
        arrays: list[aj.Tensor] = []
        template = taken_out((args, kwargs), arrays)
        declined = False

        def traced(*values: Any) -> Any:
            nonlocal declined
            global inside
            inside = True
            try:
                positional, named = put_back(template, values)
                result = of(*positional, **named)
            finally:
                inside = False
            declined = result is NotImplemented
            return None if declined else result

        result = aj.function(traced)(*arrays)
        return NotImplemented if declined else result

    return call


class Hole(int):
    """The place of an array in the arguments of a call."""


def taken_out(x: Any, arrays: list[aj.Tensor]) -> Any:
    if isinstance(x, aj.Tensor):
        arrays.append(x)
        return Hole(len(arrays) - 1)
    if isinstance(x, dict):
        return {key: taken_out(value, arrays) for key, value in x.items()}
    return type(x)([taken_out(item, arrays) for item in x]) if type(x) in (tuple, list) else x


def put_back(x: Any, values: tuple[Any, ...]) -> Any:
    if isinstance(x, Hole):
        return values[x]
    if isinstance(x, dict):
        return {key: put_back(value, values) for key, value in x.items()}
    return type(x)([put_back(item, values) for item in x]) if type(x) in (tuple, list) else x


class Namespace(types.ModuleType):
    """A module with its functions compiled."""

    def __init__(self, name: str, of: types.ModuleType) -> None:
        super().__init__(name)
        self.__dict__["of"] = of

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.of, name)
        if isinstance(value, types.ModuleType):
            value = Namespace(f"{self.__name__}.{name}", value)
        elif isinstance(value, types.FunctionType) and name not in PLAIN:
            value = compiled(value)
        setattr(self, name, value)
        return value


def method(name: str) -> Callable[..., Any]:
    """The method of tensors, or the one of that name of traced values: tensors have faster ones of their own."""
    of_tensors = getattr(aj.Tensor, name)

    @functools.wraps(of_tensors)
    def call(self: Any, *args: Any) -> Any:
        return (of_tensors if isinstance(self, aj.Tensor) else getattr(type(self), name))(self, *args)

    return call


for name in OPERATORS.split():
    setattr(aj.Tensor, f"__{name}__", compiled(method(f"__{name}__")))
aj.Tensor.to_device = compiled(aj.Tensor.to_device)
sys.modules[__name__] = Namespace(__name__, aj)
