"""Which of NumPy's functions work on adjit's values, eagerly and traced, and why the others do not.

    python benchmarks/census.py [--all]

All public functions of `np`, `np.linalg` and `np.fft` are counted, except those that do not compute with arrays of numbers (`AWAY`). A
function is called as in `tests/tracer/rows.py`, or with the first arguments of `SAMPLES` that NumPy accepts; it works if all results are
NumPy's. `--all` lists every function, otherwise those that do not work both eagerly and traced.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import adjit as aj
from adjit.tracer.autograph.convert import convert
from tests.autograph import test_array_writes as writes
from tests.tracer.rows import BINARY, FUNCTIONS, UNARY, B, Call, I, J, M, P, S, V, W
from tests.tracer.running import run_traced, same

AWAY = {
    "files, text and memory": """
        array2string array_repr array_str asarray_chkfinite ascontiguousarray asfortranarray asmatrix base_repr binary_repr bmat
        format_float_positional format_float_scientific frombuffer fromfile fromfunction fromiter frompyfunc fromregex fromstring
        from_dlpack genfromtxt getbufsize info load loadtxt may_share_memory memmap nested_iters require save savetxt savez
        savez_compressed setbufsize shares_memory show_config show_runtime typename test get_include asarray asanyarray array nditer
        """,
    "dtypes and errors": """
        can_cast common_type geterr geterrcall errstate finfo iinfo find_common_type isdtype issubdtype isscalar iterable
        min_scalar_type mintypecode promote_types result_type set_printoptions get_printoptions printoptions seterr seterrcall
        isfortran iscomplexobj isrealobj
        """,
    "dates and strings": "busday_count busday_offset busdaycalendar datetime_as_string datetime_data is_busday isnat",
    "arrays made of numbers": """
        arange bartlett blackman diag_indices empty eye full hamming hanning identity indices kaiser mask_indices ones tri
        tril_indices triu_indices zeros fftfreq rfftfreq broadcast_shapes ndindex ndenumerate
        """,
}  # fmt: skip
MATRIX, COMPLEX = S @ S.T + np.eye(3), V + 1j * W
SAMPLES: list[tuple[Any, ...]] = [
    (V,), (M,), (MATRIX,), (I,), (B,), (V, W), (M, M), (I, J), (MATRIX, MATRIX), (MATRIX, V[:3]), (COMPLEX,), (np.abs(I), J % 3),
    (P, 3), (M, 1), (M, 0, 1), ([V, W],), (B, V), (V, V > 0), ((2, 3), J[:2] % 2),
    (np.eye(6).reshape(2, 3, 6)[:, :, ::-1], 2),
]  # fmt: skip
WRITES = {
    np.put: writes.put, np.putmask: writes.putmask, np.place: writes.place, np.copyto: writes.copyto,
    np.fill_diagonal: writes.fill_diagonal, np.put_along_axis: writes.put_along_axis, np.vectorize: writes.vectorized,
}  # fmt: skip


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    away = {name for names in AWAY.values() for name in names.split()}
    seen = set()
    for prefix, space in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        for name in sorted(space.__all__):
            f = getattr(space, name, None)
            counts = callable(f) and name not in away and not (isinstance(f, type) and f is not np.vectorize)
            if counts and f not in seen:
                seen.add(f)
                yield f"{prefix}.{name}", f


def calls(f: Callable[..., Any]) -> list[Call]:
    if f in WRITES:
        return [(WRITES[f], (writes.A,))]
    if f in UNARY or f in BINARY:
        samples = [(x,) for x in UNARY.get(f, ())] + list(BINARY.get(f, ()))
        return [(f, args) for args in samples]
    if FUNCTIONS.get(f):
        return FUNCTIONS[f]
    for args in SAMPLES:
        try:
            f(*args)
        except Exception:  # of any class: the function does not take these arguments
            continue
        numbers = [a for a in args if isinstance(a, int)]  # counts and axes, which are the last arguments, are not traced
        return [(lambda *arrays, numbers=numbers: f(*arrays, *numbers), args[: len(args) - len(numbers)])]
    return []


def eager(f: Callable[..., Any], *args: Any) -> Any:
    return f(*(aj.tensor(a) if isinstance(a, np.ndarray) else a for a in args))


def outcome(f: Callable[..., Any], run: Callable[..., Any]) -> str:
    """Return an empty string if all calls give NumPy's results, else the reason."""
    rows = calls(f)
    if not rows:
        return "no sample: NumPy accepts none of the arguments"
    for function, args in rows:
        try:
            expected = function(*(np.array(a) if isinstance(a, np.ndarray) else a for a in args))
            same(run(function, *args), expected, rtol=1e-9)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    everything = parser.parse_args().all
    warnings.simplefilter("ignore")
    total, works, refused = 0, {"eager": 0, "traced": 0}, []
    for name, f in functions():
        total += 1
        found = {"eager": outcome(f, eager), "traced": outcome(f, lambda f, *args: run_traced(convert(f), *args))}
        for way, why in found.items():
            works[way] += not why
        if everything or any(found.values()):
            refused.append(f"{name}: " + "; ".join(f"{way} {why or 'works'}" for way, why in found.items()))
    print("\n".join(refused))
    print(f"{total} functions; eager {works['eager']}, traced {works['traced']} work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
