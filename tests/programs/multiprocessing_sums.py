# Python multiprocessing by fork: children read the parent's array and return sums; one writes its own copy; a pool maps over slices.
import array, multiprocessing as mp, zlib
mp.set_start_method("fork")
WORDS = 16_000_000
data = array.array("q", range(WORDS))

def part_sum(bounds):
    low, high = bounds
    return sum(memoryview(data)[low:high])

def checksum(_):
    return zlib.crc32(data)

def write_and_sum(queue):
    for i in range(0, WORDS, 100): data[i] = -1
    queue.put((zlib.crc32(data), sum(memoryview(data)[::100])))

if __name__ == "__main__":
    before = zlib.crc32(data)
    step = WORDS // 16
    with mp.Pool(4) as pool:
        sums = pool.map(part_sum, [(i * step, (i + 1) * step) for i in range(16)])
        sums_again = pool.map(checksum, range(4))
    print("sums", sum(sums) == WORDS * (WORDS - 1) // 2, set(sums_again) == {before})
    queue = mp.Queue()
    writer = mp.Process(target=write_and_sum, args=(queue,))
    writer.start()
    result = queue.get()
    writer.join()
    print("writer", result, writer.exitcode)
    print("parent", zlib.crc32(data) == before, before)
    big = bytes(data[:4_000_000])
    ours, theirs = mp.Pipe()
    sender = mp.Process(target=lambda: theirs.send_bytes(big))
    sender.start()
    print("pipe", ours.recv_bytes() == big)
    sender.join()
