"""Special functions: the errors that docs/numerics.md publishes, poles and infinities, and SciPy's ufuncs on adjit's values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import adjit as aj
from adjit.ir.ops.host import HostEmitter
from adjit.ir.ops.special.numbers import Dual, Num

PAGE = (Path(__file__).parent.parent.parent / "docs" / "numerics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([a-z0-9_]+)\(([^`]*)\)` \| (.+) \| ([\d.]+) (ULP|eps) \|$", re.MULTILINE)
ROWS = {name: (arguments, domain, float(bound), unit) for name, arguments, domain, bound, unit in ROW.findall(PAGE)}
SINGLE_ROW = re.compile(r"^\| `([a-z0-9_]+)\([^`]*\)` of float32 \| (.+) \| ([\d.]+) (ULP|eps) \|$", re.MULTILINE)
SINGLE = {name: (domain, float(bound), unit) for name, domain, bound, unit in SINGLE_ROW.findall(PAGE)}  # computed in float32
SAMPLES = 24


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def quantile(p: Any) -> Any:
    if p > 0.5:
        return -quantile(1 - p)
    if p > 1e-3:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    r = mp.sqrt(-mp.log(p))
    start = -(mp.sqrt(2) * r - mp.log(4 * mp.pi * r * r) / (2 * mp.sqrt(2) * r))
    return mp.findroot(lambda z: mp.log(normal(z)) - mp.log(p), start)


EXACT: dict[str, Callable[..., Any]] = {
    "gamma": mp.gamma,
    "gammaln": lambda x: mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x))),
    "digamma": mp.digamma,
    "zeta": mp.zeta,
    "beta": mp.beta,
    "betaln": lambda a, b: mp.log(mp.beta(a, b)),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, regularized=True),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "erfc": mp.erfc,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "erfinv": mp.erfinv,
    "erfcinv": lambda y: -quantile(y / 2) / mp.sqrt(2),
    "ndtr": normal,
    "ndtri": quantile,
    "log_ndtr": lambda x: mp.log(normal(x)) if x < 5 else mp.log1p(-normal(-x)),
    "logit": lambda p: mp.log(p / (1 - p)),
    "i0": lambda x: mp.besseli(0, x),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1": lambda x: mp.besseli(1, x),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "k0": lambda x: mp.besselk(0, x),
    "k0e": lambda x: mp.besselk(0, x) * mp.exp(x),
    "k1": lambda x: mp.besselk(1, x),
    "k1e": lambda x: mp.besselk(1, x) * mp.exp(x),
    "ive": lambda v, x: mp.besseli(v, x) * mp.exp(-x),
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "ellipk": mp.ellipk,
    "ellipe": mp.ellipe,
    "exp1": mp.e1,
    "expi": mp.ei,
    "lambertw": lambda x: mp.lambertw(x).real,
    "xlogy": lambda x, y: x * mp.log(y),
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "entr": lambda x: -x * mp.log(x),
    "rel_entr": lambda x, y: x * mp.log(x / y),
}


def samples(domain: str, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """Arguments in the intervals of a row ("a to b", separated by semicolons): half uniform, half spread over the magnitudes."""
    out = []
    for part in domain.split(";"):
        low, high = (float(bound) for bound in part.split(" to "))
        uniform = rng.uniform(low, high, SAMPLES)
        spread = np.exp(rng.uniform(math.log(max(low, 1e-300) if low >= 0 else 1e-3), math.log(high), SAMPLES)) if high > 0 else uniform
        out.append(np.concatenate([uniform, spread]))
    return out


def test_the_page_lists_every_function() -> None:
    composed = {"expit", "log_expit", "softmax", "log_softmax", "logsumexp", "sinc", "erf", "psi", "jv", "jn", "iv", "polygamma", "kl_div"}
    composed |= {"gammasgn", "multigammaln", "yn"}
    assert set(ROWS) == set(EXACT) == set(aj.special.__all__) - composed


@pytest.mark.parametrize("name", EXACT)
def test_errors_are_within_the_published_bound(name: str) -> None:
    _, domain, bound, unit = ROWS[name]
    args = samples(domain, np.random.default_rng(5))
    for got in (aj.function(getattr(aj.special, name))(*args), getattr(aj.special, name)(*args)):
        with mp.workdps(70):
            for y, *xs in zip(np.asarray(got), *args, strict=True):
                true = EXACT[name](*(mp.mpf(float(x)) for x in xs))
                size = np.spacing(abs(float(true))) if unit == "ULP" else np.finfo(float).eps * max(1.0, abs(float(true)))
                if abs(true) > 1e-300:
                    assert abs(mp.mpf(float(y)) - true) <= bound * mp.mpf(float(size)), (xs, y, float(true))


@pytest.mark.parametrize("name", SINGLE)
def test_errors_in_float32_are_within_the_published_bound(name: str) -> None:
    """Of functions that are computed in float32: against the float64 results of the same arguments."""
    domain, bound, unit = SINGLE[name]
    parts = [samples(domain, np.random.default_rng(seed)) for seed in range(40)]
    args = [np.concatenate(column).astype(np.float32) for column in zip(*parts, strict=True)]
    function = aj.function(getattr(aj.special, name))
    wide = np.asarray(function(*(a.astype(np.float64) for a in args)))
    for got in (function(*args), getattr(aj.special, name)(*args)):
        single = np.asarray(got)
        assert single.dtype == np.float32
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rounded = wide.astype(np.float32)
            size = np.spacing(np.abs(rounded)) if unit == "ULP" else np.finfo(np.float32).eps * np.maximum(1.0, np.abs(wide))
            errors = np.where(np.isfinite(rounded), np.abs(single - wide) / size, np.where(single == rounded, 0.0, np.inf))
        worst = int(np.argmax(errors))
        assert errors[worst] <= bound, ([a[worst] for a in args], single[worst], wide[worst], errors[worst])


SIZES = [0.0, 0.5, 1.0, 2.0, 1e-45, 1e-39, 1e-30, 30.5, 1e5, 1e30, 3e38, math.inf]
EDGES_OF_FLOAT32 = np.array([*SIZES, *(-x for x in SIZES), math.nan], np.float32)


@pytest.mark.parametrize("name", SINGLE)
def test_edges_of_float32_are_those_of_float64(name: str) -> None:
    args = [EDGES_OF_FLOAT32] if name not in ("xlogy", "xlog1py") else [a.ravel() for a in np.meshgrid(EDGES_OF_FLOAT32, EDGES_OF_FLOAT32)]
    function = aj.function(getattr(aj.special, name))
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(*(a.astype(np.float64) for a in args))).astype(np.float32)
        for got in (function(*args), getattr(aj.special, name)(*args)):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-6, atol=1e-44)


@pytest.mark.parametrize("name", [name for name in EXACT if name not in SINGLE])
def test_float32_is_rounded_once(name: str) -> None:
    """Native float32 is the float64 result of the same arguments, rounded."""
    with np.errstate(over="ignore"):
        args = [a.astype(np.float32) for a in samples(ROWS[name][1], np.random.default_rng(6))]
    function = aj.function(getattr(aj.special, name))
    wide = np.asarray(function(*(a.astype(np.float64) for a in args)))
    single = np.asarray(function(*args))
    assert single.dtype == np.float32
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(single, wide.astype(np.float32))


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1e-310, 1e-300, 30.0, 1e5, 1e300, np.inf, -np.inf, np.nan])
OTHER = {"lambertw", "beta", "betaln", "gammainc", "gammaincc", "betainc", "ive", "zeta"}  # of two arguments, or with other domains
ELSEWHERE = {  # where SciPy is wrong: NaN for the limits at infinity, infinite for logarithms of large numbers
    "gamma": [-np.inf], "digamma": [-np.inf, 1e300], "gammaln": [-np.inf, 1e300, 1e-310], "ellipe": [-1e300], "exp1": [-1.0],
    **dict.fromkeys(("i0", "i1"), (np.inf, -np.inf)), **dict.fromkeys(("j0", "j1", "y0", "y1"), (np.inf, -np.inf, 1e300, 1e-310)),
    **dict.fromkeys(("k1", "k1e"), (1e-310,)),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in EXACT if name not in OTHER])
def test_edges_are_scipys(name: str) -> None:
    theirs = getattr(sp, name)
    count = theirs.nin
    skipped = ELSEWHERE.get(name, [])
    edges = EDGES[~np.isin(EDGES, skipped)] if count == 1 else EDGES[~np.isin(EDGES, [1e300])]
    args = [edges] if count == 1 else [a.ravel() for a in np.meshgrid(edges, edges)]
    with np.errstate(all="ignore"):
        wanted = theirs(*args)
    for got in (aj.function(getattr(aj.special, name))(*args), getattr(aj.special, name)(*args)):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("gammainc", (2.0, 0.0), 0.0), ("gammainc", (2.0, np.inf), 1.0), ("gammainc", (0.0, 1.0), 1.0), ("gammainc", (-1.0, 1.0), np.nan),
        ("gammaincc", (2.0, 0.0), 1.0), ("gammaincc", (2.0, np.inf), 0.0), ("gammainc", (2.0, -1.0), np.nan),
        ("betainc", (2.0, 3.0, 0.0), 0.0), ("betainc", (2.0, 3.0, 1.0), 1.0), ("betainc", (2.0, 3.0, 1.5), np.nan),
        ("lambertw", (0.0,), 0.0), ("lambertw", (-1.0,), np.nan), ("lambertw", (np.inf,), np.inf),
        ("ive", (0.0, 0.0), 1.0), ("ive", (1.5, 0.0), 0.0), ("ive", (-0.5, 1.0), np.nan),
        ("zeta", (1.0, 2.0), np.inf), ("zeta", (0.5, 2.0), np.nan), ("zeta", (2.0, 0.0), np.inf), ("zeta", (2.0, np.inf), 0.0),
        ("zeta", (np.inf, 1.0), 1.0), ("zeta", (np.inf, 0.5), np.inf), ("zeta", (np.inf, 2.0), 0.0), ("zeta", (1e30, 1.0), 1.0),
        ("zeta", (2.0, -1.0), np.nan), ("zeta", (np.nan, 1.0), np.nan), ("zeta", (2.0, np.nan), np.nan),
        ("log_ndtr", (np.inf,), 0.0), ("log_ndtr", (-np.inf,), -np.inf), ("log_ndtr", (np.nan,), np.nan),
    ],
)  # fmt: skip
def test_ends_of_the_domain(name: str, args: tuple[float, ...], wanted: float) -> None:
    for dtype in (np.float64, np.float32):
        arrays = [np.array([a], dtype) for a in args]
        for got in (aj.function(getattr(aj.special, name))(*arrays), getattr(aj.special, name)(*arrays)):
            np.testing.assert_array_equal(np.asarray(got), np.array([wanted], dtype))


@pytest.mark.parametrize("name", ["gammaln", "digamma", "gamma", "erfc", "erfinv", "ndtr", "ndtri", "log_ndtr", "i0", "i1e", "k0", "k1e"])
def test_ranges_that_share_a_vector(name: str) -> None:
    """Code for a range is skipped if no element of a vector needs it: other elements of the vector must not change any bit of a result."""
    values = [-700.0, -41.5, -7.25, -2.5, -0.75, -0.25, -0.0, 0.0, 1e-300, 1e-18, 0.25, 0.5, 0.9999, 1.0, 1.5, 2.5, 5.0, 12.0, 30.0, 800.0]
    x = np.array([*values, math.inf, -math.inf, math.nan])
    function = aj.function(getattr(aj.special, name))
    mixed = np.asarray(function(np.tile(x, 3))).reshape(3, -1)
    alone = np.stack([np.asarray(function(np.full(64, v)))[5] for v in x])
    np.testing.assert_array_equal(mixed, np.broadcast_to(alone, mixed.shape))


def test_scipys_ufuncs_take_traced_values_and_tensors() -> None:
    x, a = np.linspace(0.2, 0.8, 5), np.linspace(1.0, 3.0, 5)
    programs: list[Callable[..., Any]] = [
        lambda x, a: sp.gammaln(a) * sp.erfc(x) + sp.xlogy(a, x), lambda x, a: sp.gammainc(a, x) + sp.betainc(a, a, x) + sp.jv(2, x),
        lambda x, a: sp.expit(x) + sp.psi(a) + sp.ndtri(x) + sp.i0e(a),
    ]  # fmt: skip
    for program in programs:
        for got in (aj.function(program)(x, a), program(aj.tensor(x), aj.tensor(a))):
            np.testing.assert_allclose(np.asarray(got), program(x, a), rtol=1e-13)
        slope = aj.grad(lambda x, a, p=program: aj.sum(p(x, a)))(x, a)
        np.testing.assert_allclose(np.asarray(slope), (program(x + 1e-6, a) - program(x - 1e-6, a)) / 2e-6, rtol=1e-7)


def test_derivatives_in_parameters_are_finite_differences() -> None:
    """Of third order in the parameters, and mixed: dual numbers of dual numbers."""

    def f(a: Any, b: Any) -> Any:
        return aj.special.betainc(a, b, 0.3)

    mixed = aj.grad(aj.grad(aj.grad(f), 1))(2.0, 3.0)
    step = 1e-4

    def slope(a: float, b: float) -> float:
        return float(aj.grad(f)(a, b))

    by_b = [(slope(a, 3.0 + step) - slope(a, 3.0 - step)) / (2 * step) for a in (2.0 + step, 2.0 - step)]
    assert float(mixed) == pytest.approx((by_b[0] - by_b[1]) / (2 * step), rel=1e-4)


@pytest.mark.parametrize(("by_a", "by_b"), [(1, 0), (0, 1), (2, 0), (0, 2), (1, 1), (2, 1)])
def test_mixed_derivatives_of_betainc(by_a: int, by_b: int) -> None:
    """Of any order in the parameters, and once in x: the derivatives of the density."""
    f: Callable[..., Any] = aj.special.betainc
    for argument in [*[0] * by_a, *[1] * by_b, 2]:
        f = aj.grad(f, argument)
    with mp.workdps(40):
        density = lambda a, b: mp.mpf("0.3") ** (a - 1) * mp.mpf("0.7") ** (b - 1) / mp.beta(a, b)  # noqa: E731
        wanted = float(mp.diff(density, (2.0, 3.5), (by_a, by_b)))
    assert float(f(2.0, 3.5, 0.3)) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("by_a", [1, 2, 3])
@pytest.mark.parametrize("upper", [False, True])
def test_mixed_derivatives_of_gammainc(by_a: int, upper: bool) -> None:
    f: Callable[..., Any] = aj.special.gammaincc if upper else aj.special.gammainc
    for argument in [*[0] * by_a, 1]:
        f = aj.grad(f, argument)
    with mp.workdps(40):
        wanted = float(mp.diff(lambda a: mp.mpf("1.5") ** (a - 1) * mp.exp(-1.5) / mp.gamma(a), 2.5, by_a))
    assert float(f(2.5, 1.5)) == pytest.approx(-wanted if upper else wanted, rel=1e-10)


@pytest.mark.parametrize("n", [-3, -2, -1, 0, 1, 2])
def test_orders_of_either_sign(n: int) -> None:
    x = np.array([0.0, 0.5, 3.0, 20.0])
    np.testing.assert_allclose(np.asarray(aj.special.jn(n, x)), sp.jv(n, x), atol=1e-14)
    np.testing.assert_allclose(np.asarray(aj.special.jn(aj.tensor(n), x)), sp.jv(n, x), atol=1e-14)
    if n >= 0:
        np.testing.assert_allclose(np.asarray(aj.special.polygamma(n, x[1:])), sp.polygamma(n, x[1:]), rtol=1e-12)


def test_orders_are_static() -> None:
    with pytest.raises(aj.DTypeError, match="Python integer"):
        aj.special.jn(1.5, np.ones(2))
    with pytest.raises(ValueError, match="branches 0 and -1"):
        aj.special.lambertw(np.ones(2), 3)


@pytest.mark.parametrize("n", [2, 60, 171, 200])
def test_bessel_functions_of_high_orders(n: int) -> None:
    x = np.array([0.0, 1e-7, 1.0, 50.0, 170.0, 199.5, 200.5, 1e4])
    np.testing.assert_allclose(np.asarray(aj.special.jn(n, x)), sp.jv(n, x), atol=1e-13)


def test_orders_that_would_take_forever_are_refused() -> None:
    with pytest.raises(aj.UnsupportedError, match="order 100000; orders up to 1000"):
        aj.special.jn(100_000, np.ones(2))
    f = aj.special.gammainc
    for _ in range(5):
        f = aj.grad(f)
    with pytest.raises(aj.UnsupportedError, match="derivatives up to order 4 are supported, not 5"):
        aj.function(f)(2.0, 3.0)


def test_a_ufunc_without_a_rule_is_named_as_scipys() -> None:
    x = np.array([0.3])
    with pytest.raises(aj.UnsupportedError, match=r"scipy\.special\.gammaincinv is not supported"):
        aj.function(lambda x: sp.gammaincinv(2.0, x))(x)
    np.testing.assert_allclose(np.asarray(sp.gammaincinv(2.0, aj.tensor(x))), sp.gammaincinv(2.0, x))


def test_composed_functions_are_scipys() -> None:
    x = np.array([0.3, 1.7, 4.2, 11.0])
    for n in (-3, 0, 1, 5):
        np.testing.assert_allclose(np.asarray(aj.function(lambda x, n=n: aj.special.yn(n, x))(x)), sp.yn(n, x), rtol=1e-12)
    signs = np.array([2.5, -0.5, -1.5, -3.2, 0.0, -0.0, -2.0, np.nan, np.inf])
    np.testing.assert_array_equal(np.asarray(aj.special.gammasgn(signs)), sp.gammasgn(signs))
    np.testing.assert_allclose(np.asarray(aj.special.multigammaln(x + 2, 3)), sp.multigammaln(x + 2, 3), rtol=1e-13)


def test_weighted_logsumexp_is_scipys() -> None:
    x, b = np.array([[1000.0, 999.0, 5000.0, 998.0]]), np.array([1.0, -2.0, 0.0, 3.0])
    for options in ({"b": b}, {"b": b, "axis": 1, "keepdims": True}, {"b": 2.0, "axis": 0}):
        got = aj.function(lambda x, options=options: aj.special.logsumexp(x, **options))(x)
        np.testing.assert_allclose(np.asarray(got), sp.logsumexp(x, **options), rtol=1e-13)
    size, sign = aj.special.logsumexp(x, b=-b, return_sign=True)
    np.testing.assert_allclose([float(size), float(sign)], sp.logsumexp(x, b=-b, return_sign=True))
    slope = aj.grad(lambda x: aj.special.logsumexp(x, b=np.array([1.0, 3.0])))(np.array([1.0, 2.0]))
    terms = np.exp([1.0, 2.0]) * [1.0, 3.0]
    np.testing.assert_allclose(np.asarray(slope), terms / terms.sum())


class Doubles(HostEmitter):
    """Registers of NumPy, with functions of NumPy."""

    def call(self, function: str, *args: Any) -> Any:
        return {"exp": np.exp, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "pow": np.power}[function](*args)


DUALS: dict[str, Callable[[Any], Any]] = {
    "quotient by a number": lambda x: x / 3.0 + 1.0 / x,
    "quotient": lambda x: (x + 1.0) / (x * x + 2.0),
    "log1p": lambda x: x.call("log1p"),
    "sin": lambda x: x.call("sin") * 2.0,
    "cos": lambda x: (x * x).call("cos"),
    "pow": lambda x: x.call("pow", x * 0.5),
    "number to a dual power": lambda x: x.primal.like(3.0).call("pow", x),
    "mad": lambda x: x.primal.like(2.0).mad(x, x * x) + x.mad(x, 1.0),
    "abs": lambda x: abs(-x) - abs(x - 5.0),
}


@pytest.mark.parametrize("name", DUALS)
def test_dual_numbers_have_the_derivatives_of_finite_differences(name: str) -> None:
    """Of first and of second order: dual numbers of dual numbers."""
    f, emit, x, h = DUALS[name], Doubles(), 1.3, 1e-4

    def num(value: float) -> Num:
        return Num(emit, np.float64(value))

    def slope(at: float) -> float:
        return float(f(Dual(num(at), num(1.0))).tangent.reg)

    def value(at: float) -> float:
        return float(f(Dual(num(at), num(0.0))).value.reg)

    assert slope(x) == pytest.approx((value(x + h) - value(x - h)) / (2 * h), rel=1e-6)
    inner = Dual(num(x), num(1.0))
    second = f(Dual(inner, inner.lift(1.0)))
    assert float(second.tangent.tangent.reg) == pytest.approx((slope(x + h) - slope(x - h)) / (2 * h), rel=1e-6, abs=1e-9)


def test_tangents_are_not_lost() -> None:
    x = Num(Doubles(), np.float64(2.0))
    with pytest.raises(TypeError, match="the tangent of a dual number would be lost"):
        x.fma(Dual(x, x), x)
    with pytest.raises(NotImplementedError, match="no derivative of erf here"):
        Dual(x, x).call("erf")
