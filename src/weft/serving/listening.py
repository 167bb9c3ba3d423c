"""Where a server listens."""

import socket

from weft.foundation.errors import UserError


def open_socket(host: str, port: int) -> socket.socket:
    """A listening address, or what stands in its way."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise UserError(f"cannot listen at {host}:{port} ({error}); choose another --host or --port") from None
    return listener
