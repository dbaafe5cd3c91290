"""Puts, gets and vectors of all sizes between neighbours, with and without counters."""

import array
import sys

import numpy
import openlapi

SIZES = [0, 1, 8, 100, 4096, 70_000, 3_000_001]


def pattern(task, size, salt):
    return ((numpy.arange(size, dtype=numpy.uint32) * 7 + 31 * task + salt) % 251).astype(numpy.uint8)


with openlapi.init() as lapi:
    me, tasks = lapi.task, lapi.tasks
    assert tasks == int(sys.argv[1]), tasks
    after, before = (me + 1) % tasks, (me - 1) % tasks
    mine = numpy.zeros(max(SIZES) + 8, numpy.uint8)
    window = lapi.window(mine)
    assert window.sizes == [mine.nbytes] * tasks
    arrived = lapi.counter(shared=True)
    origin, done = lapi.counter(), lapi.counter()

    for size in SIZES:
        # A put that waits for its buffer, which is overwritten afterwards.
        data = pattern(me, size, 1)
        lapi.put(data, after, window, 3)
        data[:] = 255
        lapi.gfence()
        assert (mine[3 : 3 + size] == pattern(before, size, 1)).all(), size
        lapi.gfence()

        # With counters, and a buffer that only LAPI holds.
        lapi.put(pattern(me, size, 2), after, window, target_counter=arrived, origin_counter=origin, completion_counter=done)
        arrived.wait()
        assert (mine[:size] == pattern(before, size, 2)).all(), size
        assert origin.wait() == 0 and done.wait() == 0
        lapi.gfence()

        # Gets: one that waits, one with a counter.
        back = bytearray(size)
        lapi.get(back, after, window)
        assert bytes(back) == pattern(me, size, 2).tobytes(), size
        back = numpy.zeros(size, numpy.uint8)
        lapi.get(back, before, window, origin_counter=origin)
        origin.wait()
        assert (back == pattern((before - 1) % tasks, size, 2)).all(), size
        lapi.gfence()

    # Several operations at once, and a fence.
    for i in range(50):
        lapi.put(bytes([i]) * 10_000, after, window, 10_000 * i, origin_counter=origin)
    lapi.fence()
    origin.wait(50)
    lapi.gfence()
    assert all((mine[10_000 * i : 10_000 * (i + 1)] == i).all() for i in range(50))
    lapi.gfence()

    # Counters and buffers that Python drops at once: the library still uses them.
    for i in range(200):
        lapi.put(bytes([i]) * 10_000, after, window, 10_000 * i, origin_counter=lapi.counter())
    lapi.gfence()
    assert all((mine[10_000 * i : 10_000 * (i + 1)] == i).all() for i in range(200))
    lapi.gfence()

    # Other kinds of buffers.
    lapi.put(array.array("d", [1.5, 2.5]), after, window, 16)
    lapi.put(memoryview(b"abcdef")[2:4], after, window, 0)
    lapi.gfence()
    assert mine[16:32].view(numpy.float64).tolist() == [1.5, 2.5]
    assert mine[:2].tobytes() == b"cd"
    lapi.gfence()

    # Vectors.
    pieces = [pattern(me, 1000 + i, 40 + i) for i in range(5)]
    offsets = [5000 * (4 - i) for i in range(5)]
    lapi.putv(pieces, after, window, offsets, target_counter=arrived)
    arrived.wait()
    for i, offset in enumerate(offsets):
        assert (mine[offset : offset + 1000 + i] == pattern(before, 1000 + i, 40 + i)).all(), i
    back = [bytearray(1000 + i) for i in range(5)]
    lapi.getv(back, after, window, offsets, origin_counter=origin)
    origin.wait()
    assert [bytes(piece) for piece in back] == [piece.tobytes() for piece in pieces]
    lapi.gfence()

    lapi.putv([], after, window, [])
    lapi.put_strided(b"", after, window, block=0, count=3, stride=0)

    # A column of a matrix, into another column and back.
    rows, columns = 50, 40
    matrix = numpy.arange(rows * columns, dtype=numpy.float64).reshape(rows, columns) + 1e6 * me
    mine[:] = 0
    lapi.gfence()
    strides = {"block": 8, "count": rows, "stride": matrix.strides[0]}
    lapi.put_strided(matrix, after, window, 8 * 3, start=8 * 7, **strides, completion_counter=done)
    done.wait()
    lapi.gfence()
    there = mine[: matrix.nbytes].view(numpy.float64).reshape(rows, columns)
    assert (there[:, 3] == matrix[:, 7] - 1e6 * me + 1e6 * before).all()
    assert there.sum() == there[:, 3].sum()
    packed = numpy.zeros(rows)
    lapi.get_strided(packed, after, window, 8 * 3, block=8, count=rows, stride=8, target_stride=matrix.strides[0])
    assert (packed == matrix[:, 7]).all()

    window.free()
    del there
    mine.resize(10, refcheck=False)
    print(f"task {me}: all of it arrived")
