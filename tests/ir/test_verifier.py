"""Each rule of the IR, broken once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent
from typing import ClassVar

import numpy as np
import pytest

from adjit.ir.builder import Builder
from adjit.ir.errors import VerifyError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.location import Location
from adjit.ir.operand import Concrete, Literal
from adjit.ir.ops import late
from adjit.ir.ops.base import REGISTRY, Op, apply
from adjit.ir.ops.control import For, Fuse, If, Region, While
from adjit.ir.ops.create import Constant
from adjit.ir.ops.fft import Fft
from adjit.ir.ops.maps import Mul
from adjit.ir.ops.stack import StackRead
from adjit.ir.parser import parse_func
from adjit.ir.types import BOOL, C64, F32, F64, I64, StackType, TensorType
from adjit.ir.verifier import verify
from adjit.passes.complex import split_complex

late.load(late.FUNCTIONS)

SCALAR, INDEX, CONDITION = TensorType(F64), TensorType(I64), TensorType(BOOL)


def value(name: str, type: TensorType = SCALAR) -> Value:
    return Value(type, name)


def refused(func: Func, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(func)
    assert message in str(caught.value)


def text_refused(text: str, message: str) -> None:
    refused(parse_func(dedent(text)), message)


def test_an_error_names_the_statement_and_the_users_line() -> None:
    func = parse_func("func @f(%x: f64[3]) -> f64[2] !m.py:1:1 {\n  %y: f64[2] = exp %x !4:7\n  return %y\n}")
    with pytest.raises(VerifyError) as caught:
        verify(func)
    assert str(caught.value) == "@f: its results should have types (f64[3]), not (f64[2]), in\n  %y: f64[2] = exp %x !4:7\n  m.py:4:7"
    assert caught.value.location == Location("m.py", 4, 7)


# ---- values


def test_defined_twice() -> None:
    x, y = value("x"), value("y")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, x), (y,)), Stmt(Mul(), (x, x), (y,))], [])), "%y is defined twice")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, x), (x,))], [])), "%x is defined twice")
    refused(Func("f", Block([x, x], [], [])), "%x is defined twice")


def test_used_before_its_definition() -> None:
    x, y, z = value("x"), value("y"), value("z")
    stmts = [Stmt(Mul(), (x, y), (z,)), Stmt(Mul(), (x, x), (y,))]
    refused(Func("f", Block([x], stmts, [])), "%y is used before it is defined, in\n  %z: f64[] = mul %x, %y")
    refused(Func("f", Block([x], [], [y])), "@f: %y is used before it is defined")
    refused(Func("f", Block([x], [], [], [y])), "%y is used before it is defined")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, y), (y,))], [])), "%y is used before it is defined")


def test_used_outside_of_its_region() -> None:
    p, x, inner, result = value("p", CONDITION), value("x"), value("inner"), value("r")
    then = Block([], [Stmt(Mul(), (x, x), (inner,))], [inner])
    other = Block([], [], [inner])
    refused(Func("f", Block([p, x], [Stmt(If(), (p,), (result,), (then, other))], [])), "%inner is used where it is not visible")
    fine = Stmt(If(), (p,), (result,), (then, Block([], [], [x])))
    verify(Func("f", Block([p, x], [fine], [result])))
    refused(Func("f", Block([p, x], [fine], [inner])), "%inner is used where it is not visible")


def test_results_are_not_visible_inside_their_statement() -> None:
    result = value("r")
    refused(Func("f", Block([], [Stmt(Fuse(), (), (result,), (Block([], [], [result]),))], [])), "%r is used before it is defined")


def test_only_values_and_literals() -> None:
    x, y = value("x"), value("y")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, Concrete(np.ones(()))), (y,))], [])), "Concrete objects cannot occur in the IR")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, x), (Literal(0.0, SCALAR),))], [])), "is not a value, and cannot be defined")
    bad = Literal(0.0, SCALAR)
    bad.value = np.float32(0.0)
    refused(Func("f", Block([x], [], [bad])), "is not a value of f64[]")


# ---- statements


def test_operands_that_do_not_fit() -> None:
    text_refused(
        """
        func @f(%x: f64[3], %y: f64[2]) -> () {
          %z: f64[3] = add %x, %y
          return
        }""",
        "its operands do not fit: add: shapes differ: f64[3] and f64[2]",
    )
    text_refused(
        """
        func @f(%x: f64[3]) -> () {
          %z: f64[3] = sum %x, %x {axes=[0]}
          return
        }""",
        "its operands do not fit",
    )


def test_number_of_results() -> None:
    text_refused("func @f(%x: f64[]) -> () {\n  %a: f64[], %b: f64[] = neg %x\n  return\n}", "(f64[]), not (f64[], f64[])")
    text_refused("func @f(%x: f64[]) -> () {\n  neg %x\n  return\n}", "its results should have types (f64[]), not ()")


def test_blocks_belong_to_regions() -> None:
    x, y = value("x"), value("y")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, x), (y,), (Block([], [], []),))], [])), "mul takes no blocks")


def test_phase() -> None:
    x, y = value("x"), value("y")
    refused(Func("f", Block([x], [Stmt(Mul(), (x, x), (y,), phase="sideways")], [])), "its phase is 'sideways'")  # type: ignore[arg-type]


def test_forward_may_read_backward() -> None:
    text = """
        func @f(%x: f64[]) -> () {
        backward:
          %d: f64[] = neg %x
        forward:
          %n: f64[] = sub %x, %d
          return updating %x = %n
        }"""
    verify(parse_func(text))


# ---- functions


def test_updates() -> None:
    x, y, z = value("x"), value("y"), value("z", TensorType(F32))
    stmt = Stmt(Mul(), (x, x), (y,))
    block = Block([x, z], [stmt], [])
    verify(Func("f", block, updates=[(x, y), (z, Literal(0.0, z.type))]))
    refused(Func("f", block, updates=[(y, x)]), "%y is updated, but is not a parameter")
    refused(Func("f", block, updates=[(x, y), (x, x)]), "%x is updated twice")
    refused(Func("f", block, updates=[(z, y)]), "%z: f32[] is updated with a value of type f64[]")
    refused(Func("f", block, updates=[(x, value("lost"))]), "%lost is used before it is defined")


def test_given() -> None:
    x, y = value("x"), value("y")
    block = Block([x], [Stmt(Mul(), (x, x), (y,))], [])
    verify(Func("f", block, given=[x]))
    refused(Func("f", block, given=[y]), "%y is given, but is not a parameter")
    refused(Func("f", block, given=[x, x]), "%x is given twice")


# ---- regions


def region(op: Op, args: list[Value | Literal], results: list[TensorType], *blocks: Block) -> Func:
    """A function of one region; its operands are its parameters."""
    params = [a for a in args if isinstance(a, Value)]
    return Func("f", Block(params, [Stmt(op, tuple(args), tuple(value("r", t) for t in results), blocks)], []))


ONE, NONE = Block([], [], [Literal(1.0, SCALAR)]), Block([], [], [])
YES = Literal(True, CONDITION)
ZERO = Literal(0, INDEX)


def test_if() -> None:
    verify(region(If(), [YES], [SCALAR], ONE, ONE))
    refused(region(If(), [YES], [SCALAR], ONE), "if takes 2 blocks, not 1")
    refused(region(If(), [YES], [SCALAR], ONE, NONE), "what its block yields should have types (f64[]), not ()")
    refused(region(If(), [value("x")], [], NONE, NONE), "its operands should have types (bool[]), not (f64[])")
    refused(region(If(), [value("p", TensorType(BOOL, (3,)))], [], NONE, NONE), "not (bool[3])")
    refused(region(If(), [YES], [], Block([value("a")], [], []), NONE), "the parameters of its blocks should have types (), not (f64[])")
    refused(region(If(), [YES], [], Block([], [], [], [YES]), NONE), "only functions and the bodies of loops save values")


def test_for() -> None:
    def body(*carried: TensorType, index: TensorType = INDEX) -> Block:
        params = [value("c", t) for t in carried]
        return Block([value("k", index), *params], [], params, params)

    verify(region(For(), [ZERO, ZERO, value("x")], [SCALAR, StackType(SCALAR)], body(SCALAR)))
    refused(
        region(For(), [ZERO, ZERO, value("x")], [SCALAR], body(SCALAR)), "its results should have types (f64[], stack<f64[]>), not (f64[])"
    )
    refused(region(For(), [ZERO, ZERO], [], body(), body()), "for takes 1 block, not 2")
    refused(region(For(), [ZERO, value("x")], [], body()), "its operands should have types (i64[], i64[]), not (i64[], f64[])")
    refused(region(For(), [ZERO, ZERO, value("x")], [], body()), "the parameters of its body should have types (i64[], f64[]), not (i64[])")
    refused(region(For(), [ZERO, ZERO], [], body(index=SCALAR)), "the parameters of its body should have types (i64[]), not (f64[])")
    refused(region(For(), [ZERO, ZERO], [], NONE), "the parameters of its body")
    stray = Block([value("k", INDEX), value("c")], [], [ZERO])
    refused(region(For(), [ZERO, ZERO, value("x")], [SCALAR], stray), "what its block yields should have types (f64[]), not (i64[])")


def test_while() -> None:
    def condition(result: TensorType = CONDITION) -> Block:
        return Block([value("c")], [], [Literal(0, result)])

    def body() -> Block:
        c = value("c")
        return Block([c], [], [c])

    x = value("x")
    verify(region(While(), [x], [SCALAR], condition(), body()))
    refused(region(While(), [x], [SCALAR], body()), "while takes 2 blocks, not 1")
    refused(region(While(), [x], [SCALAR], condition(INDEX), body()), "what its block yields should have types (bool[]), not (i64[])")
    refused(region(While(), [x], [SCALAR], condition(), ONE), "the parameters of its body should have types (f64[]), not ()")
    refused(region(While(), [x], [SCALAR], ONE, body()), "the parameters of its condition")
    refused(region(While(), [x], [INDEX], condition(), body()), "its results should have types (f64[]), not (i64[])")
    shared = value("c")
    same = region(While(), [x], [SCALAR], Block([shared], [], [YES]), Block([shared], [], [shared]))
    refused(same, "%c is defined twice")


def test_stacks_are_only_read() -> None:
    stack = value("s", StackType(SCALAR))
    index, element = Literal(0, INDEX), value("e")
    verify(Func("f", Block([stack], [Stmt(StackRead(), (stack, index), (element,))], [])))
    refused(Func("f", Block([stack], [Stmt(Mul(), (stack, stack), (value("y", stack.type),))], [])), "mul takes no stacks")


@pytest.mark.parametrize("use", ["f64[3,1] = solve_with %a, %0, %b", "f64[2] = slogdet %a, %0"])
def test_factors_are_those_of_the_matrix_beside_them(use: str) -> None:
    text = """
        func @f(%a: f64[3,3], %c: f64[3,3], %b: f64[3,1]) -> ({type}) {{
          %0: f64[4,3] = lu %{matrix}
          %1: {use}
          return %1
        }}
    """
    verify(parse_func(dedent(text.format(type=use.partition(" ")[0], use=use, matrix="a"))))
    text_refused(text.format(type=use.partition(" ")[0], use=use, matrix="c"), "%0 is lu of %c, not of %a")


@pytest.mark.parametrize("n", [16, 15, 144])
def test_tables_of_fourier_transforms_are_constants_with_the_right_values(n: int) -> None:
    """Native code reads them, the interpreter does not: it would not notice others."""
    x = value("x", TensorType(C64, (n,)))
    with Builder([x]) as builder:
        func = split_complex(Func("f", builder.finish([apply(Fft(0), x)])))
    verify(func)
    tables = [s for s in func.stmts if isinstance(s.op, Constant)]
    assert len(tables) == (3 if n == 144 else 1)
    for table in tables:
        for numbers in (table.op.evaluate() + 1, table.op.evaluate()[:, ::-1]):
            changed = [s.replace(op=Constant.of(numbers)) if s is table else s for s in func.stmts]
            refused(func.replace(block=Block(func.params, changed, func.results)), "is not the table of constants that fft_parts takes")
        as_parameter = [s for s in func.stmts if s is not table]
        refused(func.replace(block=Block([*func.params, table.result], as_parameter, func.results)), "is not the table of constants")


@pytest.mark.parametrize("shape", ["1,3,4", "3,3,4", "2,3,4,1", "2,12"])
def test_factors_between_two_steps_of_a_fourier_transform_have_their_shape(shape: str) -> None:
    text = f"""
        func @f(%x: f64[12,2], %a: f64[2,1], %b: f64[2,1], %c: f64[{shape}]) -> f64[12,2] {{
          %y: f64[12,2] = fft_parts %x, %a, %b, %c {{axis=0}}
          return %y
        }}
        """
    text_refused(text, "its operands do not fit: fft_parts")


def test_fuse() -> None:
    refused(region(Fuse(), [], [SCALAR], ONE), "it yields a value that is not computed inside")
    refused(region(Fuse(), [value("x")], [SCALAR], ONE), "its operands should have types (), not (f64[])")
    refused(region(Fuse(), [], [INDEX], ONE), "what its block yields should have types (i64[]), not (f64[])")
    refused(region(Fuse(), [], [], Block([value("a")], [], [])), "the parameters of its block should have types ()")
    text_refused(
        """
        func @f(%a: i64[2,2]) -> () {
          %r: i64[2,2] = fuse {
            %b: i64[2,2] = matmul %a, %a
            yield %b
          }
          return
        }""",
        "matmul is not allowed inside fuse",
    )
    text_refused(
        """
        func @f(%a: f64[2,4,1], %w: f64[2,1,3]) -> () {
          %r: f64[3] = fuse {
            %b: f64[2,3,3] = convolve %a, %w {strides=[1], dilations=[1], groups=1}
            %c: f64[3] = sum %b {axes=[0, 1]}
            yield %c
          }
          return
        }""",
        "sum is not allowed inside fuse with convolve",
    )
    text_refused("func @f() -> () {\n  fuse {\n    fuse {\n    }\n  }\n  return\n}", "fuse is not allowed inside fuse")


# ---- effects


@pytest.fixture
def say() -> Iterator[type[Op]]:
    @dataclass(eq=False)
    class SayForTests(Op):
        text: str
        effect: ClassVar[bool] = True

        def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
            return ()

    yield SayForTests
    del REGISTRY[SayForTests.name]


def test_effects_keep_their_order(say: type[Op]) -> None:
    def func(*words: str) -> Func:
        return Func("f", Block([], [Stmt(say(word), (), ()) for word in words], []))  # type: ignore[call-arg]

    verify(func("a", "b"), before=func("a", "b"))
    verify(func("a", "a", "b"), before=func("a", "b"))
    with pytest.raises(VerifyError, match=r'an effect was lost or reordered:\n  say_for_tests \{text="a"\}'):
        verify(func("b"), before=func("a", "b"))
    with pytest.raises(VerifyError, match='text="b"'):
        verify(func("b", "a"), before=func("a", "b"))


def test_effects_in_branches_may_fold(say: type[Op]) -> None:
    inside = Block([], [Stmt(say("a"), (), ())], [])  # type: ignore[call-arg]
    branch = Func("f", Block([], [Stmt(If(), (YES,), (), (inside, NONE))], []))
    flat = Func("f", inside)
    verify(flat, before=branch)
    verify(branch, before=flat)
    verify(Func("f", NONE), before=branch)


def test_effects_stay_out_of_fuse(say: type[Op]) -> None:
    inside = Block([], [Stmt(say("a"), (), ())], [])  # type: ignore[call-arg]
    refused(region(Fuse(), [], [], inside), "say_for_tests is not allowed inside fuse")


# ---- regions own themselves


def test_a_region_op_that_forgets_a_rule_cannot_be_defined() -> None:
    whole = {name: getattr(If, name) for name in ("check", "flow", "interpret", "pull_back", "push_forward", "batch_region")}
    for forgotten in whole:
        with pytest.raises(TypeError, match=f"a region op must define {forgotten}"):
            type(Region)("Forgetful", (Region,), {k: v for k, v in whole.items() if k != forgotten})
        assert "forgetful" not in REGISTRY


def test_every_region_has_all_rules() -> None:
    for op in REGISTRY.values():
        if issubclass(op, Region):
            assert not any(getattr(getattr(op, name), "__isabstractmethod__", False) for name in dir(op)), op
