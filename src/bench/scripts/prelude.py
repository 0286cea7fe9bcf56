# What each script begins with. Arguments: bytes of data, repetitions, longest seconds of one (0: any).
import json, os, sys, threading, time

BYTES, REPETITIONS, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
started = time.perf_counter()
done, begun = [], None
# Held by whoever books a repetition and, perhaps, ends the program.
books = threading.Lock()


def tell(verified, checksum):
    print(json.dumps({"setup_seconds": setup_seconds, "repetitions": done, "verified": verified, "checksum": checksum}), flush=True)


def repetition(seconds, operations, complete):
    done.append({"seconds": seconds, "bytes": 0, "operations": operations, "complete": complete})


def watch(operations):
    while SECONDS > 0:
        time.sleep(0.1)
        with books:
            seconds = time.perf_counter() - begun
            if seconds > SECONDS:
                repetition(seconds, operations, False)
                tell("skipped", "0")
                os._exit(0)


def run(work, operations):
    """Times work(number), which returns (right, checksum of any type); `operations` is what one repetition does."""
    global begun, setup_seconds
    begun = time.perf_counter()
    setup_seconds = begun - started
    threading.Thread(target=watch, args=(operations,), daemon=True).start()
    right, sums = True, []
    for number in range(REPETITIONS):
        good, checksum = work(number)
        with books:
            now = time.perf_counter()
            repetition(now - begun, operations, True)
            begun = now
        right, sums = right and good, sums + [checksum]
    with books:
        tell("right" if right else "wrong", str(sums))
        os._exit(0)
