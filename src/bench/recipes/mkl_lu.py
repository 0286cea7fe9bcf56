# title: MKL LU
# counts: flop
# pip: numpy==2.4.6
# pip: mkl==2026.2.0
# pip: mkl_fft==2.3.2
# module: mkl_fft
# wanted: 0.75
# published: IMDT 30-60 %

import ctypes, glob
import numpy as np

(library, *_) = sorted(glob.glob(sys.prefix + "/lib/libmkl_rt.so*")) + ["libmkl_rt.so"]
mkl = ctypes.CDLL(library)
n = max(int((BYTES / 8) ** 0.5), 16)
a = np.zeros((n, n), order="F")
pivots = np.zeros(n, np.int32)
x = np.arange(n) % 7 - 3.0
at = lambda array: ctypes.c_void_p(array.ctypes.data)


def work(number):
    b = np.zeros(n)
    for column in range(n):
        np.random.default_rng(column).random(n, out=a[:, column])
        a[column, column] += n
        b += a[:, column] * x[column]
    failed = mkl.LAPACKE_dgetrf(102, n, n, at(a), n, at(pivots))
    failed = failed or mkl.LAPACKE_dgetrs(102, ctypes.c_char(b"N"), n, 1, at(a), n, at(pivots), at(b), n)
    return failed == 0 and bool(np.abs(b - x).max() < 1e-6), f"{np.round(b).sum():.0f} {pivots.sum()}"


run(work, 2 * n**3 // 3)
