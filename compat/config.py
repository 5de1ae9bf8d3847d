"""tf.config: the settings that have an effect here. There is one device, the CPU."""

from __future__ import annotations

from typing import NamedTuple

from adjit.runtime.config import config

from .errors import missing
from .listing import public_names


class PhysicalDevice(NamedTuple):
    name: str
    device_type: str


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run every `tf.function` as plain Python, op by op."""
    config.eager = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    return config.eager


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    return [PhysicalDevice("/physical_device:CPU:0", "CPU")] if device_type in (None, "CPU") else []


list_logical_devices = list_physical_devices


__getattr__ = missing("tf.config", "adjit runs on the CPU and is set up by adjit.config")


def __dir__() -> list[str]:
    return public_names(globals())
