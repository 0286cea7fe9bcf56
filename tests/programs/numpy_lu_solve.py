# LU solve of a dense system several times near, as most numpy users do it; prints rounded figures, since BLAS may sum in another order.
import numpy as np
n = 3600
rng = np.random.default_rng(1)
a = rng.standard_normal((n, n))
a[np.arange(n), np.arange(n)] += n
x = rng.standard_normal(n)
b = a @ x
y = np.linalg.solve(a, b)
print("residual small:", bool(np.abs(a @ y - b).max() < 1e-6), "solution right:", bool(np.abs(x - y).max() < 1e-9))
print("sum %.6f trace %.6f" % (y.sum(), np.trace(a)))
