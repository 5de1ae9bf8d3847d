"""Objects restored from a saved model: variables, containers, and functions compiled from their IR."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Sequence
from typing import Any

from adjit.ir.func import Block
from adjit.ir.operand import Operand
from adjit.ir.parser import parse_func
from adjit.ir.sizes import is_symbolic, symbols_of
from adjit.ir.specialize import sizes_in, specialize
from adjit.ir.types import Shape
from adjit.ir.verifier import verify
from adjit.nn.weights import read_arrays
from adjit.runtime.executable import Executable, call
from adjit.tracer.pytree import flatten, tree_map

from .concrete import same_value, type_text
from .errors import NotFoundError
from .function import Function
from .module import Module
from .saved_structures import SavedReference, decode
from .specs import TensorSpec, spec_of
from .tensor import convert_to_tensor, dress, eager
from .variable import Variable

FORMAT = "adjit.saved_model"
VERSION = 1
P = inspect.Parameter
KINDS = (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD, P.VAR_POSITIONAL, P.KEYWORD_ONLY, P.VAR_KEYWORD)


class Loaded(Module):
    """An object of a saved model, with the attributes and functions of the one that was saved."""

    signatures: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = vars(self).get("__call__")
        if function is None:
            raise TypeError("the saved object has no `__call__` that is a tf.function and was traced before it was saved")
        return function(*args, **kwargs)


def load(export_dir: Any, tags: Any = None, options: Any = None) -> Any:
    """Return the object that `save` wrote. Its functions can be called, differentiated, and used in other functions."""
    folder = os.fspath(export_dir)
    try:
        with open(os.path.join(folder, "saved_model.json"), encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError:
        raise NotFoundError(None, None, f"SavedModel file does not exist at: {folder}/saved_model.json") from None
    except ValueError as error:
        raise ValueError(f"{folder}/saved_model.json is not a saved model: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ValueError(f"{folder}/saved_model.json is not a saved model of adjit, version {VERSION}")
    return Reader(folder, data).root()


class Reader:
    """Creates the parts of a saved model from their descriptions, each once."""

    def __init__(self, folder: str, data: dict[str, Any]) -> None:
        self.folder = folder
        self.data = data
        self.arrays = read_arrays(os.path.join(folder, "variables.safetensors"))
        self.variables = [
            Variable(eager(self.arrays[f"variable.{i}"]), each["trainable"], name=each["name"]) for i, each in enumerate(data["variables"])
        ]
        self.functions = [RestoredFunction(self, each) for each in data["functions"]]
        self.nodes: dict[int, Loaded] = {}

    def root(self) -> Loaded:
        out = self.node(0)
        out.signatures = {name: Signature(self.functions[number]) for name, number in self.data["signatures"].items()}
        return out

    def node(self, number: int) -> Loaded:
        if number not in self.nodes:
            described = self.data["nodes"][number]
            out = self.nodes[number] = Loaded(described["name"])
            for name, value in described["attributes"].items():
                vars(out)[name] = tree_map(self.resolved, decode(value))
        return self.nodes[number]

    def resolved(self, leaf: Any) -> Any:
        if not isinstance(leaf, SavedReference):
            return leaf
        if leaf.kind == "node":
            return self.node(leaf.number)
        if leaf.kind == "constant":
            return eager(self.arrays[f"constant.{leaf.number}"])
        return (self.variables if leaf.kind == "variable" else self.functions)[leaf.number]


class Trace:
    """One traced function: the types of its arguments, and its program."""

    def __init__(self, reader: Reader, name: str, data: dict[str, Any]) -> None:
        self.inputs = {parameter: decode(template) for parameter, template in data["inputs"].items()}
        self.outputs = decode(data["outputs"])
        self.variables = [reader.variables[i] for i in data["variables"]]
        self.constants = [eager(reader.arrays[f"constant.{i}"]) for i in data["constants"]]
        path = os.path.join(reader.folder, "functions", f"{int(data['file'])}.ir")
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        func = verify(parse_func(self.text))
        leaves = flatten(self.inputs)[0]
        given = sum(isinstance(leaf, TensorSpec) for leaf in leaves)
        if len(func.params) != given + len(self.variables) + len(self.constants):
            raise ValueError(f"{path} does not take the arguments that saved_model.json lists for it")
        cells = {id(param): v for param, v in zip(func.params[given:], self.variables, strict=False)}
        self._assigned = [cells[id(param)] for param, _ in func.updates]
        block = func.block
        news = [new for _, new in func.updates]
        whole = Block(block.params, block.stmts, (*block.results, *news))
        self._count = len(block.results)
        self.func = func.replace(block=whole, updates=())
        self._executables: dict[tuple[int, ...], Executable] = {}  # by the sizes that the trace leaves open
        self.function = Function(self._body, autograph=False)
        self.function._name = name

    def _body(self, *leaves: Any) -> list[Any]:
        given = [*leaves, *(v.read_operand() for v in self.variables), *self.constants]
        results = call(self._executable([x.type.shape for x in given]), *given)
        for variable, new in zip(self._assigned, results[self._count :], strict=True):
            variable.assign(dress(new))
        return list(results[: self._count])

    def _executable(self, shapes: Sequence[Shape]) -> Executable:
        """The program for operands of these shapes."""
        sizes = sizes_in(self.func, shapes)
        key = tuple(sizes.values())
        if key not in self._executables:
            self._executables[key] = Executable(specialize(self.func, sizes))
        return self._executables[key]

    def _takes(self, tensors: Sequence[Any]) -> bool:
        """Whether tensors have sizes that the trace was made for: one for each symbol, in its range."""
        sizes: dict[str, int] = {}
        for param, x in zip(self.func.params, tensors, strict=False):
            for n, given in zip(param.type.shape, x.type.shape, strict=True):
                if is_symbolic(n) and sizes.setdefault(str(n), given) != given:
                    return False
        ranges = symbols_of(self.func)
        return all(ranges[name].low <= n and n <= (ranges[name].high or n) for name, n in sizes.items())

    def matching(self, arguments: dict[str, Any]) -> list[Any] | None:
        """The tensors among the arguments; None if the trace was made for arguments of other types."""
        out = []
        for name, template in self.inputs.items():
            wanted, tree = flatten(template)
            found, its = flatten(arguments.get(name))
            if its != tree:
                return None
            for leaf, x in zip(wanted, found, strict=True):
                if isinstance(leaf, TensorSpec):
                    value = as_tensor(x, leaf)
                    if value is None or not leaf.is_compatible_with(value):
                        return None
                    out.append(value)
                elif not same_value(x, leaf.value):
                    return None
        return out if self._takes(out) else None

    def __call__(self, tensors: Sequence[Any]) -> Any:
        results = self.function(*tensors)
        return tree_map(lambda leaf: results[leaf.number] if isinstance(leaf, SavedReference) else leaf, self.outputs)

    def __str__(self) -> str:
        return f"({', '.join(f'{name}={type_text(template)}' for name, template in self.inputs.items())})"


def as_tensor(x: Any, spec: TensorSpec) -> Any:
    try:
        return x if isinstance(x, Operand) else convert_to_tensor(x, spec.dtype)
    except (TypeError, ValueError):
        return None


class RestoredFunction:
    """A function of a saved model: a call runs the trace that was made for arguments of its types."""

    def __init__(self, reader: Reader, data: dict[str, Any]) -> None:
        self.name = self.__name__ = str(data["name"])
        self.parameters = data["parameters"]
        self.__signature__ = inspect.Signature([parameter(*each) for each in self.parameters])
        self.concrete_functions = [Trace(reader, self.name, each) for each in data["traces"]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        for trace in self.concrete_functions:
            tensors = trace.matching(bound.arguments)
            if tensors is not None:
                return trace(tensors)
        given = ", ".join(f"{name}={shown(x)}" for name, x in bound.arguments.items())
        raise ValueError(
            f"Could not find matching concrete function to call loaded from the SavedModel. {self.name} got:\n  ({given})\n"
            "and was saved for:\n" + "\n".join(f"  {trace}" for trace in self.concrete_functions)
        )

    def __repr__(self) -> str:
        return f"<restored function {self.name}{self.__signature__}, {len(self.concrete_functions)} traces>"


class Signature:
    """A function that takes tensors by name, and returns them by name."""

    def __init__(self, function: RestoredFunction) -> None:
        self.function = function
        self._trace = function.concrete_functions[0]

    @property
    def structured_input_signature(self) -> Any:
        return (), dict(self._trace.inputs)

    @property
    def structured_outputs(self) -> dict[str, Any]:
        types = [result.type for result in self._trace.func.results]
        specs = [TensorSpec([None if is_symbolic(n) else n for n in type.shape], type.dtype) for type in types]
        return self._named(tree_map(lambda leaf: specs[leaf.number], self._trace.outputs))

    def _named(self, outputs: Any) -> dict[str, Any]:
        if isinstance(outputs, dict):
            return outputs
        return {f"output_{i}": each for i, each in enumerate(flatten(outputs)[0])}

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._named(self.function(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<signature {self.function.name}{self._trace} -> {self.structured_outputs}>"


def parameter(name: str, kind: str, *default: Any) -> inspect.Parameter:
    kinds = {each.name: each for each in KINDS}
    return inspect.Parameter(name, kinds[kind], default=decode(default[0]) if default else inspect.Parameter.empty)


def shown(x: Any) -> str:
    return repr(tree_map(lambda leaf: spec_of(leaf) if isinstance(leaf, Operand) else leaf, x))
