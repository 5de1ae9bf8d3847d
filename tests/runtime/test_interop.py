"""Outside of functions, tensors are arrays for NumPy, SciPy and all other code that takes an array."""

from __future__ import annotations

import io
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.operand import Concrete, Literal
from adjit.tracer.numpy_table import MUTATING
from adjit.tracer.pytree import flatten
from tests.tracer.rows import BINARY, FUNCTIONS, Call

T = aj.tensor([3.0, 1.0, 3.0])
A = T.numpy()


def in_place(write: Callable[[Any, Any], Any], x: Any) -> Any:
    out = np.zeros(3)
    write(out, x)
    return out


def added(out: Any, x: Any) -> None:
    out += x


def saved(x: Any) -> Any:
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    return np.load(file)


def saved_by_name(x: Any) -> Any:
    file = io.BytesIO()
    np.savez(file, x, b=x)
    file.seek(0)
    with np.load(file) as held:
        return [held[name] for name in ("arr_0", "b")]


def saved_text(x: Any) -> str:
    file = io.StringIO()
    np.savetxt(file, x)
    return file.getvalue()


# name -> an operation on an array. Each has the same result with a tensor.
USES: dict[str, Callable[[Any], Any]] = {
    "save": saved,
    "savez": saved_by_name,
    "savetxt": saved_text,
    "unique": lambda x: np.unique(x, return_counts=True),
    "nonzero": np.nonzero,
    "where with one argument": lambda x: np.where(x > 2),
    "array += x": lambda x: in_place(added, x),
    "out=": lambda x: np.add(x, 1, out=np.zeros(3)),
    "reduction with out=": lambda x: np.sum(x, axis=0, out=np.zeros(())),
    "copyto": lambda x: in_place(np.copyto, x),
    "putmask": lambda x: in_place(lambda out, x: np.putmask(out, x > 2, x), x),
    "add.at": lambda x: in_place(lambda out, x: np.add.at(out, [0, 0, 2], x), x),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 2]),
    "item assignment": lambda x: in_place(lambda out, x: out.__setitem__(slice(None), x), x),
    "permutation": lambda x: np.random.default_rng(0).permutation(x),
    "choice": lambda x: np.random.default_rng(0).choice([0, 1, 2], p=x / x.sum()),
    "fft": np.fft.fft,
    "eigvals": lambda x: np.linalg.eigvals(x[:, None] * x).astype(complex),  # always complex here
    "arguments that we have not": lambda x: np.clip(x, 1, 2, casting="unsafe", out=np.zeros(3)),
    "vectorize": lambda x: np.vectorize(lambda v: v + 1)(x),
    "apply_along_axis": lambda x: np.apply_along_axis(np.sum, 0, x[None]),
    "str": lambda x: "%.2f" % x[0],  # noqa: UP031 - it asks for a float
    "equal": lambda x: bool(np.array_equal(x, A)),
    "testing": lambda x: np.testing.assert_allclose(x, A),
}


@pytest.mark.parametrize("name", USES)
def test_numpy_takes_tensors(name: str) -> None:
    expected, got = USES[name](A), USES[name](T)
    for a, b in zip(flatten(got)[0], flatten(expected)[0], strict=True):
        if isinstance(b, str):
            assert a == b
            continue
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert np.asarray(a).dtype == np.asarray(b).dtype


def test_results_of_numpy_are_tensors_where_they_can_be() -> None:
    assert all(type(x) is aj.Tensor for x in np.unique(T, return_counts=True))
    assert type(np.linalg.eigvalsh(T[:, None] * T)) is aj.Tensor
    assert type(np.fft.fft(T)) is aj.Tensor
    out = np.zeros(3)
    assert np.add(T, 1, out=out) is out


def test_what_would_write_into_a_tensor_is_refused() -> None:
    with pytest.raises(aj.UnsupportedError):
        np.add(T, 1, out=T)
    with pytest.raises(ValueError, match="read-only"):
        np.random.default_rng(0).shuffle(np.asarray(T))


def test_nothing_is_written_while_tracing() -> None:
    out = np.zeros(3)
    with pytest.raises(aj.UnsupportedError, match="copyto"):
        aj.function(lambda x: (np.copyto(out, T), x)[1])(A)
    np.testing.assert_array_equal(out, np.zeros(3))


WRITES: dict[str, tuple[Any, ...]] = {
    "put": ([0], 1.0),
    "copyto": (1.0,),
    "place": (A > 1, [1.0]),
    "putmask": (A > 1, 1.0),
    "fill_diagonal": (1.0,),
    "put_along_axis": (np.array([0]), 1.0, 0),
}


@pytest.mark.parametrize("name", MUTATING)
def test_refused_writes_recommend_functions_that_exist(name: str) -> None:
    with pytest.raises(aj.UnsupportedError, match=rf"np\.{name} .* immutable") as caught:
        aj.function(lambda x: getattr(np, name)(x, *WRITES[name]))(A)
    assert hasattr(aj, name) or "function of that name" not in str(caught.value)


class Other:
    """Implements all operators with any other operand."""

    def __radd__(self, other: Any) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __rmatmul__(self, other: Any) -> str:
        return "mine"


def test_other_objects_answer_for_themselves() -> None:
    assert T + Other() == "mine"
    assert T @ Other() == "mine"
    assert T.__eq__(Other()) is NotImplemented
    assert Other() == T
    assert (object() == T, object() != T, T == {}) == (False, True, False)
    for x in (T, aj.Variable(1.0)):
        with pytest.raises(TypeError, match="unsupported operand"):
            x * None
        with pytest.raises(TypeError, match="not supported between"):
            object() < x  # noqa: B015
    with pytest.raises(TypeError, match="unsupported operand"):
        aj.function(lambda x: x * None)(1.0)
    for close in (pytest.approx([3.0, 1.0, 3.0]), pytest.approx(A)):
        assert T == close  # noqa: SIM300
    assert T[0] == pytest.approx(3.0)
    assert pytest.approx(T) == [3.0, 1.0, 3.0]


def test_values_have_no_hash() -> None:
    for miss in (lambda x: {0: 10.0, 3: 5.0}.get(x, -1.0), lambda x: x in {3: "a"}, lambda x: {x}):
        with pytest.raises(TypeError, match="unhashable"):
            miss(T[0])
        with pytest.raises(TypeError, match=r"unhashable type: a traced value cannot be a key(.|\n)*test_interop\.py:\d+"):
            aj.function(miss)(3.0)
    v = aj.Variable(3.0)
    assert {v: "kept"}[v] == "kept"


def test_an_ordered_dict_keeps_its_order() -> None:
    given = OrderedDict(z=1.0, a=2.0)
    assert list(aj.function(lambda d: d)(given)) == ["z", "a"]
    assert list(aj.grad(lambda d: d["z"] * d["a"])(given)) == ["z", "a"]
    assert list(aj.function(lambda x: OrderedDict(z=x, a=x))(1.0)) == ["z", "a"]


def with_constants() -> list[Any]:
    """The rows of NumPy's table that take several arrays, with all except one of them constant."""
    rows: list[tuple[str, Call]] = [(f.__name__, (f, pair)) for f, pairs in BINARY.items() for pair in pairs]
    rows += [(f.__name__, row) for f, calls in FUNCTIONS.items() for row in calls if len(row[1]) > 1]
    rows += [
        ("meshgrid", (np.meshgrid, (A, np.ones(2)))),
        ("broadcast_arrays", (np.broadcast_arrays, (A, np.ones((2, 1))))),
        ("matrix_power", (lambda x, y: np.linalg.matrix_power(x, 0), (np.eye(2), A))),
    ]
    return [pytest.param(row, id=f"{name}-{i}") for i, (name, row) in enumerate(rows)]


@pytest.mark.parametrize("row", with_constants())
def test_no_internal_operand_reaches_the_user(row: Call) -> None:
    fn, args = row
    seen: list[Any] = []

    def body(x: Any) -> Any:
        seen.extend(flatten(fn(x, *args[1:]))[0])
        return 0.0

    aj.function(body).inspect(np.asarray(args[0]))
    seen.extend(flatten(fn(aj.tensor(np.asarray(args[0])), *args[1:]))[0])
    assert not any(type(x) in (Concrete, Literal) for x in seen)


def test_vecdot_does_not_broadcast_its_vectors() -> None:
    for a, b in ((np.ones((2, 1)), np.ones((2, 3))), (np.ones(3), np.ones(1))):
        with pytest.raises(ValueError, match="vecdot"):
            np.vecdot(aj.tensor(a), b)


M = aj.tensor(np.arange(24.0).reshape(8, 3) % 7)


def plotted() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.figure()
    pyplot.scatter(M[:, 0], M[:, 1], c=M[:, 2])
    pyplot.contour(M)
    (line,) = pyplot.plot(T, T * 2.0)
    pyplot.close()
    return line.get_ydata(), T * 2.0


def framed() -> Any:
    pandas = pytest.importorskip("pandas")
    both = T + pandas.Series([1.0, 2.0, 3.0]), pandas.Series([1.0, 2.0, 3.0]) + T
    assert all(isinstance(x, pandas.Series) for x in both)
    assert pandas.DataFrame({"a": T, "b": T}).shape == (3, 2)
    return both[0], both[1]


def fitted() -> Any:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(M)
    assert type(scaled) is np.ndarray
    return Ridge().fit(M, M[:, 0]).predict(M), Ridge().fit(M.numpy(), M.numpy()[:, 0]).predict(M.numpy())


def painted() -> Any:
    image = pytest.importorskip("PIL.Image")
    grey = aj.tensor(np.arange(12, dtype=np.uint8).reshape(3, 4))
    return np.asarray(image.fromarray(grey)), grey


def rearranged() -> Any:
    einops = pytest.importorskip("einops.array_api")
    return aj.function(lambda x: einops.rearrange(x, "a b -> b a"))(M), M.T


@pytest.mark.parametrize("use", [plotted, framed, fitted, painted, rearranged], ids=lambda f: f.__name__)
def test_other_libraries(use: Callable[[], Any]) -> None:
    """Where they are installed."""
    got, expected = use()
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
@pytest.mark.parametrize("kind", ["csr_array", "coo_array", "csc_matrix"])
def test_products_with_sparse_matrices_have_gradients(kind: str, shape: tuple[int, ...]) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((5, 4)) < 0.5, rng.standard_normal((5, 4)), 0.0)
    matrix, x, w = getattr(sparse, kind)(dense), rng.standard_normal(shape), rng.standard_normal((5, *shape[1:]))

    def right(v: Any) -> Any:
        return np.sum((matrix @ v) * w)

    def left(v: Any) -> Any:
        return np.sum((v.T @ matrix.T) * w.T)

    def dot(v: Any) -> Any:
        return np.sum((matrix @ v if kind == "coo_array" else matrix.dot(v)) ** 2 * w)  # `dot` of coo_array takes arrays only

    for function, wanted in ((right, dense.T @ w), (left, dense.T @ w), (dot, dense.T @ (2.0 * (dense @ x) * w))):
        np.testing.assert_allclose(aj.grad(function)(x), wanted, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(aj.function(aj.grad(function))(x), wanted, rtol=1e-12, atol=1e-12)
    variable = aj.Variable(x)
    with aj.GradientTape() as tape:
        loss = right(variable)
    np.testing.assert_allclose(tape.gradient(loss, variable), dense.T @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(aj.function(lambda: matrix @ variable)(), dense @ x, rtol=1e-12, atol=1e-12)
    assert isinstance(matrix @ aj.tensor(x), np.ndarray)  # SciPy's own, where nothing is recorded
    assert isinstance(matrix @ variable, np.ndarray)


def test_sparse_products_name_what_does_not_fit() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(aj.ShapeError, match=r"shape \(3, 3\) @ f64\[2\] \(3 != 2\)"):
        aj.function(lambda x: sparse.eye_array(3, format="csr") @ x)(np.ones(2))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes written in Python have buffers from 3.12 on")
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c16"])
def test_buffers_are_read_only_memory(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    view = memoryview(aj.tensor(array))
    assert (view.shape, view.readonly, view.tobytes()) == ((2, 3), True, array.tobytes())
    assert bytes(aj.tensor(array)) == array.tobytes()
    converted = np.asarray(aj.tensor(array))
    assert converted.dtype == array.dtype
    assert not converted.flags.writeable
    assert np.array_equal(converted, array)
    with pytest.raises((TypeError, BufferError)):  # which wants to write
        io.BytesIO(b"x" * 64).readinto(aj.tensor(array))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="as above")
def test_a_differentiated_tensor_has_no_buffer() -> None:
    with pytest.raises(BufferError, match="gradient would be lost"):
        aj.grad(lambda x: np.frombuffer(x)[0] * x[0])(np.ones(3))
    with pytest.raises(aj.GradientError):
        aj.grad(lambda x: np.sum(np.asarray(x) * x))(np.ones(3))


@pytest.mark.parametrize(
    ("module", "call", "instead"),
    [
        ("linalg", lambda module, x: module.solve(x, x[0]), "aj.linalg.solve takes"),
        ("linalg", lambda module, x: module.cho_factor(x), ""),
        ("integrate", lambda module, x: module.quad(lambda t: t * x[0, 0], 0.0, 1.0), "aj.scipy.integrate.quad takes"),
        ("ndimage", lambda module, x: module.gaussian_filter(x, 1.0), ""),
        ("optimize", lambda module, x: module.brentq(lambda t: t - x[0, 0], 0.0, 9.0), ""),
        ("optimize", lambda module, x: module.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(3)), ""),
    ],
)
def test_errors_under_scipy_name_the_users_line(module: str, call: Any, instead: str) -> None:
    library = pytest.importorskip(f"scipy.{module}")
    with pytest.raises(aj.TraceError) as raised:
        aj.function(lambda x: call(library, x))(np.eye(3) + 1.0)
    assert instead in str(raised.value)
    assert Path(__file__).name in str(raised.value)
    assert "site-packages" not in str(raised.value)
