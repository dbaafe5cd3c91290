"""One task fails in the way that is named, and the others wait for it: the job must end."""

import sys
import threading

import openlapi

how = sys.argv[1]
lapi = openlapi.init()
if how == "order":
    names = ["first", "second"] if lapi.task == 0 else ["second", "first"]
    for name in names:
        lapi.handler(lambda *_: None, name=name)
if how == "kind":
    lapi.counter(shared=True) if lapi.task == 0 else lapi.window(bytearray(8))


def fail(source, header, data):
    raise ValueError("this handler fails")


def small(source, header, size):
    return bytearray(size - 1) if header == b"small" else lapi.fence()


handler = lapi.handler(fail)
chosen = lapi.handler(fail, into=small, name="chosen")
never = lapi.counter(shared=True)
with lapi:
    if lapi.task == 0:
        if how == "exception":
            raise KeyError("not caught")
        elif how == "thread":
            # This is how a thread ends itself.
            leaves = threading.Thread(target=sys.exit)
            leaves.start()
            leaves.join()
            threading.Thread(target=lambda: {}["not caught by a thread"]).start()
        elif how == "handler":
            lapi.send(1, handler)
        elif how in ("small", "calls"):
            lapi.send(1, chosen, how.encode(), b"12345678")
    never.wait()
