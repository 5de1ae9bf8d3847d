"""The rules of kernels (`fuse`, `rows`) and of plans of memory, each broken once, in text."""

from __future__ import annotations

from textwrap import dedent

import pytest

from adjit.ir.errors import VerifyError
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify


def refused(text: str, message: str) -> None:
    func = parse_func(dedent(text))
    with pytest.raises(VerifyError) as caught:
        verify(func)
    assert message in str(caught.value)


# ---- kernels: the statements inside `fuse`, the yielded values, and the error

FUSED = [
    (["%b: f64[4,6] = exp %a"], "%b, %b", ["f64[4,6]", "f64[4,6]"], "it yields one value twice"),
    (["%b: f64[4,6] = exp %a", "%c: f64[4] = exp %v"], "%b, %c", ["f64[4,6]", "f64[4]"], "its statements run over different domains"),
    (
        ["%b: f64[4] = sum %a {axes=[1]}", "%c: f64[] = sum %b {axes=[0]}"],
        "%c",
        ["f64[]"],
        "its statements run over different domains: (4,), (4, 6)",
    ),
    (
        ["%b: f64[4,6] = sum %a {axes=[]}", "%c: f64[4,6] = exp %b"],
        "%c",
        ["f64[4,6]"],
        "exp reads the result of a reduction inside its fuse",
    ),
    (
        ["%b: f64[4] = exp %v", "%c: f64[6] = pad %b {low=[1], high=[1], interior=[0], value=0.0}"],
        "%c",
        ["f64[6]"],
        "different domains",
    ),
    (
        ["%b: f64[4] = exp %v", "%c: f64[4] = pad %b {low=[0], high=[0], interior=[0], value=0.0}"],
        "%c",
        ["f64[4]"],
        "a pad inside fuse must put a border around an array from outside",
    ),
    (
        ["%b: f64[7] = pad %v {low=[0], high=[0], interior=[1], value=0.0}"],
        "%b",
        ["f64[7]"],
        "a pad inside fuse must put a border around an array from outside",
    ),
    (
        ["%b: f64[6] = pad %v {low=[1], high=[1], interior=[0], value=0.0}", "%c: f64[6] = iota {axis=0}", "%d: f64[6] = add %b, %c"],
        "%d",
        ["f64[6]"],
        "iota is not allowed inside fuse with a pad",
    ),
]


@pytest.mark.parametrize(("stmts", "yields", "types", "message"), FUSED)
def test_rules_of_fuse(stmts: list[str], yields: str, types: list[str], message: str) -> None:
    results = ", ".join(f"%r{k}: {type}" for k, type in enumerate(types))
    body = "\n".join(f"    {stmt}" for stmt in stmts)
    refused(f"func @f(%a: f64[4,6], %v: f64[4]) -> () {{\n  {results} = fuse {{\n{body}\n    yield {yields}\n  }}\n  return\n}}", message)


KERNEL = "%b: f64[4,6] = fuse {\n      %c: f64[4,6] = exp %a\n      yield %c\n    }"
ROWS = [
    (["%b: f64[4,6] = exp %a"], "%b", "f64[4,6]", "it has no fuse region to run row by row"),
    ([KERNEL, "%d: f64[4,6] = matmul %b, %w"], "%b", "f64[4,6]", "matmul is not allowed inside rows"),
    ([KERNEL, "%d: f64[24] = reshape %b"], "%b", "f64[4,6]", "reshape inside rows must keep the first axis of a member's result"),
    ([KERNEL, "%d: f64[4,6,1] = reshape %a"], "%b", "f64[4,6]", "reshape inside rows must keep the first axis of a member's result"),
    ([KERNEL, "%d: f64[4,6,1] = reshape %b"], "%d", "f64[4,6,1]", "it yields a value that no fuse region inside computes"),
    (
        [KERNEL, "%d: f64[6] = fuse {\n      %e: f64[6] = exp %u\n      yield %e\n    }"],
        "%b",
        "f64[4,6]",
        "fuse is not allowed inside rows: only views and fuse regions over [4] rows",
    ),
]


@pytest.mark.parametrize(("stmts", "yields", "type", "message"), ROWS)
def test_rules_of_rows(stmts: list[str], yields: str, type: str, message: str) -> None:
    body = "\n".join(f"    {stmt}" for stmt in stmts)
    params = "%a: f64[4,6], %w: f64[6,6], %u: f64[6]"
    refused(f"func @f({params}) -> () {{\n  %r: {type} = rows {{\n{body}\n    yield {yields}\n  }}\n  return\n}}", message)


# ---- plans


def test_a_result_is_in_the_buffer_of_the_carry() -> None:
    refused(
        """
        func @f(%x: f64[16] @param+0) -> f64[16] arena 192 {
          %r: f64[16] @result+0 = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %n: f64[16] @arena+64 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            yield %n
          }
          return %r
        }""",
        "a loop's result is not in the memory of its carry",
    )


def test_carries_do_not_follow_in_each_others_memory() -> None:
    refused(
        """
        func @f(%x: f64[9] @param+0) -> f64[9] arena 384 {
          %r: f64[9] @%c, %s: f64[9] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[9] @arena+64 = 0.0, %d: f64[9] @arena+192 = 0.0) {
            %n: f64[9] @arena+192 = fuse {
              %m: f64[9] = mul %c, %c
              yield %m
            }
            yield %n, %d
          }
          %y: f64[9] @result+0 = fuse {
            %z: f64[9] = mul %r, %s
            yield %z
          }
          return %y
        }""",
        "the next value of a carry is in the memory of another carry",
    )


# the place of %a, the size of the arena, the buffers of run-time sizes, and the error
PLACES = [
    ("@arena+8", "arena 192", "lies at arena+8, which is not a multiple of 64"),
    ("@arena+64", "arena 128", "and the arena ends at 128"),
    ("@sized+0", "arena 0 sized [64]", "lies at sized+0, which is too small for it"),
    ("@sized+1", "arena 0 sized [128]", "lies at sized+1, which is too small for it"),
    ("@result+1", "arena 0", "lies at result+1, which is too small for it"),
    ("@constant+0", "arena 0", "lies at constant+0, but is not a constant"),
    ("@param+1", "arena 0", "is written to param+1, which is not updated"),
    ("@%i", "arena 0", "%a: f64[16] does not fit the memory of %i: i64[16]"),
    ("@%x+8[1]", "arena 0", "%a: f64[16] reaches from element 8 to 23 of %x"),
    ("", "arena 0", "has no place"),
]


@pytest.mark.parametrize(("place", "arena", "message"), PLACES)
def test_places_fit_into_their_buffers(place: str, arena: str, message: str) -> None:
    refused(
        f"""
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1, %i: i64[16] @param+2) -> f64[16] {arena} {{
          %a: f64[16] {place} = matmul %x, %w
          %y: f64[16] @result+0 = matmul %a, %w
          return %y
        }}""",
        message,
    )


UPDATE = "%n: f64[16] {place} = fuse {{\n    %m: f64[16] = mul %w, %g\n    yield %m\n  }}"


def test_a_variable_receives_its_update_and_nothing_else() -> None:
    head = "func @f(%w: f64[16] @param+0, %g: f64[16] @param+1, %p: bool[] @param+2) -> () arena 128 {\n  "
    other = "%o: f64[16] @arena+0 = fuse {\n    %q: f64[16] = exp %g\n    yield %q\n  }"
    written = UPDATE.format(place="@param+0")
    refused(f"{head}{written}\n  {other}\n  return updating %w = %o\n}}", "and the update comes from elsewhere")
    check = 'assert %p {message="m"}'
    refused(f"{head}{written}\n  {check}\n  return updating %w = %n\n}}", "is written to param+0 before a statement that may raise")
    verify(parse_func(f"{head}{check}\n  {written}\n  return updating %w = %n\n}}"))


def test_what_is_still_read_is_not_overwritten() -> None:
    head = "func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 128 {\n  %a: f64[16] @arena+0 = matmul %x, %w\n  "
    tail = "\n  return %y\n}"
    last = "%y: f64[16] @result+0 = matmul %b, %w"
    for over in ("matmul %a, %w", "fuse {\n    %c: f64[16] = flip %a {axes=[0]}\n    yield %c\n  }"):
        with pytest.raises(VerifyError):
            verify(parse_func(f"{head}%b: f64[16] @arena+0 = {over}\n  {last}{tail}"))
    inside = "fuse {\n    %c: f64[16] = exp %a\n    yield %c\n  }"
    verify(parse_func(f"{head}%b: f64[16] @arena+0 = {inside}\n  {last}{tail}"))
    later = f"{head}%b: f64[16] @arena+0 = {inside}\n  %d: f64[16] @arena+0 = matmul %a, %w\n  {last}{tail}"
    refused(later, "is written over")
