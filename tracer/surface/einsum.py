"""Einstein summation: any expression that np.einsum accepts, by transposes, reshapes, matrix products and sums.

Several operands are contracted pairwise; the next pair is the one whose product is smallest compared to its factors. Labels are strings
here; the axes of an ellipsis get labels of their own (`...0`, counted from the last axis).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import as_dtype

from ..convert import to_operands
from ..results import copies
from .indexing import diagonal

Labels: TypeAlias = tuple[str, ...]


@copies
def einsum(*operands: Any, dtype: Any = None, optimize: Any = None) -> Operand:
    """Return the Einstein sum: `einsum("ij,jk->ik", a, b)`.

    >>> aj.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    Tensor([21., 43.], f64[2])
    """
    if not operands:
        raise ShapeError("einsum: needs subscripts and operands")
    if isinstance(operands[0], str):
        subscripts, given = operands[0], to_operands(*operands[1:])
        terms, wanted = parsed(subscripts, given)
    else:
        given, terms, wanted = interleaved(operands)
    common = as_dtype(np.result_type(*(x.dtype for x in given)) if dtype is None else dtype)
    parts = [without_repeats(ops.cast(x, common), labels) for x, labels in zip(given, terms, strict=True)]
    sizes = label_sizes(parts)
    result = output_labels(terms) if wanted is None else wanted
    check_output(result, sizes)
    parts = [squeezed(x, labels, sizes) for x, labels in parts]
    return ops.cast(contracted(parts, result, sizes), common)


# ---- the expression


def parsed(subscripts: str, operands: Sequence[Operand]) -> tuple[list[Labels], Labels | None]:
    """Parse `"i...j,jk->ik"` into the labels of each operand and of the result (None: implicit)."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    given = inputs.split(",")
    if len(given) != len(operands):
        raise ShapeError(f"einsum: {subscripts!r} names {len(given)} operands, got {len(operands)}")
    terms = [labels_of(term, x.ndim, subscripts) for term, x in zip(given, operands, strict=True)]
    if not arrow:
        return terms, None
    dots = max((sum(label.startswith("...") for label in term) for term in terms), default=0)
    named = len(output.replace("...", ""))
    return terms, labels_of(output, named + (dots if "..." in output else 0), subscripts)


def labels_of(term: str, rank: int, subscripts: str) -> Labels:
    """Return one label for each axis; an ellipsis covers the axes not named by letters."""
    head, dots, tail = term.partition("...")
    letters = head + tail
    if not all(c.isalpha() and c.isascii() for c in letters):
        raise ShapeError(f"einsum: {term!r} in {subscripts!r} is not made of letters and one ellipsis")
    hidden = rank - len(letters)
    if hidden < 0 or (hidden and not dots):
        raise ShapeError(f"einsum: {term!r} in {subscripts!r} names {len(letters)} axes of an operand that has {rank}")
    return (*head, *(f"...{i}" for i in reversed(range(hidden))), *tail)


def interleaved(given: Sequence[Any]) -> tuple[list[Operand], list[Labels], Labels | None]:
    """Parse the form `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    output = given[-1] if len(given) % 2 else None
    pairs = given[:-1] if len(given) % 2 else given
    operands = to_operands(*pairs[::2])
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    spelled = ["".join("..." if i is Ellipsis else letters[i] for i in labels) for labels in pairs[1::2]]
    text = ",".join(spelled)
    if output is not None:
        text += "->" + "".join("..." if i is Ellipsis else letters[i] for i in output)
    terms, wanted = parsed(text, operands)
    return operands, terms, wanted


def output_labels(terms: Sequence[Labels]) -> Labels:
    """Return the result labels of an implicit expression: the ellipsis, then the letters that occur once, in alphabetical order."""
    count = Counter(label for term in terms for label in term)
    dots = sorted({label for label in count if label.startswith("...")}, key=lambda label: -int(label[3:]))
    return (*dots, *sorted(label for label, n in count.items() if n == 1 and not label.startswith("...")))


def check_output(labels: Labels, sizes: dict[str, int]) -> None:
    if len(set(labels)) != len(labels):
        raise ShapeError(f"einsum: a label occurs twice in the result {''.join(labels)!r}")
    missing = [label for label in labels if label not in sizes]
    if missing:
        raise ShapeError(f"einsum: the result names {', '.join(missing)}, which no operand has")


# ---- one operand


def without_repeats(x: Operand, labels: Labels) -> tuple[Operand, Labels]:
    """Replace axes with a repeated label by their diagonal."""
    while len(set(labels)) != len(labels):
        label = next(name for name, n in Counter(labels).items() if n > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if x.shape[first] != x.shape[second]:
            raise ShapeError(f"einsum: label {label!r} has sizes {x.shape[first]} and {x.shape[second]} in one operand")
        x = diagonal(x, 0, first, second)
        labels = (*(name for i, name in enumerate(labels) if i not in (first, second)), label)
    return x, labels


def label_sizes(parts: Sequence[tuple[Operand, Labels]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, labels in parts:
        for label, n in zip(labels, x.shape, strict=True):
            known = sizes.get(label, 1)
            if n != known and 1 not in (n, known):
                raise ShapeError(f"einsum: label {label!r} has sizes {known} and {n}")
            sizes[label] = n if known == 1 else known
    return sizes


def squeezed(x: Operand, labels: Labels, sizes: dict[str, int]) -> tuple[Operand, Labels]:
    """Remove axes of size 1 that broadcast against a larger one with the same label."""
    kept = tuple(label for label, n in zip(labels, x.shape, strict=True) if n == sizes[label])
    return ops.reshape(x, tuple(sizes[label] for label in kept)), kept


def arranged(x: Operand, labels: Labels, order: Sequence[str]) -> Operand:
    return ops.transpose(x, tuple(labels.index(label) for label in order))


def summed(x: Operand, labels: Labels, keep: set[str]) -> tuple[Operand, Labels]:
    """Sum over labels that occur in no other operand."""
    axes = tuple(i for i, label in enumerate(labels) if label not in keep)
    return (same(ops.sum(x, axes), x), tuple(label for label in labels if label in keep)) if axes else (x, labels)


def same(out: Operand, x: Operand) -> Operand:
    """Cast the result back: sums of small integers widen, but those of np.einsum do not."""
    return ops.cast(out, x.dtype)


# ---- several operands


def contracted(parts: list[tuple[Operand, Labels]], result: Labels, sizes: dict[str, int]) -> Operand:
    while len(parts) > 1:
        i, j = best_pair(parts, result, sizes)
        others = [p for k, p in enumerate(parts) if k not in (i, j)]
        keep = set(result).union(*(labels for _, labels in others))
        parts = [*others, product(*parts[i], *parts[j], keep, sizes)]
    x, labels = summed(*parts[0], set(result))
    missing = [label for label in result if label not in labels]
    if missing:  # labels whose only axes had size 1 and were broadcast away
        x, labels = ops.reshape(x, (*x.shape, *(1 for _ in missing))), (*labels, *missing)
        x = ops.broadcast_to(x, tuple(sizes[label] for label in labels))
    return arranged(x, labels, result)


def best_pair(parts: Sequence[tuple[Operand, Labels]], result: Labels, sizes: dict[str, int]) -> tuple[int, int]:
    """Return the pair whose product saves the most memory; among equals, the cheapest."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        i, j = pair
        keep = set(result).union(*(labels for k, (_, labels) in enumerate(parts) if k not in pair))
        together = set(parts[i][1]) | set(parts[j][1])
        size = math.prod(sizes[label] for label in together & keep)
        return size - parts[i][0].size - parts[j][0].size, math.prod(sizes[label] for label in together)

    return min(combinations(range(len(parts)), 2), key=cost)


def product(a: Operand, a_labels: Labels, b: Operand, b_labels: Labels, keep: set[str], sizes: dict[str, int]) -> tuple[Operand, Labels]:
    """Combine two operands into one with the labels in `keep`."""
    a, a_labels = summed(a, a_labels, keep | set(b_labels))
    b, b_labels = summed(b, b_labels, keep | set(a_labels))
    batch = [label for label in a_labels if label in b_labels and label in keep]
    inner = [label for label in a_labels if label in b_labels and label not in keep]
    left = [label for label in a_labels if label not in b_labels]
    right = [label for label in b_labels if label not in a_labels]

    def size(labels: Sequence[str]) -> int:
        return math.prod(sizes[label] for label in labels)

    labels = (*batch, *left, *right)
    shape = tuple(sizes[label] for label in labels)
    a = arranged(a, a_labels, [*batch, *left, *inner])
    if not inner or not (left or right):
        # outer or elementwise: not a matrix product, but a map (and a sum) that fuses with its neighbours
        a = ops.reshape(a, (*(sizes[k] for k in (*batch, *left)), *(1 for _ in right), *(sizes[k] for k in inner)))
        b = arranged(b, b_labels, [*batch, *right, *inner])
        b = ops.reshape(b, (*(sizes[k] for k in batch), *(1 for _ in left), *(sizes[k] for k in (*right, *inner))))
        out = a * b
        return (same(ops.sum(out, tuple(range(len(labels), out.ndim))), out) if inner else out), labels
    b = arranged(b, b_labels, [*batch, *inner, *right])
    stack = (size(batch),) if batch else ()
    a = ops.reshape(a, (*stack, size(left), size(inner)))
    b = ops.reshape(b, (*stack, size(inner), size(right)))
    return ops.reshape(ops.matmul(a, b), shape), labels


def einsum_path(*operands: Any, optimize: Any = "greedy") -> Any:
    """Return NumPy's contraction order, which depends on shapes only.

    >>> a, b, c = aj.ones((2, 100)), aj.ones((100, 100)), aj.ones((100, 2))
    >>> aj.einsum_path("ij,jk,kl->il", a, b, c)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    dummies = [np.broadcast_to(x.dtype.type(0), x.shape) if isinstance(x, Operand) else x for x in operands]
    return np.einsum_path(*dummies, optimize=optimize)


end_at_callers(globals())
