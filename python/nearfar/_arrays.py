"""Arrays in a tier: numpy's makers of arrays with memory of nearfar. Owns who frees what, and when."""

import ctypes
import errno
import weakref

import numpy as np

from . import _abi

_PAGE = 4096
# Below this, an array does not get pages of its own: a cache line, which is also what vector units like best.
_LEAST_PAGED = 64 * 1024
_LINE = 64


def _block(size, tier, cleared):
    """An object with the buffer interface over `size` fresh bytes; they are freed when nobody refers to it any more."""
    lib = _abi.library()
    number = _abi.tier_number(tier)
    align = _PAGE if size >= _LEAST_PAGED else _LINE
    if cleared:
        # Fresh memory reads as zeros without being touched; calloc knows, but aligns for the largest type only.
        ctypes.set_errno(0)
        block = lib.nearfar_calloc(1, size + align, number)
        why = ctypes.get_errno() if block is None else 0
        start = None if block is None else -(-block // align) * align
    else:
        out = ctypes.c_void_p()
        why = lib.nearfar_posix_memalign(ctypes.byref(out), align, max(size, 1), number)
        block = start = out.value
    if why == errno.EINVAL:
        raise _abi.refused()
    if block is None or why:
        raise MemoryError(f"{size:,} bytes in {tier} memory; {lib.nearfar_describe().decode()}")
    buffer = (ctypes.c_byte * size).from_address(start)
    # Not at exit: other handlers of exit may still use the array, and the memory goes with the process.
    weakref.finalize(buffer, lib.nearfar_free, block).atexit = False
    return buffer


def _make(shape, dtype, order, tier, cleared):
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError("an array of Python objects holds references, not data: its tier would mean nothing")
    if order not in ("C", "F"):
        raise ValueError(f'order is {order!r}; it must be "C" or "F"')
    try:
        shape = tuple(int(extent) for extent in shape)
    except TypeError:
        shape = (int(shape),)
    if any(extent < 0 for extent in shape):
        raise ValueError("negative dimensions are not allowed")
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if size >= 2**62:
        raise MemoryError(f"an array of shape {shape} and type {dtype} has {size:,} bytes")
    return np.ndarray(shape, dtype, buffer=_block(size, tier, cleared), order=order)


def _like(prototype, dtype, tier, order, shape, cleared):
    model = np.asanyarray(prototype)
    if order in ("K", "A"):
        order = "F" if model.flags.f_contiguous and not model.flags.c_contiguous else "C"
    return _make(model.shape if shape is None else shape, model.dtype if dtype is None else dtype, order, tier, cleared)


def empty(shape, dtype=float, tier="near", order="C"):
    """As numpy.empty, in a tier."""
    return _make(shape, dtype, order, tier, cleared=False)


def zeros(shape, dtype=float, tier="near", order="C"):
    """As numpy.zeros, in a tier: not touched, so a large one takes no memory until it is used."""
    return _make(shape, dtype, order, tier, cleared=True)


def ones(shape, dtype=float, tier="near", order="C"):
    """As numpy.ones, in a tier."""
    return full(shape, 1, dtype, tier, order)


def full(shape, fill_value, dtype=None, tier="near", order="C"):
    """As numpy.full, in a tier."""
    made = _make(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order, tier, cleared=False)
    made[...] = fill_value
    return made


def array(data, dtype=None, tier="near", order="K"):
    """A copy of `data`, anything numpy.array takes, in a tier."""
    source = np.asarray(data, dtype)
    made = _like(source, None, tier, order, None, cleared=False)
    made[...] = source
    return made


def empty_like(prototype, dtype=None, tier="near", order="K", shape=None):
    """As numpy.empty_like, in a tier."""
    return _like(prototype, dtype, tier, order, shape, cleared=False)


def zeros_like(prototype, dtype=None, tier="near", order="K", shape=None):
    """As numpy.zeros_like, in a tier."""
    return _like(prototype, dtype, tier, order, shape, cleared=True)


def ones_like(prototype, dtype=None, tier="near", order="K", shape=None):
    """As numpy.ones_like, in a tier."""
    return full_like(prototype, 1, dtype, tier, order, shape)


def full_like(prototype, fill_value, dtype=None, tier="near", order="K", shape=None):
    """As numpy.full_like, in a tier."""
    made = _like(prototype, dtype, tier, order, shape, cleared=False)
    made[...] = fill_value
    return made
