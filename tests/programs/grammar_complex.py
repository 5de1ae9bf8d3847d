"""Statements with complex numbers and Fourier transforms, of real and complex inputs and variables, up to real results."""

from __future__ import annotations

from tests.programs import grammar_elementwise, grammar_flow, grammar_structure
from tests.programs.draw import DTYPES, Draw, Rule, make_program
from tests.programs.program import Node, Program

MADE = [
    "{x} * (0.3 + 0.5j)", "np.exp(1j * {x})", "{x} + {y} * 1j", "{x} - 0.5j", "np.fft.fft({x}, axis=-1)", "np.fft.rfft({x})",
    "np.fft.fft(np.atleast_1d({x}), axis=0, norm='ortho')", "np.fft.ifft({x}, n=6)", "{x}.astype('c16')", "{x}.astype('c8')",
    "np.sqrt({x} + 0.3j)", "np.fft.fftn({x}, norm='ortho')", "np.fft.rfft({x}, n=5)", "np.zeros(3, complex) + np.sum({x})",
    "np.where({x} > 0, {x} * 1j, 1 + 2j)", "np.stack([{x} * 1j, {x} + 2.0])[0]",
]  # fmt: skip
SMOOTH = [
    "{z} * {z} * 0.1", "np.exp(0.2 * {z})", "np.sin(0.3 * {z})", "np.tanh(0.3 * {z})", "np.conj({z})", "{z} * 1j", "1 / ({z} * {z} + 40.0)",
    "np.log({z} + 60.0)", "np.sqrt({z} + 60.0)", "{z} ** 3 * 0.01", "{z} / (2 - 1j)", "np.fft.fft({z}) * 0.3", "np.fft.ifft({z})",
    "np.cos(0.2 * {z})", "np.sum({z}, axis=-1, keepdims=True) * 0.2", "{z} - np.mean({z})", "{z}[..., ::-1]", "np.cumsum({z}) * 0.1",
    "np.prod(np.tanh(0.1 * {z}) + 1, axis=-1)", "np.reshape({z}, -1)", "np.concatenate([{z}, 1j * {z}], -1)", "{z}.T", "{z} + 2",
    "np.arcsinh({z})", "np.arctan(0.1 * {z})", "np.roll({z}, 1)", "np.where(np.isfinite({z}), {z}, 0.0)", "(0.2 + 1j) ** (0.1 * {z})",
    "np.fft.fftshift({z})", "{z}.astype('c16')", "np.float32(0.5) * {z}", "np.expm1(0.1 * {z})", "np.outer({z}, {z})[:3] * 0.1",
]  # fmt: skip
BINARY = [
    "{z} + {y}", "{z} * {y} * 0.2", "{z} - {y}", "{z} / ({y} * {y} + 30.0)", "np.vdot({z}, {z}) * 0.01 + {y}",
    "{y} * np.conj({z}) * 0.2",
]  # fmt: skip
BACK = [
    "np.real({z})", "{z}.imag", "np.real({z} * np.conj({z})) * 0.1", "np.fft.irfft({z}) * 0.5", "np.linalg.norm({z})",
    "np.real(np.sum({z}))",
    "np.fft.hfft({z}) * 0.1", "np.var({z}) * 0.1", "np.imag(np.fft.fft({z}) * (1 - 2j)) * 0.1", "np.real(np.fft.irfft({z}, n=7))",
]  # fmt: skip
APART = ["np.abs({z})", "np.angle({z})", "np.sign({z})", "np.abs({z}) * 1j + {z}", "{z} == {z}", "{z} != 0"]


def made(d: Draw) -> Node | None:
    x = d.array("f")
    return None if x is None else d.assign(d.choice(MADE).format(x=x, y=d.partner(x, "f")), f"apart({x})")


def smooth(d: Draw) -> Node | None:
    z = d.array("c")
    return None if z is None else d.assign(d.choice(SMOOTH).format(z=z))


def binary(d: Draw) -> Node | None:
    z = d.array("c")
    return None if z is None else d.assign(d.choice(BINARY).format(z=z, y=d.partner(z, "fc")))


def back(d: Draw) -> Node | None:
    z = d.array("c")
    return None if z is None else d.assign(d.choice(BACK).format(z=z))


def apart(d: Draw) -> Node | None:
    """Kinks at 0, and the cut of the angle."""
    z = d.array("c")
    return None if z is None else d.assign(d.choice(APART).format(z=z), f"apart(np.abs({z}))", f"apart({z}.imag)")


OWN: list[Rule] = [(5, made), (6, smooth), (4, binary), (5, back), (2, apart)]
PARTS = [(6.0, OWN), (1.5, grammar_elementwise.RULES), (1.0, grammar_structure.RULES), (1.5, grammar_flow.RULES)]
RULES: list[Rule] = [(share * weight / sum(w for w, _ in rules), make) for share, rules in PARTS for weight, make in rules]


def program_of(seed: int) -> Program:
    return make_program(seed, RULES, [*DTYPES, "c16", "c16", "c16", "c16", "c8", "c8"])
