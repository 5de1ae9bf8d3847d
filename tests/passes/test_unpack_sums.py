"""Products and sums of small arrays that are unpacked into scalars."""

from __future__ import annotations

from adjit.passes.loops.unpack import unpack_small_arrays
from tests.passes.checks import rewrites


def test_products_of_vectors_and_matrices() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %w: f64[2,3], %v: f64[3,2]) -> f64[2] {
          %r: f64[2] = for %k in 0..2 carry (%c: f64[2] = %x) {
            %p: f64[3] = matmul %c, %w
            %q: f64[2] = matmul %p, %v
            %m: f64[3,3] = matmul %v, %w
            %s: f64[3] = matmul %m, %p
            %d: f64[] = matmul %s, %p
            %b: f64[2] = broadcast %d
            %n: f64[2] = mul %q, %b
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2], %w: f64[2,3], %v: f64[3,2]) -> f64[2] {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %4: f64[6] = reshape %w
          %5: f64[1] = slice %4 {starts=[0], stops=[1], steps=[1]}
          %6: f64[] = reshape %5
          %7: f64[1] = slice %4 {starts=[1], stops=[2], steps=[1]}
          %8: f64[] = reshape %7
          %9: f64[1] = slice %4 {starts=[2], stops=[3], steps=[1]}
          %10: f64[] = reshape %9
          %11: f64[1] = slice %4 {starts=[3], stops=[4], steps=[1]}
          %12: f64[] = reshape %11
          %13: f64[1] = slice %4 {starts=[4], stops=[5], steps=[1]}
          %14: f64[] = reshape %13
          %15: f64[1] = slice %4 {starts=[5], stops=[6], steps=[1]}
          %16: f64[] = reshape %15
          %17: f64[6] = reshape %v
          %18: f64[1] = slice %17 {starts=[0], stops=[1], steps=[1]}
          %19: f64[] = reshape %18
          %20: f64[1] = slice %17 {starts=[1], stops=[2], steps=[1]}
          %21: f64[] = reshape %20
          %22: f64[1] = slice %17 {starts=[2], stops=[3], steps=[1]}
          %23: f64[] = reshape %22
          %24: f64[1] = slice %17 {starts=[3], stops=[4], steps=[1]}
          %25: f64[] = reshape %24
          %26: f64[1] = slice %17 {starts=[4], stops=[5], steps=[1]}
          %27: f64[] = reshape %26
          %28: f64[1] = slice %17 {starts=[5], stops=[6], steps=[1]}
          %29: f64[] = reshape %28
          %r: f64[], %r.1: f64[] = for %k in 0..2 carry (%c: f64[] = %1, %c.1: f64[] = %3) {
            %30: f64[] = mul %c, %6
            %31: f64[] = mul %c.1, %12
            %32: f64[] = add %30, %31
            %33: f64[] = mul %c, %8
            %34: f64[] = mul %c.1, %14
            %35: f64[] = add %33, %34
            %36: f64[] = mul %c, %10
            %37: f64[] = mul %c.1, %16
            %38: f64[] = add %36, %37
            %39: f64[] = mul %32, %19
            %40: f64[] = mul %35, %23
            %41: f64[] = mul %38, %27
            %42: f64[] = add %39, %40
            %43: f64[] = add %42, %41
            %44: f64[] = mul %32, %21
            %45: f64[] = mul %35, %25
            %46: f64[] = mul %38, %29
            %47: f64[] = add %44, %45
            %48: f64[] = add %47, %46
            %49: f64[] = mul %19, %6
            %50: f64[] = mul %21, %12
            %51: f64[] = add %49, %50
            %52: f64[] = mul %19, %8
            %53: f64[] = mul %21, %14
            %54: f64[] = add %52, %53
            %55: f64[] = mul %19, %10
            %56: f64[] = mul %21, %16
            %57: f64[] = add %55, %56
            %58: f64[] = mul %23, %6
            %59: f64[] = mul %25, %12
            %60: f64[] = add %58, %59
            %61: f64[] = mul %23, %8
            %62: f64[] = mul %25, %14
            %63: f64[] = add %61, %62
            %64: f64[] = mul %23, %10
            %65: f64[] = mul %25, %16
            %66: f64[] = add %64, %65
            %67: f64[] = mul %27, %6
            %68: f64[] = mul %29, %12
            %69: f64[] = add %67, %68
            %70: f64[] = mul %27, %8
            %71: f64[] = mul %29, %14
            %72: f64[] = add %70, %71
            %73: f64[] = mul %27, %10
            %74: f64[] = mul %29, %16
            %75: f64[] = add %73, %74
            %76: f64[] = mul %51, %32
            %77: f64[] = mul %54, %35
            %78: f64[] = mul %57, %38
            %79: f64[] = add %76, %77
            %80: f64[] = add %79, %78
            %81: f64[] = mul %60, %32
            %82: f64[] = mul %63, %35
            %83: f64[] = mul %66, %38
            %84: f64[] = add %81, %82
            %85: f64[] = add %84, %83
            %86: f64[] = mul %69, %32
            %87: f64[] = mul %72, %35
            %88: f64[] = mul %75, %38
            %89: f64[] = add %86, %87
            %90: f64[] = add %89, %88
            %91: f64[] = mul %80, %32
            %92: f64[] = mul %85, %35
            %93: f64[] = mul %90, %38
            %94: f64[] = add %91, %92
            %95: f64[] = add %94, %93
            %96: f64[] = mul %43, %95
            %97: f64[] = mul %48, %95
            yield %96, %97
          }
          %98: f64[1] = reshape %r
          %99: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %98, %99 {axis=0}
          return %r.2
        }
        """,
    )


def test_sums_over_several_axes() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2,2,2]) -> f64[2,2,2] {
          %r: f64[2,2,2] = for %k in 0..9 carry (%c: f64[2,2,2] = %x) {
            %s: f64[2] = sum %c {axes=[0, 2]}
            %t: f64[2,1] = reshape %s
            %b: f64[2,2,2] = broadcast %t
            %n: f64[2,2,2] = mul %c, %b
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2,2,2]) -> f64[2,2,2] {
          %0: f64[8] = reshape %x
          %1: f64[1] = slice %0 {starts=[0], stops=[1], steps=[1]}
          %2: f64[] = reshape %1
          %3: f64[1] = slice %0 {starts=[1], stops=[2], steps=[1]}
          %4: f64[] = reshape %3
          %5: f64[1] = slice %0 {starts=[2], stops=[3], steps=[1]}
          %6: f64[] = reshape %5
          %7: f64[1] = slice %0 {starts=[3], stops=[4], steps=[1]}
          %8: f64[] = reshape %7
          %9: f64[1] = slice %0 {starts=[4], stops=[5], steps=[1]}
          %10: f64[] = reshape %9
          %11: f64[1] = slice %0 {starts=[5], stops=[6], steps=[1]}
          %12: f64[] = reshape %11
          %13: f64[1] = slice %0 {starts=[6], stops=[7], steps=[1]}
          %14: f64[] = reshape %13
          %15: f64[1] = slice %0 {starts=[7], stops=[8], steps=[1]}
          %16: f64[] = reshape %15
          %r: f64[], %r.1: f64[], %r.2: f64[], %r.3: f64[], %r.4: f64[], %r.5: f64[], %r.6: f64[],
              %r.7: f64[] = for %k in 0..9 carry (%c: f64[] = %2, %c.1: f64[] = %4, %c.2: f64[] = %6, %c.3: f64[] = %8, %c.4: f64[] = %10,
              %c.5: f64[] = %12, %c.6: f64[] = %14, %c.7: f64[] = %16) {
            %17: f64[] = add %c, %c.1
            %18: f64[] = add %c.4, %c.5
            %19: f64[] = add %17, %18
            %20: f64[] = add %c.2, %c.3
            %21: f64[] = add %c.6, %c.7
            %22: f64[] = add %20, %21
            %23: f64[] = mul %c, %19
            %24: f64[] = mul %c.1, %19
            %25: f64[] = mul %c.2, %22
            %26: f64[] = mul %c.3, %22
            %27: f64[] = mul %c.4, %19
            %28: f64[] = mul %c.5, %19
            %29: f64[] = mul %c.6, %22
            %30: f64[] = mul %c.7, %22
            yield %23, %24, %25, %26, %27, %28, %29, %30
          }
          %31: f64[1] = reshape %r
          %32: f64[1] = reshape %r.1
          %33: f64[1] = reshape %r.2
          %34: f64[1] = reshape %r.3
          %35: f64[1] = reshape %r.4
          %36: f64[1] = reshape %r.5
          %37: f64[1] = reshape %r.6
          %38: f64[1] = reshape %r.7
          %39: f64[8] = concatenate %31, %32, %33, %34, %35, %36, %37, %38 {axis=0}
          %r.8: f64[2,2,2] = reshape %39
          return %r.8
        }
        """,
    )
