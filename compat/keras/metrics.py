"""tf.keras.metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.types import F32, DType, as_dtype
from adjit.nn import metrics as ours
from adjit.nn.metrics import get_metric
from adjit.tracer.convert import to_operand

from ..tensor import dress_structure
from .dressing import Dressed
from .orders import METRICS, ordered


class Dress(Dressed):
    """Mixin before a metric: results are tensors of `adjit.tf`, of the dtype that was given, or float32."""

    result_dtype: DType | None = None

    def __init__(self, *args: Any, dtype: Any = None, **options: Any) -> None:
        super().__init__(*args, **translated_options(type(self).__name__, options))
        if dtype is not None:
            self.result_dtype = as_dtype(np.dtype(getattr(dtype, "as_numpy_dtype", dtype)))

    def result(self) -> Any:
        out = super().result()  # type: ignore[misc] # of the class behind
        return dress_structure(out if self.result_dtype is None else to_operand(out).astype(self.result_dtype))


def translated_options(owner: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options under the names of `adjit.nn`; some of Keras' options have only one supported value."""
    if "thresholds" in options and owner in ("Precision", "Recall"):
        options["threshold"] = options.pop("thresholds")
    for name in ("multi_label", "num_labels", "label_weights"):
        if options.pop(name, None):
            raise UnsupportedError(f"{owner}: {name}= is out of the scope of adjit.tf; make a metric for each label")
    options.pop("from_sorted_ids", None)  # the k largest are the same in any order
    return options


def _metric(cls: type[Any]) -> Any:
    name = cls.__name__
    init = ordered(name, METRICS[name], Dress.__init__, cls.__init__)
    own = {"__doc__": cls.__doc__, "__module__": __name__, "__init__": init, "result_dtype": None if cls is ours.Metric else F32}
    return type(name, (Dress, cls), own)


def get(identifier: Any) -> Any:
    """A metric from its name, or the metric itself."""
    return get_metric(identifier)


__all__ = [name for name in ours.__all__ if name != "get_metric"]
globals().update({name: _metric(getattr(ours, name)) for name in __all__})
__all__ += ["get"]


def __dir__() -> list[str]:
    return __all__
