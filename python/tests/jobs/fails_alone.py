"""A window whose making fails in task 1 alone: task 0 has its address, and puts into memory that nobody has freed."""

import gc
import weakref

import openlapi


class Memory(bytearray):
    """One that can be watched."""


lapi = openlapi.init()
if lapi.task == 0:
    window = lapi.window(bytearray(8))
    lapi.gfence()
    lapi.put(b"after the error", 1, window)
    lapi.gfence()
    lapi.close()
else:
    memory = Memory(1 << 20)
    watched = weakref.ref(memory)
    try:
        lapi.window(memory)
        raise SystemExit("it did not fail")
    except openlapi.Error as why:
        assert why.name == "LAPI_ERR_UNKNOWN", why
    del memory
    gc.collect()
    lapi.gfence()
    # Task 0 puts.
    lapi.gfence()
    assert watched() is not None, "the memory was freed while task 0 had its address"
    assert watched()[:16] == b"after the error\0", watched()[:16]
    lapi.close()
    gc.collect()
    assert watched() is None, "it is held after the end of the context"
    print("the memory has stayed")
