"""Every collective call, with sizes of no, one and several pieces, and every root: compared with what all tasks have."""

import array
import operator
from functools import reduce

import openlapi

PIECE = 64
SIZES = (0, 1, 7, 8, 100, 1000)


def numbers(task, size, kind="q"):
    return array.array(kind, [(task * 7919 + at * 31) % 1009 - 300 for at in range(size)])


with openlapi.init() as lapi:
    coll = openlapi.Collectives(lapi, piece=PIECE)
    me, tasks = lapi.task, lapi.tasks
    for size in SIZES:
        everyone = [numbers(task, size) for task in range(tasks)]
        for root in range(tasks):
            mine = numbers(me, size)
            coll.broadcast(mine, root)
            assert mine == everyone[root], (size, root)

            for op, function in (("sum", operator.add), ("max", max), ("xor", operator.xor), (min, min)):
                mine = numbers(me, size)
                coll.reduce(mine, op, root)
                expected = array.array("q", [reduce(function, values) for values in zip(*everyone)])
                assert me != root or mine == expected, (size, root, op)

            into = array.array("q", [0] * size * tasks)
            coll.gather(numbers(me, size), into if me == root else None, root)
            assert me != root or into == sum(everyone, array.array("q")), (size, root)

        mine = numbers(me, size)
        coll.allreduce(mine, "min")
        assert list(mine) == [min(values) for values in zip(*everyone)]
        into = array.array("q", [0] * size * tasks)
        coll.allgather(numbers(me, size), into)
        assert into == sum(everyone, array.array("q"))
        coll.barrier()

    # Sums that are too large wrap round; products of real numbers do not.
    large = array.array("i", [2**31 - 1])
    coll.allreduce(large)
    assert large[0] == ((2**31 - 1) * tasks + 2**31) % 2**32 - 2**31
    real = array.array("d", [0.5])
    coll.allreduce(real, "prod")
    assert real[0] == 0.5**tasks

    try:
        import numpy
    except ImportError:
        numpy = None
    if numpy:
        field = numpy.arange(600, dtype="f4").reshape(20, 30) + me
        coll.allreduce(field)
        assert (field == tasks * numpy.arange(600).reshape(20, 30) + tasks * (tasks - 1) / 2).all()
        longest = numpy.full(5, me, dtype="i2")
        coll.allreduce(longest, lambda one, other: numpy.maximum(one, other))
        assert (longest == tasks - 1).all()

    # What is wrong is wrong in every task, before any message.
    for wrong in (
        lambda: coll.reduce(array.array("d", [1.0]), "and"),
        lambda: coll.reduce(array.array("d", [1.0]), "mean"),
        lambda: coll.broadcast(bytearray(1), tasks),
        lambda: coll.allgather(bytes(8), bytearray(8 * tasks - 1)),
    ):
        try:
            wrong()
            raise AssertionError("it was not refused")
        except ValueError:
            pass

    # Late tasks are waited for: a barrier ends in no task before the last one has come.
    arrived = bytearray(tasks)
    window = lapi.window(arrived)
    for task in range(tasks):
        lapi.put(b"\1", task, window, me)
    lapi.fence()
    coll.barrier()
    assert arrived == b"\1" * tasks
    coll.close()
    print("all results are right")
