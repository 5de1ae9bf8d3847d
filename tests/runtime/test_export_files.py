"""`export`: files, their contents and requirements; refusals; names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import UnsupportedError
from tests.codegen.export_harness import CPP, Batch, need, output
from tests.runtime.test_export import floats, stepped

LIBC = {"memcpy", "memmove", "memset", "realloc", "free", "calloc"}


def mlp(p: Any, x: Any, y: Any) -> Any:
    h = np.maximum(x @ p["w1"] + p["b1"], 0)
    z = h @ p["w2"] + p["b2"]
    return np.mean(aj.logsumexp(z, axis=1) - np.sum(z * y, axis=1))


MLP = ({"w1": floats(784, 128) * 0.05, "b1": floats(128), "w2": floats(128, 10) * 0.1, "b2": floats(10)}, floats(128, 784), floats(128, 10))


def symbols(path: Path, *options: str) -> set[str]:
    need("nm")
    return {line.split()[-1] for line in output("nm", *options, str(path)).splitlines()}


def test_the_gradient_of_an_mlp(tmp_path: Path) -> None:
    """Small, alone, and the same as in Python."""
    need("gcc")
    need("ldd")
    gradient = aj.function(aj.value_and_grad(mlp))
    made = gradient.export(tmp_path / "libmlp.so", *MLP)
    assert made.name == "mlp"
    assert [Path(f).name for f in made.files] == ["libmlp.so", "libmlp.h"]
    assert (tmp_path / "libmlp.so").stat().st_size <= 64 << 10
    needed = {line.split()[0] for line in output("ldd", str(tmp_path / "libmlp.so")).splitlines()}
    assert all(name.startswith(("linux-vdso", "libc.", "libm.", "statically", "/lib")) for name in needed)
    assert symbols(tmp_path / "libmlp.so", "-D", "--defined-only") == {"mlp", "mlp_error", "mlp_release"}
    for target in ("host", "aarch64-linux", "x86-64-v2"):
        gradient.export(tmp_path / "mlp.o", *MLP, target=target)
        assert (tmp_path / "mlp.o").stat().st_size <= 64 << 10
        assert symbols(tmp_path / "mlp.o", "-u") <= LIBC
        assert symbols(tmp_path / "mlp.o", "-g", "--defined-only") == {"mlp", "mlp_error", "mlp_release"}


@pytest.mark.parametrize("threads", [1, 2])
def test_products_give_the_same_bits_on_any_number_of_threads(tmp_path: Path, threads: int) -> None:
    gradient = aj.function(aj.value_and_grad(mlp))
    arrays = [MLP[0][k] for k in sorted(MLP[0])] + [*MLP[1:]]
    batch = Batch(tmp_path, threads=threads)
    batch.add(gradient, [arrays] * 3, MLP)
    (outcome,) = batch.run(CPP)
    value, slopes = gradient(*MLP)
    wanted = [np.asarray(value), *map(np.asarray, slopes.values())]
    for results in outcome.results:
        assert [a.tobytes() for a in results] == [a.tobytes() for a in wanted]


def test_a_shared_library_from_python(tmp_path: Path) -> None:
    import ctypes

    need("gcc")
    made = aj.function(lambda x, a: np.sum(np.exp(x) * a)).export(tmp_path / "total.so", np.ones(4), 2.0, name="total_of")
    library = ctypes.CDLL(made.files[0])
    x, out, arena = np.arange(4.0), ctypes.c_double(), ctypes.create_string_buffer(made.arena_bytes)
    pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    assert library.total_of(pointer, ctypes.c_double(2.0), ctypes.byref(out), arena) == 0
    assert out.value == float(aj.function(lambda x, a: np.sum(np.exp(x) * a))(x, 2.0))


def test_a_library_for_another_machine_needs_its_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double = aj.function(lambda x: 2.0 * x)
    monkeypatch.delenv("CC", raising=False)
    if shutil.which("aarch64-linux-gnu-gcc"):
        double.export(tmp_path / "double_of.so", 1.0, target="aarch64-linux")
        assert (tmp_path / "double_of.so").read_bytes()[18] == 183  # the machine of the ELF header
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"needs a C compiler for aarch64, but aarch64-linux-gnu-gcc was not found; .* \.o or \.a"):
        double.export(tmp_path / "double_of.so", 1.0, target="aarch64-linux")
    double.export(tmp_path / "double_of.a", 1.0, target="aarch64-linux")


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    """So that builds can be compared, and files cached."""
    step = stepped()
    for kind in ("o", "a", "wasm"):
        made = step.export(tmp_path / f"step.{kind}", np.zeros(40), 3).files
        before = [Path(file).read_bytes() for file in made]
        step.export(tmp_path / f"step.{kind}", np.zeros(40), 3)
        assert [Path(file).read_bytes() for file in made] == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step.a", "step.d.mts", "step.d.ts", "step.h", "step.mjs", "step.o", "step.wasm"]


# ---- refusals and names


def test_print_is_refused_with_its_line(tmp_path: Path) -> None:
    @aj.function
    def shown(x: Any) -> Any:
        while x > 1.0:
            x = x / 2.0
            print(x)
        return x

    with pytest.raises(UnsupportedError, match=r"print needs Python(.|\n)*test_export_files.py:\d+.* in shown:  print\(x\)"):
        shown.export(tmp_path / "shown.o", 3.0)
    assert not list(tmp_path.iterdir())


def test_paths_and_targets_that_do_not_fit(tmp_path: Path) -> None:
    double = aj.function(lambda x: 2.0 * x)
    for path, target, pattern in (
        ("f.dll", "host", r"must end in one of \.o, \.a, \.so, \.wasm"), ("f.o", "wasm32", "cannot write a .o file for wasm32"),
        ("f.wasm", "x86-64", "cannot write a .wasm file for x86-64"),
        ("f.o", "sparc", "unknown target 'sparc'; choose one of host, x86-64, "),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match=pattern):
            double.export(tmp_path / path, 1.0, target=target)
    with pytest.raises(UnsupportedError, match="threads=2 is not supported for wasm32"):
        double.export(tmp_path / "f.wasm", 1.0, threads=2)
    with pytest.raises(UnsupportedError, match="'two words' cannot be the name of a C function"):
        double.export(tmp_path / "f.o", 1.0, name="two words")
    with pytest.raises(UnsupportedError, match="'exp' cannot be the name of a C function"):
        double.export(tmp_path / "exp.o", 1.0)
    with pytest.raises(ValueError, match="threads"):
        double.export(tmp_path / "f.o", 1.0, threads=0)


def test_names_of_arguments_and_results(tmp_path: Path) -> None:
    @aj.function
    def named(state: Any, arena: Any, x: Any) -> Any:
        loss = state * x["1st"] + arena
        return {"loss": loss, "all": [x["1st"] + 1.0, loss * 2.0, arena], "named": state + 0.0}

    named.export(tmp_path / "my-function.o", 1.0, 2.0, {"1st": 3.0})
    found = re.search(r"int my_function\((.*)\);", (tmp_path / "my-function.h").read_text())
    assert found is not None
    assert found[1] == (
        "double state_, double arena_, double x_1st, double *loss, double *all_0, double *all_1, double *all_2, double *named, void *arena"
    )


def test_specs_in_place_of_arguments(tmp_path: Path) -> None:
    total = aj.function(lambda x, n: np.sum(x) * n)
    total.export(tmp_path / "total.o", aj.TensorSpec([4, 2], "f4"), 3)
    assert "int total(const float *x, int64_t n, float *out, void *arena);" in (tmp_path / "total.h").read_text()
    with pytest.raises(ValueError, match=r"compiled for one size, but TensorSpec\(f32\[None,2\]\) leaves a size open"):
        total.export(tmp_path / "total.o", aj.TensorSpec([None, 2], "f4"), 3)
    signed = aj.function(lambda x: np.sum(x), input_signature=[aj.TensorSpec([5], "f8")])
    signed.export(tmp_path / "signed.o")
    assert "int signed_(const double *x, double *out, void *arena);" in (tmp_path / "signed.h").read_text()
    assert signed.address().signature == "int (const double *, double *)"


def test_methods_and_keyword_arguments(tmp_path: Path) -> None:
    class Scaled:
        def __init__(self) -> None:
            self.factor = aj.Variable(3.0, name="factor")

        @aj.function
        def of(self, x: Any, power: Any) -> Any:
            return self.factor * x**power

    scaled = Scaled()
    scaled.of.export(tmp_path / "of.o", 2.0, power=3.0)
    assert "int of(double x, double power, const of_state *state, double *out, void *arena);" in (tmp_path / "of.h").read_text()
    assert scaled.of.address(2.0, power=3.0)(2.0, 3.0) == 24.0
