"""Forks while contexts are opened, whose threads take Python's lock for the first time: the fork and such a thread do not wait for each other."""

import os
import threading

import openlapi

THREADS = 8
over = threading.Event()


def opens():
    while not over.is_set():
        with openlapi.init(completion_threads=THREADS) as lapi:
            handler = lapi.handler(lambda source, header, data: None, name="handler")
            done = lapi.counter()
            for _ in range(2 * THREADS):
                lapi.send(0, handler, completion_counter=done)
            done.wait(2 * THREADS)


openers = [threading.Thread(target=opens) for _ in range(3)]
for opener in openers:
    opener.start()
for _ in range(500):
    child = os.fork()
    if child == 0:
        # No thread here: glibc may have to free what a thread was about to free that has ended.
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
over.set()
for opener in openers:
    opener.join()
print("nobody waits for ever")
