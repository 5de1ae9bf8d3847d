"""What users hold looks like a NumPy array: the methods, properties and protocols of `np.ndarray`, shared by `Traced` and `Tensor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array


class ArrayMethods(Operand):
    """Mixin; `numpy()` is left to the classes."""

    __slots__ = ()

    def to_array(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """`__array__` of the classes whose elements are known."""
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def numpy(self) -> Array:
        raise NotImplementedError
