"""Each task has some measurements; all of them learn the mean and the extremes, and task 0 collects how many each task has."""

import numpy
import openlapi

with openlapi.init() as lapi:
    coll = openlapi.Collectives(lapi)
    me = lapi.task

    measured = 10.0 * me + numpy.arange(me + 1)
    sums = numpy.array([measured.sum(), len(measured)])
    coll.allreduce(sums)
    least, most = measured[:1].copy(), measured[-1:].copy()
    coll.allreduce(least, "min")
    coll.allreduce(most, "max")
    mean = sums[0] / sums[1]
    print(f"task {me}: {sums[1]:.0f} measurements; mean {mean:.2f}, from {least[0]:.0f} to {most[0]:.0f}")

    counts = numpy.zeros(lapi.tasks, dtype=int)
    coll.gather(numpy.array([len(measured)]), counts)
    if me == 0:
        print(f"task 0: measurements by task: {counts.tolist()}")
    coll.close()
