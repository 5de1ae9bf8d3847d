"""Models in one file: weights as arrays, and the structure of the model as data (`model.save`, `load_model`). No code in it is executed.

A model is described by the classes and the constructor arguments of its layers. Classes are those of `tf.keras`, or registered ones; a
function (of `Lambda`, say) is code and cannot be saved. The file is a safetensors file whose metadata holds the description.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjit import nn
from adjit.ir.errors import UnsupportedError
from adjit.nn.module import Module
from adjit.nn.recorded import Recorded
from adjit.nn.symbolic import LayerCall, Symbolic
from adjit.nn.weights import WeightsError, load, named, read_arrays, read_metadata, save
from adjit.runtime.variable import Variable
from adjit.tracer.numpy_table import rule_for
from adjit.tracer.pytree import flatten

KEY = "adjit.keras"
VERSION = 1
OPERATORS = {name: getattr(operator, name) for name in ("getitem",)}

_custom: dict[str, type[Any]] = {}


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[type[Any]], type[Any]]:
    """Decorate a class of layers so that models that contain it can be saved and loaded."""

    def register(cls: type[Any]) -> type[Any]:
        _custom[f"{package}>{name or cls.__name__}"] = cls
        return cls

    return register


def _spaces() -> dict[str, Any]:
    from . import constraints, initializers, layers, losses, metrics, models, optimizers, regularizers, schedules  # noqa: PLC0415 - models import this

    return {
        "layers": layers, "models": models, "initializers": initializers, "regularizers": regularizers, "constraints": constraints,
        "losses": losses, "metrics": metrics, "optimizers": optimizers, "schedules": schedules, "nn": nn,
    }  # fmt: skip


def class_name(cls: type[Any]) -> str:
    """`layers.Dense`, or the registered name."""
    for name, known in _custom.items():
        if known is cls:
            return name
    for space, module in _spaces().items():
        if getattr(module, cls.__name__, None) is cls:
            return f"{space}.{cls.__name__}"
    raise UnsupportedError(
        f"{cls.__name__} cannot be saved: it is not a class of tf.keras; decorate it with @tf.keras.utils.register_keras_serializable(), "
        "or save the weights alone with model.save_weights"
    )


def class_named(name: str, custom_objects: Mapping[str, Any]) -> Any:
    short = name.rpartition(">")[2]
    if ">" in name:
        found = custom_objects.get(name) or custom_objects.get(short) or _custom.get(name)
        if found is None:
            raise ValueError(f"the model has a class {short!r}, which is not registered: pass custom_objects={{{short!r}: {short}}}")
        return found
    space, _, own = name.partition(".")
    found = getattr(_spaces().get(space), own, None)
    if not isinstance(found, type) or not issubclass(found, Recorded):
        raise ValueError(f"the file names {name!r}, which is not a class of tf.keras that can be saved")
    return found


# ---- to data


class Encoder:
    """Turns a model into data. Layers that occur several times are written once, and referred to by number."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}

    def encode(self, value: Any, what: str) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, list | tuple):
            return {"list" if isinstance(value, list) else "tuple": [self.encode(v, what) for v in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.encode(k, what), self.encode(v, what)] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            return {"array": value.tolist(), "dtype": value.dtype.str}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if value is Ellipsis:
            return {"ellipsis": True}
        if hasattr(value, "as_numpy_dtype") or isinstance(value, np.dtype):
            return str(np.dtype(getattr(value, "as_numpy_dtype", value)).name)
        if isinstance(value, Recorded):
            return {"object": self.number(value)}
        name = _function_name(value)
        if name is not None:
            return {"function": name}
        raise UnsupportedError(f"{what}: {value!r} cannot be saved, because it is code or not data; give its name, or a class of tf.keras")

    def number(self, value: Any) -> int:
        if id(value) not in self.numbers:
            self.numbers[id(value)] = -1
            found = self.described(value)
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(found)
        return self.numbers[id(value)]

    def described(self, value: Any) -> dict[str, Any]:
        name = class_name(type(value))
        out: dict[str, Any] = {"class": name}
        if isinstance(value, Module):
            out.update(name=value.name, trainable=value.trainable)
        if name == "models.Functional":
            return {**out, "graph": self.graph(value)}
        if name == "models.Sequential":
            return {**out, "layers": [self.encode(layer, value.name) for layer in value.layers]}
        given = value.given
        label = getattr(value, "name", name)
        return {
            **out,
            "args": [self.encode(v, label) for v in given.args],
            "kwargs": {k: self.encode(v, label) for k, v in given.kwargs.items()},
        }

    def graph(self, model: Any) -> dict[str, Any]:
        """Calls in order; a symbolic value is the number of its call and of the result."""
        places: dict[int, int] = {}

        def symbols(value: Any) -> Any:
            if isinstance(value, Symbolic):
                return {"symbol": [places[id(value.call)], value.index]}
            if isinstance(value, list | tuple):
                return {"list" if isinstance(value, list) else "tuple": [symbols(v) for v in value]}
            if isinstance(value, Mapping):
                return {"dict": [[self.encode(k, model.name), symbols(v)] for k, v in value.items()]}
            return self.encode(value, model.name)

        nodes: list[dict[str, Any]] = []

        def add(call: LayerCall) -> None:
            places[id(call)] = len(nodes)
            nodes.append({"function": self.encode(call.function, model.name), "args": symbols(call.args), "kwargs": symbols(call.kwargs)})

        for symbol in flatten(model.inputs)[0]:
            places[id(symbol.call)] = len(nodes)
            nodes.append({"input": self.encode(symbol.call.function, model.name)})
        for call in model._calls:
            add(call)
        return {"nodes": nodes, "inputs": symbols(model.inputs), "outputs": symbols(model.outputs)}


def _function_name(value: Any) -> str | None:
    """`numpy.tanh`, `operator.getitem`, `activations.relu`, `losses.mean_squared_error`: functions that are known by name."""
    from . import activations, losses  # noqa: PLC0415 - as above

    name = getattr(value, "__name__", "")
    if name and getattr(activations, name, None) is value:
        return f"activations.{name}"
    if name and getattr(losses, name, None) is value:
        return f"losses.{name}"
    if name and getattr(np, name, None) is value:
        return f"numpy.{name}"
    return f"operator.{name}" if OPERATORS.get(name) is value else None


def _function_named(name: str) -> Any:
    from . import activations, losses  # noqa: PLC0415 - as above

    space, _, own = name.partition(".")
    source = {"activations": activations, "losses": losses, "numpy": np}.get(space)
    found = OPERATORS.get(own) if space == "operator" else getattr(source, own, None) if _is_function(source, own) else None
    if found is None:
        raise ValueError(f"the file names the function {name!r}, which is not supported")
    return found


def _is_function(source: Any, name: str) -> bool:
    """Whether a name is a mathematical function: a ufunc, one that adjit has, or an activation. Files must not reach others."""
    if source is np:
        function = getattr(np, name, None)
        return isinstance(function, np.ufunc) or (callable(function) and rule_for(function) is not None)
    return source is not None and name in source.__all__


# ---- from data


class Decoder:
    def __init__(self, objects: list[Any], custom_objects: Mapping[str, Any]) -> None:
        self.data, self.custom_objects = objects, custom_objects
        self.made: dict[int, Any] = {}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, content), *rest) = value.items()
        match kind:
            case "list":
                return [self.decode(v) for v in content]
            case "tuple":
                return tuple(self.decode(v) for v in content)
            case "dict":
                return {self.decode(k): self.decode(v) for k, v in content}
            case "array":
                return np.array(content, np.dtype(rest[0][1]))
            case "slice":
                return slice(*content)
            case "ellipsis":
                return Ellipsis
            case "function":
                return _function_named(content)
            case "object":
                return self.object(content)
        raise ValueError(f"the file contains {kind!r}, which is not supported")

    def object(self, number: int) -> Any:
        if number not in self.made:
            self.made[number] = self.created(self.data[number])
        return self.made[number]

    def created(self, data: dict[str, Any]) -> Any:
        cls = class_named(data["class"], self.custom_objects)
        if "graph" in data:
            out = self.graph(cls, data["graph"])
        elif "layers" in data:
            out = cls([self.decode(layer) for layer in data["layers"]])
        else:
            out = cls(*map(self.decode, data["args"]), **{k: self.decode(v) for k, v in data["kwargs"].items()})
        if isinstance(out, Module):
            out._name, out.trainable = data["name"], data["trainable"]
        return out

    def graph(self, cls: Any, data: dict[str, Any]) -> Any:
        results: list[list[Any]] = []

        def symbols(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            ((kind, content), *_) = value.items()
            if kind == "symbol":
                return results[content[0]][content[1]]
            if kind in ("list", "tuple"):
                return (list if kind == "list" else tuple)(symbols(v) for v in content)
            return {self.decode(k): symbols(v) for k, v in content} if kind == "dict" else self.decode(value)

        from .layers import Input  # noqa: PLC0415 - as above

        for node in data["nodes"]:
            if "input" in node:
                layer = self.decode(node["input"])
                out = Input(layer.sizes, layer.batch_size, layer.input_dtype, name=layer.name)
            else:
                out = self.decode(node["function"])(*symbols(node["args"]), **symbols(node["kwargs"]))
            results.append(flatten(out)[0])
        return cls(symbols(data["inputs"]), symbols(data["outputs"]))


# ---- files


def check_overwrite(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{os.fspath(path)} exists; pass overwrite=True")


def fitting(path: Any, model: Any) -> dict[str, Variable]:
    """The variables of a model that are in a file with the same type."""
    arrays = read_arrays(path)
    same = {name: variable for name, variable in named(model) if name in arrays and arrays[name].shape == variable.shape}
    return {name: variable for name, variable in same.items() if arrays[name].dtype == variable.dtype}


def save_model(model: Any, filepath: Any, overwrite: bool = True, zipped: bool | None = None) -> None:
    """Write a model, how it was compiled, and the state of its optimizer to one file."""
    if zipped is not None:
        raise UnsupportedError("save: zipped= selects a format of Keras; leave it out: adjit writes one safetensors file")
    path = os.fspath(filepath)
    check_overwrite(path, overwrite)
    encoder = Encoder()
    trained = model._trainer is not None and model.optimizer.built
    description: dict[str, Any] = {"version": VERSION, "trained": trained, "model": encoder.number(model), "example": model.example_inputs}
    if not model.variables:
        raise WeightsError(f"{model.name} has no variables to save: a model has none before its first call")
    parts = {"model": model}
    if model._trainer is not None:
        description["compile"] = {k: encoder.encode(v, f"compile({k}=)") for k, v in model.compiled_with.kwargs.items()}
        parts["optimizer"] = model.optimizer
    description["objects"] = encoder.objects
    save(path, parts, {KEY: json.dumps(description, allow_nan=True)})


def load_model(filepath: Any, custom_objects: Mapping[str, Any] | None = None, compile: bool = True, safe_mode: bool = True) -> Any:
    """Return the model in a file written by `model.save`, with the settings of `compile` and the state of its optimizer."""
    path = os.fspath(filepath)
    text = read_metadata(path).get(KEY)
    if text is None:
        raise WeightsError(f"{path} contains arrays, but no model: make the model, and use model.load_weights")
    try:
        description = json.loads(text)
        if description["version"] > VERSION:
            raise WeightsError(f"{path} was written by a newer version of adjit")
        decoder = Decoder(description["objects"], custom_objects or {})
        model = decoder.object(description["model"])
        if description["example"] is not None and not model.built:
            shapes = description["example"]
            inputs = [np.zeros(shape, dtype) for shape, dtype in shapes]
            model(inputs[0] if len(inputs) == 1 else inputs)
        if compile and "compile" in description:
            model.compile(**{k: decoder.decode(v) for k, v in description["compile"].items()})
    except (KeyError, IndexError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{path}: the description of the model is broken ({type(error).__name__}: {error})") from None
    parts = {"model": model}
    if compile and "compile" in description:
        if description["trained"]:  # its state was created by the first step
            model.optimizer.build(model.trainable_variables)
        parts["optimizer"] = model.optimizer
    load(path, parts, ignore=() if "optimizer" in parts else ("optimizer.",))
    return model
