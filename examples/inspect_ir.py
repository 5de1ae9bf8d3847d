"""Show the stages of a small loss: traced, differentiated, simplified, fused, compiled.

python examples/inspect_ir.py
"""

import numpy as np

import adjit as aj


@aj.function
def loss_and_gradient(w, x, t):
    with aj.GradientTape() as tape:
        tape.watch(w)
        y = np.tanh(w @ x)
        e = y - t
        loss = np.sum(e * e)
    return loss, tape.gradient(loss, w)


seen = loss_and_gradient.inspect(np.zeros((3, 4)), np.zeros(4), np.zeros(3))

print("--- as the tracer wrote it, with the lines of this file\n")
print(seen.traced)
print("--- the forward part, and what it saves\n")
print(seen.forward)
print("--- the backward part: .bar is a cotangent; each op has the location of its forward op\n")
print(seen.backward)
print("--- after all passes: each `fuse` region becomes one loop\n")
print(seen.optimized)
print("--- ops after each pass\n")
for stage in seen.passes:
    print(f"{stage.name:>36}  {stage.ops:3d}  {'#' * stage.ops}")
print(f"\n--- native code: {len(seen.llvm.splitlines())} lines of LLVM IR, {len(seen.asm.splitlines())} lines of assembly")
