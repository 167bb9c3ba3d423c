"""Metrics of several workers on one page."""

import re

from weft.serving.metrics import Metrics, joined


def value(page: bytes, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", page.decode(), re.MULTILINE)
    assert found, name
    return float(found[1])


def test_pages_are_summed() -> None:
    one, other = Metrics(), Metrics()
    one.answered("POST", "/v1/predict", 200, 0.003)
    for _ in range(2):
        other.answered("POST", "/v1/predict", 200, 0.3)
    other.answered("GET", "/healthz", 200, 0.001)  # a route that the first has not seen
    one.passed(3, 100)
    other.passed(5, 300)
    for number, metrics in enumerate((one, other)):
        metrics.watch_queue(lambda n=number: 1 + n, lambda: 7, lambda: 0)  # type: ignore[misc]
    page = joined([one.page(), other.page()])
    assert value(page, 'weft_requests_total{method="POST",route="/v1/predict",status="200"}') == 3
    assert value(page, 'weft_requests_total{method="GET",route="/healthz",status="200"}') == 1
    assert value(page, 'weft_request_seconds_bucket{le="0.005",route="/v1/predict"}') == 1
    assert value(page, 'weft_request_seconds_bucket{le="+Inf",route="/v1/predict"}') == 3
    assert value(page, "weft_tokens_total") == 400
    assert value(page, "weft_batch_requests_sum") == 8
    assert value(page, "weft_queue_requests") == 3
    assert value(page, "weft_workers") == 2
    start = value(one.page(), "process_start_time_seconds")
    assert value(page, "process_start_time_seconds") == start  # not the sum


def test_one_page_keeps_its_families() -> None:
    metrics = Metrics()
    metrics.answered("POST", "/v1/predict", 200, 0.003)
    kinds = [line for line in metrics.page().decode().splitlines() if line.startswith("# TYPE")]
    assert [line for line in joined([metrics.page()]).decode().splitlines() if line.startswith("# TYPE")] == kinds
