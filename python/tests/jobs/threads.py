"""While a thread waits in the library, others run Python: that is what the task needs to make progress at all."""

import threading
import time

import numpy
import openlapi

with openlapi.init() as lapi:
    me, tasks = lapi.task, lapi.tasks
    after = (me + 1) % tasks
    mine = numpy.zeros(8, numpy.int64)
    window = lapi.window(mine)
    arrived = lapi.counter(shared=True)
    steps = 0

    def other():
        """Counts while the main thread waits, and sends what it waits for at the end."""
        global steps
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            steps += 1
        lapi.put(numpy.ones(1, numpy.int64), after, window, target_counter=arrived)

    thread = threading.Thread(target=other)
    thread.start()
    arrived.wait()
    # With Python's lock held in the wait this line is never reached.
    assert steps > 100, steps
    thread.join()
    lapi.gfence()

    # Handlers that take Python's lock in the dispatcher, while other threads call all the time.
    got = []
    handler = lapi.handler(lambda source, header, data: got.append(bytes(data)), into=lambda source, header, size: bytearray(size), name="got")
    done = [lapi.counter() for _ in range(4)]

    def sender(number):
        for i in range(100):
            lapi.send(after, handler, b"", bytes([number, i]), completion_counter=done[number])
            lapi.fetch_and_add(after, window, 8, 1)
        done[number].wait(100)

    threads = [threading.Thread(target=sender, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lapi.gfence()
    assert sorted(got) == sorted(bytes([number, i]) for number in range(4) for i in range(100))
    assert mine[1] == 400
    print(f"task {me}: threads and handlers took turns")
