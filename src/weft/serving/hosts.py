"""Host header check, against DNS rebinding: a page of another site cannot reach the server under a rebound name."""

import re
from collections.abc import Sequence
from ipaddress import ip_address

from weft.foundation.errors import UserError
from weft.serving.refusals import Refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")


class Hosts:
    """Allowed host names: loopback, the address that the server listens on, and those of `--allowed-host`."""

    def __init__(self, address: str, host: str = "", given: Sequence[str] = ()) -> None:
        """`address` is the address that the server listens on, `host` the value of `--host`.

        If it is not a loopback address, every IP address is allowed as host, because the addresses of the machine are
        not known; DNS cannot rebind an address.
        """
        self.given = {_checked(name) for name in given}
        self.names = {*LOOPBACK, address, host.lower(), *self.given} - {""}
        self.allows_addresses = not ip_address(address).is_loopback

    def check(self, host: bytes | None, origin: bytes | None) -> None:
        """Reject a foreign Host or Origin header. Browsers always send Host, so a missing one is safe."""
        if host is not None and not self._allows(_name(host)):
            message = "the name in the Host header is not allowed on this server; see --allowed-host"
            raise Refusal(421, message, "foreign_host")
        if origin is not None and not self._is_own(origin, host):
            raise Refusal(403, "requests from pages of another origin are not allowed", "foreign_origin")

    def _allows(self, name: str) -> bool:
        return name in self.names or (self.allows_addresses and _is_address(name))

    def _is_own(self, origin: bytes, host: bytes | None) -> bool:
        """Whether the page came from the same name and port, or from an allowed name (a proxy may change Host)."""
        where = origin.decode("latin-1").lower().partition("://")[2]
        return bool(where) and (where == (host or b"").decode("latin-1").lower() or _name(where.encode()) in self.given)


def _name(host: bytes) -> str:
    """A Host header without its port."""
    text = host.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _checked(given: str) -> str:
    name = given.strip().lower().removeprefix("[").removesuffix("]")
    if not (NAME.fullmatch(name) or _is_address(name)):
        raise UserError(f"--allowed-host: found {given!r}, expected a host name or an address without scheme and port")
    return name
