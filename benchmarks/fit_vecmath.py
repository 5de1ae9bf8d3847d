"""Fits the polynomials of the vector math library and writes `codegen/vecmath/coefficients.py` and `tables.py`.

Every polynomial is a weighted minimax fit (Remez exchange) in 60-digit arithmetic: it minimises max |weight(x) * (p(x) - f(x))| over the
interval, where the weight turns an error of the polynomial into a relative error of the function that is built on it. The printed number is
that maximum, as bits of precision. Needs mpmath; the library itself does not.

    python benchmarks/fit_vecmath.py            # rewrite the coefficients
    python benchmarks/fit_vecmath.py --check    # fail if the file differs from what would be written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

mp.mp.dps = 60
Real = Any  # mpmath is untyped
Function = Callable[[Real], Real]
TARGET = Path(__file__).resolve().parent.parent / "codegen" / "vecmath" / "coefficients.py"
TABLES = TARGET.with_name("tables.py")


class Fit(NamedTuple):
    name: str
    what: str  # the mathematical statement, for the comment above the coefficients
    function: Function
    low: Real
    high: Real
    weight: Function
    weight_text: str
    degrees: dict[str, int]  # by the dtype ("f32" or "f64") that the polynomial is evaluated in


def minimax(function: Function, low: Real, high: Real, degree: int, weight: Function) -> tuple[list[Real], Real]:
    """Coefficients from the constant term up, and the largest weighted error."""
    count = degree + 2
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    fine = 40 * count
    grid = [middle - half * mp.cos(mp.pi * i / fine) for i in range(fine + 1)]
    values, weights = [function(x) for x in grid], [weight(x) for x in grid]
    coefficients: list[Real] = []
    largest = mp.inf
    for _ in range(20):
        system, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, x in enumerate(points):
            for column in range(degree + 1):
                system[row, column] = x**column
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = function(x)
        solution = mp.lu_solve(system, right)
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [(mp.polyval(coefficients[::-1], x) - y) * w for x, y, w in zip(grid, values, weights, strict=True)]
        peaks = _alternating_peaks(errors, count)
        largest = max(abs(e) for e in errors)
        if len(peaks) < count:
            break
        if largest - min(abs(errors[i]) for i in peaks) < largest / 500:
            break
        points = [grid[i] for i in peaks]
    return coefficients, largest


def _alternating_peaks(errors: list[Real], count: int) -> list[int]:
    """The largest error of each run of equal sign; surplus runs are dropped at the weaker end, so that the signs still alternate."""
    peaks: list[int] = []
    for i, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] >= 0) == (error >= 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def by_series(exact: Function, limit: Real) -> Function:
    """`exact`, but with its limit at 0, where the formula would divide zero by zero."""
    return lambda x: limit if abs(x) < mp.mpf("1e-18") else exact(x)


def root(f: Callable[[Real, Real], Real], limit: Real) -> Function:
    """A function of z = x² from one of (x, z)."""
    return by_series(lambda z: f(mp.sqrt(z), z), limit)


LN2_HALF = mp.log(2) / 2 * mp.mpf("1.002")
QUARTER_PI_SQUARED = (mp.pi / 4) ** 2 * mp.mpf("1.025")  # the error in finding the quadrant grows with the argument
LOG_LOW, LOG_HIGH = mp.sqrt(mp.mpf("0.5")) - 1, mp.sqrt(2) - 1
ATANH_SQUARED = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")
LOG_REACH, LOG_START = mp.mpf("0.0324"), mp.mpf("0.0156")  # what the table of logarithms leaves; where it is not that of 1
FLOOR = mp.mpf("1e-4")  # keeps weights that vanish at 0 from becoming singular there
THIRD = mp.mpf(1) / 3

FITS = [
    Fit("EXP", "exp(r) = 1 + r + r² p(r)", by_series(lambda r: (mp.expm1(r) - r) / r**2, mp.mpf("0.5")), -LN2_HALF, LN2_HALF,
        lambda r: r * r / mp.exp(r) + FLOOR, "r² / exp(r)", {"f32": 4, "f64": 9}),
    Fit("EXPM1", "expm1(r) = r + r² p(r)", by_series(lambda r: (mp.expm1(r) - r) / r**2, mp.mpf("0.5")), -LN2_HALF, LN2_HALF,
        lambda r: abs(r) + FLOOR, "|r|", {"f32": 4, "f64": 10}),
    Fit("EXP_WIDE", "exp(r) = 1 + r + r² p(r), for float32 results computed in float64",
        by_series(lambda r: (mp.expm1(r) - r) / r**2, mp.mpf("0.5")), -LN2_HALF, LN2_HALF,
        lambda r: r * r / mp.exp(r) + FLOOR, "r² / exp(r)", {"f64": 5}),
    Fit("SINH", "sinh(r) = r + r³ p(r²)", root(lambda r, z: (mp.sinh(r) - r) / (r * z), mp.mpf(1) / 6), mp.mpf(0), LN2_HALF**2,
        lambda z: z + FLOOR, "r²", {"f32": 1, "f64": 4}),
    Fit("COSH", "cosh(r) = 1 + r² p(r²)", root(lambda r, z: (mp.cosh(r) - 1) / z, mp.mpf("0.5")), mp.mpf(0), LN2_HALF**2,
        lambda z: z + FLOOR, "r²", {"f32": 2, "f64": 4}),
    Fit("LOG", "log(1 + f) = f - f²/2 + f³ p(f)", by_series(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, THIRD), LOG_LOW, LOG_HIGH,
        lambda f: f * f + FLOOR, "f²", {"f32": 7}),
    Fit("LOG_NEAR", "log(1 + r) = r + r² p(r), after a table", by_series(lambda r: (mp.log1p(r) - r) / r**2, -mp.mpf("0.5")), -LOG_REACH,
        LOG_REACH, lambda r: r * r / max(abs(r), LOG_START) + FLOOR**2, "min(|r|, r² / 0.0156)", {"f32": 3}),
    Fit("LOG_ATANH", "log(m) = 2s + s³ p(s²) with s = (m - 1) / (m + 1)",
        root(lambda s, z: (2 * mp.atanh(s) - 2 * s) / (s * z), 2 * THIRD), mp.mpf(0), ATANH_SQUARED,
        lambda z: z + FLOOR, "s²", {"f64": 6}),
    Fit("LOG_ATANH_WIDE", "the same, for float32 results computed in float64",
        root(lambda s, z: (2 * mp.atanh(s) - 2 * s) / (s * z), 2 * THIRD), mp.mpf(0), ATANH_SQUARED,
        lambda z: z + FLOOR, "s²", {"f64": 3}),
    Fit("LOGIT", "log(m) = 2s + s³ p(s²) with s = (m - 1) / (m + 1), for m up to 1.502",
        root(lambda s, z: (2 * mp.atanh(s) - 2 * s) / (s * z), 2 * THIRD), mp.mpf(0), mp.mpf("0.0403"),
        lambda z: z + FLOOR, "s²", {"f32": 2, "f64": 7}),
    Fit("LOG_TAIL", "log(m) = 2s + 2/3 s³ + s⁵ p(s²) with s = (m - 1) / (m + 1)",
        root(lambda s, z: (2 * mp.atanh(s) - 2 * s - 2 * THIRD * s * z) / (s * z * z), mp.mpf(2) / 5), mp.mpf(0), ATANH_SQUARED,
        lambda z: z * z + FLOOR**2, "s⁴", {"f64": 7}),
    Fit("CBRT", "cbrt(m) = p(m), to a third of the digits", mp.cbrt, mp.sqrt(mp.mpf("0.5")), mp.sqrt(2),
        lambda m: 1 / mp.cbrt(m), "1 / cbrt(m)", {"f32": 3, "f64": 5}),
    Fit("SIN", "sin(r) = r + r³ p(r²)", root(lambda r, z: (mp.sin(r) - r) / (r * z), -mp.mpf(1) / 6), mp.mpf(0), QUARTER_PI_SQUARED,
        lambda z: z + FLOOR, "r²", {"f32": 2, "f64": 5}),
    Fit("COS", "cos(r) = 1 - r²/2 + r⁴ p(r²)", root(lambda r, z: (mp.cos(r) - 1 + z / 2) / z**2, mp.mpf(1) / 24), mp.mpf(0),
        QUARTER_PI_SQUARED, lambda z: z * z + FLOOR, "r⁴", {"f32": 2, "f64": 5}),
    Fit("ASIN", "asin(s) = s + s³ p(s²)", root(lambda s, z: (mp.asin(s) - s) / (s * z), mp.mpf(1) / 6), mp.mpf(0), mp.mpf("0.25"),
        lambda z: z + FLOOR, "s²", {"f32": 4, "f64": 11}),
    Fit("ATAN", "atan(t) = t + t³ p(t²)", root(lambda t, z: (mp.atan(t) - t) / (t * z), -THIRD), mp.mpf(0), mp.mpf("0.25"),
        lambda z: z + FLOOR, "t²", {"f32": 4, "f64": 11}),
    Fit("ERF_SMALL", "erf(x) = x + x p(x²) for |x| <= 1", root(lambda x, z: mp.erf(x) / x - 1, 2 / mp.sqrt(mp.pi) - 1),
        mp.mpf(0), mp.mpf(1), lambda z: mp.mpf(1), "1", {"f32": 6, "f64": 11}),
    Fit("ERF_LARGE_F32", "erf(x) = 1 - exp(-x p(x)) for 1 <= x <= 4", lambda x: -mp.log(mp.erfc(x)) / x, mp.mpf("0.99"), mp.mpf(4),
        lambda x: x * mp.erfc(x), "x erfc(x)", {"f32": 6}),
    Fit("ERF_LARGE", "erf(x) = 1 - exp(-x p(x)) for 1 <= x <= 6", lambda x: -mp.log(mp.erfc(x)) / x, mp.mpf("0.99"), mp.mpf(6),
        lambda x: x * mp.erfc(x), "x erfc(x)", {"f64": 17}),
]  # fmt: skip

SIXTEENTHS = [mp.mpf(2) ** (mp.mpf(j) / 16) for j in range(16)]
SHORT = {"F32": 5, "F64": 8}  # bits after the point of the powers in a table: sums of 1 and scaled ones are exact


def shortened(power: Real, tag: str) -> Real:
    return mp.nint(power * 2 ** SHORT[tag]) / 2 ** SHORT[tag]


def near_zero(tag: str) -> Real:
    """What is left of an exponent after the table."""
    return mp.log(2) / 32 + max(abs(mp.log(power / shortened(power, tag))) for power in SIXTEENTHS)


FITS += [
    Fit(f"EXP_NEAR_{tag}", "exp(r) = 1 + r + r² p(r), after a table of powers",
        by_series(lambda r: (mp.expm1(r) - r) / r**2, mp.mpf("0.5")), -near_zero(tag), near_zero(tag),
        lambda r: r * r / mp.exp(r) + FLOOR**2, "r² / exp(r)", {tag.lower(): degree})
    for tag, degree in (("F32", 1), ("F64", 4))
]  # fmt: skip


def power_tables() -> list[str]:
    """Tables by j, for 2**(k / 16) = 2**((k - j) / 16) t exp(d), with t of few bits and j = k % 16."""
    lines = [
        "# bits of t minus those of j / 16 in an exponent, as floats: adding k, shifted likewise, to the bits gives the scaled power",
        "POWER_TABLE: Coefficients = {",
    ]
    for tag, dtype, bits, fraction in (("F32", np.float32, np.int32, 23), ("F64", np.float64, np.int64, 52)):
        short = np.array([float(shortened(power, tag)) for power in SIXTEENTHS], dtype)
        table = (short.view(bits) - (np.arange(16).astype(bits) << (fraction - 4))).view(dtype)
        lines += [f"    {tag}: (", *packed(table, 8), "    ),"]
    lines += ["}  # fmt: skip", "# the exponents d", "POWER_REST: Coefficients = {"]
    for tag, dtype in (("F32", np.float32), ("F64", np.float64)):
        rest = [dtype(float(mp.log(power / shortened(power, tag)))) for power in SIXTEENTHS]
        lines += [f"    {tag}: (", *packed(rest, 8), "    ),"]
    rounded = np.array([float(power) for power in SIXTEENTHS], np.float32)
    table = (rounded.view(np.int32) - (np.arange(16, dtype=np.int32) << 19)).view(np.float32)
    lines += ["}  # fmt: skip", "# the same as the first table, with t of all bits, so that d is 0", "POWER_ROUNDED = ("]
    return [*lines, *packed(table, 4), ")  # fmt: skip"]


def packed(numbers: Iterable[Any], indent: int) -> list[str]:
    texts = [repr(float(x)) for x in numbers]
    return [" " * indent + ", ".join(texts[i : i + 4]) + "," for i in range(0, len(texts), 4)]


# ---- logarithms by intervals of equal length, in the bits of floats

LOG_BASE = (
    0x3F800000 - 260_096 - 10 * 2**19
)  # the bits of the first m: at both ends of the interval around 1, logarithms pass a power of two
LOG_UNIT = 2.0**-17  # sums of multiples of it that are below 128 are exact


def log_table() -> list[str]:
    """Factors c by j, and -log(c), for m in the j-th interval.

    c is chosen so that its logarithm is next to a multiple of `LOG_UNIT`, and r = c m - 1 is smaller on the side of 1, as logarithms are.
    """
    factors, logarithms = [], []
    for j in range(16):
        first, last = (float(np.int32(LOG_BASE + (j + k) * 2**19).view(np.float32)) for k in (0, 1))
        middle = np.float32(1.0 if first < 1.0 < last else 2.0 / (first + last))
        found: tuple[float, float, float] = (np.inf, 0.0, 0.0)
        for ulps in (0,) if middle == 1.0 else range(5_000, 60_000):
            factor = float((middle.view(np.int32) + np.int32(-ulps if last < 1.0 else ulps)).view(np.float32))
            exact = -mp.log(mp.mpf(factor))
            rounded = mp.nint(exact / LOG_UNIT) * LOG_UNIT
            if max(abs(factor * end - 1.0) for end in (first, last)) < LOG_REACH:
                found = min(found, (float(abs(rounded - exact)), factor, float(rounded)))
        factors.append(found[1])
        logarithms.append(found[2])
        print(f"LOG_TABLE {j} error 2**{np.log2(found[0] or 2.0**-99):.1f}", file=sys.stderr)
    high = float(mp.nint(mp.log(2) / LOG_UNIT) * LOG_UNIT)
    low = float(np.float32(float(mp.log(2) - high)))
    return [
        "# log(m) = -log(c) + log(1 + r) with r = c m - 1: tables of c and -log(c) by the interval of m, in units of 2**19 of the bits",
        f"LOG_BASE = 0x{LOG_BASE:X}",
        "LOG_FACTORS = (", *packed(factors, 4), ")  # fmt: skip",
        "LOG_STARTS = (", *packed(logarithms, 4), ")  # fmt: skip",
        "# log(2), a sum of two; the multiples of the first, added to a number of the table, are exact",
        f"LOG_2 = {(high, low)!r}",
    ]  # fmt: skip


# ---- erf by intervals of equal length: all polynomials have one degree, so that a table holds each coefficient

ERF_PIECES = {"F32": (mp.mpf(4), 5), "F64": (mp.mpf(6), 13)}  # where erf is 1, and the degree


def middle_of(interval: Real, dtype: type[np.floating[Any]]) -> tuple[float, float]:
    """A float near `interval` whose erf is nearly a float, and that float."""
    x = dtype(float(interval))
    found: tuple[Real, float, float] = (mp.inf, 0.0, 0.0)
    for _ in range(400 if interval else 1):
        exact = mp.erf(mp.mpf(float(x)))
        rounded = float(dtype(float(exact)))
        found = min(found, (abs(mp.mpf(rounded) - exact), float(x), rounded))
        x = np.nextafter(x, dtype(np.inf))
    return found[1], found[2]


def erf_pieces() -> list[str]:
    lines = [
        "# erf(x) = a + t p(t) for x = m + t, where m is near the nearest multiple j of the step: tables by j of m, a, and the",
        "# coefficients of p. For j < 2 the first coefficient is less by 1.",
        "ERF_TABLES: dict[DType, tuple[tuple[float, ...], ...]] = {",
    ]
    steps = {}
    for tag, (top, degree) in ERF_PIECES.items():
        dtype = np.float32 if tag == "F32" else np.float64
        steps[tag] = float(dtype(top / 15))
        rows, largest = [], mp.mpf(0)
        for j in range(16):
            near, start = middle_of(j * mp.mpf(steps[tag]), dtype)
            middle = mp.mpf(near)
            reach = mp.mpf(steps[tag]) / 2 * mp.mpf("1.0001")
            slope = 2 / mp.sqrt(mp.pi) * mp.exp(-(middle**2))

            def rest(t: Real, middle: Real = middle, slope: Real = slope) -> Real:
                return slope if abs(t) < mp.mpf("1e-18") else (mp.erf(middle + t) - mp.erf(middle)) / t

            def weight(t: Real, middle: Real = middle, slope: Real = slope) -> Real:
                return 1 / slope if middle == 0 and t < mp.mpf("1e-18") else abs(t) / mp.erf(middle + t) + FLOOR

            coefficients, error = minimax(rest, mp.mpf(0) if j == 0 else -reach, reach, degree - 1, weight)
            coefficients[0] -= 1 if j < 2 else 0
            rows.append([near, start, *(float(dtype(float(c))) for c in coefficients)])
            largest = max(largest, error)
        bits = f"2**-{float(-mp.log(largest, 2)):.1f}"
        print(f"ERF_TABLES {tag} degree {degree}  {bits}", file=sys.stderr)
        lines.append(f"    {tag}: (  # degree {degree}, largest relative error {bits}")
        for column in zip(*rows, strict=True):
            lines += ["        (", *packed(column, 12), "        ),"]
        lines.append("    ),")
    return [*lines, "}  # fmt: skip", f"ERF_STEP = {{{', '.join(f'{tag}: {step!r}' for tag, step in steps.items())}}}"]


HEADER = '''"""Coefficients of the vector math library, from the constant term up.

Written by benchmarks/fit_vecmath.py; do not edit. The literals are exact: each is the decimal spelling of one float64, and the tuples of
float32 hold values that float32 represents.
"""

from __future__ import annotations

from adjit.ir.types import F32, F64, DType

Coefficients = dict[DType, tuple[float, ...]]'''


TABLES_HEADER = '''"""Tables of 16 numbers for the vector math library, which targets with tables hold in registers.

Written by benchmarks/fit_vecmath.py; do not edit. The literals are exact, as those in `coefficients.py`.
"""

from __future__ import annotations

from adjit.ir.types import F32, F64, DType

from .coefficients import Coefficients'''


def split(value: Real, dtype: type[np.floating[Any]], parts: int, bits: int = 0) -> list[float]:
    """`value` as an unevaluated sum of `parts` floats, the first truncated to `bits` bits so that small multiples of it are exact."""
    out: list[float] = []
    for i in range(parts):
        if bits and i == 0:
            scale = mp.mpf(2) ** (bits - 1 - mp.floor(mp.log(value, 2)))
            piece = float(mp.floor(value * scale) / scale)
        else:
            piece = float(dtype(float(value))) if dtype is np.float32 else float(value)
        out.append(piece)
        value = value - mp.mpf(piece)
    return out


def constants() -> list[str]:
    """Numbers split over several floats, and the bits of 2/π for arguments of any size."""
    lines: list[str] = []

    def put(
        name: str, comment: str, value: Real, parts: int, dtypes: tuple[str, ...] = ("F32", "F64"), bits: tuple[int, ...] = (0, 0)
    ) -> None:
        lines.append(f"# {comment}")
        lines.append(f"{name}: Coefficients = {{")
        for tag, short in zip(dtypes, bits):
            dtype = np.float32 if tag == "F32" else np.float64
            lines.append(f"    {tag}: {tuple(split(value, dtype, parts, short))!r},")
        lines.append("}")

    put("LN2", "log(2), a sum of two", mp.log(2), 2)
    exact = "the first has 15 or 40 bits: its products with exponents are exact"
    put("LN2_SHORT", f"log(2), a sum of two; {exact}", mp.log(2), 2, bits=(15, 40))
    put("LOG2E", "1 / log(2), a sum of two", 1 / mp.log(2), 2)
    put("LOG10E", "1 / log(10), a sum of two", 1 / mp.log(10), 2)
    put("LOG10_2", "log10(2), a sum of two", mp.log10(2), 2)
    put("HALF_PI", "π/2, a sum of three", mp.pi / 2, 3)
    put("QUARTER_PI", "π/4, a sum of two", mp.pi / 4, 2)
    put("TWO_OVER_PI", "2/π", 2 / mp.pi, 1)
    put("TWO_THIRDS", "2/3, a sum of two", 2 * THIRD, 2, ("F64",))
    with mp.workdps(500):
        digits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1216))
    words = [0] + [(digits >> (1216 - 64 * (i + 1))) & (2**64 - 1) for i in range(19)]
    lines.append("# the binary digits of 2/π in words of 64 bits, after one word of zeros")
    lines.append("TWO_OVER_PI_WORDS: tuple[int, ...] = (")
    lines += [f"    {', '.join(f'0x{word:016X}' for word in words[i : i + 4])}," for i in range(0, len(words), 4)]
    lines.append(")  # fmt: skip")
    return lines


def generate() -> str:
    blocks = [HEADER, "\n".join(constants())]
    for fit in FITS:
        rows: list[str] = []
        notes: list[str] = []
        for storage, degree in fit.degrees.items():
            coefficients, error = minimax(fit.function, fit.low, fit.high, degree, fit.weight)
            dtype = np.float32 if storage == "f32" else np.float64
            rounded = [float(dtype(float(c))) for c in coefficients]
            bits = float(-mp.log(error, 2))
            notes.append(f"{storage} degree {degree}: 2**-{bits:.1f}")
            print(f"{fit.name:16s} {storage} degree {degree:2d}  2**-{bits:.1f}", file=sys.stderr)
            rows.append(f"    {storage.upper()}: (")
            rows += [f"        {c!r}," for c in rounded]
            rows.append("    ),")
        interval = f"[{mp.nstr(fit.low, 8)}, {mp.nstr(fit.high, 8)}]"
        comment = f"# {fit.what}\n# argument of p in {interval}, weight {fit.weight_text}; largest weighted error: {'; '.join(notes)}"
        blocks.append("\n".join([comment, f"{fit.name}: Coefficients = {{", *rows, "}"]))
    return "\n\n".join(blocks) + "\n"


def generate_tables() -> str:
    return "\n\n".join([TABLES_HEADER, "\n".join(power_tables()), "\n".join(log_table()), "\n".join(erf_pieces())]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare with the committed file instead of writing it")
    check = parser.parse_args().check
    for target, text in ((TARGET, generate()), (TABLES, generate_tables())):
        if not check:
            target.write_text(text)
        elif target.read_text() != text:
            sys.exit(f"{target} differs from a fresh fit")


if __name__ == "__main__":
    main()
