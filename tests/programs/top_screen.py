# Runs "nearfar top" on a pseudo terminal of 80 columns and 24 lines while a job runs: what it draws, and that the terminal is as it
# was before however it ends. The argument is nearfar.
import fcntl, os, pty, select, signal, struct, sys, termios, time

nearfar = sys.argv[1]


class Top:
    def __init__(self, env={}):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execve(nearfar, [nearfar, "top", "--interval", "0.3"], {"TERM": "xterm", "PATH": os.environ["PATH"], **env})
        self.text = ""

    def read(self, until, seconds=10):
        """Reads until all of these words came."""
        begin = time.time()
        while not all(word in self.text for word in until):
            assert time.time() - begin < seconds, f"no {until} in {self.text[-3000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    assert all(word in self.text for word in until), f"ended without {until}: {self.text[-3000:]!r}"

    def press(self, keys):
        self.text = ""
        os.write(self.master, keys.encode())

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def take(self):
        """What it has written meanwhile."""
        while self.master is not None and select.select([self.master], [], [], 0.05)[0]:
            try:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                return

    def end(self, seconds=10):
        """Its wait status."""
        begin = time.time()
        while time.time() - begin < seconds:
            self.take()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.take()
                return status
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"it goes on: {self.text[-3000:]!r}")

    def is_raw(self):
        return not termios.tcgetattr(self.master)[3] & termios.ICANON


RESTORED = "\x1b[?1049l"
SHOWN = "\x1b[?25h"

# Keys.
top = Top()
top.read(["\x1b[?1049h", "PROGRAM", "MISS/s", "nearfar-kernel", "miss/s", "pause"])
assert top.is_raw()
top.press("?")
top.read(["Help"])
# Only what changes is drawn, letter by letter: all of it when the size changes.
top.press("\x1b")
top.resize(40, 120)
top.read(["nearfar-kernel", "miss/s", "BUSY%", "DEPTH", "PROCS"])
top.press("p")
top.read(["PAUSED"])
top.press("ps")
top.press("q")
assert top.end() == 0, "q ends it well"
assert RESTORED in top.text and SHOWN in top.text, repr(top.text[-3000:])
assert not top.is_raw()

# Ctrl-C, and signals of others.
top = Top({"NO_COLOR": "1"})
top.read(["nearfar-kernel", "miss/s"])
assert "\x1b[36m" not in top.text and "\x1b[38;5;6m" not in top.text, "no colours were wanted"
top.press("\x03")
assert top.end() == 0 and RESTORED in top.text
for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
    top = Top()
    top.read(["nearfar-kernel"])
    top.text = ""
    os.kill(top.pid, number)
    status = top.end()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status
    assert RESTORED in top.text and SHOWN in top.text and not top.is_raw(), repr(top.text[-3000:])

# The terminal goes away.
top = Top()
top.read(["nearfar-kernel"])
os.close(top.master)
top.master = None
top.end()
print("OK")
