"""tf.saved_model: modules and their functions in a directory of adjit's own format, loaded without their source.

    saved_model.json        the objects, their attributes, and the signatures of their functions
    variables.safetensors   the values of variables and constants
    functions/0.ir          one traced function each, as the text of its IR

The traces that a function has are saved, and those for its `input_signature`. Shapes are part of a trace; where it was compiled for all
sizes, a loaded function compiles it for each. Nothing in these files is executed while they are read; only the functions run later,
compiled from their IR.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.nn.module import Module as NeuralModule
from adjit.nn.weights import write_arrays
from adjit.runtime.concrete import ConcreteFunction as Compiled
from adjit.runtime.methods import BoundFunction
from adjit.runtime.stores import Store
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.pytree import flatten
from adjit.tracer.trace import SIZES

from .concrete import ConcreteFunction
from .errors import missing
from .feeding import ARGUMENT
from .function import Function, open_axes, template_of
from .module import Module
from .restored import FORMAT, VERSION, RestoredFunction, Trace, load
from .saved_structures import SavedReference, encode
from .specs import VariableSpec
from .tensor import EagerTensor

DEFAULT = "serving_default"
FUNCTIONS = (Function, BoundFunction, ConcreteFunction, RestoredFunction)


class SaveOptions:
    """Options of `save`. Gradients are always saved: those of custom gradients are part of the IR."""

    def __init__(self, *, experimental_custom_gradients: bool = True, **others: Any) -> None:
        given = [name for name, value in others.items() if value]
        if given:
            raise UnsupportedError(f"tf.saved_model.SaveOptions: {', '.join(given)} is not supported; leave it out")


class LoadOptions(SaveOptions):
    """Options of `load`."""


def save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """Write a module (or any object with variables and functions) to a directory, from which `load` creates one that behaves the same.

    `signatures` are functions to be found by name: one, or a dict of them.

    >>> import tempfile
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         self.w = RuntimeVariable(np.float32(3.0))
    ...     @Function
    ...     def __call__(self, x):
    ...         return x * self.w
    >>> scale = Scale()
    >>> _ = scale(np.ones(2, "f4"))
    >>> save(scale, folder := tempfile.mkdtemp())
    >>> load(folder)(np.full(2, 2, "f4")).numpy()
    array([6., 6.], dtype=float32)
    """
    folder = os.fspath(export_dir)
    writer = Writer()
    root = writer.attribute(obj, type(obj).__name__)
    if not isinstance(root, SavedReference) or root.kind != "node":
        raise ValueError(f"tf.saved_model.save takes a tf.Module or another object with variables and functions, not {obj!r}")
    named = writer.signatures(signatures)
    if isinstance(obj, NeuralModule) and not writer.functions:
        raise UnsupportedError(
            f"{type(obj).__name__} has no function that was traced, so that a saved model of it could not be called: pass signatures="
            "tf.function(model).get_concrete_function(tf.TensorSpec([...])), or save the layers and weights with model.save"
        )
    os.makedirs(os.path.join(folder, "functions"), exist_ok=True)
    for number, text in enumerate(writer.texts):
        with open(os.path.join(folder, "functions", f"{number}.ir"), "w", encoding="utf-8") as file:
            file.write(text)
    write_arrays(os.path.join(folder, "variables.safetensors"), writer.arrays())
    described = {
        "format": FORMAT, "version": VERSION, "nodes": writer.nodes, "functions": writer.functions, "signatures": named,
        "variables": [{"name": store.name, "trainable": store.trainable} for store in writer.stores],
    }  # fmt: skip
    with open(os.path.join(folder, "saved_model.json"), "w", encoding="utf-8") as file:
        json.dump(described, file, indent=1)


class Writer:
    """Numbers objects, variables, constants and functions, each once."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.stores: list[Store] = []
        self.constants: list[np.ndarray[Any, Any]] = []
        self.functions: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self.numbers: dict[int, Any] = {}
        self.kept: list[Any] = []  # keeps ids unique

    def arrays(self) -> dict[str, Any]:
        out = {f"variable.{i}": np.asarray(store.read()) for i, store in enumerate(self.stores)}
        return out | {f"constant.{i}": array for i, array in enumerate(self.constants)}

    # ---- objects

    def attribute(self, value: Any, path: str) -> Any:
        """The value with references instead of objects; None for an attribute that is not saved."""
        if isinstance(value, RuntimeVariable):
            return SavedReference("variable", self.variable(value.store))
        if isinstance(value, EagerTensor):
            return SavedReference("constant", self.constant(value.numpy()))
        if isinstance(value, FUNCTIONS):
            number = self.function(value, path)
            return None if number is None else SavedReference("function", number)
        if type(value) in (list, tuple):
            parts = [self.attribute(each, f"{path}[{i}]") for i, each in enumerate(value)]
            return None if any(p is None and v is not None for p, v in zip(parts, value, strict=True)) else type(value)(parts)
        if isinstance(value, Mapping):
            held = {key: self.attribute(each, f"{path}[{key!r}]") for key, each in value.items()}
            return None if any(held[k] is None and v is not None for k, v in value.items()) else held
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return SavedReference("node", self.node(value, path)) if isinstance(value, Module | NeuralModule) else None

    def node(self, value: Any, path: str) -> int:
        known = self.numbers.get(id(value))
        if known is not None:
            return int(known)
        number = self.numbers[id(value)] = len(self.nodes)
        self.kept.append(value)
        described: dict[str, Any] = {"name": str(getattr(value, "name", type(value).__name__))}
        self.nodes.append(described)
        attributes = {}
        for name, each in parts_of(value):
            found = self.attribute(each, f"{path}.{name}")
            if found is not None or each is None:
                attributes[name] = encode(found, f"{path}.{name}")
        described["attributes"] = attributes
        return number

    def variable(self, store: Store) -> int:
        if id(store) not in self.numbers:
            self.numbers[id(store)] = len(self.stores)
            self.stores.append(store)
        return int(self.numbers[id(store)])

    def constant(self, array: np.ndarray[Any, Any]) -> int:
        self.constants.append(np.asarray(array))
        return len(self.constants) - 1

    # ---- functions

    def function(self, value: Any, path: str) -> int | None:
        """The number of a function; None for one that was never called and has no signature."""
        own, instance = value, None
        if isinstance(value, BoundFunction):
            own, instance = value._function, value.__self__
        if id(own) in self.numbers:
            known: int | None = self.numbers[id(own)]
            return known
        self.kept.append(own)
        if isinstance(own, RestoredFunction):
            return self.described(own, own.name, own.parameters, [self.restored(trace) for trace in own.concrete_functions])
        if isinstance(own, ConcreteFunction):
            function, traces = own._function, [(own._templates, own._compiled)]
        else:
            function, traces = own, list(traces_of(own, instance, path))
        parameters = list(function._parameters.parameters.values())[function._method :]
        named = [[p.name, p.kind.name, *default_of(p)] for p in parameters]
        return self.described(own, function._name, named, [self.trace(*each, path) for each in traces])

    def described(self, function: Any, name: str, parameters: list[Any], traces: list[Any]) -> int | None:
        self.numbers[id(function)] = number = len(self.functions) if traces else None
        if traces:
            self.functions.append({"name": name, "parameters": parameters, "traces": traces})
        return number

    def restored(self, trace: Trace) -> dict[str, Any]:
        """A trace that was loaded."""
        self.texts.append(trace.text)
        return {
            "file": len(self.texts) - 1,
            "inputs": {name: encode(template, name) for name, template in trace.inputs.items()},
            "variables": [self.variable(v.store) for v in trace.variables],
            "constants": [self.constant(c.numpy()) for c in trace.constants],
            "outputs": encode(trace.outputs, "the result"),
        }

    def trace(self, templates: Mapping[str, Any], compiled: Compiled, path: str) -> dict[str, Any]:
        program = compiled.program
        if any(isinstance(leaf, VariableSpec) for leaf in flatten(dict(templates))[0]):
            raise UnsupportedError(f"{path} takes a variable as an argument, which cannot be saved; let it use the variable by its name")
        if ARGUMENT in templates:
            raise UnsupportedError(f"{path} reads a dataset, which cannot be saved; pass the data as an argument")
        if program.reshaped:
            raise UnsupportedError(
                f"{path} changes the shape of a variable, which cannot be saved; return the value, and assign it outside"
            )
        if compiled.guards:
            raise UnsupportedError(
                f"{path} was compiled for all sizes with {', '.join(map(str, compiled.guards))}, which cannot be saved: call it with one "
                "shape only, or set adjit.config.dynamic to False before creating it"
            )
        text = print_func(program.func)
        try:
            same = print_func(parse_func(text)) == text
        except Exception as error:
            raise UnsupportedError(f"{path} calls Python code when it runs, which cannot be saved ({error})") from error
        if not same:
            raise UnsupportedError(f"{path} has operations without a textual form, and cannot be saved")
        self.texts.append(text)
        stores = [bound.store for bound in compiled.convention.variables]
        return {
            "file": len(self.texts) - 1,
            "inputs": {name: encode(template, f"{path}({name}=...)") for name, template in templates.items()},
            "variables": [self.variable(store) for store in stores if store is not None],
            "constants": [self.constant(array) for array in program.captures],
            "outputs": encode(
                program.rebuild([SavedReference("result", i) for i in range(len(program.func.results))]), f"the result of {path}"
            ),
        }

    def signatures(self, given: Any) -> dict[str, int]:
        if given is None:
            described = [f for f in self.functions if len(f["traces"]) == 1]
            return {DEFAULT: self.functions.index(described[0])} if len(self.functions) == 1 and described else {}
        named = dict(given) if isinstance(given, Mapping) else {DEFAULT: given}
        out: dict[str, int] = {}
        for name, function in named.items():
            number = self.function(function, name) if isinstance(function, FUNCTIONS) else None
            if number is None or len(self.functions[number]["traces"]) != 1:
                raise ValueError(
                    f"the signature {name!r} must be a tf.function with an input_signature, or one of its concrete functions "
                    f"(get_concrete_function), not {function!r}"
                )
            out[name] = number
        return out


def parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object and the functions of its class."""
    for name, each in vars(value).items():
        if not name.startswith("_") or name == "__call__":
            yield name, each
    seen = set(vars(value))
    for cls in type(value).__mro__:
        for name, each in vars(cls).items():
            if isinstance(each, Function) and name not in seen:
                yield name, each.__get__(value, cls)
            seen.add(name)


def traces_of(function: Function, instance: Any, path: str) -> Iterator[tuple[dict[str, Any], Compiled]]:
    """The traces of a function; one with an input signature is traced now, for all sizes and for batches of one."""
    signature = function._input_signature
    if signature is not None:
        if any(spec.shape is None for spec in flatten(signature)[0]):
            raise UnsupportedError(f"{path} has an input_signature with a shape of None, but native code needs a rank: write [None]")
        given, was_called = function._positional(signature, {}, instance), bool(function._cache)
        general = function._for_specs(*given, instance)
        if not general.convention.is_general and open_axes(signature) and not was_called:
            raise UnsupportedError(
                f"{path} has an input_signature with sizes of None, and cannot be compiled for all sizes "
                f"({function.pretty_printed_signature().partition('not for all sizes: ')[2]}): call it with the sizes to be saved first"
            )
        function._for_sizes(*given, instance, [1], ())
    cache: dict[Any, Compiled] = dict(function._cache)
    for (tree, kinds), compiled in cache.items():
        if not compiled.program.is_whole:
            continue
        args, kwargs = tree.unflatten(map(template_of, kinds))
        if SIZES in kwargs:
            raise UnsupportedError(
                f"{path} has shapes that depend on values, which only a call of the function itself finds: save one that returns them "
                "padded (tf.where(mask, x, 0)), or save the variables alone, with tf.train.Checkpoint"
            )
        wanted = function._parameters.bind_partial(*((None,) if function._method else ()), *args, **kwargs).arguments
        yield dict(list(wanted.items())[function._method :]), compiled


def default_of(parameter: inspect.Parameter) -> list[Any]:
    """The default of a parameter in a list, which is empty if there is none, or if it is not data: then the argument is required."""
    if parameter.default is inspect.Parameter.empty:
        return []
    try:
        return [encode(parameter.default, parameter.name)]
    except UnsupportedError:
        return []


__all__ = ["LoadOptions", "SaveOptions", "load", "save"]
__getattr__ = missing("tf.saved_model", "it has save, load, SaveOptions and LoadOptions")


def __dir__() -> list[str]:
    return list(__all__)
