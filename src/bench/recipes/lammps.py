# title: LAMMPS, Lennard-Jones
# counts: atom-steps
# apt: lammps
# program: lmp
# wanted: 0.80
# published: IMDT 50-70 %

STEPS = 10
# An atom takes 384 bytes with its list of neighbours; four in a cell of the lattice.
edge = max(int((BYTES / 384 / 4) ** (1 / 3)), 8)
melt = start("lmp", "-screen", "none", "-log", "none", "-nocite", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
# To a file: what goes to the screen stays in a buffer.
say = 'print "$(etotal:%.10g) $(temp:%.10g)" file /dev/stdout\n'
first = ask(melt, f"""units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {edge} 0 {edge} 0 {edge}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 5 delay 0 check no
fix 1 all nve
thermo {STEPS}
run 0 post no
{say}""")
energy = float(first.split()[0])


def work(number):
    said = ask(melt, f"run {STEPS} pre no post no\n{say}")
    # Energy is conserved. The same program computes the same, wherever its memory is.
    return abs(float(said.split()[0]) / energy - 1) < 0.01, said


run(work, 4 * edge**3 * STEPS)
