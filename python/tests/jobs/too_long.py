"""Task 0 sends a message for which task 1 has no memory."""

import resource

import openlapi

BYTES = 1 << 30
lapi = openlapi.init()
handler = lapi.handler(lambda source, header, data: None, name="long")
lapi.gfence()
if lapi.task == 1:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES // 4, used + BYTES // 4))
lapi.gfence()
if lapi.task == 0:
    lapi.send(1, handler, b"", bytes(BYTES))
lapi.gfence()
