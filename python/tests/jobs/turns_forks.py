"""Children are forked while threads take turns in collective calls: a child's calls are refused, and none hangs."""

import os
import threading
import time

import openlapi

CHILDREN = 300

with openlapi.init() as lapi:
    over = threading.Event()

    def turns():
        while not over.is_set():
            lapi.gfence()

    threads = [threading.Thread(target=turns) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for child in range(CHILDREN):
            pid = os.fork()
            if pid == 0:
                # The library reports what it refuses.
                os.close(2)
                try:
                    lapi.gfence()
                except openlapi.Error:
                    os._exit(0)
                finally:
                    os._exit(1)
            last = time.monotonic() + 60
            while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
                if time.monotonic() > last:
                    os.kill(pid, 9)
                time.sleep(0.0005)
            assert ended == (pid, 0), f"child {child}: {ended}"
    finally:
        over.set()
        for thread in threads:
            thread.join()
    print("no child hangs")
