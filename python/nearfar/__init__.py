"""numpy arrays in near (fast, small) or far (large, slower) memory, and where arrays are.

    import nearfar
    psi = nearfar.zeros((512, 512, 512), "c16")              # near memory; far: tier="far"
    print(nearfar.where(psi), nearfar.left(), nearfar.describe())

The arrays are ordinary numpy arrays: what numpy computes from them lies where numpy puts it. Their memory is given back when
the last array that shares it is gone. What near and far are is said in nearfar.h; in short: the machine's own near and far nodes,
those of NEARFAR_NEAR=node:1 and NEARFAR_FAR=node:0, or the tiers of the `nearfar run` that the program runs under.
"""

from ._abi import LibraryNotFound, TierError
from ._arrays import array, empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like
from ._questions import Capacity, Where, capacity, describe, left, tiers, version, where

__all__ = [
    "array", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
    "Capacity", "Where", "capacity", "describe", "left", "tiers", "version", "where",
    "LibraryNotFound", "TierError",
]
