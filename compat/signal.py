"""tf.signal: Fourier transforms of the last axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.types import C64, C128, F64
from adjit.tracer.surface import fft as transforms

from .errors import InvalidDType, missing
from .listing import public_names
from .tensor import convert_to_tensor
from .wrapping import axes_of, check_floating, named, public, sizes_of


def _transform(name: str, function: Callable[..., Operand], axes: int, takes_complex: bool) -> Any:
    """`fft_length`, where given, is the number of elements along the transformed axes."""

    def transform(input: Any, fft_length: Any) -> Any:
        x = convert_to_tensor(input)
        if takes_complex and not x.type.is_complex:
            raise InvalidDType(f"tf.signal.{own} takes complex64 or complex128, not {x.dtype.name}; use tf.cast")
        if not takes_complex:
            check_floating(f"tf.signal.{own}", x)
        lengths = None if fft_length is None else sizes_of(fft_length)
        if axes == 1:
            return _narrow(function(x, n=None if lengths is None else lengths[0]), x)
        return _narrow(function(x, s=lengths, axes=tuple(range(-axes, 0))), x)

    def of_complex(input: Any, name: str | None = None) -> Any:
        return transform(input, None)

    def of_real(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
        return transform(input_tensor, fft_length)

    own = name
    return named(public(of_real if "r" in name else of_complex), name)


def _narrow(result: Operand, x: Operand) -> Operand:
    """The result in the precision of the argument."""
    double = x.type.dtype in (F64, C128)
    if result.type.is_complex:
        return ops.cast(result, C128 if double else C64)
    return ops.cast(result, np.dtype("f8" if double else "f4"))


fft, ifft = _transform("fft", transforms.fft, 1, True), _transform("ifft", transforms.ifft, 1, True)
rfft, irfft = _transform("rfft", transforms.rfft, 1, False), _transform("irfft", transforms.irfft, 1, True)
fft2d, ifft2d = _transform("fft2d", transforms.fftn, 2, True), _transform("ifft2d", transforms.ifftn, 2, True)
rfft2d, irfft2d = _transform("rfft2d", transforms.rfftn, 2, False), _transform("irfft2d", transforms.irfftn, 2, True)
fft3d, ifft3d = _transform("fft3d", transforms.fftn, 3, True), _transform("ifft3d", transforms.ifftn, 3, True)
rfft3d, irfft3d = _transform("rfft3d", transforms.rfftn, 3, False), _transform("irfft3d", transforms.irfftn, 3, True)


@public
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Move the zero frequency to the middle."""
    return transforms.fftshift(convert_to_tensor(x), axes_of(axes))


@public
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """The inverse of `fftshift`."""
    return transforms.ifftshift(convert_to_tensor(x), axes_of(axes))


def __dir__() -> list[str]:
    return public_names(globals())


__getattr__ = missing("tf.signal", "it has Fourier transforms of one, two and three axes")
