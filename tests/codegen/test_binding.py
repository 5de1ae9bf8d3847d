"""LLVM is called as llvmlite calls it, without importing its classes, and together with them."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import llvmlite.binding
import pytest
from llvmlite.binding import ffi

from adjit.codegen.llvm import binding, toolchain

SCRIPT = """
import sys
import numpy as np
import adjit as aj
{before}
double = aj.function(lambda x: 2.0 * x)
assert double(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
assert ("llvmlite.binding" in sys.modules) is {imported}
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()
assert machine.emit_object(llvm.parse_assembly("define i64 @one() {{ ret i64 1 }}"))
assert aj.function(lambda x: 3.0 * x)(np.ones(3)).tolist() == [3.0, 3.0, 3.0]
"""


def kind(declared: Any) -> Any:
    """The type of a parameter in machine code: all addresses have the same type."""
    return ctypes.c_void_p if declared is not None and (hasattr(declared, "contents") or declared is ctypes.c_char_p) else declared


@pytest.mark.parametrize("name", binding.PROTOTYPES)
def test_prototypes_are_those_of_llvmlite(name: str) -> None:
    ours, theirs = binding.PROTOTYPES[name], getattr(ffi.lib, f"LLVMPY_{name}")
    if theirs.argtypes is not None:
        assert [*map(kind, ours.arguments)] == [*map(kind, theirs.argtypes)]
    if theirs.restype is not ctypes.c_int:  # or it is not declared
        assert kind(ours.result) == kind(theirs.restype)


def test_structures_are_those_of_llvmlite() -> None:
    theirs = [ffi.lib.LLVMPY_LLJIT_Link.argtypes[k]._type_ for k in (2, 4)]
    for ours, other in zip((binding.Element, binding.LinkName), theirs, strict=True):
        assert [each[1] for each in ours._fields_] == [each[1] for each in other._fields_]


def test_the_host_and_the_version_are_what_llvmlite_says() -> None:
    llvm = llvmlite.binding
    assert toolchain.host() == (llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features()))
    assert binding.versions() == f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


@pytest.mark.parametrize(("before", "imported"), [("", False), ("import llvmlite.binding", True)])
def test_both_may_be_used_in_one_process(before: str, imported: bool) -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT.format(before=before, imported=imported)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
