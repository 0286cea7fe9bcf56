# A big array goes to a file by pickle, by tofile and by save, and comes back.
import hashlib, os, pickle
import numpy as np
rng = np.random.default_rng(4)
a = rng.integers(0, 1 << 32, (20_000_000,), dtype=np.uint64)
def digest(x): return hashlib.sha256(np.ascontiguousarray(x).view(np.uint8)).hexdigest()[:20]
first = digest(a)
with open("array.pickle", "wb") as f: pickle.dump({"a": a, "name": "big"}, f, protocol=4)
with open("array.pickle", "rb") as f: back = pickle.load(f)
print(first, digest(back["a"]), back["name"])
del back
a.tofile("array.raw")
b = np.fromfile("array.raw", dtype=np.uint64)
print(digest(b), bool((a == b).all()))
np.save("array.npy", b)
c = np.load("array.npy", mmap_mode="r")
d = np.load("array.npy")
print(digest(d), int(c[::1000].sum()))
text = pickle.dumps(d[:4_000_000], protocol=2)
print(len(text), digest(pickle.loads(text)))
for name in ("array.pickle", "array.raw", "array.npy"): os.unlink(name)
