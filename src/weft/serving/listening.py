"""Opens the listening socket."""

import socket

from weft.foundation.errors import UserError


def open_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Open a socket on an address; raises UserError if that is not possible.

    With `shared`, other sockets of this user may have the same address, and the system divides the connections among
    those that listen (SO_REUSEPORT). The protocol is named because asyncio turns Nagle's algorithm off only then: with
    it, the second part of an answer waits for the client to acknowledge the first one, 40 ms with Linux's defaults.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise UserError(f"cannot listen on {host}:{port} ({error}); choose another --host or --port") from None
    return listener


def reserve_socket(host: str, port: int) -> socket.socket:
    """Open a shared socket on an address that nobody uses. It does not listen: it keeps others from the port."""
    if not hasattr(socket, "SO_REUSEPORT"):
        raise UserError("--workers: this system cannot share a port between processes (SO_REUSEPORT); use --workers 1")
    alone = open_socket(host, port)  # fails if another server has the port, also one that would share it
    port = alone.getsockname()[1]
    alone.close()
    return open_socket(host, port, shared=True)
