"""The machine for which this process generates code: its own, or a less capable one named by the environment.

    ADJIT_TARGET        host (the default); x86-64, x86-64-v2, x86-64-v3 or x86-64-v4; generic on other architectures
    ADJIT_VECTOR_BYTES  16, 32 or 64: the width of vectors, instead of the target's own

A level that this CPU does not support is rejected here, rather than by an illegal instruction later. Any width runs on any CPU: LLVM splits
vectors that are too long for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from adjit.ir.environment import choice
from adjit.ir.errors import UnsupportedError
from adjit.ir.locks import once
from adjit.ir.target import Target

from ..threads import library
from . import toolchain as llvm

HOST, GENERIC = "host", "generic"
WIDTHS = (16, 32, 64)
# The features that each level of the x86-64 psABI adds to the one before, by their LLVM names.
LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
IN_HALVES = ("znver4",)  # CPUs that compute with vectors of 64 bytes in two steps
WIDE_CACHES = ("znver5",)  # CPUs whose second-level cache serves products as well as packed factors do, by measurement
CACHES = "/sys/devices/system/cpu/cpu0/cache"
USUAL_CACHES = (1 << 15, 1 << 20)


def current() -> Target:
    """The target of this process."""
    return _machine().with_threads(library.threads())


@once
def _machine() -> Target:
    """The target of this process apart from its threads, determined from the environment at the first compilation."""
    triple, cpu, features = llvm.host()
    is_x86 = triple.startswith("x86_64")
    name = choice("ADJIT_TARGET", (HOST, *(LEVELS if is_x86 else (GENERIC,))), HOST)
    target = named(name, triple, cpu, features) if name != HOST else described(triple, cpu, features, _words(features))
    width = choice("ADJIT_VECTOR_BYTES", ("", *map(str, WIDTHS)), "")
    chosen = int(width) if width else target.vector_bytes
    return target._replace(vector_bytes=chosen, tables=target.tables and chosen == 64, caches=caches())


def named(name: str, triple: str, cpu: str, features: Mapping[str, bool]) -> Target:
    """The target for a named level, which a CPU with these features must support."""
    wanted = names_of(name)
    missing = sorted(wanted - {word for word, has in features.items() if has})
    if missing:
        raise UnsupportedError(f"ADJIT_TARGET={name}: this CPU ({cpu}) does not have {', '.join(missing)}; choose a lower level, or host")
    return described(triple, name, {}, wanted)


def names_of(level: str) -> frozenset[str]:
    """The features of a level, including those of the levels below it."""
    if level not in LEVELS:
        return frozenset()
    order = list(LEVELS)
    return frozenset(word for each in order[: order.index(level) + 1] for word in LEVELS[each])


def described(triple: str, cpu: str, features: Mapping[str, bool], words: frozenset[str]) -> Target:
    """The target for a CPU with the feature names `words`. If `features` is empty, the CPU name alone implies its features."""
    listed = ",".join(f"{'+' if has else '-'}{word}" for word, has in sorted(features.items()))
    if not triple.startswith("x86_64"):
        is_arm = triple.startswith(("aarch64", "arm64"))  # NEON has FMA and rounding, and 32 registers of 16 bytes; SVE is not used
        return Target(triple, cpu, listed, 16, 32 if is_arm else 16, fma=is_arm, rounding=is_arm)
    width = 64 if "avx512f" in words else 32 if "avx" in words else 16
    registers = 32 if "avx512vl" in words else 16
    wide = width == 64
    halves, fed = wide and cpu in IN_HALVES, wide and cpu in WIDE_CACHES
    fma, rounding = "fma" in words, "sse4.1" in words
    return Target(triple, cpu, listed, width, registers, halves, fma, rounding, tables=wide, wide_cache=fed)


def _words(features: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(word for word, has in features.items() if has)


def caches() -> tuple[int, int]:
    """Sizes in bytes of the first- and second-level caches as reported by Linux; typical sizes elsewhere."""
    found: dict[str, int] = {}
    try:
        for entry in os.listdir(CACHES):
            if entry.startswith("index"):
                level, kind, size = (_line(os.path.join(CACHES, entry, name)) for name in ("level", "type", "size"))
                if kind != "Instruction" and size[:-1].isdigit():
                    found[level] = int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]
    except (OSError, KeyError):
        return USUAL_CACHES
    return found.get("1", USUAL_CACHES[0]), found.get("2", USUAL_CACHES[1])


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().strip()
