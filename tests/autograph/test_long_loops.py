"""Long loops: the memory of their gradients, running out of memory, and interrupts. Mostly in separate processes."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest

import adjit as aj

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and peaks of memory are read the way Linux gives them")

PENDULUM = """
import adjit as aj, numpy as np

def pendulum_with(how):
    def pendulum(gravity, angle, steps):
        speed = 0.0
        for _ in aj.range(steps, checkpoint=how):
            speed = speed - 1e-4 * gravity * np.sin(angle)
            angle = angle + 1e-4 * speed
        return angle

    return aj.function(aj.grad(pendulum, (0, 1)))

def start_over():
    # forget the peak so far, which is that of compiling
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
"""


def output_of(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def output_of_file(program: str) -> str:
    """For programs with control flow to convert, whose source must be available."""
    loader = f"import linecache; s = {program!r}; linecache.cache['p.py'] = (len(s), None, s.splitlines(True), 'p.py')"
    return output_of(f"{loader}\nexec(compile(s, 'p.py', 'exec'))")


@LINUX
@pytest.mark.parametrize("how", ["'sqrt'", "'binomial'", "1000"])
def test_checkpoints_bound_the_memory(how: str) -> None:
    """A million iterations store 16 bytes each without checkpoints."""
    program = PENDULUM + dedent(f"""
        gradient, plain = pendulum_with({how}), pendulum_with("none")
        gradient(2.0, 1.0, 10), plain(2.0, 1.0, 10)
        start_over()
        before = peak()
        found = gradient(2.0, 1.0, 1_000_000)
        bounded = peak() - before
        expected = plain(2.0, 1.0, 1_000_000)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        print(bounded, peak() - before)
    """)
    bounded, linear = map(float, output_of_file(program).split())
    assert bounded < 2 < 12 < linear


@LINUX
def test_out_of_memory_is_an_error_with_a_remedy() -> None:
    program = PENDULUM + dedent("""
        import resource
        gradient = pendulum_with("none")
        before = gradient(2.0, 1.0, 1000)
        held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
        resource.setrlimit(resource.RLIMIT_AS, (held + 200_000_000, resource.RLIM_INFINITY))
        for steps in (100_000_000, 10**15, 2**62):
            try:
                gradient(2.0, 1.0, steps)
            except MemoryError as error:
                print(error)
        assert [float(x) for x in gradient(2.0, 1.0, 1000)] == [float(x) for x in before]
    """)
    message = "@pendulum: not enough memory for what a loop saves for its backward pass; use checkpoint= for the loop\n"
    assert output_of_file(program) == message * 3


@LINUX
def test_out_of_memory_in_a_while_that_grows() -> None:
    program = dedent("""
        import resource
        import adjit as aj, numpy as np
        w = aj.Variable(np.ones(50), name="w")

        @aj.function
        def f(x, limit):
            w.assign_add(np.ones(50))
            with aj.GradientTape() as tape:
                tape.watch(x)
                y = x
                while np.max(np.abs(y)) < limit:
                    y = np.sin(y) * 0.5 + x
            w.assign_add(tape.gradient(y, x))
            return y

        f(np.ones(50), 1.25)
        before = w.numpy().copy()
        held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
        resource.setrlimit(resource.RLIMIT_AS, (held + 200_000_000, resource.RLIM_INFINITY))
        try:
            f(np.ones(50), 10.0)
        except MemoryError as error:
            print(error)
        assert np.array_equal(w.numpy(), before)
        f(np.ones(50), 1.25)
    """)
    assert "use checkpoint= for the loop" in output_of_file(program)


INTERRUPTED = """
import os, signal, threading, time
import adjit as aj, numpy as np
w = aj.Variable(np.ones(SIZE), name="w")
count = aj.Variable(np.zeros((), "i8"), name="count")

@aj.function
def f(x, n):
    count.assign_add(1)
    BODY
    count.assign_add(1)
    return x

f(1.0, 3)
before = w.numpy().copy(), int(count.numpy())

def press():
    global pressed
    time.sleep(0.3)
    pressed = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

for _ in range(2):
    threading.Thread(target=press).start()
    try:
        f(1.0, 10**12)
    except KeyboardInterrupt:
        print(time.perf_counter() - pressed)
    assert np.array_equal(w.numpy(), before[0]) and int(count.numpy()) == before[1]
f(1.0, 3)
assert int(count.numpy()) == before[1] + 2
"""
BODIES = {
    "registers": (1, """
        for i in aj.range(n):
            x = x + 1e-9 * np.sin(x)
            w.assign_add(x + np.zeros(1))
    """),
    "registers_while": (1, """
        i = 0
        while i < n and x > 0:
            x = x * 0.5 + 1
            i += 1
        w.assign(w * x)
    """),
    "arrays": (20_000, """
        for i in aj.range(n):
            w.assign(np.sin(w) + x)
    """),
    "nested": (5, """
        for i in aj.range(n):
            for j in range(i):
                w.assign(np.sin(w) + x)
    """),
    "nested_arrays": (20_000, """
        for i in aj.range(n):
            for j in range(i):
                w.assign(np.sin(w) + x)
            for j in range(100_000):
                x = x * 0.5 + 1
    """),
    "backward": (1, """
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in aj.range(n, checkpoint="sqrt"):
                y = y + 1e-9 * np.sin(y)
        w.assign_add(tape.gradient(y, x) + np.zeros(1))
    """),
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent the way of POSIX")
@pytest.mark.parametrize("kind", BODIES)
def test_interrupt(kind: str) -> None:
    size, body = BODIES[kind]
    lines = dedent(body).strip().replace("\n", "\n    ")
    seconds = output_of_file(INTERRUPTED.replace("SIZE", str(size)).replace("BODY", lines)).split()
    assert len(seconds) == 2
    assert all(float(s) < 1 for s in seconds)


def cube_roots(a):
    x = np.ones(1000)
    step = np.ones(1000)
    while np.max(np.abs(step)) > 1e-13:
        step = (x**3 + x - a) / (3 * x**2 + 1)
        x = x - step
    return x


def test_gradient_through_newton_is_the_implicit_derivative() -> None:
    a, weights = np.linspace(0.5, 20.0, 1000), np.cos(np.arange(1000.0))
    x = aj.function(cube_roots)(a).numpy()
    np.testing.assert_allclose(x**3 + x, a, rtol=1e-13)
    slope = 1 / (3 * x**2 + 1)
    np.testing.assert_allclose(aj.function(aj.grad(lambda a: np.sum(cube_roots(a) * weights)))(a), weights * slope, rtol=1e-12, atol=1e-15)
    second = aj.function(aj.grad(lambda a: np.sum(aj.grad(lambda a: np.sum(cube_roots(a)))(a) * weights)))(a)
    np.testing.assert_allclose(second, -6 * x * slope**3 * weights, rtol=1e-9, atol=1e-12)


def test_a_match_on_the_iteration_is_unrolled() -> None:
    """Iterations that differ by the pattern that the index matches are unrolled, however many there are."""

    @aj.function
    def chain(x):
        for k in range(100):
            match k % 3:
                case 0:
                    x = np.sin(x)
                case 1:
                    x = x * 1.5
                case _:
                    x = x + k
        return x

    text = str(chain.inspect(np.ones(2)).traced)
    assert "for %" not in text
    assert text.count("= sin ") == 34
