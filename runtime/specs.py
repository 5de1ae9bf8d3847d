"""User-written signatures: `TensorSpec`, the check of a call against an `input_signature`, and the result of `get_concrete_function`.

A None dimension of a spec accepts any size. Native code is compiled for all sizes, where that is possible (`general.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.types import DTYPE_NAMES, NUMBERS, TensorType, as_dtype
from adjit.tracer.pytree import TreeDef, flatten
from adjit.tracer.trace import argument_names

from .signature import array_leaf, is_array, is_weak
from .tensor import tensor
from .variable import Variable

if TYPE_CHECKING:
    from .function import Function
    from .inspection import Inspection
    from .methods import BoundFunction


class TensorSpec:
    """The required dtype and shape of an argument. A None dimension may have any size; a shape of None means any shape.

    >>> TensorSpec([None, 3], "f32")
    TensorSpec(f32[None,3])
    """

    __slots__ = ("shape", "dtype", "name")

    shape: tuple[int | None, ...] | None

    def __init__(self, shape: Any = None, dtype: Any = "f32", name: str | None = None) -> None:
        try:
            self.shape = None if shape is None else tuple(None if n is None else int(n) for n in shape)
        except (TypeError, ValueError):
            raise ShapeError(f"TensorSpec: a shape is made of integers and None, not {shape!r}") from None
        self.dtype = as_dtype(dtype)
        self.name = name

    @staticmethod
    def of(x: Any) -> TensorSpec:
        """Return the spec of an array."""
        operand = x if isinstance(x, Operand) else tensor(x)
        return TensorSpec(operand.type.shape, operand.type.dtype)

    def accepts(self, type: TensorType) -> bool:
        if type.dtype != self.dtype or (self.shape is not None and len(self.shape) != type.rank):
            return False
        return self.shape is None or all(n in (None, m) for n, m in zip(self.shape, type.shape, strict=True))

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known."""
        return self.shape is not None and None not in self.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))

    def __str__(self) -> str:
        return f"{DTYPE_NAMES[self.dtype]}{'[...]' if self.shape is None else '[' + ','.join(map(str, self.shape)) + ']'}"

    def __repr__(self) -> str:
        return f"TensorSpec({self}{f', name={self.name!r}' if self.name else ''})"


def conforming(spec: TensorSpec, x: Any, what: str) -> Any:
    """Return an argument if it fits the spec, Python numbers and lists as arrays of its dtype; raise DTypeError or ShapeError if not."""
    if isinstance(x, Operand | np.ndarray | np.generic) and not is_weak(x):
        dtype, shape = as_dtype(x.dtype), x.shape
    else:
        array = array_leaf(x)
        if not np.can_cast(array.dtype, spec.dtype, "same_kind"):
            raise DTypeError(f"{what} is {x!r}, but its input_signature is {spec}")
        x = array.astype(spec.dtype)
        dtype, shape = x.dtype, x.shape
    given = TensorType(dtype, shape)
    if given.dtype != spec.dtype:
        raise DTypeError(f"{what} is {given}, but its input_signature is {spec}; cast it with .astype({str(spec.dtype)!r})")
    if not spec.accepts(given):
        raise ShapeError(f"{what} is {given}, but its input_signature is {spec}")
    return x


def open_axes(arguments: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the axes that may have any size, as (number of the array in the call, axis), from specs and numbers in that order."""
    specs = [(i, x.shape or ()) for i, x in enumerate(arguments) if isinstance(x, TensorSpec)]
    return [(i, a) for i, shape in specs for a, n in enumerate(shape) if n is None]


class InputSignature:
    """The `input_signature` of a function: specs (or structures of them) for its positional parameters, in order."""

    def __init__(self, fn: Callable[..., Any], name: str, specs: Sequence[Any]) -> None:
        import inspect  # noqa: PLC0415 - slow to import, and few functions have a signature

        self.name = name
        self.specs = tuple(specs)
        self.parameters = list(inspect.signature(fn).parameters.values())
        self.trees = [flatten(spec) for spec in self.specs]
        for leaves, _ in self.trees:
            for leaf in leaves:
                if not isinstance(leaf, TensorSpec):
                    raise TypeError(f"{name}: an input_signature is made of TensorSpec, not {leaf!r}")

        self.open_axes = open_axes([leaf for found, _ in self.trees for leaf in found])

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], is_method: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the checked arguments, all by position; parameters not in the signature must keep their defaults."""
        names = [p.name for p in self.parameters][1 if is_method else 0 :]
        given = dict(zip(names, args, strict=False))
        twice = [k for k in kwargs if k in given]
        unknown = [k for k in kwargs if k not in names]
        if len(args) > len(self.specs) or twice or unknown or len(given) + len(kwargs) != len(self.specs):
            wanted = ", ".join(f"{n}: {spec}" for n, spec in zip(names, self.specs, strict=False))
            got = f"{len(args)} positional arguments and {list(kwargs)}"
            raise TypeError(f"{self.name} has the input_signature ({wanted}); it was called with {got}")
        given |= kwargs
        out = []
        for label, (specs, tree) in zip(names, self.trees, strict=False):
            leaves, its_tree = flatten(given[label])
            if tree != its_tree and not (len(specs) == 1 and tree.entries == (None,)):
                raise TypeError(f"{self.name}: argument {label!r} has the structure {its_tree}, but its input_signature is {tree}")
            if tree.entries == (None,):
                out.append(conforming(specs[0], given[label], f"{self.name}: argument {label!r}"))
                continue
            paths = tree.paths()
            checked = [conforming(s, x, f"{self.name}: argument {label!r}{p}") for s, x, p in zip(specs, leaves, paths, strict=True)]
            out.append(tree.unflatten(checked))
        return tuple(out), {}


class Specialization:
    """One signature of a function, as returned by `get_concrete_function`: callable only with arguments that match it."""

    def __init__(self, function: Function | BoundFunction, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function = function
        self._name = str(function._name)
        leaves, self._tree = flatten((args, kwargs))
        self._leaves = [TensorSpec.of(x) if is_array(x) and not isinstance(x, Variable) else x for x in leaves]
        self._names = argument_names(fn, self._tree)
        self._is_static = all(x.is_static for x in self._leaves if isinstance(x, TensorSpec))
        if self._is_static:
            function._concrete(self._taken_apart())
        elif not any(x.shape is None for x in self._leaves if isinstance(x, TensorSpec)):
            arrays = [x for x in self._leaves if isinstance(x, TensorSpec) or type(x) in NUMBERS]
            function._policy.leave_open(self._taken_apart(), open_axes(arrays))

    def _taken_apart(self) -> Any:
        args, kwargs = self._tree.unflatten([example(x) for x in self._leaves])
        return self._function._taken_apart(args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        if tree != self._tree:
            raise TypeError(f"{self.pretty_printed_signature()}: called with arguments of another structure, {tree}")
        for i, (wanted, x) in enumerate(zip(self._leaves, leaves, strict=True)):
            if isinstance(wanted, TensorSpec):
                leaves[i] = conforming(wanted, x, f"{self._name}: argument {self._names[i]!r}")
            elif type(wanted) is not type(x) or (type(x) not in (int, float, complex) and wanted != x):
                raise TypeError(f"{self.pretty_printed_signature()}: argument {self._names[i]!r} is {x!r}")
        args, kwargs = tree.unflatten(leaves)
        return self._function(*args, **kwargs)

    @property
    def structured_input_signature(self) -> Any:
        """The specs and static values of the arguments, as (args, kwargs)."""
        return self._tree.unflatten(self._leaves)

    def inspect(self) -> Inspection:
        """Return its IR and native code; see `Function.inspect`. All sizes must be known."""
        if not self._is_static:
            raise ShapeError(f"{self.pretty_printed_signature()}: code is compiled for each size; inspect the function with arrays")
        args, kwargs = self._tree.unflatten([example(x) for x in self._leaves])
        return self._function.inspect(*args, **kwargs)

    def pretty_printed_signature(self) -> str:
        """The signature as text: `loss(x: f32[None,3], n=2) -> f32[]`."""
        given = zip(self._names, self._leaves, strict=True)
        head = f"{self._name}({', '.join(f'{n}: {x}' if isinstance(x, TensorSpec) else f'{n}={x!r}' for n, x in given)})"
        if not self._is_static:
            return head
        return f"{head} -> {result_text(self._function._concrete(self._taken_apart()).program.func.results)}"

    def __repr__(self) -> str:
        return f"<adjit {self.pretty_printed_signature()}>"


def example(x: Any) -> Any:
    """Return an array that a spec accepts; its values are not used."""
    if not isinstance(x, TensorSpec):
        return x
    zero: Array = np.zeros([n or 0 for n in x.shape or ()], x.dtype)
    return zero


def result_text(results: Sequence[Operand]) -> str:
    types = [str(r.type) for r in results]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


# ---- signatures of past calls


def signature_text(fn: Callable[..., Any], name: str, tree: TreeDef, kinds: Sequence[Hashable], results: Sequence[Operand]) -> str:
    """Format the key under which a program is cached: `loss(x: f32[32,3], n=2) -> f32[]`."""
    labels = argument_names(fn, tree)
    shown = [f"{n}={kind_text(k)}" if is_static_kind(k) else f"{n}: {kind_text(k)}" for n, k in zip(labels, kinds, strict=True)]
    return f"{name}({', '.join(shown)}) -> {result_text(results)}"


def is_static_kind(kind: Any) -> bool:
    return not isinstance(kind, str) and not isinstance(kind[0], np.dtype) and kind[0] is not Variable


def kind_text(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    if isinstance(kind[0], np.dtype):
        return str(TensorType(*kind[:2]))
    return f"Variable {kind[1]}" if kind[0] is Variable else repr(kind[1])
