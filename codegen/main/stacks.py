"""Growable stacks in native memory, for values that a loop saves for its backward loop.

A handle is three words in the arena: data, count, capacity (in elements). A new arena is zeroed, so its stacks are empty. They keep their
memory between calls, since fresh memory costs a page fault every few kilobytes. If the size of an element differs from call to call, the
capacity is stored in bytes between calls. When the main function returns, it frees large stacks of which the call used only a small part,
and those that exceed a limit for all stacks together. `adjit_release` frees all of them, with the arena.
"""

from __future__ import annotations

import re

from adjit.ir.target import Target
from adjit.ir.types import I64, TensorType

from ..interrupts import signals
from ..llvm.lanes import LLVM_TYPE, Reg, Text
from ..routines import OUT_OF_MEMORY as OUT_OF_MEMORY
from ..routines import RELEASE as RELEASE
from ..sizes import native_size

KEPT_BYTES = 1 << 24  # memory that a stack keeps for the next call even if this call did not use it
ALL_KEPT_BYTES = 1 << 30  # maximum memory that all stacks of a function keep

RUNTIME = """
@adjit_spent = internal global i64 0 ; see polling.py
declare ptr @realloc(ptr, i64)
declare void @free(ptr)

; room for `wanted` elements of `bytes` bytes; false when there is no memory
define internal i1 @adjit_reserve(ptr %stack, i64 %wanted, i64 %bytes) nounwind noinline {
entry:
  %held.at = getelementptr i64, ptr %stack, i64 2
  %held = load i64, ptr %held.at
  %enough = icmp sle i64 %wanted, %held
  br i1 %enough, label %done, label %grow
grow:
  %product = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %wanted, i64 %bytes)
  %size = extractvalue {i64, i1} %product, 0
  %over = extractvalue {i64, i1} %product, 1
  br i1 %over, label %none, label %allocate
allocate:
  %old = load ptr, ptr %stack
  %new = call ptr @realloc(ptr %old, i64 %size)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %none, label %got
got:
  store ptr %new, ptr %stack
  store i64 %wanted, ptr %held.at
  br label %done
done:
  ret i1 true
none:
  ret i1 false
}
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)

; the address of a new element; null when there is no memory
define internal ptr @adjit_push(ptr %stack, i64 %bytes) nounwind {
entry:
  %count.at = getelementptr i64, ptr %stack, i64 1
  %held.at = getelementptr i64, ptr %stack, i64 2
  %count = load i64, ptr %count.at
  %held = load i64, ptr %held.at
  %full = icmp eq i64 %count, %held
  br i1 %full, label %grow, label %put
grow:
  %double = mul i64 %held, 2
  %wanted = add i64 %double, 16
  %fits = call i1 @adjit_reserve(ptr %stack, i64 %wanted, i64 %bytes)
  br i1 %fits, label %put, label %none
put:
  %next = add i64 %count, 1
  store i64 %next, ptr %count.at
  %data = load ptr, ptr %stack
  %offset = mul i64 %count, %bytes
  %address = getelementptr i8, ptr %data, i64 %offset
  ret ptr %address
none:
  ret ptr null
}

; frees a stack that holds more than `limit` bytes, or more than `idle` bytes of which less than a quarter was used; returns what is left
; of the limit for other stacks
define internal i64 @adjit_shrink(ptr %stack, i64 %bytes, i64 %idle, i64 %limit) nounwind noinline {
entry:
  %count.at = getelementptr i64, ptr %stack, i64 1
  %count = load i64, ptr %count.at
  %held.at = getelementptr i64, ptr %stack, i64 2
  %held = load i64, ptr %held.at
  %size = mul i64 %held, %bytes
  %above = icmp sgt i64 %size, %limit
  %large = icmp sgt i64 %size, %idle
  %quarter = lshr i64 %held, 2
  %unused = icmp slt i64 %count, %quarter
  %vain = and i1 %large, %unused
  %free = or i1 %above, %vain
  br i1 %free, label %drop, label %keep
keep:
  %left = sub i64 %limit, %size
  ret i64 %left
drop:
  %data = load ptr, ptr %stack
  call void @free(ptr %data)
  store [3 x i64] zeroinitializer, ptr %stack
  ret i64 %limit
}

; `to` becomes as long as `from`, and holds zeros; false when there is no memory
define internal i1 @adjit_zeros(ptr %to, ptr %from, i64 %bytes) nounwind noinline {
entry:
  %from.at = getelementptr i64, ptr %from, i64 1
  %count = load i64, ptr %from.at
  %fits = call i1 @adjit_reserve(ptr %to, i64 %count, i64 %bytes)
  br i1 %fits, label %fill, label %none
fill:
  %to.at = getelementptr i64, ptr %to, i64 1
  store i64 %count, ptr %to.at
  %data = load ptr, ptr %to
  %size = mul i64 %count, %bytes
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  ret i1 true
none:
  ret i1 false
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; `to` becomes what `from` is; false when there is no memory
define internal i1 @adjit_copy(ptr %to, ptr %from, i64 %bytes) nounwind noinline {
entry:
  %from.at = getelementptr i64, ptr %from, i64 1
  %count = load i64, ptr %from.at
  %fits = call i1 @adjit_reserve(ptr %to, i64 %count, i64 %bytes)
  br i1 %fits, label %fill, label %none
fill:
  %to.at = getelementptr i64, ptr %to, i64 1
  store i64 %count, ptr %to.at
  %data = load ptr, ptr %to
  %source = load ptr, ptr %from
  %size = mul i64 %count, %bytes
  call void @llvm.memcpy.p0.p0.i64(ptr %data, ptr %source, i64 %size, i1 false)
  ret i1 true
none:
  ret i1 false
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

DEFINITION = re.compile(r"^define [^@]*@(\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"@(adjit_\w+)")

# to[k] += from[k], elementwise
ADD = """
define internal void @adjit_add_{type}(ptr %to, ptr %from, i64 %size) nounwind noinline {{
entry:
  %count.at = getelementptr i64, ptr %to, i64 1
  %count = load i64, ptr %count.at
  %end = mul i64 %count, %size
  %a = load ptr, ptr %to
  %b = load ptr, ptr %from
  br label %head
head:
  %k = phi i64 [0, %entry], [%next, %body]
  %more = icmp slt i64 %k, %end
  br i1 %more, label %body, label %done
body:
  %a.at = getelementptr {type}, ptr %a, i64 %k
  %b.at = getelementptr {type}, ptr %b, i64 %k
  %x = load {type}, ptr %a.at
  %y = load {type}, ptr %b.at
  %sum = fadd {type} %x, %y
  store {type} %sum, ptr %a.at
  %next = add i64 %k, 1
  br label %head
done:
  ret void
}}
"""


def runtime(target: Target, text: str) -> str:
    """The routines that a module calls, and those that they call: LLVM would compile the others too."""
    interrupts = signals.loops_ir(target.triple) if target.hosted else ""
    whole = RUNTIME + interrupts + "".join(ADD.format(type=type) for type in ("float", "double"))
    routines = {found[1]: found[0] for found in DEFINITION.finditer(whole)}
    wanted, unread = set[str](), [text]
    while unread:
        new = set(NAME.findall(unread.pop())) & (routines.keys() - wanted)
        wanted |= new
        unread += [routines[name] for name in new]
    return DEFINITION.sub(lambda found: found[0] if found[1] in wanted else "", whole)


def declarations(target: Target) -> set[str]:
    """Declarations that the routines of stacks need in a module, besides its own."""
    return {signals.clock_declaration(target.triple)} if target.hosted else set()


def count(text: Text, stack: str) -> Reg:
    """The number of elements."""
    at = text.define(f"getelementptr i64, ptr {stack}, i64 1")
    return Reg(text.define(f"load i64, ptr {at}"), I64)


def convert_capacity(stack: str, element: int, opcode: str, name: str) -> list[str]:
    """Instructions that turn the capacity of a stack from bytes into elements (udiv), or back (mul)."""
    return [
        f"{name}.at = getelementptr i64, ptr {stack}, i64 2",
        f"{name}.before = load i64, ptr {name}.at",
        f"{name}.after = {opcode} i64 {name}.before, {element}",
        f"store i64 {name}.after, ptr {name}.at",
    ]


def zeros_call(to: str, source: str, element: TensorType) -> str:
    """A call that returns an `i1`: whether the memory could be allocated. So do the next two."""
    return f"call i1 @adjit_zeros(ptr {to}, ptr {source}, i64 {element_bytes(element)})"


def copy_call(to: str, source: str, element: TensorType) -> str:
    return f"call i1 @adjit_copy(ptr {to}, ptr {source}, i64 {element_bytes(element)})"


def reserve_call(stack: str, count: str, element: TensorType) -> str:
    return f"call i1 @adjit_reserve(ptr {stack}, i64 {count}, i64 {element_bytes(element)})"


def add_call(to: str, source: str, element: TensorType) -> str:
    """A call that returns nothing."""
    return f"call void @adjit_add_{LLVM_TYPE[element.dtype]}(ptr {to}, ptr {source}, i64 {native_size(element.size)})"


def element_bytes(element: TensorType) -> int:
    return max(1, native_size(element.nbytes))
