"""Waits for what never comes, in the call that is named."""

import _signal
import asyncio
import sys
import threading
import time

import openlapi

how = sys.argv[1]
if how == "again":
    # A first init that fails before there is anything that could wait.
    get, _signal.getsignal = _signal.getsignal, None
    try:
        openlapi.init()
    except TypeError:
        _signal.getsignal, how = get, "counter"

lapi = openlapi.init()
main = threading.get_ident()


def tell():
    """Says that the main thread is where it waits."""
    lines = open(__file__).readlines()
    while True:
        frame = sys._current_frames()[main]
        if frame.f_code.co_filename == __file__ and "waits here" in lines[frame.f_lineno - 1]:
            break
        time.sleep(0.01)
    time.sleep(0.3)
    print("waits", flush=True)


async def nothing():
    pass


if how == "asyncio":
    # It sets its own handler of SIGINT, and then Python's again.
    asyncio.run(nothing())
    how = "counter"

try:
    threading.Thread(target=tell, daemon=True).start()
    if how == "counter":
        lapi.counter().wait()  # waits here
    else:
        while True:  # waits here
            pass  # waits here
finally:
    print("cleaned up", flush=True)
