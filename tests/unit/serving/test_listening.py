"""The listening socket: its connections send each part of an answer at once."""

import asyncio
import socket

import pytest

from weft.serving.listening import open_socket


@pytest.mark.parametrize("shared", [False, True])
def test_connections_send_without_delay(shared: bool) -> None:
    async def option_of_a_connection() -> int:
        accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = open_socket("127.0.0.1", 0, shared=shared)
        async with await asyncio.start_server(on_connection, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            try:
                return await accepted
            finally:
                writer.close()

    assert asyncio.run(option_of_a_connection())
