"""Runs the functions of the vector math library on arrays, and measures their errors. Shared by the tests and benchmarks/ulp_vecmath.py."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

from adjit.codegen.llvm import toolchain as llvm
from adjit.codegen.llvm.lanes import LLVM_TYPE, Lanes, Reg, Text
from adjit.codegen.llvm.target import current
from adjit.codegen.vecmath.functions import FUNCTIONS as FUNCTIONS
from adjit.codegen.vecmath.functions import function
from adjit.ir.target import Target

Array = np.ndarray[Any, np.dtype[Any]]
DIVISIONS = ("fmod", "remainder", "floor_divide")  # exact: same bits as NumPy
BINARY = ("pow", "atan2", *DIVISIONS)


def native_width(dtype: np.dtype[Any]) -> int:
    return current().vector_bytes // dtype.itemsize


def kernel_text(name: str, dtype: np.dtype[Any], width: int, target: Target) -> str:
    """A loop that applies one function, `width` elements at a time; the count is a multiple of that."""
    arity = 2 if name in BINARY else 1
    text = Text(target)
    text.block = "loop"
    e = Lanes(text, width)
    scalar, vector = LLVM_TYPE[dtype], e.type(dtype)
    args = []
    for i in range(arity):
        address = text.define(f"getelementptr {scalar}, ptr %in{i}, i64 %i")
        args.append(Reg(text.define(f"load {vector}, ptr {address}, align {dtype.itemsize}"), dtype))
    result = function(name)(e, *args)
    address = text.define(f"getelementptr {scalar}, ptr %out, i64 %i")
    text.put(f"store {vector} {result.name}, ptr {address}, align {dtype.itemsize}")
    parameters = ", ".join(f"ptr noalias %in{i}" for i in range(arity))
    loop = [
        f"define void @kernel({parameters}, ptr noalias %out, i64 %n) nounwind {{",
        "entry:",
        *text.slots,
        "%some = icmp sgt i64 %n, 0",
        "br i1 %some, label %loop, label %exit",
        "loop:",
        f"%i = phi i64 [0, %entry], [%next, %{text.block}]",
        *text.lines,
        f"%next = add i64 %i, {width}",
        "%more = icmp slt i64 %next, %n",
        "br i1 %more, label %loop, label %exit",
        "exit:",
        "ret void",
        "}",
    ]
    return "\n".join([*sorted(text.declares), *loop])


def build(name: str, dtype: np.dtype[Any], width: int, target: Target | None = None) -> Callable[..., Array]:
    """The function `name` on contiguous arrays, for this process's target or another one."""
    target = target or current()
    library = llvm.Library([llvm.assemble(kernel_text(name, dtype, width, target), target)], ["kernel"], {})
    arity = 2 if name in BINARY else 1
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(library.address["kernel"])

    def run(*args: Array, out: Array | None = None, code: object = library) -> Array:
        count = len(args[0])
        padded = -(-count // width) * width
        if padded != count:
            args = tuple(np.concatenate([a, np.ones(padded - count, dtype)]) for a in args)
        result = np.empty(padded, dtype) if out is None else out
        call(*(a.ctypes.data for a in args), result.ctypes.data, padded)
        return result[:count]

    return run


# ---- references


def exact(name: str) -> Callable[..., Any]:
    """The function in mpmath, for finite arguments inside its domain."""
    table: dict[str, Callable[..., Any]] = {
        "exp2": lambda x: mp.power(2, x),
        "log2": lambda x: mp.log(x, 2),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "softplus": lambda x: mp.log1p(mp.exp(x)),
        "logit": lambda p: mp.log(p) - mp.log1p(-p),
        "pow": lambda a, b: mp.power(a, b),
    }
    return table.get(name) or getattr(mp, name)


def by_numpy(name: str) -> Callable[..., Any]:
    """The function by NumPy in the precision of its arguments (or Python, for erf)."""
    table: dict[str, Callable[..., Any]] = {
        "erf": lambda x: np.vectorize(math.erf, otypes=[x.dtype])(x.astype(float)) if len(x) else x,
        "sigmoid": lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x))),
        "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
        "logit": lambda p: np.where(np.abs(p - 0.5) < 0.25, np.log1p((2 * p - 1) / (1 - p)), np.log(p) - np.log1p(-p)),
    }
    names = {
        "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power",
        "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    }  # fmt: skip
    return table.get(name) or getattr(np, names.get(name, name))


def unit(x: Array) -> Array:
    """The distance from |x| to the next float; also at the largest, where np.spacing overflows."""
    return np.spacing(np.minimum(np.abs(x), np.finfo(x.dtype).max / 1.5).astype(x.dtype))


def ulps(got: Array, reference: Array) -> Array:
    """Errors in units in the last place of the rounded reference, which has a wider dtype; infinite where only one is finite."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(got.dtype)
        error = np.abs(got.astype(reference.dtype) - reference) / unit(rounded).astype(reference.dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    finite = np.isfinite(got) & np.isfinite(rounded)
    return np.where(finite, error, np.where(same, 0.0, np.inf)).astype(np.float64)


def mp_ulps(got: Array, name: str, *args: Array) -> Array:
    """As `ulps`, for float64 against mpmath."""
    function = exact(name)
    out = np.empty(len(got))
    with mp.workdps(40):
        for i, (y, *x) in enumerate(zip(got.tolist(), *(a.tolist() for a in args), strict=True)):
            true = function(*map(mp.mpf, x))
            rounded = float(true)
            if math.isinf(rounded) or not math.isfinite(y):
                out[i] = 0.0 if y == rounded else math.inf
            else:
                out[i] = float(abs(mp.mpf(y) - true) / mp.mpf(math.ulp(rounded)))
    return out


# ---- samples

DOMAINS = {
    "exp": (-760.0, 720.0), "exp2": (-1080.0, 1030.0), "expm1": (-50.0, 720.0),
    "tan": (-1e4, 1e4), "sin": (-1e4, 1e4), "cos": (-1e4, 1e4), "sinh": (-720.0, 720.0),
    "cosh": (-720.0, 720.0), "tanh": (-25.0, 25.0), "erf": (-7.0, 7.0), "sigmoid": (-760.0, 60.0), "softplus": (-760.0, 60.0),
    "asin": (-1.0, 1.0), "acos": (-1.0, 1.0),
}  # fmt: skip
POSITIVE = ("log", "log2", "log10")


def in_domain(name: str, x: Array) -> Array:
    """The elements at which the function is real and finite-valued."""
    x = x[np.isfinite(x)]
    if name in POSITIVE:
        return np.abs(x[x != 0])
    if name == "log1p":
        return x[x > -1]
    if name == "acosh":
        return 1 + np.abs(x)
    if name == "logit":
        return np.abs(x[(np.abs(x) < 1) & (x != 0) & (x != 0.5)])
    return x[np.abs(x) <= 1] if name in ("asin", "acos") else x[np.abs(x) < 1] if name == "atanh" else x


@np.errstate(all="ignore")
def samples(name: str, dtype: np.dtype[Any], count: int, seed: int = 0) -> tuple[Array, ...]:
    """Arguments over the whole range: random bit patterns, the interesting interval, around 1 and around 0."""
    rng = np.random.default_rng(seed)
    unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
    patterns = rng.integers(0, np.iinfo(unsigned).max, count, dtype=unsigned, endpoint=True).view(dtype)
    if name == "pow":
        return _power_samples(patterns, dtype, count, rng)
    if name in DIVISIONS:
        return _division_samples(patterns, dtype, rng)
    if name == "logaddexp":
        a = (rng.standard_normal(count) * 10.0 ** rng.uniform(-3, 3, count)).astype(dtype)
        return a, (a + rng.standard_normal(count) * 10.0 ** rng.uniform(-2, 2, count)).astype(dtype)
    low, high = DOMAINS.get(name, (-100.0, 100.0))
    if dtype.itemsize == 4 and high > 100:
        low, high = low / 7, high / (1 if "a" not in name and high > 1e3 else 7)
    uniform = rng.uniform(low, high, count).astype(dtype)
    near_one = (1 + rng.standard_normal(count) * 10.0 ** rng.uniform(-8, 0, count)).astype(dtype)
    near_zero = (rng.standard_normal(count) * 10.0 ** rng.uniform(-10, 1, count)).astype(dtype)
    x = np.concatenate([patterns, uniform, near_one, near_zero])
    if name != "atan2":
        return (in_domain(name, x),)
    y = rng.permutation(x)
    close = (x * (1 + 0.6 * rng.standard_normal(len(x)))).astype(dtype)  # near the diagonals
    x, y = np.concatenate([x, x]), np.concatenate([y, close])
    keep = np.isfinite(x) & np.isfinite(y)
    return y[keep], x[keep]


def _power_samples(patterns: Array, dtype: np.dtype[Any], count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Bases of every magnitude, with exponents for results of every magnitude.

    The error of log(a) is multiplied by b log(a), and is largest at the ends of the interval to which a is reduced: the last two groups
    of bases lie there, and their exponents give the largest and smallest normal results.
    """
    near_one = 1 + rng.standard_normal(count) * 10.0 ** rng.uniform(-7, -0.5, count)
    ends = [rng.uniform(0.7071, 0.75, count), rng.uniform(1.35, 1.4143, count)]
    base = np.abs(np.concatenate([patterns, near_one, rng.uniform(0, 20, count), *ends])).astype(dtype)
    reach, normal = (105.0, 87.0) if dtype.itemsize == 4 else (746.0, 708.0)
    target = rng.uniform(-reach, reach, len(base))
    target[-2 * count :] = rng.choice([-1.0, 1.0], 2 * count) * rng.uniform(0.9 * normal, normal, 2 * count)
    exponent = (target / np.log(base.astype(np.longdouble))).astype(dtype)
    exponent[::7] = np.rint(exponent[::7])
    keep = np.isfinite(base) & (base > 0) & (base != 1) & np.isfinite(exponent)
    return base[keep], exponent[keep]


def _division_samples(patterns: Array, dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, Array]:
    """Ratios of every size; and dividends next to multiples of the divisor, where a rounded quotient is the wrong integer."""
    divisors = rng.permutation(patterns)
    count = len(patterns)
    multiples = divisors * rng.integers(-100, 100, count) * (1 + rng.choice([-3, -1, 0, 1, 3], count) * np.finfo(dtype).eps)
    larger = divisors * 2.0 ** rng.uniform(0, 110, count)
    return np.concatenate([patterns, multiples, larger]).astype(dtype), np.tile(divisors, 3)
