"""The environment variables that adjit reads: one table, from which docs/settings.md is generated."""

from __future__ import annotations

import os
from collections.abc import Collection

VARIABLES: dict[str, str] = {
    "ADJIT_NUM_THREADS": "threads of large kernels; by default, one for each core that the process may use",
    "ADJIT_TARGET": "CPU that code is generated for: `host`, the default; `x86-64`, `x86-64-v2`, `x86-64-v3` or `x86-64-v4`, if this CPU "
    "supports it; `generic` on other architectures",
    "ADJIT_VECTOR_BYTES": "`16`, `32` or `64`: width of vectors, instead of the target's own. Any width runs on any CPU",
    "ADJIT_CACHE_DIR": "folder of the [disk cache](cache.md); by default `$XDG_CACHE_HOME/adjit`, or `~/.cache/adjit`",
    "ADJIT_CACHE": "`0` switches the disk cache off",
    "ADJIT_BLAS": "`own` or `openblas`: which implementation computes matrix products, instead of the one that `aj.tune()` measured",
    "ADJIT_RANKS_TIMEOUT": "seconds that the first call of a function with [collectives](distributed.md) waits for other ranks; 300 by "
    "default",
    "ADJIT_DYNAMIC": "`auto`, `1` or `0`: initial value of `config.dynamic`. `first`: sizes of the first array are symbols from the first "
    "call on; for tests of adjit itself",
    "ADJIT_EAGER": "`1`: initial value of `config.eager`",
    "ADJIT_DEBUG_NANS": "`1`: initial value of `config.debug_nans`",
    "ADJIT_DEBUG_LINES": "`1`: initial value of `config.debug_lines`",
    "ADJIT_FULL_TRACEBACKS": "`1`: initial value of `config.full_tracebacks`",
    "ADJIT_LOST_GRADIENT": "initial value of `config.lost_gradient`",
    "ADJIT_DUMP": "initial value of `config.dump`",
    "ADJIT_DUMP_DIR": "initial value of `config.dump_directory`",
    "ADJIT_VERIFY": "`1`: check the rules of the IR after every pass; for work on adjit itself",
}


def value(name: str, default: str = "") -> str:
    """The value of an environment variable from the table, or `default`."""
    assert name in VARIABLES, f"{name} is not in the table of variables"
    return os.environ.get(name, default)


def is_set(name: str) -> bool:
    """Whether a variable is set to a value other than the empty string and 0."""
    return value(name) not in ("", "0")


def choice(name: str, allowed: Collection[str], default: str) -> str:
    """The value of a variable with a fixed set of values; the default if it is unset or empty."""
    given = value(name) or default
    if given not in allowed:
        raise ValueError(f"{name}={given}: choose one of {', '.join(each for each in allowed if each)}")
    return given
