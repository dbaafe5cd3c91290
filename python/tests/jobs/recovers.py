"""Collective calls that were refused leave nothing behind."""

import openlapi

with openlapi.init() as lapi:
    me, tasks = lapi.task, lapi.tasks
    after = (me + 1) % tasks
    called = lapi.counter(shared=True)

    def refused(call, *arguments):
        try:
            call(*arguments)
        except openlapi.Error as error:
            assert error.name == "LAPI_ERR_UNKNOWN", error
        else:
            raise AssertionError("it was not refused")

    ran = []

    def first(source, header, data):
        ran.append("first")

    def second(source, header, data):
        ran.append("second")

    # Only task 1 has called for a handler.
    if me == 1:
        refused(lapi.handler, first)
    else:
        refused(lapi.window, bytearray(8))
    refused(lapi.handler, first if me == 1 else second)
    one, two = lapi.handler(second), lapi.handler(first)
    for handler in one, two:
        done = lapi.counter()
        lapi.send(after, handler, completion_counter=done)
        done.wait()
    lapi.gfence()
    assert ran == ["second", "first"], ran
    print(f"task {me}: all is well")
