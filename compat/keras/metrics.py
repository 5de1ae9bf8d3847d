"""tf.keras.metrics."""

from __future__ import annotations

from typing import Any

from adjit.nn import metrics as ours
from adjit.nn.metrics import get_metric as get

from ..tensor import dress_structure
from .dressing import Dressed


class Dress(Dressed):
    """Mixin before a metric: results are tensors of `adjit.tf`."""

    def result(self) -> Any:
        return dress_structure(super().result())  # type: ignore[misc] # of the class behind


def _metric(cls: type[Any]) -> Any:
    return type(cls.__name__, (Dress, cls), {"__doc__": cls.__doc__, "__module__": __name__})


__all__ = [name for name in ours.__all__ if name != "get_metric"]
globals().update({name: _metric(getattr(ours, name)) for name in __all__})
__all__ += ["get"]


def __dir__() -> list[str]:
    return __all__
