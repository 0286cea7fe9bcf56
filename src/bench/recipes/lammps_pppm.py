# title: LAMMPS, PPPM
# counts: atom-steps
# apt: lammps
# program: lmp
# wanted: 0.70
# published: IMDT 50 % (rhodopsin)

STEPS = 5
# An ion takes 2 KiB with its list of neighbours and its part of the mesh; eight in a cell of rock salt.
edge = max(int((BYTES / 2000 / 8) ** (1 / 3)), 6)
melt = start("lmp", "-screen", "none", "-log", "none", "-nocite", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
# To a file: what goes to the screen stays in a buffer.
first = ask(melt, f"""units real
atom_style charge
lattice custom 5.64 basis 0 0 0 basis 0.5 0.5 0 basis 0.5 0 0.5 basis 0 0.5 0.5 &
  basis 0.5 0 0 basis 0 0.5 0 basis 0 0 0.5 basis 0.5 0.5 0.5
region box block 0 {edge} 0 {edge} 0 {edge}
create_box 2 box
create_atoms 1 box basis 5 2 basis 6 2 basis 7 2 basis 8 2
mass 1 22.99
mass 2 35.45
set type 1 charge 1
set type 2 charge -1
pair_style lj/cut/coul/long 9.0
pair_coeff 1 1 0.3526418 2.159538
pair_coeff 2 2 0.0127850 4.830453
pair_modify mix arithmetic
kspace_style pppm 1e-4
neighbor 2.0 bin
neigh_modify every 5 delay 0 check no
velocity all create 1500 87287 loop geom
fix 1 all nve
thermo {STEPS}
run 0 post no
print "$(ecoul+elong)" file /dev/stdout
""")
# The electrostatic energy of a pair in the perfect lattice: Madelung's constant, 332.06 kcal/mol A, 2.82 A.
madelung = -1.7475646 * 332.06371 / 2.82
right = abs(float(first) / (4 * edge**3 * madelung) - 1) < 1e-3


energies = []


def work(number):
    # The last digits depend on the plan that FFTW makes.
    said = ask(melt, f'run {STEPS} pre no post no\nprint "$(etotal:%.7g) $(temp:%.6g)" file /dev/stdout\n')
    energies.append(float(said.split()[0]))
    # What Newton's equations keep.
    return right and abs(energies[-1] / energies[0] - 1) < 1e-3, said


run(work, 8 * edge**3 * STEPS)
