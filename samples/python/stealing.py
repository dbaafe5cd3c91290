"""Work stealing: all work is in one task at first, and a task that has none takes half of another one's.

    poe python stealing.py [ITEMS] -procs 4

The items that a task still has are a range, first and end, in one integer of 64 bits in its window. The owner takes the first item of it, a
thief the second half: each by one compare-and-swap, which fails if another task was faster. Nobody waits for anybody: the
victim does not take part.
"""

import random
import sys

import numpy

import openlapi

# Offsets in the window: the range of the task; in task 0 also how many items are done,
# and their sum.
RANGE, DONE, SUM = 0, 8, 16


def pack(first, end):
    return first << 32 | end


def unpack(both):
    return both >> 32, both & 0xFFFF_FFFF


def work(item):
    """How many steps the numbers of an item take to 1 (Collatz): some take far longer than others."""
    steps = 0
    for number in range(20 * item + 1, 20 * item + 21):
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            steps += 1
    return steps


def main():
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with openlapi.init() as lapi:
        mine = numpy.zeros(3, numpy.int64)
        if lapi.task == 0:
            mine[0] = pack(0, items)
        window = lapi.window(mine)
        others = [task for task in range(lapi.tasks) if task != lapi.task]
        seen = numpy.zeros(1, numpy.int64)

        def take(task, split):
            """Takes a part of the range of a task; None if there is none, or another task was faster."""
            lapi.get(seen, task, window, RANGE)
            both = int(seen[0])
            first, end = unpack(both)
            if first == end:
                return None
            taken, left = split(first, end)
            return taken if lapi.compare_and_swap(task, window, RANGE, both, pack(*left)) else None

        def one(first, end):
            return (first, first + 1), (first + 1, end)

        def half(first, end):
            middle = (first + end) // 2
            return (middle, end), (first, middle)

        worked = stolen = 0
        while True:
            item = take(lapi.task, one)
            if item:
                lapi.fetch_and_add(0, window, SUM, work(item[0]))
                # After the sum: a task that sees that all is done sees the whole sum.
                lapi.fetch_and_add(0, window, DONE, 1)
                worked += 1
                continue
            first, end = unpack(int(mine[0]))
            if first != end:
                # A thief was faster, and has left some.
                continue
            # This task has none, so that no other task changes its range.
            loot = take(random.choice(others), half) if others else None
            if loot:
                stolen += loot[1] - loot[0]
                mine[0] = pack(*loot)
            elif lapi.fetch_and_add(0, window, DONE, 0) == items:
                break

        lapi.gfence()
        counts = numpy.zeros(lapi.tasks, numpy.int64)
        table = lapi.window(counts)
        lapi.put(numpy.array([worked], numpy.int64), 0, table, 8 * lapi.task)
        print(f"task {lapi.task}: worked on {worked} items and stole {stolen}")
        lapi.gfence()
        if lapi.task == 0:
            right = sum(work(item) for item in range(items))
            print(f"task 0: {counts.sum()} items took {mine[2]} steps")
            if counts.sum() != items or mine[2] != right:
                sys.exit(f"WRONG: {items} items take {right} steps")


main()
