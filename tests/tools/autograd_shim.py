"""The package `autograd`, implemented with adjit, for autograd's own tests and examples, which are not part of this repository.

In a clone of HIPS/autograd:

    export PYTHONPATH=<adjit>/tests/tools
    python -m pytest -p autograd_shim -o addopts= -o required_plugins= tests
    python -m autograd_shim examples/tanh.py

autograd differentiates NumPy's functions through a wrapped namespace. adjit's arrays take NumPy's own functions, so `autograd.numpy` is
NumPy; the exceptions are functions that NumPy does not let arrays of others take part in: those of nested lists. What autograd calls a
gradient by a complex argument is the conjugate of adjit's (docs/numerics.md).
"""

from __future__ import annotations

import functools
import itertools
import runpy
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

import adjit as aj
from adjit.ir.operand import Operand

Fn = Callable[..., Any]
GENERATOR = np.random.default_rng(0)


# ---- trees of arrays


def is_array(x: Any) -> bool:
    return isinstance(x, Operand | np.ndarray | np.generic | bool | int | float | complex)


def leaves_of(tree: Any) -> tuple[list[Any], Fn]:
    leaves, structure = aj.tree_flatten(tree)
    return leaves, lambda found: aj.tree_unflatten(structure, found)


def on_leaves(f: Fn, tree: Any, *others: Any) -> Any:
    leaves, rebuild = leaves_of(tree)
    return rebuild([f(x, *rest) for x, *rest in zip(leaves, *(leaves_of(o)[0] for o in others), strict=True)])


def conjugated(tree: Any) -> Any:
    return on_leaves(lambda x: np.conj(x) if dtype_of(x).kind == "c" else x, tree)


def dtype_of(x: Any) -> Any:
    return x.dtype if isinstance(x, Operand) else np.asarray(x).dtype


def floating(tree: Any) -> Any:
    """Arrays of integers as arrays of floats: autograd differentiates by both."""
    return on_leaves(lambda x: (x * 1.0 if isinstance(x, Operand) else np.asarray(x, float)) if dtype_of(x).kind in "biu" else x, tree)


class VSpace:
    """The vector space of a tree of arrays, over the reals."""

    def __init__(self, value: Any) -> None:
        self.leaves, self.rebuild = leaves_of(value)
        for x in self.leaves:
            if not is_array(x) or dtype_of(x).kind not in "fciu":
                raise TypeError(f"cannot differentiate by or of a {type(x).__name__}")
        self.specs = [(np.shape(x), np.result_type(dtype_of(x), np.float16)) for x in self.leaves]
        self.type = type(value)

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) * (2 if dtype.kind == "c" else 1) for shape, dtype in self.specs)

    @property
    def iscomplex(self) -> bool:
        return any(dtype.kind == "c" for _, dtype in self.specs)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.specs[0][0]

    def __eq__(self, other: object) -> bool:
        kinds = [(shape, dtype.kind) for shape, dtype in self.specs]
        return isinstance(other, VSpace) and kinds == [(shape, dtype.kind) for shape, dtype in other.specs]

    def __hash__(self) -> int:
        return hash(self.size)

    def __repr__(self) -> str:
        return f"VSpace({self.specs})"

    def filled(self, make: Callable[[tuple[int, ...], Any], Any]) -> Any:
        return self.rebuild([make(shape, dtype) for shape, dtype in self.specs])

    def zeros(self) -> Any:
        return self.filled(np.zeros)

    def ones(self) -> Any:
        return self.filled(lambda shape, dtype: np.full(shape, 1 + 1j, dtype) if dtype.kind == "c" else np.ones(shape, dtype))

    def randn(self) -> Any:
        def draw(shape: tuple[int, ...], dtype: Any) -> Any:
            x = GENERATOR.standard_normal(shape)
            return np.asarray(x + 1j * GENERATOR.standard_normal(shape) if dtype.kind == "c" else x, dtype)

        return self.filled(draw)

    def standard_basis(self) -> Iterator[Any]:
        for k, (shape, dtype) in enumerate(self.specs):
            for index in np.ndindex(*shape):
                for unit in [1.0, 1j] if dtype.kind == "c" else [1.0]:
                    arrays = [np.zeros(*spec) for spec in self.specs]
                    arrays[k][index] = unit
                    yield self.rebuild(arrays)

    def add(self, x: Any, y: Any) -> Any:
        return on_leaves(lambda a, b: a + b, x, y)

    mut_add = add

    def scalar_mul(self, x: Any, factor: Any) -> Any:
        return on_leaves(lambda a: a * factor, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        pairs = zip(leaves_of(x)[0], leaves_of(y)[0], strict=True)
        return sum((np.real(np.sum(np.conj(a) * b)) for a, b in pairs), 0.0)

    def covector(self, x: Any) -> Any:
        return conjugated(x)


# ---- derivatives


def name_of(f: Any) -> str:
    return getattr(f, "__name__", "[unknown name]")


def unary_to_nary(operator: Fn) -> Fn:
    """Make an operator on functions of one argument one on functions of several, by the arguments at `argnum`."""

    @functools.wraps(operator)
    def nary(fun: Fn, argnum: Any = 0, *more: Any, **options: Any) -> Fn:
        def of_all(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                given = list(args)
                for k, value in [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x, strict=True):
                    given[k] = value
                return fun(*given, **kwargs)

            of_one.__name__ = name_of(fun)
            x = args[argnum] if isinstance(argnum, int) else tuple(args[k] for k in argnum)
            return operator(of_one, x, *more, **options)

        of_all.__name__ = f"{name_of(operator)}_of_{name_of(fun)}_wrt_argnum_{argnum}"
        of_all.__doc__ = f"    {name_of(operator)} of function {name_of(fun)} with respect to argument {argnum}."
        return of_all

    return nary


def made_vjp(fun: Fn, x: Any) -> tuple[Fn, Any]:
    x = floating(x)
    y, pullback = aj.vjp(lambda x: on_leaves(aj.tensor, fun(x)), x)  # what does not depend on x may be no tensor
    return lambda g: conjugated(pullback(conjugated(g))[0]), y


def made_jvp(fun: Fn, x: Any) -> Fn:
    x = floating(x)
    return lambda v: aj.jvp(lambda x: on_leaves(aj.tensor, fun(x)), (x,), (v,))


make_vjp, make_jvp = unary_to_nary(made_vjp), unary_to_nary(made_jvp)


def scalar(y: Any) -> Any:
    if vspace(y).size != 1:
        raise TypeError("only functions with one real number as their result have a gradient")
    return y


@unary_to_nary
def grad(fun: Fn, x: Any) -> Any:
    """
    Returns a function which computes the gradient, in the structure of the argument."""
    pull, y = made_vjp(fun, x)
    return pull(vspace(scalar(y)).ones())


@unary_to_nary
def value_and_grad(fun: Fn, x: Any) -> Any:
    pull, y = made_vjp(fun, x)
    return y, pull(vspace(scalar(y)).ones())


@unary_to_nary
def elementwise_grad(fun: Fn, x: Any) -> Any:
    pull, y = made_vjp(fun, x)
    if vspace(y).iscomplex:
        raise TypeError("elementwise_grad: the result is complex")
    return pull(vspace(y).ones())


@unary_to_nary
def deriv(fun: Fn, x: Any) -> Any:
    return made_jvp(fun, x)(on_leaves(lambda a: np.ones(np.shape(a), dtype_of(a)), floating(x)))[1]


@unary_to_nary
def holomorphic_grad(fun: Fn, x: Any) -> Any:
    return grad(lambda z: np.real(fun(z)))(x)


@unary_to_nary
def jacobian(fun: Fn, x: Any) -> Any:
    pull, y = made_vjp(fun, x)
    rows = [pull(v) for v in vspace(y).standard_basis()]
    return np.reshape(np.stack(rows), (*np.shape(y), *np.shape(x)))


@unary_to_nary
def hessian(fun: Fn, x: Any) -> Any:
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Fn, x: Any) -> Any:
    return made_vjp(grad(fun), x)


@unary_to_nary
def grad_and_aux(fun: Fn, x: Any) -> Any:
    y, pullback, aux = aj.vjp(fun, floating(x), has_aux=True)
    return conjugated(pullback(vspace(y).ones())[0]), aux


def grad_named(fun: Fn, name: str) -> Fn:
    return grad(fun, fun.__code__.co_varnames.index(name))


def hessian_tensor_product(fun: Fn, argnum: int = 0) -> Fn:
    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(grad(fun, argnum)(*args[:-1], **kwargs), args[-1], np.ndim(args[-1]))

    return grad(product, argnum)


def tensor_jacobian_product(fun: Fn, argnum: int = 0) -> Fn:
    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(args[-1], fun(*args[:-1], **kwargs), np.ndim(args[-1]))

    return jacobian(product, argnum)


def make_ggnvp(f: Fn, g: Fn = lambda y: 0.5 * np.sum(y**2, axis=-1), f_argnum: int = 0) -> Fn:
    @unary_to_nary
    def made(f: Fn, x: Any) -> Fn:
        pull, y = made_vjp(f, x)
        curvature = made_vjp(grad(g), y)[0]
        return lambda v: pull(curvature(made_jvp(f, x)(v)[1]))

    return made(f, f_argnum)


def checkpoint(fun: Fn) -> Fn:
    return aj.checkpoint(fun)


# ---- functions with derivatives of the user's


class Primitive:
    """A function whose derivative rules are defined later."""

    def __init__(self, fun: Fn) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vjps: dict[int, Fn | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        differentiated = [k for k, x in enumerate(args) if any(isbox(leaf) for leaf in leaves_of(x)[0])]
        if not differentiated:
            return self.fun(*args, **kwargs)
        if not self.vjps:
            raise NotImplementedError(f"{name_of(self.fun)}: no derivative was given")

        @aj.custom_gradient
        def both(*given: Any) -> Any:
            inputs = list(args)
            for k, x in zip(differentiated, given, strict=True):
                inputs[k] = x
            answer = self.fun(*(aj.stop_gradient(x) if isinstance(x, Operand) else x for x in inputs), **kwargs)
            rules = [self.vjps.get(k) for k in differentiated]

            def pull(g: Any) -> Any:
                g, answer = conjugated(g), self(*inputs, **kwargs)  # connected to the inputs, for derivatives of the rule
                return [None if rule is None else conjugated(rule(answer, *inputs, **kwargs)(g)) for rule in rules]

            return answer, pull

        return both(*(args[k] for k in differentiated))

    def defgrad(self, rule: Fn, argnum: int = 0) -> None:
        self.vjps[argnum] = rule

    def defvjp(self, rule: Fn, argnum: int = 0) -> None:
        self.vjps[argnum] = lambda answer, *args: lambda g: rule(g, answer, None, None, *args)

    def defvjp_is_zero(self, argnums: Sequence[int] = (0,)) -> None:
        self.vjps |= dict.fromkeys(argnums)


def defvjp(fun: Primitive, *rules: Fn | None, argnums: Sequence[int] | None = None) -> None:
    fun.vjps |= dict(zip(argnums or itertools.count(), rules, strict=False))


def isbox(x: Any) -> bool:
    return isinstance(x, Operand) and bool(x.is_watched)


# ---- checks


def scalar_close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) < 1e-6 or abs(a - b) / abs(a + b) < 1e-6)


def check_equivalent(x: Any, y: Any) -> None:
    space = vspace(x)
    assert space == vspace(y), f"{space} is not {vspace(y)}"
    v = space.randn()
    assert scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)), f"{x} is not {y}"


def numerical_jvp(f: Fn, x: Any, v: Any, step: float = 1e-6) -> Any:
    space = vspace(x)
    up, down = (f(space.add(x, space.scalar_mul(v, s))) for s in (step / 2, -step / 2))
    return on_leaves(lambda a, b: (a - b) * (1 / step), up, down)


@unary_to_nary
def check_grads(f: Fn, x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    x = on_leaves(aj.tensor, floating(x))  # so that numerical and exact derivatives choose the same signs of eigenvectors
    y = f(x)
    v, w = vspace(x).randn(), vspace(y).randn()
    numeric = numerical_jvp(f, x, v)
    for mode in modes:
        if mode == "fwd":
            check_equivalent(made_jvp(f, x)(v)[1], numeric)
            derivative, seed = (lambda x, v: made_jvp(f, x)(v)[1]), v
        else:
            pulled = vspace(x).covector(made_vjp(f, x)[0](vspace(y).covector(w)))
            assert vspace(pulled) == vspace(x), f"{vspace(pulled)} is not {vspace(x)}"
            exact, expected = vspace(x).inner_prod(v, pulled), vspace(y).inner_prod(w, numeric)
            assert scalar_close(expected, exact), f"Derivative (VJP) check of {name_of(f)} failed at {x}: {exact} is not {expected}"
            derivative, seed = (lambda x, w: made_vjp(f, x)[0](w)), w
        if order > 1:
            derivative.__name__ = f"{'jvp' if mode == 'fwd' else 'vjp'}_{name_of(f)}"
            check_grads(derivative, (0, 1), modes, order=order - 1)(x, seed)


def combo_check(fun: Fn, *options: Any, **more: Any) -> Fn:
    def check(*args: Any, **kwargs: Any) -> None:
        for given in itertools.product(*args):
            for values in itertools.product(*kwargs.values()):
                check_grads(fun, *options, **more)(*given, **dict(zip(kwargs, values, strict=True)))

    return check


def quick_grad_check(fun: Fn, first: Any, more: Sequence[Any] = (), *_: Any, **options: Any) -> None:
    check_grads(fun, modes=["rev"], order=1)(first, *more)


# ---- trees, optimizers, fixed points


def flatten(tree: Any) -> tuple[Any, Fn]:
    leaves, rebuild = leaves_of(tree)
    if not leaves:
        return np.zeros(0), lambda _: rebuild([])
    shapes, kinds = [np.shape(x) for x in leaves], [dtype_of(x).kind for x in leaves]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def unflatten(flat: Any) -> Any:
        parts = [np.reshape(flat[end - int(np.prod(shape)) : end], shape) for end, shape in zip(ends, shapes, strict=True)]
        return rebuild([np.real(x) if kind != "c" and dtype_of(x).kind == "c" else x for x, kind in zip(parts, kinds, strict=True)])

    return np.concatenate([np.reshape(x, -1) for x in leaves]), unflatten


def flatten_func(fun: Fn, example: Any) -> tuple[Fn, Fn, Any]:
    flat, unflatten = flatten(example)
    return lambda x, *args: flatten(fun(unflatten(x), *args))[0], unflatten, flat


def optimizer(rule: Callable[..., Fn]) -> Fn:
    """An optimizer of trees; `rule(size, **options)` returns the function that maps a gradient and a step's number to the change."""

    @functools.wraps(rule)
    def optimize(gradient: Fn, x0: Any, callback: Fn | None = None, num_iters: int = 100, **options: Any) -> Any:
        x, unflatten = flatten(x0)
        change = rule(len(x), **options)
        for i in range(num_iters):
            g = flatten(gradient(unflatten(x), i))[0]
            if callback is not None:
                callback(unflatten(x), i, unflatten(g))
            x = x - change(g, i)
        return unflatten(x)

    return optimize


@optimizer
def sgd(size: int, step_size: float = 0.1, mass: float = 0.9) -> Fn:
    velocity: Any = np.zeros(size)

    def change(g: Any, i: int) -> Any:
        nonlocal velocity
        velocity = mass * velocity + (1.0 - mass) * g
        return step_size * velocity

    return change


@optimizer
def adam(size: int, step_size: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Fn:
    first: Any = np.zeros(size)
    second: Any = np.zeros(size)

    def change(g: Any, i: int) -> Any:
        nonlocal first, second
        first = b1 * first + (1.0 - b1) * g
        second = b2 * second + (1.0 - b2) * g * g
        return step_size * (first / (1.0 - b1 ** (i + 1))) / (np.sqrt(second / (1.0 - b2 ** (i + 1))) + eps)

    return change


def fixed_point(f: Fn, a: Any, x0: Any, distance: Fn, tol: float) -> Any:
    def iterate(step: Fn, x: Any) -> Any:
        while True:
            x, last = step(x), x
            if distance(x, last) <= tol:
                return x

    @aj.custom_gradient
    def solved(a: Any) -> Any:
        answer = aj.stop_gradient(iterate(f(aj.stop_gradient(a)), x0))

        def pull(g: Any) -> Any:
            back = aj.vjp(lambda x: f(a)(x), answer)[1]
            weight = iterate(lambda w: back(w)[0] + g, np.zeros(np.shape(answer)))
            return aj.vjp(lambda a: f(a)(answer), a)[1](weight)[0]

        return answer, pull

    return solved(a)


# ---- SciPy


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """The convolution along pairs of axes, with sums over the pairs of `dot_axes` and all pairs of the rest."""
    if axes is None:
        axes = [list(range(np.ndim(A)))] * 2
    of_a, of_b = ([axis % np.ndim(x) for axis in given] for x, given in zip((A, B), axes, strict=True))
    sizes = [np.shape(B)[axis] for axis in of_b]
    if mode == "valid" and any(np.shape(A)[axis] < size for axis, size in zip(of_a, sizes, strict=True)):
        raise ValueError("convolve: in mode 'valid', the first array is at least as large as the second")
    margins = {"full": lambda n: (n - 1, n - 1), "valid": lambda n: (0, 0), "same": lambda n: ((n - 1) - (n - 1) // 2, (n - 1) // 2)}[mode]
    widths = [(0, 0)] * np.ndim(A)
    for axis, size in zip(of_a, sizes, strict=True):
        widths[axis] = margins(size)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(A, widths), tuple(sizes), tuple(of_a)) if sizes else A
    inner = list(range(np.ndim(A), np.ndim(A) + len(sizes)))
    found = np.tensordot(windows, np.flip(B, of_b), ([*inner, *dot_axes[0]], [*of_b, *dot_axes[1]]))
    left = [axis for axis in range(np.ndim(A)) if axis not in dot_axes[0]]
    slid, kept = [left.index(axis) for axis in of_a], [k for k, axis in enumerate(left) if axis not in of_a]
    return np.transpose(found, [*kept, *range(len(left), np.ndim(found)), *slid])


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    m, n = np.shape(q)
    system = np.kron(a, np.eye(n)) + np.kron(np.eye(m), np.transpose(b))
    return np.reshape(np.linalg.solve(system, np.reshape(q, -1)), (m, n))


def solve_banded(widths: tuple[int, int], bands: Any, b: Any) -> Any:
    matrix: Any = 0.0
    for row, offset in enumerate(range(widths[1], -widths[0] - 1, -1)):
        matrix = matrix + np.diag(bands[row, offset:] if offset >= 0 else bands[row, :offset], offset)
    return np.linalg.solve(matrix, b)


def standard(x: Any, loc: Any, scale: Any) -> Any:
    return (x - loc) / scale


ours = aj.scipy.stats
special = aj.special


def student_cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    z = standard(x, loc, scale)
    tail = 0.5 * special.betainc(0.5 * df, 0.5, df / (df + z * z))
    return np.where(z > 0, 1.0 - tail, tail)


class With:
    """The densities of adjit's distribution, the other functions of SciPy's, and the given ones."""

    def __init__(self, name: str, **functions: Fn) -> None:
        self.places = types.SimpleNamespace(**functions), getattr(ours, name), getattr(scipy.stats, name)

    def __getattr__(self, name: str) -> Any:
        return next(getattr(place, name) for place in self.places if hasattr(place, name))


def normal_density(x: Any, mean: Any, cov: Any, allow_singular: bool = False) -> Any:
    """The log density of vectors by eigenvectors, which takes a covariance that is nearly singular, or, if allowed, singular."""
    values, vectors = np.linalg.eigh(cov)
    large = np.asarray(aj.stop_gradient(values)) > (1e-10 if allow_singular else -np.inf)
    values, turned = values[large], (x - mean) @ vectors[:, large]
    return -0.5 * (np.sum(turned**2 / values, -1) + np.sum(np.log(values)) + float(large.sum()) * np.log(2.0 * np.pi))


def entropy(mean: Any, cov: Any) -> Any:
    size = np.shape(mean)[-1]
    return 0.5 * (size * (1.0 + np.log(2.0 * np.pi)) + np.linalg.slogdet(cov)[1])


DISTRIBUTIONS = {
    "norm": With(
        "norm",
        cdf=lambda x, loc=0.0, scale=1.0: special.ndtr(standard(x, loc, scale)),
        logcdf=lambda x, loc=0.0, scale=1.0: special.log_ndtr(standard(x, loc, scale)),
        sf=lambda x, loc=0.0, scale=1.0: special.ndtr(-standard(x, loc, scale)),
        logsf=lambda x, loc=0.0, scale=1.0: special.log_ndtr(-standard(x, loc, scale)),
    ),
    "t": With("t", cdf=student_cdf, logcdf=lambda *args, **kwargs: np.log(student_cdf(*args, **kwargs))),
    "chi2": With("chi2", cdf=lambda x, df: special.gammainc(0.5 * df, 0.5 * x)),
    "gamma": With("gamma", cdf=lambda x, a: special.gammainc(a, x)),
    "beta": With("beta", cdf=lambda x, a, b: special.betainc(a, b, x)),
    "poisson": With("poisson", cdf=lambda k, mu: special.gammaincc(np.floor(k) + 1.0, mu)),
    "dirichlet": With("dirichlet"),
    "multivariate_normal": With(
        "multivariate_normal",
        pdf=lambda *args, **kwargs: np.exp(normal_density(*args, **kwargs)),
        logpdf=normal_density,
        entropy=entropy,
    ),
}  # fmt: skip


def multigammaln(a: Any, d: int) -> Any:
    return 0.25 * d * (d - 1) * np.log(np.pi) + sum(special.gammaln(a - 0.5 * j) for j in range(d))


# ---- the package


class Shadow(types.ModuleType):
    """A module with its own names, and the rest from other modules."""

    def __init__(self, name: str, *others: Any, **names: Any) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__.update(names, _others=others)

    def __getattr__(self, name: str) -> Any:
        for other in self._others:
            if hasattr(other, name):
                return getattr(other, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def array(value: Any, *args: Any, **kwargs: Any) -> Any:
    """NumPy's array, or a tensor where values that are being differentiated are among the items."""
    held = isinstance(value, Operand) or any(isinstance(x, Operand) for x in leaves_of(value)[0])
    return aj.array(value, *args, **kwargs) if held else np.array(value, *args, **kwargs)


def of_arrays(function: Fn) -> Fn:
    """A function of NumPy that takes nested lists of values that are being differentiated."""
    return functools.wraps(function)(
        lambda *args, **kwargs: function(*(array(x) if isinstance(x, list | tuple) else x for x in args), **kwargs)
    )


def full(shape: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    return (aj.full if isinstance(value, Operand) else np.full)(shape, value, *args, **kwargs)


def make_diagonal(values: Any, axis1: int = -1, axis2: int = -2, offset: int = 0) -> Any:
    return np.expand_dims(values, -1) * np.eye(np.shape(values)[-1])


class Joined:
    """`np.r_` and `np.c_`, of values that are being differentiated as well."""

    def __init__(self, join: Fn, plain: Any) -> None:
        self.join, self.plain = join, plain

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(isinstance(leaf, Operand) for part in parts for leaf in leaves_of(part)[0]):
            return self.plain[key]
        return self.join([np.atleast_1d(self.plain[part] if isinstance(part, slice) else array(part)) for part in parts])


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """NumPy's where, with autograd's names of arguments; a Python bool selects one of Python's objects."""
    if x is None:
        return np.where(condition)
    selects = isinstance(condition, bool) and not isinstance(x, np.ndarray)
    return (x if condition else y) if selects else np.where(condition, x, y)


def is_instance(x: Any, kind: Any) -> bool:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return isinstance(x, kind) or (isinstance(x, Operand) and np.ndarray in kinds)


def vspace(value: Any) -> VSpace:
    return VSpace(value)


def install() -> None:
    operators = {f.__name__: f for f in (
        grad, value_and_grad, elementwise_grad, deriv, holomorphic_grad, jacobian, hessian, make_hvp, grad_and_aux, grad_named,
        hessian_tensor_product, tensor_jacobian_product, make_ggnvp, checkpoint,
    )} | {"make_vjp": make_vjp, "make_jvp": make_jvp, "hessian_vector_product": hessian_tensor_product,
          "vector_jacobian_product": tensor_jacobian_product}  # fmt: skip
    builtins = {"isinstance": is_instance, "tuple": tuple, "list": list, "dict": dict}
    extend = {"primitive": Primitive, "defvjp": defvjp, "vspace": vspace, "VSpace": VSpace, "Box": Operand}
    core = extend | {"make_vjp": made_vjp, "make_jvp": made_jvp, "primitive_vjps": {}}
    given_numpy = {"array": array, "where": where, "make_diagonal": make_diagonal, "full": full}
    given_numpy |= {"r_": Joined(np.concatenate, np.r_), "c_": Joined(np.column_stack, np.c_)}
    given_numpy |= {name: of_arrays(getattr(np, name)) for name in ("append", "mean", "std", "var")}
    given_special = {"jn": special.jn, "multigammaln": multigammaln, "rgamma": lambda x: 1.0 / special.gamma(x)}
    stats = {name: Shadow(f"autograd.scipy.stats.{name}", family) for name, family in DISTRIBUTIONS.items()}
    modules = {
        "autograd": operators | builtins,
        "autograd.numpy": (given_numpy, np),
        "autograd.numpy.random": ({}, np.random),
        "autograd.numpy.linalg": ({"norm": of_arrays(np.linalg.norm), "_dot": np.matmul, "T": np.matrix_transpose}, np.linalg),
        "autograd.numpy.fft": ({}, np.fft),
        "autograd.scipy": {},
        "autograd.scipy.special": (given_special, special, scipy.special),
        "autograd.scipy.signal": {"convolve": convolve},
        "autograd.scipy.linalg": ({"solve_sylvester": solve_sylvester, "solve_banded": solve_banded}, aj.linalg),
        "autograd.scipy.integrate": ({}, aj.scipy.integrate),
        "autograd.scipy.stats": stats,
        "autograd.core": core,
        "autograd.extend": extend,
        "autograd.tracer": {"primitive": Primitive, "isbox": isbox, "getval": aj.stop_gradient},
        "autograd.builtins": builtins,
        "autograd.differential_operators": operators,
        "autograd.wrap_util": {"unary_to_nary": unary_to_nary},
        "autograd.util": {"quick_grad_check": quick_grad_check, "func": lambda f: f},
        "autograd.test_util": {f.__name__: f for f in (check_grads, check_equivalent, combo_check, scalar_close)},
        "autograd.misc": {"flatten": flatten, "const_graph": const_graph},
        "autograd.misc.flatten": {"flatten": flatten, "flatten_func": flatten_func},
        "autograd.misc.optimizers": {"adam": adam, "sgd": sgd},
        "autograd.misc.fixed_points": {"fixed_point": fixed_point},
    }  # fmt: skip
    for name, contents in modules.items():
        names, *others = contents if isinstance(contents, tuple) else (contents,)
        module = sys.modules[name] = Shadow(name, *others, **names)
        parent, _, last = name.rpartition(".")
        if parent and last not in vars(sys.modules[parent]):
            setattr(sys.modules[parent], last, module)
    sys.modules |= {module.__name__: module for module in stats.values()}


def const_graph(fun: Fn, *args: Any, **kwargs: Any) -> Fn:
    return aj.function(functools.partial(fun, *args, **kwargs))


install()

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
