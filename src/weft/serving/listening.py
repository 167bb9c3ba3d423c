"""Opens the listening socket."""

import socket

from weft.foundation.errors import UserError


def open_socket(host: str, port: int) -> socket.socket:
    """Open a socket on an address; raises UserError if that is not possible."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise UserError(f"cannot listen on {host}:{port} ({error}); choose another --host or --port") from None
    return listener
