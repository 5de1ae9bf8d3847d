"""Every keyword of NumPy's functions, by name and by position, eagerly and traced: NumPy's result, or an error of adjit's or NumPy's class.

The functions are those of one array whose signatures Python can read; the values of a keyword follow from its name.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.tracer.running import run_traced, same

X = np.array([[3.0, 11.5, 2.5, -5.0], [1.0, 4.0, 0.0, 12.0], [-2.0, 6.0, 7.0, 8.0]])  # without equal elements: orders are unique
ARRAYS = [X, X.astype(np.int32), X[0], X[:, :3]]
VALUES: dict[str, list[Any]] = {
    "axis": [0, -1, None, (0, 1), np.int64(0), np.array(1)],
    "axes": [None, (1, 0), (-1, -2)],
    "keepdims": [True, False],
    "dtype": [None, np.float32, "f8", np.int64],
    "out": [None],
    "order": ["C", "F", "A", "K"],
    "where": [True, X > 1.5],
    "initial": [1.0],
    "ddof": [0, 1],
    "correction": [1],
    "decimals": [0, -1],
    "k": [0, 1, -1],
    "kind": [None, "stable"],
    "stable": [True, None],
    "descending": [True],
    "n": [0, 1, 2],
    "ord": [None, 1, np.inf, np.float32(3.0)],
    "offset": [0, 1, -1],
    "axis1": [0],
    "axis2": [1],
    "mode": ["raise", "reduced"],
    "bins": [3],
    "range": [(0, 1)],
    "density": [True],
    "returned": [True],
    "rowvar": [False],
    "bias": [True],
    "return_index": [True],
    "return_counts": [True],
    "nan": [5.0],
    "posinf": [7.0],
    "copy": [True],
    "method": ["linear"],
    "hermitian": [False],
    "full_matrices": [False],
    "compute_uv": [False],
    "discont": [2.0],
    "dx": [0.5],
    "edge_order": [1],
    "prepend": [0.0],
    "append": [9.0],
    "to_end": [[1.0]],
    "bitorder": ["big"],
    "equal_nan": [True],
    "norm": [None, "ortho", "forward"],
    "s": [None, (2, 2)],
    "subok": [True],
    "upper": [True],
    "trim": ["f"],
}
# Their results have unspecified contents, order, signs or dtypes that depend on values; or they write, or use attributes that adjit lacks.
ELSEWHERE = {
    "array2string", "array_repr", "array_str", "eig", "eigvals", "empty_like", "isfortran", "iterable", "may_share_memory", "poly",
    "roots", "save", "shares_memory", "svd", "unique_values",
}  # fmt: skip
LIBRARIES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}


def functions() -> Iterator[Any]:
    for prefix, module in LIBRARIES.items():
        for name in sorted(vars(module)):
            function = getattr(module, name)
            if name.startswith("_") or name in ELSEWHERE or isinstance(function, type | np.ufunc) or not hasattr(function, "__wrapped__"):
                continue
            parameters = list(inspect.signature(function).parameters.values())
            if sum(p.default is p.empty and p.kind is not p.KEYWORD_ONLY for p in parameters) == 1 and parameters[0].kind is not p_var:
                yield pytest.param(function, parameters, id=f"{prefix}.{name}")


p_var = inspect.Parameter.VAR_POSITIONAL


def calls(parameters: list[inspect.Parameter], x: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Positional and named arguments: each keyword alone, and all of the first ones by position."""
    yield (), {}
    position: list[Any] = []
    known = True
    for p in parameters[1:]:
        values = [v for v in VALUES.get(p.name, []) if not isinstance(v, np.ndarray) or v.shape in ((), x.shape)]
        yield from (((), {p.name: value}) for value in values)
        known = known and bool(values) and p.kind is not p.KEYWORD_ONLY
        if known:
            position.append(values[0])
            yield tuple(position), {}


def found(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            return error


def is_clear(error: Exception, wanted: Any) -> bool:
    """Whether adjit refuses with its own message, or NumPy raises the same class."""
    return type(error).__module__.startswith("adjit") or (isinstance(wanted, Exception) and isinstance(error, type(wanted)))


@pytest.mark.parametrize(("function", "parameters"), [*functions()])
def test_keywords(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    wrong = []
    for x in ARRAYS:
        for position, named in calls(parameters, x):
            wanted = found(lambda: function(x.copy(), *position, **named))  # noqa: B023 - called at once
            eager = found(lambda: function(aj.tensor(x), *position, **named))  # noqa: B023
            traced = found(lambda: run_traced(lambda x: function(x, *position, **named), x))  # noqa: B023
            for what, out in (("eager", eager), ("traced", traced)):
                if isinstance(out, Exception):
                    problem = None if is_clear(out, wanted) else repr(out)
                elif isinstance(wanted, Exception):
                    continue  # an answer where NumPy has none is not an error
                else:
                    problem = difference(out, wanted)
                if problem:
                    wrong.append(f"{what}, {x.dtype}{list(x.shape)}, {position}, {named}: {problem}")
    assert not wrong, "\n".join(wrong)


def difference(out: Any, wanted: Any) -> str | None:
    try:
        same(out, wanted, rtol=1e-9)
    except (AssertionError, TypeError, ValueError) as error:
        return str(error).strip()[:200]
    return None
