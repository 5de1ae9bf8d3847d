"""SciPy's functions written in Python: adjit's are called instead, or named in the error."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import adjit as aj
from adjit.tracer.scipy_names import NAMES

X = np.array([0.3, 0.5, 0.9])

REPLACED: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda x: scipy.special.logsumexp(x, axis=0, keepdims=True),
    "softmax": lambda x: scipy.special.softmax(x),
    "log_softmax": lambda x: scipy.special.log_softmax(x, axis=0),
    "polygamma": lambda x: scipy.special.polygamma(2, x),
    "multigammaln": lambda x: scipy.special.multigammaln(x + 3.0, 2),
}

NAMED: dict[str, Callable[[Any], Any]] = {
    "aj.special.lambertw": lambda x: scipy.special.lambertw(x),
    "aj.scipy.stats.norm.logpdf": lambda x: scipy.stats.norm.logpdf(x, 0.0, 2.0),
    "aj.scipy.stats.poisson.logpmf": lambda x: scipy.stats.poisson.logpmf(np.arange(3), x),
    "aj.scipy.stats.multivariate_normal.logpdf": lambda x: scipy.stats.multivariate_normal.logpdf(x),
    "aj.scipy.signal.convolve": lambda x: scipy.signal.convolve(x, x),
    "aj.scipy.interpolate.CubicSpline": lambda x: scipy.interpolate.CubicSpline(x, x)(0.4),
    "aj.fft.fft": lambda x: scipy.fft.fft(x),
    "aj.linalg.expm": lambda x: scipy.linalg.expm(x[:, None] * x),
    "aj.linalg.svd": lambda x: scipy.linalg.svd(x[:, None] * x),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_in_compiled_functions(name: str) -> None:
    f = REPLACED[name]
    np.testing.assert_allclose(np.asarray(aj.function(f)(X)), f(X), rtol=1e-13)
    steps = 1e-6 * np.eye(3)
    wanted = [(np.sum(X * f(X + step)) - np.sum(X * f(X - step))) / 2e-6 for step in steps]
    np.testing.assert_allclose(np.asarray(aj.function(aj.grad(lambda x: np.sum(X * f(x))))(X)), wanted, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", REPLACED)
def test_named_where_code_is_not_converted(name: str) -> None:
    with pytest.raises(aj.GradientError, match=f"aj.special.{name} takes such values"):
        aj.grad(lambda x: np.sum(REPLACED[name](x)))(aj.tensor(X))


@pytest.mark.parametrize("name", NAMED)
def test_named_in_errors(name: str) -> None:
    for call, error in (
        (lambda: aj.function(NAMED[name])(X), (aj.TraceError, aj.UnsupportedError)),
        (lambda: aj.grad(lambda x: np.sum(NAMED[name](x)))(aj.tensor(X)), aj.GradientError),
    ):
        with pytest.raises(error, match=f"; {name} takes such values"):  # type: ignore[arg-type]
            call()


def test_nothing_is_named_where_adjit_has_nothing() -> None:
    with pytest.raises(aj.TraceError) as caught:
        aj.function(lambda x: scipy.stats.rice.logpdf(x, 2.0))(X)
    assert "takes such values" not in str(caught.value)


@pytest.mark.parametrize("package", NAMES)
def test_every_name_is_there(package: str) -> None:
    ours, names = NAMES[package]
    found: Any = aj
    for part in ours.split(".")[1:]:
        found = getattr(found, part)
    theirs = import_module(f"scipy.{package}.distance" if package == "spatial" else f"scipy.{package}")
    assert not [name for name in names if not (hasattr(found, name) and hasattr(theirs, name))]
