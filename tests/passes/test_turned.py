"""Products that are only read transposed: their text, and products that stay unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.passes.fusion.turned import turn_products
from tests.passes.checks import leaves, rewrites

PRODUCT = """
func @f(%x: f64[2,5,3], %b: f64[2,5,4]) -> {result} {{
  %t: f64[2,3,5] = transpose %x {{axes=[0, 2, 1]}}
  %p: f64[2,3,4] = matmul %t, %b
  %r: f64[2,4,3] = transpose %p {{axes=[0, 2, 1]}}
  return {returned}
}}
"""


def test_the_text_of_a_turned_product() -> None:
    rewrites(
        turn_products,
        PRODUCT.format(result="f64[2,4,3]", returned="%r"),
        """
        func @f(%x: f64[2,5,3], %b: f64[2,5,4]) -> f64[2,4,3] {
          %0: f64[2,4,5] = transpose %b {axes=[0, 2, 1]}
          %r: f64[2,4,3] = matmul %0, %x
          return %r
        }
        """,
    )


def test_a_product_that_is_read_elsewhere_stays() -> None:
    leaves(turn_products, PRODUCT.format(result="(f64[2,4,3], f64[2,3,4])", returned="%r, %p").lstrip())


@pytest.mark.parametrize(
    ("first", "last"), [("%x", "{axes=[1, 0]}"), ("%x", "{axes=[0, 1]}")], ids=["of an array as it is", "that is not turned"]
)
def test_products_that_stay(first: str, last: str) -> None:
    leaves(
        turn_products,
        f"""\
        func @f(%x: f64[4,4], %b: f64[4,4]) -> f64[4,4] {{
          %p: f64[4,4] = matmul {first}, %b
          %r: f64[4,4] = transpose %p {last}
          return %r
        }}
        """,
    )


def test_a_product_of_a_product_that_is_turned_reads_it_as_it_is() -> None:
    rewrites(
        turn_products,
        """
        func @f(%x: f64[5,3], %b: f64[5,4], %c: f64[3,2]) -> f64[2,4] {
          %t: f64[3,5] = transpose %x {axes=[1, 0]}
          %p: f64[3,4] = matmul %t, %b
          %r: f64[4,3] = transpose %p {axes=[1, 0]}
          %q: f64[4,2] = matmul %r, %c
          %s: f64[2,4] = transpose %q {axes=[1, 0]}
          return %s
        }
        """,
        """
        func @f(%x: f64[5,3], %b: f64[5,4], %c: f64[3,2]) -> f64[2,4] {
          %0: f64[4,5] = transpose %b {axes=[1, 0]}
          %r: f64[4,3] = matmul %0, %x
          %q: f64[4,2] = matmul %r, %c
          %s: f64[2,4] = transpose %q {axes=[1, 0]}
          return %s
        }
        """,
    )


def test_the_adjoint_of_attention_writes_no_copy_of_keys() -> None:
    def loss(q, k, v):
        return np.sum(aj.softmax(q @ np.swapaxes(k, -1, -2)) @ v)

    by_keys = aj.function(aj.grad(loss, argnums=1))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 6, 4)) for _ in range(3)]
    np.testing.assert_allclose(by_keys(*arrays), aj.grad(loss, argnums=1)(*arrays), rtol=1e-12)
    assert "copy" not in by_keys.inspect(*arrays).optimized
