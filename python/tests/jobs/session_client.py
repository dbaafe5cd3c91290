"""A client of test_sessions.py: session_client.py WHAT ADDRESS ROUTE [KEY]."""

import array
import sys

import openlapi

what, address, route, *key = sys.argv[1:]
place = (address.rsplit(":", 1)[0], int(address.rsplit(":", 1)[1])) if key else address
with openlapi.connect(place, *key, routes=[route], timeout=100) as session:
    if what == "talk":
        header, data = session.receive(100)
        assert header == b"memory"
        memory = int.from_bytes(data, "little")
        session.put(array.array("Q", [7, 8, 9]), memory + 8)
        session.fence()
        back = bytearray(24)
        session.get(back, memory + 8)
        session.fence()
        assert back == array.array("Q", [7, 8, 9]).tobytes()
        assert (session.fetch_add(memory, 2), session.fetch_add(memory, 3)) == (0, 2)
        assert (session.fetch_or(memory, 2**63 + 8), session.swap(memory, 4)) == (5, 2**63 + 13)
        assert (session.compare_and_swap(memory, 3, 6), session.compare_and_swap(memory, 4, 5)) == (False, True)
        for length in 0, 1, 100_000:
            session.send(memoryview(bytes(length)), b"length")
            assert session.receive(100) == (b"length", bytes(length))
        try:
            session.send(b"", bytes(1021))
        except RuntimeError as error:
            assert "1020" in str(error)
        try:
            session.get(b"read-only", memory)
        except BufferError as error:
            assert "read-only" in str(error)
    elif what == "lend":
        memory = bytearray(b"abcdefgh")
        session.send(session.lend(memory).to_bytes(8, "little"))
        try:
            session.receive(100)
        except EOFError:
            pass
    elif what == "echo":
        for number in range(100):
            session.send(bytes([number]))
            assert session.receive(100) == (b"", bytes([number]))
    else:
        session.send(b"connected")
        try:
            session.receive(100)
        except ConnectionResetError as error:
            print(type(error).__name__)
            sys.stdout.flush()
            sys.exit(0)
print("over")
