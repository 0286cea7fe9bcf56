# title: Qiskit Aer, QFT
# counts: gates
# pip: numpy==2.4.6
# pip: scipy==1.17.1
# pip: qiskit==2.6.2
# pip: qiskit-aer==0.18.2
# module: qiskit_aer
# wanted: 0.70
# published: IMDT 70 % (Intel-QS)

import math
from qiskit import QuantumCircuit
from qiskit_aer import AerSimulator

# Sixteen bytes an amplitude, and a power of two of them: more than half of BYTES. The module itself takes 90 MiB.
qubits = max(int(math.log2(BYTES / 16)), 8)
# Turns by less than pi / 2^NEAR are left out, as is usual.
NEAR = 6
number = 0xB5297A4D68E31DA4 % 2**qubits
near = lambda k: range(max(k - NEAR, 0), k)
angle = lambda j, k: math.pi / 2 ** (k - j)
circuit = QuantumCircuit(qubits)
for k in range(qubits):
    # The transform of the number, which is a product of qubits.
    circuit.h(k)
    circuit.p(sum(angle(j, k) for j in [*near(k), k] if number >> j & 1), k)
for k in range(qubits):
    for j in near(k):
        circuit.cp(-angle(j, k), j, k)
    circuit.h(k)
circuit.save_amplitudes([number, 0, number ^ 1])
simulator = AerSimulator(method="statevector", max_parallel_threads=int(THREADS))


def work(_):
    there, *elsewhere = simulator.run(circuit, shots=1).result().data(0)["amplitudes"]
    # Back in its place the number is alone.
    return abs(there - 1) < 1e-9 and max(map(abs, elsewhere)) < 1e-9, f"{number} {there.real:.8f}"


run(work, circuit.size() - 1)
