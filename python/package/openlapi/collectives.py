"""Barrier, broadcast, reduction and gathering for all tasks of a job, made of puts into windows and counters.

Task p exchanges data with p + 2^k and p - 2^k, modulo the number of tasks, for each k: whatever the root, each of these channels has
one sender and one receiver. A channel has two slots in the memory of its receiver and a counter there for each of them, which says that it
is full: messages may overtake each other, so that one counter for both slots would not say which. The sender has a counter that says how
many are free. So a task that is already in the next call cannot overwrite what a slower task still reads.
"""

import operator

_SLOTS = 2
_UP, _DOWN = 0, 1

_OPERATIONS = {
    "sum": operator.add,
    "prod": operator.mul,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
# The same for whole arrays of numpy.
_OF_NUMPY = {
    "sum": "add",
    "prod": "multiply",
    "min": "minimum",
    "max": "maximum",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_SIGNED, _UNSIGNED, _REAL = "bhilqn", "BHILQN", "fd"


class Collectives:
    """Collective calls of a context. All tasks make it, and call the same methods in the same order, with the same root and sizes
    that agree. One thread at a time uses it; a program with several makes one for each, in the same order in all tasks.

    ``piece``: how many bytes travel at once. Messages of the program that are under way are not touched: a barrier is no fence.
    """

    def __init__(self, lapi, piece=16384):
        if piece < 1:
            raise ValueError(f"Collectives: a piece of {piece} bytes")
        self._lapi = lapi
        self._piece = -(-piece // 64) * 64
        self._levels = (lapi.tasks - 1).bit_length()
        self._board = bytearray(2 * self._levels * _SLOTS * self._piece)
        self._view = memoryview(self._board)
        self._window = lapi.window(self._board)
        channels = [(direction, level) for direction in (_UP, _DOWN) for level in range(self._levels)]
        self._full = {(channel, slot): lapi.counter(shared=True) for channel in channels for slot in range(_SLOTS)}
        self._room = {channel: lapi.counter(shared=True) for channel in channels}
        self._sent = dict.fromkeys(channels, 0)
        self._taken = dict.fromkeys(channels, 0)

    def barrier(self):
        """Returns when all tasks have called."""
        for level in range(self._levels):
            self._send(_UP, level, b"")
            self._take(_UP, level, 0)

    def broadcast(self, buffer, root=0):
        """Copies the buffer of the root into that of every task, which is writable and has its size."""
        self._check_root(root)
        data = _bytes(buffer, "broadcast", writable=self._lapi.task != root)
        # A task of rank r, counted from the root, gets the data from the rank without its highest
        # bit, and passes it on by the levels above that bit.
        rank = (self._lapi.task - root) % self._lapi.tasks
        first = rank.bit_length()
        for at in range(0, len(data), self._piece):
            part = data[at : at + self._piece]
            if rank != 0:
                part[:] = self._receive(_UP, first - 1, len(part))
                self._release(_UP, first - 1)
            for level in range(first, self._levels):
                if rank + (1 << level) < self._lapi.tasks:
                    self._send(_UP, level, part)

    def reduce(self, buffer, op="sum", root=0):
        """Combines the numbers of all tasks, element by element; the result is in the buffer of the root, and what is in those of the others is
        not said. ``buffer``: a writable numpy array or array.array. ``op``: sum, prod, min, max, and of integers also and, or, xor; or a
        function of two numbers, with an array of numpy of two arrays, that is associative and commutative. Sums and products of
        integers that are too large wrap round.
        """
        self._check_root(root)
        data, array, combine = _numbers(buffer, op)
        rank = (self._lapi.task - root) % self._lapi.tasks
        size = array.itemsize
        if size > self._piece:
            raise ValueError(f"reduce: elements of {size} bytes, and pieces of {self._piece}")
        step = self._piece // size * size
        for at in range(0, len(data), step):
            part = data[at : at + step]
            for level in range(self._levels):
                if rank >> level & 1:
                    self._send(_DOWN, level, part)
                    break
                if rank + (1 << level) < self._lapi.tasks:
                    combine(part, self._receive(_DOWN, level, len(part)))
                    self._release(_DOWN, level)

    def allreduce(self, buffer, op="sum"):
        """As reduce, and every task has the result: the same bits in all of them."""
        self.reduce(buffer, op, 0)
        self.broadcast(buffer, 0)

    def gather(self, buffer, into=None, root=0):
        """Copies the buffers of all tasks, which have one size, one after the other into ``into`` of the root, which is as large as all
        of them. That of the others is not used.
        """
        self._check_root(root)
        mine = _bytes(buffer, "gather")
        size, tasks = len(mine), self._lapi.tasks
        rank = (self._lapi.task - root) % tasks
        if rank == 0:
            if into is None:
                raise ValueError("gather: the root needs `into`")
            into = _bytes(into, "gather: into", writable=True)
            if len(into) < size * tasks:
                raise ValueError(f"gather: `into` has {len(into)} bytes; {tasks} tasks have {size * tasks}")
        # A task collects the blocks of the ranks from its own to below rank + 2^level, where level
        # is its lowest bit.
        level = (rank & -rank).bit_length() - 1 if rank else self._levels
        held = min(1 << level, tasks - rank)
        kept = memoryview(bytearray(held * size))
        kept[:size] = mine
        for below in range(level):
            first = 1 << below
            if rank + first >= tasks:
                break
            end = min(2 * first, held) * size
            for at in range(first * size, end, self._piece):
                part = kept[at : min(at + self._piece, end)]
                part[:] = self._receive(_DOWN, below, len(part))
                self._release(_DOWN, below)
        if rank != 0:
            for at in range(0, len(kept), self._piece):
                self._send(_DOWN, level, kept[at : at + self._piece])
            return
        # Rank 0 is the root, and behind the last task comes task 0.
        before = (tasks - root) * size
        into[root * size : tasks * size] = kept[:before]
        into[: root * size] = kept[before:]

    def allgather(self, buffer, into):
        """As gather, and every task has the buffers of all."""
        size = len(_bytes(buffer, "allgather")) * self._lapi.tasks
        whole = _bytes(into, "allgather: into", writable=True)
        if len(whole) < size:
            raise ValueError(f"allgather: `into` has {len(whole)} bytes; {self._lapi.tasks} tasks have {size}")
        self.gather(buffer, whole, 0)
        self.broadcast(whole[:size], 0)

    def close(self):
        """Ends it; all tasks call it. Its memory is free then."""
        self._window.free()

    def _check_root(self, root):
        if not 0 <= root < self._lapi.tasks:
            raise ValueError(f"root {root}; the job has the tasks 0 to {self._lapi.tasks - 1}")

    def _other(self, direction, level):
        return (self._lapi.task + (1 << level if direction == _UP else -(1 << level))) % self._lapi.tasks

    def _slot(self, direction, level, number):
        return ((direction * self._levels + level) * _SLOTS + number % _SLOTS) * self._piece

    def _send(self, direction, level, data):
        """Puts at most a piece into the next slot of a channel."""
        channel = direction, level
        number = self._sent[channel]
        if number >= _SLOTS:
            self._room[channel].wait()
        self._sent[channel] = number + 1
        offset = self._slot(direction, level, number)
        to = self._other(direction, level)
        self._lapi.put(data, to, self._window, offset, target_counter=self._full[channel, number % _SLOTS])

    def _receive(self, direction, level, size):
        """Waits for the next piece of a channel; it is there until _release."""
        channel = direction, level
        number = self._taken[channel]
        self._full[channel, number % _SLOTS].wait()
        self._taken[channel] = number + 1
        offset = self._slot(direction, level, number)
        return self._view[offset : offset + size]

    def _release(self, direction, level):
        """The sender may use the slot again."""
        other = self._other(1 - direction, level)
        self._lapi.put(b"", other, self._window, target_counter=self._room[direction, level])

    def _take(self, direction, level, size):
        self._receive(direction, level, size)
        self._release(direction, level)


def _bytes(buffer, what, writable=False):
    view = memoryview(buffer)
    if writable and view.readonly:
        raise BufferError(f"{what}: the buffer is read-only")
    return view.cast("B") if view.nbytes else memoryview(b"" if view.readonly else bytearray())


def _numbers(buffer, op):
    """The bytes of an array of numbers, the array, and a function that combines a part of them with others."""
    if isinstance(op, str) and op not in _OPERATIONS:
        raise ValueError(f"no operation is called {op!r}; there are {', '.join(_OPERATIONS)}, and functions")
    data = _bytes(buffer, "reduce", writable=True)
    if hasattr(buffer, "dtype"):
        return data, buffer, _of_numpy(buffer.dtype, op)
    array = memoryview(buffer)
    kind = array.format.lstrip("@")
    if len(kind) != 1 or kind not in _SIGNED + _UNSIGNED + _REAL:
        raise TypeError(f"reduce: elements of format {array.format!r} are no numbers that it knows")
    if kind in _REAL and op in ("and", "or", "xor"):
        raise ValueError(f"reduce: there is no {op} of real numbers")
    function = _OPERATIONS[op] if isinstance(op, str) else op
    bits = 8 * array.itemsize
    half = 1 << (bits - 1) if kind in _SIGNED else 0

    def combine(into, other):
        into, other = into.cast(kind), other.cast(kind)
        for at, value in enumerate(other):
            value = function(into[at], value)
            into[at] = value if kind in _REAL else (value + half) % (1 << bits) - half

    return data, array, combine


def _of_numpy(dtype, op):
    import numpy

    if dtype.kind not in "biufc":
        raise TypeError(f"reduce: an array of {dtype} has no numbers")
    if dtype.kind in "fc" and op in ("and", "or", "xor"):
        raise ValueError(f"reduce: there is no {op} of real numbers")
    function = getattr(numpy, _OF_NUMPY[op]) if isinstance(op, str) else op

    def combine(into, other):
        into, other = numpy.frombuffer(into, dtype), numpy.frombuffer(other, dtype)
        into[:] = function(into, other)

    return combine
