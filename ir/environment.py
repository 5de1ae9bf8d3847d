"""The environment variables that adjit reads: one table, from which docs/settings.md is made."""

from __future__ import annotations

import os

VARIABLES: dict[str, str] = {
    "ADJIT_NUM_THREADS": "threads of large kernels; by default, one for each core that the process may use",
    "ADJIT_CACHE_DIR": "folder of the [disk cache](cache.md); by default `$XDG_CACHE_HOME/adjit`, or `~/.cache/adjit`",
    "ADJIT_CACHE": "`0` switches the disk cache off",
    "ADJIT_BLAS": "`own` or `openblas`: who computes matrix products, instead of the choice that `aj.tune()` measured",
    "ADJIT_EAGER": "`1`: first value of `config.eager`",
    "ADJIT_DEBUG_NANS": "`1`: first value of `config.debug_nans`",
    "ADJIT_DUMP": "first value of `config.dump`",
    "ADJIT_DUMP_DIR": "first value of `config.dump_directory`",
    "ADJIT_VERIFY": "`1`: check the rules of the IR after every pass; for work on adjit itself",
}


def value(name: str, default: str = "") -> str:
    """What the environment says for a variable of the table, or `default`."""
    assert name in VARIABLES, f"{name} is not in the table of variables"
    return os.environ.get(name, default)


def is_set(name: str) -> bool:
    """Whether a variable is there, and neither empty nor 0."""
    return value(name) not in ("", "0")
