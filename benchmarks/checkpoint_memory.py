"""Peak memory and time of the gradient of a long loop, with and without `checkpoint=`, compared with the forward run of the same code.

    python benchmarks/checkpoint_memory.py [--trips 10000000]

The loop integrates a pendulum by symplectic Euler steps: a state of two numbers. Each row is a separate process: `growth` is the increase
of its peak memory over that of a run of ten iterations, `peak` is all of it, including Python, NumPy and LLVM.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

import adjit as aj

WAYS = ("forward", "none", "sqrt", "binomial", "1000")


def peak_bytes() -> int:
    """The peak memory of this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def pendulum_with(how):
    def pendulum(gravity, angle, steps):
        """The angle after `steps` steps."""
        speed = 0.0
        for _ in aj.range(steps, checkpoint=how):
            speed = speed - 1e-4 * gravity * np.sin(angle)
            angle = angle + 1e-4 * speed
        return angle

    return pendulum


def measure(way: str, trips: int) -> None:
    """Print growth, peak, seconds and the result."""
    pendulum = pendulum_with(int(way) if way.isdigit() else "none" if way == "forward" else way)
    run = aj.function(pendulum if way == "forward" else aj.grad(pendulum, (0, 1)))
    run(2.0, 1.0, 10)
    before, start = peak_bytes(), time.perf_counter()
    out = run(2.0, 1.0, trips)
    seconds = time.perf_counter() - start
    result = [float(x) for x in (out if isinstance(out, tuple) else (out,))]
    print(peak_bytes() - before, peak_bytes(), seconds, *result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trips", type=int, default=10_000_000)
    parser.add_argument("--way", choices=WAYS, help="measure one way in this process")
    options = parser.parse_args()
    if options.way:
        measure(options.way, options.trips)
        return
    print(f"{options.trips:,} trips")
    print(f"{'':10} {'growth':>10} {'peak':>10} {'seconds':>9} {'forward':>9}   gradient for gravity and first angle")
    forward = 0.0
    for way in WAYS:
        command = [sys.executable, __file__, "--trips", str(options.trips), "--way", way]
        growth, peak, seconds, *result = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        forward = forward or float(seconds)
        gradient = "  ".join(f"{float(x):.10g}" for x in result) if way != "forward" else ""
        sizes = f"{int(growth) / 1e6:7.1f} MB {int(peak) / 1e6:7.1f} MB"
        print(f"{way:10} {sizes} {float(seconds):9.3f} {float(seconds) / forward:8.1f}x   {gradient}")


if __name__ == "__main__":
    main()
