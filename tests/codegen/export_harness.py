"""Shared by the tests of exported code: many functions are exported, called by one program in C, C++ or JavaScript, and compared.

The program reads the arguments of all calls from one file and writes codes, results and states to another.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from adjit.codegen.export import targets
from adjit.codegen.export.header import header
from adjit.codegen.export.interface import C_TYPES, Interface, InterfaceSlot, in_pairs
from adjit.codegen.export.javascript import script
from adjit.codegen.export.program import object_code, program
from adjit.codegen.export.wasm import module
from adjit.ir.func import Func
from adjit.ir.ops.base import Array
from adjit.ir.target import Target
from adjit.ir.types import DType
from adjit.passes.pipeline import OPTIMIZE
from adjit.runtime.export import Outside, outside
from adjit.runtime.function import Function

STRICT = ["-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
C99, CPP = ["gcc", "-std=c99", *STRICT], ["g++", "-std=c++11", *STRICT]
ARM = ["aarch64-linux-gnu-gcc", "-std=c99", "-static", *STRICT]

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{includes}
static FILE *from, *to;
static void take(void *at, size_t size) {{ if (size && fread(at, 1, size, from) != size) abort(); }}
static void put(const void *at, size_t size) {{ if (size && fwrite(at, 1, size, to) != size) abort(); }}
{functions}
int main(int count, char **names)
{{
    (void)take, (void)put;
    if (count != 3 || !(from = fopen(names[1], "rb")) || !(to = fopen(names[2], "wb"))) return 1;
{calls}
    return fclose(from) || fclose(to);
}}
"""
FUNCTION = """
static void run_{name}(void)
{{
    int k, code;
    static unsigned char arena[{upper}_ARENA_BYTES];
{buffers}
    for (k = 0; k < {count}; k++) {{
{taken}
        code = {name}({arguments});
        put(&code, sizeof code);
{given}
    }}
    {name}_release(arena);
{fields}
}}
"""
RUN = """
  for (let k = 0; k < calls; k++) {
    for (const view of Object.values(run.inputs)) {
      bytes(view).set(input.subarray(at, at + view.byteLength));
      at += view.byteLength;
    }
    let code = 0;
    try { run(); } catch (error) { if (!(error instanceof Error)) throw error; code = 1; }
    out.push(new Uint8Array(new Int32Array([code]).buffer));
    for (const view of Object.values(run.results)) out.push(bytes(view).slice());
  }
  for (const view of Object.values(run.state)) out.push(bytes(view).slice());
"""
NODE = """
import fs from "node:fs";
const [plan, from, to] = process.argv.slice(2);
const input = fs.readFileSync(from), out = [];
let at = 0;
const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
for (const [file, calls] of JSON.parse(fs.readFileSync(plan))) {
  const { load } = await import(file);
  const run = await load();
%s
}
fs.writeFileSync(to, Buffer.concat(out));
"""
PAGE = """
<!doctype html><body></body>
<script type="module">
WebAssembly.compile = async (code) => new WebAssembly.Module(code); // a page that is dumped does not wait for other threads
WebAssembly.instantiate = async (module) => new WebAssembly.Instance(module);
const MODULES = [%s], INPUT = "%s";
const decoded = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
const hex = (array) => Array.from(array, (b) => b.toString(16).padStart(2, "0")).join("");
const input = decoded(INPUT), out = [];
let at = 0;
for (const [load, wasm, calls] of MODULES) {
  const run = await load(decoded(wasm));
%s
}
document.body.textContent = `DONE ${out.map(hex).join("")} DONE`;
</script>
"""


def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("there is no Chromium")
    return found


def shown(page: Path, fragment: str = "", milliseconds: int = 3000) -> str:
    """The page after some time in a browser, which must not complain."""
    profile = page.parent / "profile"
    command = [
        browser(), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--virtual-time-budget={milliseconds}",
        "--dump-dom", f"--user-data-dir={profile}", f"file://{page}{fragment}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "HOME": str(page.parent)})
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def compiled(folder: Path, source: str, *objects: str, compiler: Sequence[str] = C99, flags: Sequence[str] = ()) -> str:
    """A program of one source file and objects or libraries of the folder."""
    need(compiler[0])
    path, out = folder / ("main.cpp" if "g++" in compiler[0] else "main.c"), folder / "main"
    path.write_text(source)
    command = [*compiler, "-o", str(out), str(path), *(str(folder / each) for each in objects), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(out)


def output(*command: str, status: int = 0) -> str:
    """The output of a command."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


class Outcome(NamedTuple):
    """The outcome of the calls of one function: a code and results for each, and the variables after the last."""

    codes: list[int]
    results: list[list[Array]]
    state: list[Array]


@dataclass
class Entry:
    made: Outside
    calls: Sequence[Sequence[Array]]


@dataclass
class Batch:
    """Functions for one target, in a separate folder."""

    folder: Path
    target_name: str = "host"
    threads: int = 1
    entries: list[Entry] = field(default_factory=list)

    @property
    def target(self) -> Target:
        return targets.named(self.target_name, self.threads)

    def add_func(self, func: Func, *calls: Sequence[Array]) -> None:
        """A Func without variables."""
        made = program(OPTIMIZE.run(func, None, self.target), self.target)
        both = (("x", func.params), ("r", func.results))
        slots = [[InterfaceSlot(f"{kind}{k}", in_pairs(v.type)) for k, v in enumerate(values)] for kind, values in both]
        interface = Interface(f"f{len(self.entries)}", tuple(slots[0]), (), tuple(slots[1]), made.errors, made.memory)
        self._add(Outside(func, made, interface, []), calls)

    def add(self, function: Function, calls: Sequence[Sequence[Array]], args: tuple[Any, ...]) -> None:
        """A compiled function as it is exported for `args`; `calls` are the arrays of its traced arguments."""
        self._add(outside(function._traced_alone(args, {}), self.target, f"f{len(self.entries)}"), calls)

    def _add(self, made: Outside, calls: Sequence[Sequence[Array]]) -> None:
        self.entries.append(Entry(made, calls))
        base, interface = str(self.folder / made.interface.name), made.interface
        if self.target_name == "wasm32":
            wasm = module(made.program, interface, made.constants, self.target)
            Path(f"{base}.wasm").write_bytes(wasm.code)
            Path(f"{base}.mjs").write_text(script(interface, wasm, "a test", f"{interface.name}.wasm"))
        else:
            Path(f"{base}.o").write_bytes(object_code(made.program, interface, made.constants, self.target))
            Path(f"{base}.h").write_text(header(interface, "a test", self.target_name, self.threads))

    def run(self, compiler: Sequence[str] = C99, runner: Sequence[str] = ()) -> list[Outcome]:
        """Call all functions from one program."""
        given, got = self.folder / "given", self.folder / "got"
        given.write_bytes(self._given())
        if self.target_name == "wasm32":
            need("node")
            command = ["node", *self._script(), str(given), str(got)]
        else:
            objects = [f"{e.made.interface.name}.o" for e in self.entries]
            flags = ["-lpthread"] if self.threads > 1 else []
            command = [*runner, compiled(self.folder, self.source(), *objects, compiler=compiler, flags=flags), str(given), str(got)]
        output(*command)
        rest = _Rest(got.read_bytes())
        return [self._outcome(entry, rest) for entry in self.entries]

    def run_in_browser(self) -> list[Outcome]:
        """The same in a page of Chromium, for WebAssembly."""
        encoded = lambda data: base64.b64encode(data).decode()  # noqa: E731
        modules = []
        for entry in self.entries:
            script, wasm = (self.folder / f"{entry.made.interface.name}.{kind}" for kind in ("mjs", "wasm"))
            text = script.read_text().replace("export async function load", "async function load")
            modules.append(f'[(() => {{ {text}; return load; }})(), "{encoded(wasm.read_bytes())}", {len(entry.calls)}]')
        page = self.folder / "page.html"
        page.write_text(PAGE % (", ".join(modules), encoded(self._given()), RUN))
        found = re.search(r"DONE ([0-9a-f]+) DONE", shown(page, milliseconds=20_000))
        assert found is not None
        rest = _Rest(bytes.fromhex(found[1]))
        return [self._outcome(entry, rest) for entry in self.entries]

    def _given(self) -> bytes:
        return b"".join(a.tobytes() for e in self.entries for call in e.calls for a in call)

    def _outcome(self, entry: Entry, rest: _Rest) -> Outcome:
        interface, codes, results = entry.made.interface, [], []
        for _ in entry.calls:
            codes.append(int(rest.take(np.dtype("i4"), ())))
            results.append([rest.take(s.type.dtype, s.type.shape) for s in interface.results])
        return Outcome(codes, results, [rest.take(f.type.dtype, f.type.shape) for f in interface.fields])

    def _script(self) -> list[str]:
        path, plan = self.folder / "run.mjs", self.folder / "plan.json"
        path.write_text(NODE % RUN)
        plan.write_text(json.dumps([[str(self.folder / f"{e.made.interface.name}.mjs"), len(e.calls)] for e in self.entries]))
        return [str(path), str(plan)]

    def source(self) -> str:
        names = [e.made.interface.name for e in self.entries]
        return PROGRAM.format(
            includes="\n".join(f'#include "{name}.h"' for name in names),
            functions="".join(_function(e.made.interface, len(e.calls)) for e in self.entries),
            calls="\n".join(f"    run_{name}();" for name in names),
        )


class _Rest:
    """The rest of the output."""

    def __init__(self, content: bytes) -> None:
        self.content = memoryview(content)

    def take(self, dtype: DType, shape: tuple[int, ...]) -> Array:
        size = dtype.itemsize * int(np.prod(shape))
        out = np.frombuffer(self.content[:size], dtype).reshape(shape)
        self.content = self.content[size:]
        return out


def _function(interface: Interface, count: int) -> str:
    name, buffers, taken, given, arguments = interface.name, [], [], [], []
    for slot in interface.arguments:
        kind, size, own = C_TYPES[slot.type.dtype], slot.type.size, f"given_{slot.name}"
        buffers.append(f"    static {kind} {own}[{max(1, size)}];")
        taken.append(f"        take({own}, {size} * sizeof *{own});")
        arguments.append(own if slot.type.shape else f"*{own}")
    if interface.is_stateful:
        buffers.append(f"    {name}_state *state = ({name}_state *)malloc(sizeof *state);\n    *state = {name}_initial;")
        arguments.append("state")
    for slot in interface.results:
        own = f"result_{slot.name}"
        buffers.append(f"    static {C_TYPES[slot.type.dtype]} {own}[{max(1, slot.type.size)}];")
        given.append(f"        put({own}, {slot.type.size} * sizeof *{own});")
        arguments.append(own)
    fields = [f"    put(&state->{f.name}, sizeof state->{f.name});" for f in interface.fields]
    return FUNCTION.format(
        name=name, upper=name.upper(), count=count, buffers="\n".join(buffers), taken="\n".join(taken), given="\n".join(given),
        arguments=", ".join([*arguments, "arena"]), fields="\n".join([*fields, *(["    free(state);"] if fields else [])]),
    )  # fmt: skip


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")


def ulps(got: Array, wanted: Array) -> float:
    """The largest difference, in units of the last place of the largest number of the array; complex numbers are pairs."""
    wanted = np.ascontiguousarray(wanted).view(got.dtype).reshape(got.shape)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(got[~finite & ~np.isnan(wanted)], wanted[~finite & ~np.isnan(wanted)])
    if not finite.any():
        return 0.0
    largest = np.abs(wanted[finite]).max()
    return float(np.abs(got[finite] - wanted[finite]).max() / np.spacing(largest or np.finfo(wanted.dtype).tiny))


EVERYTHING = bool(os.environ.get("ADJIT_EXPORT"))  # more than fits the time of a usual run
