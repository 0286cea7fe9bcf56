"""Arrays of numpy, which asks for memory on behalf of the script."""

import time

import numpy as np


def make_hot():
    return np.ones(24 << 20)


def make_cold():
    return np.zeros(24 << 20) + 1.0


begin = time.monotonic()
hot, cold = make_hot(), make_cold()
total = 0.0
while time.monotonic() - begin < 2:
    total = hot.sum()
assert total + cold.sum() == 48 << 20
print("OK")
