"""Arrays of numpy as scripts have them: one that all is computed with, one that is kept for the end, and temporaries."""

import sys

import numpy as np


def make_samples(n):
    return np.arange(n, dtype=np.float64)


def make_kept(n):
    return np.ones(3 * n)


rounds, n = int(sys.argv[1]), int(sys.argv[2]) << 17
samples, kept = make_samples(n), make_kept(n)
total = 0.0
for k in range(rounds):
    scaled = samples * (1.0 + 1e-9 * k)
    total += float(scaled.sum())
    total += float(samples.max())
print(f"{total + float(kept.sum()):.12g}")
