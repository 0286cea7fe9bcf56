# title: Redis
# counts: requests
# apt: redis-server
# program: redis-server
# wanted: 0.60

import random, socket

VALUE, BATCH, REQUESTS = 1000, 200, 100_000
# With its key, its entry in the table and what the allocator rounds up a value takes 1150 bytes.
keys = max(BYTES // 1150, BATCH)
path = folder() + "/socket"
redis = start("redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", stdout=subprocess.DEVNULL)
server = socket.socket(socket.AF_UNIX)
while server.connect_ex(path):
    if redis.poll() is not None:
        sys.exit(f"redis-server ended with {redis.returncode}")
    time.sleep(0.01)
answers = server.makefile("rb")
times_set = bytearray(keys)


def value(key):
    text = b"%d:%d;" % (key, times_set[key])
    return (text * (VALUE // len(text) + 1))[:VALUE]


def ask_all(requests):
    """Sends a batch of (key, whether it is set anew); whether all answers are right."""
    sent, wanted = [], []
    for key, is_set in requests:
        name = b"key:%d" % key
        if is_set:
            times_set[key] = (times_set[key] + 1) % 250
            sent.append(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(name), name, VALUE, value(key)))
            wanted.append(b"+OK\r\n")
        else:
            sent.append(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(name), name))
            wanted.append(b"$%d\r\n%s\r\n" % (VALUE, value(key)))
    wanted = b"".join(wanted)
    # Both sides would wait for ever if the answers had to wait for the last request: a batch of them fits in the sockets' buffers.
    server.sendall(b"".join(sent))
    return answers.read(len(wanted)) == wanted


for first in range(0, keys, BATCH):
    if not ask_all((key, True) for key in range(first, min(first + BATCH, keys))):
        sys.exit("redis-server refused a value")


def work(number):
    # Skewed: half of the requests are for an eighth of the keys, which lie anywhere. Every fifth sets.
    any = random.Random(number)
    skewed = lambda: int(keys * any.random() ** 3) * 7919 % keys
    right = all(ask_all([(skewed(), any.random() < 0.2) for _ in range(BATCH)]) for _ in range(REQUESTS // BATCH))
    return right, sum(times_set)


run(work, REQUESTS)
