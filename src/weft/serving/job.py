"""What a server needs to start, as plain data that can be sent to another process."""

from dataclasses import dataclass
from pathlib import Path

from weft.serving.settings import ServerSettings


@dataclass(frozen=True)
class ServerJob:
    """A model and how to serve it."""

    folder: Path
    """run, model or ONNX folder"""
    device: str
    trust_code: bool
    settings: ServerSettings
    keys: tuple[bytes, ...]
    host: str
    """address to listen on"""
    port: int
    allowed_hosts: tuple[str, ...]
    workers: int = 1
    """processes that divide the cores and share the port"""
