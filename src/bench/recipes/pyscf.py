# title: PySCF, in core
# counts: integrals
# pip: numpy==2.4.6
# pip: scipy==1.17.1
# pip: pyscf==2.14.0
# module: pyscf
# wanted: 0.75

import numpy as np
from pyscf import gto, scf

# Integrals over n functions, with their eightfold symmetry, take n^4 bytes. One function for each atom.
pairs = max(int(BYTES**0.25) // 2, 4)
n = 2 * pairs
CYCLES = 6
# Hydrogen in a box, so close that no integral vanishes.
edge = int(pairs ** (1 / 3)) + 1
place = lambda i: (2.0 * (i % edge), 2.0 * (i // edge % edge), 2.2 * (i // edge**2))
atoms = [("H", (x, y, z + half)) for x, y, z in map(place, range(pairs)) for half in (0.0, 0.74)]
molecule = gto.M(atom=atoms, basis="sto-3g", verbose=0)
integrals = molecule.intor("int2e", aosym="s8")


def same(i, j):
    """Whether the integrals of functions i >= j with all before them are what they are when made anew."""
    anew = molecule.intor("int2e", shls_slice=(i, i + 1, j, j + 1, 0, n, 0, n)).reshape(n, n)
    row = i * (i + 1) // 2 + j
    return np.allclose(integrals[row * (row + 1) // 2 :][: row + 1], anew[np.tril_indices(n)][: row + 1], rtol=0, atol=1e-12)


def work(number):
    field = scf.RHF(molecule)
    field._eri, field.max_memory = integrals, 1 << 30
    field.conv_tol, field.max_cycle = 1e-30, CYCLES
    energy = field.kernel()
    return number < REPETITIONS - 1 or all(same(i, i * 7 % (i + 1)) for i in range(0, n, 5)), f"{energy:.6f}"


run(work, CYCLES * n**4 // 8)
