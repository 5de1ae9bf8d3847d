"""Every function of the array API standard (2024.12), with its signature: as NumPy, eagerly and compiled."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.array([[0.5, -1.25, 2.0], [3.0, 0.25, -0.5]])
Y = np.array([[1.5, 0.75, -2.0], [0.5, 4.0, 1.0]])
U = np.array([[0.1, 0.9, 0.5]])
I = np.array([[3, -1, 4], [1, 5, -9]])
J = np.array([[1, 2, 3], [1, 1, 2]])
B = np.array([[True, False, True]])
S = np.array([[4.0, 1.0], [1.0, 3.0]])

ONE = {
    "floats": "abs acosh asinh atan ceil cos cosh exp expm1 floor isfinite isinf isnan negative positive reciprocal round sign signbit sin "
    "sinh square tan tanh trunc conj imag real",
    "unit": "acos asin atanh log log10 log1p log2 sqrt",
    "integers": "abs bitwise_invert negative sign square",
    "bools": "logical_not bitwise_invert",
}
TWO = {
    "floats": "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp maximum minimum multiply "
    "nextafter not_equal remainder subtract",
    "integers": "add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor equal floor_divide maximum multiply pow "
    "remainder subtract",
    "bools": "logical_and logical_or logical_xor equal bitwise_and",
}
SAMPLES = {"floats": (X, Y), "unit": (U + 1.0, U), "integers": (I, J), "bools": (B, ~B)}
K = dict  # keyword arguments

# name -> positional arguments, keyword arguments
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[(name, (U if kind == "unit" else SAMPLES[kind][0],), {}) for kind, names in ONE.items() for name in names.split() if name != "acosh"],
    ("acosh", (U + 1.0,), {}),
    *[(name, SAMPLES[kind], {}) for kind, names in TWO.items() for name in names.split()],
    ("clip", (X,), K(min=-0.5, max=1.0)),
    ("pow", (np.abs(X), Y), {}),
    # creation
    ("arange", (5,), {}),
    ("arange", (1, 6), K(step=2, dtype=np.float32, device="cpu")),
    ("asarray", (X,), K(dtype=np.float32, copy=True)),
    ("eye", (3, 4), K(k=1, dtype=np.int32)),
    ("full", ((2, 3), 1.5), {}),
    ("full", (), K(shape=(2,), fill_value=3, dtype=np.int8)),
    ("full_like", (X, 2), K(dtype=np.int16)),
    ("linspace", (0.0, 1.0), K(num=5, endpoint=False)),
    ("meshgrid", (U[0], X[0]), K(indexing="ij")),
    ("ones", ((2,),), K(dtype=np.float32)),
    ("ones_like", (I,), {}),
    ("tril", (X,), K(k=-1)),
    ("triu", (X,), K(k=1)),
    ("zeros", ((2, 2),), {}),
    ("zeros_like", (X,), K(dtype=np.uint8)),
    # dtypes
    ("astype", (X, np.int64), K(copy=False)),
    ("can_cast", (np.int8, np.int64), {}),
    ("isdtype", (np.dtype("f4"), "real floating"), {}),
    ("isdtype", (np.dtype("i4"), ("bool", np.int32)), {}),
    # indexing, linear algebra
    ("take", (X, np.array([2, 0])), K(axis=1)),
    ("take_along_axis", (X, np.array([[0], [2]])), K(axis=1)),
    ("matmul", (X, Y.T), {}),
    ("matrix_transpose", (X,), {}),
    ("tensordot", (X, Y), K(axes=((0, 1), (0, 1)))),
    ("vecdot", (X, Y), K(axis=0)),
    # shapes
    ("broadcast_arrays", (X, U), {}),
    ("broadcast_to", (U, (2, 3)), {}),
    ("concat", ((X, Y),), K(axis=1)),
    ("concat", ([X, I],), K(axis=None)),
    ("expand_dims", (X,), K(axis=1)),
    ("flip", (X,), K(axis=0)),
    ("moveaxis", (X, 0, 1), {}),
    ("permute_dims", (X, (1, 0)), {}),
    ("repeat", (X, 2), K(axis=1)),
    ("reshape", (X, (3, 2)), K(copy=None)),
    ("roll", (X, 1), K(axis=1)),
    ("squeeze", (U,), K(axis=0)),
    ("stack", ([X, Y],), K(axis=-1)),
    ("tile", (X, (1, 2)), {}),
    ("unstack", (X,), K(axis=1)),
    # searching, sets, sorting
    ("argmax", (X,), K(axis=1, keepdims=True)),
    ("argmin", (X,), {}),
    ("count_nonzero", (I,), K(axis=0)),
    ("searchsorted", (np.array([3.0, 1.0, 2.0]), U[0]), K(side="right", sorter=np.array([1, 2, 0]))),
    ("where", (X > 0, X, Y), {}),
    ("argsort", (X,), K(axis=0, stable=True)),
    ("sort", (X,), K(axis=1, stable=True)),
    # statistics
    ("cumulative_prod", (X,), K(axis=1)),
    ("cumulative_sum", (X,), K(axis=0, include_initial=True)),
    *[(name, (X,), K(axis=1, keepdims=True)) for name in ("max", "mean", "min", "prod", "sum", "std", "var")],
    *[(name, (X,), K(correction=1)) for name in ("std", "var")],
    ("sum", (I,), K(dtype=np.float64)),
    ("all", (B,), K(axis=1)),
    ("any", (B,), {}),
    ("diff", (X,), K(axis=1, n=2, prepend=np.zeros((2, 1)))),
    # the extension linalg
    ("linalg.cholesky", (S,), K(upper=True)),
    ("linalg.cross", (X, Y), K(axis=1)),
    ("linalg.det", (S,), {}),
    ("linalg.diagonal", (S,), K(offset=1)),
    ("linalg.inv", (S,), {}),
    ("linalg.matmul", (S, S), {}),
    ("linalg.matrix_norm", (S,), K(ord=1, keepdims=True)),
    ("linalg.matrix_power", (S, 3), {}),
    ("linalg.matrix_transpose", (X,), {}),
    ("linalg.outer", (X[0], Y[0]), {}),
    ("linalg.pinv", (X,), {}),
    ("linalg.qr", (S,), K(mode="reduced")),
    ("linalg.slogdet", (S,), {}),
    ("linalg.solve", (S, S[0]), {}),
    ("linalg.tensordot", (X, Y), K(axes=2)),
    ("linalg.trace", (S,), K(offset=1)),
    ("linalg.vecdot", (X, Y), {}),
    *((f"fft.{name}", (X + 1j * Y,), K(norm="ortho")) for name in ("fft", "ifft", "fftn", "ifftn", "irfft", "irfftn", "hfft")),
    *((f"fft.{name}", (X,), K(norm="forward")) for name in ("rfft", "rfftn", "ihfft")),
    *((f"fft.{name}", (X,), K(axes=0)) for name in ("fftshift", "ifftshift")),
    *((f"fft.{name}", (5,), K(d=0.5)) for name in ("fftfreq", "rfftfreq")),
    ("linalg.vector_norm", (X,), K(axis=0, ord=3)),
]


def found(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def compare(got: Any, expected: Any) -> None:
    several = isinstance(expected, tuple | list)
    for a, b in zip(got if several else [got], expected if several else [expected], strict=True):
        if isinstance(b, bool | np.dtype):
            assert a == b
            continue
        a = np.asarray(a)
        assert (a.dtype, a.shape) == (np.asarray(b).dtype, np.shape(b))
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(CALLS)])
def test_as_numpy(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    expected = found(np, name)(*args, **kwargs)
    ours = found(aj, name)
    compare(ours(*args, **kwargs), expected)
    xp = aj.tensor(X).__array_namespace__(api_version="2024.12")
    assert xp is aj
    arrays = [a for a in args if isinstance(a, np.ndarray)]

    def compiled(*traced: Any) -> Any:
        given = iter(traced)
        return ours(*(next(given) if isinstance(a, np.ndarray) else a for a in args), **kwargs)

    if name not in ("can_cast", "isdtype", "asarray"):
        compare(aj.function(compiled)(*arrays), expected)


def test_every_name_is_there() -> None:
    named = {name for name, *_ in CALLS}
    others = """__array_namespace_info__ from_dlpack empty empty_like finfo iinfo result_type nonzero unique_all unique_counts
        unique_inverse unique_values e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
        complex64 complex128 linalg __array_api_version__"""
    for name in [*named, *others.split()]:
        assert found(aj, name) is not None or name == "newaxis"
    public = set(aj.__all__)
    assert {name for name in named if "." not in name} <= public


@pytest.mark.parametrize("name", sorted({name for name, *_ in CALLS} - {"clip"}))
def test_keywords_of_the_standard_are_parameters(name: str) -> None:
    accepted = set(inspect.signature(found(aj, name)).parameters)
    assert {key for call, _, kwargs in CALLS if call == name for key in kwargs} <= accepted


def test_info() -> None:
    info = aj.__array_namespace_info__()  # type: ignore[attr-defined]
    assert info.default_device() == "cpu"
    assert info.devices() == ["cpu"]
    assert info.default_dtypes()["integral"] == aj.int64
    assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32", "uint64"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert info.capabilities()["data-dependent shapes"] is True
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}


def test_dtypes() -> None:
    assert aj.finfo(aj.float32).eps == np.finfo(np.float32).eps
    assert aj.finfo(aj.tensor(1.0)).bits == 64
    assert (aj.iinfo(aj.int8).min, aj.iinfo(aj.tensor(1)).max) == (-128, 2**63 - 1)
    assert aj.result_type(aj.tensor(1), np.float32, 2.0) == np.result_type(np.int64, np.float32)
    with pytest.raises(TypeError, match="not a floating-point dtype"):
        aj.finfo(aj.int8)
    with pytest.raises(ValueError, match="not a kind of dtypes"):
        aj.isdtype(aj.int8, "text")


def test_exchange_of_immutable_arrays_copies_nothing() -> None:
    x = aj.tensor(X)
    for copy in (None, False):
        assert np.shares_memory(aj.from_dlpack(x, copy=copy).numpy(), x.numpy())
    assert not np.shares_memory(aj.from_dlpack(x, copy=True).numpy(), x.numpy())

    # no update of a variable writes to what it shares
    variable = aj.Variable(np.zeros_like(X))
    variable.assign(aj.from_dlpack(x))
    step = aj.function(lambda: variable.assign_add(np.ones_like(X)))
    for _ in range(3):
        step()
    variable.assign_sub(1.0)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(variable, X + 2.0)


def test_devices_and_exchange() -> None:
    x = aj.tensor(X)
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="the only device is 'cpu'"):
        x.to_device("gpu")
    with pytest.raises(aj.UnsupportedError, match="the only device is 'cpu'"):
        aj.zeros(3, device="gpu")
    array = X.copy()
    y = aj.from_dlpack(array)
    array[0] = 9.0
    np.testing.assert_array_equal(y, X)
    for writeable in (True, False):  # where it is not, another view may be
        array.flags.writeable = writeable
        with pytest.raises(BufferError, match="a copy is needed"):
            aj.from_dlpack(array, copy=False)
    with pytest.raises(ValueError, match="not supported"):
        x.__array_namespace__(api_version="1999.01")
