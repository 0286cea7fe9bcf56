# title: GROMACS, water
# counts: atom-steps
# apt: gromacs
# program: gmx
# wanted: 0.75

import re

STEPS = 10
EDGE = 1.86206
# An atom takes 920 bytes; 636 are in a box of the water that GROMACS brings with it.
boxes = max(BYTES / 920 / 636, 8)
x = y = int(boxes ** (1 / 3))
z = int(boxes / x / y)
here = folder()
gmx = lambda tool, *arguments: call("gmx", "-quiet", tool, *arguments, cwd=here)
with open(here + "/w.top", "w") as file:
    file.write('#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spc.itp"\n[ system ]\nwater\n[ molecules ]\n')
with open(here + "/w.mdp", "w") as file:
    file.write(f"""integrator = md
dt = 0.002
nsteps = {STEPS}
nstcalcenergy = {STEPS}
nstenergy = {STEPS}
nstlog = {STEPS}
coulombtype = PME
gen_vel = yes
gen_temp = 300
gen_seed = 1
""")
gmx("solvate", "-cs", "spc216.gro", "-box", *(f"{EDGE * n:.5f}" for n in (x, y, z)), "-o", "w.gro", "-p", "w.top")
gmx("grompp", "-f", "w.mdp", "-c", "w.gro", "-p", "w.top", "-o", "w.tpr")
with open(here + "/w.top") as file:
    molecules = int(file.read().split()[-1])


def work(number):
    gmx("mdrun", "-s", "w.tpr", "-deffnm", "w", "-reprod", "-notunepme", "-pin", "off", "-ntmpi", "1", "-ntomp", THREADS, "-cpt", "-1", "-noconfout")
    with open(here + "/w.log") as file:
        log = file.read()
    # The first two blocks of energies are those of the first and the last step; total energy is followed by temperature and pressure.
    first, last = re.findall(r"Potential +Kinetic En\.\s+(.*)\n +Total Energy.*\n +(\S+)", log)[:2]
    potential = float(first[0].split()[-2])
    # SPC water has about -41.5 kJ/mol in such water; energy is conserved.
    right = abs(potential / molecules + 41.5) < 1.5 and abs(float(last[1]) / float(first[1]) - 1) < 0.01
    return right, " ".join(last)


run(work, 3 * molecules * STEPS)
