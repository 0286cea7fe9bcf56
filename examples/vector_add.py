"""c = a + b with two arrays in near memory and one in far: Python."""
import sys

import nearfar
import numpy as np

n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
a = nearfar.array(np.arange(n), dtype=float)
b = nearfar.empty(n)
np.multiply(a, 0.5, out=b)
c = nearfar.empty(n, tier="far")
np.add(a, b, out=c)
print(f"vector add: {n} elements, sum {c.sum():.1f}")
print(nearfar.describe(), "a:", nearfar.where(a), "left:", nearfar.left(), file=sys.stderr)
