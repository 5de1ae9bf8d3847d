"""grad, value_and_grad, vjp, jvp: eager, compiled, composed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import GradientError


def cube(x: Any) -> Any:
    return x * x * x


@pytest.mark.parametrize(
    "fn",
    [
        aj.grad(aj.grad(cube)),
        aj.function(aj.grad(aj.grad(cube))),
        aj.grad(aj.function(aj.grad(cube))),
        aj.grad(aj.grad(aj.function(cube))),
        aj.function(aj.grad(aj.function(aj.grad(aj.function(cube))))),
    ],
)
def test_derivatives_and_compilation_compose(fn: Callable[..., Any]) -> None:
    assert fn(3.0).item() == 18.0
    assert fn(aj.tensor(2.0)).item() == 12.0


MIXED = {
    "div": lambda x, w: x / (w * w + 1), "divided": lambda x, w: (w * w + 1) / (x + 3), "mul": lambda x, w: x * (w * w),
    "sub": lambda x, w: x - w, "power": lambda x, w: (x * x + 1) ** w, "arctan2": lambda x, w: np.arctan2(x, w + 1),
    "hypot": lambda x, w: np.hypot(x, w), "logaddexp": lambda x, w: np.logaddexp(x, w), "where": lambda x, w: np.where(x > 0, x, w / x),
    "maximum": lambda x, w: np.maximum(x, w) / w, "function": lambda x, w: x / np.sin(w), "twice": lambda x, w: x / w / w,
}  # fmt: skip


@pytest.mark.parametrize("shape", [(), (3,), (2, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", MIXED)
def test_python_numbers_beside_arrays_of_any_dtype(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    """A number that is differentiated takes the dtype of the other operand, and its derivative is that of a Python number."""
    x, w = np.linspace(0.5, 2.0, int(np.prod(shape))).astype(dtype).reshape(shape), 0.75
    gradients = aj.grad(lambda x, w: np.sum(MIXED[name](x, w)), (0, 1))
    eager, compiled = gradients(aj.tensor(x), w), aj.function(gradients)(x, w)
    for a, b in zip(eager, compiled, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5 if dtype == "f4" else 1e-12)
    assert [a.dtype for a in eager] == [np.dtype(dtype), np.dtype("f8")]


@pytest.mark.parametrize("wrap", [lambda f: f, aj.function], ids=["eager", "compiled"])
class TestBothModes:
    def test_argnums(self, wrap: Any) -> None:
        f = lambda a, b, c: a * b * c  # noqa: E731
        assert wrap(aj.grad(f, argnums=1))(2.0, 3.0, 4.0).item() == 8.0
        assert [g.item() for g in wrap(aj.grad(f, argnums=(0, 2)))(2.0, 3.0, 4.0)] == [12.0, 6.0]
        assert wrap(aj.grad(f, argnums=-1))(2.0, 3.0, 4.0).item() == 6.0

    def test_value_and_structures(self, wrap: Any) -> None:
        def loss(params: Any, x: Any) -> Any:
            return ((x @ params["w"] + params["b"][0]) ** 2).sum()

        params = {"w": np.array([1.0, 2.0]), "b": (0.5, 9.0)}
        value, gradient = wrap(aj.value_and_grad(loss))(params, np.array([[1.0, 1.0]]))
        assert value.item() == 12.25
        assert gradient["w"].tolist() == [7.0, 7.0]
        assert [g.item() for g in gradient["b"]] == [7.0, 0.0]

    def test_has_aux(self, wrap: Any) -> None:
        f = lambda x: (x * x, {"x": x, "name": "aux"})  # noqa: E731
        gradient, aux = wrap(aj.grad(f, has_aux=True))(3.0)
        assert (gradient.item(), aux["x"].item(), aux["name"]) == (6.0, 3.0, "aux")
        (value, aux), gradient = wrap(aj.value_and_grad(f, has_aux=True))(3.0)
        assert (value.item(), gradient.item()) == (9.0, 6.0)

    def test_keyword_arguments_pass_through(self, wrap: Any) -> None:
        assert wrap(aj.grad(lambda x, *, k: k * x))(2.0, k=7.0).item() == 7.0

    def test_a_closed_over_value_is_constant(self, wrap: Any) -> None:
        def f(x: Any) -> Any:
            return aj.grad(lambda y: x * y)(x), aj.grad(lambda y: aj.grad(lambda z: z * y)(y))(x)

        assert [g.item() for g in wrap(f)(aj.tensor(3.0))] == [3.0, 1.0]

    def test_python_floats_stay_weak(self, wrap: Any) -> None:
        x = np.array([1.0, 2.0], "f4")
        f = lambda s: (x * (s * 2.0)).sum()  # noqa: E731
        value, gradient = wrap(aj.value_and_grad(f))(3.0)
        assert (value.dtype, value.item(), gradient.item()) == (np.float32, 18.0, 6.0)

    def test_variables_are_constants_unless_given(self, wrap: Any) -> None:
        w = aj.Variable(3.0)
        assert wrap(lambda: aj.grad(lambda x: x * w)(2.0))().item() == 3.0
        assert wrap(lambda: aj.grad(lambda x: x * x)(w))().item() == 6.0

    def test_vjp(self, wrap: Any) -> None:
        def f(a: Any, b: Any) -> Any:
            out, pull = aj.vjp(lambda a, b: {"p": a * b, "s": a + b}, a, b)
            return out, pull({"p": np.array([1.0, 10.0]), "s": None}), pull({"p": 0.0, "s": 1.0})

        out, first, second = wrap(f)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        assert out["p"].tolist() == [3.0, 8.0]
        assert [g.tolist() for g in first] == [[3.0, 40.0], [1.0, 20.0]]
        assert [g.tolist() for g in second] == [[1.0, 1.0], [1.0, 1.0]]

    def test_jvp(self, wrap: Any) -> None:
        f = lambda x, d: aj.jvp(lambda x: (np.sin(x), x.shape[0] * 1.0, x[:1]), (x,), (d,))  # noqa: E731
        x, d = np.array([0.0, 1.0]), np.array([2.0, 3.0])
        (y, _, _), (dy, dn, dz) = wrap(f)(x, d)
        assert np.allclose(y, np.sin(x))
        assert np.allclose(dy, np.cos(x) * d)
        assert (dn.item(), dz.tolist()) == (0.0, [2.0])

    def test_hessian_vector_product_forward_over_reverse(self, wrap: Any) -> None:
        hvp = lambda x, v: aj.jvp(aj.grad(lambda x: (x * x * x).sum()), (x,), (v,))[1]  # noqa: E731
        assert wrap(hvp)(np.array([1.0, 2.0]), np.array([1.0, 10.0])).tolist() == [6.0, 120.0]


def test_jvp_and_vjp_of_compiled_functions() -> None:
    f = aj.function(cube)
    assert [t.item() for t in aj.jvp(f, (2.0,), (1.0,))] == [8.0, 12.0]
    value, pull = aj.vjp(f, 2.0)
    assert (value.item(), pull(1.0)[0].item(), pull(10.0)[0].item()) == (8.0, 12.0, 120.0)


def test_arguments_that_cannot_be_differentiated() -> None:
    with pytest.raises(GradientError, match=r"cube: argument 0 is i64.*float"):
        aj.grad(cube)(3)
    with pytest.raises(GradientError, match=r"floating-point scalars.*vjp"):
        aj.grad(cube)(np.ones(2))
    with pytest.raises(GradientError, match="floating-point scalars"):
        aj.grad(lambda x: {"a": x, "b": x})(1.0)
    with pytest.raises(GradientError, match="argnums names argument 1, but the function was called with 1 positional"):
        aj.grad(cube, argnums=1)(1.0)
    with pytest.raises(GradientError, match=r"argument 0\['a'\] has no gradient"):
        aj.grad(lambda p: p["a"])({"a": "text"})
    with pytest.raises(GradientError, match="structure"):
        aj.jvp(cube, (1.0,), (1.0, 2.0))


def test_argnums_are_positions():
    with pytest.raises(aj.GradientError, match="argnums are the positions of arguments, as ints, not 'x'"):
        aj.grad(lambda x: x, argnums="x")(1.0)
