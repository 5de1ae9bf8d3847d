"""Modules named `tensorflow...` implemented with `adjit.tf`: TensorFlow's own test files import them (see `tensorflow_tests`).

A name is looked up in a table of this file, then in the namespaces of `adjit.tf`. What neither has is a placeholder: importing a test file
never fails, using such a name in a test raises `MissingName`, or `Excluded` where the module is one of `OUT_OF_SCOPE`.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import os
import re
import types
from typing import Any, ClassVar

from adjit import tf

from .tensorflow_names import BY_MODULE, SPECIAL
from .tensorflow_scope import Excluded, reason


class MissingName(AttributeError):
    """A test that uses a name that adjit.tf does not have."""


class Placeholder:
    """A name that is not there: it can be imported, named, inherited from and put into tables of parameters, but not used."""

    def __init__(self, module: str, name: str) -> None:
        self.__dict__["_name"] = (module, name)

    def _refuse(self) -> Any:
        module, name = self._name
        why = reason(module, name)
        raise Excluded(f"excluded: {why} ({module}.{name})") if why else MissingName(f"adjit.tf has no {module}.{name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if _importing:
            return Placeholder(*self._name)
        return self._refuse()

    def __call__(self, *args: Any, **named: Any) -> Any:
        if _importing:
            return args[0] if len(args) == 1 and callable(args[0]) and not named else Placeholder(*self._name)
        return self._refuse()

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __getitem__(self, key: Any) -> Any:
        return Placeholder(*self._name) if _importing else self._refuse()

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__


class _Refusing(type):
    """The class of placeholders for classes: `isinstance` is False, making one raises."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if _importing or "placeholder" not in cls.__dict__:
            return super().__call__()
        return cls.placeholder._refuse()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or name == "placeholder":
            raise AttributeError(name)
        return Placeholder(*cls.placeholder._name) if _importing else cls.placeholder._refuse()


def placeholder(module: str, name: str) -> Any:
    """A replacement for a missing name: a class if it is spelt like one."""
    found = Placeholder(module, name)
    return _Refusing(name, (), {"placeholder": found}) if name[:1].isupper() and not name.isupper() else found


_importing = False


@contextlib.contextmanager
def importing() -> Any:
    """While a test file is imported, placeholders may be called: they decorate, and fill tables of parameters."""
    global _importing
    _importing = True
    try:
        yield
    finally:
        _importing = False


MISSING = object()
SPACES = [
    "",
    *[
        "math",
        "nn",
        "linalg",
        "random",
        "autodiff",
        "nest",
        "errors",
        "data",
        "dtypes",
        "debugging",
        "autograph",
        "signal",
        "config",
        "train",
        "saved_model",
        "types",
    ],
]


def _public(space: str, name: str) -> Any:
    """A name that a namespace of `adjit.tf` shows; MISSING where it has none."""
    try:
        owner = getattr(tf, space) if space else tf
        return getattr(owner, name) if name in dir(owner) or not space else MISSING
    except (AttributeError, tf.errors.UnimplementedError):
        return MISSING


def find(module: str, name: str) -> Any:
    """The object for a name of one of TensorFlow's modules: first from the namespace that the module belongs to."""
    last = module.rpartition(".")[2]
    if (last, name) in BY_MODULE:
        return BY_MODULE[last, name]
    if name in SPECIAL:
        return SPECIAL[name]
    if not reason(module, name):
        own = [space for space in SPACES if space and re.match(rf"{space}(_|$)", last)]
        tried = [(space, spelling) for spelling in (name, name.removesuffix("_v2")) for space in (*own, *SPACES)]
        for space, spelling in (*tried, ("random", name.removeprefix("random_"))):
            found = _public(space, spelling)
            if found is not MISSING:
                return found
    return placeholder(module, name)


PACKAGES = re.compile(
    r"tensorflow\.(python|core)(\.(ops|framework|eager|platform|util|client|training|saved_model|checkpoint|module|data|layers|compat"
    r"|distribute|grappler|function|protobuf|data\.(experimental\.)?(ops|experimental)|ops\.(ragged|structured|parallel_for|losses|linalg)"
    r"|eager\.polymorphic_function|function\.(capture|trace_type|polymorphism)|autograph(\.(core|impl|lang|operators|pyct|utils|tests))?))?"
)


class _Facade(types.ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or PACKAGES.fullmatch(self.__name__):
            raise AttributeError(name)  # `from package import module` then imports the module
        if name == "test" or (name in ("compat", "v1", "v2") and self.__name__ in ("tensorflow", "tensorflow.compat")):
            return __import__("importlib").import_module(f"{self.__name__}.{name}")
        return find(self.__name__, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes `import tensorflow...` return facades; test files of `folder` are imported from there."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] != "tensorflow":
            return None
        file = os.path.join(self.folder, *name.split(".")) + ".py"
        if os.path.exists(file):
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return _Facade(spec.name)

    def exec_module(self, module: Any) -> None: ...
