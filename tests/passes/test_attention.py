"""Attention and its adjoint are two statements, whose native code computes the weights in tiles and stores none of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.attention import Attention, AttentionGradient
from adjit.passes.fusion.attention import fuse_attention
from adjit.passes.pipeline import OPTIMIZE, READABLE, Pipeline
from adjit.passes.rewrite import walk
from tests.ir.source_checks import check_func
from tests.passes.checks import leaves, rewrites
from tests.passes.near_misses import keeps_meaning_of_near_misses

WITHOUT = Pipeline(*(each for each in OPTIMIZE.passes.values() if each is not fuse_attention))
HEAD = "func @f(%q: f32[2,40,8], %k: f32[2,8,50], %v: f32[2,50,8], %m: bool[2,40,50])"
FORWARD = """
          %s: f32[2,40,50] = matmul %q, %k
          %t: f32[2,40,50] = div %s, 2.0
          %u: f32[2,40,50] = where %m, %t, -inf
          %p: f32[2,40] = max %u {axes=[2]}
          %pc: f32[2,40,1] = reshape %p
          %pb: f32[2,40,50] = broadcast %pc
          %x: f32[2,40,50] = sub %u, %pb
          %e: f32[2,40,50] = exp %x
          %l: f32[2,40] = sum %e {axes=[2]}
          %lc: f32[2,40,1] = reshape %l
          %lb: f32[2,40,50] = broadcast %lc
          %w: f32[2,40,50] = div %e, %lb
          %o: f32[2,40,8] = matmul %w, %v
"""


def test_the_text_of_attention() -> None:
    rewrites(
        fuse_attention,
        f"{HEAD} -> f32[2,40,8] {{{FORWARD}          return %o\n}}\n".replace("\n          ", "\n  "),
        """
        func @f(%q: f32[2,40,8], %k: f32[2,8,50], %v: f32[2,50,8], %m: bool[2,40,50]) -> f32[2,40,8] {
          %0: f32[2,50,8] = transpose %k {axes=[0, 2, 1]}
          %1: bool[2,50,40] = transpose %m {axes=[0, 2, 1]}
          %2: bool[2,50,40] = copy %1
          %o: f32[2,40,8], %3: f32[2,40], %4: f32[2,40] = attention %q, %0, %v, %2 {scale=0.5}
          return %o
        }
        """,
    )


@pytest.mark.parametrize(("name", "type"), [("w", "f32[2,40,50]"), ("u", "f32[2,40,50]"), ("l", "f32[2,40]"), ("p", "f32[2,40]")])
def test_weights_scores_and_sums_that_are_returned_are_stored(name: str, type: str) -> None:
    body = FORWARD.replace("\n          ", "\n  ")
    leaves(fuse_attention, f"{HEAD} -> (f32[2,40,8], {type}) {{{body}  return %o, %{name}\n}}\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max %u", "min %u"),
        ("sum %e", "sum %x"),
        ("sub %u", "sub %t"),
        ("div %e, %lb", "div %lb, %e"),
        ("where %m, %t, -inf", "where %m, -inf, %t"),
        ("where %m, %t, -inf", "where %m, %t, nan"),
        ("where %m, %t, -inf", "where true:bool[2,40,50], %t, -inf"),
        ("div %s, 2.0", "div %s, inf"),
        ("div %s, 2.0", "mul %s, 0.0"),
    ],
)
def test_programs_similar_to_attention_stay(old: str, new: str) -> None:
    body = FORWARD.replace("\n          ", "\n  ").replace(old, new)
    leaves(fuse_attention, f"{HEAD} -> f32[2,40,8] {{{body}  return %o\n}}\n".replace("%t, -inf", "%t, -inf"))


def traced(fn: Any, *args: Any) -> Func:
    return aj.function(fn).inspect(*args).stages[0][1]  # type: ignore[no-any-return]


def ops_of(func: Func) -> list[type]:
    return [type(s.op) for s in walk(func.block) if isinstance(s.op, Attention | AttentionGradient)]


BOTH = [Attention, AttentionGradient]


def attention(q: Any, k: Any, v: Any, mask: Any = None, fill: float = -np.inf, spelling: str = "mul") -> Any:
    scores, size = q @ np.swapaxes(k, -1, -2), q.shape[-1]
    scores = scores / np.sqrt(size).astype(q.dtype) if spelling == "div" else scores * np.asarray(size**-0.5, q.dtype)[()]
    if mask is not None:
        scores = np.where(mask, scores, np.asarray(fill, q.dtype)[()])
    return aj.softmax(scores, axis=-1) @ v


def reference(arrays: Any, mask: Any, fill: float) -> list[Any]:
    """The sum of squares of the result and its gradients, by formulas, in float64."""
    q, k, v = (x.astype("f8") for x in arrays)
    factor = q.shape[-1] ** -0.5
    s = (q @ np.swapaxes(k, -1, -2)) * factor
    s = s if mask is None else np.where(mask, s, fill)
    powers = np.exp(s - s.max(-1, keepdims=True))
    p = powers / powers.sum(-1, keepdims=True)
    out = p @ v
    d, dp = 2 * out, 2 * out @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * factor
    ds = ds if mask is None else np.where(mask, ds, 0.0)
    return [np.sum(out**2), ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ d]


def draw(batch: tuple[int, ...], t: int, u: int, d: int, e: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(t + u)
    return [rng.standard_normal((*batch, n, m)).astype(dtype) for n, m in ((t, d), (u, d), (u, e))]


def stepped(mask: Any, fill: float, spelling: str = "mul") -> Any:
    loss = lambda q, k, v: aj.sum(attention(q, k, v, mask, fill, spelling) ** 2)  # noqa: E731
    return aj.value_and_grad(loss, argnums=(0, 1, 2))


def causal(t: int, u: int) -> Any:
    return np.tril(np.ones((t, u), bool), max(u - t, 0))


SIZES = [((3,), 64, 64, 32, 32), ((2, 2), 70, 45, 24, 40), ((), 150, 200, 16, 16)]
MASKS = {
    "none": (lambda t, u: None, -np.inf),
    "causal": (causal, -np.inf),
    "finite": (causal, -1e9),
    "padded": (lambda t, u: np.arange(u) < u - 20, float(np.finfo("f4").min) / 2),
}


@pytest.mark.parametrize(
    ("sizes", "kind", "dtype"),
    [*((SIZES[1], kind, "f4") for kind in MASKS), (SIZES[0], "none", "f8"), (SIZES[2], "causal", "f8"), (SIZES[2], "none", "f4")],
    ids=str,
)
@pytest.mark.one_size("attention of known sizes is one operation")
def test_values_and_gradients(sizes: Any, kind: str, dtype: str) -> None:
    arrays, (mask_of, fill) = draw(*sizes, dtype), MASKS[kind]
    mask = mask_of(*sizes[1:3])
    func = traced(stepped(mask, fill), *arrays)
    optimized = OPTIMIZE(func)
    assert ops_of(optimized) == BOTH
    given = [*arrays, *(np.asarray(mask).reshape(p.type.shape) for p in func.params[3:])]
    wanted = reference(arrays, mask, fill)
    for results in (compile_func(optimized)(given), run(optimized, *given)):
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_allclose(got, want, atol=(3e-6 if dtype == "f4" else 1e-13) * np.abs(want).max(), rtol=0)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_every_vector_width_and_the_same_bits_on_any_number_of_threads(width: int) -> None:
    arrays, mask = draw((2,), 200, 130, 64, 64, "f4"), causal(200, 130)
    func = OPTIMIZE(traced(stepped(mask, -np.inf), *arrays))
    assert {s.op.parts for s in walk(func.block) if isinstance(s.op, AttentionGradient)} == {4}, "not cut for several threads"
    target = current()._replace(vector_bytes=width)
    given = [*arrays, mask[None]]
    results = []
    for threads in (1, 2, 3):
        native = compile_func(func, target, threads)
        assert ("adjit_parallel" in native.llvm) == (threads > 1), "too small for several threads"
        results.append([np.asarray(x) for x in native(given)])
    for got, want in zip(results[0], reference(arrays, mask, -np.inf), strict=True):
        np.testing.assert_allclose(got, want, atol=3e-6 * np.abs(want).max(), rtol=0)
    assert len({b"".join(x.tobytes() for x in r) for r in results}) == 1


@pytest.mark.parametrize("fill", [-np.inf, float(np.finfo("f4").min) / 2])
def test_rows_that_see_no_key(fill: float) -> None:
    """The same values as with stored weights: NaN or equal weights, and no gradient where the cotangent is zero."""
    arrays, mask = draw((), 100, 150, 8, 8, "f4"), causal(100, 150)
    mask[[3, 70]] = False
    keep = np.ones((100, 1), "f4")
    keep[70] = 0.0

    def loss(q: Any, k: Any, v: Any) -> Any:
        out = attention(q, k, v, mask, fill)
        return aj.sum(np.where(keep > 0, out, np.float32(0)) ** 2)

    func = traced(aj.grad(loss, argnums=(0, 1, 2)), *arrays)
    assert ops_of(OPTIMIZE(func)) == BOTH
    given = [*arrays, *({(100, 150): mask, (100, 1): keep > 0}[p.type.shape[-2:]].reshape(p.type.shape) for p in func.params[3:])]
    for got, want in zip(*(compile_func(passes(func))(given) for passes in (OPTIMIZE, WITHOUT)), strict=True):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("offset", [-300.0, 300.0])
def test_large_scores_of_either_sign(offset: float) -> None:
    """Every block of keys may raise the maximum of a row by a lot, or not at all."""
    q, k, v = draw((2,), 40, 300, 8, 8, "f8")
    k += offset * np.linspace(-1.0, 1.0, 300)[:, None]
    got = aj.function(lambda q, k, v: attention(q, k, v))(q, k, v)
    np.testing.assert_allclose(got, attention(q, k, v), rtol=1e-9, atol=1e-12)


def test_keys_that_no_query_of_a_tile_sees_are_not_read() -> None:
    q, k, v = draw((2,), 256, 256, 16, 16, "f4")
    unseen = v.copy()
    unseen[:, 128:] = np.nan
    f = aj.function(lambda q, k, v: attention(q, k, v, causal(256, 256)))
    np.testing.assert_array_equal(np.asarray(f(q, k, unseen))[:, :128], np.asarray(f(q, k, v))[:, :128])
    assert np.isnan(np.asarray(f(q, k, unseen))[:, 128:]).all()


@pytest.mark.parametrize("mask", [None, causal(40, 50)], ids=["all", "causal"])
@pytest.mark.one_size("attention of known sizes is one operation")
def test_the_statements_as_python(mask: Any) -> None:
    arrays = draw((2,), 40, 50, 8, 8, "f4")
    func = fuse_attention(READABLE(traced(stepped(mask, -np.inf), *arrays)))
    assert ops_of(func) == BOTH
    check_func(func, [*arrays, *(np.asarray(mask).reshape(p.type.shape) for p in func.params[3:])])


@pytest.mark.parametrize("mask", [None, np.tril(np.ones((33, 32), bool))], ids=["all", "causal"])
@pytest.mark.one_size("attention of known sizes is one operation")
def test_gradients_that_are_almost_those_of_attention_keep_their_meaning(mask: Any) -> None:
    """Every statement of the adjoint in turn reads something else, or is read by something else."""
    arrays = draw((), 33, 32, 3, 2, "f8")
    func = READABLE(traced(stepped(mask, -np.inf), *arrays))
    assert ops_of(fuse_attention(func)) == BOTH
    keeps_meaning_of_near_misses(fuse_attention, func, 1000)


@pytest.mark.one_size("attention of known sizes is one operation")
def test_no_array_of_all_weights_is_stored() -> None:
    arrays = draw((4,), 512, 512, 16, 16, "f4")
    func = OPTIMIZE(traced(stepped(None, 0.0), *arrays))
    assert max(r.type.size for s in walk(func.block) for r in s.results) < 512 * 512


@pytest.mark.parametrize(("argnums", "spelling"), [((0,), "mul"), ((1,), "div"), ((0, 2), "div"), ((1, 2), "mul")])
@pytest.mark.one_size("attention of known sizes is one operation")
def test_gradients_by_some_of_the_operands(argnums: tuple[int, ...], spelling: str) -> None:
    arrays = draw((2,), 40, 50, 9, 7, "f8")
    loss = lambda q, k, v: aj.sum(attention(q, k, v, spelling=spelling) ** 2)  # noqa: E731
    f = aj.function(aj.grad(loss, argnums=argnums))
    assert ops_of(f.inspect(*arrays).stages[-1][1]) == BOTH
    wanted = reference(arrays, None, 0.0)
    for i, got in zip(argnums, f(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted[1 + i], rtol=1e-11, atol=1e-13)


def test_a_gradient_of_the_users_with_almost_the_same_factor_stays() -> None:
    @aj.custom_gradient
    def scaled(x: Any) -> Any:
        return x * 0.25, lambda d: d * (0.25 * (1 + 1e-9))

    def loss(q: Any) -> Any:
        return aj.sum((aj.softmax(scaled(q @ np.swapaxes(k, -1, -2)), axis=-1) @ v) ** 2)

    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 40, 8)) for _ in range(3))
    compiled = aj.function(aj.grad(loss))
    assert "attention_gradient" not in compiled.inspect(q).optimized
    np.testing.assert_allclose(compiled(q), aj.grad(loss)(q), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("keys", ["right", "another array", "not transposed"])
@pytest.mark.parametrize("values", ["right", "another array", "not transposed"])
def test_a_gradient_of_the_users_with_another_matrix_stays(keys: str, values: str) -> None:
    """Instead of k, or v transposed, something else of the same shape: the adjoint of attention would be another."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(2, 40, 40)) / 3 for _ in range(4)]
    turn = lambda x: np.swapaxes(x, -1, -2)  # noqa: E731

    def loss(q: Any, k: Any, v: Any, other: Any) -> Any:
        by_keys = {"right": k, "another array": other, "not transposed": turn(k)}[keys]
        by_values = {"right": turn(v), "another array": turn(other), "not transposed": v}[values]
        scores = aj.custom_gradient(lambda x: (x @ turn(k), lambda d: d @ by_keys))
        mixed = aj.custom_gradient(lambda w: (w @ v, lambda d: d @ by_values))
        return aj.sum(mixed(aj.softmax(scores(q) * 0.25, axis=-1)) ** 2)

    compiled = aj.function(aj.grad(loss))
    assert ("attention_gradient" in compiled.inspect(*arrays).optimized) == (keys == values == "right")
    np.testing.assert_allclose(compiled(*arrays), aj.grad(loss)(*arrays), rtol=1e-11, atol=1e-13)


def test_derivatives_of_second_order_store_the_weights() -> None:
    arrays = draw((), 33, 34, 5, 5, "f8")
    loss = lambda q: aj.sum(attention(q, *arrays[1:]) ** 2)  # noqa: E731
    product = lambda q: aj.sum(aj.grad(loss)(q) * arrays[0])  # noqa: E731
    got = aj.function(aj.grad(product))(arrays[0])
    np.testing.assert_allclose(got, aj.grad(product)(arrays[0]), rtol=1e-9, atol=1e-11)


@pytest.mark.one_size("attention of known sizes is one operation")
def test_the_layer_of_nn() -> None:
    layer = aj.nn.MultiHeadAttention(2, 8)
    x = np.random.default_rng(0).standard_normal((2, 40, 16)).astype("f4")
    layer(x, x)

    def loss(x: Any) -> Any:
        return aj.sum(layer(x, x, use_causal_mask=True) ** 2)

    f = aj.function(aj.grad(loss))
    assert ops_of(f.inspect(x).stages[-1][1]) == BOTH
    np.testing.assert_allclose(f(x), aj.grad(loss)(x), rtol=2e-4, atol=2e-5)


def test_sizes_that_are_known_only_at_run_time_store_the_weights() -> None:
    f = aj.function(stepped(None, 0.0), dynamic=True)
    for batch, times in (((2,), 40), ((3,), 50)):
        arrays = draw(batch, times, times, 8, 8, "f8")
        value, gradients = f(*arrays)
        for got, want in zip((value, *gradients), reference(arrays, None, 0.0), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
