"""The page as a person sees it: in a real browser, on a desk and on a phone."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runs import FIVE, TASKS, write_run
from weft.report.page import write_report

webdriver = pytest.importorskip("selenium.webdriver")
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'> needle"
TWELVE = {f"task-{i}-{name}": task for i in range(3) for name, task in list(TASKS.items())[:4]}
MANY = {
    "intent": {"kind": "classification", "labels": [f"an intent with the long name {i}" for i in range(30)]},
    "mood": {"kind": "ordinal", "labels": FIVE},
}
# Where texts lie on each other, leave their picture, or are cut off.
UGLY = """
const found = [];
const far = (a, b) => a.right - 1 < b.left || b.right - 1 < a.left || a.bottom - 2 < b.top || b.bottom - 2 < a.top;
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect();
  if (!frame.width) continue;
  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent);
  const boxes = texts.map((t) => t.getBoundingClientRect());
  boxes.forEach((box, i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
      found.push(`outside: ${svg.getAttribute("aria-label")}: ${texts[i].textContent}`);
    if (texts[i].hasAttribute("transform")) return;
    for (let j = i + 1; j < boxes.length; j++)
      if (!texts[j].hasAttribute("transform") && !far(box, boxes[j]))
        found.push(`overlap: ${svg.getAttribute("aria-label")}: ${texts[i].textContent} / ${texts[j].textContent}`);
  });
}
for (const box of document.querySelectorAll("td, th, dd, figcaption, .texts span, .legend span, summary, pre, h1, h2"))
  if (box.clientWidth && box.scrollWidth > box.clientWidth + 1) found.push(`cut: ${box.textContent.slice(0, 60)}`);
return found;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-sync"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a kind of run, made once."""
    root = tmp_path_factory.mktemp("pages")
    kinds: dict[str, list[dict[str, Any]]] = {
        "all-kinds": [{"texts": {3: HOSTILE}}],
        "one-task": [{"tasks": {"mood": TASKS["mood"]}}],
        "twelve-tasks": [{"tasks": TWELVE}],
        "many-classes": [{"tasks": MANY, "rows": 400}],
        "interrupted": [{"finished": False}],
        "stopped-at-once": [{"finished": False, "predictions": False}],
        "several": [{"texts": {3: HOSTILE}}, {"seed": 2, "texts": {3: HOSTILE}}, {"seed": 3, "texts": {3: HOSTILE}}],
    }

    def page(kind: str) -> Path:
        path = root / f"{kind}.html"
        if not path.exists():
            runs = [write_run(root / kind / f"run-{i}", **options) for i, options in enumerate(kinds[kind])]
            write_report(runs, path)
        return path

    return page


def open_page(browser: Any, path: Path, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())


KINDS = ("all-kinds", "one-task", "twelve-tasks", "many-classes", "interrupted", "stopped-at-once", "several")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_fit_to_be_seen(browser: Any, make: Callable[[str], Path], kind: str, width: int) -> None:
    open_page(browser, make(kind), width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(UGLY) == []
    if browser.find_elements("id", "view-time"):
        browser.find_element("id", "view-time").click()
        assert browser.execute_script(UGLY) == []
    assert browser.execute_script("return window.hacked === undefined && document.images.length === 0")
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert any(url.startswith("file:") for url in asked)


def cards(browser: Any) -> list[Any]:
    return list(browser.find_elements("css selector", "#examples > li"))


def choose(browser: Any, control: str, value: str) -> None:
    from selenium.webdriver.support.select import Select

    Select(browser.find_element("id", control)).select_by_value(value)


def test_examples_can_be_filtered_searched_and_sorted(browser: Any, make: Callable[[str], Path]) -> None:
    open_page(browser, make("several"), 1280)
    everything = browser.find_element("id", "found").text
    choose(browser, "by-task", "near")
    assert {card.get_attribute("data-task") for card in cards(browser)} == {"near"}
    assert browser.find_element("id", "found").text != everything
    choose(browser, "by-order", "error")
    shown = [float(card.get_attribute("data-error")) for card in cards(browser)]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] > shown[-1]
    choose(browser, "by-task", "")
    before = len(cards(browser))
    browser.find_element("id", "more").click()
    assert len(cards(browser)) > before
    browser.find_element("id", "by-word").send_keys("Needle")
    texts = [card.text for card in cards(browser)]
    assert texts
    assert all("needle" in text for text in texts)
    assert "<img src=x" in texts[0]  # a text, not an image
    browser.find_element("id", "by-word").clear()
    browser.find_element("id", "by-word").send_keys("no such word anywhere")
    assert cards(browser) == []


def test_only_one_run_is_right(browser: Any, make: Callable[[str], Path]) -> None:
    open_page(browser, make("several"), 1280)
    choose(browser, "by-right", "1")
    assert cards(browser)
    for card in cards(browser):
        marks = [part.text[-1] for part in card.find_elements("css selector", ".right, .wrong")]
        assert marks == ["✗", "✓", "✗"]


@pytest.mark.long
def test_fifty_thousand_rows(browser: Any, tmp_path: Path) -> None:
    run = write_run(tmp_path / "large", {name: TASKS[name] for name in ("mood", "same", "near")}, rows=50_000)
    path = tmp_path / "large.html"
    write_report([run], path)
    assert path.stat().st_size < 5_000_000
    for width in (1280, 390):
        open_page(browser, path, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(UGLY) == []
