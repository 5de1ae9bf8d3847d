"""The table of control-flow programs: `PROGRAMS`."""

from tests.autograph import branching, listing, looping, numerics, objects, stacks
from tests.autograph.table import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program", "branching", "listing", "looping", "numerics", "objects", "stacks"]
