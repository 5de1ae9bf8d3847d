"""tf.train: checkpoints of the variables of modules, models, optimizers and nested structures, in safetensors files."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from adjit.nn.module import Module as NeuralModule
from adjit.nn.weights import WeightsError, read_arrays, write_arrays
from adjit.runtime.variable import Variable as RuntimeVariable

from .dtypes import int64
from .errors import NotFoundError, missing
from .module import Module
from .variable import Variable

__all__ = ["Checkpoint", "CheckpointManager", "latest_checkpoint", "list_variables"]

SUFFIX = ".safetensors"
STATE = "checkpoint"  # the file that lists the checkpoints of a folder


def tracked(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, RuntimeVariable]]:
    """The variables that an object holds, with their paths, each once."""
    if isinstance(value, RuntimeVariable):
        if id(value.store) not in seen:
            seen.add(id(value.store))
            yield path, value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, NeuralModule):
        for name, variable in value.named_variables():
            yield from tracked(variable, f"{path}/{name.replace('.', '/')}", seen)
        return
    if isinstance(value, Checkpoint):
        parts: Mapping[Any, Any] = value.objects
    elif isinstance(value, Module):
        parts = vars(value)
    elif isinstance(value, Mapping):
        parts = value
    elif isinstance(value, list | tuple):
        parts = dict(enumerate(value))
    else:
        return
    for name in parts:
        yield from tracked(parts[name], f"{path}/{name}" if path else str(name), seen)


class Checkpoint:
    """Saves and restores the variables of objects, which are given by name or as one `root`.

    >>> import tempfile
    >>> v = Variable([1.0, 2.0])
    >>> path = Checkpoint(v=v).save(tempfile.mkdtemp() + "/ckpt")
    >>> _ = v.assign([0.0, 0.0])
    >>> _ = Checkpoint(v=v).restore(path).assert_consumed()
    >>> v.numpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self.objects: dict[str, Any] = {} if root is None else {"root": root}
        for name, value in kwargs.items():
            if not isinstance(value, RuntimeVariable | NeuralModule | Module | Mapping | list | tuple | Checkpoint):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (an object with variables), got {value!r}. "
                    "If you believe this object should be trackable, make it a tf.Module"
                )
            self.objects[name] = value
        self.save_counter = Variable(0, dtype=int64, trainable=False, name="save_counter")

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["objects"][name]
        except KeyError:
            raise AttributeError(f"'Checkpoint' object has no attribute {name!r}") from None

    def variables(self) -> dict[str, RuntimeVariable]:
        """All variables that would be saved, by path."""
        found = dict(tracked(self.objects, "", set()))
        found["save_counter"] = self.save_counter
        return found

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write the variables to one file, and return its path; nothing is counted or listed."""
        prefix: str = os.fspath(file_prefix)
        os.makedirs(os.path.dirname(os.path.abspath(prefix)), exist_ok=True)
        write_arrays(prefix + SUFFIX, {name: np.asarray(v.numpy()) for name, v in self.variables().items()})
        return prefix

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write the variables as `prefix-1`, `prefix-2`, …; returns that path."""
        self.save_counter.assign_add(1)
        path = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
        listed = [p for p in checkpoints_in(os.path.dirname(path)) if p != path]
        write_state(os.path.dirname(path), [*listed, path])
        return path

    def read(self, save_path: Any, options: Any = None) -> LoadStatus:
        """Assign the variables from a file. Names that occur on only one side are ignored; the status lists them."""
        path = os.fspath(save_path)
        path = path if path.endswith(SUFFIX) else path + SUFFIX
        if not os.path.exists(path):
            raise NotFoundError(
                None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {save_path}"
            )
        arrays, variables = read_arrays(path), self.variables()
        common = [name for name in variables if name in arrays]
        for name in common:
            if not variables[name].store.takes(arrays[name].shape) or arrays[name].dtype != variables[name].store.type.dtype:
                raise WeightsError(
                    f"{path}: {name} is {arrays[name].dtype}{list(arrays[name].shape)} in the checkpoint, but the variable is "
                    f"{variables[name].store.type}"
                )
        for name in common:
            variables[name].assign(arrays[name])
        return LoadStatus(path, sorted(set(arrays) - set(variables)), sorted(set(variables) - set(arrays)))

    def restore(self, save_path: Any, options: Any = None) -> LoadStatus:
        """The same as `read`; None restores nothing, as with the result of `latest_checkpoint` in an empty folder."""
        return LoadStatus("", [], []) if save_path is None else self.read(save_path)


class LoadStatus:
    """The variables that were only in a restored checkpoint, or only in the objects."""

    def __init__(self, path: str, unused: list[str], unmatched: list[str]) -> None:
        self.path, self.unused, self.unmatched = path, unused, unmatched

    def assert_consumed(self) -> LoadStatus:
        """Raise an AssertionError unless every variable was in the file, and everything in the file was used."""
        if self.unused or self.unmatched:
            raise AssertionError(
                f"{self.path}: not used: {', '.join(self.unused) or 'none'}; not found: {', '.join(self.unmatched) or 'none'}"
            )
        return self

    def assert_existing_objects_matched(self) -> LoadStatus:
        """Raise an AssertionError unless every variable was in the file."""
        if self.unmatched:
            raise AssertionError(f"{self.path}: not found: {', '.join(self.unmatched)}")
        return self

    def expect_partial(self) -> LoadStatus:
        """Does nothing: names on only one side raise no error by themselves."""
        return self


class CheckpointManager:
    """Keeps the last `max_to_keep` checkpoints of a folder, and deletes older ones, except one for every `keep_checkpoint_every_n_hours`.

    With `checkpoint_interval`, `save` does nothing until `step_counter` has advanced by it. If there is no checkpoint,
    `restore_or_initialize` calls `init_fn`.
    """

    def __init__(
        self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None, keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = STATE, step_counter: Any = None, checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None, last_checkpoint_step: int | None = None,
    ) -> None:  # fmt: skip
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self.checkpoint, self.directory, self.max_to_keep = checkpoint, os.fspath(directory), max_to_keep
        self.checkpoint_interval, self._step, self._initialize = checkpoint_interval, step_counter, init_fn
        self._hours, self._last_kept = keep_checkpoint_every_n_hours, time.time()
        self._saved_at = last_checkpoint_step  # the step of the last checkpoint
        self._preserved: set[str] = set()  # older ones that stay, and are no longer listed
        self._prefix = os.path.join(self.directory, "ckpt" if checkpoint_name == STATE else checkpoint_name)

    @property
    def checkpoints(self) -> list[str]:
        return checkpoints_in(self.directory)

    @property
    def latest_checkpoint(self) -> str | None:
        return latest_checkpoint(self.directory)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True) -> str | None:
        """Save under the next number, or a given one, and delete checkpoints beyond `max_to_keep`; None if the interval has not passed."""
        if self.checkpoint_interval is not None:
            step = int(self._step)
            if check_interval and self._saved_at is not None and step - self._saved_at < self.checkpoint_interval:
                return None
            self._saved_at = step
        if checkpoint_number is not None:
            self.checkpoint.save_counter.assign(int(checkpoint_number) - 1)
        path = self.checkpoint.save(self._prefix)
        known = [each for each in self.checkpoints if each not in self._preserved]
        kept = known if self.max_to_keep is None else known[-self.max_to_keep :]
        dropped = [old for old in known if old not in kept and not self._preserves(old)]
        write_state(self.directory, kept)  # before files are deleted, so that all listed files exist
        for old in dropped:
            os.unlink(old + SUFFIX)
        return path

    def _preserves(self, path: str) -> bool:
        """Whether this checkpoint, which is about to be deleted, is the one to keep for the last hours."""
        if self._hours is None:
            return False
        saved = os.path.getmtime(path + SUFFIX)
        if saved - self._last_kept < self._hours * 3600:
            return False
        self._last_kept = saved
        self._preserved.add(path)
        return True

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, if there is one; returns its path."""
        latest = self.latest_checkpoint
        if latest is None and self._initialize is not None:
            self._initialize()
            return None
        self.checkpoint.restore(latest)
        return latest


def checkpoints_in(folder: str) -> list[str]:
    """The checkpoints that are listed in a folder and exist, oldest first."""
    try:
        with open(os.path.join(folder, STATE), encoding="utf-8") as file:
            names = json.load(file)["checkpoints"]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{os.path.join(folder, STATE)} is not a list of checkpoints ({error})") from None
    paths = [os.path.join(folder, name) for name in names if isinstance(name, str) and not re.search(r"[/\\]", name)]
    return [path for path in paths if os.path.exists(path + SUFFIX)]


def write_state(folder: str, paths: list[str]) -> None:
    temporary = os.path.join(folder, f".{STATE}.part")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"checkpoints": [os.path.basename(path) for path in paths]}, file)
    os.replace(temporary, os.path.join(folder, STATE))


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint of a folder, or None."""
    found = checkpoints_in(os.fspath(checkpoint_dir))
    return found[-1] if found else None


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """The names and shapes of the variables in a checkpoint."""
    path = os.fspath(ckpt_dir_or_file)
    path = latest_checkpoint(path) or path
    return sorted((name, list(array.shape)) for name, array in read_arrays(path if path.endswith(SUFFIX) else path + SUFFIX).items())


def __dir__() -> list[str]:
    return __all__


__getattr__ = missing("tf.train", "it has Checkpoint, CheckpointManager, latest_checkpoint and list_variables")
