"""Metrics for Prometheus."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (16, 64, 256, 512, 1024, 2048, 4096, 8192)
LEAST = ("_created", "process_start_time_seconds", "process_max_fds")
"""Endings of samples that are not summed over workers: the least of them is reported."""


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
        Gauge("weft_workers", "Processes that answer.", registry=registry).set(1)
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


class _Joined(Collector):
    """The families of several pages; samples with the same name and labels become one."""

    def __init__(self, pages: Sequence[bytes]) -> None:
        self.pages = pages

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for page in self.pages:
            for family in text_string_to_metric_families(page.decode()):
                families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                own = values.setdefault(family.name, {})
                for sample in family.samples:
                    key = sample.name, tuple(sample.labels.items())
                    if sample.name.endswith(LEAST):
                        own[key] = min(sample.value, own.get(key, sample.value))
                    else:
                        own[key] = own.get(key, 0.0) + sample.value
        for name, family in families.items():
            for (sample_name, labels), value in values[name].items():
                family.add_sample(sample_name, dict(labels), value)
            yield family


def joined(pages: Sequence[bytes]) -> bytes:
    """Join the metrics of several workers into one page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Joined(pages))
    return generate_latest(registry)
