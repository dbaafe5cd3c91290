"""multiprocessing in a task: children of each method compute, and are no tasks."""

import multiprocessing
import os

import openlapi


def square(number):
    return number * number, os.getpid()


if __name__ == "__main__":
    with openlapi.init() as lapi:
        for method in ("spawn", "forkserver", "fork"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                results = pool.map(square, range(8))
                assert [value for value, _ in results] == [number**2 for number in range(8)], results
                assert os.getpid() not in {pid for _, pid in results}
            lapi.gfence()
        print("children have computed")
