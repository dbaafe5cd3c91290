"""Collective calls on a network that this file plays, where messages overtake each other."""

import openlapi


class Counter:
    def __init__(self, number, late):
        self.number, self.late, self.value = number, late, 0

    def wait(self):
        # What is late arrives when a task waits.
        while self.value < 1 and self.late:
            self.late.pop(0)()
        assert self.value >= 1, "the task waits for ever"
        self.value -= 1


class Task:
    """One of two tasks in this process. Windows and counters are numbered in the order in which both make them."""

    tasks = 2

    def __init__(self, task, job, late):
        self.task, self.job, self.late = task, job, late
        self.windows, self.counters = [], []

    def window(self, buffer):
        self.windows.append(memoryview(buffer))
        return len(self.windows) - 1

    def counter(self, shared):
        assert shared
        self.counters.append(Counter(len(self.counters), self.late))
        return self.counters[-1]

    def put(self, data, to, window, offset=0, *, target_counter):
        # The buffer may be changed at once, as behind every put that has returned.
        data, target = bytes(data), self.job[to]

        def arrive():
            target.windows[window][offset : offset + len(data)] = data
            target.counters[target_counter.number].value += 1

        if data and offset == 0:
            self.late.append(arrive)
        else:
            arrive()


def test_a_piece_that_arrives_before_the_one_sent_before_it():
    job, late = [], []
    job += Task(0, job, late), Task(1, job, late)
    root, other = (openlapi.Collectives(task, piece=64) for task in job)
    # The root sends both pieces, and need not wait.
    data, into = bytes(range(128)), bytearray(128)
    root.broadcast(data)
    assert len(late) == 1 and job[1].windows[0][64:128] == data[64:]
    other.broadcast(into)
    assert into == data
