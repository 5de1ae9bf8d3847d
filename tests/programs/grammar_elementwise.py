"""Elementwise statements: functions of one array and of several, of mixed dtypes and with Python numbers, casts and choices."""

from __future__ import annotations

from tests.programs.draw import Draw, Rule
from tests.programs.program import OPAQUE, Node

SMOOTH = [
    "np.sin({x})", "np.cos({x})", "np.tanh({x})", "np.arctan({x})", "np.arcsinh({x})", "np.exp(-{x} * {x})", "np.log1p({x} * {x})",
    "np.sqrt({x} * {x} + 0.5)", "1.0 / (1.0 + {x} ** 2)", "np.expm1(np.tanh({x}))", "np.cbrt({x} * {x} + 0.5)", "np.exp2(np.sin({x}))",
    "np.log2({x} * {x} + 0.5)", "np.log10({x} * {x} + 0.5)", "np.log({x} * {x} + 0.5)", "np.sinh(np.tanh({x}))", "np.cosh(np.sin({x}))",
    "np.hypot({x}, 1.0)", "np.logaddexp({x}, 0.5)", "-{x}", "np.square({x})", "np.reciprocal({x} * {x} + 1)", "np.sinc({x})",
    "np.arctan2({x}, 2.0)", "np.arcsin(0.5 * np.tanh({x}))", "np.arccos(0.5 * np.sin({x}))", "np.arctanh(0.5 * np.sin({x}))",
    "np.tan(np.tanh({x}))", "{x} - 1", "2 * {x}", "{x} / 3", "{x} * 0.5 + 1", "1 - {x}", "{x} ** 3 * 0.1", "{x} - np.mean({x})",
    "({x} * {x} + 0.5) ** 0.3", "({x} * {x} + 0.5) ** -2", "{x} * True", "+{x}", "np.rad2deg({x}) * 0.01", "np.positive({x})",
    "aj.sigmoid({x})", "aj.softplus({x})", "0.5 ** {x}", "np.nan_to_num({x})", "{x}.copy()", "np.ones_like({x}) * {x}",
    "({x} * {x} + 1).astype('f8') - 1", "{x}.astype('f4')", "{x}.astype('f8')", "np.float64(0.5) * {x}", "np.float32(0.5) * {x}",
    "np.array(0.25) + {x}", "np.full_like({x}, 0.5) - {x}",
]  # fmt: skip
KINKED = ["np.abs({x})", "aj.relu({x})", "np.sign({x})", "np.maximum({x}, 0)", "np.minimum(0.0, {x})",
          "np.where({x} > 0, np.sqrt(np.abs({x})), {x})",
          "np.where({x} > 0, np.log(np.maximum({x}, 1e-3)), 0)", "{x} > 0", "{x} <= 0.0", "np.signbit({x})", "np.heaviside({x}, 0.5)",
          "np.copysign(1.5, {x})", "np.where({x} < 0, 1, 2)", "np.maximum(np.minimum({x}, 40), 0.0)"]  # fmt: skip
ROUNDED = [
    "np.floor({x})",
    "np.ceil({x})",
    "np.trunc({x})",
    "{x} // 1",
    "{x} % 1",
    "np.fmod({x}, 1)",
    "np.trunc({x}).astype('i8')",
    "{x}.astype('i4')",
]
INTEGER = [
    "{x} + 1", "{x} * 3", "{x} // 2", "{x} % 3", "-{x}", "~{x}", "{x} & 6", "{x} | 1", "{x} ^ 5", "{x} << 1", "{x} >> 1", "np.abs({x})",
    "{x} ** 2", "np.sign({x})", "np.square({x})", "{x} / 2", "{x} * 0.5", "np.maximum({x}, 2)", "np.minimum({x}, 1)", "{x} == 2",
    "{x} != 1",
    "{x} > 1", "2 - {x}", "7 // (np.abs({x}) + 1)", "7 % (np.abs({x}) + 1)", "np.clip({x}, 1, 3)", "{x}.astype('i8')", "{x}.astype('i4')",
    "{x}.astype('f8')", "{x}.astype('f4')", "{x}.astype('i2')", "({x} & 3).astype('u1')", "{x} + True", "np.where({x} > 1, {x}, 0)",
    "np.int8(3) + {x}", "np.float32(1.5) * {x}", "np.invert({x})", "{x} - {x}", "np.bitwise_and({x}, 3)", "np.float64(1.5) + {x}",
    "np.left_shift({x} & 3, 1)", "np.fmod({x}, 3)", "divmod({x}, 3)[0]", "{x}.astype(bool)", "np.zeros_like({x}) + 2",
]  # fmt: skip
BOOLEAN = ["~{x}", "np.logical_not({x})", "{x} & True", "{x} | False", "{x} ^ True", "{x} * 2", "{x} + 1", "{x} * 1.5", "{x}.astype('i1')",
           "{x}.astype('f8')", "np.where({x}, 2, 3)", "np.where({x}, 0.5, 1)", "1 - {x}", "{x} == True", "np.sin({x} * 1.0)",
           "{x} + {x}", "{x} * {x}",
           "{x} / 2", "{x} // True", "np.maximum({x}, False)", "-{x}.astype('i2')", "{x} < 1", "np.where({x}, np.float32(1), 2)",
           "{x} << 2"]  # fmt: skip
BINARY = [
    "{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / ({y} * {y} + 1)", "np.arctan2({x}, {y} * {y} + 0.5)", "np.hypot({x}, {y} * {y} + 1)",
    "{x} * {y} + {x}", "({x} * {x} + 0.5) ** np.tanh({y} * 1.0)", "{y} - {x} * 0.5", "np.logaddexp({x}, {y})", "np.multiply({x}, {y})",
    "{y} + {x} - {y}",
    "np.add({x}, {y}) / 2", "np.true_divide({x}, 1 + {y} * {y})", "np.subtract({y}, {x})", "np.power(np.abs({x}) + 1, {y} * 0.5)",
]  # fmt: skip
COMPARED = ["{x} < {y}", "{x} >= {y}", "np.maximum({x}, {y})", "np.minimum({y}, {x})", "np.fmax({x}, {y})", "np.where({x} > {y}, {x}, {y})",
            "np.greater({x}, {y})", "{x} != {y}", "np.where({x} <= {y}, {y}, {x} * {x})", "np.clip({x}, {y} - 1, {y} + 1)"]  # fmt: skip
INTEGERS = ["{x} + {y}", "{x} * {y}", "{x} - {y}", "{x} // ({y} * {y} + 1)", "{x} % ({y} * {y} + 1)", "{x} & {y}", "{x} | {y}",
            "{x} ^ {y}", "{x} == {y}",
            "{x} < {y}", "np.maximum({x}, {y})", "{x} / (np.abs({y}) + 1)", "np.where({x} > {y}, {x}, {y})", "np.logical_xor({x}, {y})",
            "np.add({x}, {y})", "{x} >> ({y} & 3)", "{x} ** ({y} & 1)", "np.logical_and({x}, {y})",
            "np.floor_divide({x}, 2) - {y}"]  # fmt: skip


def smooth(d: Draw) -> Node | None:
    x = d.array("f", strong=d.chance(0.9))
    return None if x is None else d.assign(d.choice(SMOOTH).format(x=x))


def kinked(d: Draw) -> Node | None:
    x = d.array()
    return None if x is None else d.assign(d.choice(KINKED).format(x=x), f"apart({x})", f"apart({x}, 40.0)")


def rounded(d: Draw) -> Node | None:
    x = d.array()
    return None if x is None else d.assign(d.choice(ROUNDED).format(x=x), f"fractional({x})")


def integer(d: Draw) -> Node | None:
    x = d.array("iu")
    return None if x is None else d.assign(d.choice(INTEGER).format(x=x))


def boolean(d: Draw) -> Node | None:
    x = d.array("b")
    return None if x is None else d.assign(d.choice(BOOLEAN).format(x=x))


def binary(d: Draw) -> Node | None:
    x = d.array("f", strong=d.chance(0.9))
    if x is None:
        return None
    return d.assign(d.choice(BINARY).format(x=x, y=d.partner(x)))


def compared(d: Draw) -> Node | None:
    x = d.array()
    if x is None:
        return None
    text, y = d.choice(COMPARED), d.partner(x, "fi")
    guards = [f"apart({x}, {y})"]
    if "clip" in text:
        guards += [f"apart({x}, {y} - 1.0)", f"apart({x}, {y} + 1.0)"]
    return d.assign(text.format(x=x, y=y), *guards)


def integers(d: Draw) -> Node | None:
    x = d.array("iub")
    return None if x is None else d.assign(d.choice(INTEGERS).format(x=x, y=d.partner(x, "iub")))


def chosen(d: Draw) -> Node | None:
    """`where` and `select` on any dtypes."""
    condition = d.array("b")
    if condition is None:
        return None
    x = d.partner(condition, "fiub")
    other = d.choice(["0", "0.5", "1", d.partner(x), d.partner(x), "-1"])
    form = d.choice(["np.where({c}, {x}, {y})", "np.where({c}, {y}, {x})", "np.where(~{c}, {x}, {y})", "np.select([{c}], [{x}], {y})"])
    return d.assign(form.format(c=condition, x=x, y=other))


def stopped(d: Draw) -> Node | None:
    x = d.array()
    return None if x is None else d.assign(f"aj.stop_gradient({x}) * {x}", flags=[OPAQUE])


RULES: list[Rule] = [
    (7, smooth), (2, kinked), (1, rounded), (3, integer), (2, boolean), (7, binary), (3, compared), (3, integers), (2, chosen),
    (0.3, stopped),
]  # fmt: skip
