"""Two threads of each task make windows and use them, and then handlers. Which of them meet is not said, but all are alike."""

import threading

import openlapi

ROUNDS, SIZE = 500, 64

with openlapi.init() as lapi:
    failed = []

    def windows():
        for _ in range(ROUNDS):
            window = lapi.window(bytearray(SIZE))
            assert window.sizes == [SIZE] * lapi.tasks, window.sizes
            for task in range(lapi.tasks):
                lapi.put(bytes(SIZE), task, window)

    def handlers():
        made = [lapi.handler(lambda *_: None, name="handler") for _ in range(ROUNDS)]
        done = lapi.counter()
        for handler in made:
            for task in range(lapi.tasks):
                lapi.send(task, handler, completion_counter=done)
        done.wait(lapi.tasks * ROUNDS)

    def run(makes):
        try:
            makes()
        except BaseException as why:
            failed.append(why)
            raise

    for makes in windows, handlers:
        threads = [threading.Thread(target=run, args=(makes,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
    # A turn ends, whatever becomes of it.
    lapi.gfence()
    lapi.window(bytearray(SIZE)).free()
