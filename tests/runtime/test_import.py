"""`import adjit` stays cheap: modules that it must not load. Its time is measured in benchmarks/."""

from __future__ import annotations

import json
import subprocess
import sys

import adjit as aj


def loaded_by(module: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after importing one."""
    code = f"import json, sys, {module}\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout))


def test_modules_that_are_imported_late() -> None:
    late = {"llvmlite", "astunparse", "inspect", "ast", "dis", "ctypes.util", "adjit.codegen.compile", "adjit.passes.pipeline"}
    late |= {"adjit.passes.autodiff", "adjit.ir.target"}
    assert not late & (loaded_by("adjit") - loaded_by("numpy"))


FIRST_CALL = """adjit as aj, numpy as np
step = aj.function(lambda x: np.mean(np.sqrt(x) * 2.0))
assert float(step(np.ones(3))) == 2.0"""


def test_what_a_first_call_does_not_load() -> None:
    late = {"numpy.fft", "numpy.polynomial", "llvmlite.binding", "adjit.passes.fusion.attention", "adjit.ir.ops.attention"}
    late |= {f"adjit.tracer.surface.{name}" for name in ("create", "indexing", "linalg", "padding", "products", "sets")}
    assert not late & (loaded_by(FIRST_CALL) - loaded_by("numpy"))


def test_public_names() -> None:
    assert len(set(aj.__all__)) == len(aj.__all__)
    assert not [name for name in aj.__all__ if not hasattr(aj, name)]
    packages = {"ir", "tracer", "passes", "codegen", "runtime", "nn", "tf"}
    assert not [name for name in vars(aj) if not name.startswith("_") and name not in aj.__all__ and name not in packages]
