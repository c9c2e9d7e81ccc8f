import random
import socket

import pytest

from interlink.testing import ports


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", ports.free()))


def test_a_free_port_is_not_one_that_an_outgoing_connection_may_get() -> None:
    assert ports.LOWEST <= ports.free() < ports.highest()


def test_a_port_with_a_listener_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(random, "sample", lambda *_: [taken])

        with pytest.raises(OSError, match="no free port"):
            ports.free()


def test_a_port_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs of one test may not get the same, though neither listens yet."""
    first, second = ports.free(), ports.free()
    monkeypatch.setattr(random, "sample", lambda *_: [first, second, 14999])

    assert ports.free() == 14999


def test_ports_do_not_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were given long ago are given again."""
    monkeypatch.setattr(ports, "_given", set(range(ports.LOWEST, ports.highest())))

    assert ports.LOWEST <= ports.free() < ports.highest()
