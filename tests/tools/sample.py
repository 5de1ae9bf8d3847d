"""A pytest plugin that runs a few random cases of every parametrised test: the lines that they cover, the whole suite covers too.

python -m pytest -p tests.tools.sample --sample 10 --sample-whole test_compiled_is_eager --sample-whole tests/passes
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--sample", type=int, metavar="N", help="run at most N cases of a parametrised test")
    parser.addoption("--sample-seed", type=int, default=0, metavar="SEED")
    parser.addoption("--sample-whole", action="append", default=[], metavar="NAME", help="a test, or a folder, with all cases")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    most = config.getoption("--sample")
    if most is None:
        return
    cases: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for test, of_test in cases.items():
        whole = any(name == test.rpartition("::")[2] or test.startswith(f"{name}/") for name in config.getoption("--sample-whole"))
        draw = random.Random(f"{config.getoption('--sample-seed')} {test}")  # every worker of pytest-xdist draws the same
        kept.update(of_test if whole or len(of_test) <= most else draw.sample(of_test, most))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
