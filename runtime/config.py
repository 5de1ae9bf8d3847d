"""Process-wide settings, as attributes of `config`; their initial values come from the environment.

`FIELDS` documents each setting; docs/settings.md is generated from it.
"""

from __future__ import annotations

from typing import Any

from adjit.ir.environment import choice, is_set, value
from adjit.ir.gate import gate
from adjit.ir.tracebacks import shown

FIELDS: dict[str, str] = {
    "eager": "run decorated functions as plain Python, op by op",
    "debug_nans": "look for the first NaN or infinity in compiled functions, and raise with the user's line",
    "debug_lines": "record the user's lines in functions compiled from now on, for [debuggers and profilers](profiling.md#debug-lines)",
    "lost_gradient": '"raise" or "warn", if a value that is being differentiated [is converted to NumPy](interop.md#lost-gradients)',
    "full_tracebacks": "show adjit's own frames in the tracebacks of errors",
    "dynamic": 'the default of [`function(dynamic=...)`](dynamic.md), for functions created from now on: "auto", True or False',
    "threads": "threads of large kernels, for functions compiled from now on; None: all cores, or `ADJIT_NUM_THREADS`",
    "dump": 'name of a pass, or "all": write the IR after it to a file',
    "dump_directory": 'folder of the dumps; "adjit-dump" by default',
}


DYNAMIC: dict[str, bool | str] = {"auto": "auto", "0": False, "1": True, "first": "first", "leading": "leading"}  # by ADJIT_DYNAMIC


class Config:
    """Process-wide settings. Assigning a misspelt name raises an error."""

    __slots__ = ("eager", "debug_nans", "debug_lines", "lost_gradient", "full_tracebacks", "dynamic", "threads", "dump", "dump_directory")

    eager: bool
    debug_nans: bool
    debug_lines: bool
    lost_gradient: str
    full_tracebacks: bool
    dynamic: bool | str
    threads: int | None
    dump: str
    dump_directory: str

    def __init__(self) -> None:
        self.eager = is_set("ADJIT_EAGER")
        self.debug_nans = is_set("ADJIT_DEBUG_NANS")
        self.debug_lines = is_set("ADJIT_DEBUG_LINES")
        self.lost_gradient = value("ADJIT_LOST_GRADIENT", "raise")
        self.full_tracebacks = shown.full
        self.dynamic = DYNAMIC[choice("ADJIT_DYNAMIC", DYNAMIC, "auto")]
        self.threads = None
        self.dump = value("ADJIT_DUMP")
        self.dump_directory = value("ADJIT_DUMP_DIR", "adjit-dump")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__slots__:
            raise AttributeError(f"there is no setting {name!r}; the settings are {', '.join(self.__slots__)}")
        if name == "lost_gradient" and value not in ("raise", "warn"):
            raise ValueError(f"lost_gradient is 'raise' or 'warn', not {value!r}")
        if name == "threads":
            check_threads(value)
        if name == "dynamic":
            check_dynamic(value)
        if name in ("eager", "debug_nans") and bool(value) != getattr(self, name, False):
            (gate.close if value else gate.open)(lasting=True)
        if name == "full_tracebacks":
            shown.full = bool(value)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def check_threads(value: Any) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"threads must be a positive integer, or None for all cores, not {value!r}")


def check_dynamic(value: Any) -> None:
    if not any(value is known or value == known == str(value) for known in DYNAMIC.values()):
        raise ValueError(f'dynamic must be False, True or "auto", not {value!r}')


config = Config()
