"""The signature of a call: which argument leaves are arrays, variables or static, and the key under which a compiled program is cached.

Arrays are keyed by dtype and shape; Python numbers by their type only, as weakly typed scalars, and so are the tensors that stand for
them; variables by type and by which of them are identical; everything else (bools, strings, functions, ...) is static and keyed by value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from inspect import CO_VARKEYWORDS
from typing import Any

import numpy as np

from adjit.ir.arrays import as_array
from adjit.ir.errors import DTypeError, TraceError
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.types import DTYPE_NAMES, I64, NUMBERS, DType, Shape, TensorType
from adjit.tracer.pytree import TreeDef, flatten
from adjit.tracer.trace import Spec

from .executable import prepared
from .tensor import Tensor, WeakTensor, materialize, wrap
from .variable import Store, Variable

INT64 = np.iinfo(np.int64)
NUMBER_OF: dict[DType, type] = {dtype: kind for kind, dtype in NUMBERS.items()}
SCALARS = frozenset(dtype.type for dtype in DTYPE_NAMES)  # classes of NumPy's scalars, which are arrays without axes


class Signature(NamedTuple):
    """`tree` unflattens `leaves` to (args, kwargs). `arrays` are the values of the traced leaves, `stores` those of the variables."""

    key: Hashable
    tree: TreeDef
    leaves: list[Any]
    arrays: list[Array]
    stores: list[Store]

    def traced_leaves(self, shapes: Sequence[Shape] | None = None) -> list[Any]:
        """Return the leaves as the trace takes them: a `Spec` for each array, a new variable object for each variable.

        `shapes` are those of the arrays, if some of their sizes are symbolic.
        """
        sizes = iter([array.shape for array in self.arrays] if shapes is None else shapes)
        own = {store: Variable.of(store, bound=True) for store in self.stores}
        arrays = iter(self.arrays)
        out: list[Any] = []
        for leaf in self.leaves:
            if isinstance(leaf, Static):
                out.append(leaf.value)
            elif isinstance(leaf, Variable):
                out.append(own[leaf.store])
            elif is_traced(leaf):
                array = next(arrays)
                out.append(Spec(TensorType(array.dtype, next(sizes)), weak=is_weak(leaf)))
            else:
                out.append(leaf)
        return out

    def tensors(self) -> list[Tensor]:
        """Return the traced leaves as tensors: the user's tensors keep their identity, by which tapes watch them."""
        traced = [leaf for leaf in self.leaves if is_traced(leaf)]
        return [leaf if isinstance(leaf, Tensor) else wrap(array.copy()) for leaf, array in zip(traced, self.arrays, strict=True)]


class Static:
    """An argument declared static by the user, of any type; `key`, if given, is used in its place to compare arguments."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any, key: Any = None) -> None:
        self.value = value
        self.key = value if key is None else key


def shows_keywords(fn: Callable[..., Any]) -> bool:
    """Whether a function can see the order of the keywords in a call: it has a parameter `**kwargs`, or its code is not known."""
    return bool(getattr(getattr(fn, "__code__", None), "co_flags", CO_VARKEYWORDS) & CO_VARKEYWORDS)


def take_apart(args: tuple[Any, ...], kwargs: dict[str, Any], static: Sequence[int | str] = ()) -> Signature:
    if static:
        args = tuple(Static(a) if i in static else a for i, a in enumerate(args))
        kwargs = {k: Static(v) if k in static else v for k, v in kwargs.items()}
    leaves, tree = flatten((args, kwargs))
    tree = tree.with_order()  # a function may iterate over a dict
    kinds: list[Hashable] = []
    arrays: list[Array] = []
    stores: list[Store] = []
    for i, leaf in enumerate(leaves):
        kind = type(leaf)
        if kind is Static:
            kinds.append(static_key(leaf.key, tree, i))
        elif kind is float or kind is int or kind is complex:
            kinds.append(kind.__name__)
            arrays.append(scalar_array(leaf))
        elif isinstance(leaf, Variable):
            store = leaf.store
            kinds.append((Variable, store.type, store.trainable, stores.index(store) if store in stores else len(stores)))
            stores.append(store)
        elif is_array(leaf):
            try:
                array = prepared(array_leaf(leaf))
            except DTypeError as error:
                raise DTypeError(f"argument {argument_path(tree, i)}: {error}") from None
            number = number_class(leaf)  # a key of the Python number, so that a result may follow it
            weak = ("weak",) if is_weak(leaf) else ()
            kinds.append((array.dtype, array.shape, *weak) if number is None else number.__name__)
            arrays.append(array)
        else:
            kinds.append(static_key(leaf, tree, i))
    return Signature((tree, tuple(kinds)), tree, leaves, arrays, stores)


def probe(items: Iterable[Any], key: list[Any], arrays: list[Array], depth: int = 0) -> bool:
    """Fast path: extend `key` and `arrays` by plain arrays, scalars and containers of them. Return False if there is anything else.

    The key distinguishes as much as that of `take_apart`, and the arrays are in the same order; a leaf costs a few hundred nanoseconds.
    """
    for x in items:
        kind = type(x)
        if kind is Tensor:
            x = x.buffer
        elif kind is WeakTensor and (number := number_class(x)) is not None:
            key.append(number)
            arrays.append(x.buffer)
            continue
        elif kind is not np.ndarray and kind in SCALARS:
            x = np.asarray(x)
        elif kind is not np.ndarray:
            key.append(kind)
            if kind is float or kind is complex:
                arrays.append(np.array(x))
            elif kind is int:
                if not INT64.min <= x <= INT64.max:
                    return False
                arrays.append(np.array(x, I64))
            elif kind is tuple or kind is list:
                x = tuple(x)  # another thread may change a list meanwhile: the key must describe the arrays that are taken
                key.append(len(x))
                if depth > 50 or not probe(x, key, arrays, depth + 1):
                    return False
            elif kind is dict:
                order = tuple(x)  # once, as for lists
                try:
                    names = sorted(order)
                except TypeError:
                    return False
                key.append(order)  # a function may iterate over the dict
                if depth > 50 or not probe([x[name] for name in names], key, arrays, depth + 1):
                    return False
            elif kind is str or kind is bool:
                key.append(x)
            elif x is not None:
                return False
            continue
        key.append(x.dtype)
        key.append(x.shape)
        flags = x.flags
        arrays.append(x if flags.c_contiguous and flags.aligned else x.copy(order="C"))
    return True


def number_class(x: Any) -> type | None:
    """Return the class of the Python number that a weakly typed tensor represents; None for anything else."""
    return NUMBER_OF.get(x.type.dtype) if isinstance(x, WeakTensor) and not x.buffer.ndim else None


def is_traced(leaf: Any) -> bool:
    return type(leaf) in NUMBERS or (is_array(leaf) and not isinstance(leaf, Variable))


def is_weak(leaf: Any) -> bool:
    return type(leaf) in NUMBERS or (isinstance(leaf, Operand) and leaf.weak)


def is_array(leaf: Any) -> bool:
    return isinstance(leaf, Operand | np.ndarray | np.generic) or hasattr(type(leaf), "__array__")


def array_leaf(leaf: Any) -> Array:
    if isinstance(leaf, Value):
        raise TraceError(f"{leaf!r} was passed to a function outside of the trace that made it")
    if isinstance(leaf, Operand):
        return materialize(leaf).buffer
    return as_array(leaf)


def scalar_array(value: complex) -> Array:
    if type(value) is int and not INT64.min <= value <= INT64.max:
        raise DTypeError(f"the Python integer {value} does not fit into {DTYPE_NAMES[I64]}")
    return np.array(value, NUMBERS[type(value)])


def static_key(value: Any, tree: TreeDef, leaf: int) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"argument {argument_path(tree, leaf)} is a {type(value).__name__}: neither an array nor hashable, so a compiled function "
            "cannot tell one value from another; pass an array, or close over it"
        ) from None
    if hasattr(type(value), "__next__") and type(value).__module__ in ("builtins", "itertools"):
        raise TypeError(
            f"argument {argument_path(tree, leaf)} is a {type(value).__name__}: a compiled function would take its elements once, "
            "while it is traced, and repeat them at every call; pass a list"
        )
    return type(value), value


def argument_path(tree: TreeDef, leaf: int) -> str:
    """Return the name of a leaf of (args, kwargs) as the user would write it."""
    (_, where), (_, first), *_ = tree.key_paths()[leaf]
    rest = tree.paths()[leaf].split("]", 2)[2]
    return f"{first!r}{rest}" if where == 1 else f"{first}{rest}"


def resolve_static(fn: Callable[..., Any], static: Sequence[int | str] | int | str) -> tuple[int | str, ...]:
    """Return each static argument both by position and by name."""
    given = (static,) if isinstance(static, int | str) else tuple(static)
    if not given:
        return ()
    import inspect  # noqa: PLC0415 - slow to import, and few functions declare static arguments

    names = list(inspect.signature(fn).parameters)
    out: list[int | str] = []
    for each in given:
        if isinstance(each, str) and each not in names:
            raise ValueError(
                f"static argument {each!r} is not a parameter of {getattr(fn, '__name__', fn)}; its parameters are {', '.join(names)}"
            )
        index = names.index(each) if isinstance(each, str) else each
        out += [index, names[index]] if index < len(names) else [index]
    return tuple(out)
