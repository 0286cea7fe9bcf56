"""The C functions of nearfar.h through ctypes, and where libnearfar.so is found. Nothing of numpy is known here."""

import ctypes
import ctypes.util
import os
import shutil
from functools import lru_cache

NEAR, FAR = 0, 1
TIERS = {"near": NEAR, "far": FAR}
UNKNOWN = 2**64 - 1
_NAME = "libnearfar.so"


class LibraryNotFound(ImportError):
    """libnearfar.so is nowhere to be found, or is not what this package needs."""


class TierError(ValueError):
    """A tier that is neither "near" nor "far", or tiers that cannot be used on this machine."""


class WhereStruct(ctypes.Structure):
    """struct nearfar_where."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("near_bytes", "far_bytes", "absent_bytes", "unknown_bytes")]
    _fields_ += [("reserved", ctypes.c_uint64 * 4)]


class CapacityStruct(ctypes.Structure):
    """struct nearfar_capacity."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("total_bytes", "free_bytes", "used_bytes")]
    _fields_ += [("reserved", ctypes.c_uint64 * 5)]


def tier_number(tier):
    """The number of a tier's name."""
    try:
        return TIERS[tier]
    except (KeyError, TypeError):
        raise TierError(f'tier is {tier!r}; it must be "near" or "far"') from None


def _beside_the_command():
    """Files that belong to the `nearfar` that the shell would run: beside it (a build), or in lib/nearfar (an installation)."""
    command = shutil.which("nearfar")
    if command is None:
        return []
    bin_dir = os.path.dirname(os.path.realpath(command))
    lib_dir = os.path.join(os.path.dirname(bin_dir), "lib")
    return [os.path.join(place, _NAME) for place in (bin_dir, lib_dir, os.path.join(lib_dir, "nearfar"))]


def _candidates():
    """What is tried, in order, each with a word on why."""
    named = os.environ.get("NEARFAR_LIBRARY")
    if named:
        return [named]
    paths = [path for path in _beside_the_command() if os.path.exists(path)]
    found = ctypes.util.find_library("nearfar")
    return paths + ([found] if found else []) + [_NAME]


def _load():
    # A process must have one copy: under `nearfar run`, and in programs that embed Python and link it, it is there already.
    here = ctypes.CDLL(None, use_errno=True)
    if hasattr(here, "nearfar_version"):
        return here
    failures = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path, use_errno=True)
        except OSError as error:
            failures.append(f"{path}: {error}")
            continue
        if hasattr(library, "nearfar_version"):
            return library
        failures.append(f"{path}: has no function nearfar_version; it is too old, or another library")
    raise LibraryNotFound(
        f"{_NAME} was not found. Set NEARFAR_LIBRARY to its path (in a build of nearfar: target/release/{_NAME}), put the nearfar "
        "command on the PATH, or run Python under `nearfar run`. Tried:\n  " + "\n  ".join(failures)
    )


@lru_cache(maxsize=None)
def library():
    """libnearfar.so with typed functions; loaded at the first use."""
    lib = _load()
    size, pointer, integer = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in [
        ("nearfar_calloc", pointer, [size, size, integer]),
        ("nearfar_posix_memalign", integer, [ctypes.POINTER(pointer), size, size, integer]),
        ("nearfar_free", None, [pointer]),
        ("nearfar_where", integer, [pointer, size, ctypes.POINTER(WhereStruct)]),
        ("nearfar_capacity", integer, [integer, ctypes.POINTER(CapacityStruct)]),
        ("nearfar_tiers", integer, []),
        ("nearfar_describe", ctypes.c_char_p, []),
        ("nearfar_version", ctypes.c_uint, []),
    ]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def refused():
    """The exception for tiers that cannot be used, with the library's own reason."""
    return TierError(library().nearfar_describe().decode())
