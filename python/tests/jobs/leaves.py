"""Task 0 leaves for a checkpoint and comes back, while the others add to a number of it all the time."""

import time
from array import array

import openlapi

ROUNDS = 200

with openlapi.init() as lapi:
    memory = array("q", [0])
    window = lapi.window(memory)
    arrived = lapi.counter(shared=True)

    def refused(call, name):
        try:
            call()
        except openlapi.Error as error:
            assert error.name == name, error
        else:
            raise AssertionError(f"{name}: it was not refused")

    refused(lapi.checkpoint_after, "LAPI_ERR_CKPT")
    if lapi.task != 0:
        for _ in range(ROUNDS):
            lapi.fetch_and_add(0, window, 0, 1)
            lapi.put(b"", 0, window, target_counter=arrived)
    else:
        for _ in range(5):
            lapi.checkpoint_before()
            before = memory[0]
            refused(lapi.checkpoint_before, "LAPI_ERR_CKPT")
            if lapi.tasks > 1:
                refused(lambda: lapi.put(b"", 1, window), "LAPI_ERR_TGT_PURGED")
                refused(lapi.gfence, "LAPI_ERR_TGT_PURGED")
            time.sleep(0.02)
            lapi.probe()
            assert memory[0] == before
            lapi.checkpoint_after()
        if lapi.tasks > 1:
            arrived.wait(ROUNDS * (lapi.tasks - 1))
    lapi.gfence()
    got = array("q", [0])
    lapi.get(got, 0, window)
    assert got[0] == ROUNDS * (lapi.tasks - 1), got
    lapi.gfence()
    print(f"task {lapi.task}: nothing is lost")
