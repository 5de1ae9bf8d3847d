"""`python -m adjit.tune`: measure this machine's matrix products, and store which implementation is fastest.

Importing this module binds the name `adjit.tune` to it, so the module is callable like the function of that name.
"""

import sys
from types import ModuleType
from typing import Any

from adjit.runtime.tune import main, tune


class _Tune(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return tune(*args, **kwargs)


sys.modules[__name__].__class__ = _Tune

if __name__ == "__main__":
    main()
