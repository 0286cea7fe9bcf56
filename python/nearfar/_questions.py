"""Where arrays are and how much of each tier is left. Changes nothing."""

import ctypes
import errno
import os
from typing import NamedTuple, Optional

import numpy as np

from . import _abi

try:
    from numpy.lib.array_utils import byte_bounds as _byte_bounds
except ImportError:  # before numpy 2
    _byte_bounds = np.byte_bounds


class Where(NamedTuple):
    """Bytes of an array that lie in near and far memory now, those never touched, and those of which the system does not tell."""

    near: int
    far: int
    absent: int
    unknown: int


class Capacity(NamedTuple):
    """Bytes of a tier: in all, free, and given out by this process; None where it is not known."""

    total: Optional[int]
    free: Optional[int]
    used: int


def where(array):
    """Where the memory of an array is, from its first to its last byte; any array, not only those of nearfar."""
    array = np.asanyarray(array)
    low, high = _byte_bounds(array) if array.size else (0, 0)
    found = _abi.WhereStruct()
    if _abi.library().nearfar_where(low, high - low, ctypes.byref(found)) != 0:
        _fail()
    return Where(found.near_bytes, found.far_bytes, found.absent_bytes, found.unknown_bytes)


def capacity(tier="near"):
    """How large a tier is, and what is left of it."""
    found = _abi.CapacityStruct()
    if _abi.library().nearfar_capacity(_abi.tier_number(tier), ctypes.byref(found)) != 0:
        _fail()
    known = [None if value == _abi.UNKNOWN else value for value in (found.total_bytes, found.free_bytes)]
    return Capacity(known[0], known[1], found.used_bytes)


def left(tier="near"):
    """Bytes that are left of a tier; None when that is not known."""
    return capacity(tier).free


def tiers():
    """2 when near and far are different memories, 1 when the machine has one only."""
    count = _abi.library().nearfar_tiers()
    if count < 0:
        raise _abi.refused()
    return count


def describe():
    """What near and far are, in one line."""
    return _abi.library().nearfar_describe().decode()


def version():
    """The version of libnearfar.so, such as "0.1.0"."""
    number = _abi.library().nearfar_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _fail():
    number = ctypes.get_errno()
    if number == errno.EINVAL:
        raise _abi.refused()
    raise OSError(number, os.strerror(number))
