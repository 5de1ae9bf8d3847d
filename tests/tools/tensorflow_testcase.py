"""The assertions of `tf.test.TestCase`, for TensorFlow's own test files (see `tensorflow_tests`)."""

# ruff: noqa: PT009, PT027 - the assertions of unittest are defined here
from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import types
import unittest
import unittest.mock
from typing import Any

import numpy as np

from adjit import tf

from .tensorflow_scope import DEVICES, GRAPHS, V1, Excluded


def arrays(value: Any) -> Any:
    """Tensors, variables and structures of them as NumPy values."""
    if isinstance(value, dict):
        return (
            type(value)({key: arrays(item) for key, item in value.items()})
            if type(value) in (dict,)
            else {k: arrays(v) for k, v in value.items()}
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(arrays, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(arrays, value))
    if hasattr(value, "numpy") and not isinstance(value, type):
        return value.numpy()
    return value


def _absltest() -> Any:
    from absl.testing import absltest

    return absltest.TestCase


class TestCase(_absltest()):  # type: ignore[misc]
    """The assertions of `tf.test.TestCase`."""

    maxDiff = None

    def setUp(self) -> None:
        super().setUp()
        tf.random.set_seed(87654321)
        np.random.seed(87654321)  # noqa: NPY002 - what TensorFlow's tests draw from

    def evaluate(self, value: Any) -> Any:
        return arrays(value)

    def run(self, result: Any = None) -> Any:
        return super().run(result)

    @contextlib.contextmanager
    def session(self, *args: Any, **named: Any) -> Any:
        if named.get("graph") is not None:
            raise Excluded(f"excluded: {V1}")
        yield types.SimpleNamespace(run=self._run_in_session, graph=None)

    cached_session = test_session = session

    def _run_in_session(self, value: Any, feed_dict: Any = None, **named: Any) -> Any:
        if feed_dict:
            raise Excluded(f"excluded: {V1}")
        return arrays(value)

    def get_temp_dir(self) -> str:
        return tempfile.mkdtemp()

    def create_tempdir(self, *args: Any, **named: Any) -> Any:
        return types.SimpleNamespace(full_path=tempfile.mkdtemp())

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        np.testing.assert_array_equal(np.asarray(arrays(a)), np.asarray(arrays(b)), err_msg=str(msg or ""), strict=False)
        self.assertEqual(np.shape(arrays(a)), np.shape(arrays(b)))

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        self.assertFalse(np.array_equal(np.asarray(arrays(a)), np.asarray(arrays(b))), msg)

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
        a, b = arrays(a), arrays(b)
        if isinstance(a, dict):
            self.assertEqual(set(a), set(b))
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
        elif isinstance(a, (list, tuple)) and any(item is None or isinstance(item, (list, tuple, dict, np.ndarray)) for item in a):
            self.assertEqual(len(a), len(b))
            for left, right in zip(a, b, strict=True):
                self.assertAllClose(left, right, rtol, atol, msg)
        else:
            if np.asarray(a).dtype == np.float16 or np.asarray(b).dtype == np.float16:
                rtol, atol = max(rtol, 1e-3), max(atol, 1e-3)
            self.assertEqual(np.shape(a), np.shape(b))
            if a is not None or b is not None:
                np.testing.assert_allclose(a, b, rtol, atol, err_msg=str(msg or ""))

    def assertAllCloseAccordingToType(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, half_rtol: float = 1e-3, half_atol: float = 1e-3, **named: Any
    ) -> None:
        half = np.asarray(arrays(a)).dtype == np.float16 or np.asarray(arrays(b)).dtype == np.float16
        self.assertAllClose(a, b, half_rtol if half else rtol, half_atol if half else atol)

    def assertAllLess(self, a: Any, limit: Any) -> None:
        self.assertTrue(np.all(np.asarray(arrays(a)) < arrays(limit)))

    def assertAllEqualNested(self, a: Any, b: Any) -> None:
        for left, right in zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True):
            self.assertAllEqual(left, right)

    def assertShapeEqual(self, array: Any, tensor: Any, msg: Any = None) -> None:
        self.assertEqual(tuple(np.shape(array)), tuple(tensor.shape), msg)

    def assertArrayNear(self, a: Any, b: Any, err: float, msg: Any = None) -> None:
        for left, right in zip(a, b, strict=True):
            self.assertNear(left, right, err)

    def assertNear(self, a: Any, b: Any, err: float, msg: Any = None) -> None:
        self.assertLessEqual(abs(arrays(a) - arrays(b)), err)

    def assertRaisesWithPredicateMatch(self, kind: Any, check: Any) -> Any:
        return self.assertRaisesRegex(kind, check) if isinstance(check, str) else self.assertRaises(kind)

    def assertRaisesOpError(self, message: str) -> Any:
        return self.assertRaisesRegex(tf.errors.OpError, message)

    def assertDeviceEqual(self, *args: Any) -> None:
        raise Excluded(f"excluded: {DEVICES}")

    def assertProtoEquals(self, *args: Any, **named: Any) -> None:
        raise Excluded(f"excluded: {GRAPHS}")

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Any:
        kept, name = io.StringIO(), "stderr" if stream is sys.stderr else "stdout"
        with unittest.mock.patch.object(sys, name, kept):
            yield types.SimpleNamespace(contents=kept.getvalue)
