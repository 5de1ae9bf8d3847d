"""tf.range of traced bounds: a loop over it stays a loop; an op on it converts it to a tensor, whose size is found by the call."""

from __future__ import annotations

from typing import Any

from adjit.tracer.autograph.items import Items, make_range
from adjit.tracer.surface import create

from .tensor import convert_to_tensor, dress

OPERATORS = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow", "neg", "lt",
    "le", "gt", "ge", "eq", "ne", "getitem",
)  # fmt: skip


class Range(Items):
    """The numbers of a range whose length is known only when the function runs."""

    def __init__(self, bounds: tuple[Any, Any, Any], dtype: Any) -> None:
        items = make_range(bounds, True)
        super().__init__(items.length, lambda k: convert_to_tensor(items.item(k), dtype), items.rolled, items.checkpoint, items.most)
        self.bounds, self.kind = bounds, dtype
        self.made: Any = None

    def made_tensor(self) -> Any:
        if self.made is None:
            self.made = dress(create.range_found(*self.bounds, self.kind))
        return self.made

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(x.made_tensor() if isinstance(x, Range) else x for x in inputs), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made_tensor(), name)

    __hash__ = object.__hash__


def _operator(name: str) -> Any:
    def method(self: Range, *args: Any) -> Any:
        return getattr(self.made_tensor(), name)(*args)

    return method


for _name in OPERATORS:
    setattr(Range, f"__{_name}__", _operator(f"__{_name}__"))
