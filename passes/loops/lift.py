"""Moves products out of loops: many small products become one large one, which runs near the machine's peak and on all threads.

- `gather(x, k) @ w`, with x and w from outside: all rows of x are multiplied by w before the loop, which reads rows of the product.
- `total + transpose(a) @ b` in every iteration: the rows of all a and all b are multiplied after the loop. Values that the loop computes
  are stored for this, in an array with a row per iteration; values read from an array or a stack are already there.
- `total + sum(b)`, if the rows of b are stored: one sum after the loop.
- `scatter(out, b @ w, k)`, with w from outside: the rows of b are multiplied by w after the loop.
- `scatter_add(zeros, b, k)`, if each iteration has its own row: a `scatter_set`.
- `gather(c, k)` of a carry that each iteration changes in its own row only, and whose final value is not read: of its initial value.

Applies only to loops whose bounds are literals or sizes, and whose rows are read and written at `k + c` or `c - k`, so that each iteration
has its own. Sums are added in a different order, as in any blocked matrix product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from adjit.ir.builder import Builder
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import Gather, Scatter, ScatterAdd, ScatterSet
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.reduce import Sum
from adjit.ir.ops.shape import Reshape, Transpose, reshape, transpose
from adjit.ir.ops.stack import StackArray
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import at_least, hint_of
from adjit.ir.types import TensorType

from ..memory.in_place import is_stack
from ..rewrite import like
from ..simplify.dce import eliminate_dead_code
from ..simplify.trips import AffinePosition, CounterRange, Sizes, known_trips, positions

MAX_WORK = 1 << 24  # multiplications per iteration: larger products are just as fast inside the loop
MAX_BYTES = 1 << 26  # of an array that is stored for a product outside


def lift_products(func: Func) -> Func:
    lifting = _Lifting({id(x) for x in (*func.block.uses(), *func.outputs())})
    block = lifting.block(func.block)
    return eliminate_dead_code(func.replace(block=block)) if lifting.lifted else func


class _Lifting:
    def __init__(self, used: set[int]) -> None:
        self.used = used
        self.lifted = False
        self.sizes = Sizes()
        self.lengths: dict[int, int] = {}  # of stacks built by loops with known bounds

    def block(self, block: Block) -> Block:
        out: list[Stmt] = []
        for stmt in block.stmts:
            if stmt.blocks:
                stmt = stmt.replace(blocks=tuple(map(self.block, stmt.blocks)))
            self.sizes.note(stmt)
            trips = known_trips(stmt, self.sizes)
            if trips is None or not at_least(trips.length, 2):
                out.append(stmt)
                continue
            loop = _LiftedLoop(stmt, trips, self.sizes, self.lengths, self.used)
            out += loop.rewritten()
            self.lifted |= loop.lifted
            self.lengths.update((id(stack), trips.length) for stack in stmt.results[len(stmt.blocks[0].results) :])
        return Block(block.params, out, block.results, block.saving)


class _Rows(NamedTuple):
    """An array with a row for each iteration, available after the loop, and the row that belongs to an iteration."""

    array: Operand
    at: AffinePosition


class _LiftedLoop:
    def __init__(self, stmt: Stmt, trips: CounterRange, sizes: Sizes, lengths: dict[int, int], used: set[int]) -> None:
        self.used = used
        self.stmt = stmt
        self.trips = trips
        self.lengths = lengths
        (self.body,) = stmt.blocks
        self.counter, *self.carries = self.body.params
        self.results = list(stmt.results)
        self.stmts = list(self.body.stmts)
        self.makers = {id(r): s for s in self.stmts for r in s.results}
        self.inside = {*self.makers, *map(id, self.body.params)}
        self.uses = Counter(map(id, self.body.uses()))
        self.positions = positions(self.body, sizes)
        self.kept: dict[tuple[int, AffinePosition], tuple[Value, Operand, _Rows]] = {}  # values of the body that new carries collect
        self.before, self.after = Builder(), Builder()
        self.lifted = False

    def rewritten(self) -> list[Stmt]:
        """The statements before the loop, the loop, and the statements after it."""
        for slot in range(len(self.carries)):
            self._read_first(slot)
        for k, stmt in enumerate(self.stmts):
            if isinstance(stmt.op, Matmul):
                self._precompute(k, stmt)
        for postpone in (self._postpone_scattered, self._postpone_product, self._postpone_sum):  # sums last: they use what products store
            for slot, result in enumerate(self.results[: len(self.carries)]):
                if not any(result is x for s in self.after.stmts for x in s.args):
                    postpone(slot)
        self._assign()
        return [*self.before.stmts, self._loop(), *self.after.stmts]

    def _read_first(self, slot: int) -> None:
        """Read rows of a carry from its initial value, if no earlier iteration has changed them."""
        carry, first, following = self.carries[slot], self.stmt.args[2 + slot], self.body.results[slot]
        users = [s for s in self.stmts if any(x is carry for x in s.args)]
        reads = [s for s in users if isinstance(s.op, Gather) and len(s.args) == 2]
        writes = [s for s in users if isinstance(s.op, Scatter) and len(s.args) == 3 and s.result is following]
        if id(self.stmt.results[slot]) in self.used or not isinstance(first, Value) or len(reads) + len(writes) != len(users):
            return
        rows = {self.positions.get(id(s.args[-1])) for s in users}
        alone = self.is_only_read_by(carry, len(users)) and self.is_only_read_by(following)
        if reads and writes and alone and len(rows) == 1 and None not in rows:
            for s in reads:
                self.stmts[self.stmts.index(s)] = self.makers[id(s.result)] = s.replace(args=(first, s.args[1]))
                self.lifted = True

    def _assign(self) -> None:
        """Replace a `scatter_add` to zeros by a `scatter_set`, if each iteration has its own row."""
        for slot, following in enumerate(self.body.results):
            maker = self.makers.get(id(following))
            if maker is not None and isinstance(maker.op, ScatterAdd) and self._scattered(slot, maker) is not None:
                self.stmts[self.stmts.index(maker)] = maker.replace(op=ScatterSet())
                self.lifted = True

    def _loop(self) -> Stmt:
        """The loop, with the new carries."""
        stmt, body = self.stmt, self.body
        if not self.lifted:
            return stmt
        stmts, params, following, made, first = list(self.stmts), [], [], [], []
        for value, index, rows in self.kept.values():
            assert isinstance(rows.array, Value)
            params.append(Value(rows.array.type, value.name))
            following.append(Value(rows.array.type, value.name))
            made.append(rows.array)
            first.append(Literal(0, rows.array.type))
            maker = self.makers.get(id(value), stmt)
            stmts.append(like(maker, ScatterSet(), (params[-1], value, index), result=following[-1]))
        carries = len(body.results)
        block = Block((*body.params, *params), stmts, (*body.results, *following), body.saving)
        results = (*self.results[:carries], *made, *self.results[carries:])
        return stmt.replace(args=(*stmt.args, *first), blocks=(block,), results=results)

    # ---- definitions of values, and their rows

    def comes_from_outside(self, x: Operand) -> bool:
        return id(x) not in self.inside

    def is_only_read_by(self, x: Operand, count: int = 1) -> bool:
        return self.uses[id(x)] == count

    def rows(self, x: Operand, index: Operand | None = None) -> _Rows | None:
        """The rows of all iterations, after the loop: existing ones or, given an index, new ones in which the loop stores its values."""
        maker = self.makers.get(id(x))
        if maker is not None and isinstance(maker.op, Reshape):
            of = self.rows(maker.args[0], index)
            return None if of is None else _Rows(reshape(of.array, (self.trips.length, *x.type.shape)), of.at)
        read = self.read_rows(x)
        for found in [read] if read is not None else self._collected(x):
            if index is None or found.at == self.positions[id(index)]:
                return found
        return None if index is None or read is not None else self._kept(x, index)

    def read_rows(self, x: Operand) -> _Rows | None:
        """The rows of a value that is read from an array or a stack."""
        maker = self.makers.get(id(x))
        if maker is None or not maker.op.reads_rows or len(maker.args) != 2:
            return None
        source, index = maker.args
        at = self.positions.get(id(index))
        length = source.type.shape[0] if not is_stack(source) else self.lengths.get(id(source))
        if not self.comes_from_outside(source) or at is None or length is None or not at.covers(self.trips, length):
            return None
        return _Rows(source if not is_stack(source) else apply(StackArray(length).unchecked(), source), at)

    def _collected(self, x: Operand) -> Iterator[_Rows]:
        """The rows of a value that the loop collects in arrays, for itself or for a product."""
        for slot, following in enumerate(self.body.results):
            maker = self.makers.get(id(following))
            if maker is not None and isinstance(maker.op, Scatter) and maker.args[1] is x:
                at = self._scattered(slot, maker)
                if at is not None:
                    yield _Rows(self.stmt.results[slot], at)
        yield from (rows for value, _, rows in self.kept.values() if value is x)

    def _kept(self, x: Operand, index: Operand) -> _Rows | None:
        type = TensorType(x.type.dtype, (self.trips.length, *x.type.shape))
        if not isinstance(x, Value) or self.comes_from_outside(x):
            return None
        rows = _Rows(Value(type, x.name), self.positions[id(index)])
        self.kept[id(x), rows.at] = (x, index, rows)
        return rows

    def _scattered(self, slot: int, maker: Stmt) -> AffinePosition | None:
        """The row that an iteration writes, if the carry consists of nothing but what all iterations have written."""
        carry, following = self.carries[slot], self.body.results[slot]
        at = self.positions.get(id(maker.args[2]))
        if maker.args[0] is not carry or len(maker.args) != 3 or not self.is_only_read_by(carry) or not self.is_only_read_by(following):
            return None
        first = self.stmt.args[2 + slot]
        starts_empty = isinstance(maker.op, ScatterSet) or (isinstance(first, Literal) and not first.value.any())
        return at if starts_empty and at is not None and at.covers(self.trips, carry.type.shape[0]) else None

    # ---- before the loop

    def _precompute(self, k: int, stmt: Stmt) -> None:
        """gather(x, i) @ w becomes gather(x @ w, i)."""
        row, w = stmt.args
        if not self.comes_from_outside(w) or w.type.rank != 2 or not _is_worth_it(stmt, self.trips.length):
            return
        with self.before as builder, builder.at(stmt.location, stmt.phase, stmt.origin):
            rows = self.read_rows(row)
            if rows is None:
                return
            product = apply(Matmul(), _as_matrix(rows.array, w.type.shape[0]), w)
            products = reshape(product, (self.trips.length, *stmt.result.type.shape))
        self.stmts[k] = stmt.replace(op=Gather(), args=(products, self.makers[id(row)].args[1]))
        self.makers[id(stmt.result)] = self.stmts[k]
        self.lifted = True

    # ---- after the loop

    def _postpone_product(self, slot: int) -> None:
        """total + transpose(a) @ b becomes total + transpose(all a) @ (all b)."""
        product = self._added(slot)
        if product is None or not isinstance(product.op, Matmul) or not _is_worth_it(product, self.trips.length):
            return
        a, b = product.args
        if a.type.rank != 2 or b.type.rank != 2:
            return
        turned = self.makers.get(id(a))
        if a.type.shape[1] != 1:
            if turned is None or not isinstance(turned.op, Transpose):
                return
            a = turned.args[0]
        with self.after as builder, builder.at(product.location, product.phase, product.origin):
            pair = self._pair(a, b)
            if pair is not None:
                left, right = (_as_matrix(x, n) for x, n in zip(pair, product.result.type.shape, strict=True))
                self._give(slot, apply(Matmul(), transpose(left), right))

    def _pair(self, a: Operand, b: Operand) -> tuple[Operand, Operand] | None:
        """The rows of both, in the same order."""
        lying = [rows.at for rows in (self.rows(a), self.rows(b)) if rows is not None]
        for at in (*lying, AffinePosition(1, -self.trips.first)):
            index = self._index(at)
            left, right = (self.rows(x, index) if index is not None else None for x in (a, b))
            if left is not None and right is not None:
                return left.array, right.array
        return None

    def _index(self, at: AffinePosition) -> Operand | None:
        """A value of the body that equals the position."""
        values = (self.counter, *(r for s in self.stmts for r in s.results))
        return next((v for v in values if self.positions.get(id(v)) == at), None)

    def _postpone_sum(self, slot: int) -> None:
        total = self._added(slot)
        if total is None or not isinstance(total.op, Sum):
            return
        with self.after as builder, builder.at(total.location, total.phase, total.origin):
            rows = self.rows(total.args[0])
            if rows is not None:
                self._give(slot, apply(Sum((0, *(axis + 1 for axis in total.op.axes))), rows.array))

    def _postpone_scattered(self, slot: int) -> None:
        """scatter(out, b @ w, i) becomes scatter(rows, b, i) @ w."""
        maker = self.makers.get(id(self.body.results[slot]))
        if maker is None or not isinstance(maker.op, Scatter):
            return
        product = self.makers.get(id(maker.args[1]))
        at = self._scattered(slot, maker)
        if at is None or product is None or not isinstance(product.op, Matmul) or not self.is_only_read_by(product.result):
            return
        b, w = product.args
        if not self.comes_from_outside(w) or w.type.rank != 2 or not _is_worth_it(product, self.trips.length):
            return
        with self.after as builder, builder.at(product.location, product.phase, product.origin):
            rows = self.rows(b, maker.args[2])
            if rows is not None and rows.at == at:
                matrix = _as_matrix(rows.array, w.type.shape[0])
                self._give(slot, reshape(apply(Matmul(), matrix, w), self.carries[slot].type.shape), starts=False)

    def _added(self, slot: int) -> Stmt | None:
        """The statement whose result is added to a carry, if nothing else reads either."""
        carry, following = self.carries[slot], self.body.results[slot]
        maker = self.makers.get(id(following))
        if maker is None or not isinstance(maker.op, Add) or not self.is_only_read_by(carry) or not self.is_only_read_by(following):
            return None
        others = [x for x in maker.args if x is not carry]
        return self.makers.get(id(others[0])) if len(others) == 1 and self.is_only_read_by(others[0]) else None

    def _give(self, slot: int, total: Operand, starts: bool = True) -> None:
        """Replace a result of the loop by that of statements after it; the carry is no longer read."""
        first = self.stmt.args[2 + slot]
        if starts and not (isinstance(first, Literal) and not first.value.any()):
            total = first + total
        last, result = self.after.stmts[-1], self.results[slot]
        assert last.result is total
        assert isinstance(result, Value)
        self.after.stmts[-1] = last.replace(results=(result,))
        self.results[slot] = Value(result.type, result.name)
        self.lifted = True


def _as_matrix(x: Operand, columns: int) -> Operand:
    return reshape(x, (x.type.size // columns, columns))


def _is_worth_it(product: Stmt, trips: int) -> bool:
    work = hint_of(product.result.type.size * product.args[0].type.shape[-1])
    bytes_kept = hint_of(trips) * max(hint_of(x.type.nbytes) for x in (product.result, *product.args))
    return product.result.type.is_float and 0 < work <= MAX_WORK and bytes_kept <= MAX_BYTES
