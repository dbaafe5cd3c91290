"""One round of the benchmark, with openlapi under poe or with mpi4py under mpirun: put.py lapi|mpi

Task 0 puts 8 bytes into task 1, which waits in the library. Prints lines: what, kind of memory, microseconds for one put.
"""

import sys
import time

import numpy

WARM, EACH, ROUNDS, BURST = 2000, 5000, 5, 1000


def measure(barrier, me, put, complete, kind):
    """The median over rounds of puts that are completed one by one, and in bursts."""

    def single():
        put()
        complete()

    def burst():
        for _ in range(BURST):
            put()
        complete()

    for what, run, count, puts in [("each completed", single, EACH, 1), ("in bursts", burst, EACH // BURST, BURST)]:
        times = []
        for number in range(ROUNDS + 1):
            barrier()
            if me == 0:
                begin = time.perf_counter()
                for _ in range(count if number else max(1, WARM // puts)):
                    run()
                if number:
                    times.append((time.perf_counter() - begin) / (count * puts))
            barrier()
        if me == 0:
            print(f"{what}\t{kind}\t{1e6 * sorted(times)[len(times) // 2]:.4f}", flush=True)


data = numpy.full(1, 42)
if sys.argv[1] == "lapi":
    import openlapi

    with openlapi.init() as lapi:
        mine = numpy.zeros(8, numpy.int64)
        window = lapi.window(mine)
        measure(lapi.gfence, lapi.task, lambda: lapi.put(data, 1, window, 8), lapi.fence, "own")
        assert lapi.task == 0 or mine[1] == 42
else:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for kind in ["own", "allocated"]:
        # The program's own memory, as a window of openlapi has it; and memory of MPI, which tasks
        # of one machine can share.
        mine = numpy.zeros(8, numpy.int64)
        window = MPI.Win.Create(mine, 1, comm=world) if kind == "own" else MPI.Win.Allocate(64, 1, comm=world)
        window.Lock_all()
        measure(world.Barrier, world.rank, lambda: window.Put(data, 1, 8), lambda: window.Flush(1), kind)
        window.Unlock_all()
        if kind == "own":
            assert world.rank == 0 or mine[1] == 42
        window.Free()
