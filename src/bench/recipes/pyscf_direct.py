# title: PySCF, direct
# counts: matrix elements
# pip: numpy==2.4.6
# pip: scipy==1.17.1
# pip: pyscf==2.14.0
# module: pyscf
# wanted: 0.80

import numpy as np
from pyscf import gto, scf

# About twenty matrices over n functions live at the same time. Integrals are made when they are needed.
shells = [[0, 60.0], [0, 12.0], [0, 3.0], [0, 0.8], [0, 0.25], [1, 2.0], [2, 1.5], [3, 2.0], [4, 2.0]]
FUNCTIONS = sum(2 * momentum + 1 for momentum, _ in shells)
atoms = max(int((BYTES / 8 / 20) ** 0.5) // FUNCTIONS, 2)
basis = {"He": [[momentum, [exponent, 1.0]] for momentum, exponent in shells]}
helium = lambda count: gto.M(atom=[("He", (0.0, 0.0, 6.0 * i)) for i in range(count)], basis=basis, verbose=0)
one = scf.RHF(helium(1))
alone = one.kernel()
many, guess = helium(atoms), np.kron(np.eye(atoms), one.make_rdm1())


def work(number):
    field = scf.RHF(many)
    field.direct_scf, field.max_memory, field.direct_scf_tol = True, 1, 1e-9
    field.conv_tol, field.max_cycle = 1e-30, 1
    energy = field.kernel(dm0=guess)
    # So far apart the atoms hardly feel each other.
    return abs(energy / atoms / alone - 1) < 1e-6, f"{energy:.5f}"


run(work, (FUNCTIONS * atoms) ** 2)
