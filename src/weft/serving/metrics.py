"""Metrics for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (16, 64, 256, 512, 1024, 2048, 4096, 8192)


class Metrics:
    """Metrics of one server, in a separate registry."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "weft_requests", "Requests by route and status.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "weft_request_seconds", "Latency from headers to answer.", ["route"], buckets=SECONDS, registry=registry
        )
        self.batch_requests = Histogram(
            "weft_batch_requests", "Requests per pass.", buckets=REQUESTS, registry=registry
        )
        self.batch_tokens = Histogram("weft_batch_tokens", "Tokens per pass.", buckets=TOKENS, registry=registry)
        self.tokens = Counter("weft_tokens", "Tokens processed by the model.", registry=registry)
        self.chars = Counter("weft_tokenized_characters", "Characters tokenized.", registry=registry)
        self.gone = Counter("weft_clients_gone", "Clients that disconnected before the answer.", registry=registry)

    def watch_queue(
        self, requests: Callable[[], float], tokens: Callable[[], float], chars: Callable[[], float]
    ) -> None:
        """Register gauges that read the queue lengths at each scrape."""
        Gauge("weft_queue_characters", "Characters queued for the tokenizer.", registry=self.registry).set_function(
            chars
        )
        Gauge("weft_queue_requests", "Queued requests.", registry=self.registry).set_function(requests)
        Gauge("weft_queue_tokens", "Queued tokens.", registry=self.registry).set_function(tokens)

    def passed(self, requests: int, tokens: int) -> None:
        self.batch_requests.observe(requests)
        self.batch_tokens.observe(tokens)
        self.tokens.inc(tokens)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def page(self) -> bytes:
        return generate_latest(self.registry)
