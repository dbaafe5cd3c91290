"""Calls from several lines, from a method, from a handler, and from inside of the package."""

import openlapi
from openlapi.collectives import Collectives


def send(lapi, window, target, times):
    for _ in range(times):
        lapi.put(b"12345678", target, window)  # line of the put
    for _ in range(3):
        lapi.put(b"1234", target, window, 8)  # line of the other put


class Program:
    def __init__(self, lapi, window):
        self.lapi, self.window = lapi, window

    def fetch(self, target):
        back = bytearray(8)
        self.lapi.get(back, target, self.window)  # line of the get
        assert back == b"12345678", back


with openlapi.init() as lapi:
    window = lapi.window(bytearray(64))
    arrived = lapi.counter(shared=True)
    collectives = Collectives(lapi)
    other = 1 - lapi.task

    @lapi.handler
    def answer(source, header, data):
        lapi.fetch_and_add(source, window, 16, 1)  # line of the addition

    send(lapi, window, other, 10)
    lapi.gfence()
    Program(lapi, window).fetch(other)
    lapi.send(other, answer, target_counter=arrived)
    arrived.wait()
    collectives.barrier()  # line of the barrier
    print("done")
