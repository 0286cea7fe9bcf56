# Sort, argsort, unique, partition and fancy indexing of 6 M integers; results are exact, so a digest of the bytes is printed.
import hashlib
import numpy as np
rng = np.random.default_rng(3)
a = rng.integers(0, 1 << 62, 6_000_000)
def digest(x): return hashlib.sha256(np.ascontiguousarray(x).view(np.uint8)).hexdigest()[:20]
s = np.sort(a)
print("sorted", digest(s), bool((s[1:] >= s[:-1]).all()))
order = np.argsort(a[:1_500_000], kind="stable")
print("order", digest(order), digest(a[order]))
print("unique", len(np.unique(a % 1000003)))
a.partition(3_000_000)
print("median", a[3_000_000])
print("gather", int(s[rng.integers(0, len(s), 1_000_000)].sum() & 0xffffffffffff))
m = a.reshape(2000, 3000)
print("transposed", digest(m.T))
