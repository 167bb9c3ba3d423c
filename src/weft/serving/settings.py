"""Limits and timeouts of the server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSettings:
    """Settings of the server. The command line sets most of them."""

    max_body: int = 1_000_000
    """maximum size of a request's body in bytes"""
    max_texts: int = 256
    """maximum number of texts in a request; a pair counts as one"""
    max_chars: int = 20_000
    """maximum number of characters in a text"""
    batch_tokens: int = 512
    """maximum number of tokens in a forward pass, of all requests that share it; 0 disables batching of requests"""
    max_wait: float = 0.003
    """maximum seconds that a request waits for others to share a pass"""
    queue_tokens: int = 65_536
    """maximum number of tokens queued for the model; further requests get a 429"""
    queue_chars: int = 4_000_000
    """maximum number of characters queued for the tokenizer, counted once for each task that reads them"""
    queue_requests: int = 1024
    """maximum number of requests in progress, from the tokenizer to the answer"""
    body_seconds: float = 10.0
    """maximum seconds for a client to send its body, or the headers of a new connection"""
    drain_seconds: float = 1.0
    """seconds after SIGTERM during which open connections are still read"""
    finish_seconds: float = 30.0
    """maximum seconds after that for requests in flight"""

    @property
    def held_bytes(self) -> int:
        """Maximum bytes of all bodies in memory, each from its headers to its answer."""
        return 64 * self.max_body
