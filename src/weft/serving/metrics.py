"""What Prometheus reads."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (16, 64, 256, 512, 1024, 2048, 4096, 8192)


class Metrics:
    """Counts of one server, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "weft_requests", "Requests by route and status.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "weft_request_seconds", "From the headers to the answer.", ["route"], buckets=SECONDS, registry=registry
        )
        self.batch_requests = Histogram(
            "weft_batch_requests", "Requests that shared a pass.", buckets=REQUESTS, registry=registry
        )
        self.batch_tokens = Histogram("weft_batch_tokens", "Tokens of a pass.", buckets=TOKENS, registry=registry)
        self.tokens = Counter("weft_tokens", "Tokens that the model read.", registry=registry)
        self.chars = Counter("weft_tokenized_characters", "Characters that were tokenized.", registry=registry)
        self.gone = Counter("weft_clients_gone", "Clients that left before their answer.", registry=registry)

    def watch_queue(
        self, requests: Callable[[], float], tokens: Callable[[], float], chars: Callable[[], float]
    ) -> None:
        """Ask for the length of the queue whenever somebody looks."""
        Gauge("weft_queue_characters", "Characters that wait for the tokenizer.", registry=self.registry).set_function(
            chars
        )
        Gauge("weft_queue_requests", "Requests that wait.", registry=self.registry).set_function(requests)
        Gauge("weft_queue_tokens", "Tokens that wait.", registry=self.registry).set_function(tokens)

    def passed(self, requests: int, tokens: int) -> None:
        self.batch_requests.observe(requests)
        self.batch_tokens.observe(tokens)
        self.tokens.inc(tokens)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def page(self) -> bytes:
        return generate_latest(self.registry)
