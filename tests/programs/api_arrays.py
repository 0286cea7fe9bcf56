# The Python package: numpy arrays in a tier, who frees them and when, refusals.
import copy
import gc
import os
import pickle

import nearfar
import numpy as np


def refused(kind, word, make):
    try:
        make()
    except kind as error:
        assert word in str(error), error
        return
    raise AssertionError(f"not refused: {word}")


def used(tier):
    gc.collect()
    return nearfar.capacity(tier).used


assert nearfar.tiers() in (1, 2) and "near" in nearfar.describe() and nearfar.version().count(".") == 2
assert all(left is None or left >= 0 for left in (nearfar.left(), nearfar.left("far")))

# As numpy's own makers.
for tier in ("near", "far"):
    for order in ("C", "F"):
        a = nearfar.zeros((30, 40, 5), "c16", tier=tier, order=order)
        b = np.zeros((30, 40, 5), "c16", order=order)
        assert type(a) is np.ndarray and a.flags.writeable and a.strides == b.strides and a.dtype == b.dtype and (a == b).all()
        assert a.ctypes.data % 64 == 0
    assert (nearfar.ones(7, np.int16, tier=tier) == 1).all() and nearfar.full((2, 3), 2.5, tier=tier).sum() == 15
    assert nearfar.full(3, 7).dtype == np.asarray(7).dtype
    c = nearfar.array([[1, 2], [3, 4]], tier=tier)
    assert c.dtype == np.array([1]).dtype and c.tolist() == [[1, 2], [3, 4]]
    t = np.arange(12.0).reshape(3, 4).T
    assert nearfar.array(t, tier=tier).flags.f_contiguous and (nearfar.empty_like(t, tier=tier).shape == t.shape)
    assert nearfar.zeros_like(t, tier=tier).flags.f_contiguous and nearfar.ones_like(t, dtype=int).dtype == int
    assert nearfar.full_like(t, 3, tier=tier, shape=(2,)).tolist() == [3.0, 3.0]
    s = nearfar.zeros(3, np.dtype([("x", "f8"), ("name", "U5")]), tier=tier)
    s["name"][1] = "abc"
    assert s[1]["name"] == "abc"
    assert nearfar.empty((), tier=tier).shape == () and nearfar.empty((0, 4)).size == 0
    large = nearfar.empty(1 << 20, tier=tier)
    assert large.ctypes.data % 4096 == 0
    large[:] = 3
    found = nearfar.where(large)
    assert sum(found) == large.nbytes and found.absent == 0, found
    assert sum(nearfar.where(large[::-2])) in range(large.nbytes - 8, large.nbytes + 1)
    # Zeros are zeros also where something has been, and large ones are not touched.
    del large
    again = nearfar.zeros(1 << 22, tier=tier)
    found = nearfar.where(again)
    assert "NEARFAR_JOB" in os.environ or found.unknown or found.absent > found.near, found
    assert not again.any()
    del again

    # Freed when the last view dies, not before.
    before = used(tier)
    a = nearfar.full(4 << 20, 7, "u1", tier=tier)
    view, other = a[100:200], a.reshape(1024, -1)[:, 3]
    held = used(tier)
    assert held == 0 or held >= before + a.nbytes
    del a, view
    assert used(tier) == held and (other == 7).all()
    del other
    assert used(tier) <= before + 4096
    for _ in range(200):
        nearfar.ones(1 << 20, "u1", tier=tier)
    assert used(tier) <= before + (1 << 20)
    with memoryview(nearfar.full(1 << 20, 9, "u1", tier=tier)) as raw:
        gc.collect()
        assert raw[12345] == 9

a = nearfar.array(range(1000), dtype=float)
assert (copy.deepcopy(a) == a).all() and (pickle.loads(pickle.dumps(a)) == a).all()
child = os.fork()
if child == 0:
    a += 1
    b = nearfar.ones(1 << 20)
    os._exit(0 if a.sum() == 500500 and b.sum() == 1 << 20 else 1)
assert os.waitpid(child, 0)[1] == 0 and a.sum() == 499500

refused(nearfar.TierError, '"near" or "far"', lambda: nearfar.empty(3, tier="hbm"))
refused(TypeError, "references", lambda: nearfar.empty(3, object))
refused(ValueError, "negative", lambda: nearfar.empty((3, -1)))
refused(ValueError, "order", lambda: nearfar.empty(3, order="X"))
refused(MemoryError, "bytes", lambda: nearfar.empty((1 << 40, 1 << 40)))
refused(MemoryError, "bytes", lambda: nearfar.empty(1 << 55))

# Arrays outlive the module's own objects, up to the end of the process.
keep = nearfar.ones(1 << 16)
import atexit

atexit.register(lambda: print("OK" if keep.sum() == 1 << 16 else "FAILED"))
