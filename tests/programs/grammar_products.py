"""Products, einsum, convolutions, pooling and factorisations."""

from __future__ import annotations

import math

from tests.programs.draw import Draw, Rule
from tests.programs.program import Node


def product(d: Draw) -> Node | None:
    x = d.array("fiu", least=1)
    if x is None:
        return None
    n = d.shape(x)[-1]
    fits = [name for name in d.order if len(d.shape(name)) >= 1 and d.shape(name)[-2:][0] == n and not isinstance(d.env[name], list)]
    y = d.choice(fits) if fits and d.chance(0.6) else None
    other = y or d.choice([f"np.ones(({n}, 2))", f"np.arange({n}) * 0.5", f"np.full(({n}, 3), 0.25, 'f4')", f"np.eye({n})[::-1]"])
    forms = [f"{x} @ {other}", f"np.matmul({x}, {other})", f"np.dot({x}, {other})", f"np.tensordot({x}, {other}, 1)", f"np.inner({x}, {x})",
             f"{x} @ {x}.T", f"{x}.T @ {x}", f"np.outer({x}, {x})", f"np.vdot({x}, {x})", f"np.kron({x}, np.ones(2))",
             f"np.tensordot({x}, {x}, 0)",
             f"{x} @ np.swapaxes({x}, -1, -2)"]  # fmt: skip
    return d.assign(d.choice(forms) + d.choice(["", " * 0.5", " * 0.5"]))


def einsum(d: Draw) -> Node | None:
    """Operands whose axes of equal size share a letter, partly at random."""
    operands = [d.array("fiu", least=1) for _ in range(d.random.randint(1, 3))]
    if None in operands:
        return None
    letters: list[tuple[str, int]] = []
    labels = []
    for x in operands:
        label = ""
        for n in d.shape(x or ""):
            same = [letter for letter, size in letters if size == n and (letter not in label or d.chance(0.1))]
            if same and d.chance(0.7):
                label += d.choice(same)
            else:
                letters.append((chr(ord("a") + len(letters)), n))
                label += letters[-1][0]
        labels.append(label)
    used = sorted(set("".join(labels)))
    kept = [letter for letter in used if d.chance(0.5)]
    d.random.shuffle(kept)
    return d.assign(f"np.einsum('{','.join(labels)}->{''.join(kept)}', {', '.join(map(str, operands))}) * 0.25")


def image(d: Draw) -> Node | None:
    """Convolutions and pooling of [batch, sizes, channels]."""
    name = d.array("f", rank=d.choice([3, 4]))
    x, shape = name, d.shape(name) if name else ()
    if name is None and (name := d.array("f")) is not None:
        channels = d.choice([n for n in (1, 2, 3) if d.env[name].size % n == 0])
        shape = (1, d.env[name].size // channels, channels)
        x = f"np.reshape({name}, {shape})"
    if name is None or 0 in shape:
        return None
    channels, spatial = shape[-1], len(shape) - 2
    padding, stride, window = d.choice(["valid", "same"]), d.random.randint(1, 2), d.random.randint(1, 3)
    filters = (*(d.random.randint(1, 3) for _ in range(spatial)), channels, d.random.randint(1, 3))
    w = f"np.cos(np.arange({math.prod(filters)}.0)).reshape({filters}).astype('{d.code(name)}')"
    known = [n for n in d.order if len(d.shape(n)) == spatial + 2 and d.shape(n)[-2] == channels and d.dtype(n) == d.dtype(name)]
    if known and d.chance(0.4):
        w = d.choice(known)
    forms = [f"lib.conv({x}, {w}, {stride}, '{padding}')", f"lib.conv({x}, {w}, {stride}, '{padding}') * 0.5",
             f"lib.max_pool({x}, {window}, {stride}, '{padding}')", f"lib.avg_pool({x}, {window}, {stride}, '{padding}')"]  # fmt: skip
    return d.assign(d.choice(forms), f"distinct({name})")


def factored(d: Draw) -> Node | None:
    """Of a matrix that is far from singular."""
    x = d.array("f", least=2)
    if x is None or d.shape(x)[-1] > 6 or d.shape(x)[-2] > 6:
        return None
    n = d.shape(x)[-2]
    symmetric = f"{x} @ np.swapaxes({x}, -1, -2) + 2 * np.eye({n}, dtype={x}.dtype)"
    square = f"np.tanh({x}) + 4 * np.eye({n}, dtype={x}.dtype)"
    matrix = symmetric if d.shape(x)[-1] != n or d.chance(0.5) else square
    m = d.fresh()
    forms = [f"np.linalg.inv({m})", f"np.linalg.solve({m}, {x})", f"np.linalg.det({m} * 0.3)", f"np.linalg.slogdet({m})[1]",
             f"np.linalg.qr({m})[1] ** 2", f"np.linalg.solve({m}, np.ones(({n}, 1), {x}.dtype))", f"np.trace(np.linalg.inv({m}))",
             f"np.linalg.matrix_power({m} * 0.2, 2)"]  # fmt: skip
    if matrix is symmetric:
        forms += [f"np.linalg.cholesky({m})", f"np.sum(np.log(np.diagonal(np.linalg.cholesky({m}), axis1=-2, axis2=-1)))"]
    values = [f"np.linalg.eigvalsh({m})", f"np.linalg.svd({m}, compute_uv=False)"] if matrix is symmetric else []
    if values and d.chance(0.4):  # no derivative where two of them meet
        first = Node(f"{m} = {matrix}")
        return Node("", (), (("", (first, d.assign(d.choice(values), f"distinct(np.linalg.eigvalsh({m}), -1)"))),))
    return Node(f"{m} = {matrix}\n{d.fresh()} = {d.choice(forms)}")


RULES: list[Rule] = [(5, product), (3, einsum), (3, image), (2, factored)]
