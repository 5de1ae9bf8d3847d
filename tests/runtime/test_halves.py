"""16-bit floats as storage dtypes: exact conversions on every CPU, computed in float32, in everything that stores arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj

try:
    import ml_dtypes

    BFLOAT16 = [np.dtype(ml_dtypes.bfloat16)]
except ImportError:
    BFLOAT16 = []

HALVES = pytest.mark.parametrize("dtype", [np.dtype(np.float16), *BFLOAT16], ids=str)


def values(dtype: Any) -> Any:
    return np.linspace(-2.0, 2.0, 7).astype(dtype)


@HALVES
@pytest.mark.parametrize("width", ["16", "64"])
def test_all_conversions_are_exact(monkeypatch: pytest.MonkeyPatch, dtype: Any, width: str) -> None:
    monkeypatch.setenv("ADJIT_VECTOR_BYTES", width)
    every = np.arange(65536, dtype=np.uint16).view(dtype)
    wide = every.astype(np.float32)
    np.testing.assert_array_equal(np.asarray(aj.function(lambda x: x.astype("float32"))(every)), wide)
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    near = wide[np.isfinite(wide)]
    middle = ((near[:-1].astype("f8") + near[1:]) / 2).astype("f4")
    given = np.concatenate([bits, wide, middle, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(3e38))])
    got = np.asarray(aj.function(lambda x: x.astype(dtype))(given))
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = given.astype(dtype)
    assert got.dtype == dtype
    numbers = ~np.isnan(given)
    np.testing.assert_array_equal(got.view(np.uint16)[numbers], wanted.view(np.uint16)[numbers])
    assert np.isnan(got.astype("f4")[~numbers]).all()


@HALVES
def test_computed_in_float32(dtype: Any) -> None:
    x = values(dtype)
    wide = x.astype("f4")
    programs = [
        lambda x: x + x, lambda x: x * 2.1, lambda x: np.sin(x), lambda x: np.sum(x * x), lambda x: x[::2] * 1,
        lambda x: x.reshape(7, 1) @ x[None],
        lambda x: np.max(x), lambda x: np.concatenate([x, x.astype("f4")]), lambda x: np.where(x > 0, x, 0.0),
        lambda x: np.cumsum(x),
        lambda x: x > 0, lambda x: np.mean(x), lambda x: x.astype("int32"), lambda x: aj.vmap(lambda v: v * v)(x),
    ]  # fmt: skip
    for program in programs:
        wanted = np.asarray(aj.function(program)(wide))
        for got in (aj.function(program)(x), program(aj.tensor(x))):
            assert np.asarray(got).dtype == wanted.dtype
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6, atol=1e-6)


@HALVES
def test_elements_that_are_only_moved_keep_their_dtype(dtype: Any) -> None:
    """As in NumPy, whether an index is known only when the program runs or not."""
    x, k, several = values(dtype), np.array(2), np.array([0, -1, 3])
    programs = [
        lambda x, k, several: x[2], lambda x, k, several: x[k], lambda x, k, several: x[several], lambda x, k, several: np.take(x, several),
        lambda x, k, several: x[np.array([4, 1])], lambda x, k, several: x[1:4], lambda x, k, several: x[::-1][k],
        lambda x, k, several: x.reshape(7, 1)[k], lambda x, k, several: np.pad(x, 1), lambda x, k, several: np.sort(x[several]),
        lambda x, k, several: np.concatenate([x, x[several]]), lambda x, k, several: np.stack([x, x[::-1]]),
        lambda x, k, several: np.roll(x, 2), lambda x, k, several: np.tile(x, 2),
    ]  # fmt: skip
    for program in programs:
        wanted = np.asarray(program(x, k, several))
        for got in (aj.function(program)(x, k, several), program(*map(aj.tensor, (x, k, several)))):
            assert np.asarray(got).dtype == wanted.dtype == dtype
            np.testing.assert_array_equal(np.asarray(got), wanted)
    slope = aj.function(aj.grad(lambda x, k, several: np.sum(x[several] * 3.0) + x[k]))(x, k, several)
    assert slope.dtype == dtype
    np.testing.assert_array_equal(np.asarray(slope).astype("f4"), [3, 0, 1, 3, 0, 0, 3])


@HALVES
def test_gradients_have_the_dtype_of_their_argument(dtype: Any) -> None:
    x = values(dtype)

    def loss(x: Any) -> Any:
        return aj.sum(aj.sin(x) * x) + aj.sum(x[1:3] * 3.0)

    wanted = np.asarray(aj.grad(loss)(x.astype("f4")))
    for slope in (aj.grad(loss)(x), aj.function(aj.grad(loss))(x)):
        assert slope.dtype == dtype
        np.testing.assert_allclose(np.asarray(slope).astype("f4"), wanted, rtol=0.02, atol=0.01)
    _, tangent = aj.jvp(loss, (x,), (np.ones(7, dtype),))
    np.testing.assert_allclose(float(tangent), wanted.sum(), rtol=0.02)


@HALVES
def test_variables_round_what_is_assigned(dtype: Any) -> None:
    v = aj.Variable(values(dtype))

    @aj.function
    def step(rate: Any) -> Any:
        v.assign_sub(rate * v)
        return aj.sum(v * v)

    total = step(0.5)
    assert v.numpy().dtype == dtype
    np.testing.assert_array_equal(v.numpy(), (values(dtype).astype("f4") * 0.5).astype(dtype))
    np.testing.assert_allclose(float(total), np.sum(v.numpy().astype("f4") ** 2), rtol=1e-6)


@HALVES
def test_loops_and_branches_carry_them(dtype: Any) -> None:
    @aj.function
    def f(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = (x * 0.5).astype(dtype)
        return x if n > 1 else x.astype(dtype)

    got = f(values(dtype), np.int64(2))
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got), (values(dtype).astype("f4") * 0.25).astype(dtype))


@HALVES
def test_arrays_of_others(dtype: Any) -> None:
    t = aj.tensor(values(dtype))
    assert np.asarray(t).dtype == dtype
    np.testing.assert_array_equal(np.asarray(t), values(dtype))
    assert aj.function(lambda x: x)(t).dtype == dtype
    assert aj.zeros(3, dtype).dtype == dtype


def test_files_and_dlpack(tmp_path: Path) -> None:
    x = values(np.float16)
    aj.nn.write_arrays(tmp_path / "w.safetensors", {"w": x})
    np.testing.assert_array_equal(aj.nn.read_arrays(tmp_path / "w.safetensors")["w"], x)
    np.testing.assert_array_equal(np.from_dlpack(aj.tensor(x)), x)
    assert aj.from_dlpack(x).dtype == np.float16
