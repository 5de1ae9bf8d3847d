"""The type rule of each op, broken once: operands that do not fit are refused with the reason, before anything runs."""

from __future__ import annotations

import pytest

from adjit.ir.errors import VerifyError
from adjit.ir.ops import late
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify

late.load(late.FUNCTIONS)

CONV = "{strides=[1], dilations=[1], groups=1}"
POOL = "{window=[2], strides=[1]}"

# the types of %a, %b, ..., the statement, and the error message
RULES = [
    ("f64[2] f64[3]", "add %a, %b", "add: shapes differ: f64[2] and f64[3]"),
    ("f64[2] f32[2]", "add %a, %b", "add: dtypes differ: f64[2] and f32[2]"),
    ("f64[2] f64[2] f64[2]", "where %a, %b, %c", "where: the condition must be bool, not f64[2]"),
    ("bool[2] f64[2] f64[3]", "where %a, %b, %c", "where: types differ: bool[2], f64[2] and f64[3]"),
    ("f64[2,2] f32[2,2]", "matmul %a, %b", "matmul: dtypes differ: f64[2,2] @ f32[2,2]"),
    ("bool[2,2] bool[2,2]", "matmul %a, %b", "matmul: bool[2,2] @ bool[2,2]: cast bools to integers first"),
    ("f64[] f64[2,2]", "matmul %a, %b", "matmul: a scalar operand: f64[] @ f64[2,2]"),
    ("f64[3] f64[3,2] f64[2,2]", "matmul_add %a, %b, %c", "matmul_add: f64[3] does not fit the product f64[3,2]"),
    ("f64[2] f32[2]", "concatenate %a, %b {axis=0}", "concatenate: dtypes differ: f64[2] and f32[2]"),
    ("f64[2,2] f64[2,3]", "concatenate %a, %b {axis=0}", "differ in more than axis 0"),
    (
        "f64[4] f64[3]",
        "set_slice %a, %b {starts=[0], stops=[2], steps=[1]}",
        "set_slice: the window in f64[4] is f64[2], the update f64[3]",
    ),
    ("f64[4]", "slice %a {starts=[0,0], stops=[2,2], steps=[1,1]}", "slice: f64[4] takes 1 starts, stops and steps"),
    ("f64[4]", "pad %a {low=[-1], high=[0], interior=[0], value=0.0}", "pad: negative width in [-1], [0], [0]"),
    ("", "iota {shape=[3], axis=0, dtype=bool}", "iota: bool[3]: takes an integer or float dtype"),
    ("f64[0]", "arg_max %a {axis=0}", "arg_max: axis 0 of f64[0] is empty"),
    ("c128[3]", "arg_max %a {axis=0}", "arg_max: c128 operands are not supported"),
    ("c128[3]", "argsort %a {axis=0}", "argsort: c128[3]: takes real numbers"),
    ("bool[3]", "cumsum %a {axis=0}", "cumsum: bool operands are not supported"),
    ("c128[3]", "select %a {count=1, axis=0}", "select: takes real numbers, not c128[3]"),
    ("f64[3]", "select %a {count=4, axis=0}", "select: 4 positions of f64[3] along axis 0, which has 3"),
    ("bool[3] i64[2] bool[2]", "scatter_add %a, %b, %c", "scatter_add: bool[3] operands are not supported"),
    ("f64[3] f64[2]", "gather %a, %b", "gather: indices must be integers, not f64[2]"),
    ("f64[2] f32[2]", "interleave %a, %b", "interleave: types differ: f64[2] and f32[2]"),
    ("f64[4]", "fft %a {axis=0}", "fft: takes complex numbers, not f64[4]"),
    ("f64[1,4,2] f32[2,2,3]", f"convolve %a, %b {CONV}", "convolve: operands must be floats of one dtype"),
    ("i64[1,4,2] i64[2,2,3]", f"convolve %a, %b {CONV}", "convolve: operands must be floats of one dtype"),
    ("f64[1,4,2] f64[0,2,3]", f"convolve %a, %b {CONV}", "convolve: the filter f64[0,2,3] is empty"),
    ("f64[1,4,2] f64[2,5,3]", f"convolve %a, %b {CONV}", "convolve: f64[1,4,2] has 2 channels"),
    ("i64[1,4,2]", f"sum_pool %a {POOL}", "sum_pool: takes floats, not i64[1,4,2]"),
    ("f64[1,4]", f"sum_pool %a {POOL}", "sum_pool: f64[1,4] with a window of 1 axes"),
    ("f64[1,4,2]", "spread_pool %a {window=[2], strides=[1], sizes=[7]}", "spread_pool: windows (2,) of f64[1,7,2] do not give f64[1,4,2]"),
    ("f64[1,4,2] f64[1,4,3]", f"pick_max %a, %b {POOL}", "pick_max: types differ: f64[1,4,2] and f64[1,4,3]"),
    ("f64[3,2] f32[4,2] f32[4,2]", "attention %a, %b, %c", "attention: takes floats of one dtype"),
    ("f64[3,2] f64[2,4,2] f64[4,2]", "attention %a, %b, %c", "differ in their leading axes"),
    ("f64[3,2] f64[4,3] f64[4,2]", "attention %a, %b, %c", "attention: sizes of f64[3,2], f64[4,3] and f64[4,2] differ"),
    (
        "f64[3,2] f64[4,2] f64[4,2] bool[3,4]",
        "attention %a, %b, %c, %d",
        "attention: the mask bool[3,4] does not fit f64[3,2] and f64[4,2]",
    ),
    (
        "f64[3,2] f64[4,2] f64[4,2] f64[3,3] f64[3] f64[3] f64[3]",
        "attention_gradient %a, %b, %c, %d, %e, %f, %g {parts=1}",
        "attention_gradient: f64[3,2], f64[4,2], f64[4,2], f64[3,3], f64[3], f64[3], f64[3] do not belong together",
    ),
    ("i64[2,2]", "lu %a", "takes floats, not i64[2,2]"),
    ("f64[2,3]", "lu %a", "the matrices must be square, not f64[2,3]"),
    ("i64[3,2]", "qr %a", "qr: takes floats, not i64[3,2]"),
    ("f64[2,3]", "qr %a", "qr: takes matrices with at least as many rows as columns, not f64[2,3]"),
    ("i64[3,2]", "svd %a", "svd: takes floats, not i64[3,2]"),
    ("f64[2,3]", "svd %a", "svd: takes matrices with at least as many rows as columns, not f64[2,3]"),
    ("f64[2,2] f32[2,2]", "hermitian_eigh %a, %b", "takes the parts of complex matrices, floats of one type"),
    ("f64[2,3] f64[2,3]", "complex_svd %a, %b", "svd: takes matrices with at least as many rows as columns"),
    ("f64[2,2] f64[2,2] f64[2,1]", "solve_with %a, %b, %c", "solve: f64[2,2] are not the factors of the matrices f64[2,2]"),
    ("f64[2,2] f64[2,2]", "slogdet %a, %b", "slogdet: f64[2,2] are not the factors of the matrices f64[2,2]"),
    ("f64[2,2]", "row_exchanges %a", "row_exchanges: f64[2,2] are not the factors of matrices"),
    ("f64[2,2] f64[2,2] f64[2,2]", "lu_parts %a, %b, %c", "lu_parts: f64[2,2] and f64[2,2] are not the factors of the matrices"),
    ("f64[2,2] f32[2,1]", "solve_triangular %a, %b", "both operands are floats of one dtype, not f64[2,2] and f32[2,1]"),
    ("u64[3] f64[3] f64[2]", "uniform %a, %b, %c", "uniform: types differ: u64[3], f64[3] and f64[2]"),
    ("u32[3] f64[3] f64[3]", "uniform %a, %b, %c", "uniform: bits and bounds of one width are needed, not u32[3] and f64[3]"),
    ("u32[3]", "normal %a {dtype=f64}", "normal: f64 values need unsigned integers of the same width, not u32[3]"),
    ("u32[3] u32[3] u32[3] u64[3]", "random_bits %a, %b, %c, %d {dtype=u32}", "random_bits: four uint32 words make uint32 or uint64"),
    ("f64[3]", 'assert %a {message="m"}', "assert: the condition must be bool, not f64[3]"),
    ("bool[3]", 'assert %a {message="m"}', "assert: the condition must be a scalar, not bool[3]; use all() or any()"),
    ("f64[3] i64[]", "stack_read %a, %b", "stack_read: takes a stack and an integer scalar, not f64[3] and i64[]"),
    ("stack<f64[3]> f64[]", "stack_read %a, %b", "stack_read: takes a stack and an integer scalar, not stack<f64[3]> and f64[]"),
    ("f64[3]", "stack_length %a", "stack_length: takes a stack, not f64[3]"),
    ("stack<f64[3]> i64[] f64[2]", "stack_accumulate %a, %b, %c", "stack_accumulate: f64[2] does not fit stack<f64[3]>"),
    ("f64[3]", 'print %a {template="{}", end="", stream="nowhere", style="numpy", summarize=-1}', "does not fit 1 operands"),
    ("f64[3]", 'print %a {template="{} {}", end="", stream="stdout", style="numpy", summarize=-1}', "does not fit 1 operands"),
    (
        "f64[3]",
        'print %a {template="{:.2f}", end="", stream="stdout", style="numpy", summarize=-1}',
        "does not fit an operand of type f64[3]",
    ),
]


@pytest.mark.parametrize(("types", "statement", "message"), RULES, ids=[f"{row[1].split()[0]}-{k}" for k, row in enumerate(RULES)])
def test_operands_that_do_not_fit_are_refused(types: str, statement: str, message: str) -> None:
    params = ", ".join(f"%{name}: {type}" for name, type in zip("abcdefg", types.split(), strict=False))
    effect = statement.split()[0] in ("assert", "print")
    text = f"func @f({params}) -> () {{\n  {'' if effect else '%y: f64[] = '}{statement}\n  return\n}}"
    with pytest.raises(VerifyError) as caught:
        verify(parse_func(text))
    assert message in str(caught.value)
    assert statement.split()[0] in str(caught.value).split(", in\n")[1]
