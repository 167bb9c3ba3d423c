"""What a server allows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSettings:
    """Every number that a person may change on the command line, and a few that none needs to."""

    max_body: int = 1_000_000
    """bytes of a request's body"""
    max_texts: int = 256
    """texts of a request; each pair counts as one"""
    max_chars: int = 20_000
    """characters of one text"""
    batch_tokens: int = 2048
    """tokens of all requests that share one pass through the model; 0 gives every request a pass of its own"""
    max_wait: float = 0.003
    """seconds that a request waits for company at most"""
    queue_tokens: int = 65_536
    """tokens that may wait for the model; who comes later gets a 429"""
    queue_chars: int = 4_000_000
    """characters that may wait for the tokenizer, counted once for each task that reads them"""
    queue_requests: int = 1024
    """requests that may be in work, from the tokenizer to the answer"""
    body_seconds: float = 10.0
    """how long a client may take to send its body, or the headers of a new connection"""
    drain_seconds: float = 1.0
    """after SIGTERM, how long open connections are still listened to"""
    finish_seconds: float = 30.0
    """after that, how long requests in flight may take"""

    @property
    def held_bytes(self) -> int:
        """Bytes of all bodies that are in memory, from their headers to their answers."""
        return 64 * self.max_body
