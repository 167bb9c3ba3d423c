"""The server's page as a person uses it: in a real browser, on a desk and on a phone."""

import csv
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.exported import write_model
from tests.serving import TASKS, Server
from tests.texts import MIXED_SENTENCES
from tests.tiny import write_rows

webdriver = pytest.importorskip("selenium.webdriver")
HOSTILE = "<img src=x onerror='window.hacked = 1'>"
TOPICS = {"topics": {"like": "sentiment", "kind": "multilabel", "labels": ["bad", "good", HOSTILE]}}


@pytest.fixture(scope="module")
def model(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tiny, tmp_path_factory.mktemp("model"), TASKS | TOPICS)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text("# for the test\nopen-sesame\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def server(model: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(model, log, "--api-key-file", key, "--max-chars", 300) as server:
        yield server
        assert server.stop() == 0


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads: Path) -> Iterator[Any]:
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-sync"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def open_page(browser: Any, server: Server, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(f"{server.url}/")
    wait(browser, lambda: browser.find_element("id", "key").is_displayed())  # asked for by the first answer, a 401
    browser.find_element("id", "key").send_keys("open-sesame\n")
    wait(browser, lambda: browser.find_element("id", "model").text == "tiny")
    assert not browser.find_element("id", "key").is_displayed()


def wait(browser: Any, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline, browser.find_element("tag name", "body").text
        time.sleep(0.02)


def card(browser: Any, task: str) -> Any:
    return browser.find_element("css selector", f"[data-task={task}]")


def answered(browser: Any, task: str = "sentiment") -> bool:
    return bool(browser.find_elements("css selector", f"[data-task={task}]:not(.muted)")) and not (
        browser.find_elements("css selector", ".stale")
    )


def clean(browser: Any, server: Server, width: int) -> None:
    """Nothing is wider than the screen, nothing was fetched from elsewhere, nothing is wrong in the console."""
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return window.hacked === undefined && document.images.length === 0")
    problems = [entry for entry in browser.get_log("browser") if "401" not in entry["message"]]
    assert problems == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith((server.url, "data:", f"blob:{server.url}"))] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_one_text_and_a_pair(browser: Any, server: Server, model: Path, width: int) -> None:
    open_page(browser, server, width)
    first, second = MIXED_SENTENCES[3], MIXED_SENTENCES[8]
    browser.find_element("id", "first").send_keys(first)
    browser.find_element("css selector", "#ask .main").click()
    wait(browser, lambda: answered(browser))
    assert "enter a second one" in card(browser, "similarity").text
    browser.find_element("id", "second").send_keys(second)  # answered while it is written
    wait(browser, lambda: answered(browser, "similarity"))
    loaded = weft.load(model, "cpu")
    (alike,) = loaded.predict("similarity", [first], [second])
    gauge = card(browser, "similarity").find_element("css selector", ".gauge")
    assert gauge.get_attribute("aria-label") == f"{alike.score:.2f}, on a scale from 0 to 5"
    (same,) = loaded.predict("paraphrase", [first], [second])
    assert card(browser, "paraphrase").find_element("css selector", ".verdict").text.startswith(str(same.label))
    verdicts = card(browser, "sentiment").find_elements("css selector", ".verdict")
    expected = loaded.predict("sentiment", [first, second])
    assert [one.text.split()[0] for one in verdicts] == [one.label for one in expected]
    time.sleep(0.4)  # bars grow
    widths = [
        bar.size["width"] / bar.find_element("xpath", "..").size["width"]
        for bar in card(browser, "sentiment").find_elements("css selector", ".track i")
    ]
    numbers = [p for one in expected for p in (one.probabilities or {}).values()]
    assert widths == pytest.approx(numbers, abs=0.03)
    assert HOSTILE in card(browser, "topics").text  # a text, not an image
    assert "tokens" in browser.find_element("id", "status").text
    assert " ms" in browser.find_element("id", "status").text
    clean(browser, server, width)


def test_examples_keys_and_refusals(browser: Any, server: Server) -> None:
    open_page(browser, server, 1280)
    browser.find_elements("css selector", "#examples button")[-1].click()
    wait(browser, lambda: answered(browser, "similarity"))
    assert browser.find_element("id", "second").get_attribute("value")
    browser.find_element("id", "clear").click()
    assert browser.switch_to.active_element.get_attribute("id") == "first"
    wait(browser, lambda: not browser.find_elements("css selector", "[data-task]"))
    browser.find_element("id", "first").send_keys("word " * 70)
    wait(browser, lambda: browser.find_element("id", "problem").is_displayed())
    assert "349 characters, at most 300 are allowed" in browser.find_element("id", "problem").text
    browser.find_element("id", "tab-one").send_keys("\ue014")  # the right arrow
    assert browser.find_element("id", "lines").is_displayed()
    assert browser.switch_to.active_element.get_attribute("id") == "tab-many"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_csv(browser: Any, server: Server, model: Path, downloads: Path, tmp_path: Path, width: int) -> None:
    open_page(browser, server, width)
    pairs = [(a, b) for a, b in zip(MIXED_SENTENCES, MIXED_SENTENCES[::-1], strict=True)]
    rows = [{"id": i, "text": f'{a}, "said" he', "text2": b} for i, (a, b) in enumerate(pairs)]
    rows[5]["text"] = "too long " * 60
    name = f"rows-{width}"
    browser.find_element("id", "tab-many").click()
    browser.find_element("id", "file").send_keys(str(write_rows(tmp_path / f"{name}.csv", rows, ",")))
    wait(browser, lambda: "64 rows" in browser.find_element("id", "columns").text)
    browser.find_element("css selector", "#batch .main").click()
    wait(browser, lambda: browser.find_element("id", "download").is_displayed())
    assert "63 rows answered" in browser.find_element("id", "batch-status").text
    assert len(browser.find_elements("css selector", "#table tbody tr")) == 64
    clean(browser, server, width)
    browser.find_element("id", "download").click()
    made = downloads / f"{name}-answers.csv"
    wait(browser, made.exists)
    with made.open(encoding="utf-8", newline="") as handle:
        found = list(csv.DictReader(handle))
    assert [row["text"] for row in found] == [row["text"] for row in rows]
    assert found[5]["error"] == "longer than 300 characters"
    kept = [i for i in range(64) if i != 5]
    loaded = weft.load(model, "cpu")
    sides = [[str(rows[i][key]) for i in kept] for key in ("text", "text2")]
    for i, one in zip(kept, loaded.predict("similarity", *sides), strict=True):
        assert float(found[i]["similarity"]) == pytest.approx(one.score, abs=1e-5)
    for i, one in zip(kept, loaded.predict("sentiment", sides[0]), strict=True):
        assert found[i]["sentiment"] == one.label
        assert float(found[i]["sentiment_p_good"]) == pytest.approx((one.probabilities or {})["good"], abs=1e-5)


def test_pasted_lines(browser: Any, server: Server) -> None:
    open_page(browser, server, 1280)
    browser.find_element("id", "tab-many").click()
    browser.execute_script("arguments[0].value = 'a cat\\n\\na dog\\n'", browser.find_element("id", "lines"))
    browser.find_element("css selector", "#batch .main").click()
    wait(browser, lambda: browser.find_element("id", "download").is_displayed())
    heads = [cell.text for cell in browser.find_elements("css selector", "#table th")]
    assert heads == ["row", "text", "sentiment", "topics"]
    assert len(browser.find_elements("css selector", "#table tbody tr")) == 2


@pytest.mark.parametrize("width", [1280, 390])
def test_the_docs(browser: Any, server: Server, width: int) -> None:
    open_page(browser, server, width)
    browser.find_element("link text", "API").click()
    wait(browser, lambda: browser.find_element("id", "key").is_displayed())  # another page, which kept no key
    assert browser.find_element("id", "routes").text == ""
    browser.find_element("id", "key").send_keys("open-sesame\n")
    wait(browser, lambda: len(browser.find_elements("css selector", ".route")) >= 8)
    shown = browser.find_element("id", "routes").text
    assert "/v1/predict/{task}" in shown
    assert "probabilities" in shown
    assert "/v1/embeddings" in shown
    clean(browser, server, width)


def test_without_a_key(server: Server) -> None:
    for path in ("/v1/tasks", "/v1/models", "/metrics", "/openapi.json"):
        status, content, headers = server.request("GET", path)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert "API key" in content["error"]["message"]
    assert server.refusal("/v1/predict", b"{")[0] == 401  # before anything else is looked at
    for wrong in ("Bearer open-sesam", "Bearer open-sesame2", "Basic open-sesame", "open-sesame", "Bearer \xfc"):
        assert server.request("GET", "/v1/tasks", headers={"Authorization": wrong})[0] == 401
    assert server.request("GET", "/v1/tasks", headers={"Authorization": "bearer open-sesame"})[0] == 200
    assert server.request("GET", "/healthz")[0] == 200
    assert "sesame" not in server.log.read_text()
