"""Growable stacks in native memory: what a loop saves for its backward twin.

A handle is three words in the arena: data, count, capacity (in elements). The main function zeroes every handle when it starts and frees
every stack when it leaves, whichever way it leaves.
"""

from __future__ import annotations

from adjit.ir.types import TensorType

OUT_OF_MEMORY = -1
INTERRUPTED = -2

RUNTIME = """
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Clear()

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

; whether the user pressed Ctrl-C (Python's signal handlers run here)
define internal i1 @adjit_interrupted() nounwind noinline {
entry:
  %state = call i32 @PyGILState_Ensure()
  %code = call i32 @PyErr_CheckSignals()
  %hit = icmp ne i32 %code, 0
  br i1 %hit, label %clear, label %release
clear:
  call void @PyErr_Clear()
  br label %release
release:
  call void @PyGILState_Release(i32 %state)
  ret i1 %hit
}
"""


def element_bytes(element: TensorType) -> int:
    return max(1, element.nbytes)
