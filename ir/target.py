"""The machine that code is generated for, as data: an argument of the pipeline and of the code generator, which never look it up.

`adjit.codegen.llvm.target` detects the target of this process.
"""

from __future__ import annotations

from .records import NamedTuple

# How the programs of several ranks exchange arrays: at the position of each collective; while other values are computed; and, if all run on
# one machine, also by products that exchange each block that they have computed. Each includes those before it.
IN_ORDER, OVERLAPPED, SHARED = EXCHANGES = ("in order", "overlapped", "shared")
COMPARED = 13  # fields: the shared routines have no collectives, and no lines


class Target(NamedTuple):
    """`triple`, `cpu` and `features` are LLVM's terms; decisions depend on the other fields. `vector_bytes` may be chosen freely: LLVM
    splits vectors that the CPU does not support.
    """

    triple: str
    cpu: str
    features: str = ""
    vector_bytes: int = 16
    vector_registers: int = 16
    in_halves: bool = False  # it computes with its widest vectors in two steps
    fma: bool = False  # it multiplies and adds with one rounding, in one instruction
    rounding: bool = False  # it rounds vectors of floats to integers in one instruction
    tables: bool = False  # it looks up each lane of a vector in a table of 16 numbers, which registers hold
    wide_cache: bool = False  # its second-level cache delivers its widest vectors as fast as it multiplies tiles of them
    caches: tuple[int, int] = (1 << 15, 1 << 20)  # bytes of the L1 and L2 cache of a core
    threads: int = 1  # that large kernels may use
    hosted: bool = True  # the code runs inside this Python process: it checks for signals, and may call OpenBLAS and LAPACK
    exchange: str = OVERLAPPED  # one of EXCHANGES
    ranks: int = 1  # that exchange arrays so
    debug_lines: bool = False  # record the user's lines in programs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self[:COMPARED] == other[:COMPARED]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:COMPARED])

    @property
    def key(self) -> tuple[str, ...]:
        """The fields that determine the object code of a given LLVM text."""
        return self.triple, self.cpu, self.features

    @property
    def settings(self) -> tuple[str, ...]:
        """The fields that determine the LLVM text as well."""
        rest = self.vector_bytes, self.vector_registers, self.in_halves, self.fma, self.rounding
        return *self.key, *map(str, (*rest, self.tables, self.wide_cache, self.caches, self.threads, self.hosted))

    @property
    def near(self) -> int:
        """Elements of an array that fits into the L1 cache."""
        return self.caches[0] // 8

    def with_threads(self, threads: int | None) -> Target:
        """The same machine with another number of threads, unless that is None."""
        return self if threads is None or threads == self.threads else self._replace(threads=threads)

    def with_exchange(self, way: str, ranks: int) -> Target:
        return self._replace(exchange=way, ranks=ranks)

    def with_debug_lines(self, wanted: bool) -> Target:
        return self._replace(debug_lines=wanted) if wanted != self.debug_lines else self


USUAL = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "", 32, 16, fma=True, rounding=True)  # if no particular target is needed
