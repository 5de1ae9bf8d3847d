"""tf.keras.models: models with `compile` and `fit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit import nn
from adjit.ir.active import outside_builders
from adjit.ir.errors import UnsupportedError
from adjit.ir.sizes import hint_of
from adjit.nn import weights
from adjit.nn.history import History
from adjit.nn.losses import get_loss
from adjit.nn.metrics import Metric
from adjit.nn.recorded import Given
from adjit.nn.symbolic import is_symbolic
from adjit.runtime.recording import suspended
from adjit.tracer.pytree import flatten

from ..tensor import dress
from .callbacks import TerminateOnNaN, adapted
from .layers import Layer
from .own_steps import STEPS, OwnSteps, unpacked
from .saving import check_overwrite, fitting, load_model, save_model
from .summaries import layers_of, summary_text


class Model(Layer):
    """Base of user-defined models: create layers in `__init__`, use them in `call(self, inputs, training=False)`.

    `Model(inputs, outputs)` is the model that computes outputs from symbolic inputs.
    """

    _trainer: nn.Trainer | None = None
    _running = 0  # calls
    example_inputs: Sequence[tuple[Sequence[int], str]] | None = None  # shapes and dtypes of the first call
    compiled_with: Given

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        symbolic = cls is Model and (args or "inputs" in kwargs)
        return super().__new__(Functional if symbolic else cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "inputs" in kwargs or "outputs" in kwargs:
            raise UnsupportedError(
                f"{type(self).__name__}: a model is either a subclass of Model, with layers made in __init__ and used in call(self, x), "
                "or Model(inputs, outputs) itself; make the latter in a function, or an attribute of the former"
            )
        super().__init__(**kwargs)

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None, metrics: Sequence[Any] | None = None,
        weighted_metrics: Sequence[Any] | None = None, run_eagerly: bool = False, steps_per_execution: int = 1, jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
    ) -> None:  # fmt: skip
        """Configure training. Without a loss, it minimises the terms that layers add (`add_loss`, regularizers).

        Weights of examples apply to the loss and to `weighted_metrics`, not to `metrics`. `run_eagerly=True` runs op by op. Steps are
        always compiled, one at a time: `steps_per_execution`, `jit_compile` and `auto_scale_loss` have no effect on results.
        """
        plain, weighted = list(metrics or ()), list(weighted_metrics or ())
        options = {"loss_weights": loss_weights, "weighted_metrics": weighted or None, "run_eagerly": run_eagerly or None}
        given = {"optimizer": optimizer, "loss": loss, "metrics": metrics and plain}
        self.compiled_with = Given((), {**given, **{k: v for k, v in options.items() if v is not None}})
        computed = self._no_loss if loss is None else get_loss(loss, loss_weights)
        own = any(getattr(type(self), step) is not getattr(Model, step) for step in STEPS)
        self._trainer = (OwnSteps if own else nn.Trainer)(self, computed, optimizer, [*plain, *weighted], compiled=not run_eagerly)
        self._trainer.unweighted = self._trainer.metrics[: len(plain)]

    def _no_loss(self, y_true: Any, y_pred: Any) -> float:
        """The loss of a model that was compiled without one: its layers must add to it."""
        if not self.losses:
            raise ValueError(f"{self.name}: no loss to compute. Pass a `loss` to compile(), such as 'mse', or call add_loss in a layer")
        return 0.0

    # ---- steps, which a model may define for itself

    def train_step(self, data: Any) -> dict[str, Any]:
        """Update the model with one batch, and return its results by name. Override it for another kind of training."""
        x, y, weight = unpacked(data)
        _, gradients = self.trainer.loss_and_gradients(x, y, weight)
        self.trainer.optimizer.apply(gradients, self.trainable_variables)
        return self.get_metrics_result()

    def test_step(self, data: Any) -> dict[str, Any]:
        """The results of one batch by name, without an update."""
        x, y, weight = unpacked(data)
        nn.Trainer.test_step(self.trainer, x, y, weight)
        return self.get_metrics_result()

    def predict_step(self, data: Any) -> Any:
        return self(unpacked(data)[0], training=False)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True) -> Any:
        """The loss passed to `compile`, plus the terms that layers add."""
        return dress(self.trainer.compute_loss(y, y_pred, sample_weight))

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Update the metrics passed to `compile`, and return the results of all by name."""
        for metric in self.trainer.metrics:
            weighs = sample_weight is not None and not any(metric is each for each in self.trainer.unweighted)
            metric.update_state(y, y_pred, **({"sample_weight": sample_weight} if weighs else {}))
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        return {metric.name: metric.result() for metric in self.metrics}

    def reset_metrics(self) -> None:
        for metric in self.metrics:
            metric.reset_state()

    # ---- calls

    def build(self, input_shape: Any = None, *more: Any) -> None:
        """Create the variables for inputs of this shape, whose batch size may be None: the model is called once, on zeros."""
        if self._running or self.built or input_shape is None:
            return
        is_one = isinstance(input_shape, tuple | list) and all(n is None or isinstance(n, int) for n in input_shape)
        shapes = [input_shape] if is_one else input_shape
        zeros = [np.zeros([1 if n is None else n for n in shape], self.dtype) for shape in shapes]
        with outside_builders(), suspended():
            self(zeros[0] if is_one else zeros, training=False)

    def __getattr__(self, name: str) -> Any:
        if name == "layers":
            return layers_of(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._running += 1
        try:
            out = super().__call__(*args, **kwargs)
        finally:
            self._running -= 1
        if self.example_inputs is None and args and not is_symbolic(args):
            leaves = [x for x in flatten(args[0])[0] if getattr(x, "shape", ())]
            dtypes = [np.dtype(getattr(x.dtype, "as_numpy_dtype", x.dtype)).name for x in leaves]
            self.example_inputs = [([1, *map(hint_of, x.shape[1:])], name) for x, name in zip(leaves, dtypes, strict=True)]
        return out

    @property
    def trainer(self) -> nn.Trainer:
        if self._trainer is None:
            raise RuntimeError("You must call `compile()` before using the model.")
        return self._trainer

    @property
    def optimizer(self) -> Any:
        return None if self._trainer is None else self._trainer.optimizer

    @property
    def metrics(self) -> list[Metric]:
        return [] if self._trainer is None else [self._trainer.mean_loss, *self._trainer.metrics]

    @property
    def stop_training(self) -> bool:
        return self.trainer.stop_training

    @stop_training.setter
    def stop_training(self, value: bool) -> None:
        self.trainer.stop_training = value

    def fit(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: Any = "auto",
        callbacks: Sequence[Any] | None = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: bool = True,
        class_weight: dict[int, float] | None = None, sample_weight: Any = None, initial_epoch: int = 0,
        steps_per_epoch: int | None = None, validation_steps: int | None = None, validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> History:  # fmt: skip
        if class_weight is not None:
            sample_weight = weights_of_classes(self.name, y, class_weight, sample_weight)
        stops = any(isinstance(c, TerminateOnNaN) for c in callbacks or ())
        params = {"epochs": epochs, "steps": steps_per_epoch, "verbose": verbose}
        watching = [adapted(c, self, params) for c in callbacks or ()]
        return self.trainer.fit(
            x, y, batch_size=batch_size, epochs=epochs, verbose=None if verbose == "auto" else int(verbose), callbacks=watching,
            validation_split=validation_split, validation_data=validation_data,
            shuffle=shuffle, sample_weight=sample_weight, initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch,
            validation_batch_size=validation_batch_size, on_nan="ignore" if stops else "raise", validation_steps=validation_steps,
            validation_freq=validation_freq,
        )  # fmt: skip

    def evaluate(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: Any = "auto", sample_weight: Any = None,
        steps: int | None = None, callbacks: Sequence[Any] | None = None, return_dict: bool = False,
    ) -> Any:  # fmt: skip
        quiet, watching = verbose in (0, "auto"), [adapted(c, self) for c in callbacks or ()]
        results = self.trainer.evaluate(
            x, y, batch_size=batch_size, sample_weight=sample_weight, verbose=0 if quiet else 1, callbacks=watching, steps=steps
        )
        values = list(results.values())
        return results if return_dict else values if len(values) > 1 else values[0]

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None,
        callbacks: Sequence[Any] | None = None,
    ) -> Any:  # fmt: skip
        """The outputs for all of x, or for its first `steps` batches. Nothing is printed; `verbose` has no effect."""
        trainer = self._trainer or nn.Trainer(self, "mse")
        return trainer.predict(x, batch_size=batch_size, steps=steps, callbacks=[adapted(c, self) for c in callbacks or ()])

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: dict[int, float] | None = None, return_dict: bool = False
    ) -> Any:
        """Perform one update; returns the loss and the metrics of the batch."""
        self.trainer.reset_metrics()
        if class_weight is not None:
            sample_weight = weights_of_classes(self.name, y, class_weight, sample_weight)
        return self._of_batch(self.trainer.train_on_batch(x, y, sample_weight), return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """The loss and the metrics of the batch, without an update."""
        self.trainer.reset_metrics()
        return self._of_batch(self.trainer.test_on_batch(x, y, sample_weight), return_dict)

    def _of_batch(self, loss: float, return_dict: bool) -> Any:
        results = {"loss": loss, **{m.name: float(np.asarray(m.result())) for m in self.trainer.metrics}}
        values = list(results.values())
        return results if return_dict else values if len(values) > 1 else values[0]

    def predict_on_batch(self, x: Any) -> Any:
        return np.asarray(self(x, training=False))

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer with this name, or at this index in `layers`."""
        inside = [m for m in self.modules() if m is not self]
        if index is not None:
            return getattr(self, "layers", inside)[index]
        for layer in inside:
            if layer.name == name:
                return layer
        raise ValueError(f"{self.name}: has no layer {name!r}; it has {', '.join(layer.name for layer in inside)}")

    def save(self, filepath: Any, overwrite: bool = True, zipped: bool | None = None) -> None:
        """Write the model to one file, which `tf.keras.models.load_model` reads."""
        save_model(self, filepath, overwrite, zipped)

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write all variables to a safetensors file."""
        check_overwrite(filepath, overwrite)
        weights.save(filepath, self)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False) -> None:
        """Set all variables from a file; with `skip_mismatch`, only those with the same shape in the file."""
        weights.load(filepath, fitting(filepath, self) if skip_mismatch else self, strict=not skip_mismatch)

    def summary(  # type: ignore[override] # Keras prints it
        self, line_length: int | None = None, positions: Any = None, print_fn: Any = None, expand_nested: bool = False,
        show_trainable: bool = False,
    ) -> None:  # fmt: skip
        if positions is not None:
            raise UnsupportedError(f"{self.name}: summary(positions=) is out of the scope of adjit.tf; line_length= sets the width")
        (print_fn or print)(summary_text(self, line_length, expand_nested, show_trainable))


def weights_of_classes(name: str, y: Any, class_weight: dict[int, float], sample_weight: Any) -> Any:
    """A weight for each example, by its class: labels are class numbers or one-hot."""
    if y is None or sample_weight is not None:
        raise ValueError(f"{name}: class_weight needs arrays of labels, and cannot be combined with sample_weight")
    labels = np.asarray(y)
    labels = labels.argmax(-1) if labels.ndim > 1 and labels.shape[-1] > 1 else labels.reshape(len(labels)).astype(np.int64)
    unknown = set(np.unique(labels).tolist()) - set(class_weight)
    if unknown:
        raise ValueError(f"{name}: class_weight has no weight for the classes {sorted(unknown)}")
    return np.array([class_weight[label] for label in labels.tolist()], np.float32)


class Functional(Model, nn.Model):
    """A model that computes outputs from symbolic inputs."""

    def __init__(self, inputs: Any, outputs: Any, **more: Any) -> None:
        nn.Model.__init__(self, inputs, outputs, **more)

    @property
    def input(self) -> Any:
        return self.inputs

    @property
    def output(self) -> Any:
        return self.outputs


class Sequential(Model, nn.Sequential):
    """Layers applied one after the other."""

    def __init__(self, layers: Any = None, **more: Any) -> None:
        nn.Sequential.__init__(self, layers or (), **more)


__all__ = ["Model", "Sequential", "load_model", "save_model"]


def __dir__() -> list[str]:
    return __all__
