"""tf.debugging.assert_shapes, with TensorFlow's notation and messages."""

from __future__ import annotations

import pytest

from adjit import tf

X, Y, ROW, SCALAR = tf.ones([4, 3]), tf.ones([5, 4, 2]), tf.ones([1]), tf.constant(5)


@pytest.mark.parametrize("shapes", [
    [(X, ("n", 3)), (Y, (..., "n", 2))],
    [(X, "n3"), (Y, "*nd")],
    [(X, (None, 3)), (Y, (5, ".", 2))],
    [(X, ("n", "d")), (ROW, ()), (SCALAR, (1,)), (SCALAR, "a"), (ROW, "a")],
    [(X, None)],
    [(X, (...,))],
    [(Y, ("...", 4, 2))],
], ids=str)  # fmt: skip
def test_shapes_that_match(shapes) -> None:
    tf.debugging.assert_shapes(shapes)
    tf.function(lambda: tf.debugging.assert_shapes(shapes))()


@pytest.mark.parametrize(("shapes", "message"), [
    ([(X, ("n", 2))], r"Specified explicitly\.  Tensor 0 dimension 1 must have size 2\.  Received size 3"),
    ([(X, ("n", 3)), (Y, ("n", 4, 2))], r"Specified by tensor 0 dimension 0\.  Tensor 1 dimension 0 must have size 4\.  Received size 5"),
    ([(Y, (..., 3, "d"))], r"Tensor 0 dimension -2 must have size 3\.  Received size 4"),
    ([(X, ("n",))], r"Tensor 0 must have rank 1\.  Received rank 2"),
    ([(X, (..., 1, 4, 3))], r"Tensor 0 must have rank 3"),
    ([(tf.ones([2]), ())], r"dimension 0 must have size 1\.  Received size 2"),
    ([(X, ("n", ...))], r"specified shape index 1\.  Symbol `\.\.\.` or `\*`"),
    ([(X, 2)], r"Specified shape must be an iterable\."),
])  # fmt: skip
def test_shapes_that_do_not(shapes, message) -> None:
    with pytest.raises(ValueError, match=message):
        tf.debugging.assert_shapes(shapes)


def test_own_message() -> None:
    with pytest.raises(ValueError, match=r"^mine\.  Specified explicitly"):
        tf.debugging.assert_shapes([(X, (4, 4))], message="mine")
