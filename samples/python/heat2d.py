"""The heat equation on a square, in blocks: each task has one, and puts its edges into the halos of its neighbours.

    poe python heat2d.py [SIZE [STEPS]] -procs 4

Rows are contiguous and are put as they are; columns are put as strided vectors. There are two copies of the field, old and new, whose halos
are filled in turn, so that a neighbour may be one step ahead. Each side has a counter, which is incremented when an edge has arrived.
"""

import sys

import numpy

import openlapi


def grid(tasks):
    """The rows and columns of tasks, as square as possible."""
    rows = max(number for number in range(1, int(tasks**0.5) + 1) if tasks % number == 0)
    return rows, tasks // rows


def part(size, parts, index):
    """The beginning and the end of one of several parts, of which none is larger than another by more than 1."""
    return size * index // parts, size * (index + 1) // parts


def step(old, new):
    """The field after one step of time; the outermost cells do not change."""
    inner = old[1:-1, 1:-1]
    new[1:-1, 1:-1] = inner + 0.2 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] - 4 * inner)


def start(size):
    """The field at the beginning: cold, with a hot square; around it cells that stay cold."""
    field = numpy.zeros((size + 2, size + 2))
    field[size // 4 : size // 2, size // 4 : size // 2] = 100.0
    return field


class Block:
    """The cells of a task, with a halo of one cell on each side."""

    def __init__(self, size, tasks, task):
        self.rows, self.columns = grid(tasks)
        self.row, self.column = divmod(task, self.columns)
        self.top, self.bottom = part(size, self.rows, self.row)
        self.left, self.right = part(size, self.columns, self.column)
        self.shape = self.bottom - self.top + 2, self.right - self.left + 2

    def neighbour(self, down, right):
        """The task of the block beside this one, or None at the boundary."""
        row, column = self.row + down, self.column + right
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return row * self.columns + column if inside else None


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    if size < 4 or steps < 0:
        sys.exit("SIZE is at least 4, STEPS at least 0")
    with openlapi.init() as lapi:
        block = Block(size, lapi.tasks, lapi.task)
        if min(block.shape) < 3:
            sys.exit(f"a square of {size} cells has no cell for task {lapi.task} of {lapi.tasks}")
        height, width = block.shape
        # Old and new, in one window.
        fields = numpy.zeros((2, height, width))
        fields[:] = start(size)[block.top : block.bottom + 2, block.left : block.right + 2]
        window = lapi.window(fields)
        result = numpy.zeros((size + 2, size + 2) if lapi.task == 0 else 0)
        all_cells = lapi.window(result)

        # Where a neighbour is, and the counter that counts edges that come from there.
        sides, arrives = {}, {}
        for down, right in [(-1, 0), (1, 0), (0, -1), (0, 1)]:
            counter = lapi.counter(shared=True)
            task = block.neighbour(down, right)
            if task is not None:
                sides[down, right] = task, counter, Block(size, lapi.tasks, task).shape
            # What this task sends up arrives there from below: the counter of the opposite side.
            arrives[-down, -right] = counter

        item = fields.itemsize
        for number in range(steps):
            here = number % 2
            old, new = fields[here], fields[1 - here]
            for (down, right), (task, _, (their_height, their_width)) in sides.items():
                base = here * their_height * their_width
                counter = arrives[down, right]
                if right == 0:
                    # My first row is the halo below of the block above, and so on.
                    row = their_height - 1 if down < 0 else 0
                    edge = old[1 if down < 0 else height - 2, 1:-1]
                    lapi.put(edge, task, window, item * (base + row * their_width + 1), target_counter=counter)
                else:
                    column = their_width - 1 if right < 0 else 0
                    mine = 1 if right < 0 else width - 2
                    lapi.put_strided(
                        old,
                        task,
                        window,
                        item * (base + their_width + column),
                        block=item,
                        count=height - 2,
                        stride=item * width,
                        target_stride=item * their_width,
                        start=item * (width + mine),
                        target_counter=counter,
                    )
            for _, counter, _ in sides.values():
                counter.wait()
            step(old, new)

        # The blocks go into the square of task 0, row by row.
        last = fields[steps % 2]
        lapi.put_strided(
            last,
            0,
            all_cells,
            item * ((block.top + 1) * (size + 2) + block.left + 1),
            block=item * (width - 2),
            count=height - 2,
            stride=item * width,
            target_stride=item * (size + 2),
            start=item * (width + 1),
        )
        lapi.gfence()
        if lapi.task == 0:
            print(f"task 0: after {steps} steps the heat of {size} x {size} cells is {result.sum():.3f}")
            print(f"task 0: the warmest cell has {result.max():.3f}")
            alone = [start(size), start(size)]
            for number in range(steps):
                step(alone[number % 2], alone[1 - number % 2])
            same = (alone[steps % 2] == result).all()
            print(f"task 0: {'every cell is that of one task' if same else 'WRONG: one task has other cells'}")
            if not same:
                sys.exit(1)


main()
