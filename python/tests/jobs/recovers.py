"""Collective calls that were refused leave nothing behind, and a window that is freed is used by no thread."""

import threading

import numpy
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
    # Task 1 is in a call that is not of this package.
    for call, argument in (lapi.window, bytearray(8)), (lapi.handler, first):
        refused(lapi.gfence) if me == 1 else refused(call, argument)
    one, two = lapi.handler(second), lapi.handler(first)
    for handler in one, two:
        done = lapi.counter()
        lapi.send(after, handler, completion_counter=done)
        done.wait()
    lapi.gfence()
    assert ran == ["second", "first"], ran

    # A thread puts all the time, while the window is freed and its memory used for something else.
    for round in range(20):
        memory = numpy.zeros(1000)
        window = lapi.window(memory)
        ended = []

        def putter():
            ones = numpy.ones(1000)
            try:
                while True:
                    lapi.put(ones, after, window)
            except ValueError as error:
                ended.append(str(error))

        thread = threading.Thread(target=putter)
        thread.start()
        window.free()
        memory[:] = 7
        thread.join()
        lapi.gfence()
        assert ended == ["put: the window is freed"], ended
        assert (memory == 7).all(), f"round {round}: a put came after the window was freed"
    print(f"task {me}: all is well")
