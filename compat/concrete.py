"""Concrete functions: one trace of a `tf.function`, with its calls and its description."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from adjit.ir.operand import Operand
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import TensorType
from adjit.runtime.concrete import ConcreteFunction as Compiled
from adjit.runtime.signature import Static
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.pytree import flatten, tree_map

from .errors import InvalidDType
from .graph import Graph
from .specs import TensorSpec, VariableSpec, spec_of
from .tensor import convert_to_tensor
from .text import TextTensor, is_text, string

if TYPE_CHECKING:
    from .function import Function

UNBOUND = "Binding inputs to tf.function failed"


class ConcreteFunction:
    """One trace of a function, callable with tensors that match its signature.

    Arguments are passed as to the function itself (static ones may be omitted), or as the flat list of the tensors among them.
    """

    def __init__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], compiled: Compiled, instance: Any = None) -> None:
        self._function = function
        self._compiled = compiled
        self._instance = () if instance is None else (instance,)
        self._parameters = function._parameters
        self._templates = templates(function, args, kwargs, self._instance)

    # ---- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given: dict[str, list[Any]] | None
        try:
            given = self._structured(args, kwargs)
        except TypeError as error:
            given = self._flat(args, kwargs)
            if given is None:
                received = f"Received args: {args!r} and kwargs: {kwargs!r} for signature: {self.function_type}"
                raise TypeError(f"{UNBOUND} due to `{error}`. {received}.") from None
        bound = self._parameters.bind_partial(*self._instance)
        for name, template in self._templates.items():
            wanted, tree = flatten(template)
            bound.arguments[name] = tree.unflatten([conforming(name, leaf, x) for leaf, x in zip(wanted, given[name], strict=True)])
        return self._function._enter(bound.args[len(self._instance) :], bound.kwargs, *(self._instance or (None,)))

    def _structured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, list[Any]]:
        """The leaves of each parameter, from arguments as the Python function takes them; raises TypeError if they do not match."""
        bound = self._parameters.bind_partial(*self._instance, *args, **kwargs).arguments
        for name, kind in ((p.name, p.kind) for p in self._parameters.parameters.values()):
            if name in bound and name not in self._templates and kind is kind.VAR_POSITIONAL:
                raise TypeError("too many positional arguments")
            if name in bound and name not in self._templates and kind is kind.VAR_KEYWORD:
                raise TypeError(f"got an unexpected keyword argument {next(iter(bound[name]))!r}")
        out: dict[str, list[Any]] = {}
        for name, template in self._templates.items():
            wanted, tree = flatten(template)
            if name not in bound and any(isinstance(leaf, TensorSpec) for leaf in wanted):
                kind = self._parameters.parameters[name].kind
                first = f"{name}_0" if kind is kind.VAR_POSITIONAL else next(iter(template)) if kind is kind.VAR_KEYWORD else name
                raise TypeError(f"missing a required argument: {first!r}")
            found, its = flatten(bound[name]) if name in bound else (wanted, tree)
            if its != tree:
                kind_text = "a Dict" if isinstance(template, dict) else type(template).__name__
                raise TypeError(f"Can not cast {bound[name]!r} to {kind_text}: {name!r} does not have the structure {type_text(template)}")
            for leaf, x in zip(wanted, found, strict=True):
                if isinstance(leaf, Static) and x is not leaf and not same_value(x, leaf.value):
                    raise TypeError(f"Can not cast {x!r} to {type_text(leaf)}: {name!r} is {leaf.value!r} in this trace, not {x!r}")
            out[name] = found
        return out

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, list[Any]] | None:
        """The leaves of each parameter, from only the tensors, in order; None if their number differs."""
        leaves = {name: flatten(template)[0] for name, template in self._templates.items()}
        names = self._tensor_names()
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(args) + len(kwargs) != len(names) or given.keys() != set(names) or not all(isinstance(x, Operand) for x in given.values()):
            return None
        rest = iter([given[name] for name in names])
        return {name: [next(rest) if isinstance(leaf, TensorSpec) else leaf for leaf in each] for name, each in leaves.items()}

    def _tensor_names(self) -> list[str]:
        """A name for each tensor among the arguments: that of its spec, or of its parameter, with a number if that is already used."""
        names: list[str] = []
        for parameter, template in self._templates.items():
            kind = self._parameters.parameters[parameter].kind
            parts = template.items() if kind is kind.VAR_KEYWORD else [(parameter, template)]
            for base, part in parts:
                for leaf in flatten(part)[0]:
                    if isinstance(leaf, TensorSpec):
                        own = leaf.name or base
                        taken = sum(name == own or name.startswith(f"{own}_") for name in names)
                        names.append(f"{own}_{taken}" if own in names else own)
        return names

    # ---- description

    @property
    def name(self) -> str:
        return self._function._name

    @property
    def graph(self) -> Graph:
        return Graph(self._compiled.program.func)

    @property
    def inference_fn(self) -> ConcreteFunction:
        return self

    @property
    def structured_input_signature(self) -> Any:
        plain = {name: tree_map(lambda x: x.value if isinstance(x, Static) else x, each) for name, each in self._templates.items()}
        plain = {name: named_spec(x, name) if type(x) is TensorSpec else x for name, x in plain.items()}
        named = {n for n in plain if self._parameters.parameters[n].kind is inspect.Parameter.KEYWORD_ONLY}
        return tuple(x for n, x in plain.items() if n not in named), {n: x for n, x in plain.items() if n in named}

    @property
    def structured_outputs(self) -> Any:
        return outputs_of(self._compiled)

    @property
    def inputs(self) -> list[TensorSpec]:
        """The tensors that it takes: arguments, then variables and constants that it captures."""
        program = self._compiled.program
        wanted = [x for each in self._templates.values() for x in flatten(each)[0] if type(x) is TensorSpec]
        shapes: list[Any] = [spec.shape for spec in wanted] if len(wanted) == program.arguments else []
        shapes += [p.type.shape for p in program.func.params[len(shapes) :]]
        return [TensorSpec(n, p.type.dtype, f"{p.name or 'unknown'}:0") for n, p in zip(shapes, program.func.params, strict=True)]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The tensors that it returns, in order."""
        return [spec_for(r.type, f"Identity{f'_{i}' if i else ''}:0")
                for i, r in enumerate(self._compiled.program.returned)]  # fmt: skip

    @property
    def output_shapes(self) -> Any:
        return tree_map(lambda spec: spec.shape if isinstance(spec, TensorSpec) else spec, self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        return tree_map(lambda spec: spec.dtype if isinstance(spec, TensorSpec) else spec, self.structured_outputs)

    @property
    def variables(self) -> tuple[Any, ...]:
        return tuple(RuntimeVariable.of(store) for store in self._compiled.closed_over)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def captured_inputs(self) -> list[Any]:
        return list(self.variables)

    @property
    def function_type(self) -> str:
        """`(a: TensorSpec(...), b: Literal[2]) -> TensorSpec(...)`."""
        kinds = [self._parameters.parameters[name].replace(annotation=Text(each), default=inspect.Parameter.empty)
                 for name, each in self._templates.items()]  # fmt: skip
        return str(inspect.Signature(kinds, return_annotation=Text(outputs_of(self._compiled))))

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        if not verbose:
            return self.function_type
        return signature_text(self._parameters, self._templates, self._compiled)

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.function_type} at 0x{id(self):X}>"


# ---- arguments


def templates(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], instance: tuple[Any, ...]) -> dict[str, Any]:
    """For each parameter, what a call may pass: a spec for each tensor and variable, `Static` for values that are part of the trace."""
    bound = function._parameters.bind(*instance, *args, **kwargs).arguments
    return {name: tree_map(as_template, x) for name, x in list(bound.items())[len(instance) :]}


def as_template(x: Any) -> Any:
    if isinstance(x, Static) and isinstance(x.value, TextTensor):
        return spec_of(x.value)  # a call with another text is another trace of the same function
    if isinstance(x, Static | TensorSpec):
        return x
    if isinstance(x, RuntimeVariable):
        return VariableSpec(x.shape, x.dtype, x.trainable)
    return spec_of(x) if isinstance(x, Operand) or hasattr(type(x), "__array__") else Static(x)


def named_spec(spec: TensorSpec, name: str) -> TensorSpec:
    return TensorSpec(spec.shape, spec.dtype, spec.name or name)


def same_value(x: Any, value: Any) -> bool:
    return x is value or (type(x) is type(value) and not isinstance(x, Operand) and bool(x == value))


def conforming(name: str, wanted: Any, x: Any) -> Any:
    """An argument in the form that the trace takes; raises an error if it does not match."""
    if isinstance(wanted, Static):
        return wanted.value
    if isinstance(x, Operand) and x.type.dtype != wanted.dtype.dtype:
        its = spec_of(x).dtype.name
        raise InvalidDType(f"input {name!r} was expected to be a {wanted.dtype.name} tensor but is a {its} tensor; use tf.cast")
    return fitting(name, wanted, x)


def fitting(name: str, spec: Any, x: Any) -> Any:
    """An argument that matches a `TensorSpec`, or a structure of them; raises TypeError if it does not match."""
    if isinstance(spec, dict):
        if not isinstance(x, dict) or x.keys() != spec.keys():
            raise TypeError(f"{UNBOUND}: the input {name!r} should be a dict of {list(spec)}, not {x!r}")
        return {key: fitting(f"{name}[{key!r}]", each, x[key]) for key, each in spec.items()}
    if isinstance(spec, list | tuple):
        if not isinstance(x, list | tuple) or len(x) != len(spec):
            raise TypeError(f"{UNBOUND}: the input {name!r} should be a {type(spec).__name__} of {len(spec)}, not {x!r}")
        return type(spec)([fitting(f"{name}[{i}]", each, part) for i, (each, part) in enumerate(zip(spec, x, strict=True))])
    if not isinstance(spec, TensorSpec):
        return x
    if spec.dtype is string or isinstance(x, TextTensor):
        return fitting_text(name, spec, x)
    try:
        value = x if isinstance(x, RuntimeVariable) else convert_to_tensor(x, None if isinstance(x, Operand) else spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{UNBOUND} due to `Can not cast {x!r} to {spec!r}` for the input {name!r}: {error}") from None
    if not spec.is_compatible_with(value):
        raise TypeError(f"{UNBOUND} due to `Can not cast {spec_of(value)!r} to {spec!r}` for the input {name!r}")
    return value


def fitting_text(name: str, spec: TensorSpec, x: Any) -> TextTensor:
    text = TextTensor(x) if is_text(x) else x
    if not isinstance(text, TextTensor) or not spec.is_compatible_with(text):
        raise TypeError(f"{UNBOUND} due to `Can not cast {spec_of(text)!r} to {spec!r}` for the input {name!r}")
    return text


# ---- text


class Text:
    """A structure of types, with TensorFlow's repr."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    def __repr__(self) -> str:
        return type_text(self.structure)


def type_text(x: Any) -> str:
    if isinstance(x, Static):
        return type_text(x.value)
    if isinstance(x, TextTensor):
        return repr(spec_of(x))
    if isinstance(x, TensorSpec):
        return repr(x)
    if isinstance(x, list | tuple):
        return f"{type(x).__name__.capitalize()}[{', '.join(map(type_text, x))}]"
    if isinstance(x, dict):
        return f"Dict[{', '.join(f'[{k!r}, {type_text(v)}]' for k, v in x.items())}]"
    return f"Literal[{x!r}]"


def outputs_of(compiled: Compiled) -> Any:
    return compiled.program.rebuild([spec_for(r.type) for r in compiled.program.func.results])


def spec_for(type: TensorType, name: str | None = None) -> TensorSpec:
    """The template of values of a type: sizes that are known only at each call are None."""
    return TensorSpec([None if is_symbolic(n) else n for n in type.shape], type.dtype, name)


def signature_text(parameters: inspect.Signature, wanted: dict[str, Any], compiled: Compiled) -> str:
    kinds = {name: parameters.parameters[name].kind.name for name in wanted}
    captured = [f"  {id(s)}: {TensorSpec(s.type.shape, s.type.dtype)!r}" for s in compiled.closed_over]
    return "\n".join([
        "Input Parameters:", *([f"  {name} ({kinds[name]}): {type_text(x)}" for name, x in wanted.items()] or ["  None"]),
        "Output Type:", f"  {type_text(outputs_of(compiled))}",
        "Captures:", *(captured or ["  None"]),
    ])  # fmt: skip
