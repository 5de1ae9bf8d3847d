"""Basic layers: dense, embedding, dropout, shapes, and compositions of layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.active import outside_builders
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.runtime import random
from adjit.runtime.conversion import as_called
from adjit.runtime.recording import suspended
from adjit.runtime.shards import shard_number
from adjit.runtime.variable import Variable
from adjit.tracer.convert import to_operand

from .activations import get_activation
from .calls import is_training
from .initializers import Initializer
from .module import Module, as_input, check_features, takes
from .symbolic import Symbolic

Init = str | Initializer | Callable[..., Any]


class Dense(Module):
    """activation(x @ kernel + bias), on the last axis.

    >>> aj.nn.Dense(4, activation="relu")(np.ones((2, 3), "f4")).shape
    (2, 4)
    """

    regularized = ("kernel", "bias")
    bias: Variable | None

    def __init__(
        self, units: int, activation: str | Callable[..., Any] | None = None, use_bias: bool = True,
        kernel_initializer: Init = "glorot_uniform", bias_initializer: Init = "zeros", input_dim: int | None = None, **more: Any,
    ) -> None:  # fmt: skip
        if input_dim is not None:
            more["input_shape"] = (input_dim,)
        super().__init__(**more)
        self.units = positive(self, "units", units)
        self.activation = get_activation(activation, self.name)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer

    def build(self, shape: Any) -> None:
        if not shape:
            raise ShapeError(f"{self.name}: takes inputs with a last axis of features, not a scalar")
        self.kernel = self.add_variable("kernel", (shape[-1], self.units), self.kernel_initializer)
        self.bias = self.add_variable("bias", (self.units,), self.bias_initializer) if self.use_bias else None

    def call(self, x: Any) -> Any:
        x = as_input(self, x)
        check_features(self, x, self.kernel.type.shape[0])
        out = x @ self.kernel
        out = out if self.bias is None else out + self.bias
        return self.activation(out)


class Embedding(Module):
    """Looks up rows of a table by integers in [0, input_dim). With `mask_zero`, 0 is padding: subsequent layers skip those steps.

    >>> aj.nn.Embedding(10, 4)(np.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    regularized = ("embeddings",)

    def __init__(
        self, input_dim: int, output_dim: int, embeddings_initializer: Init = "random_uniform", mask_zero: bool = False, **more: Any
    ) -> None:
        super().__init__(**more)
        self.input_dim, self.output_dim = positive(self, "input_dim", input_dim), positive(self, "output_dim", output_dim)
        self.embeddings_initializer, self.mask_zero = embeddings_initializer, mask_zero

    def build(self, shape: Any) -> None:
        self.embeddings = self.add_variable("embeddings", (self.input_dim, self.output_dim), self.embeddings_initializer)

    def call(self, x: Any) -> Any:
        x = to_operand(x)
        if x.type.dtype.kind not in "iu":
            raise DTypeError(f"{self.name}: takes row numbers of its table, which are integers, not {x.type}; use .astype('int32')")
        return ops.getitem(self.embeddings.read_operand(), within(x, self.input_dim))

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return to_operand(x) != 0 if self.mask_zero else mask


def within(index: Operand, size: int) -> Operand:
    """Indices that do not count from the end: a negative one is replaced by an index past the end, which raises."""
    return index if index.type.dtype.kind == "u" else ops.where(index < 0, size, index)


class Dropout(Module):
    """In training, zeroes elements with probability `rate` and divides the others by 1 - rate; otherwise returns x unchanged.

    `noise_shape` broadcasts: axes of size 1 are dropped as a whole. The random state is a variable: it is saved, and a seed reproduces it.

    >>> x = np.ones(4, "f4")
    >>> aj.nn.Dropout(0.5)(x)
    Tensor([1., 1., 1., 1.], f32[4])
    >>> set(aj.nn.Dropout(0.5)(np.ones(100, "f4"), training=True).numpy().tolist())
    {0.0, 2.0}
    """

    def __init__(self, rate: float, noise_shape: Sequence[int | None] | None = None, seed: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"{self.name}: the rate is a probability in [0, 1), not {rate}")
        self.rate, self.seed = float(rate), seed
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)

    def build(self, shape: Any) -> None:
        seed = self.next_seed() if self.seed is None else self.seed
        self.state = self.add_variable("state", (2,), lambda shape, dtype: random.key(seed), trainable=False, dtype=np.uint32)

    def call(self, x: Any) -> Any:
        x = to_operand(x)
        if not is_training() or self.rate == 0.0:
            return x
        x = x if x.type.is_float and not x.weak else as_input(self, x)  # the same dtype as without training
        noise = self.noise_shape or (None,) * x.ndim
        shape = tuple(n if m is None else m for n, m in zip(x.type.shape, noise, strict=True))
        keys = random.split(self.state)
        self.state.assign(keys[0])
        part = shard_number()  # parts of a batch that are computed separately get different masks, and leave the same state
        key = keys[1] if part is None else random.fold_in(keys[1], part)
        kept = random.uniform(key, shape, x.type.dtype) >= self.rate
        return ops.where(kept, x * (1.0 / (1.0 - self.rate)), 0.0)


class Masking(Module):
    """Masks the time steps whose features all equal `mask_value`: subsequent layers skip them.

    >>> x = np.array([[[1.0], [0.0]]], "f4")
    >>> model = aj.nn.Sequential([aj.nn.Masking(), aj.nn.SimpleRNN(1, kernel_initializer="ones", recurrent_initializer="ones")])
    >>> model(x).numpy().round(2)
    array([[0.76]], dtype=float32)
    """

    def __init__(self, mask_value: float = 0.0, **more: Any) -> None:
        super().__init__(**more)
        self.mask_value = float(mask_value)

    def call(self, x: Any) -> Any:
        x = as_input(self, x)
        return ops.where(self._present(x, True), x, 0.0)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return self._present(as_input(self, x), False)

    def _present(self, x: Operand, keepdims: bool) -> Operand:
        return ops.any(ops.not_equal(x, self.mask_value), -1, keepdims)


class Activation(Module):
    """An activation as a layer.

    >>> aj.nn.Activation("relu")(np.array([-1.0, 2.0]))
    Tensor([0., 2.], f32[2])
    """

    def __init__(self, activation: str | Callable[..., Any], **more: Any) -> None:
        super().__init__(**more)
        self.activation = get_activation(activation, self.name)

    def call(self, x: Any) -> Any:
        return self.activation(as_input(self, x))


class Lambda(Module):
    """Any function as a layer.

    >>> aj.nn.Lambda(lambda x: x / 2)(np.array([1.0, 2.0]))
    array([0.5, 1. ])
    """

    def __init__(self, function: Callable[..., Any], **more: Any) -> None:
        super().__init__(**more)
        self.function = function

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return as_called(self.function)(*args, **kwargs)


class Flatten(Module):
    """Flattens all axes except the first into one.

    >>> aj.nn.Flatten()(np.ones((1, 4, 4, 2), "f4")).shape
    (1, 32)
    """

    def call(self, x: Any) -> Any:
        x = to_operand(x)
        return ops.reshape(x, (x.type.shape[0], math.prod(x.type.shape[1:]))) if x.ndim else ops.reshape(x, (1, 1))


class Reshape(Module):
    """Reshapes the axes after the first; one size may be -1.

    >>> aj.nn.Reshape([2, -1])(np.ones((3, 8))).shape
    (3, 2, 4)
    """

    def __init__(self, target_shape: Sequence[int], **more: Any) -> None:
        super().__init__(**more)
        self.target_shape = tuple(target_shape)

    def call(self, x: Any) -> Any:
        x = to_operand(x)
        known = math.prod(n for n in self.target_shape if n != -1)
        size = math.prod(x.type.shape[1:])
        target = tuple(size // max(known, 1) if n == -1 else n for n in self.target_shape)
        if math.prod(target) != size:
            raise ShapeError(f"{self.name}: {x.type} has {size} elements after the first axis, which do not make {list(self.target_shape)}")
        return ops.reshape(x, (x.type.shape[0], *target))


class InputLayer(Module):
    """The shape of the input, without the batch axis. A size of None may vary.

    >>> model = aj.nn.Sequential([aj.nn.InputLayer([3]), aj.nn.Dense(2)])
    >>> [v.shape for v in model.variables]
    [(3, 2), (2,)]
    """

    EXAMPLE_SIZE = 16  # used for a size that varies when shapes are inferred

    def __init__(self, shape: Sequence[int | None], dtype: Any = None, batch_size: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.sizes, self.batch_size = tuple(shape), batch_size
        self.input_dtype = np.dtype(dtype or self.dtype)

    def example(self) -> Operand:
        """A batch of zeros with the shape of the input."""
        shape = tuple(self.EXAMPLE_SIZE if n is None else n for n in self.sizes)
        return to_operand(np.zeros((self.batch_size or 1, *shape), self.input_dtype))

    def call(self, x: Any) -> Any:
        x = to_operand(x)
        wanted = (self.batch_size, *self.sizes)
        if x.ndim != len(wanted) or any(m not in (None, n) for n, m in zip(x.type.shape, wanted, strict=True)):
            raise ShapeError(f"{self.name}: takes batches of shape {list(self.sizes)}, not {x.type}")
        return x


def call_masked(layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any], mask: Any) -> tuple[Any, Any]:
    """The result of a layer (or a function), and its mask, given the mask of its first argument."""
    if not isinstance(layer, Module):
        return layer(*args, **kwargs), mask
    if mask is not None and takes(type(layer).call, "mask"):
        kwargs = {"mask": mask, **kwargs}
    return layer(*args, **kwargs), layer.compute_mask(args[0] if args else None, mask)


class Sequential(Module):
    """Layers (or plain functions) applied one after the other.

    >>> model = aj.nn.Sequential([aj.nn.Dense(8, activation="tanh"), aj.nn.Dense(1)])
    >>> model(np.ones((2, 3), "f4")).shape
    (2, 1)
    """

    def __init__(self, layers: Iterable[Any] = (), **more: Any) -> None:
        super().__init__(**more)
        self.layers: list[Any] = []
        for layer in layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        if isinstance(layer, Symbolic) and isinstance(layer.call.function, InputLayer):
            layer = layer.call.function
        if isinstance(layer, type) or not callable(layer):
            what = f"the class {layer.__name__}: did you mean {layer.__name__}(...)?" if isinstance(layer, type) else repr(layer)
            raise TypeError(f"{self.name}: layer {len(self.layers)} is neither a layer nor a function, but {what}")
        self.layers.append(layer)
        self._build_early()

    def pop(self) -> Any:
        return self.layers.pop()

    def _build_early(self) -> None:
        """If the shape of the input is known, call the layers once on zeros, so that variables exist before the first batch."""
        first = self.layers[0]
        shape = getattr(first, "input_shape", None)
        if getattr(self.layers[-1], "built", True):
            return
        if isinstance(first, InputLayer):
            example = first.example()
        elif shape is not None:
            example = to_operand(np.zeros((1, *shape), first.dtype))
        else:
            return
        with outside_builders(), suspended():
            self(example, training=False)

    def call(self, x: Any, mask: Any = None) -> Any:
        if not self.layers:
            raise ShapeError(f"{self.name}: has no layers yet; add() some")
        for layer in self.layers:
            x, mask = call_masked(layer, (x,), {}, mask)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Any:
        return self.layers[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class Residual(Module):
    """x + inner(x).

    >>> aj.nn.Residual(aj.nn.Lambda(lambda x: 10 * x))(np.array([1.0, 2.0]))
    Tensor([11., 22.], f32[2])
    """

    def __init__(self, inner: Any, **more: Any) -> None:
        super().__init__(**more)
        self.inner = inner

    def call(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        x = as_input(self, x)
        out = to_operand(self.inner(x, *args, **kwargs))
        if out.type.shape != x.type.shape:
            raise ShapeError(
                f"{self.name}: the inner layer gives {out.type} for {x.type}, and only equal shapes can be added; project one of them"
            )
        return x + out


def positive(layer: Module, what: str, value: Any) -> int:
    if int(value) != value or value < 1:
        raise ValueError(f"{layer.name}: {what} must be a positive whole number, not {value!r}")
    return int(value)
