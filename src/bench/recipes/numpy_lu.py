# title: numpy LU
# counts: flop
# pip: numpy==2.4.6
# module: numpy
# wanted: 0.75

import numpy as np

# solve works on a copy of its matrix.
n = max(int((BYTES / 16) ** 0.5), 16)
rng = np.random.default_rng(1)
a = rng.random((n, n))
a[np.arange(n), np.arange(n)] += n
x = np.arange(n) % 7 - 3.0
b = a @ x


def work(number):
    y = np.linalg.solve(a, b)
    return bool(np.abs(y - x).max() < 1e-6), np.round(y).sum().hex()


run(work, 2 * n**3 // 3)
