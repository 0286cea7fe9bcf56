"""Arrays of numpy: one is read, one is updated in place, one is made anew each time."""

import json
import sys
import time

import numpy as np


def make_read(n):
    return np.ones(n)


def make_updated(n):
    return np.ones(n)


def make_brief(a):
    return a * 0.5


seconds, n = float(sys.argv[1]), int(sys.argv[2]) << 17
size = 8 * n
read, updated = make_read(n), make_updated(n)
# Of an in-place operation each line is read and written; one of a new array is written, and read by the sum.
truth = {"make_read": size, "make_updated": size, "make_brief": 0}
end = time.monotonic() + seconds
while time.monotonic() < end:
    for _ in range(2):
        read.sum()
    np.multiply(updated, 0.5, out=updated)
    brief = make_brief(read)
    brief.sum()
    del brief
    truth["make_read"] += 3 * size
    truth["make_updated"] += 2 * size
    truth["make_brief"] += 2 * size
for name, count in truth.items():
    print(json.dumps({"object": name, "sparse": False, "bytes": count}))
