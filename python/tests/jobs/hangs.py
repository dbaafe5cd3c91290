"""Task 0 waits for a counter that is never incremented, task 1 for task 0, in a collective call of the package."""

import openlapi
from openlapi.collectives import Collectives


def stuck(lapi):
    lapi.counter().wait()  # line of the wait


with openlapi.init() as lapi:
    collectives = Collectives(lapi)
    if lapi.task == 0:
        stuck(lapi)
    collectives.barrier()  # line of the barrier
