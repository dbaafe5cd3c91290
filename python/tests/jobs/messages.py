"""Messages of all sizes, from every task to every task; handlers that send themselves; places that handlers choose."""

import threading

import numpy
import openlapi

SIZES = [0, 1, 100, 5000, 2_000_000]

with openlapi.init() as lapi:
    me, tasks = lapi.task, lapi.tasks
    arrived = []
    enough = threading.Semaphore(0)

    @lapi.handler
    def note(source, header, data):
        assert data == bytes([source]) * len(data) and header == b"%d of %d" % (len(data), source), header
        arrived.append((source, len(data)))
        enough.release()

    boards = {}

    def into(source, header, size):
        if header == b"no":
            return None
        boards[source] = numpy.zeros(size // 8)
        return boards[source]

    @lapi.handler
    def pong(source, header, data):
        arrived.append((source, header))
        enough.release()

    def board(source, header, data):
        assert data is boards[source] and data[-1] == source and header == b"yes"
        # A function of a handler may send, and wait.
        lapi.send(source, pong, b"seen")
        lapi.fence()

    board = lapi.handler(board, into=into)
    done = lapi.counter()
    for task in range(tasks):
        for size in SIZES:
            lapi.send(task, note, b"%d of %d" % (size, me), bytes([me]) * size, completion_counter=done)
    done.wait(tasks * len(SIZES))
    for _ in range(tasks * len(SIZES)):
        assert enough.acquire(timeout=30)
    assert sorted(arrived) == sorted((task, size) for task in range(tasks) for size in SIZES)
    arrived.clear()
    lapi.gfence()

    for task in range(tasks):
        lapi.send(task, board, b"yes", numpy.full(100_000, float(me)), completion_counter=done)
        lapi.send(task, board, b"no", bytes(8000), completion_counter=done)
    done.wait(2 * tasks)
    for _ in range(tasks):
        assert enough.acquire(timeout=30)
    assert sorted(arrived) == [(task, b"seen") for task in range(tasks)], arrived
    lapi.gfence()
    assert len(boards) == tasks

    # A decorated function is a function.
    note(me, b"3 of %d" % me, bytes([me]) * 3)
    # Without header and data; headers of every length.
    arrived.clear()
    lapi.gfence()
    for length in [0, 1, 7, 8, 1016]:
        lapi.send((me + 1) % tasks, pong, bytes(length))
    for _ in range(6):
        assert enough.acquire(timeout=30)
    assert sorted(len(header) for _, header in arrived) == [0, 1, 7, 8, 1016]
    lapi.gfence()
    print(f"task {me}: all messages were handled")
