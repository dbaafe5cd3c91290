"""Children are forked while threads of the library take messages and run handlers: none of them hangs."""

import os
import threading
import time

import openlapi

CHILDREN = 300

with openlapi.init(completion_threads=2) as lapi:
    ends = threading.Event()

    @lapi.handler
    def note(source, header, data):
        if header == b"over":
            ends.set()

    lapi.gfence()
    if lapi.task == 0:
        for child in range(CHILDREN):
            pid = os.fork()
            if pid == 0:
                # Takes Python's locks: another thread, with a state of its own.
                thread = threading.Thread(target=lambda: None)
                thread.start()
                thread.join()
                # The end of the interpreter calls it.
                openlapi._core.close_all()
                os._exit(0)
            last = time.monotonic() + 60
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > last:
                    os.kill(pid, 9)
                    raise SystemExit(f"child {child} hangs")
                time.sleep(0.0005)
        for task in range(1, lapi.tasks):
            lapi.send(task, note, b"over")
    else:
        while not ends.is_set():
            lapi.send(0, note, b"more")
    lapi.gfence()
    print("no child hangs")
