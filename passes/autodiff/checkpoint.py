"""Loops with `checkpoint`: each is rewritten as two nested loops that compute the same results.

Reverse mode of nested loops stores the carries at each iteration of the outer loop, and runs the inner loop again. A loop cut into segments
therefore needs memory for the starts of the segments and for one segment:

    an int      segments of that many iterations
    "sqrt"      segments of about the square root of the trip count. If it is unknown (`while`), each is one iteration longer than the last
    "binomial"  three levels: memory for about three times the cube root of the trip count, and one more run of the forward loop.
                Within the bound of "sqrt"; the optimal schedule of binomial checkpointing is not attempted
"""

from __future__ import annotations

from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.errors import AdjitError
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.control import For, If, LoopRegion, While
from adjit.ir.types import BOOL, F64, I64, TensorType

INDEX, VERDICT = TensorType(I64), TensorType(BOOL)
FIRST_SEGMENT = 16  # iterations of the first segment of a `while`: shorter segments would cost more than they save


def segmented(stmt: Stmt) -> Stmt:
    """The loop as nested loops, as its `checkpoint` attribute requests, with the same results first; unchanged if it has none.

    A loop that saves values is left unchanged: whether to bound its memory was decided when it was first differentiated.
    """
    assert isinstance(stmt.op, LoopRegion)
    how = stmt.op.checkpoint
    if not stmt.op.has_schedule():
        expected = '"none", "sqrt", "binomial" or a number of iterations'
        raise AdjitError(f"{stmt.op.name}: checkpoint must be {expected}, not {how!r}").at(stmt.location)
    if how == "none" or stmt.blocks[-1].saving:
        return stmt
    return _segmented_for(stmt, how) if stmt.op.counters else _segmented_while(stmt, how)


def _new_block(stmt: Stmt, params: tuple[Value, ...]) -> Builder:
    builder = Builder(params)
    builder.location, builder.phase, builder.origin = stmt.location, stmt.phase, stmt.origin
    return builder


def _twins(values: tuple[Operand, ...]) -> tuple[Value, ...]:
    return tuple(Value(v.type, getattr(v, "name", None)) for v in values)


def _inner(how: str | int) -> str:
    return "sqrt" if how == "binomial" else "none"


def _segmented_for(stmt: Stmt, how: str | int) -> Stmt:
    """A `while` whose body is a `for` over the next segment. The bounds are computed inside it, since one statement replaces the loop."""
    start, stop, *inits = stmt.args
    (body,) = stmt.blocks
    k = body.params[0]
    carry = _twins((*body.params[1:], k))
    with _new_block(stmt, _twins(carry)) as condition:
        more = condition.params[-1] < stop
    with _new_block(stmt, carry) as outer:
        end = ops.minimum(carry[-1] + _length(how, stop - start), stop)
        inner = outer.emit(For(_inner(how)), (carry[-1], end, *carry[:-1]), (body,), [x.type for x in inits])
        block = outer.finish([*inner, end])
    (last,) = _twins((k,))
    return stmt.replace(op=While(), args=(*inits, start), blocks=(condition.finish([more]), block), results=(*stmt.results, last))


def _length(how: str | int, trips: Operand) -> Operand:
    """The length of a segment, at least 1. Rounding does not matter: any length gives the same results."""
    if isinstance(how, int):
        return Literal(how, INDEX)
    root = ops.power(ops.cast(ops.maximum(trips, 1), F64), 0.5 if how == "sqrt" else 2 / 3)
    return ops.maximum(ops.cast(ops.ceil(root), I64), 1)


def _segmented_while(stmt: Stmt, how: str | int) -> Stmt:
    """Each segment runs until the condition fails or its length is reached; a full segment is followed by another, which may be empty.

    So the condition is evaluated as many times as before. The outer loop carries the segment's number and whether the last one was full.
    """
    condition, body = stmt.blocks
    carry = (*_twins(body.params), Value(VERDICT), Value(INDEX))
    *carried, _, number = carry
    with _new_block(stmt, _twins(carry)) as test:
        pass
    with _new_block(stmt, carry) as outer:
        length = _growing(how, number)
        count, twin = Value(INDEX, "trips"), Value(INDEX, "trips")
        with _new_block(stmt, (*condition.params, twin)) as inner_test:
            no = Block((), (), [Literal(False, VERDICT)])
            (verdict,) = inner_test.emit(If(), [twin < length], (Block((), condition.stmts, condition.results), no), [VERDICT])
        with _new_block(stmt, (*body.params, count)) as inner:
            inner.stmts.extend(body.stmts)
            following = count + 1
        blocks = inner_test.finish([verdict]), inner.finish([*body.results, following])
        zero = Literal(0, INDEX)
        *results, trips = outer.emit(While(_inner(how)), (*carried, zero), blocks, [*(c.type for c in carried), INDEX])
        block = outer.finish([*results, trips == length, number + 1])
    return stmt.replace(
        op=While(),
        args=(*stmt.args, Literal(True, VERDICT), Literal(0, INDEX)),
        blocks=(test.finish([test.params[-2]]), block),
        results=(*stmt.results, Value(VERDICT), Value(INDEX)),
    )


def _growing(how: str | int, number: Operand) -> Operand:
    """The length of the segment with this number."""
    if isinstance(how, int):
        return Literal(how, INDEX)
    return number + FIRST_SEGMENT if how == "sqrt" else number * number + FIRST_SEGMENT
