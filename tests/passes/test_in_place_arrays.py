"""Arrays in regions that run in registers: which changes can be made in place, and which stacks change at all."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.memory.buffers import plan_buffers
from adjit.passes.memory.in_place import changes_in_place
from adjit.passes.pipeline import OPTIMIZE
from tests.passes.checks import rewrites

IN_PLACE = {
    "an element after the other": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %e: f64[] = gather %a, %k
          %t: f64[] = mul %c, %e
          %b: f64[8] = scatter_set %a, %t, %k
          yield %t, %b, %z
        }
        """,
    "read before the change, and after it by its new name": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %e: f64[] = gather %a, %k
          %b: f64[8] = scatter_set %a, %c, %k
          %g: f64[] = gather %b, 1:i64[]
          %t: f64[] = mul %g, %e
          yield %t, %b, %z
        }
        """,
    "changed in one branch": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %p: bool[] = less %k, 2
          %b: f64[8] = if %p {
            %d: f64[8] = scatter_set %a, %c, %k
            yield %d
          } else {
            yield %a
          }
          yield %c, %b, %z
        }
        """,
    "changed by a loop inside": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %b: f64[8] = for %j in 0..4 carry (%d: f64[8] = %a) {
            %g: f64[8] = scatter_set %d, %c, %j
            yield %g
          }
          %e: f64[] = gather %b, %k
          yield %e, %b, %z
        }
        """,
    "changed while a condition holds of it": """
        while carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %e: f64[] = gather %a, 0:i64[]
          %p: bool[] = less %e, 4.0
          cond %p
        } do {
          %g: f64[] = gather %a, 0:i64[]
          %h: f64[] = add %g, 1.0
          %b: f64[8] = scatter_set %a, %h, 0:i64[]
          yield %h, %b, %z
        }
        """,
}

COPIED = {
    "read after the change by its old name": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %b: f64[8] = scatter_set %a, %c, %k
          %e: f64[] = gather %a, %k
          yield %e, %b, %z
        }
        """,
    "exchanged": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %e: f64[] = gather %a, %k
          yield %e, %z, %a
        }
        """,
    "what comes from outside is changed": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %b: f64[8] = scatter_set %w, %c, %k
          %e: f64[] = gather %b, %k
          yield %e, %a, %z
        }
        """,
    "branches choose one of two": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %p: bool[] = less %k, 2
          %b: f64[8] = if %p {
            yield %a
          } else {
            yield %z
          }
          %e: f64[] = gather %b, %k
          yield %e, %a, %z
        }
        """,
    "a loop inside changes what is read later": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %b: f64[8] = for %j in 0..4 carry (%d: f64[8] = %a) {
            %g: f64[8] = scatter_set %d, %c, %j
            yield %g
          }
          %e: f64[] = gather %b, %k
          yield %e, %a, %z
        }
        """,
    "one array into two carries": """
        for %k in 0..4 carry (%c: f64[] = %x, %a: f64[8] = %v, %z: f64[8] = %u) {
          %b: f64[8] = scatter_set %a, %c, %k
          yield %c, %b, %b
        }
        """,
}


@pytest.mark.parametrize(
    ("region", "want"), [(r, w) for rs, w in ((IN_PLACE, True), (COPIED, False)) for r in rs.values()], ids=[*IN_PLACE, *COPIED]
)
def test_regions_that_change_all_their_arrays_in_place(region: str, want: bool) -> None:
    body = f"%y: f64[], %r: f64[8], %s: f64[8] = {dedent(region).strip()}"
    func = parse_func(
        f"func @f(%x: f64[], %v: f64[8], %u: f64[8], %w: f64[8]) -> (f64[], f64[8], f64[8]) {{\n{body}\nreturn %y, %r, %s\n}}\n"
    )
    verify(func)
    assert changes_in_place(func.stmts[0]) == want
    planned = plan_buffers(func)
    verify(planned)
    assert (id(next(s for s in planned.stmts if s.op.is_loop)) in planned.plan.registers) == want
    arrays = [np.array(0.5), *(np.linspace(k, k + 1, 8) for k in range(3))]
    for ours, theirs in zip(compile_func(OPTIMIZE.run(func))(arrays), run(func, *arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_elements_of_stacks_that_change_inside_of_regions_are_copied() -> None:
    """The first changes in a branch, the second by the name that branches gave it, the third by a carry, the fourth never."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %p: bool[], %w: f64[8,8]) -> (f64[8], f64[8], f64[8], f64[8]) {
          %l: f64[8], %s: stack<f64[8]>, %s1: stack<f64[8]>, %s2: stack<f64[8]>, %s3: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %n: f64[8] = matmul %c, %w
            yield %n saving %c, %c, %c, %c
          }
          %a: f64[8] = stack_read %s, 0:i64[]
          %b: f64[8] = stack_read %s1, 0:i64[]
          %d: f64[8] = stack_read %s2, 0:i64[]
          %e: f64[8] = stack_read %s3, 0:i64[]
          %g: f64[8] = if %p {
            %t: stack<f64[8]> = stack_accumulate %s, 0:i64[], %x
            %h: f64[8] = stack_read %t, 0:i64[]
            yield %h
          } else {
            yield %x
          }
          %q: stack<f64[8]> = if %p {
            yield %s1
          } else {
            yield %s1
          }
          %u: stack<f64[8]> = stack_accumulate %q, 0:i64[], %g
          %v: stack<f64[8]> = for %j in 0..4 carry (%m: stack<f64[8]> = %s2) {
            %o: stack<f64[8]> = stack_accumulate %m, %j, %x
            yield %o
          }
          %a1: f64[8] = matmul %a, %w
          %b1: f64[8] = matmul %b, %w
          %d1: f64[8] = matmul %d, %w
          %e1: f64[8] = matmul %e, %w
          return %a1, %b1, %d1, %e1
        }
        """,  # noqa: E501
        """
        func @f(%x: f64[8] @param+0, %p: bool[] @param+1, %w: f64[8,8] @param+2) -> (f64[8], f64[8], f64[8], f64[8]) arena 512 {
          %l: f64[8] @%c, %s: stack<f64[8]> @arena+0, %s1: stack<f64[8]> @arena+64, %s2: stack<f64[8]> @arena+128,
              %s3: stack<f64[8]> @arena+192 = for %k: i64[] @arena+256 in 0..4 carry (%c: f64[8] @arena+320 = %x) {
            %n: f64[8] @arena+384 = matmul %c, %w
            yield %n saving %c, %c, %c, %c
          }
          %a: f64[8] @arena+256 = stack_read %s, 0:i64[]
          %b: f64[8] @arena+320 = stack_read %s1, 0:i64[]
          %d: f64[8] @arena+384 = stack_read %s2, 0:i64[]
          %e: f64[8] @view+0 = stack_read %s3, 0:i64[]
          %g: f64[8] @arena+448 = if %p {
            %t: stack<f64[8]> @%s = stack_accumulate %s, 0:i64[], %x
            %h: f64[8] @arena+448 = stack_read %t, 0:i64[]
            yield %h
          } else {
            yield %x
          }
          %q: stack<f64[8]> @%s1 = if %p {
            yield %s1
          } else {
            yield %s1
          }
          %u: stack<f64[8]> @%s1 = stack_accumulate %q, 0:i64[], %g
          %v: stack<f64[8]> @%s2 = for %j: i64[] @arena+448 in 0..4 carry (%m: stack<f64[8]> @%s2 = %s2) {
            %o: stack<f64[8]> @%s2 = stack_accumulate %m, %j, %x
            yield %o
          }
          %a1: f64[8] @result+0 = matmul %a, %w
          %b1: f64[8] @result+1 = matmul %b, %w
          %d1: f64[8] @result+2 = matmul %d, %w
          %e1: f64[8] @result+3 = matmul %e, %w
          return %a1, %b1, %d1, %e1
        }
        """,
    )
