"""LLVM text of the public functions of an exported program.

    int         NAME(arguments…, NAME_state *state, results…, void *arena)
    const char *NAME_error(int code, void *arena)
    void        NAME_release(void *arena)
    NAME_state  NAME_initial

The arena begins, at the next address that is a multiple of ALIGNMENT, with the error record and a message, as described in `interface.py`.
Scalars are passed by value, everything else by address.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.ops.base import Array
from adjit.ir.types import TensorType

from ..llvm import memory
from ..llvm.memory import memory_type
from ..main import stacks
from ..native import MAIN
from .interface import ALIGNMENT, RECORD, SIGNED, UNSIGNED, Interface

NO_MEMORY = b"not enough memory for what a loop saves for its backward pass"

ALIGN = f"""
define internal ptr @adjit_aligned(ptr %arena) nounwind {{
  %raw = ptrtoint ptr %arena to i64
  %down = sub i64 0, %raw
  %gap = and i64 %down, {ALIGNMENT - 1}
  %start = getelementptr i8, ptr %arena, i64 %gap
  ret ptr %start
}}
"""

FORMAT = f"""
; write the decimal digits of a number; returns the address after them
define internal ptr @adjit_digits(ptr %out, i64 %value, i1 %signed) nounwind {{
entry:
  %digits = alloca [20 x i8]
  %below = icmp slt i64 %value, 0
  %negative = and i1 %below, %signed
  br i1 %negative, label %minus, label %start
minus:
  store i8 45, ptr %out
  %after = getelementptr i8, ptr %out, i64 1
  %positive = sub i64 0, %value
  br label %start
start:
  %to = phi ptr [%out, %entry], [%after, %minus]
  %all = phi i64 [%value, %entry], [%positive, %minus]
  br label %split
split:
  %n = phi i64 [0, %start], [%n.next, %split]
  %rest = phi i64 [%all, %start], [%quotient, %split]
  %quotient = udiv i64 %rest, 10
  %tens = mul i64 %quotient, 10
  %unit = sub i64 %rest, %tens
  %small = trunc i64 %unit to i8
  %letter = add i8 %small, 48
  %at = getelementptr i8, ptr %digits, i64 %n
  store i8 %letter, ptr %at
  %n.next = add i64 %n, 1
  %more = icmp ne i64 %quotient, 0
  br i1 %more, label %split, label %copy
copy:
  %k = phi i64 [%n.next, %split], [%k.next, %copy]
  %put = phi ptr [%to, %split], [%put.next, %copy]
  %k.next = sub i64 %k, 1
  %from = getelementptr i8, ptr %digits, i64 %k.next
  %one = load i8, ptr %from
  store i8 %one, ptr %put
  %put.next = getelementptr i8, ptr %put, i64 1
  %left = icmp ne i64 %k.next, 0
  br i1 %left, label %copy, label %done
done:
  ret ptr %put.next
}}

; the message with the numbers of the error record in it, after that record
define internal ptr @adjit_message(ptr %text, ptr %record) nounwind {{
entry:
  %begin = getelementptr i8, ptr %record, i64 {RECORD}
  br label %next
next:
  %k = phi i64 [0, %entry], [%k.plain, %plain], [%k.plain, %number]
  %to = phi ptr [%begin, %entry], [%to.plain, %plain], [%to.number, %number]
  %at = getelementptr i8, ptr %text, i64 %k
  %c = load i8, ptr %at
  %k.plain = add i64 %k, 1
  %s = sub i8 %c, {SIGNED}
  %is.signed = icmp ult i8 %s, 8
  %u = sub i8 %c, {UNSIGNED}
  %is.unsigned = icmp ult i8 %u, 8
  %is.number = or i1 %is.signed, %is.unsigned
  br i1 %is.number, label %number, label %plain
number:
  %which = select i1 %is.signed, i8 %s, i8 %u
  %index = zext i8 %which to i64
  %value.at = getelementptr i64, ptr %record, i64 %index
  %value = load i64, ptr %value.at
  %to.number = call ptr @adjit_digits(ptr %to, i64 %value, i1 %is.signed)
  br label %next
plain:
  store i8 %c, ptr %to
  %to.plain = getelementptr i8, ptr %to, i64 1
  %end = icmp eq i8 %c, 0
  br i1 %end, label %done, label %next
done:
  ret ptr %begin
}}
"""


def public(interface: Interface) -> list[str]:
    """The symbols that are visible outside."""
    name = interface.name
    return [name, f"{name}_error", f"{name}_release", *([f"{name}_initial"] if interface.is_stateful else [])]


def text(interface: Interface, constants: Sequence[Array], has_release: bool) -> str:
    """The text of the public functions; `constants` are the captured arrays, which the program takes as its last parameters."""
    parts = [ALIGN, FORMAT, captured(constants), _main(interface, len(constants)), _error(interface), _release(interface, has_release)]
    if interface.is_stateful:
        blob = memory.constant_bytes(f"@{interface.name}_initial", interface.initial)
        parts.append(blob.replace("= internal constant", "= constant"))
    return "\n".join(parts)


def captured(constants: Sequence[Array]) -> str:
    return "\n".join(memory.constant_bytes(f"@captured{k}", data.tobytes() or b"\0") for k, data in enumerate(constants))


def parameter(type: TensorType, name: str) -> str:
    return f"{memory_type(type.dtype)} %{name}" if type.shape == () else f"ptr %{name}"


def _main(interface: Interface, constants: int) -> str:
    arguments = [parameter(slot.type, f"a{k}") for k, slot in enumerate(interface.arguments)]
    state = ["ptr %state"] if interface.is_stateful else []
    results = [f"ptr %r{k}" for k in range(len(interface.results))]
    params = ", ".join([*arguments, *state, *results, "ptr %arena"])
    lines = ["%start = call ptr @adjit_aligned(ptr %arena)", f"%memory = getelementptr i8, ptr %start, i64 {interface.head_bytes}"]
    pointers = [argument_pointer(lines, slot.type, f"a{k}") for k, slot in enumerate(interface.arguments)]
    for k, field in enumerate(interface.state):
        if interface.is_stateful:
            lines.append(f"%s{k} = getelementptr i8, ptr %state, i64 {field.offset}")
        pointers.append(f"%s{k}" if interface.is_stateful else "%memory")
    pointers += [f"@captured{k}" for k in range(constants)]
    pointers += [f"%r{k}" for k in range(len(interface.results))]
    lines += table(pointers)
    lines += [f"%code = call i64 @{MAIN}(ptr %table, ptr %memory, ptr %start)", "%short = trunc i64 %code to i32", "ret i32 %short"]
    return function(f"i32 @{interface.name}({params})", lines) + f"declare i64 @{MAIN}(ptr, ptr, ptr)\n"


def argument_pointer(lines: list[str], type: TensorType, name: str) -> str:
    """The address of an argument; a scalar is stored on the stack first."""
    if type.shape != ():
        return f"%{name}"
    kind = memory_type(type.dtype)
    lines += [f"%{name}.at = alloca {kind}", f"store {kind} %{name}, ptr %{name}.at"]
    return f"%{name}.at"


def table(pointers: Sequence[str]) -> list[str]:
    """Instructions that make %table, the buffers that the program takes."""
    lines = [f"%table = alloca [{max(1, len(pointers))} x ptr]"]
    for k, pointer in enumerate(pointers):
        lines += [f"%table{k} = getelementptr ptr, ptr %table, i64 {k}", f"store ptr {pointer}, ptr %table{k}"]
    return lines


def function(head: str, lines: Sequence[str]) -> str:
    body = "\n".join(lines)
    return f"define {head} nounwind {{\nentry:\n{body}\n}}\n"


def _error(interface: Interface) -> str:
    """Codes count from 1; 0 means no error, and -1 out of memory."""
    messages = [NO_MEMORY, b"no error", *interface.errors, b"there is no such error"]
    assert stacks.OUT_OF_MEMORY == -1
    texts = [memory.constant_bytes(f"@message{k}", m + b"\0") for k, m in enumerate(messages)]
    pointers = ", ".join(f"ptr @message{k}" for k in range(len(messages)))
    count = len(messages)
    lines = [
        "%shifted = add i32 %code, 1",
        f"%known = icmp ult i32 %shifted, {count - 1}",
        f"%index = select i1 %known, i32 %shifted, i32 {count - 1}",
        "%at = getelementptr ptr, ptr @messages, i32 %index",
        "%text = load ptr, ptr %at",
        "%none = icmp eq ptr %arena, null",
        "br i1 %none, label %plain, label %filled",
        "plain:",
        "ret ptr %text",
        "filled:",
        "%start = call ptr @adjit_aligned(ptr %arena)",
        "%whole = call ptr @adjit_message(ptr %text, ptr %start)",
        "ret ptr %whole",
    ]
    listed = f"@messages = internal constant [{count} x ptr] [{pointers}]"
    return "\n".join([*texts, listed, function(f"ptr @{interface.name}_error(i32 %code, ptr %arena)", lines)])


def _release(interface: Interface, has_release: bool) -> str:
    lines = []
    if has_release:
        lines = [
            "%start = call ptr @adjit_aligned(ptr %arena)",
            f"%memory = getelementptr i8, ptr %start, i64 {interface.head_bytes}",
            f"call void @{stacks.RELEASE}(ptr %memory)",
        ]
    declared = f"declare void @{stacks.RELEASE}(ptr)\n" if has_release else ""
    return declared + function(f"void @{interface.name}_release(ptr %arena)", [*lines, "ret void"])
