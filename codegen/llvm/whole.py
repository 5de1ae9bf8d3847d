"""Several texts linked into one module and compiled to one object; only the public symbols are visible outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adjit.ir.errors import AdjitError
from adjit.ir.locks import once
from adjit.ir.target import Target

from . import headroom
from .binding import able_to_compile
from .workers import in_llvm


@once
def _binding() -> Any:
    """llvmlite's own classes, with the code generators of all machines."""
    able_to_compile()
    from llvmlite import binding  # noqa: PLC0415 - takes 25 ms, and only exports need it

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


@in_llvm
def compiled(texts: Sequence[str], target: Target, level: int, public: Iterable[str], jit: bool = False) -> bytes:
    """Object code of the texts together, with everything but `public` internal and dropped if unused.

    It is position-independent, for any linker; with `jit`, it is for that of this process.
    """
    headroom.require(headroom.COMPILING + headroom.PER_BYTE * sum(map(len, texts)), "compiling a function")
    binding, names = _binding(), frozenset(public)
    machine = _machine(binding, target, level, jit)
    head = f'target triple = "{target.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    context = binding.create_context()
    module = _checked(lambda: binding.parse_assembly(head, context))
    for text in texts:
        _checked(lambda text=text: module.link_in(binding.parse_assembly(head + text, context)))  # type: ignore[misc]
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and symbol.name not in names:
            symbol.linkage = "internal"
    _checked(module.verify)
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(0)))
    out: bytes = machine.emit_object(module)
    return out


def _machine(binding: Any, target: Target, level: int, jit: bool) -> Any:
    try:
        kind = binding.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise AdjitError(f"LLVM has no code generator for {target.triple}: {error}") from None
    reloc, model = ("default", "jitdefault") if jit else ("static" if target.triple.startswith("wasm") else "pic", "default")
    return kind.create_target_machine(cpu=target.cpu, features=target.features, opt=level, reloc=reloc, codemodel=model, jit=jit)


def _checked(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except RuntimeError as error:  # LLVM would abort the process later
        raise AdjitError(f"the code generator made invalid LLVM IR: {error}") from None
