"""LLVM text of what WebAssembly lacks: memory that grows, and products of 128 bits."""

from __future__ import annotations

ALLOCATOR = """
; Blocks of 2^class bytes, at least 64, of which the first 16 hold the class. Free blocks of a class are a list; halves of larger ones
; serve the smaller classes.
@heap.free = internal global [32 x ptr] zeroinitializer
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.umax.i32(i32, i32)
declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1)

define internal ptr @heap.new(i32 %base, i32 %class) nounwind {
  %block = inttoptr i32 %base to ptr
  store i32 %class, ptr %block
  %data = getelementptr i8, ptr %block, i32 16
  ret ptr %data
}

define internal ptr @heap.take(i32 %class) nounwind {
entry:
  %head = getelementptr ptr, ptr @heap.free, i32 %class
  %first = load ptr, ptr %head
  %none = icmp eq ptr %first, null
  br i1 %none, label %make, label %pop
pop:
  %next = load ptr, ptr %first
  store ptr %next, ptr %head
  ret ptr %first
make:
  %large = icmp uge i32 %class, 16
  br i1 %large, label %grow, label %split
grow:
  %shift = sub i32 %class, 16
  %pages = shl i32 1, %shift
  %before = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %pages)
  %failed = icmp eq i32 %before, -1
  br i1 %failed, label %fail, label %got
got:
  %base = shl i32 %before, 16
  %new = call ptr @heap.new(i32 %base, i32 %class)
  ret ptr %new
split:
  %above = add i32 %class, 1
  %whole = call ptr @heap.take(i32 %above)
  %missing = icmp eq ptr %whole, null
  br i1 %missing, label %fail, label %halve
halve:
  %at = ptrtoint ptr %whole to i32
  %start = sub i32 %at, 16
  %half = shl i32 1, %class
  %middle = add i32 %start, %half
  %spare = call ptr @heap.new(i32 %middle, i32 %class)
  call void @free(ptr %spare)
  %mine = call ptr @heap.new(i32 %start, i32 %class)
  ret ptr %mine
fail:
  ret ptr null
}

define hidden void @free(ptr %data) nounwind {
entry:
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %put
put:
  %class.at = getelementptr i8, ptr %data, i32 -16
  %class = load i32, ptr %class.at
  %head = getelementptr ptr, ptr @heap.free, i32 %class
  %first = load ptr, ptr %head
  store ptr %first, ptr %data
  store ptr %data, ptr %head
  br label %done
done:
  ret void
}

define hidden ptr @realloc(ptr %old, i64 %size) nounwind {
entry:
  %most = icmp ugt i64 %size, 1073741808
  br i1 %most, label %fail, label %small
small:
  %short = trunc i64 %size to i32
  %last = add i32 %short, 15
  %zeros = call i32 @llvm.ctlz.i32(i32 %last, i1 false)
  %bits = sub i32 32, %zeros
  %class = call i32 @llvm.umax.i32(i32 %bits, i32 6)
  %fresh = icmp eq ptr %old, null
  br i1 %fresh, label %first, label %again
first:
  %one = call ptr @heap.take(i32 %class)
  ret ptr %one
again:
  %had.at = getelementptr i8, ptr %old, i32 -16
  %had = load i32, ptr %had.at
  %fits = icmp ule i32 %class, %had
  br i1 %fits, label %keep, label %move
keep:
  ret ptr %old
move:
  %new = call ptr @heap.take(i32 %class)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %copy
copy:
  %block = shl i32 1, %had
  %bytes = sub i32 %block, 16
  call void @llvm.memcpy.p0.p0.i32(ptr %new, ptr %old, i32 %bytes, i1 false)
  call void @free(ptr %old)
  ret ptr %new
fail:
  ret ptr null
}
"""


WIDE = "__multi3"  # what LLVM calls for products of 128 bits
PRODUCT = f"""
define hidden void @{WIDE}(ptr %out, i64 %a, i64 %a.high, i64 %b, i64 %b.high) nounwind {{
  %a0 = and i64 %a, 4294967295
  %a1 = lshr i64 %a, 32
  %b0 = and i64 %b, 4294967295
  %b1 = lshr i64 %b, 32
  %p00 = mul i64 %a0, %b0
  %p01 = mul i64 %a0, %b1
  %p10 = mul i64 %a1, %b0
  %p11 = mul i64 %a1, %b1
  %carry = lshr i64 %p00, 32
  %middle = add i64 %p10, %carry
  %middle.low = and i64 %middle, 4294967295
  %middle.high = lshr i64 %middle, 32
  %other = add i64 %p01, %middle.low
  %other.high = lshr i64 %other, 32
  %low = mul i64 %a, %b
  %top0 = add i64 %p11, %middle.high
  %top1 = add i64 %top0, %other.high
  %cross0 = mul i64 %a, %b.high
  %cross1 = mul i64 %a.high, %b
  %top2 = add i64 %top1, %cross0
  %high = add i64 %top2, %cross1
  store i64 %low, ptr %out
  %out.high = getelementptr i64, ptr %out, i64 1
  store i64 %high, ptr %out.high
  ret void
}}
"""
