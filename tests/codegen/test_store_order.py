"""Stores of adjacent elements: in ascending order, each of a vector that the CPU has."""

from __future__ import annotations

import re

import numpy as np
import pytest

import adjit as aj

SIZES = {"double": 8, "float": 4, "i8": 1, "i16": 2, "i32": 4, "i64": 8}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int8, np.bool_])
def test_no_store_is_wider_than_a_vector(dtype: type) -> None:
    text = str(aj.function(lambda x: np.where(x > x[::-1], x, x[::-1])).inspect(np.ones(4096, dtype)).llvm)
    stores = [int(n) * SIZES[scalar] for n, scalar in re.findall(r"store <(\d+) x (\w+)>", text)]
    assert stores
    assert max(stores) <= 64


@pytest.mark.parametrize("n", [1, 7, 31, 64, 100, 1027])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int16, np.uint8, np.bool_])
def test_every_element_is_stored(n: int, dtype: type) -> None:
    x = (np.arange(n) % 5).astype(dtype)
    np.testing.assert_array_equal(np.asarray(aj.function(lambda x: np.where(x != 2, x, x[::-1]))(x)), np.where(x != 2, x, x[::-1]))
