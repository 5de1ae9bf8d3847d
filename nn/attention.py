"""Attention layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import BOOL, I64
from adjit.runtime.variable import Variable
from adjit.tracer.convert import to_operand
from adjit.tracer.surface import reductions

from .core import Dropout, Init, positive
from .module import Module, as_input, check_features


class MultiHeadAttention(Module):
    """Scaled dot-product attention with several heads, between projections of queries, keys and values [batch, time, features].

    `attention_mask` (broadcast to [batch, queries, keys]) selects the keys that each query may attend to, `mask` ([batch, keys]) the keys
    that exist at all; with `use_causal_mask` a query attends to no later key. A query without visible keys attends to all keys equally.

    >>> x = np.ones((2, 5, 8), "f4")
    >>> aj.nn.MultiHeadAttention(num_heads=2, key_dim=4)(x, x).shape
    (2, 5, 8)
    """

    regularized = ("kernel", "bias")

    def __init__(
        self, num_heads: int, key_dim: int, value_dim: int | None = None, dropout: float = 0.0, use_bias: bool = True,
        output_shape: int | None = None, kernel_initializer: Init = "glorot_uniform", bias_initializer: Init = "zeros", **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.num_heads, self.key_dim = positive(self, "num_heads", num_heads), positive(self, "key_dim", key_dim)
        self.value_dim = self.key_dim if value_dim is None else positive(self, "value_dim", value_dim)
        self.use_bias, self.output_dim = use_bias, output_shape
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.dropout = Dropout(dropout) if dropout else None
        self.kernels: dict[str, Variable] = {}
        self.biases: dict[str, Variable] = {}

    def build(self, query: Any, value: Any = None, key: Any = None, *_: Any) -> None:
        value = query if value is None else value
        key = value if key is None else key
        h = self.num_heads
        out = self.output_dim or query[-1]
        shapes = {
            "query": (query[-1], h, self.key_dim), "key": (key[-1], h, self.key_dim), "value": (value[-1], h, self.value_dim),
            "output": (h, self.value_dim, out),
        }  # fmt: skip
        for name, shape in shapes.items():
            self.kernels[name] = self.add_variable(f"{name}.kernel", shape, self.kernel_initializer)
            if self.use_bias:
                self.biases[name] = self.add_variable(f"{name}.bias", shape[1:] if name != "output" else (out,), self.bias_initializer)

    def _project(self, name: str, x: Operand) -> Operand:
        """[batch, time, features] as [batch, heads, time, size]."""
        kernel = self.kernels[name].read_operand()
        features, heads, size = kernel.type.shape
        check_features(self, x, features)
        out = x @ ops.reshape(kernel, (features, heads * size))
        if self.use_bias:
            out = out + ops.reshape(self.biases[name].read_operand(), (heads * size,))
        return ops.transpose(ops.reshape(out, (*x.type.shape[:2], heads, size)), (0, 2, 1, 3))

    def call(
        self, query: Any, value: Any = None, key: Any = None, attention_mask: Any = None, use_causal_mask: bool = False,
        return_attention_scores: bool = False, mask: Any = None,
    ) -> Any:  # fmt: skip
        queries = as_input(self, query)
        values = queries if value is None else as_input(self, value)
        keys = values if key is None else as_input(self, key)
        for what, x in (("query", queries), ("value", values), ("key", keys)):
            if x.ndim != 3 or x.type.shape[0] != queries.type.shape[0]:
                raise ShapeError(f"{self.name}: {what} must be [batch, time, features] with the batch of the query, not {x.type}")
        if keys.type.shape[1] != values.type.shape[1]:
            raise ShapeError(f"{self.name}: one value for each key is needed, not {values.type} for {keys.type}")
        q = self._project("query", queries) * (1.0 / math.sqrt(self.key_dim))
        k, v = self._project("key", keys), self._project("value", values)
        scores = q @ ops.transpose(k, (0, 1, 3, 2))
        visible = self._visible(scores, attention_mask, mask, use_causal_mask)
        if visible is not None:
            scores = ops.where(visible, scores, float(np.finfo(self.dtype).min) / 2)  # finite, so that a row with no visible key is not NaN
        weights = reductions.softmax(scores, -1)
        attended = (weights if self.dropout is None else self.dropout(weights)) @ v
        batch, heads, time, size = attended.type.shape
        joined = ops.reshape(ops.transpose(attended, (0, 2, 1, 3)), (batch, time, heads * size))
        kernel = self.kernels["output"].read_operand()
        out = joined @ ops.reshape(kernel, (heads * size, kernel.type.shape[-1]))
        out = out + self.biases["output"] if self.use_bias else out
        return (out, weights) if return_attention_scores else out

    def _visible(self, scores: Operand, attention_mask: Any, mask: Any, causal: bool) -> Operand | None:
        batch, _, queries, keys = scores.type.shape
        out: Operand | None = None
        if attention_mask is not None:
            seen = to_operand(attention_mask).astype(BOOL)
            if seen.ndim == 2 and seen.type.shape == (queries, keys):
                seen = ops.reshape(seen, (1, queries, keys))
            if seen.ndim == 3:
                seen = ops.reshape(seen, (seen.type.shape[0], 1, *seen.type.shape[1:]))
            if seen.ndim != 4 or any(n not in (1, m) for n, m in zip(seen.type.shape, scores.type.shape, strict=True)):
                raise ShapeError(f"{self.name}: attention_mask {seen.type} does not fit [batch, queries, keys] of the scores {scores.type}")
            out = seen
        if mask is not None:
            exists = to_operand(mask).astype(BOOL)
            if exists.type.shape != (batch, keys):
                raise ShapeError(f"{self.name}: mask {exists.type} must be [batch, keys] of the scores {scores.type}")
            exists = ops.reshape(exists, (batch, 1, 1, keys))
            out = exists if out is None else ops.logical_and(out, exists)
        if causal:
            row, column = (ops.iota((queries, keys), axis, I64) for axis in (0, 1))
            past = ops.reshape(ops.less_equal(column, row + (keys - queries)), (1, 1, queries, keys))
            out = past if out is None else ops.logical_and(out, past)
        return out
