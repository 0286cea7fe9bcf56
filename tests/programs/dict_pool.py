# A dict of many small objects, a pool of processes by fork that read it (each reading writes a reference count), and pickle.
import hashlib, multiprocessing, pickle

COUNT = 80_000

def part_digest(part):
    digest = hashlib.sha256()
    for i in range(part, COUNT, 4): digest.update(repr(objects[i]).encode())
    return digest.digest()

objects = {i: (f"key{i}", [i, i + 1, i * 2.5], {"a": i, "b": str(i) * 3}) for i in range(COUNT)}
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        parts = pool.map(part_digest, range(4))
    print("parts", hashlib.sha256(b"".join(parts)).hexdigest())
    pickled = pickle.dumps(objects)
    print("pickle", hashlib.sha256(pickled).hexdigest(), pickle.loads(pickled) == objects)
