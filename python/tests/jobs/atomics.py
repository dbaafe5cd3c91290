"""Integers that all tasks change at once."""

import numpy
import openlapi

ROUNDS = 500

with openlapi.init() as lapi:
    me, tasks = lapi.task, lapi.tasks
    mine = numpy.zeros(4, numpy.int64)
    window = lapi.window(mine)
    tickets = [lapi.fetch_and_add(0, window, 0, 1) for _ in range(ROUNDS)]
    assert tickets == sorted(set(tickets))
    lapi.fetch_and_add(0, window, 8, -2, bits=32)
    lapi.fetch_and_or(0, window, 16, 1 << (me + 40))
    # A lock: the task that replaces 0 has it.
    while not lapi.compare_and_swap(0, window, 24, 0, me + 1):
        pass
    assert lapi.compare_and_swap(0, window, 24, 0, me + 1) is False
    assert lapi.swap(0, window, 24, 0) == me + 1
    lapi.gfence()
    if me == 0:
        assert mine[0] == tasks * ROUNDS, mine
        assert mine[1:2].view(numpy.int32).tolist() == [-2 * tasks, 0], mine
        assert mine[2] == sum(1 << (task + 40) for task in range(tasks)), mine
        assert mine[3] == 0, mine
        # Values of either sign, and the largest.
        assert lapi.swap(0, window, 0, 2**64 - 1) == tasks * ROUNDS
        assert lapi.swap(0, window, 0, -(2**63)) == -1
        assert lapi.swap(0, window, 0, 5) == -(2**63)
        assert lapi.swap(0, window, 8, 2**32 - 1, bits=32) == -2 * tasks
        assert lapi.swap(0, window, 8, 7, bits=32) == -1
    print(f"task {me}: the integers are right")
