"""`model.summary()` as Keras prints it: a line for each layer, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adjit.nn.module import Module

WIDTHS = (29, 26, 10, 10)  # minimum widths of the columns


def layers_of(model: Any) -> list[Any]:
    """The layers that a model applies: its list of layers, or the layers among its attributes."""
    own = vars(model).get("layers")
    found = (
        own if own is not None else [x for value in vars(model).values() for x in (value if isinstance(value, list | tuple) else [value])]
    )
    return [layer for layer in found if isinstance(layer, Module)]


def summary_text(model: Any, line_length: int | None = None, expand_nested: bool = False, show_trainable: bool = False) -> str:
    rows = [("Layer (type)", "Output Shape", "Param #", "Trainable"), *rows_of(model, expand_nested, "")]
    columns = len(WIDTHS) if show_trainable else len(WIDTHS) - 1
    rows = [each[:columns] for each in rows]
    widths = [max(WIDTHS[k], 2 + max(len(each[k]) for each in rows)) for k in range(columns)]
    widths[-1] += max(0, (line_length or 0) - sum(widths))
    lines = [" " + "".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip() for each in rows]
    rule = sum(widths)
    trained = sum(v.type.size for v in model.trainable_variables)
    bytes_of = [(v.type.size * v.type.dtype.itemsize, trains) for v, trains in with_training(model)]
    total, ours = sum(n for n, _ in bytes_of), sum(n for n, trains in bytes_of if trains)
    count = model.count_params()
    return "\n".join([
        f'Model: "{model.name}"', "_" * rule, lines[0], "=" * rule, *lines[1:], "=" * rule,
        f"Total params: {count:,} ({size(total)})", f"Trainable params: {trained:,} ({size(ours)})",
        f"Non-trainable params: {count - trained:,} ({size(total - ours)})", "_" * rule,
    ])  # fmt: skip


def rows_of(model: Any, nested: bool, indent: str) -> Iterator[tuple[str, ...]]:
    """The rows of the layers of a model; if `nested`, each is followed by the rows of the layers inside it."""
    for layer in layers_of(model):
        shape, is_built = getattr(layer, "output_shape", None), layer.built
        count = f"{layer.count_params():,}" if is_built else "0 (unbuilt)"
        trains = "Y" if layer.trainable and layer.trainable_variables else "N" if layer.variables else "-"
        yield f"{indent}{layer.name} ({type(layer).__name__})", "?" if shape is None else str(shape), count, trains
        if nested and hasattr(layer, "layers"):
            yield from rows_of(layer, nested, indent + "  ")


def with_training(model: Any) -> Sequence[tuple[Any, bool]]:
    trained = {id(v.store) for v in model.trainable_variables}
    return [(v, id(v.store) in trained) for v in model.variables]


def size(count: int) -> str:
    """A number of bytes with a unit."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            break
        value /= 1024
    return f"{value:.2f} {unit}"
