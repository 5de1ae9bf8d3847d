"""Programs that test_distributed.py runs on several ranks: `mpiexec -n 2 python ranks.py NAME`."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import adjit as aj
from adjit import distributed as d
from adjit import nn
from adjit.codegen import collectives as native
from adjit.codegen.llvm.target import current
from adjit.codegen.shared import blocks, windows, writing

RANK, SIZE = d.rank(), d.size()
ALL = [np.arange(6.0).reshape(2, 3) * (r + 1) + r for r in range(SIZE)]  # what every rank has


def same(got: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.asarray(got), wanted)


def every(x: Any) -> tuple[Any, ...]:
    """All collectives, of operands in several layouts."""
    g = d.all_gather(x)
    return d.all_reduce(x), d.all_reduce(x.T, "mean"), d.broadcast(x.T, SIZE - 1), g, d.reduce_scatter(g), d.all_to_all(g + RANK)


def collectives() -> None:
    x, total, stacked = ALL[RANK], sum(ALL), np.stack(ALL)
    sent = np.stack([ALL[RANK] + r for r in range(SIZE)])
    wanted = total, total.T / SIZE, ALL[-1].T, stacked, SIZE * x, sent
    for run in (every, aj.function(every)):
        for got, right in zip(run(x), wanted, strict=True):
            same(got, right)
    for dtype in ("f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16"):
        for run in (d.all_reduce, aj.function(lambda x: d.all_reduce(x))):
            got = np.asarray(run(x.astype(dtype)))
            assert got.dtype == dtype
            same(got, total.astype(dtype))
    same(aj.function(lambda x: d.broadcast(x, 0))(np.array([True, RANK > 0])), [True, False])
    d.barrier()


def sums() -> None:
    """Sums through shared memory and by MPI, of sizes around those of buffers and vectors."""
    f = aj.function(lambda x: d.all_reduce(x))
    f(np.ones(3))
    measured = windows.table.least
    assert SIZE == 1 or all(np.asarray(d.all_gather(np.int64(measured))) == measured)
    for n in (1, 31, 2048, 2049, 262144, 262144 * SIZE + 17, 700001):
        parts = [np.random.default_rng(r).integers(-9, 9, n) for r in range(SIZE)]
        for dtype in ("f4", "f8", "i1", "u8") if n < 3000 else ("f4",):
            wanted = sum(parts).astype(dtype)
            for least, past in ((0, 0), (windows.NEVER, 0), (0, windows.NEVER)):
                windows.table.least = least
                write(past)
                same(f(parts[RANK].astype(dtype)), wanted)
    windows.table.least = 0
    for past in (windows.NEVER, 0, RANK % 2 * windows.NEVER):  # the last: ranks that write in different ways
        write(past)
        exchanges()
    if SIZE > 1:
        ways_to_write()
    windows.table.least = measured


def write(past: int) -> None:
    """Write so many times past the caches, and then through them, however long that takes."""
    windows.table.past, windows.table.streamed, windows.table.slow = past, windows.UNKNOWN, 0


def uneven() -> None:
    """A rank whose part of a batch is smaller than those of others, or that alone traces a function again, does not wait for them."""
    w = aj.Variable(np.ones(3))

    @aj.function
    def step(x: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = aj.mean((x @ w) ** 2)
        w.assign_sub(0.1 * d.all_reduce(tape.gradient(loss, w), "mean"))
        return d.all_reduce(loss, "mean")

    wanted = np.ones(3)
    for mine in (8, 8 - RANK, 8, 5 + RANK, 3):
        np.testing.assert_allclose(step(np.ones((mine, 3))), wanted.sum() ** 2, rtol=1e-9)
        wanted = wanted - 0.1 * 2 * wanted.sum()
        np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-12)


def ways_to_write() -> None:
    """After slow writes through the caches, other writes are used for a while; a single slow write may have been an interrupt."""
    name, n = "adjit_mpi_all_reduce.f32", 2 * writing.TELLING
    add, table = native.ROUTINE(native.addresses([name], current())[name]), windows.table
    x = np.ones(n, "f4")

    def written(past: int, streamed: int, slow: int) -> tuple[int, int]:
        table.past, table.streamed, table.slow = past, streamed, slow
        before = table.number
        assert add(x.ctypes.data, x.ctypes.data, n, 0) == 0
        assert table.number == before + 2  # one chunk, and the sums of it
        return table.past, table.slow

    writes = SIZE - 1  # a part for each of the others
    assert written(0, windows.UNKNOWN, 0) == (0, 0)
    assert written(0, windows.UNKNOWN, 1) == (0, 0)
    past, slow = written(0, 0, writing.TWICE - 1)  # nothing is as fast as that
    assert (past, slow) == (writing.PATIENCE - writes + 1, writing.TWICE - 1)
    assert table.streamed < windows.UNKNOWN or writes == 1
    assert written(writing.PATIENCE, windows.UNKNOWN, 1) == (writing.PATIENCE - writes, 1)
    assert 0 < table.streamed < windows.UNKNOWN
    assert written(writes, windows.UNKNOWN // 2, 1) == (0, 1)
    if SIZE == 2:
        assert written(0, 0, 0) == (0, 1)


def exchanges() -> None:
    """Arrays of all sizes one after the other, in place and in other buffers, which are used in turn, while some ranks are late."""
    name = "adjit_mpi_all_reduce.f32"
    add = native.ROUTINE(native.addresses([name], current())[name])
    rng, own = np.random.default_rng(1), np.random.default_rng(RANK)
    chunk = windows.CHUNK // 4
    for k in range(60):
        n = int(rng.choice([1, 100, 2048, 2049, 5000, chunk, chunk + 1, 2 * chunk, 3 * chunk + 7]))
        parts = [(np.arange(n) % 97 + r * 31 + k).astype("f4") for r in range(SIZE)]
        mine = parts[RANK]
        out = mine if k % 2 else np.full(n, np.nan, "f4")
        for _ in range(own.integers(0, 20_000)):
            pass
        assert add(out.ctypes.data, mine.ctypes.data, n, 0) == 0
        same(out, sum((np.arange(n) % 97 + r * 31 + k).astype("f4") for r in range(SIZE)))
        if not k % 2:
            same(mine, parts[RANK])


def overlapped() -> None:
    """Gradients that are summed while others are computed, through shared memory and by MPI."""
    rng = np.random.default_rng(0)
    w = [aj.Variable(rng.normal(size=(150, 150)) / 12) for _ in range(3)]
    x = rng.normal(size=(8 * SIZE, 150))

    def gradients(x: Any) -> Any:
        with aj.GradientTape() as tape:
            h = x
            for v in w:
                h = aj.tanh(h @ v)
            loss = aj.mean(h**2)
        return tape.gradient(loss, w)

    f = aj.function(d.data_parallel(gradients))
    mine = d.part(x)
    text = str(f.inspect(mine).optimized)
    assert text.count("start_all_reduce") == text.count("finish_all_reduce") == 2  # of the last gradient, nothing is left to compute
    wanted = [np.asarray(g) for g in gradients(x)]
    for least in (0, windows.NEVER):
        f(mine)
        windows.table.least = least
        for got, right in zip(f(mine), wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-15)
    used_meanwhile()
    if SIZE > 1:
        settled()


def used_meanwhile() -> None:
    """An operand that is read, and whose buffer is written, during its sum."""

    @aj.function
    def f(x: Any, w: Any) -> Any:
        a = first = x @ w
        for _ in range(3):
            a = aj.tanh(a @ w)
        return d.all_reduce(a), d.all_reduce(first)

    rng = np.random.default_rng(3)
    parts, w = [rng.normal(size=(150, 150)) for _ in range(SIZE)], rng.normal(size=(150, 150)) / 12
    text = str(f.inspect(parts[RANK], w).optimized)
    assert "start_all_reduce" in text
    x = parts[RANK].copy()
    for least in (0, windows.NEVER):
        windows.table.least = least
        last, first = f(x, w)
        np.testing.assert_allclose(first, sum(p @ w for p in parts), rtol=1e-9, atol=1e-12)
        deep = [np.tanh(np.tanh(np.tanh(p @ w @ w) @ w) @ w) for p in parts]
        np.testing.assert_allclose(last, sum(deep), rtol=1e-9, atol=1e-12)
        same(x, parts[RANK])


def parts() -> None:
    """`reduce_scatter` and `all_gather` through shared memory and by MPI, of sizes around those of buffers and vectors."""
    scatter, gather = aj.function(lambda x: d.reduce_scatter(x)), aj.function(lambda x: d.all_gather(x))
    scatter(np.ones((SIZE, 3)))
    measured = windows.table.least
    chunk = windows.CHUNK // 4
    for n in (1, 17, 5000, chunk // SIZE, chunk // SIZE + 1, chunk, 2 * chunk + 3):
        whole = [(np.arange(SIZE * n) % 89 + 7 * r).astype("f4").reshape(SIZE, n) for r in range(SIZE)]
        for least, past in ((0, 0), (windows.NEVER, 0), (0, windows.NEVER)):
            windows.table.least = least
            write(past)
            same(scatter(whole[RANK]), sum(a[RANK] for a in whole))
            same(gather(whole[RANK][0]), np.stack([a[0] for a in whole]))
            same(d.all_reduce(whole[RANK]), sum(whole))  # buffers in turn, with another exchange in between
    for dtype in ("?", "f2", "u1", "i8", "c16"):
        rows = np.stack([(np.arange(5) + RANK).astype(dtype)] * SIZE)
        same(gather(rows[0]), np.stack([(np.arange(5) + r).astype(dtype) for r in range(SIZE)]))
        if dtype != "?":
            same(scatter(rows), (SIZE * np.arange(5) + sum(range(SIZE))).astype(dtype))
    windows.table.least = measured


def deferred() -> None:
    """Large sums computed by the update of a variable: with an optimizer's state, a variable that is read after the update, and errors."""
    rng = np.random.default_rng(0)
    start, x = rng.normal(size=(605, 600)) / 25, rng.normal(size=(4 * SIZE, 605))
    w, speed, mean, limit = aj.Variable(start), aj.Variable(0 * start), aj.Variable(0 * start), aj.Variable(np.inf)

    def gradients(x: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = aj.mean((x @ w) ** 2)
        return loss, tape.gradient(loss, w)

    average = d.data_parallel(gradients)

    @aj.function(static=["late"])
    def step(x: Any, late: bool) -> Any:
        loss, g = average(x)
        if not late:
            assert loss < limit, "too large"
        speed.assign(0.9 * speed + g)
        mean.assign(0.99 * mean + 0.01 * g * g)
        w.assign_sub(0.1 * speed / (np.sqrt(mean) + 0.01))
        after = x @ w
        if late:
            assert loss < limit, "too large"
        return loss, after

    mine = d.part(x)
    by_product = 1 < SIZE <= blocks.MOST_RANKS and current().threads == 1
    assert ("matmul_all_reduce" if by_product else "sum_deferred") in str(step.inspect(mine, False).optimized)
    for least in (None, 0, windows.NEVER):  # None: what was measured
        for late in (False, True):
            for v, a in ((w, start), (speed, 0 * start), (mean, 0 * start)):
                v.assign(a)
            right = [start, 0 * start, 0 * start]
            for k in range(4):
                if least is not None:
                    windows.table.least = least
                before = [v.numpy().copy() for v in (w, speed, mean)]
                limit.assign(-1.0 if k == 2 else np.inf)
                try:
                    _, after = step(mine, late)
                except aj.CheckError:
                    if k != 2:
                        raise
                    for v, a in zip((w, speed, mean), before, strict=True):
                        same(v.numpy(), a)
                    continue
                if k == 2:
                    raise SystemError("the assertion was not checked")
                g = 2 * x.T @ (x @ right[0]) / (len(x) * 600)
                right[1:] = 0.9 * right[1] + g, 0.99 * right[2] + 0.01 * g * g
                right[0] = right[0] - 0.1 * right[1] / (np.sqrt(right[2]) + 0.01)
                for v, a in zip((w, speed, mean), right, strict=True):
                    np.testing.assert_allclose(v.numpy(), a, rtol=1e-7, atol=1e-9)
                np.testing.assert_allclose(after, mine @ w.numpy(), rtol=1e-9, atol=1e-12)
                same(d.all_gather(w.numpy()), np.stack([w.numpy()] * SIZE))


def products() -> None:
    """Products that are summed block by block: of sizes around those of blocks and tiles, in all layouts, while some ranks are late."""
    own = np.random.default_rng(RANK)
    sizes = [(512, 2048, 3), (700, 1030, 300), (2049, 515, 17), (40000, 10, 5), (9, 60000, 4), (97, 4100, 600)]
    for dtype, chosen in (("f4", sizes), ("f8", sizes[1:3])):
        for m, n, k in chosen:
            parts = [np.random.default_rng((m, n, k, r)) for r in range(SIZE)]
            factors = [(rng.integers(-4, 5, (m, k)).astype(dtype), rng.integers(-4, 5, (k, n)).astype(dtype)) for rng in parts]
            a, b = factors[RANK]
            total = np.zeros((m, n), dtype)
            for left, right in factors:
                total += left @ right
            for turned in ("", "a", "b", "ab"):
                w, bias = aj.Variable(np.ones((m, n), dtype)), np.arange(n, dtype=dtype)

                @aj.function
                def f(a: Any, b: Any, bias: Any, w: Any = w, turned: str = turned) -> Any:
                    product = (a.T if "a" in turned else a) @ (b.T if "b" in turned else b)
                    w.assign(2.0 * w + d.all_reduce(product) * 0.5 + bias)

                given = [x.T.copy() if name in turned else x for name, x in (("a", a), ("b", b))]
                if SIZE > 1:
                    assert "matmul_all_reduce" in str(f.inspect(*given, bias).optimized)
                for _ in range(2):
                    for _ in range(own.integers(0, 20_000)):
                        pass
                    f(*given, bias)
                same(w.numpy(), 2 * (2 + total * 0.5 + bias) + total * 0.5 + bias)
                same(d.all_reduce(a), sum(left for left, _ in factors))  # through the same memory


def different() -> None:
    """Ranks whose programs differ except for the collectives: one prints a gradient, which is part of its update elsewhere."""
    rng = np.random.default_rng(0)
    for n in (200, 600):
        start = [rng.normal(size=(n, n)) / n for _ in range(3)]
        w, x = [aj.Variable(a) for a in start], rng.normal(size=(4 * SIZE, n))

        def gradients(x: Any, w: Any = w) -> Any:
            with aj.GradientTape() as tape:
                h = x
                for v in w:
                    h = aj.tanh(h @ v)
                loss = aj.sum(h**2)
            return tape.gradient(loss, w)

        @aj.function
        def step(x: Any, w: Any = w, gradients: Any = gradients) -> None:
            found = [d.all_reduce(g) for g in gradients(x)]
            if RANK == 0:
                print("largest", aj.max(found[1]))
            for v, g in zip(w, found, strict=True):
                v.assign_sub(0.1 * g)

        step(d.part(x))
        for v, a, g in zip(w, start, gradients_at(start, x), strict=True):
            np.testing.assert_allclose(v.numpy(), a - 0.1 * g, rtol=1e-9, atol=1e-15)


def gradients_at(w: Sequence[Any], x: Any) -> list[Any]:
    """Those of `different`, by NumPy."""
    hidden = [x]
    for v in w:
        hidden.append(np.tanh(hidden[-1] @ v))
    d_h, out = 2 * hidden[-1], list[Any]()
    for v, h, y in zip(reversed(w), reversed(hidden[:-1]), reversed(hidden[1:]), strict=True):
        d_z = d_h * (1 - y**2)
        out.insert(0, h.T @ d_z)
        d_h = d_z @ v.T
    return out


def without_windows() -> None:
    """Ranks of one machine that cannot share memory: programs compiled for shared memory are compiled again, for MPI."""
    windows.FOLDER = "/nowhere"
    parts = [np.random.default_rng(r).integers(-4, 5, (3, 700)).astype("f4") for r in range(SIZE)]
    w = aj.Variable(np.zeros((700, 700), "f4"))

    @aj.function
    def f(a: Any) -> Any:
        w.assign_add(d.all_reduce(a.T @ a) * 0.5)

    assert "matmul_all_reduce" in str(f.inspect(parts[RANK]).optimized)
    f(parts[RANK])
    assert "sum_deferred" in str(f.inspect(parts[RANK]).optimized)
    f(parts[RANK])
    same(w.numpy(), sum(a.T @ a for a in parts))
    assert not windows.is_used()


def profiled() -> None:
    """All ranks profile as many calls as the first one, however long they take on each."""
    f = aj.function(lambda x: d.all_reduce(aj.tanh(x)))
    found = f.profile(np.full(100_000 * (1 + RANK % 2), 1.0)[:100_000])
    assert any("all_reduce" in kernel.name for kernel in found.kernels)


def settled() -> None:
    """A call that is interrupted waits for the operations that it has started."""
    name, a = "adjit_mpi_start_all_reduce.f64", np.full(5000, RANK + 1.0)
    start = native.ROUTINE(native.addresses([name], current())[name])
    start(a.ctypes.data, a.ctypes.data, a.size, 5)
    assert native._requests().pending() == [5]
    native.settle(current())
    assert not native._requests().pending()
    same(a, np.full(5000, SIZE * (SIZE + 1) / 2))


def loss(x: Any) -> Any:
    return aj.sum(d.broadcast(x) ** 2) + aj.sum(d.all_gather(x) ** 3) + aj.sum(d.all_reduce(x) ** 2)


def derivatives() -> None:
    """The objective is the sum of the losses of all ranks, each of which is the same here."""
    x = ALL[RANK]
    wanted = SIZE * (3 * x**2 + 2 * sum(ALL) + (2 * x if RANK == 0 else 0))
    for run in (aj.grad(loss), aj.function(aj.grad(loss))):
        np.testing.assert_allclose(run(x), wanted, rtol=1e-12)
    moved = [np.cos(a) for a in ALL]
    _, pushed = aj.function(lambda x, v: aj.jvp(loss, (x,), (v,)))(x, moved[RANK])
    slopes = [3 * a**2 + 2 * sum(ALL) + (2 * a if r == 0 else 0) for r, a in enumerate(ALL)]
    np.testing.assert_allclose(pushed, sum(np.sum(s * m) for s, m in zip(slopes, moved, strict=True)), rtol=1e-12)


def loops() -> None:
    @aj.function
    def f(x: Any, n: Any) -> Any:
        for _ in aj.range(n):
            x = d.all_reduce(x) / SIZE + 1.0
        return x

    same(f(np.full(3, float(RANK)), 5), np.full(3, (SIZE - 1) / 2 + 5))


def vmapped() -> None:
    x = np.stack([np.stack([a + k for _ in range(SIZE)]) for k, a in enumerate([ALL[RANK]] * 3)])  # 3 examples, an element for each rank
    for fn in (d.all_reduce, d.all_gather, d.reduce_scatter, d.all_to_all):
        same(aj.function(aj.vmap(fn))(x), np.stack([np.asarray(fn(e)) for e in x]))


def note(name: str, text: str) -> None:
    """Write a file for the test: lines that ranks print at the same time may be mixed."""
    Path(os.environ["ADJIT_NOTES"], f"{name}.{RANK}").write_text(text, encoding="utf-8")


def trained(shards: int | None) -> list[Any]:
    """Weights after some steps; the loss mixes products and sums, which other code would round otherwise."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(64, 7)).astype("f4"), rng.normal(size=(64, 1)).astype("f4")
    w = [aj.Variable(rng.normal(size=shape).astype("f4")) for shape in ((7, 9), (9,), (9, 1))]

    def gradients(x: Any, t: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = aj.mean((aj.tanh(x @ w[0] + w[1]) @ w[2] - t) ** 2) + 0.01 * sum(aj.sum(v * v) for v in w)
        return loss, tape.gradient(loss, w)

    mean = d.data_parallel(gradients, shards)

    @aj.function
    def update(gradients: Any) -> None:
        for v, g in zip(w, gradients, strict=True):
            v.assign_sub(0.1 * g)

    for _ in range(20):
        update(mean(d.part(x), d.part(t))[1])
    return [v.numpy() for v in w]


def same_bits() -> None:
    """Prints the weights' hash; without shards, they agree up to rounding."""
    found = trained(8)
    for a, b in zip(found, trained(None), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    for a in found:
        same(d.all_gather(a), np.stack([a] * SIZE))
    note("hash", hashlib.sha256(b"".join(a.tobytes() for a in found)).hexdigest())


def hashed(variables: Sequence[aj.Variable]) -> str:
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in variables)).hexdigest()


def network(name: str) -> tuple[nn.Module, tuple[int, ...], int]:
    """A model, the shape of an example, and the size of a batch."""
    nn.set_seed(0)
    if name == "mlp":
        return nn.Sequential([nn.Dense(128, activation="relu"), nn.Dense(64, activation="relu"), nn.Dense(10)]), (784,), 64
    layers = [
        nn.Conv2D(6, 5, padding="same", activation="relu"), nn.MaxPool2D(2), nn.Conv2D(16, 5, activation="relu"), nn.MaxPool2D(2),
        nn.Flatten(), nn.Dense(120, activation="relu"), nn.Dense(84, activation="relu"), nn.Dense(10),
    ]  # fmt: skip
    return nn.Sequential(layers), (28, 28, 1), 16


def networks() -> None:
    """Hashes of the weights of a perceptron and of LeNet after some steps on random images, the step being one compiled function."""
    for name in ("mlp", "lenet"):
        model, shape, batch = network(name)
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(4 * batch, *shape)).astype("f4"), rng.integers(0, 10, 4 * batch)
        model(x[:1])
        optimizer, entropy = nn.optimizers.Adam(), nn.losses.SparseCategoricalCrossentropy(from_logits=True)

        def gradients(x: Any, y: Any, model: Any = model, entropy: Any = entropy) -> Any:
            with aj.GradientTape() as tape:
                loss = entropy(y, model(x, training=True))
            return loss, tape.gradient(loss, model.trainable_variables)

        mean = d.data_parallel(gradients, shards=4)

        @aj.function
        def step(x: Any, y: Any, mean: Any = mean, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss, found = mean(x, y)
            optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
            return loss

        for k in range(int(os.environ["ADJIT_STEPS"])):
            rows = slice(k % 4 * batch, (k % 4 + 1) * batch)
            step(d.part(x[rows]), d.part(y[rows]))
        note(name, hashed(model.variables))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
        if SIZE > 1 and windows.table.windows[0]:
            windows.table.least = 0  # some checks change it
    note("done", "")
