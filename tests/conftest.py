"""The verifier runs after every pass in tests. So nothing but object code comes from the disk: tests that change a pass see it run.

The random programs of a run are new ones each time. Their seed is drawn here, before workers start, which take it from the environment.
"""

import os
import random

os.environ["ADJIT_VERIFY"] = "1"
os.environ.setdefault("ADJIT_PROGRAMS_SEED", str(random.SystemRandom().randrange(10**9)))


def pytest_report_header() -> str:
    return f"random programs: ADJIT_PROGRAMS_SEED={os.environ['ADJIT_PROGRAMS_SEED']}"
