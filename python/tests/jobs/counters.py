"""A thread sets a counter while another starts operations with it: buffers are held until their data is there."""

import threading
import time

import openlapi

SIZE = 1 << 20
TRIES = 60

with openlapi.init() as lapi:
    pattern = bytes(range(1, 252)) * (SIZE // 251 + 1)
    window = lapi.window(bytearray(pattern[:SIZE]))
    counter = lapi.counter()
    over = threading.Event()
    refused = 0

    def sets():
        global refused
        while not over.is_set():
            try:
                counter.set(0)
            except ValueError:
                refused += 1
            time.sleep(0.0001)

    setter = threading.Thread(target=sets)
    setter.start()
    early = 0
    for _ in range(TRIES):
        data = bytearray(SIZE)
        while True:
            try:
                lapi.get(data, (lapi.task + 1) % lapi.tasks, window, origin_counter=counter)
                break
            except ValueError as why:
                assert "Counter.set" in str(why), why
        for _ in range(2000):
            try:
                # Refused as long as the buffer is held.
                data.append(0)
            except BufferError:
                counter.value
                continue
            early += data[:SIZE] != pattern[:SIZE]
            break
    over.set()
    setter.join()
    lapi.gfence()
    assert early == 0, f"{early} buffers were freed before their data was there"
    print("no buffer was freed too early")
