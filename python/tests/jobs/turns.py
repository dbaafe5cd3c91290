"""Two threads of each task make windows, use them and end them. Which of them meet is not said, but all are alike."""

import threading

import openlapi

ROUNDS, SIZE = 100, 64

with openlapi.init() as lapi:
    failed = []

    def makes():
        try:
            for _ in range(ROUNDS):
                window = lapi.window(bytearray(SIZE))
                assert window.sizes == [SIZE] * lapi.tasks, window.sizes
                for task in range(lapi.tasks):
                    lapi.put(bytes(SIZE), task, window)
        except BaseException as why:
            failed.append(why)
            raise

    threads = [threading.Thread(target=makes) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    # A turn ends, whatever becomes of it.
    lapi.gfence()
    lapi.window(bytearray(SIZE)).free()
