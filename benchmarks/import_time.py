"""The cost of `import adjit` over `import numpy`: the difference of medians over fresh processes, which alternate.

python benchmarks/import_time.py [--runs 15] [--modules]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

BUDGET_MS = 60.0
CODE = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def seconds(module: str) -> float:
    """Time of one import in a fresh interpreter, without interpreter start-up."""
    return float(subprocess.run([sys.executable, "-c", CODE.format(module)], capture_output=True, text=True, check=True).stdout)


def slowest_modules(count: int) -> list[str]:
    """The modules with the largest own time in `-X importtime`, without NumPy's."""
    run = subprocess.run([sys.executable, "-X", "importtime", "-c", "import numpy, sys; sys.stderr.write('MARK\\n'); import adjit"],
                         capture_output=True, text=True, check=True)  # fmt: skip
    rows = [line.removeprefix("import time:").split("|") for line in run.stderr.partition("MARK\n")[2].splitlines() if "|" in line]
    rows.sort(key=lambda row: -int(row[0]))
    return [f"{int(own) / 1000:8.2f} ms  {name.strip()}" for own, _, name in rows[:count]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="processes for each of the two imports")
    parser.add_argument("--modules", action="store_true", help="list the modules that cost the most")
    options = parser.parse_args()
    seconds("numpy"), seconds("adjit")  # warm up bytecode and file cache
    numpy_s, adjit_s = zip(*((seconds("numpy"), seconds("adjit")) for _ in range(options.runs)), strict=True)
    numpy_ms, adjit_ms = 1e3 * statistics.median(numpy_s), 1e3 * statistics.median(adjit_s)
    least_ms = 1e3 * (min(adjit_s) - min(numpy_s))
    print(f"import numpy {numpy_ms:6.1f} ms")
    print(f"import adjit {adjit_ms:6.1f} ms   (numpy included)")
    print(f"adjit alone  {adjit_ms - numpy_ms:6.1f} ms   (difference of minima {least_ms:.1f} ms; budget {BUDGET_MS:.0f} ms)")
    if options.modules:
        print(*slowest_modules(20), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
