# title: MKL PARDISO
# counts: points
# pip: numpy==2.4.6
# pip: scipy==1.17.1
# pip: mkl==2026.2.0
# pip: pypardiso==0.4.7
# module: pypardiso
# wanted: 0.50
# published: IMDT 120-140 %

import numpy as np
import scipy.sparse as sparse
import pypardiso

# Factors of a grid of m^3 points take about 112 m^4 bytes.
m = max(int((BYTES / 112) ** 0.25), 8)
one = sparse.eye(m)
line = sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(m, m))
grid = sparse.kron(sparse.kron(line, one), one) + sparse.kron(sparse.kron(one, line), one) + sparse.kron(sparse.kron(one, one), line)
grid = sparse.csr_matrix(grid)
x = np.arange(m**3) % 7 - 3.0
b = grid @ x
solver = pypardiso.PyPardisoSolver()


def work(number):
    solver.factorize(grid)
    y = solver.solve(grid, b)
    return bool(np.abs(y - x).max() < 1e-6), f"{np.round(y).sum():.0f}"


run(work, m**3)
