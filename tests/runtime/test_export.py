"""`export`: whole training steps in C, with the bits of Python; errors, loops, threads and memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.ir.ops.base import Array
from tests.codegen.export_harness import ARM, CPP, Batch, compiled, need, output, ulps

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


# ---- training steps


def network(optimizer: Any) -> tuple[Any, list[tuple[Array, Array]]]:
    nn.set_seed(0)
    model = nn.Sequential([nn.Dense(16, "relu"), nn.BatchNorm(), nn.Dropout(0.2), nn.Dense(4)])
    loss = nn.losses.SparseCategoricalCrossentropy(from_logits=True)
    trainer = nn.Trainer(model, loss, optimizer, metrics=["accuracy"])
    step = aj.function(lambda x, y: trainer.train_step(x, y, None), name="step")
    batches = [(floats(12, 6), RNG.integers(0, 4, 12)) for _ in range(4)]
    return step, batches


def after(step: Any, batches: list[tuple[Array, Array]]) -> tuple[list[Array], list[Array]]:
    """Losses and variables of the same steps in Python."""
    losses = [np.asarray(step(*batch)) for batch in batches]
    concrete = next(iter(step._cache.values()))
    return losses, [np.asarray(store.read()) for store in concrete.convention.stores(())]


OPTIMIZERS = {
    "SGD": lambda: nn.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: nn.optimizers.Adam(nn.schedules.CosineDecay(1e-2, 100)),
    "AdamW, clipped": lambda: nn.optimizers.AdamW(1e-2, global_clipnorm=0.5),
    "RMSprop": lambda: nn.optimizers.RMSprop(1e-2),
    "Adagrad": lambda: nn.optimizers.Adagrad(1e-2),
    "Adadelta": lambda: nn.optimizers.Adadelta(1e-1),
    "Adamax": lambda: nn.optimizers.Adamax(1e-2),
    "Nadam": lambda: nn.optimizers.Nadam(1e-2),
    "Lion, accumulated": lambda: nn.optimizers.Lion(1e-3, gradient_accumulation_steps=2),
}


def test_training_steps_of_all_optimizers_give_the_same_bits(tmp_path: Path) -> None:
    batch, wanted = Batch(tmp_path), []
    for make in OPTIMIZERS.values():
        step, batches = network(make())
        batch.add(step, batches, batches[0])  # creates the variables: their initial values are exported
        wanted.append(after(step, batches))
    for name, outcome, (losses, variables) in zip(OPTIMIZERS, batch.run(CPP), wanted, strict=True):
        assert outcome.codes == [0] * len(losses), name
        assert [r[0].tobytes() for r in outcome.results] == [loss.tobytes() for loss in losses], name
        assert [a.tobytes() for a in outcome.state] == [a.tobytes() for a in variables if a.size], name


@pytest.mark.parametrize("target", ["aarch64-linux", "wasm32"])
def test_training_elsewhere_is_nearly_the_same(tmp_path: Path, target: str) -> None:
    batch = Batch(tmp_path, target)
    step, batches = network(nn.optimizers.SGD(0.1))
    batch.add(step, batches, batches[0])
    losses, _ = after(step, batches)
    if target == "aarch64-linux":
        need("qemu-aarch64")
        (outcome,) = batch.run(ARM, ["qemu-aarch64"])
    else:
        (outcome,) = batch.run()
    assert outcome.codes == [0] * len(losses)
    assert max(ulps(r[0], loss) for r, loss in zip(outcome.results, losses, strict=True)) <= 16


def test_fields_have_the_names_of_the_variables(tmp_path: Path) -> None:
    w, same, odd = aj.Variable(floats(2, 3), name="w"), aj.Variable(np.float32(0), name="w"), aj.Variable(np.int64(3), name="for")
    empty = aj.Variable(np.zeros((0, 2)), name="empty")

    @aj.function
    def step(x: Any) -> Any:
        w.assign_add(x)
        same.assign(np.sum(x * w) + odd.astype("f4") + np.sum(empty).astype("f4"))
        return same + 1.0

    made = step.export(tmp_path / "step.o", np.ones((2, 3), "f4"))
    text = (tmp_path / "step.h").read_text()
    assert made.state_bytes == 40  # 28, and 8 at the next multiple of 8
    assert sorted(re.findall(r"^    (\w+ .*);", text, re.MULTILINE)) == ["float w[2][3]", "float w_2", "int64_t for_"]
    assert "int step(const float *x, step_state *state, " in text
    assert "for_; /* not changed */" in text


def test_a_function_that_only_reads_variables(tmp_path: Path) -> None:
    w, empty = aj.Variable(floats(3, 2), name="w"), aj.Variable(np.zeros((0,)), name="empty")
    predict = aj.function(lambda x: (x @ w, np.sum(empty)))
    x = floats(5, 3)
    batch = Batch(tmp_path)
    batch.add(predict, [[x]], (x,))
    assert "const f0_state *state" in (tmp_path / "f0.h").read_text()
    (outcome,) = batch.run()
    assert [a.tobytes() for a in outcome.results[0]] == [np.asarray(a).tobytes() for a in predict(x)]
    assert outcome.state[0].tobytes() == np.asarray(w).tobytes()


# ---- loops, errors, scalars


@aj.function
@aj.value_and_grad
def root(a: Any) -> Any:
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@aj.function
@aj.grad
def recurrence(w: Any, n: Any) -> Any:
    h = w[0]
    k = 0
    while k < n:
        h = np.tanh(h @ w)
        k += 1
    return np.sum(h)


@aj.function
def picked(w: Any, i: Any, j: Any) -> Any:
    return np.sum(np.sin(w[i])) * w[j]


@pytest.mark.one_size("exported code, which is for one size, is compared bit by bit")
def test_loops_that_save_values(tmp_path: Path) -> None:
    w = floats(7, 7, dtype="f8")
    calls = [[w, np.int64(n)] for n in (0, 3, 500, 2)]
    for target, how in (("host", ()), ("wasm32", ())):
        folder = tmp_path / target
        folder.mkdir()
        batch = Batch(folder, target)
        batch.add(root, [[np.float64(2.0)], [np.float64(9.0)]], (2.0,))
        batch.add(recurrence, calls, (w, 3))
        first, second = batch.run(*how)
        assert first.codes + second.codes == [0] * 6
        for got, a in zip(first.results, (2.0, 9.0), strict=True):
            wanted = [np.asarray(r) for r in root(a)]
            assert max(map(ulps, got, wanted)) <= (0 if target == "host" else 4)
        for got, (_, n) in zip(second.results, calls, strict=True):
            assert ulps(got[0], np.asarray(recurrence(w, int(n)))) <= (0 if target == "host" else 1e4)


MESSAGES = """
#include "pick.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    double w[5] = {0, 1, 2, 3, 4}, out;
    int64_t good[2] = {1, 3}, bad[2] = {1, -9};
    void *arena = calloc(1, PICK_ARENA_BYTES);
    int code = pick(w, good, 4, &out, arena);
    printf("%d %s\\n", code, pick_error(code, arena));
    code = pick(w, bad, 4, &out, arena);
    printf("%d %s\\n", code > 0, pick_error(code, arena));
    code = pick(w, good, 5, &out, arena);
    printf("%d %s\\n", code > 0, pick_error(code, arena));
    printf("%s\\n%s\\n", pick_error(-1, NULL), pick_error(77, arena));
    pick_release(arena);
    free(arena);
    return 0;
}
"""


def message(i: Array, j: int) -> str:
    with pytest.raises(IndexError) as error:
        picked(np.arange(5.0), i, j)
    return str(error.value)


@pytest.mark.one_size("exported code, which is for one size, names it in errors")
def test_errors_are_codes_with_the_texts_of_python(tmp_path: Path) -> None:
    picked.export(tmp_path / "pick.a", np.arange(5.0), np.array([1, 3]), 4)
    lines = output(compiled(tmp_path, MESSAGES, "pick.a"))
    wanted = ["0 no error", f"1 {message(np.array([1, -9]), 4)}", f"1 {message(np.array([1, 3]), 5)}"]
    wanted += ["not enough memory for what a loop saves for its backward pass", "there is no such error"]
    assert lines == "\n".join(wanted) + "\n"


@pytest.mark.one_size("exported code, which is for one size, names it in errors")
def test_errors_in_javascript(tmp_path: Path) -> None:
    need("node")
    picked.export(tmp_path / "pick.wasm", np.arange(5.0), np.array([1, 3]), 4)
    (tmp_path / "run.mjs").write_text("""
        import { load } from "./pick.mjs";
        const pick = await load();
        console.log(pick([0, 1, 2, 3, 4], [1, 3], 4).out);
        try { pick(undefined, [1, -9]); } catch (error) { console.log(error.message); }
        try { pick([1, 2]); } catch (error) { console.log(error.message); }
    """)
    first, *rest = output("node", str(tmp_path / "run.mjs")).splitlines()
    assert abs(float(first) - float(picked(np.arange(5.0), np.array([1, 3]), 4))) < 1e-14
    assert "\n".join(rest) == f"{message(np.array([1, -9]), 4)}\nw takes 5 numbers, not 2"


def test_an_error_leaves_the_state_unchanged(tmp_path: Path) -> None:
    table = aj.Variable(np.arange(6.0), name="table")

    @aj.function
    def step(i: Any) -> Any:
        table.assign_add(table[i] + np.zeros(6))
        return table[0]

    batch = Batch(tmp_path)
    batch.add(step, [[np.int64(2)], [np.int64(6)], [np.int64(-6)]], (2,))
    (outcome,) = batch.run()
    assert [code > 0 for code in outcome.codes] == [False, True, False]
    np.testing.assert_array_equal(outcome.state[0], (np.arange(6.0) + 2.0) * 1.0 + 2.0)


DTYPES = ("f4", "f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def test_scalars_of_every_dtype(tmp_path: Path) -> None:
    values = [np.array(v, d) for d, v in zip(DTYPES, (0.1, 0.1, True, -3, -300, -70000, -(2**40), 250, 65000, 2**32 - 2, 2**63 + 9))]
    function = aj.function(lambda *xs: (*xs, *(np.logical_not(x) if x.dtype == bool else x + x for x in xs)))
    for target in ("host", "wasm32"):
        folder = tmp_path / target
        folder.mkdir()
        batch = Batch(folder, target)
        batch.add(function, [values], tuple(values))
        (outcome,) = batch.run()
        assert [a.tobytes() for a in outcome.results[0]] == [np.asarray(a).tobytes() for a in function(*values)]


def test_long_rows_fit_the_stack_of_a_module(tmp_path: Path) -> None:
    """WebAssembly would silently overwrite its constants."""
    table = RNG.standard_normal(8192)

    def rows(x: Any) -> Any:
        for k in range(5):
            x = x - np.max(x, axis=1, keepdims=True)
            x = np.exp(x) * (table + k)
            x = x / np.sqrt(np.sum(x * x, axis=1, keepdims=True))
        return x

    function, x = aj.function(rows), floats(64, 8192, dtype="f8")
    batch = Batch(tmp_path, "wasm32")
    batch.add(function, [[x]] * 2, (x,))
    (outcome,) = batch.run()
    for results in outcome.results:
        assert ulps(results[0], np.asarray(function(x))) <= 64


def test_complex_numbers_are_pairs(tmp_path: Path) -> None:
    z = aj.Variable(np.array([1 + 2j, 3 - 1j]), name="z")

    @aj.function
    def turned(x: Any, by: Any) -> Any:
        z.assign(z * by)
        return np.exp(x) * z, by * by

    x, by = np.array([0.5j, 1.0 - 1j]), np.complex128(0.5 + 1j)
    for target in ("host", "wasm32"):
        folder = tmp_path / target
        folder.mkdir()
        batch = Batch(folder, target)
        batch.add(turned, [[x, by]], (x, by))
        (outcome,) = batch.run()
        before = np.asarray(z)
        wanted = [np.asarray(r) for r in turned(x, by)]
        assert max(map(ulps, outcome.results[0], wanted)) <= (0 if target == "host" else 4)
        assert ulps(outcome.state[0], np.asarray(z)) <= (0 if target == "host" else 4)
        z.assign(before)
    text = (tmp_path / "host" / "f0.h").read_text()
    assert "double z[2][2];" in text
    assert "int f0(const double *x, const double *by, f0_state *state, double *out_0, double *out_1, void *arena);" in text


# ---- threads and memory

TWO_THREADS = """
#include "step.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static double x[40];
typedef struct job { step_state state; double loss; int code; } job;
static void *run(void *given)
{
    job *mine = (job *)given;
    void *arena = calloc(1, STEP_ARENA_BYTES);
    int k;
    mine->state = step_initial;
    for (k = 0; k < 2000 && !mine->code; k++) mine->code = step(x, k % 7, &mine->state, &mine->loss, arena);
    step_release(arena);
    free(arena);
    return NULL;
}
int main(void)
{
    static job jobs[3];
    pthread_t threads[2];
    int k;
    for (k = 0; k < 40; k++) x[k] = 0.01 * k;
    run(&jobs[2]);
    for (k = 0; k < 2; k++) if (pthread_create(&threads[k], NULL, run, &jobs[k])) return 1;
    for (k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    for (k = 0; k < 2; k++) if (memcmp(&jobs[k], &jobs[2], sizeof(job))) return 2;
    printf("%d %.17g\\n", jobs[0].code, jobs[0].loss);
    return 0;
}
"""


def stepped() -> Any:
    w = aj.Variable(np.linspace(0.0, 1.0, 40), name="w")

    @aj.function
    def step(x: Any, n: Any) -> Any:
        with aj.GradientTape() as tape:
            h, k = w, 0
            while k < n:
                h, k = np.tanh(h) + x, k + 1
            loss = np.mean((h - 1.0) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    return step


def test_two_threads_with_two_arenas(tmp_path: Path) -> None:
    step = stepped()
    step.export(tmp_path / "step.o", np.zeros(40), 3)
    code, loss = output(compiled(tmp_path, TWO_THREADS, "step.o", flags=["-lpthread"])).split()
    for k in range(2000):
        wanted = step(0.01 * np.arange(40), k % 7)
    assert code == "0"
    assert float(loss) == float(wanted)


def test_valgrind_finds_nothing(tmp_path: Path) -> None:
    """Built for AVX2, which valgrind supports."""
    need("valgrind")
    from adjit.codegen.llvm import toolchain

    if not toolchain.host().features.get("avx2"):
        pytest.skip("this CPU has no AVX2")
    step = stepped()
    step.export(tmp_path / "step.o", np.zeros(40), 3, target="x86-64-v3")
    program = compiled(tmp_path, TWO_THREADS.replace("2000", "20"), "step.o", flags=["-lpthread", "-g"])
    output("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all", program)
