"""The random generator: published test vectors, quality, and keys. The rows of the op table compare compiled draws bit by bit."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops, source_helpers
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.ops.base import Array
from adjit.ir.ops.host import HostEmitter
from adjit.ir.ops.normal import FORMATS, normal_quantile, normal_table
from adjit.ir.ops.random import Normal, RandomBits, threefry
from adjit.ir.types import F32, F64, U32, DType
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.harness import eager, func_of

# key, counter, result: known answers of the Random123 distribution for threefry2x32 with 20 rounds
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
DTYPES = pytest.mark.parametrize("dtype", [F32, F64], ids=str)


def data(x: Operand) -> Array:
    assert isinstance(x, Concrete)
    return x.data


@pytest.mark.parametrize(("key", "counter", "result"), KNOWN)
def test_known_answers(key: tuple[int, int], counter: tuple[int, int], result: tuple[int, int]) -> None:
    got = threefry(HostEmitter(), *(np.array([w], np.uint32) for w in (*key, *counter)))
    assert tuple(int(w[0]) for w in got) == result


def exact_quantile(p: mp.mpf) -> mp.mpf:
    """The normal quantile with an upper tail probability of p."""
    start = mp.sqrt(2) * mp.erfinv(1 - 2 * p) if p > 0.01 else mp.sqrt(-2 * mp.log(p))
    for _ in range(100):
        tail = mp.erfc(start / mp.sqrt(2)) / 2
        step = (mp.log(tail) - mp.log(p)) * tail / (-mp.exp(-start * start / 2) / mp.sqrt(2 * mp.pi))
        start -= step
        if abs(step) < mp.mpf(10) ** -30:
            break
    return start


@DTYPES
def test_normals_are_quantiles_to_the_last_digits(dtype: DType) -> None:
    bits = FORMATS[dtype].unsigned.itemsize * 8
    top = 2 ** (bits - 1)
    rng = np.random.default_rng(5)
    spread = [int(2**e) for e in np.linspace(0, bits - 1.01, 60)] + [int(rng.integers(0, top)) for _ in range(60)]
    magnitudes = [0, 1, 2, *spread, top // 4, top // 4 - 1, top - 3, top - 2, top - 1]
    got = normal_quantile(HostEmitter(), np.array(magnitudes, FORMATS[dtype].unsigned), dtype)
    negative = normal_quantile(HostEmitter(), np.array([m + top for m in magnitudes], FORMATS[dtype].unsigned), dtype)
    assert (negative == -got).all()
    with mp.workdps(40):
        for m, z in zip(magnitudes, got, strict=True):
            wanted = exact_quantile((m + mp.mpf(1) / 2) / mp.mpf(2) ** bits)
            assert abs(mp.mpf(float(z)) - wanted) <= 6 * mp.mpf(float(np.spacing(dtype.type(wanted))))


@DTYPES
def test_normals_compiled_are_the_same_bits_at_the_ends(dtype: DType) -> None:
    unsigned = FORMATS[dtype].unsigned
    rng = np.random.default_rng(6)
    width = unsigned.itemsize * 8
    bits = np.array([s * 2 ** (width - 1) + 2**e + d for s in (0, 1) for e in range(1, width - 1) for d in (-1, 0, 1)], unsigned)
    bits = np.concatenate([bits, rng.integers(0, 2**width, 4000, unsigned)])
    (wanted,) = eager(lambda b: ops.apply(Normal(dtype), b), [bits])
    (got,) = compile_func(OPTIMIZE(func_of(lambda b: ops.apply(Normal(dtype), b), [bits])))([bits])
    assert got.tobytes() == wanted.tobytes()
    assert np.isfinite(got).all()


@DTYPES
def test_generated_python_draws_the_same_bits(dtype: DType) -> None:
    """The helpers that `f.source` calls, on words, bits and bounds."""
    unsigned, rng = FORMATS[dtype].unsigned, np.random.default_rng(7)
    words = [rng.integers(0, 2**32, 500, np.uint32) for _ in range(4)]
    bits = source_helpers.random_bits(*words, unsigned.type)
    assert bits.dtype == unsigned
    np.testing.assert_array_equal(bits, RandomBits(unsigned).evaluate(*words))
    form = (dtype.type, FORMATS[dtype].signed.type, *normal_table(dtype))
    np.testing.assert_allclose(source_helpers.normal(bits, form), Normal(dtype).evaluate(bits), rtol=16 * np.finfo(dtype).eps)


@DTYPES
def test_normals_look_normal(dtype: DType) -> None:
    n = 200_000
    z = data(ops.random_normal(ops.random_key(3), (n,), dtype)).astype(np.float64)
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < 5 * math.sqrt(spread / n)
    sorted_z = np.sort(z)
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in sorted_z[::50]])
    assert np.abs(cdf - np.arange(n)[::50] / n).max() < 2 / math.sqrt(n)  # Kolmogorov and Smirnov: 2 is passed once in 1500
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 5 / math.sqrt(n)


@DTYPES
def test_uniforms_fill_their_interval_and_exclude_its_end(dtype: DType) -> None:
    n = 200_000
    u = data(ops.random_uniform(ops.random_key(4), (n,), dtype, -1.0, 3.0))
    assert u.dtype == dtype
    assert -1 <= u.min() < u.max() < 3
    counts = np.histogram(u, 64, (-1, 3))[0]
    chi_square = ((counts - n / 64) ** 2 / (n / 64)).sum()
    assert 20 < chi_square < 130


def test_bits_are_balanced_and_independent() -> None:
    words = data(ops.random_bits(ops.random_key(5), (4096,), "u64"))
    ones = np.unpackbits(words.view(np.uint8)).reshape(4096, 64).astype(float)
    assert np.abs(ones.mean(0) - 0.5).max() < 5 * 0.5 / math.sqrt(4096)
    correlations = np.corrcoef(ones.T) - np.eye(64)
    assert np.abs(correlations).max() < 6 / math.sqrt(4096)


def test_integers_are_uniform_over_their_range() -> None:
    counts = np.bincount(data(ops.random_integers(ops.random_key(6), (100_000,), -3, 7)) + 3, minlength=10)
    assert len(counts) == 10
    assert np.abs(counts - 10_000).max() < 5 * 100
    everything = data(ops.random_integers(ops.random_key(7), (1000,), -(2**63), 2**63))
    assert everything.min() < -(2**62) < 2**62 < everything.max()
    assert data(ops.random_integers(ops.random_key(7), (1000,), -128, 128, "i1")).dtype == np.int8
    for bad in ((3, 3), (0, 300)):
        with pytest.raises(DTypeError, match="is empty, or exceeds the range of u8"):
            ops.random_integers(ops.random_key(0), (2,), *bad, dtype="u1")


def test_keys_do_not_meet() -> None:
    key = ops.random_key(8)
    children = [row.tobytes() for row in data(ops.random_split(key, 50))]
    folded = [data(ops.random_fold_in(key, i)).tobytes() for i in range(50)]
    drawn = [w.tobytes() for w in data(ops.random_bits(key, (50,), "u64"))]
    assert len({*children, *folded, *drawn, data(key).tobytes()}) == 151


def test_elements_depend_on_their_position_alone() -> None:
    key = ops.random_key(9)
    flat = data(ops.random_bits(key, (24,)))
    assert (data(ops.random_bits(key, (2, 3, 4))).reshape(-1) == flat).all()
    assert (data(ops.random_bits(key, (5,))) == flat[:5]).all()
    assert data(ops.random_bits(key, (0, 3))).shape == (0, 3)
    assert not data(ops.random_bits(ops.random_key(10), (24,)) == Concrete(flat)).any()


def test_seeds() -> None:
    assert data(ops.random_key(2**40 + 5)).tolist() == [5, 256]
    assert data(ops.random_key(-1)).tolist() == [2**32 - 1] * 2
    with pytest.raises(DTypeError, match="does not fit 64 bits"):
        ops.random_key(2**64)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.random_bits(Concrete(np.zeros(2)), (3,)), DTypeError, r"a key is u32\[2\]"),
        (lambda: ops.random_bits(Concrete(np.zeros(3, U32)), (3,)), DTypeError, r"a key is u32\[2\]"),
        (lambda: ops.random_normal(ops.random_key(0), (3,), "i32"), DTypeError, "float32 or float64, not i32"),
        (lambda: ops.random_bits(ops.random_key(0), (-1,)), ShapeError, "negative dimension"),
        (lambda: ops.random_fold_in(ops.random_key(0), Concrete(np.zeros(3))), DTypeError, "must be one integer"),
    ],
)
def test_bad_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
