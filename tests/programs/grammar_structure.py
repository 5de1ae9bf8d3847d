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
    value = d.array("f") if d.chance(0.3) and d.dtype(x).kind != "u" else None  # of negative floats, NumPy makes any
    update = d.choice(
        [f"{y}[{at}] = {{v}}", f"{y}[{at}] += {{v}}", f"{y}[{at}] *= {{v}}", f"{y}[{at}] = {y}[{at}] * {{v}}", f"{y}[{at}] -= {{v}}"]
    )
    constant = "2" if d.dtype(x).kind in "iub" else str(d.number())
    start = d.choice([f"{x}.copy()", f"np.zeros_like({x})", f"{x} * 1", f"np.zeros({shape}, '{d.code(x)}')"])
    return line(f"{y} = {start}\n{update.format(v=value or constant)}", flags=[TRACED])


def placed(d: Draw) -> Node | None:
    """`put_along_axis` and similar functions as one expression: one-hot rows, masks by positions, new arrays."""
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
    """Reads and writes at an index known only at run time: the counter of a loop, or an argument."""
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
    """Writes where a condition holds at run time."""
    x, c = d.array("f", least=1), d.number()
    if x is None:
        return None
    y = d.fresh()
    change = d.choice([f"{y}[{x} > {c}] = 0.5", f"{y}[{x} < {c}] *= 2", f"{y}[({x} > {c}) & ({x} < 1)] = 0", f"{y}[{x} > {c}] += 1"])
    return line(f"{y} = {x} * 0.5\n{change}", f"apart({x}, {c})", f"apart({x}, 1.0)", flags=[TRACED])


def several(d: Draw) -> Node | None:
    """Several index arrays at once, of the run or not, that broadcast: with slices, ellipses, new axes and masks between them."""
    x = d.array("fiub", least=2)
    if x is None or 0 in d.shape(x):
        return None
    (n, m), last = d.shape(x)[:2], d.shape(x)[-1]
    i, j, k = positions(d, n), positions(d, m), positions(d, last)
    mask = f"np.array({[d.chance(0.5) for _ in range(n)]})"
    forms = [
        f"{x}[{i}, {j}]", f"{x}[np.ravel({i})[:, None], np.ravel({j})]", f"{x}[np.ix_(np.ravel({i}), np.ravel({j}))]",
        f"{x}[{i}, ..., {k}]",
        f"{x}[{i}][:, ::-1]", f"{x}[{i}, None]", f"{x}[{mask}, 0]", f"{x}[np.argsort({x}[:, 0], kind='stable')]", f"{x}[{i}, {j[:0]}0:1]",
        f"{x}[..., {k}, None]", f"np.take({x}, np.array([[0, -1], [0, 0]]), axis=-1)", f"{x}[np.arange({n}), np.argmax({x}, axis=1) % {m}]",
        f"np.take_along_axis({x}, np.argmax({x}, axis=-1, keepdims=True), axis=-1)", f"{x}[{i}, {d.random.randrange(-m, m)}]",
    ]  # fmt: skip
    text = d.choice(forms)
    ordered = "arg" in text and d.dtype(x).kind == "f"
    return d.assign(text, *(f"distinct({x}, {axis})" for axis in (0, 1, -1) if ordered))


def put(d: Draw) -> Node | None:
    """NumPy's functions that write into an array, and writes at several arrays of positions or where a mask holds."""
    x, c = d.array("f", least=1), d.number()
    if x is None or 0 in d.shape(x):
        return None
    y, n, last = d.fresh(), d.shape(x)[0], d.shape(x)[-1]
    i, some = positions(d, n), [d.random.randrange(-n, n) for _ in range(3)]
    size, once = d.env[x].size, d.random.sample(range(n), d.random.randint(1, min(n, 3)))
    value = d.choice([str(c), f"np.sum({x}) * 0.1", f"{x}[0]", f"{x}[-1] * 0.5"])
    writes = [
        f"np.add.at({y}, {i}, {value})", f"np.add.at({y}, {some}, {value})", f"np.multiply.at({y}, {some}, 0.5)",
        f"np.subtract.at({y}, (np.array({some}), 0), 0.25)" if len(d.shape(x)) > 1 else f"np.subtract.at({y}, {some}, 0.25)",
        f"np.maximum.at({y}, {once}, 0.25)", f"np.put({y}, [0, {size - 1}], {c})", f"np.putmask({y}, {x} > {c}, {x} * 0.5)",
        f"np.copyto({y}, {x} * 0.25, where={x} > {c})", f"np.copyto({y}, {value})", f"np.place({y}, {x} > {c}, [{c}])",
        f"np.put_along_axis({y}, np.argmax({x}, axis=-1, keepdims=True), {c}, axis=-1)",
        f"{y}[{once}] = {y}[{once}[::-1]] * 0.5", f"{y}[{once}] += {value}", f"{y}[...] = {value}", f"{y}[::-1] = {x}",
        f"{y}[:] = {y}[::-1] * 0.5",
        f"{y}[..., 0] = {y}[..., {last - 1}]", f"{y}[np.isnan({y})] = 0.0", f"{y}[{x} > {c}] = np.sum({x})", f"{y}[...] = {c}",
        f"{y}[1:] = {y}[:-1]", f"{y}[1:] += {y}[:-1]", f"{y}[0], {y}[-1] = {y}[-1].copy(), {y}[0].copy()",
        f"for {y}k in range({n}):\n    {y}[{y}k] = {y}[{y}k] * 0.5 + {y}[0]",
        f"for {y}k in aj.range({n}):\n    {y}[{y}k] += {x}[{y}k] * {y}k",
    ]  # fmt: skip
    if len(d.shape(x)) == 2:
        m = d.shape(x)[1]
        writes += [
            f"np.fill_diagonal({y}, {c})", f"{y}[{once}, {[k % m for k in once]}] = {c}", f"{y}[np.ix_({once}, [0])] *= 2.0",
            f"{y}[:, 0] = {y}[:, -1] * 0.5", f"{y}[{once}, ::-1] = {x}[{once}]", f"{y}[np.array({once})[:, None], np.arange({m})] -= 1.0",
        ]  # fmt: skip
    start = d.choice([f"{x} * 0.5", f"{x}.copy()", f"np.zeros_like({x})", f"np.full({d.shape(x)}, 0.5, '{d.code(x)}')"])
    guards = [f"apart({x}, {c})", f"apart({x}, 0.5)", f"distinct({x}, -1)", f"apart({x}, 0.25)"]
    return line(f"{y} = {start}\n{d.choice(writes)}", *guards, flags=[TRACED])


def seldom(d: Draw) -> Node | None:
    """Functions and arguments that are less common: methods of ufuncs, `out` and `where`, blocks, windows, einsum with an ellipsis."""
    x = d.array("f", least=1)
    if x is None:
        return None
    y, shape, rank = d.partner(x, "f"), d.shape(x), len(d.shape(x))
    axis, last = d.random.randrange(-rank, rank), shape[-1]
    forms = [
        f"np.add.reduce({x}, axis={axis})", f"np.multiply.accumulate(np.tanh({x}) + 1.2, axis={axis})", f"np.add.outer({x}, {x}[:1])",
        f"np.multiply.outer({x}[:2], {x})", f"np.maximum.reduce({x}, axis={axis}, initial=-2.0)",
        f"np.sin({x}, where={x} > 0.25, out=np.zeros_like({x}))",
        f"np.einsum('...i->...', {x})", f"np.einsum('...i,i->...i', {x}, np.arange({last}.0))", f"np.einsum('...,...->...', {x}, {x})",
        f"np.einsum('i...->...', {x})", f"np.einsum('...i,...j->...ij', {x}, {x}) * 0.5", f"np.block([{x}, {x} * 0.5])",
        f"np.array_split({x}, 2, axis={axis})[0]", f"np.apply_along_axis(lambda u: np.cumsum(u)[-1] * u, {axis}, {x})", f"np.ediff1d({x})",
        f"np.logaddexp.reduce({x}, axis={axis})", f"np.trapezoid({x}, axis={axis})", f"np.resize({x}, (2, 3))",
        f"np.nanmax({x}, axis={axis})", f"np.nanmean({x} + 0.0 * {y})", f"np.percentile({x}, [25, 60], axis={axis})",
        f"np.unwrap({x}, axis={axis})", f"np.meshgrid(np.ravel({x})[:5], np.arange(2.0))[0]",
        f"np.lib.stride_tricks.sliding_window_view({x}, 2, axis={axis})", f"np.partition({x}, 0, axis={axis})[..., :1]",
        f"np.digitize({x}, np.array([-0.5, 0.25]))",
        f"np.piecewise({x}, [{x} < 0.25], [lambda u: u * 0.5, lambda u: np.sin(u)])", f"np.choose(({x} > 0.25) * 1, [{x}, {x} * 2.0])",
        f"np.select([{x} > 0.5, {x} > 0.25], [{x}, 2.0 * {x}], -1.0)", f"np.vander(np.ravel({x})[:3] * 0.5, 3)", f"np.clip({x}, None, 0.5)",
        f"{x}.clip(-0.5, 0.25)", f"{x}.take([0, -1], axis={axis})", f"{x}.mean({axis}, keepdims=True) + {x}.std()",
        f"{x}.reshape(-1, order='C')[::2]",
        f"np.linalg.norm({x} + 3.0, axis={axis}, ord=1)",
        f"np.linalg.multi_dot([np.atleast_2d(np.ravel({x})), np.ones(({d.env[x].size}, 2)), np.ones((2, 2))])",
        f"np.float_power({x} * {x} + 0.5, 0.5)", f"np.modf({x})[0]", f"np.frexp({x})[0] * {x}", f"np.ldexp({x}, 1)", f"np.round({x}, 1)",
        f"np.array_equal({x}, {x}) * {x}", f"np.isclose({x}, 0.25) + {x}", f"np.argwhere(np.ones(2))[:, 0] * np.sum({x})",
        f"np.flatnonzero(np.array([0, 1, 1])) + np.sum({x})",
        f"np.nan_to_num({x} / ({x} - {x} + 1.0), nan=0.5)", f"np.vectorize(lambda u: u * 0.5 + 1.0)({x})",
        f"np.fromfunction(lambda i: i * 0.5, (3,)) * np.sum({x})",
        f"np.identity({last})[0] * {x}", f"np.indices((2,))[0] * np.sum({x})", f"np.histogram({x}, bins=[-2.0, 0.25, 2.0])[0] * 0.5",
        f"np.corrcoef(np.ravel({x})[:3], np.arange(3.0))[0, 1]",
    ]  # fmt: skip
    text, limits = d.choice(forms), [f"apart({x}, {t})" for t in (-2.0, -0.5, 0.25, 0.5, 0.0)]
    guards = [f"{x}.size > 0", f"distinct({x})", f"fractional({x})", f"fractional({x} * 10.0 + 0.5)", *limits]
    return d.assign(text, *guards, flags=[TRACED] if "out=" in text or "vectorize" in text else [])


RULES: list[Rule] = [
    (3, several),
    (3, put),
    (3, seldom),
    (3, at_a_number),
    (1.5, masked),
    (5, reshaped),
    (6, sliced),
    (4, gathered),
    (3, joined),
    (3, written),
    (2, placed),
]
