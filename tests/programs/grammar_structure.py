"""Statements that move elements: reshapes, slices with negative steps, duplicate and negative indices, joins, pads and writes."""

from __future__ import annotations

from tests.programs.draw import Draw, Rule
from tests.programs.program import TRACED, Node, line


def reshaped(d: Draw) -> Node | None:
    x = d.array("fiub")
    if x is None:
        return None
    shape, rank = d.shape(x), len(d.shape(x))
    axis = d.random.randrange(-rank, rank) if rank else 0
    order = tuple(d.random.sample(range(rank), rank))
    wide = (d.random.randint(1, 3), *(d.random.randint(2, 3) if n == 1 and d.chance(0.5) else n for n in shape))
    size = d.env[x].size
    first = d.choice([n for n in range(1, size + 1) if size % n == 0]) if size else 1
    forms = [
        f"np.reshape({x}, -1)", f"{x}.reshape({first}, -1)", f"np.ravel({x})", f"np.transpose({x}, {order})", f"{x}.T",
        f"np.expand_dims({x}, {d.random.randint(0, rank)})", f"np.squeeze({x})", f"np.broadcast_to({x}, {wide})", f"np.flip({x})",
        f"np.flip({x}, {axis})", f"np.roll({x}, {d.random.randint(-3, 3)}, {axis})", f"np.roll({x}, 2)", f"np.tile({x}, 2)",
        f"np.tile({x}, ({d.random.randint(1, 2)}, 1))", f"np.repeat({x}, 2, axis={axis})", f"np.repeat({x}, 3)",
        f"np.moveaxis({x}, {axis}, 0)", f"np.swapaxes({x}, 0, {axis})", f"np.atleast_2d({x})", f"np.diag({x})",
        f"np.tril(np.atleast_2d({x}))",
        f"np.triu(np.atleast_2d({x}), 1)", f"np.diagonal({x})", f"np.trace({x})", f"np.rot90({x})", f"np.diff({x}, axis={axis})",
        f"np.pad({x}, {d.random.randint(0, 2)})",
        f"np.pad({x}, ({d.random.randint(0, 2)}, {d.random.randint(0, 2)}), mode='{d.choice(['edge', 'constant'])}')",
        f"np.split({x}, [1], axis={axis})[{d.choice([0, 1])}]", f"np.broadcast_arrays({x}, np.ones((2, 1)))[0]", f"{x}[..., None]",
        f"np.stack([{x}, {x} * 2], axis={axis})",
    ]  # fmt: skip
    return d.assign(d.choice(forms))


def piece(d: Draw, n: int) -> str:
    """An index or a slice along an axis of n."""
    a, b = sorted((d.random.randint(-n - 1, n + 1), d.random.randint(-n - 1, n + 1)))
    options = [":", "::-1", f"{a}:{b}", f"{b}:{a}:-1", "::2", "::-2", f"{a}:", f":{b}", f":{a}:-1", f"{a}:{b}:3", "0:0"]
    if n:
        options += [str(d.random.randrange(-n, n))] * 4
    return str(d.choice(options))


def key(d: Draw, shape: tuple[int, ...]) -> str:
    """Slices and integers for some of the axes, perhaps with new axes and an ellipsis."""
    pieces = [piece(d, n) for n in shape[: d.random.randint(1, len(shape))]] if shape else []
    if d.chance(0.2):
        pieces.insert(d.random.randint(0, len(pieces)), "None")
    if d.chance(0.15) or not pieces:
        pieces.insert(0, "...")
    return ", ".join(pieces)


def sliced(d: Draw) -> Node | None:
    x = d.array("fiub", least=0 if d.chance(0.1) else 1)
    return None if x is None else d.assign(f"{x}[{key(d, d.shape(x))}]")


def positions(d: Draw, n: int) -> str:
    """Integers that index an axis of n: constants with duplicates and negative ones, or an array of the program."""
    traced = d.array("iu")
    if traced is not None and d.chance(0.5):
        return f"{traced} % {n}" if d.chance(0.7) else f"{traced} % {n} - {n}" if d.dtype(traced).kind == "i" else f"{traced} % {n}"
    constant = [d.random.randrange(-n, n) for _ in range(d.random.randint(0, 4))]
    return f"np.array({constant}, 'i8')" if d.chance(0.6) or not constant else str(constant)


def gathered(d: Draw) -> Node | None:
    x = d.array("fiub", least=1)
    if x is None or not d.env[x].size:
        return None
    shape, rank = d.shape(x), len(d.shape(x))
    axis = d.random.randrange(rank)
    at = positions(d, shape[axis])
    colons = ":, " * axis
    forms = [f"{x}[{colons}{at}]", f"np.take({x}, {at}, axis={axis})", f"{x}[..., {positions(d, shape[-1])}]"]
    if rank > 1:
        pair = [d.random.randrange(-shape[0], shape[0]) for _ in range(3)], [d.random.randrange(-shape[1], shape[1]) for _ in range(3)]
        forms += [
            f"{x}[{pair[0]}, {pair[1]}]",
            f"{x}[{pair[0]}, ::-1]",
            f"{x}[np.array({pair[0]})[:, None], {pair[1]}]",
            f"{x}[::-1, {pair[1]}]",
        ]
    mask = [d.chance(0.5) for _ in range(shape[0])]
    forms += [f"{x}[np.array({mask})]", f"np.compress({mask}, {x}, axis=0)", f"np.delete({x}, 0, axis={axis})"]
    return d.assign(d.choice(forms))


def joined(d: Draw) -> Node | None:
    x = d.array("fiub", least=1)
    if x is None:
        return None
    rank = len(d.shape(x))
    other = d.pick(lambda v: not isinstance(v, list) and len(d.shape(x)) == getattr(v, "ndim", -1)) or x
    forms = [
        f"np.concatenate([{x}, {other}], axis={d.random.randrange(-rank, rank)})", f"np.concatenate([{other}, {x}, {x}])",
        f"np.stack([{x}, {other}])",
        f"np.hstack([{x}, {other}])", f"np.vstack([{x}, {other}])", f"np.array([{x}, {other}])", f"np.concatenate([{x}[:1], {x}])",
        f"np.stack([{x}, {other}, {x}], axis=-1)", f"np.append({x}, {other})", f"np.column_stack([{x}, {other}])",
        f"np.insert({x}, 1, 0.5)",
    ]  # fmt: skip
    text = d.choice(forms)
    return d.assign(text, flags=[TRACED] if "np.array" in text else [])


def written(d: Draw) -> Node | None:
    """An array of the program's own that is written into."""
    x = d.array("fiub", least=1)
    if x is None:
        return None
    y, shape = d.fresh(), d.shape(x)
    at = key(d, shape).replace("None, ", "").replace("None", ":") if d.chance(0.6) else positions(d, shape[0]) if shape[0] else ":"
    value = d.array("f") if d.chance(0.3) else None
    update = d.choice(
        [f"{y}[{at}] = {{v}}", f"{y}[{at}] += {{v}}", f"{y}[{at}] *= {{v}}", f"{y}[{at}] = {y}[{at}] * {{v}}", f"{y}[{at}] -= {{v}}"]
    )
    constant = "2" if d.dtype(x).kind in "iub" else str(d.number())
    start = d.choice([f"{x}.copy()", f"np.zeros_like({x})", f"{x} * 1", f"np.zeros({shape}, '{d.code(x)}')"])
    return line(f"{y} = {start}\n{update.format(v=value or constant)}", flags=[TRACED])


def placed(d: Draw) -> Node | None:
    """`put_along_axis` and its like as one expression: one-hot rows, masks by positions, arrays made of nothing."""
    x = d.array("fiu", least=1)
    if x is None:
        return None
    n = d.shape(x)[-1]
    forms = [
        f"{x} * (np.arange({n}) % 2)", f"{x} + np.arange({n})", f"np.where(np.arange({n}) < {n // 2}, {x}, 0)",
        f"{x} * np.linspace(0, 1, {n})",
        f"{x} * np.eye({n})", f"{x} + np.ones({n}, 'f4')", f"{x} - np.zeros((1, {n}), 'i1')", f"{x} * np.tri({n})",
        f"np.cross({x}[..., :3], np.ones(3))",
    ]  # fmt: skip
    return d.assign(d.choice(forms))


def at_a_number(d: Draw) -> Node | None:
    """Reads and writes at a number that the run knows: the counter of a loop, or an argument."""
    x, k = d.array("fiub", least=1), d.pick(lambda v: type(v) is int)
    if x is None or k is None or 0 in d.shape(x):
        return None
    n, m = d.shape(x)[0], d.shape(x)[-1]
    y = d.fresh()
    forms = [f"{y} = {x}[{k} % {n}]", f"{y} = {x}[{k} % {n}] * {x}[-1 - {k} % {n}]", f"{y} = {x}[..., {k} % {m}]",
             f"{y} = np.roll({x}, {k} % 3)",
             f"{y} = {x}[np.array([0, -1])] + {k}", f"{y} = {x} * (np.arange({m}) < {k})",
             f"{y} = np.take({x}, {k} % {n}, axis=0)"]  # fmt: skip
    if len(d.shape(x)) > 1:
        forms += [f"{y} = {x}[{k} % {n}, 0]", f"{y} = {x}[::-1, {k} % {d.shape(x)[1]}]", f"{y} = {x}[{k} % {n}][::-1]"]
    writes = [
        f"{y} = {x} * 1\n{y}[{k} % {n}] = {y}[0]",
        f"{y} = {x}.copy()\n{y}[{k} % {n}] += 1",
        f"{y} = {x} + 0\n{y}[..., {k} % {m}] *= 2",
    ]
    return line(d.choice(forms)) if d.chance(0.7) else line(d.choice(writes), flags=[TRACED])


def masked(d: Draw) -> Node | None:
    """Writes where a condition of the run holds."""
    x, c = d.array("f", least=1), d.number()
    if x is None:
        return None
    y = d.fresh()
    change = d.choice([f"{y}[{x} > {c}] = 0.5", f"{y}[{x} < {c}] *= 2", f"{y}[({x} > {c}) & ({x} < 1)] = 0", f"{y}[{x} > {c}] += 1"])
    return line(f"{y} = {x} * 0.5\n{change}", f"apart({x}, {c})", f"apart({x}, 1.0)", flags=[TRACED])


RULES: list[Rule] = [(3, at_a_number), (1.5, masked), (5, reshaped), (6, sliced), (4, gathered), (3, joined), (3, written), (2, placed)]
