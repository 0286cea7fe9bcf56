# title: numpy FFT
# counts: points
# pip: numpy==2.4.6
# module: numpy
# wanted: 0.70
# published: IMDT 40 %

import numpy as np
import zlib

# The array, the transform of one axis, and that of the next.
n = max(int((BYTES / 48) ** (1 / 3)), 8)
a = np.zeros((n, n, n), complex)
for plane in range(n):
    a[plane].real = np.random.default_rng(plane).random((n, n))
energy = np.vdot(a, a).real


def work(number):
    global a
    a = np.fft.fftn(a)
    a /= n**1.5
    some = np.ascontiguousarray(a[:: max(n // 16, 1), :: max(n // 16, 1)])
    # Parseval: with this scale the transform keeps the energy.
    return number < REPETITIONS - 1 or abs(np.vdot(a, a).real / energy - 1) < 1e-9, zlib.crc32(some.tobytes())


run(work, n**3)
