"""Module: a layer or model that owns variables and other modules.

Defines how variables are found and named (`variables`, `named_variables`), when they are created (on the first call, from the shape of the
input), and how a module is called. Attributes that are variables, modules, or lists, tuples and dicts of them belong to the module;
nothing has to be registered, and calling `super().__init__()` is optional.

    class Block(nn.Module):
        def __init__(self, units):
            self.inner = nn.Dense(units, activation="relu")
            self.drop = nn.Dropout(0.1)

        def call(self, x):
            return x + self.drop(self.inner(x))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjit.ir.active import outside_builders
from adjit.ir.arrays import plain_array
from adjit.ir.errors import AdjitError, ShapeError
from adjit.ir.locks import new_lock
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.types import DType, as_dtype
from adjit.runtime.conversion import as_called
from adjit.runtime.recording import suspended
from adjit.runtime.variable import Variable
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import flatten

from .calls import added_losses, collecting_losses, is_training, training_mode
from .constraints import get_constraint
from .initializers import Initializer, get_initializer, next_seed, seeds_from
from .recorded import Recorded
from .regularizers import get_regularizer
from .shown import Shown, table
from .symbolic import call_symbolically, is_symbolic

_counts: dict[str, int] = {}
_counting = new_lock()


@dataclass(frozen=True)
class Penalty:
    """A variable and the regularizer that penalises it."""

    variable: Variable
    regularizer: Callable[[Any], Any]


class Module(Recorded):
    """Base of layers and models: define `call`, and `build` where variables depend on the shape of the input.

    >>> class Scale(aj.nn.Module):
    ...     def __init__(self):
    ...         self.factor = aj.Variable(2.0)
    ...
    ...     def call(self, x):
    ...         return self.factor * x
    ...
    >>> Scale()(3.0)
    Tensor(6., f64[])
    """

    variable_class: ClassVar[Callable[..., Variable]] = Variable
    regularized: ClassVar[tuple[str, ...]] = ()  # variables that take a regularizer: "kernel" for kernel_regularizer=
    trainable: bool
    built: bool
    dtype: DType
    input_shape: tuple[int, ...] | None
    symbolic_output: Any  # the result of its last call on symbolic values
    _name: str
    _seed: int
    _draws: int
    _regularizers: dict[str, Callable[[Any], Any] | None]
    _constraints: dict[str, Callable[[Any], Any] | None]
    _penalties: tuple[Penalty, ...]
    _added: tuple[Any, ...]  # terms added to the loss in the last call

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls, *args, **kwargs)
        self.trainable = True
        self.built = False
        self.dtype = as_dtype(np.float32)
        self._name = ""
        self.input_shape = None
        self._regularizers = {}
        self._constraints = {}
        self._penalties = ()
        self._added = ()
        self._seed, self._draws = next_seed(), 0  # drawn now, because variables may be created later in any order
        return self

    def next_seed(self) -> int:
        """A seed of this module; a different one at each call."""
        self._draws += 1
        return int(np.random.SeedSequence([self._seed, self._draws]).generate_state(1, np.uint32)[0] >> 1)

    def __init__(
        self, name: str | None = None, dtype: Any = None, trainable: bool = True, input_shape: Sequence[int] | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        """`input_shape` (without the batch axis) on the first layer of a `Sequential` creates its variables at once.

        Regularizers are named after the variable they penalise: `kernel_regularizer`, ...; `activity_regularizer` penalises the output.
        `kernel_constraint` and its like are applied by optimizers after each update.
        """
        self._name = name or ""
        self.trainable = trainable
        self.input_shape = None if input_shape is None else tuple(input_shape)
        if dtype is not None:
            self.dtype = as_dtype(np.dtype(dtype))
            if self.dtype.kind != "f":
                raise TypeError(f"{self.name}: variables of a layer are floats, not {self.dtype}; use 'float32' or 'float64'")
        regularizers = {f"{variable}_regularizer": variable for variable in (*self.regularized, "activity")}
        constraints = {f"{variable}_constraint": variable for variable in self.regularized}
        for option, value in options.items():
            if option in regularizers:
                self._regularizers[regularizers[option]] = get_regularizer(value)
            elif option in constraints:
                self._constraints[constraints[option]] = get_constraint(value)
            else:
                known = ", ".join(["name", "dtype", "trainable", "input_shape", *regularizers, *constraints])
                raise TypeError(f"{type(self).__name__} has no option {option!r}; besides its own, it has {known}")

    @property
    def name(self) -> str:
        """The given name, or one made of the class name and a number."""
        if not self._name:
            base = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9]D)(?=[A-Z])", "_", type(self).__name__).lower()
            with _counting:
                count = _counts[base] = _counts.get(base, -1) + 1
            self._name = f"{base}_{count}" if count else base
        return self._name

    # ---- calls

    def build(self, *shapes: Any) -> None:
        """Create variables; called once, before the first `call`, with the shapes of its arguments (None for non-arrays)."""

    def call(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define call(self, x)")

    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        if is_symbolic((args, kwargs)):
            self.symbolic_output = call_symbolically(self, args, kwargs if training is None else {"training": training, **kwargs})
            return self.symbolic_output
        with training_mode(training), collecting_losses() as added:
            try:
                if not self.built:
                    self._build(args)
                if takes(type(self).call, "training"):
                    kwargs["training"] = is_training()
                out = as_called(self.call)(*args, **kwargs)
                self._penalize(out)
                if added is not None:
                    self._added = tuple(added)
                return out
            except AdjitError as error:
                given = ", ".join(str(getattr(a, "type", None) or describe(a)) for a in args)
                error.add_note(f"  in the layer {self.name!r} ({type(self).__name__}), called with {given}")
                raise

    def _build(self, args: Sequence[Any]) -> None:
        """Create the variables. If that fails, as in a trace for all sizes, the next attempt draws the same numbers."""
        draws = self._draws
        try:
            self.build(*map(shape_of, args))
        except BaseException:
            self._draws = draws
            raise
        self.built = True

    # ---- additions to the loss

    def add_loss(self, loss: Any) -> None:
        """Add a term to the loss, from within `call`: a trainer includes it, and `losses` of the called model lists it."""
        losses = added_losses()
        if losses is None:
            raise RuntimeError(f"{self.name}: call add_loss inside call(self, x); for a penalty on variables, use a regularizer")
        losses.append(loss)

    def _penalize(self, out: Any) -> None:
        regularizer = self._regularizers.get("activity")
        if regularizer is None:
            return
        for result in flatten(out)[0]:
            self.add_loss(as_called(regularizer)(result) * (1.0 / max(1, result.shape[0]) if result.shape else 1.0))

    @property
    def losses(self) -> list[Any]:
        """Terms to add to the loss: penalties of regularizers on trainable variables, and the terms that the last call added."""
        trained = {id(variable.store) for variable in self.trainable_variables}
        penalties = [p for module in self.modules() for p in module._penalties if id(p.variable.store) in trained]
        return [*(as_called(p.regularizer)(p.variable) for p in penalties), *self._added]

    # ---- variables

    def add_variable(
        self, name: str, shape: Sequence[int], initializer: str | Initializer | Callable[..., Any] = "zeros", trainable: bool = True,
        dtype: Any = None, regularizer: Any = None, constraint: Any = None,
    ) -> Variable:  # fmt: skip
        """Create a variable, filled by an initialiser. Its value is computed now, even while a function is being traced."""
        kind = self.dtype if dtype is None else as_dtype(np.dtype(dtype))
        with outside_builders(), suspended(), seeds_from(self.next_seed):
            value = get_initializer(initializer)(tuple(shape), dtype=kind)
        variable = self.variable_class(plain_array(value).astype(kind, copy=False), trainable=trainable, name=f"{self.name}.{name}")
        own = name.rpartition(".")[2]
        variable.store.constraint = get_constraint(constraint) or self._constraints.get(own)
        penalty = get_regularizer(regularizer) or self._regularizers.get(own)
        if penalty is not None:
            self._penalties = (*self._penalties, Penalty(variable, penalty))
        return variable

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """The mask of time steps that belongs to the result; by default that of the input."""
        return mask

    def named_variables(self) -> Iterator[tuple[str, Variable]]:
        """Every variable once, with its path: `layers.0.kernel`."""
        for path, variable, _ in walk(self, "", True, set()):
            yield path, variable

    def modules(self) -> Iterator[Module]:
        """This module and all modules that it contains."""
        return iter(find_modules(self, set()))

    @property
    def variables(self) -> list[Variable]:
        return [variable for _, variable, _ in walk(self, "", True, set())]

    @property
    def trainable_variables(self) -> list[Variable]:
        """Trainable variables of this module and its submodules that are not frozen (`trainable = False`)."""
        return [variable for _, variable, free in walk(self, "", True, set()) if free and variable.trainable]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        return [variable for _, variable, free in walk(self, "", True, set()) if not (free and variable.trainable)]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    def get_weights(self) -> list[Array]:
        """Copies of the values of all variables."""
        return [v.numpy().copy() for v in self.variables]

    def set_weights(self, values: Iterable[Any]) -> None:
        """Assign all variables, in the order of `variables`."""
        given, named = list(values), list(self.named_variables())
        if len(given) != len(named):
            names = ", ".join(path for path, _ in named) or "not built yet: call it once"
            raise ShapeError(f"{self.name}: {len(given)} arrays for {len(named)} variables ({names})")
        arrays = [plain_array(value) for value in given]
        for (path, variable), array in zip(named, arrays, strict=True):
            if array.shape != variable.shape:
                raise ShapeError(f"{self.name}: {path} is {variable.type}: an array of shape {list(array.shape)} does not fit it")
        for (_, variable), array in zip(named, arrays, strict=True):
            variable.assign(array.astype(variable.dtype))

    def count_params(self) -> int:
        """The total number of elements of all variables."""
        return sum(v.type.size for v in self.variables)

    def summary(self) -> str:
        """A table of the variables: names, types and numbers of elements."""
        found = list(walk(self, "", True, set()))
        rows = [(path, str(v.type), f"{v.type.size:,}" + ("" if free and v.trainable else "  (frozen)")) for path, v, free in found]
        widths = [max((len(row[k]) for row in rows), default=0) for k in range(2)]
        lines = [f"{type(self).__name__} {self.name!r}: {self.count_params():,} numbers in {len(rows)} variables"]
        if not rows:
            lines.append("  (layers make their variables when they are first called)")
        text = "\n".join(lines + [f"  {path:<{widths[0]}}  {kind:<{widths[1]}}  {size}" for path, kind, size in rows])
        return Shown(text, table("\n".join(lines), rows))  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        """In notebooks: the table of variables."""
        return Module.summary(self)._repr_html_()  # type: ignore[attr-defined, no-any-return] # it is `Shown`

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.count_params():,} numbers in {len(self.variables)} variables>"


def shape_of(x: Any) -> tuple[int, ...] | None:
    """The shape of an array or an operand; None for anything else."""
    shape = x.type.shape if isinstance(x, Operand) else getattr(x, "shape", None)
    return None if shape is None else tuple(shape)


def takes(function: Callable[..., Any], argument: str) -> bool:
    """Whether a function has a parameter with this name."""
    code = getattr(function, "__code__", None)
    return code is not None and argument in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def children(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Module):
        return [(name, x) for name, x in vars(value).items()]
    if isinstance(value, dict):
        return [(str(key), x) for key, x in value.items()]
    return [(str(i), x) for i, x in enumerate(value)]


def walk(value: Any, path: str, free: bool, seen: set[int]) -> Iterator[tuple[str, Variable, bool]]:
    """Variables below `value`: (path, variable, whether no module on the path is frozen). A shared variable is listed once."""
    if isinstance(value, Variable):
        if id(value.store) not in seen:
            seen.add(id(value.store))
            yield path, value, free
    elif isinstance(value, Module | list | tuple | dict) and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, Module):
            free = free and value.trainable
        for name, child in children(value):
            if isinstance(child, Variable | Module | list | tuple | dict):
                yield from walk(child, f"{path}.{name}" if path else name, free, seen)


def find_modules(value: Any, seen: set[int]) -> list[Module]:
    out: list[Module] = []
    if isinstance(value, Module | list | tuple | dict) and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, Module):
            out.append(value)
        for _, child in children(value):
            if isinstance(child, Module | list | tuple | dict):
                out += find_modules(child, seen)
    return out


def describe(x: Any) -> str:
    shape = getattr(x, "shape", None)
    return type(x).__name__ if shape is None else f"{x.dtype}{list(shape)}"


def as_input(layer: Module, x: Any) -> Operand:
    """The input of a layer, in the layer's dtype: layers compute in the dtype of their variables, as Keras does."""
    operand = to_operand(x)
    return operand if operand.type.dtype == layer.dtype and not operand.weak else operand.astype(layer.dtype)


def check_features(layer: Module, x: Operand, size: int, axis: int = -1) -> None:
    """Check that the input has the size that the variables were created for."""
    if not x.type.shape or x.type.shape[axis] != size:
        raise ShapeError(
            f"{layer.name}: built for inputs with {size} features on axis {axis}, called with {x.type}; "
            "reshape the input, or make a new layer for it"
        )
