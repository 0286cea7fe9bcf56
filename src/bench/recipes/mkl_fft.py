# title: MKL FFT
# counts: points
# pip: numpy==2.4.6
# pip: mkl==2026.2.0
# pip: mkl_fft==2.3.2
# module: mkl_fft
# wanted: 0.50
# published: IMDT 40 %

import mkl_fft, zlib
import numpy as np

# In place: the array alone.
n = max(int((BYTES / 16) ** (1 / 3)), 8) // 2 * 2
a = np.zeros((n, n, n), complex)
for plane in range(n):
    a[plane].real = np.random.default_rng(plane).random((n, n))


def energy():
    # Plane by plane: no second array.
    return sum(np.vdot(plane, plane).real for plane in a)


first = energy()


def work(number):
    global a
    a = mkl_fft.fftn(a, out=a)
    for plane in a:
        plane /= n**1.5
    some = np.ascontiguousarray(a[:: max(n // 16, 1), :: max(n // 16, 1)])
    # MKL's last bits depend on where the array lies. Parseval: with this scale the transform keeps the energy.
    return number < REPETITIONS - 1 or abs(energy() / first - 1) < 1e-9, zlib.crc32((np.round(some, 6) + 0).tobytes())


run(work, n**3)
