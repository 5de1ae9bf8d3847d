"""One specialisation for all sizes: programs traced with symbolic sizes equal their static versions, and the policy that creates them."""

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry.route import Header
from adjit.codegen.native import Native
from adjit.ir.guards import recording
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from adjit.runtime.general import shapes_of, symbolized
from adjit.runtime.signature import take_apart
from adjit.tracer.frames import user_location

from .functions_of_rows import DISCRETE, PROGRAMS, softmax


def general(fn, args, axes):
    """The program of a function with symbols for some axes of its arguments, and what its trace recorded."""
    signature = take_apart(args, {})
    shapes, symbols = symbolized(shapes_of(signature), axes)
    with recording(symbols, user_location) as found:
        program = aj.function(fn)._trace(signature, None, set(), shapes)
    return program, found


def static(fn, args):
    return aj.function(fn)._trace(take_apart(args, {}), None, set())


def summed(fn):
    """The sum of everything that a function returns, weighted so that no derivative is trivial."""

    def scalar(x):
        out = fn(x)
        parts = out if isinstance(out, tuple) else (out,)
        return sum(np.sum(np.sin(part) * (k + 1.0)) for k, part in enumerate(parts))

    return scalar


def check(fn, rows=(7, 2, 5, 40), hint=9):
    program, found = general(fn, (np.random.default_rng(0).normal(size=(hint, 4)),), [(0, 0)])
    assert not found.pins, [str(pin) for pin in found.pins.values()]
    func = program.func
    assert "[B=9" in print_func(func)
    verify(func)
    assert print_func(parse_func(print_func(func))) == print_func(func)
    for n in rows:
        if not all(guard.holds({"B": n}) for guard in found.guards):
            continue
        x = np.random.default_rng(n).normal(size=(n, 4))
        alone = static(fn, (x,))
        want = run(alone.func, x, *alone.captures)
        for a, b in zip(run(func, x, *program.captures), want, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_traces_for_all_sizes(name):
    found = check(PROGRAMS[name])
    assert not found.guards


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in DISCRETE])
def test_derivatives_for_all_sizes(name):
    check(aj.grad(summed(PROGRAMS[name])))
    check(lambda x: aj.jvp(summed(PROGRAMS[name]), (x,), (np.cos(x),))[1])


# ---- the policy


def batches(*sizes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 4)) for n in sizes]


@pytest.mark.parametrize("name", ["softmax", "slices", "counted", "gather", "collected"])
def test_one_program_runs_at_all_sizes(name):
    f = aj.function(aj.grad(summed(PROGRAMS[name])), dynamic="auto")
    for x in batches(9, 7, 2, 3, 64, 1000, 5, 9):
        np.testing.assert_allclose(f(x), aj.grad(summed(PROGRAMS[name]))(x), rtol=1e-9, atol=1e-10)
    assert (f.trace_count, f.cache_size) == (2, 2)
    first, second = f.pretty_printed_signature().splitlines()
    assert "f64[9,4]" in first
    assert "f64[B,4]" in second


def test_sizes_0_and_1_are_compiled_alone():
    f = aj.function(lambda x: np.sum(x, 0) + x.shape[0], dynamic="auto")
    for x in batches(8, 9, 1, 0, 1, 2, 0):
        np.testing.assert_allclose(f(x), np.sum(x, 0) + x.shape[0])
    assert [line.partition("(")[2].partition(")")[0] for line in f.pretty_printed_signature().splitlines()] == [
        "x: f64[8,4]", "x: f64[B,4]", "x: f64[1,4]", "x: f64[0,4]",
    ]  # fmt: skip


def test_equal_sizes_share_a_symbol():
    f = aj.function(lambda x, y, z: (x @ y.T, z * 2), dynamic="auto")
    for b, t in [(3, 5), (4, 6), (4, 9), (7, 7), (2, 3)]:
        x, y, z = np.ones((b, 4)), np.ones((t, 4)), np.ones(b)
        product, doubled = f(x, y, z)
        assert product.shape == (b, t)
        assert doubled.shape == (b,)
    assert "x: f64[B,4], y: f64[T,4], z: f64[B]" in f.pretty_printed_signature()
    assert f.trace_count == 2


def test_decisions_become_guards():
    @aj.function(dynamic="auto")
    def f(x):
        return np.sum(x) if x.shape[0] > 10 else np.sum(x * 2)

    for x in batches(20, 30, 11, 500, 4, 5, 10, 3, 12):
        np.testing.assert_allclose(f(x), np.sum(x) if len(x) > 10 else np.sum(x * 2))
    assert f.trace_count == 3
    assert "for B in 11.." in f.pretty_printed_signature()
    assert "for B in 2..10" in f.pretty_printed_signature()


def test_inequalities_become_guards():
    @aj.function(dynamic="auto")
    def f(x):
        return np.sum(x) if x.shape[0] != 7 else np.sum(x * 2)

    for x in batches(20, 30, 7, 8, 7, 31):
        np.testing.assert_allclose(f(x), np.sum(x) if len(x) != 7 else np.sum(x * 2))
    assert "for B-7 != 0" in f.pretty_printed_signature()


def test_the_reason_for_a_fixed_size_is_named_with_its_line():
    def odd(n):
        return np.zeros(list(range(n))[-1])  # a list has as many items as it has

    @aj.function(dynamic="auto")
    def f(x):
        return np.sum(x[1:], 0) if len(odd(x.shape[0])) % 2 == 1 else np.sum(x, 0)

    for x in batches(8, 9, 10, 8):
        np.testing.assert_allclose(f(x), np.sum(x[1:] if (len(x) - 1) % 2 == 1 else x, 0))
    assert f.trace_count == 4  # of which one for all sizes, in vain
    assert "not for all sizes: B = 9" in f.pretty_printed_signature()
    assert "test_dynamic.py" in f.pretty_printed_signature()


def test_a_loop_of_decisions_fixes_a_size_and_is_named():
    @aj.function(dynamic="auto")
    def f(x):
        total, i = 0.0, 0
        while i < x.shape[0]:
            total, i = total + np.sum(x[i]) * i, i + 1
        return total

    for x in batches(8, 9, 10, 8):
        np.testing.assert_allclose(f(x), np.sum(np.arange(len(x)) @ x))
    text = f.pretty_printed_signature()
    assert "not for all sizes: B = 9" in text
    assert "while i < x.shape[0]" in text


def test_errors_are_those_of_the_function():
    f = aj.function(lambda x, y: x + y, dynamic="auto")
    f(np.ones(3), np.ones(3))
    f(np.ones(4), np.ones(4))
    with pytest.raises(aj.ShapeError, match="do not broadcast"):
        f(np.ones(4), np.ones(5))
    assert f(np.ones(6), np.ones(6)).shape == (6,)
    assert f.trace_count == 2


def test_dynamic_false_compiles_for_each_size():
    f = aj.function(lambda x: x * 2, dynamic=False)
    for x in batches(2, 3, 4):
        f(x)
    assert f.trace_count == 3
    with pytest.raises(ValueError, match="dynamic must be"):
        aj.function(lambda x: x, dynamic="always")


@pytest.mark.one_size("the default is another one")
def test_auto_is_the_default():
    f = aj.function(lambda x: np.sum(x * x))
    for n in (3, 4, 5, 9):
        assert float(f(np.ones(n))) == n
    assert f.trace_count == 2


def test_the_default_is_a_setting(monkeypatch):
    monkeypatch.setattr(aj.config, "dynamic", False)
    f = aj.function(lambda x: np.sum(x * x))
    for n in (3, 4, 5):
        f(np.ones(n))
    assert f.trace_count == 3
    with pytest.raises(ValueError, match='dynamic must be False, True or "auto", not 2'):
        aj.config.dynamic = 2


def test_the_first_argument_can_be_made_symbolic_by_a_setting(monkeypatch):
    """With ADJIT_DYNAMIC=first, other tests run with sizes of their first argument as symbols, except those marked as `one_size`."""
    monkeypatch.setattr(aj.config, "dynamic", "first")
    f = aj.function(lambda x, y: np.sum(x, 0) + y)
    np.testing.assert_array_equal(f(np.ones((5, 3)), np.ones(3)), np.full(3, 6.0))
    compiled, reason = f.pretty_printed_signature().splitlines()
    assert compiled == "<lambda>(x: f64[B,3], y: f64[3]) -> f64[3]"
    assert reason.startswith("  not for all sizes: T = 3: T-3 == 0 is decided at ")


@pytest.mark.one_size("counts traces")
def test_open_sizes_of_a_signature_are_general_at_once():
    f = aj.function(lambda x, y: x * 2 + y, input_signature=[aj.TensorSpec([None, 3], "f8"), aj.TensorSpec([3], "f8")])
    g = aj.function(lambda x, n: x * n)
    specialization = g.get_concrete_function(aj.TensorSpec([None, 3], "f8"), 2)
    for n in (3, 4, 9):
        x = np.ones((n, 3))
        np.testing.assert_array_equal(f(x, np.ones(3)), 3 * x)
        np.testing.assert_array_equal(specialization(x, 2), 2 * x)
    assert f.trace_count == g.trace_count == 1
    assert "x: f64[B,3], y: f64[3]" in f.pretty_printed_signature()
    assert "x: f64[B,3], n: int" in g.pretty_printed_signature()


def test_open_sizes_are_compiled_one_by_one_on_request():
    f = aj.function(lambda x: x * 2, input_signature=[aj.TensorSpec([None], "f8")], dynamic=False)
    for n in (3, 4):
        f(np.ones(n))
    assert f.pretty_printed_signature() == "<lambda>(x: f64[3]) -> f64[3]\n<lambda>(x: f64[4]) -> f64[4]"


def test_dynamic_true_is_general_at_once():
    f = aj.function(lambda x: np.cumsum(x, 0), dynamic=True)
    for x in batches(6, 3, 2, 90):
        np.testing.assert_allclose(f(x), np.cumsum(x, 0))
    assert f.trace_count == 1
    assert f.pretty_printed_signature() == "<lambda>(x: f64[B,T]) -> f64[B,T]"


def test_results_of_the_native_entry_have_types():
    f = aj.function(lambda x: (x[1:], np.sum(x), np.concatenate([x, x])), dynamic=True)
    for _ in range(3):
        for n in (6, 9, 3, 700):
            part, total, double = f(np.ones((n, 4)))
            assert (part.shape, part.type.shape, double.shape) == ((n - 1, 4), (n - 1, 4), (2 * n, 4))
            assert (part + 1).type.shape == (n - 1, 4)
            assert float(total) == 4 * n
    ((concrete, route),) = f._shortcut._routes
    assert concrete.convention.is_general
    native = concrete.convention.native
    assert isinstance(native, Native)
    assert route.words[Header.CAPACITY] >= native._memory(700, 4)  # it grew with the sizes
    assert len(route._arenas) + len(native._arenas) <= 2  # and took over what calls through Python had, rather than keep both


def test_eager_tapes_record_calls_of_any_size():
    f = aj.function(lambda x: np.sum(np.tanh(x) ** 2), dynamic="auto")
    for x in batches(5, 6, 7, 8):
        v = aj.Tensor(x)
        with aj.GradientTape() as tape:
            tape.watch(v)
            y = f(v)
        np.testing.assert_allclose(tape.gradient(y, v), 2 * np.tanh(x) / np.cosh(x) ** 2, rtol=1e-9)


def test_a_training_step_compiles_twice():
    w = aj.Variable(np.zeros((4, 3)))

    @aj.function(dynamic="auto")
    def step(x, y):
        with aj.GradientTape() as tape:
            z = x @ w
            loss = -np.mean(np.log(softmax(z))[np.arange(x.shape[0]), y])
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    alone = aj.function(step.python_function, reduce_retracing=True)
    rng = np.random.default_rng(0)
    for n in (32, 31, 2, 17, 200, 3, 64):
        x, y, before = rng.normal(size=(n, 4)), rng.integers(0, 3, n), w.numpy().copy()
        loss, after = step(x, y), w.numpy().copy()
        w.assign(before)
        np.testing.assert_allclose(loss, alone(x, y), rtol=1e-12)
        np.testing.assert_allclose(w.numpy(), after, rtol=1e-10, atol=1e-12)
    assert step.trace_count == 2


def test_everything_that_shows_a_function_shows_one_for_all_sizes(tmp_path):
    w = aj.Variable(np.ones((3, 2)))

    @aj.function
    def step(x):
        with aj.GradientTape() as tape:
            loss = np.sum(np.tanh(x @ w))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    for n in (4, 5, 6):
        step(np.ones((n, 3)))
    x, before = np.ones((7, 3)), w.numpy().copy()
    shown = step.inspect(x)
    for text in (shown.traced, shown.forward, shown.backward, shown.optimized, str(shown)):
        assert "f64[B,3]" in text
    assert "*B" in shown.loops
    assert "define i64 @adjit_main" in shown.llvm
    assert shown.asm
    assert "np.tanh" in shown.source
    assert shown.source == str(step.source(x))
    assert "<iframe" in shown._repr_html_()
    assert step.explore(x, path=tmp_path / "page.html", open=False).stat().st_size > 10_000
    assert step.profile(x, repeat=2).memory.arguments >= x.nbytes
    assert np.isfinite(step.debug(x))
    np.testing.assert_array_equal(w.numpy(), before)


NARROWED = {
    "two columns": (lambda x: x[:, 0] * x[:, 1], ""),
    "without two rows": (lambda x: x[1:][1:] - 1.0, " for B in 3.., B-2 != 0"),
    "two rows": (lambda x: 3.0 * x[:2], ""),
}


@pytest.mark.parametrize("name", NARROWED)
def test_a_program_for_the_sizes_with_the_same_decision(name):
    """Gradients pad by widths that may be 0 at the smallest size. Where the operand may be empty, that size has its own program."""
    fn, conditions = NARROWED[name]

    def gradient(x):
        return aj.grad(lambda x: np.sum(np.sin(fn(x))))(x)

    for order in ((9, 4), (5, 3), (2, 2), (3, 2), (2, 7), (33, 4), (1, 2)), ((2, 2), (9, 4), (5, 3), (2, 2)):
        f = aj.function(gradient, dynamic=True, reduce_retracing=True)
        for shape in order:
            x = np.random.default_rng(0).normal(size=shape)
            np.testing.assert_allclose(f(x), gradient(x), rtol=1e-10, atol=1e-12)
        assert f"gradient(x: f64[B,T]) -> f64[B,T]{conditions}\n" in f.pretty_printed_signature() + "\n"
        f(np.ones((50, 60)))
        known = f.trace_count
        f(np.ones((51, 61)))
        assert f.trace_count == known


def test_a_program_for_few_sizes():
    """After a decision in the function, the range of sizes has an end, which passes use."""

    def loss(x):
        return np.sum(np.sin(x[1:] * x[:-1])) if x.shape[0] < 12 else np.sum(x)

    f = aj.function(aj.grad(loss), dynamic=True, reduce_retracing=True)
    for n in (7, 3, 11, 2, 12, 40):
        x = np.random.default_rng(n).normal(size=(n, 3))
        np.testing.assert_allclose(f(x), aj.grad(loss)(x))
    assert "for B in 2..11" in f.pretty_printed_signature()
    assert "for B in 12.." in f.pretty_printed_signature()


def test_len_is_a_size():
    @aj.function(dynamic=True)
    def mean(x):
        total = 0.0
        for i in range(len(x)):
            total = total + np.sum(x[i]) / len(x)
        return total

    for x in batches(6, 3, 2, 40):
        np.testing.assert_allclose(mean(x), np.sum(np.mean(x, 0)))
    assert mean.trace_count == 1


def test_a_special_size_does_not_fix_the_others():
    """Whichever size comes first, a size that is a special case has its own program."""

    def f(x):
        return np.sum(x) if x.shape[0] == 64 else np.sum(2 * x)

    for sizes in (64, 5, 9, 64, 30), (5, 64, 9, 30):
        g = aj.function(f, dynamic=True, reduce_retracing=True)
        for n in sizes:
            assert g(np.ones(n)) == f(np.ones(n))
        assert "f(x: f64[64]) -> f64[]\n" in g.pretty_printed_signature()
        assert "f(x: f64[B]) -> f64[] for B-64 != 0" in g.pretty_printed_signature()


def test_an_index_out_of_bounds_names_the_size():
    f = aj.function(lambda x, i: np.sum(x[i]), input_signature=[aj.TensorSpec([None], "f8"), aj.TensorSpec([2], "i8")])
    assert float(f(np.ones(9), np.array([0, 8]))) == 2.0
    with pytest.raises(aj.OutOfBoundsError, match=r"index 11 is out of bounds for axis 0 of f64\[B\], of size B\n"):
        f(np.ones(9), np.array([0, 11]))
