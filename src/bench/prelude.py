# What each recipe begins with. Arguments: bytes of data, repetitions, longest seconds of one (0: any).
import sys

# The current directory may hold anything, modules of the same names included; option -P is new in 3.11.
sys.path = [path for path in sys.path if path]
import atexit, json, os, shutil, signal, subprocess, tempfile, threading, time

BYTES, REPETITIONS, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
THREADS = os.environ.get("OMP_NUM_THREADS", "2")
# Open MPI: a single process needs no network, and a container may have none.
os.environ.update(OMPI_MCA_btl="self", OMPI_MCA_ess_singleton_isolated="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
started = time.perf_counter()
done, begun, children, folders = [], None, [], []
# Held by whoever books a repetition and, perhaps, ends the program.
books = threading.RLock()


@atexit.register
def clear():
    with books:
        for child in list(children):
            child.kill()
            child.wait()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def folder():
    """A new directory that is gone afterwards."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folders.append(tempfile.mkdtemp(prefix="nearfar-app-"))
    return folders[-1]


def start(*command, **more):
    """A program that ends when this one does."""
    children.append(subprocess.Popen(command, text=True, **more))
    return children[-1]


def ask(child, text):
    """Its line of answer."""
    child.stdin.write(text)
    child.stdin.flush()
    return child.stdout.readline().strip() or sys.exit(f"{child.args[0]} gave no answer and ended with {child.wait()}")


def call(*command, **more):
    """Runs a program to its end; what it printed, errors included."""
    child = start(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    said, _ = child.communicate()
    children.remove(child)
    last = "; ".join([line.strip() for line in said.splitlines() if any(map(str.isalpha, line))][-3:])
    return said if child.returncode == 0 else sys.exit(f"{command[0]} ended with {child.returncode}: {last}")


def tell(verified, checksum):
    print(json.dumps({"setup_seconds": setup_seconds, "repetitions": done, "verified": verified, "checksum": checksum}), flush=True)
    clear()
    os._exit(0)


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
