"""The LLVM module of one Func: one kernel per statement, and a main function that calls them in order, through branches and loops.

    i64 adjit_main(ptr buffers, ptr arena, ptr error)     buffers: the parameters' arrays, then the results'

It returns 0, the number of a `Failure`, or a negative code of `stacks`. It has a single exit, at which large stacks are freed.
Kernels are passed to `parts`, which compiles them while the main function is still being emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from adjit.ir.cost import MATH
from adjit.ir.environment import is_set
from adjit.ir.errors import AdjitError, NotGeneral
from adjit.ir.expr import Expr, is_static
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.create import Constant
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.maps import element_cost
from adjit.ir.plan import ALIGNMENT, Place, Plan
from adjit.ir.sizes import is_symbolic, symbols_of
from adjit.ir.target import Target
from adjit.ir.types import I64, StackType, TensorType, row_major

from ..cache.image import Axis, Failure
from ..interrupts import signals
from ..kernels.emitter import VectorEmitter
from ..kernels.kernel import Context, Kernel
from ..kernels.kernels import copy_kernel, lowered_kernel
from ..kernels.literals import Literals, is_large
from ..kernels.registers import register_kernel
from ..llvm import memory
from ..llvm import toolchain as llvm
from ..llvm.lanes import Reg, Text
from ..llvm.parts import Parts, Texts
from ..loops.ir import Access, LoopProgram
from ..loops.nest import NestSpec
from ..native import TOO_SMALL
from ..products.packing import Packing
from ..sizes import SIZES, definitions, native_shape, native_size, safe_size, upper
from ..threads import library
from . import callbacks as host
from . import lookup, stacks
from . import saving as stacked
from .flow import Flow

if TYPE_CHECKING:
    from .probes import Probes

STATEMENTS = 64  # of a basic block of the main function: LLVM takes a time that is quadratic in its length
LARGE_LEVEL = 1  # LLVM optimisation level for very large programs: a fifth less compile time, and code of the same speed
INLINE_MATH = 32  # vector math calls: programs with more of them call the functions instead of inlining them


def axes_of(func: Func) -> tuple[Axis, ...]:
    """The sizes of a Func that are known only at run time, each with an axis of a parameter where it is found."""
    found: dict[str, Axis] = {}
    for k, param in enumerate(func.params):
        for axis, n in enumerate(param.type.shape):
            if str(n) in symbols_of(func):
                found.setdefault(str(n), Axis(str(n), k, axis))
    return tuple(found.values())


def count_math(block: Block) -> int:
    return sum((element_cost(s).latency >= MATH) + sum(map(count_math, s.blocks)) for s in block.stmts)


class Module:
    """`build` emits the module into `parts` and fills `failures` and `imports`. With `probes`, native code records when each kernel ran."""

    def __init__(self, func: Func, target: Target, probes: Probes | None = None) -> None:
        if func.plan is None:
            raise AdjitError(f"@{func.name} has no buffer plan: run it through the optimisation pipeline first")
        self.func = func
        self.params = {id(p) for p in func.params}
        self.plan: Plan = func.plan
        outline, large = count_math(func.block) > INLINE_MATH, is_large(func.block)
        literals = Literals() if large else None
        self.level = LARGE_LEVEL if large else llvm.LEVEL
        self.parts = (Parts if target.hosted else Texts)(target, self.level)
        self.symbols = axes_of(func) if symbols_of(func) else ()
        names = tuple(symbol.name for symbol in self.symbols)
        self.context = Context(func.plan, target, {} if outline else None, literals, symbols=names, checked=is_set("ADJIT_VERIFY"))
        self.functions: dict[str, str] = {}  # definition without its name -> name
        self.programs: dict[str, LoopProgram] = {}  # the loops of the functions
        self.outlined: set[str] = set()  # vector math functions already added to the parts
        self.declares: set[str] = set()
        self.imports: set[str] = set()
        self.hosts: list[Callable[[int], int]] = []  # Python functions called by native code, numbered as in `host.symbol`
        self.constants: list[str] = []
        self.registers: list[str] = []  # kernels that use the runtime, which are compiled with the main function
        self.failures: list[Failure] = []
        roots = {id(w.root): w.root for w in self.plan.windows.values() if isinstance(w.root.type, StackType)}
        self.handles = {self.plan.places[key].index: stacks.element_bytes(root.type) for key, root in roots.items()}  # by arena offset
        self.text = Text(target)
        self.scalar = VectorEmitter(self.text)
        self.uses_runtime = False
        self.probes = probes
        self.stmt: Stmt | None = None  # being emitted
        self.addresses: dict[Place, str] = {}  # of views, slots and rows, in registers of the main function
        self.rows: dict[Place, Stmt] = {}  # the statement that stores a value made in a row of an array
        self.packing = Packing(func.block, self.plan, target)
        self.work_bytes: Expr = 0  # scratch memory after the arena and the packed factors, used by one kernel at a time
        self.sized: list[Expr] = []  # offsets of the buffers whose sizes are known only at run time
        self.scratch: Expr = self.plan.arena_bytes + self.packing.bytes  # the offset of the scratch memory, which follows them
        for size in self.plan.sized:
            self.sized.append(self.scratch)
            self.scratch += -(-native_size(size) // ALIGNMENT) * ALIGNMENT

    @property
    def memory_bytes(self) -> Expr:
        """The size of all memory of a call except its buffers."""
        return self.scratch + self.work_bytes

    @property
    def buffer_count(self) -> int:
        return len(self.func.params) + len(self.func.results)

    def build(self) -> None:
        text, target = self.text, self.context.target
        self.block(self.func.block)
        self.context.is_final = True
        for param, new in self.func.updates:
            self.copy(param, new)
        entry = [f"%t{k} = getelementptr ptr, ptr %buffers, i64 {k}\n%buf{k} = load ptr, ptr %t{k}" for k in range(self.buffer_count)]
        entry += ["%code = alloca i64", "store i64 0, ptr %code"]
        if signals.LOOK in self.imports:
            entry += [f"%flag = getelementptr i64, ptr %error, i64 {signals.FLAG}", "store i64 0, ptr %flag"]
        text.jump("leave")
        text.start("leave")
        if self.probes is not None:
            entry += self.probes.enter()
            self.probes.leave(text, self.handles)
        text.lines += [*self.shrinking(stacks.KEPT_BYTES, stacks.ALL_KEPT_BYTES), *self.capacities("mul")]
        entry += self.capacities("udiv")
        text.put(f"ret i64 {text.define('load i64, ptr %code')}")
        self.declares |= text.declares
        main = self.main([*self.sizes([*entry, *text.lines]), *entry, *text.slots, *text.lines])
        runtime = []
        if self.probes is not None:
            runtime.append(self.probes.runtime())
            self.declares.add(signals.CLOCK_DECLARATION)
        if self.handles:
            release = "\n".join(self.shrinking(0, 0))
            main += f"define void @{stacks.RELEASE}(ptr %arena) nounwind {{\nentry:\n{release}\nret void\n}}\n"
        if self.uses_runtime or self.handles:
            runtime.append(stacks.runtime(target, "\n".join([*self.registers, main, *runtime])))
            self.declares |= stacks.declarations(target)
        constants = [*self.constants, *([self.context.literals.definition()] if self.context.literals is not None else [])]
        self.parts.finish("\n".join([*constants, *runtime, *self.registers, main]), self.declares, only_calls=not self.uses_runtime)

    def sizes(self, lines: list[str]) -> list[str]:
        """Instructions that define the sizes which the main function mentions: their values follow the buffers."""
        names = self.context.symbols
        if not names:
            return []
        return [f"{SIZES} = getelementptr ptr, ptr %buffers, i64 {self.buffer_count}", *definitions(lines, names)]

    def main(self, lines: list[str]) -> str:
        """The main function. If the memory that it needs is known only at run time, it is called only if the arena is large enough."""
        parameters, body = "(ptr %buffers, ptr %arena, ptr %error) nounwind", "\n".join(lines)
        if isinstance(self.memory_bytes, int):
            return f"define i64 @adjit_main{parameters} {{\nentry:\n{body}\n}}\n"
        need, count = f"{self.memory_bytes}", len(self.symbols)
        names, safe = [f'%"{name}"' for name in self.context.symbols], safe_size(self.memory_bytes)
        check = [
            *self.sizes([need, *names]),
            f"%capacity.at = getelementptr i64, ptr {SIZES}, i64 {count}",
            "%capacity = load i64, ptr %capacity.at",
            f"%checked.at = getelementptr i64, ptr {SIZES}, i64 {count + 1}",
            "%checked = load i64, ptr %checked.at",
            "%safe0 = icmp ne i64 %checked, 0",
        ]
        for k, name in enumerate(names):  # for larger sizes, these 64 bits may overflow: Python computes what the call needs
            check += [f"%small{k} = icmp sle i64 {name}, {safe}"]
        for k in range(1, count):
            check += [f"%small.all{k} = and i1 %small{k}, {f'%small.all{k - 1}' if k > 1 else '%small0'}"]
        check += [
            f"%safe = or i1 %safe0, {f'%small.all{count - 1}' if count > 1 else '%small0'}",
            f"%fits = icmp sle i64 {need}, %capacity",
            "%enough = and i1 %safe, %fits",
            "br i1 %enough, label %run, label %short",
            "run:",
            "%code = call i64 @adjit_sized_main(ptr %buffers, ptr %arena, ptr %error)",
            "ret i64 %code",
            "short:",
            f"ret i64 {TOO_SMALL}",
        ]
        checked = "\n".join(check)
        return (
            f"define internal i64 @adjit_sized_main{parameters} {{\nentry:\n{body}\n}}\n"
            f"define i64 @adjit_main{parameters} {{\nentry:\n{checked}\n}}\n"
        )

    def shrinking(self, idle: int, limit: int) -> list[str]:
        """Instructions that free stacks: unused ones with more than `idle` bytes, and those beyond `limit` bytes in all."""
        out, left = [], str(limit)
        for at, element in self.handles.items():
            out.append(f"%s{at} = getelementptr i8, ptr %arena, i64 {at}")
            size = element if limit or is_static(element) else 1  # which is kept in bytes, if it is known only at run time
            out.append(f"%left{at} = call i64 @adjit_shrink(ptr %s{at}, i64 {size}, i64 {idle}, i64 {left})")
            left = f"%left{at}"
        return out

    def capacities(self, opcode: str) -> list[str]:
        """Instructions that convert the capacities of stacks whose elements differ in size from call to call."""
        out = []
        for at, element in self.handles.items():
            if not is_static(element):
                name = f"%{opcode}{at}"
                out += [f"{name} = getelementptr i8, ptr %arena, i64 {at}", *stacks.convert_capacity(name, element, opcode, name)]
        return out

    # ---- statements

    def block(self, block: Block) -> None:
        for n, stmt in enumerate(block.stmts, 1):
            around, self.stmt = self.stmt, stmt
            before = self.text.locate(stmt.location)
            self.context.is_final |= self.writes_variable(stmt)
            self.statement(stmt)
            self.stmt = around
            self.text.locate(before)
            if n % STATEMENTS == 0:
                following = self.text.fresh_label()
                self.text.jump(following)
                self.text.start(following)

    def statement(self, stmt: Stmt) -> None:
        op = stmt.op
        if op.is_view:
            return
        self.find_rows(stmt)
        place = self.plan.places.get(id(stmt.result)) if stmt.results else None
        if place is not None and place.kind == "view":
            self.addresses[place] = lookup.address(self, stmt)
        elif isinstance(op, Constant):
            name = f"@c{self.plan.place(stmt.result).index}"  # type: ignore[arg-type]
            self.constants.append(memory.constant_bytes(name, op.data))
        elif id(stmt) in self.plan.registers:
            self.call(register_kernel(stmt, self.context))
        elif stmt.blocks:
            stmt.region.flow(Flow(self), stmt)
        elif op.takes_stacks:
            stacked.on_stack(self, stmt)
        elif op.calls_python:
            self.call_host(stmt)
        elif self.is_there(stmt):
            return
        else:
            self.call(lowered_kernel(stmt, self.context))

    def writes_variable(self, stmt: Stmt) -> bool:
        """Whether a result is written to the buffer of a parameter, rather than being a view of one."""
        roots = (self.plan.windows[id(r)].root for r in stmt.results if id(r) in self.plan.windows)
        made = (self.plan.places.get(id(root)) for root in roots if id(root) not in self.params)
        return any(place is not None and place.kind == "param" for place in made)

    def find_rows(self, stmt: Stmt) -> None:
        """Compute the addresses of results that are made in a row of an array."""
        for place in map(self.place, stmt.results):
            if place in self.rows and place not in self.addresses:
                self.addresses[place] = lookup.written_row(self, self.rows[place])

    def is_there(self, stmt: Stmt) -> bool:
        """Whether the operands of a statement were made in place, so that nothing is left to do."""
        if stmt.op.sets_rows:
            return self.place(stmt.args[1]) in self.rows
        if isinstance(stmt.op, Concatenate):
            return all(isinstance(x, Value) and self.plan.windows[id(x)].root is stmt.result for x in stmt.args)
        return False

    def call_host(self, stmt: Stmt) -> None:
        """Call back to Python for an effect, passing the addresses of its operands."""
        text, name = self.text, host.symbol(len(self.hosts))
        if any(is_symbolic(n) for a in stmt.args for n in a.type.shape):
            raise NotGeneral("printing an array whose size is known only at run time").at(stmt.location)
        operands = [self.window(a).pointer for a in stmt.args]
        self.hosts.append(host.evaluator(stmt.op, [(a.type, self.plan.windows[id(a)].layout.strides) for a in stmt.args]))
        self.declares.add(f"declare i64 @{name}(ptr)")
        code = text.define(f"call i64 @{name}(ptr {memory.table(text, operands)})")
        self.leave_if(text.define(f"icmp ne i64 {code}, 0"), code)

    # ---- kernels

    def call(self, kernel: Kernel) -> None:
        self.invoke(kernel, [self.pointer(place, offset) for place, offset in kernel.pointers])

    def invoke(self, kernel: Kernel, arguments: list[str], copied: TensorType | None = None) -> None:
        """Call a kernel; leave if it returns an error code. `copied`: the type of the value if the kernel only copies one."""
        text, name = self.text, self.function(kernel)
        if kernel.work_bytes:
            self.work_bytes = upper(self.work_bytes, kernel.work_bytes)
            arguments = [*arguments, self.moved("%arena", self.scratch)]
        arguments = [*arguments, *kernel.sizes_table]
        began = text.define("call i64 @adjit_now()") if self.probes is not None else ""
        if kernel.leaves:
            code = text.define(f"call i64 @{name}({', '.join(f'ptr {a}' for a in (*arguments, '%error'))})")
        else:
            text.put(f"call void @{name}({', '.join(f'ptr {a}' for a in arguments)})")
        if self.probes is not None:
            text.put(self.probes.record(began, self.stmt, copied))
        if not kernel.leaves:
            return
        shift = len(self.failures)
        self.failures += kernel.failures
        failed = self.scalar.compare("gt", Reg(code, I64), self.scalar.const(I64, 0))
        shifted = text.define(f"add i64 {code}, {shift}")
        final = self.scalar.select(failed, Reg(shifted, I64), Reg(code, I64))
        self.leave_if(text.define(f"icmp ne i64 {code}, 0"), final.name)

    def fail_if(self, condition: Reg, failure: Failure, detail: Reg) -> None:
        self.failures.append(failure)
        self.leave_if(condition.name, str(len(self.failures)), detail)

    def leave_if(self, condition: str, code: str, detail: Reg | None = None) -> None:
        text, going, staying = self.text, self.text.fresh_label(), self.text.fresh_label()
        text.put(f"br i1 {condition}, label %{going}, label %{staying}")
        text.start(going)
        if detail is not None:
            memory.store(text, "%error", detail, "0", 1, 1)
        text.put(f"store i64 {code}, ptr %code")
        text.jump("leave")
        text.start(staying)

    def function(self, kernel: Kernel) -> str:
        """The name of the kernel's function; an identical existing function is reused."""
        self.imports |= kernel.imported()
        if self.context.target.hosted:
            library.start(kernel.imported(), self.context.target)
        definition = kernel.definition()
        if definition not in self.functions:
            name = self.functions[definition] = f"k{len(self.functions)}"
            self.programs[name] = kernel.program
            self.define(kernel, definition.replace("@{}", f"@{name}"), kernel.declaration(name))
        return self.functions[definition]

    def define(self, kernel: Kernel, definition: str, declaration: str) -> None:
        outlined = self.context.outlined or {}
        for name, function in outlined.items():
            if name not in self.outlined:
                self.parts.add(*function)
        self.outlined |= outlined.keys()
        if kernel.uses_runtime:
            self.uses_runtime = True
            self.registers.append(definition)
            self.declares |= kernel.text.declares
        else:
            self.parts.add(definition, declaration, kernel.text.declares)
            self.declares.add(declaration)

    # ---- buffers

    def place(self, value: Operand) -> Place | None:
        """The buffer that holds a value; None if there is none, as for literals and values in registers."""
        window = self.plan.windows.get(id(value))
        return self.plan.places.get(id(window.root)) if window is not None else None

    def pointer(self, place: Place, offset: Expr = 0) -> str:
        if place in self.addresses:
            return self.moved(self.addresses[place], offset)
        if place.kind == "sized":
            return self.moved("%arena", self.sized[place.index] + offset)
        base = {"arena": "%arena", "constant": f"@c{place.index}", "param": f"%buf{place.index}", "literals": "@literals"}.get(place.kind)
        if base is None:
            base = f"%buf{len(self.func.params) + place.index}"
        return self.moved(base, offset + (place.index if place.kind == "arena" else 0))

    def moved(self, base: str, offset: Expr) -> str:
        return base if isinstance(offset, int) and offset == 0 else self.text.define(f"getelementptr i8, ptr {base}, i64 {offset}")

    def window(self, value: Operand) -> Access:
        """The access to a value from the main function."""
        window = self.plan.windows[id(value)]
        place = self.plan.places[id(window.root)]
        pointer = self.pointer(place, native_size(window.layout.offset) * value.type.dtype.itemsize)
        return Access(pointer, native_shape(window.layout.strides), value.type.dtype)

    def read(self, value: Operand) -> Reg:
        """Load a scalar into a register of the main function."""
        if isinstance(value, Literal):
            return self.scalar.const(value.type.dtype, value.value)
        return memory.load(self.text, self.window(value).pointer, value.type.dtype, "0", 1, 1)

    def copy(self, target: Value, source: Operand) -> None:
        """Copy a value into another's buffer, unless it was made there."""
        if isinstance(source, Value) and self.plan.place(source) == self.plan.place(target):
            return
        if isinstance(target.type, StackType):
            self.allocate(stacks.copy_call(self.handle(target), self.handle(source), target.type.element))
            return
        self.copy_to(self.window(target).pointer, source)

    def copy_all(self, targets: Sequence[Operand], sources: Sequence[Operand]) -> None:
        for target, source in zip(targets, sources, strict=True):
            assert isinstance(target, Value)
            self.copy(target, source)

    def copy_to(self, pointer: str, source: Operand) -> None:
        shape, dtype = native_shape(source.type.shape), source.type.dtype
        target = Access("%p0", row_major(shape), dtype)
        if isinstance(source, Literal):
            kernel = Kernel(self.context)
            kernel.take_pointers(1)
            value = source.value
            kernel.add_nest(NestSpec(shape, [], [target], [], lambda c: c.put(0, c.emit.const(dtype, value))))
            self.invoke(kernel, [pointer], source.type)
            return
        window = self.window(source)
        kernel = copy_kernel(target, window._replace(pointer="%p1"), shape, self.context)
        self.invoke(kernel, [pointer, window.pointer], source.type)

    # ---- stacks

    def handle(self, stack: Operand) -> str:
        return self.pointer(self.plan.place(stack))  # type: ignore[arg-type]

    def allocate(self, call: str) -> None:
        """Emit an allocating call; leave if it reports that there is no memory."""
        self.uses_runtime = True
        failed = self.text.define(f"xor i1 {self.text.define(call)}, true")
        self.leave_if(failed, str(stacks.OUT_OF_MEMORY))
