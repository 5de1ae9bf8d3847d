"""The mapping from NumPy's functions to adjit's, and from NumPy's arguments to adjit's.

`NUMPY` maps functions and ufuncs. Missing functions, and arguments of NumPy that do not apply here (`out`, `order`, ...), are left to NumPy
if all values are known (`numpy_fallback`); if one is traced, they raise an error that names the function and the user's line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.types import BOOL, DType, as_dtype, weak_example

from .convert import to_operand
from .frames import user_location
from .numpy_fallback import by_numpy, called_by_library, is_known, may_fall_back
from .scipy_names import advice
from .surface import elementwise, reductions, shapes

NUMPY: dict[Callable[..., Any], Callable[..., Any]] = {
    getattr(np, name): getattr(module, name)
    for module, names in {
        elementwise: """exp expm1 exp2 log log1p log2 log10 sqrt square cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
            arctanh absolute negative positive reciprocal sign floor ceil trunc rint isnan isinf isfinite logical_not signbit deg2rad
            rad2deg add subtract multiply divide floor_divide remainder power float_power maximum minimum fmax fmin fmod arctan2 hypot
            logaddexp logaddexp2 copysign heaviside divmod modf equal not_equal less less_equal greater greater_equal logical_and logical_or
            logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift
            round clip nan_to_num isclose sinc isposinf isneginf""",
        reductions: """sum prod max min any all argmax argmin count_nonzero cumsum cumprod mean var std ptp nansum nanmean nanmax
            nanmin allclose array_equal array_equiv""",
        shapes: """reshape ravel transpose matrix_transpose swapaxes moveaxis squeeze expand_dims atleast_1d atleast_2d atleast_3d
            broadcast_to broadcast_arrays concatenate stack hstack vstack dstack column_stack append
            flip fliplr flipud rot90 roll rollaxis resize tile repeat""",
    }.items()
    for name in names.split()
}

# Functions whose modules in `surface` are imported when one of them is first called: most programs call none. If the function there has
# another name, it follows a colon.
LATE: dict[str, str] = {
    name: module
    for module, names in {
        "complex_numbers": "real imag isreal iscomplex angle real_if_close conjugate",
        "padding": "pad",
        "indexing": """take take_along_axis argsort sort searchsorted interp tril triu diagonal trace diag diagflat diff ediff1d delete
            insert isin partition argpartition lexsort unravel_index tril_indices_from triu_indices_from
            diag_indices_from ix_ sort_complex""",
        "choices": "choose piecewise select",
        "create": "full_like zeros_like ones_like linspace meshgrid copy shape ndim size astype",
        "create:zeros_like": "empty_like",
        "products": "matmul dot vdot vecdot inner outer tensordot kron cross matvec vecmat",
        "linalg": "block",
        "statistics": """average median quantile percentile nanmedian cov corrcoef nanprod nanvar nanstd nancumsum nancumprod nanargmax
            nanargmin nanquantile nanpercentile""",
        "splitting": "split array_split hsplit vsplit dsplit",
        "histograms": "digitize bincount histogram histogram_bin_edges histogram2d histogramdd",
        "calculus": "gradient trapezoid unwrap logspace geomspace vander polyfit polyder polyint",
        "array_api": "cumulative_sum cumulative_prod",
        "einsum": "einsum einsum_path",
        "sets": """nonzero flatnonzero argwhere unique unique_all unique_counts unique_inverse unique_values intersect1d union1d setdiff1d
            setxor1d compress extract trim_zeros""",
        "bits": "gcd lcm bitwise_count packbits unpackbits ravel_multi_index frexp ldexp nextafter spacing",
        "polynomials": "convolve correlate poly polyadd polysub polymul polydiv polyval roots",
        "updates": "apply_along_axis apply_over_axes",
        "special": "i0",
    }.items()
    for name in names.split()
}
LATE_FFT = {
    "fft", "fft2", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftn",
}  # fmt: skip
LATE_LINALG: dict[str, str] = {
    name: module
    for module, names in {
        "linalg": """norm matrix_power vector_norm matrix_norm solve inv slogdet det cholesky qr lstsq pinv tensorsolve trace diagonal""",
        "products": "multi_dot matmul tensordot vecdot cross",
        "products:outer_of_vectors": "outer",
        "spectral": "eig eigvals eigh eigvalsh svd svdvals cond matrix_rank tensorinv",
    }.items()
    for name in names.split()
}


def rule_for(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return adjit's function for one of NumPy's; None if there is none."""
    found = NUMPY.get(function)
    if found is None:
        module = late_module(function)
        if module is not None:
            place, _, ours = module.partition(":")
            found = NUMPY[function] = getattr(surface(place), ours or function.__name__)
        elif isinstance(function, np.ufunc):
            found = special_rule(function)
    return found


def late_module(function: Callable[..., Any]) -> str | None:
    """Return the module of `surface` that implements one of NumPy's functions, as `LATE` has it, if it is imported late."""
    name = getattr(function, "__name__", "")
    if name in LATE_LINALG and getattr(np.linalg, name, None) is function:
        return LATE_LINALG[name]
    if name in LATE_FFT and getattr(np.fft, name, None) is function:
        return "fft"
    return LATE[name] if name in LATE and getattr(np, name, None) is function else None


@cache
def surface(module: str) -> Any:
    """A module of `surface`, imported when it is first needed."""
    return import_module(f"adjit.tracer.surface.{module}")


@cache
def late(module: str, name: str) -> Callable[..., Operand]:
    """A function of a module of `surface`, imported when it is first needed."""
    found: Callable[..., Operand] = getattr(surface(module), name)
    return found


def special_rule(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return adjit's function for a ufunc of scipy.special, by its name there; None if there is none."""
    scipy = sys.modules.get("scipy.special")
    name = ufunc.__name__.removeprefix("_")
    if scipy is None or getattr(scipy, ufunc.__name__, getattr(scipy, name, None)) is None:
        return None
    found: Callable[..., Any] | None = surface("special").UFUNCS.get(ufunc.__name__)
    if found is not None:
        NUMPY[ufunc] = found
    return found


def where(condition: Any, /, *sides: Any) -> Any:
    """Implement np.where, whose one-argument form is another function."""
    return elementwise.where(condition, *sides) if sides else surface("sets").nonzero(condition)


def result_type(*xs: Any) -> DType:
    """Implement np.result_type, with weakly typed values as Python scalars."""
    given = [(weak_example(x.dtype) if x.weak else x.dtype) if isinstance(x, Operand) else x for x in xs]
    return np.result_type(*given)


def text(x: Any, /) -> str:
    return repr(x)


NUMPY.update({
    np.amax: reductions.max,
    np.amin: reductions.min,
    np.around: elementwise.round,
    np.fix: elementwise.trunc,
    np.fabs: lambda x, /: elementwise.absolute(elementwise.real_numbers("fabs", elementwise.as_ufuncs(x))),
    np.degrees: elementwise.rad2deg,
    np.radians: elementwise.deg2rad,
    np.invert: elementwise.bitwise_not,
    np.where: where,
    np.result_type: result_type,
    np.linalg.matrix_transpose: shapes.matrix_transpose,
    np.lib.stride_tricks.sliding_window_view: lambda x, /, window_shape, axis=None: surface("windows").sliding_window_view(
        x, window_shape, axis
    ),
    np.isrealobj: lambda x, /: not x.type.is_complex,
    np.iscomplexobj: lambda x, /: x.type.is_complex,
    np.array_repr: text,
    np.array_str: text,
})  # fmt: skip

if hasattr(np, "unstack"):  # NumPy 2.1
    NUMPY[np.unstack] = shapes.unstack

REDUCTIONS: dict[np.ufunc, Callable[..., Operand]] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
    np.logical_and: reductions.all,
    np.logical_or: reductions.any,
    np.logaddexp: reductions.logsumexp,
    np.fmax: reductions.nanmax,
    np.fmin: reductions.nanmin,
}
ACCUMULATIONS: dict[np.ufunc, Callable[..., Operand]] = {
    np.add: reductions.cumsum,
    np.multiply: reductions.cumprod,
}

_MUTATES = (
    "adjit arrays are immutable; use the function of that name in adjit, or x.at[index].set(value): they give a new array. In a traced "
    "function, as a statement on a variable of the function, it assigns the new array"
)
MUTATING = ("put", "copyto", "place", "putmask", "fill_diagonal", "put_along_axis")  # they write to their first argument
HINTS: dict[str, str] = {
    **dict.fromkeys(MUTATING, _MUTATES),
    "copyto": "adjit arrays are immutable; np.broadcast_to(source, x.shape) or np.where(mask, source, x) gives a new array",
}


def refuse(function: Callable[..., Any], why: str = "") -> NoReturn:
    """Raise the error for an unsupported function, with the user's line."""
    name = spelled(function)
    why = why or HINTS.get(
        name.rpartition(".")[2], "compute it outside of the function with NumPy arrays, or express it with supported functions"
    )
    raise UnsupportedError(f"{name} is not supported on adjit's values: {why}{advice()}").at(user_location())


def spelled(function: Callable[..., Any]) -> str:
    """Return a function's name as users write it: `np.linalg.norm`, `scipy.special.gamma`."""
    name = getattr(function, "__name__", "")
    if isinstance(function, np.ufunc) and getattr(sys.modules.get("scipy.special"), name, None) is function:
        return f"scipy.special.{name}"
    module = getattr(function, "__module__", None) or "numpy"
    return f"{'np' + module.removeprefix('numpy')}.{getattr(function, '__name__', function)}"


# ---- arguments

# NumPy functions written in C do not expose their parameter names
PARAMETERS: dict[Callable[..., Any], tuple[str, ...]] = {
    np.concatenate: ("arrays", "axis", "out", "dtype", "casting"),
    np.dot: ("a", "b", "out"),
    np.vdot: ("a", "b"),
    np.inner: ("a", "b"),
    np.where: ("condition", "x", "y"),
    np.copyto: ("dst", "src", "casting", "where"),
    np.putmask: ("a", "mask", "values"),
    np.empty_like: ("prototype", "dtype", "order", "subok", "shape"),
    np.bincount: ("x", "weights", "minlength"),
    np.lexsort: ("keys", "axis"),
    np.unravel_index: ("indices", "shape", "order"),
    np.result_type: (),
    np.reshape: ("a", "shape", "order"),
    np.packbits: ("a", "axis", "bitorder"),
    np.unpackbits: ("a", "axis", "count", "bitorder"),
    np.ravel_multi_index: ("multi_index", "dims", "mode", "order"),
}
RENAMED = {"newshape": "shape"}  # names of NumPy 2.0

HARMLESS: dict[str, Sequence[Any]] = {
    "out": (None,),
    "order": ("C", "K", "A", "F", None),
    "subok": (True, False),
    "casting": ("same_kind", "safe", "unsafe", "equiv", "no"),
    "like": (None,),
    "device": (None, "cpu"),
    "copy": (True, False, None),
    "where": (True,),
    "equal_nan": (False,),
    "sorter": (None,),
    "kind": (None, "stable", "quicksort", "mergesort", "heapsort", "introselect"),
    "stable": (None, True, False),
    "period": (None,),
    "overwrite_input": (False,),
    "rcond": (None,),
    "full": (False,),
}

_NO_VALUE = getattr(np, "_NoValue", None)  # NumPy's marker for an argument that was not given


def call_function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a NumPy function on adjit's values: the implementation of `__array_function__`."""
    if called_by_library(args, kwargs):
        return by_numpy(function, args, kwargs, wrapped=False)
    try:
        return by_rule(function, args, kwargs)
    except UnsupportedError:
        if function.__name__ in MUTATING and args and is_writable(args, kwargs):
            args[0][...] = applied(function, getattr(surface("updates"), function.__name__), args, kwargs)
            return None
        if not may_fall_back(args, kwargs, args[:1] if function.__name__ in MUTATING else kwargs.get("out")):
            raise
    return by_numpy(function, args, kwargs)


def is_writable(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the first argument is a tensor that can be written to: outside of traces."""
    return isinstance(args[0], Concrete) and current_builder() is None and is_known(args, kwargs)


def by_rule(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    ours = rule_for(function)
    if ours is None:
        refuse(function)
    return applied(function, ours, args, kwargs)


def applied(function: Callable[..., Any], ours: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call adjit's function with the arguments of a NumPy function, which have NumPy's names."""
    code = code_below(ours)
    if code.co_flags & 4:  # *args: the NumPy function is variadic too
        return ours(*args, **accepted(function, code, dict(kwargs)))
    names = parameters_of(function)
    operands = code.co_posonlyargcount
    given = list(args[:operands])
    rest = {RENAMED.get(name, name): value for name, value in kwargs.items()}
    for name in names[len(given) : operands]:
        if name not in rest:
            break
        given.append(rest.pop(name))
    if len(args) > max(operands, len(names)):
        refuse(function, f"with {len(args)} arguments that have no names; give those after the first {operands} by name")
    rest.update(zip(names[operands:], args[operands:], strict=False))
    return ours(*given, **accepted(function, code, rest))


def code_below(function: Callable[..., Any]) -> CodeType:
    """The code of a function of ours, which may be wrapped as a boundary of tracebacks, or as in `results`: it has the parameters."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function.__code__


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    known = PARAMETERS.get(function)
    if known is None:
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        known = PARAMETERS[function] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
    return known


def accepted(function: Callable[..., Any], code: CodeType, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that adjit's function accepts; the others must have values that make no difference."""
    ours = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    out = {}
    for name, value in kwargs.items():
        if value is _NO_VALUE:
            continue
        if name in ours:
            out[name] = value
        elif not any(value is harmless or (isinstance(value, str) and value == harmless) for harmless in HARMLESS.get(name, ())):
            what = "a NumPy array cannot store adjit's values; assign the result instead" if name == "out" else "leave it out"
            refuse(function, f"with the argument {name}=; {what}")
    return out


# ---- ufuncs


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a NumPy ufunc, or one of its methods, on adjit's values: the implementation of `__array_ufunc__`."""
    if called_by_library(inputs, kwargs):
        return by_numpy(getattr(ufunc, method), inputs, kwargs, wrapped=False)
    try:
        return ufunc_by_rule(ufunc, method, inputs, kwargs)
    except UnsupportedError:
        if method == "at" and is_writable(inputs, kwargs):
            inputs[0][...] = surface("updates").update_at(ufunc.__name__, lambda *both: call_ufunc(ufunc, "__call__", both, {}), *inputs)
            return None
        if not may_fall_back(inputs, kwargs, inputs[:1] if method == "at" else kwargs.get("out")):
            raise
    return by_numpy(getattr(ufunc, method), inputs, kwargs)


def ufunc_by_rule(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    options = {k: v for k, v in kwargs.items() if not (k == "out" and (v is None or all(o is None for o in v)))}
    if "out" in options:
        refuse(ufunc, "a NumPy array, given as out= or on the left of +=, cannot store them; write x = x + y instead")
    if method == "reduce":
        return reduced(ufunc, inputs, options)
    ours = required_rule(ufunc)
    if method in ("accumulate", "reduceat"):
        return along_axis(ufunc, method, inputs, accepted_ufunc(ufunc, options, ("axis", "dtype")))
    dtype = accepted_ufunc(ufunc, options, ("dtype",)).get("dtype")
    if method == "outer":
        a, b = (to_operand(x) for x in inputs)
        inputs = [ops.reshape(a, a.shape + (1,) * b.ndim), b]
    elif method != "__call__":
        refuse(ufunc, f"with the method .{method}; x.at[index] has .add, .multiply, .min and .max")
    if dtype is None:
        return ours(*inputs)
    return in_dtype(ufunc, ours, inputs, as_dtype(dtype), options.get("casting", "same_kind"))


def in_dtype(ufunc: np.ufunc, ours: Callable[..., Any], inputs: Sequence[Any], dtype: np.dtype[Any], casting: Any) -> Any:
    """Call with `dtype=`, which selects NumPy's loop by the dtype of its results: comparisons compute in the dtype of their operands."""
    types = [*map(dtype_of, inputs), *[None] * ufunc.nout]
    try:
        found = ufunc.resolve_dtypes(tuple(types), signature=(*[None] * ufunc.nin, *[dtype] * ufunc.nout), casting=casting)
    except TypeError as error:
        raise DTypeError(f"np.{ufunc.__name__}, with the argument dtype={dtype.name}: {error}") from None
    operands = [ops.cast(to_operand(x), as_dtype(t)) for x, t in zip(inputs, found, strict=False)]
    out = ours(*operands)
    return out if isinstance(out, tuple) else ops.cast(out, dtype)


def dtype_of(x: Any) -> Any:
    """Return the dtype of an argument; for Python numbers, known and traced, their type, which is weaker in promotion."""
    if type(x) in (int, float, complex):
        return type(x)
    operand = x if isinstance(x, Operand) else to_operand(x)
    return type(weak_example(operand.dtype)) if operand.weak and operand.dtype != BOOL else operand.dtype


def reduced(ufunc: np.ufunc, inputs: Sequence[Any], options: Mapping[str, Any]) -> Operand:
    """Implement `np.add.reduce` and similar; the default axis is 0."""
    given = {name: value for name, value in options.items() if value is not None or name == "axis"}
    function = REDUCTIONS.get(ufunc)
    if function is None or not {"initial", "where"} & given.keys() <= set(code_below(function).co_varnames):
        return surface("ufunc_methods").reduce(ufunc, required_rule(ufunc), *inputs, **given)  # type: ignore[no-any-return]
    axis = {"axis": given.pop("axis", 0)}
    return function(inputs[0], **axis, **accepted(ufunc, code_below(function), given))


def along_axis(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Operand:
    """Implement `np.add.accumulate`, `np.add.reduceat` and similar; the default axis is 0."""
    if not to_operand(inputs[0]).ndim:
        raise ShapeError(f"np.{ufunc.__name__}.{method}: a value without axes; use np.atleast_1d(x)")
    if method == "reduceat":
        parts = lambda x, **given: reduced(ufunc, (x,), given)  # noqa: E731
        return surface("ufunc_methods").reduceat(ufunc, parts, *inputs, **options)  # type: ignore[no-any-return]
    function = ACCUMULATIONS.get(ufunc)
    if function is None:
        return surface("ufunc_methods").accumulate(ufunc, required_rule(ufunc), *inputs, **options)  # type: ignore[no-any-return]
    return function(*inputs, **{"axis": 0, **options})


def required_rule(ufunc: np.ufunc) -> Callable[..., Any]:
    ours = rule_for(ufunc)
    if ours is None:
        refuse(ufunc)
    return ours


def accepted_ufunc(ufunc: np.ufunc, options: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    out = {}
    for name, value in options.items():
        if name in known:
            out[name] = value
        elif not any(value is harmless or (isinstance(value, str) and value == harmless) for harmless in HARMLESS.get(name, ())):
            refuse(ufunc, f"with the argument {name}=; leave it out, or use np.where")
    return out
