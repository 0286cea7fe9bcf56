# Fills arrays until numpy raises MemoryError; what is there must be right then, and room for more once some is given back.
# (Libraries of numpy reserve buffers that they do not touch, so that somewhat more was granted than is sure to be held.)
import numpy as np

arrays = []
try:
    while len(arrays) < 1000:
        arrays.append(np.full(1 << 19, float(len(arrays))))
except MemoryError:
    print("MemoryError")
for index, array in enumerate(arrays):
    assert (array == index).all(), index
count = len(arrays)
del arrays[::2]
more = [np.full(1 << 19, -1.0) for _ in range(count // 16)]
assert all((array == -1).all() for array in more)
assert all((array == 2 * index + 1).all() for index, array in enumerate(arrays))
print("OK")
