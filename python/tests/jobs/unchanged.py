"""What init() and close() leave as it was: unchanged.py [SIGNAL...], the signals that LAPI takes by its settings."""

import ctypes
import locale
import os
import resource
import signal
import sys

import openlapi

TAKEN = {int(number) for number in sys.argv[1:]}
C = ctypes.CDLL(None)


def action(number):
    """Handler, mask and flags of the process, which Python's table does not show."""
    room = ctypes.create_string_buffer(256)
    # The C library leaves the rest of the mask as it finds it.
    return None if C.sigaction(number, None, room) else (room[:16], room[136:140])


def masks():
    """The sets of signals of this thread and process."""
    with open("/proc/self/status") as status:
        lines = [line.split(":\t") for line in status if line.startswith(("Sig", "Shd"))]
    # Not those of the C library, which takes one at the first thread.
    looked_at = sum(1 << number - 1 for number in signal.valid_signals() - TAKEN)
    # The first line has the number of waiting signals of the user.
    return {name: int(value, 16) & looked_at for name, value in lines if name != "SigQ"}


def environment():
    """That of C: Python copies it once."""
    here = ctypes.POINTER(ctypes.c_char_p).in_dll(C, "environ")
    return [here[n] for n in range(next(n for n in range(100_000) if here[n] is None))]


def descriptors():
    """What each of them leads to; not the one that lists them."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[int(number)] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            pass
    return found


def state():
    umask = os.umask(0)
    os.umask(umask)
    names = [name for name in dir(resource) if name.startswith("RLIMIT_") and name not in ("RLIMIT_NOFILE", "RLIMIT_OFILE")]
    found = {name: resource.getrlimit(getattr(resource, name)) for name in names}
    found |= {f"getsignal {number}": signal.getsignal(number) for number in signal.valid_signals()}
    found |= {f"action {number}": action(number) for number in signal.valid_signals() if number not in TAKEN}
    found |= masks()
    found |= {"umask": umask, "locale": locale.setlocale(locale.LC_ALL), "folder": os.getcwd()}
    return found | {"environ": dict(os.environ), "C's environ": environment(), "hooks": (sys.excepthook, sys.unraisablehook)}


def differ(before, now=None):
    """The names of what has changed."""
    now = now or state()
    return [name for name in before | now if before.get(name) != now.get(name)]


# It may be ignored where the tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.umask(0o027)
locale.setlocale(locale.LC_ALL, "C.UTF-8")
INTERRUPT = f"action {int(signal.SIGINT)}"
before, files = state(), descriptors()


def use():
    """Opens a context, looks while it is open, and closes it."""
    with openlapi.init() as lapi:
        window = lapi.window(bytearray(8))
        lapi.put(b"12345678", (lapi.task + 1) % lapi.tasks, window)
        lapi.gfence()
        # The module's handler calls Python's, which stays in Python's table.
        assert differ(before) == [INTERRUPT], differ(before)
        now = descriptors()
        assert {number: now.get(number) for number in files} == files, now


for _ in range(2):
    use()
    assert differ(before) == [], differ(before)
    assert descriptors() == files, (files, descriptors())

# The handler stays until the last context is closed, and one that the program has set stays then.
first, second = openlapi.init(), openlapi.init()
# Both tasks have both contexts, before one of them closes its own.
first.gfence()
second.gfence()
first.close()
assert differ(before) == [INTERRUPT], differ(before)
second.close()
assert differ(before) == [], differ(before)
with openlapi.init():
    signal.signal(signal.SIGINT, lambda *_: None)
    own = state()
assert differ(own) == [], differ(own)
print("nothing has changed")
