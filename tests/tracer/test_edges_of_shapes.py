"""Functions of values without axes, without elements, and with one element, for every kind of dtype: NumPy's value, or our own error.

Eager calls try every shape with every dtype. Compiled ones, forty expressions at a time, must have the results of eager ones.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import adjit as aj

TABLE = """
    abs(x); x+x; x*x; x/2; x//2; x%2; -x; ~x; x@x.T; x.T; x[...,None]; x>1; x==x; np.sum(x); np.sum(x,axis=0);
    np.sum(x,axis=-1,keepdims=True); np.prod(x,axis=0); np.max(x,axis=-1); np.min(x,axis=0); np.max(x,initial=1);
    np.min(x,axis=0,initial=1); np.max(x,initial=1,where=x!=0); np.min(x,axis=-1,initial=1,where=x!=0); np.sum(x,where=x!=0);
    np.prod(x,where=x!=0,axis=0); np.mean(x); np.mean(x,axis=0); np.mean(x,axis=-1,where=x!=0); np.var(x,axis=0); np.std(x);
    np.std(x,axis=-1,ddof=1); np.ptp(x); np.ptp(x,axis=0); np.any(x,axis=0); np.all(x); np.argmax(x); np.argmax(x,axis=-1);
    np.argmin(x,axis=0,keepdims=True); np.quantile(x,0.5,axis=0); np.percentile(x,[10,50]); np.nansum(x,axis=0); np.nanmax(x);
    np.nanmin(x,axis=-1); np.nanmean(x,axis=0); np.nanvar(x); np.nanprod(x); np.nanmedian(x); np.nanargmax(x); np.nanargmin(x,axis=0);
    np.nanquantile(x,0.3); np.cumsum(x); np.cumsum(x,axis=-1); np.cumprod(x,axis=0); np.sort(x,axis=0); np.sort(x,axis=None);
    np.argsort(x,axis=0,kind='stable'); np.argsort(x,axis=None); np.count_nonzero(x); np.count_nonzero(x,axis=0);
    np.average(x,weights=x+1); np.trapezoid(x); np.trapezoid(x,axis=0); np.diff(x); np.diff(x,axis=0,n=2);
    np.diff(x,prepend=x[:1],axis=0); np.ediff1d(x); np.gradient(x); np.gradient(x,axis=0); np.unwrap(x); np.unwrap(x,axis=0);
    np.digitize(x,[0.,1.]); np.searchsorted(np.sort(np.ravel(x)),x); np.histogram(x,bins=3)[0]; np.bincount(x); np.isin(x,[0,1]);
    np.clip(x,0,1); np.round(x,1); np.where(x,x,1); np.nan_to_num(x); np.real(x); np.imag(x); np.conj(x); np.sinc(x); np.sqrt(x);
    np.exp(x); np.log1p(x); np.floor(x); np.rint(x); np.sign(x); np.square(x); np.reciprocal(x+1); np.cbrt(x); np.signbit(x);
    np.isnan(x); np.logical_not(x); np.invert(x); np.spacing(x); np.frexp(x)[0]; np.modf(x)[1]; np.ldexp(x,1); np.maximum(x,1);
    np.fmin(x,x); np.hypot(x,x); np.arctan2(x,1); np.power(x,2); np.float_power(x,2); np.remainder(x,2); np.fmod(x,2);
    np.floor_divide(x,2); np.divmod(x,2)[1]; np.gcd(x,x); np.left_shift(x,1); np.logaddexp(x,x); np.heaviside(x,x); np.copysign(x,x);
    np.nextafter(x,x); np.reshape(x,-1); np.reshape(x,(-1,1)); np.ravel(x,order='F'); np.transpose(x); np.swapaxes(x,0,-1);
    np.moveaxis(x,0,-1); np.squeeze(x); np.expand_dims(x,0); np.flip(x); np.flip(x,0); np.roll(x,1); np.roll(x,1,axis=0); np.rot90(x);
    np.tile(x,2); np.tile(x,(2,1)); np.repeat(x,2); np.repeat(x,2,axis=0); np.concatenate([x,x]); np.concatenate([x,x],axis=-1);
    np.concatenate([x,x],axis=None); np.stack([x,x]); np.stack([x,x],axis=-1); np.vstack([x,x]); np.hstack([x,x]); np.dstack([x,x]);
    np.column_stack([x,x]); np.block([[x,x]]); np.append(x,x); np.insert(x,0,1); np.insert(x,0,1,axis=0); np.delete(x,0);
    np.delete(x,0,axis=0); np.take(x,[0]); np.take(x,[0],axis=0); np.take(x,[],axis=0);
    np.take_along_axis(x,np.argsort(x,axis=-1),axis=-1); x[0]; x[-1:]; x[::-1]; x[...,0]; x[...,::-2]; x[[0,0]]; x[[]]; x[x>0]; x[x>5];
    np.nonzero(x)[0]; np.flatnonzero(x); np.extract([True],x); np.compress([True],x); np.compress([True],x,axis=0);
    np.choose(x>0,[x,x]); np.select([x>0],[x],1); np.piecewise(x,[x>0],[1,0]); np.pad(x,1); np.pad(x,1,mode='edge');
    np.pad(x,(0,1),mode='wrap'); np.diag(x); np.diagonal(x); np.trace(x); np.tril(x); np.triu(x,1); np.vander(x,3); np.kron(x,x);
    np.outer(x,x); np.inner(x,x); np.dot(x,x); np.dot(x,x.T); np.vdot(x,x); np.matmul(x,x.T); np.tensordot(x,x,0);
    np.tensordot(x,x.T,1); np.einsum('...i,...i->...',x,x); np.einsum('i...->...',x); np.einsum('...->...',x); np.convolve(x,x);
    np.correlate(x,x); np.polyval([1,2],x); np.linalg.norm(x); np.linalg.norm(x,axis=-1); np.linalg.norm(x,axis=0,ord=1);
    np.linalg.norm(x,ord=np.inf,axis=-1); np.linalg.det(x@x.T); np.linalg.inv(x@x.T+np.eye(len(x)));
    np.linalg.cholesky(x@np.conj(x.T)+3*np.eye(len(x))); np.linalg.eigvalsh(x@np.conj(x.T)); np.linalg.solve(x@x.T+np.eye(len(x)),x);
    np.linalg.matrix_power(x@x.T,2); np.linalg.slogdet(x@x.T)[1]; np.fft.fft(x); np.fft.ifft(x,axis=0); np.fft.rfft(x); np.fft.irfft(x);
    np.fft.fft2(x); np.fft.fftshift(x); np.fft.fft(x,n=4); np.add.reduce(x); np.add.reduce(x,axis=None); np.multiply.reduce(x);
    np.maximum.reduce(x); np.logical_and.reduce(x); np.add.accumulate(x); np.maximum.accumulate(x); np.logical_or.reduce(x,axis=-1);
    np.subtract.outer(x,x); np.lexsort((x,x)); np.unique(x); np.union1d(x,x); np.intersect1d(x,x); np.setdiff1d(x,[5]);
    np.atleast_1d(x); np.atleast_2d(x); np.atleast_3d(x); np.broadcast_to(x,(2,)+x.shape); np.meshgrid(x,x)[0]; np.ix_(x)[0];
    np.unravel_index(np.argmax(x),x.shape)[0]; np.full_like(x,1); np.zeros_like(x); np.ones_like(x,dtype='f4'); np.array_equal(x,x);
    np.allclose(x,x); np.isclose(x,1); np.packbits(x); np.packbits(x,axis=0); np.unpackbits(x); np.apply_along_axis(np.sum,0,x);
    np.array_split(x,2)[0]; np.split(x,1)[0]; np.split(x,[1],axis=-1)[1]; np.lib.stride_tricks.sliding_window_view(x,1,axis=-1);
    np.fmax.reduce(x); x.sum(); x.mean(0); x.max(); x.astype('f4'); x.reshape(x.shape); x.T.copy(); x.flatten(); x.any(); x.clip(0,1);
    x.conj(); x.real; x.trace(); x.argsort(axis=0); x.cumsum(); x.prod(0); x.std(0); x.take([0]); x.repeat(2); x.squeeze();
    x.nonzero()[0]; x.compress([True]); np.ndim(x); np.size(x); np.shape(x); np.iscomplexobj(x); np.isreal(x); np.fliplr(x);
    np.flipud(x); np.rollaxis(x,0); np.sort_complex(x); np.nancumsum(x); np.nancumprod(x,axis=0); np.amax(x,axis=0); np.positive(x);
    np.cumprod(x); np.linalg.multi_dot([x,x.T,x]); np.bitwise_or(x,x); np.minimum(x,x.T); x+x.T
"""
EXPRESSIONS = [text.strip() for text in TABLE.split(";")]

SHAPES = [(), (0,), (1,), (3,), (0, 3), (3, 0), (1, 1), (2, 3), (1, 0, 2), (2, 1, 3)]
DTYPES = ["?", "u1", "i2", "i8", "f4", "f8", "c8", "c16"]
SHARE = 40


def values(shape: tuple[int, ...], dtype: str) -> Any:
    numbers = (np.arange(int(np.prod(shape))) * 7 % 5).reshape(shape)
    if dtype == "?":
        return (numbers % 2).astype(bool)
    if dtype[0] == "c":
        return (numbers + 1j * (numbers % 3)).astype(dtype)
    return (numbers * 0.75 - 0.5).astype(dtype) if dtype[0] == "f" else numbers.astype(dtype)


def evaluated(text: str, x: Any) -> Any:
    """The value, or the exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(text, {"np": np, "x": x})
        except Exception as error:
            return error


def same(got: Any, want: Any, what: str) -> None:
    got, want = np.asarray(got), np.asarray(want)
    half = want.dtype == np.float16  # NumPy computes functions of bytes in 16 bits, ours never do
    assert got.shape == want.shape, f"{what}: {got.shape}, not {want.shape}"
    assert half or got.dtype == want.dtype, f"{what}: {got.dtype}, not {want.dtype}"
    single = want.dtype in (np.float16, np.float32, np.complex64)
    tolerance = 0.0 if want.dtype.kind not in "fc" else 1e-2 if half else 1e-4 if single else 1e-8
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_eager_is_numpy(shape: tuple[int, ...]) -> None:
    agreed = 0
    for dtype in DTYPES:
        for text in EXPRESSIONS:
            x, what = values(shape, dtype), f"{text} of {dtype}{shape}"
            want, got = evaluated(text, x), evaluated(text, aj.tensor(x))
            if not isinstance(want, Exception):
                assert not isinstance(got, Exception), f"{what} is refused: {got!r}"
                same(got, want, what)
                agreed += 1
            elif isinstance(got, Exception):
                assert isinstance(got, aj.AdjitError | TypeError | IndexError | type(want)), f"{what}: {got!r} leaks"
    assert agreed > 500


@pytest.mark.parametrize(
    ("shape", "dtype"), list(zip(SHAPES, ["c16", "i8", "u1", "c8", "c16", "i2", "f4", "?", "c8", "u1"], strict=True)), ids=str
)
def test_compiled_is_eager(shape: tuple[int, ...], dtype: str) -> None:
    x = values(shape, dtype)
    found = {text: evaluated(text, aj.tensor(x)) for text in EXPRESSIONS}
    texts = [text for text, value in found.items() if not isinstance(value, Exception)]
    for start in range(0, len(texts), SHARE):
        share = texts[start : start + SHARE]
        compiled = aj.function(eval(f"lambda x: ({', '.join(share)},)", {"np": np}))
        for text, got in zip(share, compiled(x), strict=True):
            same(got, found[text], f"{text} of {dtype}{shape}")
