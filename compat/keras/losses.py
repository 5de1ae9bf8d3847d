"""tf.keras.losses."""

from __future__ import annotations

from typing import Any

from adjit.nn import losses as ours

from .dressing import Dressed, dress_module, dressed_function

__all__ = [name for name in ours.__all__ if name not in ("get_loss", "reduce_loss", "Loss")]

dress_module(ours, __all__, globals())


ORDERS = {  # of positional options, where it is not that of adjit.nn
    "CTC": ("reduction", "name", "dtype", "blank"),
    "SparseCategoricalCrossentropy": ("from_logits", "ignore_class", "reduction", "axis", "name", "dtype"),
}
for _name, _order in ORDERS.items():
    globals()[_name].option_names = classmethod(lambda cls, order=_order: order)


class Loss(Dressed, ours.Loss):
    """Base of user-defined losses: define `call(self, y_true, y_pred)`, which returns one value per example."""


def get(identifier: Any) -> Any:
    """A loss from its name, or the loss itself."""
    if isinstance(identifier, str) and identifier in ours.NAMED:
        return dressed_function(ours.NAMED[identifier])
    return ours.get_loss(identifier)


mse = MSE = globals()["mean_squared_error"]
mae = MAE = globals()["mean_absolute_error"]
mape = MAPE = globals()["mean_absolute_percentage_error"]
msle = MSLE = globals()["mean_squared_logarithmic_error"]
kld = KLD = globals()["kl_divergence"]
__all__ += ["KLD", "Loss", "MAE", "MAPE", "MSE", "MSLE", "get", "kld", "mae", "mape", "mse", "msle"]


def __dir__() -> list[str]:
    return __all__
