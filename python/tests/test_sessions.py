"""A service and its clients, each a process of its own; no launcher has started them."""

import array
import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time

import openlapi
import pytest
from conftest import seconds

HERE = pathlib.Path(__file__).parent
ROUTES = {"shm": "shared memory", "udp": "UDP"}
LATE = seconds(60)


@pytest.fixture
def client(tmp_path):
    """Starts clients, which do not outlive the test."""
    started = []

    def start(*arguments):
        command = [sys.executable, str(HERE / "jobs" / "session_client.py"), *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def over(process):
    said, _ = process.communicate(timeout=LATE)
    assert process.returncode == 0, said
    return said


def serve(listener):
    """Lends memory, and returns what comes, until the client closes the session."""
    memory = array.array("Q", [0]) * 1000
    with listener.accept(LATE) as session:
        session.send(session.lend(memory).to_bytes(8, "little"), b"memory")
        while True:
            try:
                header, data = session.receive(LATE)
            except EOFError:
                return session.route, memory
            session.send(data, header)


@pytest.mark.parametrize("route", ROUTES)
def test_at_a_unix_socket(client, tmp_path, route):
    with openlapi.listen(tmp_path / "socket", routes=[route], timeout=LATE) as listener:
        assert listener.address is None
        peer = client("talk", tmp_path / "socket", route)
        found, memory = serve(listener)
    assert found == ROUTES[route]
    assert list(memory[1:4]) == [7, 8, 9] and memory[0] == 5
    assert over(peer) == "over\n"
    assert not (tmp_path / "socket").exists()


def test_at_a_tcp_port_with_a_key(client, tmp_path):
    key = tmp_path / "key"
    key.write_text("7" * 32)
    with pytest.raises(PermissionError, match="mode"):
        key.chmod(0o644)
        openlapi.listen(("127.0.0.1", 0), key)
    key.chmod(0o600)
    with pytest.raises(ValueError, match="key file"):
        openlapi.listen(("127.0.0.1", 0))
    with openlapi.listen(("127.0.0.1", 0), str(key), timeout=LATE) as listener:
        host, port = listener.address
        peer = client("talk", f"{host}:{port}", "shm", key)
        _, memory = serve(listener)
    assert memory[0] == 5
    over(peer)


def test_a_killed_client_is_lost(client, tmp_path):
    with openlapi.listen(tmp_path / "socket", timeout=LATE) as listener:
        peer = client("wait", tmp_path / "socket", "shm")
        session = listener.accept(LATE)
        assert session.receive(LATE) == (b"", b"connected")
        peer.kill()
        with pytest.raises(ConnectionResetError, match="lost"):
            session.receive(LATE)
        with pytest.raises(ConnectionResetError):
            session.send(b"")
        with pytest.raises(ConnectionResetError):
            session.close()
        assert session.closed
        session.close()
        with pytest.raises(ValueError, match="closed"):
            session.fence()


def test_a_block_that_fails_ends_the_session_at_once(client, tmp_path):
    with openlapi.listen(tmp_path / "socket", timeout=LATE) as listener:
        peer = client("wait", tmp_path / "socket", "shm")
        with pytest.raises(ZeroDivisionError):
            with listener.accept(LATE) as session:
                # A peer that leaves earlier is lost for the call that connects.
                session.receive(LATE)
                1 / 0
        assert session.closed
    assert "ConnectionResetError" in over(peer)


def test_a_block_that_fails_gives_lent_memory_back(client, tmp_path):
    memory = bytearray(8)
    with openlapi.listen(tmp_path / "socket", timeout=LATE) as listener:
        peer = client("wait", tmp_path / "socket", "shm")
        with pytest.raises(ZeroDivisionError):
            with listener.accept(LATE) as session:
                session.receive(LATE)
                session.lend(memory)
                with pytest.raises(BufferError):
                    memory.append(0)
                1 / 0
        memory.append(0)
    over(peer)


def lends(client, tmp_path, route):
    """A session with a client that lends eight bytes, and their address."""
    with openlapi.listen(tmp_path / "socket", timeout=LATE, routes=[route]) as listener:
        peer = client("lend", tmp_path / "socket", route)
        session = listener.accept(LATE)
    _, data = session.receive(LATE)
    return peer, session, int.from_bytes(data, "little")


def release(buffer):
    """Waits until the session has given the buffer back."""
    while True:
        try:
            return buffer.append(0)
        except BufferError:
            time.sleep(0)


@pytest.mark.parametrize("route", ROUTES)
def test_a_buffer_is_kept_while_another_thread_fences(client, tmp_path, route):
    peer, session, memory = lends(client, tmp_path, route)
    stop = threading.Event()

    def fences():
        while not stop.is_set():
            session.fence()

    thread = threading.Thread(target=fences)
    thread.start()
    try:
        for _ in range(300):
            buffer = bytearray(8)
            session.get(buffer, memory)
            release(buffer)
            assert buffer == b"abcdefgh\0"
    finally:
        stop.set()
        thread.join()
    session.close()
    assert over(peer) == "over\n"


def test_a_program_without_fences_gets_its_buffers_back(client, tmp_path):
    peer, session, memory = lends(client, tmp_path, "shm")
    first = bytearray(b"ABCDEFGH")
    session.put(first, memory)
    until = time.monotonic() + LATE
    while True:
        assert time.monotonic() < until
        session.progress()
        session.put(b"", memory)
        try:
            first.append(0)
            break
        except BufferError:
            pass
    session.close()
    over(peer)


def test_an_atomic_operation_ends_by_a_signal(client, tmp_path):
    peer, session, memory = lends(client, tmp_path, "udp")
    peer.send_signal(signal.SIGSTOP)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        session.fetch_add(memory, 1)
    peer.send_signal(signal.SIGCONT)
    session.close()
    over(peer)


def test_an_event_loop(client, tmp_path):
    """The listener and the sessions sleep on one epoll descriptor."""
    sessions, ended = {}, []
    with openlapi.listen(tmp_path / "socket", timeout=LATE) as listener, select.epoll() as loop:
        loop.register(listener, select.EPOLLIN)
        peers = [client("echo", tmp_path / "socket", "shm") for _ in range(3)]
        until = time.monotonic() + LATE
        while len(ended) < 3:
            assert time.monotonic() < until
            if (session := listener.accept(0)) is not None:
                sessions[session.fileno()] = session
                loop.register(session, select.EPOLLIN)
            for number, session in list(sessions.items()):
                try:
                    while session.progress() or not session.arm():
                        while (message := session.receive(0)) is not None:
                            session.send(message[1])
                except EOFError:
                    loop.unregister(number)
                    sessions.pop(number).close()
                    ended.append(number)
            if len(ended) < 3:
                loop.poll(LATE)
    for peer in peers:
        assert over(peer) == "over\n"


def test_a_wait_ends_by_its_time_and_by_signals(tmp_path):
    with openlapi.listen(tmp_path / "socket", timeout=LATE) as listener:
        assert listener.accept(0.05) is None
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            listener.accept(LATE)
    with pytest.raises(ValueError, match="closed"):
        listener.fileno()


def test_a_signal_that_closes_the_listener_ends_the_service(tmp_path):
    """What the handler raises reaches the program, not that the listener is closed."""
    listener = openlapi.listen(tmp_path / "socket", timeout=LATE)

    def ends(*_):
        listener.close()
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, ends)
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        with pytest.raises(SystemExit):
            listener.accept(LATE)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not (tmp_path / "socket").exists()


def test_a_listener_is_closed_beside_a_thread_that_accepts(tmp_path):
    for number in range(20):
        listener, ended = openlapi.listen(tmp_path / str(number), timeout=LATE), []

        def accepts():
            try:
                listener.accept(LATE)
            except Exception as why:
                ended.append(repr(why))

        threads = [threading.Thread(target=accepts, daemon=True)]
        threads[0].start()
        time.sleep(0.01 * (number % 3))
        threads += [threading.Thread(target=listener.close, daemon=True)]
        threads[1].start()
        for thread in threads:
            thread.join(LATE / 2)
            assert not thread.is_alive()
        assert ended == ["ValueError('the listener is closed')"]


def test_a_forked_child_leaves_the_listener_to_its_parent(client, tmp_path):
    """Its parent's thread that waits for a client does not hold it up."""
    with openlapi.listen(tmp_path / "socket", timeout=LATE) as listener:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(listener.accept(LATE)))
        thread.start()
        try:
            for child in range(20):
                # Anywhere in a step of the wait.
                time.sleep(0.01)
                process = os.fork()
                if process == 0:
                    try:
                        with pytest.raises(RuntimeError, match="parent"):
                            listener.accept(0)
                        listener.close()
                        with pytest.raises(ValueError, match="closed"):
                            listener.fileno()
                        os._exit(0)
                    finally:
                        os._exit(1)
                until = time.monotonic() + LATE
                while (ended := os.waitpid(process, os.WNOHANG)) == (0, 0):
                    if time.monotonic() > until:
                        os.kill(process, signal.SIGKILL)
                    time.sleep(0.001)
                assert ended == (process, 0), child
        finally:
            peer = client("echo", tmp_path / "socket", "shm")
            thread.join()
    [session] = accepted
    for _ in range(100):
        session.send(session.receive(LATE)[1])
    session.close()
    assert over(peer) == "over\n"


def test_misuse(tmp_path):
    with pytest.raises(FileNotFoundError):
        openlapi.connect(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        openlapi.connect(tmp_path / "absent", timeout=1e18)
    with pytest.raises(ValueError, match="route"):
        openlapi.connect(tmp_path / "absent", routes=["pigeon"])
    with pytest.raises(ValueError):
        openlapi.connect(tmp_path / "absent", timeout=-1)
    with pytest.raises(TypeError):
        openlapi.connect(7)
