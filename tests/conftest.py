"""The verifier runs after every pass in tests. So nothing but object code comes from the disk: tests that change a pass see it run."""

import os

os.environ["ADJIT_VERIFY"] = "1"
