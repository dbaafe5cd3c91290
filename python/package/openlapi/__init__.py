"""One-sided communication between the tasks of a job: LAPI for Python.

A task opens a context, gives memory to the other tasks as a window, and puts, gets and adds in theirs::

    import numpy, openlapi

    with openlapi.init() as lapi:
        mine = numpy.zeros(lapi.tasks)
        window = lapi.window(mine)
        for task in range(lapi.tasks):
            lapi.put(numpy.full(1, float(lapi.task)), task, window, 8 * lapi.task)
        lapi.gfence()
        print(lapi.task, mine)

Start it by ``poe python script.py -procs 4``.
"""

import atexit as _atexit
import sys as _sys
import threading as _threading

from ._core import Context, Counter, Error, Handler, Listener, Session, Window, __version__, connect, init, listen
from ._core import close_all as _close_all
from ._core import in_job as _in_job
from .collectives import Collectives

__all__ = [
    "Collectives",
    "Context",
    "Counter",
    "Error",
    "Handler",
    "Listener",
    "Session",
    "Window",
    "connect",
    "init",
    "listen",
    "__version__",
]

# Before the interpreter ends: afterwards the library's threads could not run handlers.
_atexit.register(_close_all)


def _uncaught(kind, value, traceback, _before=_sys.excepthook):
    """Prints an exception that the program has not caught, as ever, and ends the task, so that the others do not wait for it."""
    _before(kind, value, traceback)
    _in_job()


def _uncaught_in_thread(raised, _before=_threading.excepthook):
    """Prints an exception that a thread has not caught, and ends the task; SystemExit ends the thread alone."""
    _before(raised)
    if raised.exc_type is not SystemExit:
        _in_job()


_sys.excepthook = _uncaught
_threading.excepthook = _uncaught_in_thread
