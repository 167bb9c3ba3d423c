"""Which names and origins a server answers to."""

import pytest

from weft.foundation.errors import UserError
from weft.serving.hosts import Hosts
from weft.serving.refusals import Refusal

LOCAL = Hosts("127.0.0.1", "127.0.0.1", ["weft.example"])
OPEN = Hosts("0.0.0.0", "0.0.0.0")


def status(hosts: Hosts, host: str | None, origin: str | None = None) -> int:
    try:
        hosts.check(*(None if text is None else text.encode() for text in (host, origin)))
    except Refusal as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize(
    ("host", "on_loopback", "on_all_addresses"),
    [
        ("localhost", 200, 200),
        ("LOCALHOST:8000", 200, 200),
        ("localhost.:8000", 200, 200),
        ("127.0.0.1:8000", 200, 200),
        ("[::1]:8000", 200, 200),
        ("weft.example:443", 200, 421),
        (None, 200, 200),
        ("192.168.7.4:8000", 421, 200),
        ("[fd00::7]", 421, 200),
        ("elsewhere.example", 421, 421),
        ("elsewhere.example:8000", 421, 421),
        ("weft.example.elsewhere.example", 421, 421),
        ("localhost.elsewhere.example", 421, 421),
        ("127.0.0.1.elsewhere.example", 421, 421),
        ("localhost@elsewhere.example", 421, 421),
        ("", 421, 421),
        ("[", 421, 421),
        ("\x00", 421, 421),
    ],
)
def test_hosts(host: str | None, on_loopback: int, on_all_addresses: int) -> None:
    assert status(LOCAL, host) == on_loopback
    assert status(OPEN, host) == on_all_addresses


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:8000", 200),
        ("http://LOCALHOST:8000", 200),
        ("https://weft.example", 200),  # a proxy with a certificate, which asks for localhost
        ("http://localhost:3000", 403),  # another server of the same machine
        ("http://localhost", 403),
        ("http://elsewhere.example", 403),
        ("http://elsewhere.example:8000", 403),
        ("http://localhost:8000.elsewhere.example", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
        ("http://[", 403),
    ],
)
def test_origins(origin: str, expected: int) -> None:
    assert status(LOCAL, "localhost:8000", origin) == expected


@pytest.mark.parametrize("name", ["", "http://weft.example", "weft.example:80", "*", "a b", "-"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UserError, match="--allowed-host: found .* expected a host name or an address"):
        Hosts("127.0.0.1", "", [name])


@pytest.mark.parametrize("name", ["Weft.Example", "[fd00::7]", "192.168.7.4", "weft_1"])
def test_names_that_are_some(name: str) -> None:
    assert status(Hosts("127.0.0.1", "", [name]), f"{name}:8000") == 200
