"""The verifier runs after every pass in tests. So only object code is read from the disk cache, and tests that change a pass see it run.

The random programs of a run begin at a seed, which the head of the run prints. It is the same for everybody who runs the tests;
`ADJIT_PROGRAMS_SEED` chooses others.
"""

import os
import signal

import pytest

os.environ["ADJIT_VERIFY"] = "1"
os.environ.setdefault("ADJIT_PROGRAMS_SEED", "0")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for a job that a shell runs in the background: Ctrl-C is part of the tests
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ADJIT_DYNAMIC=first, functions are compiled for all sizes of their first argument: tests of a single size do not apply."""
    if os.environ.get("ADJIT_DYNAMIC", "auto") in ("auto", ""):
        return
    for item in items:
        mark = item.get_closest_marker("one_size")
        if mark is not None:
            item.add_marker(pytest.mark.skip(reason=f"about programs for one size: {mark.args[0]}"))


@pytest.fixture(scope="session", autouse=True)
def _entry_is_compiled() -> None:
    """As in a process that finds it on the disk: functions have the native entry from their first call on."""
    from adjit.codegen.entry import entry

    if entry.available():
        entry.begin().result()


def pytest_report_header() -> str:
    return f"random programs: ADJIT_PROGRAMS_SEED={os.environ['ADJIT_PROGRAMS_SEED']}"
