"""Writes results.md, its pictures and the verdicts in other pages from docs/results and docs/champion.json.

python docs/results.py                  write the pages
python docs/results.py FOLDER...        first copy study.json of each finished study into docs/results

A file is NAME.json for the packaged body and NAME@BODY.json for another one, which is named by its folder. No figure
on these pages is written by hand.
"""

import json
import math
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import champion
from forest import ForestRow, picture

from weft.foundation.records import from_json
from weft.foundation.shipped import shipped_texts
from weft.report.words import duration
from weft.study import tables
from weft.study.format import Study, load_study
from weft.study.power import published_score
from weft.study.records import ClaimResult, StudyResult
from weft.study.statistics import LEVEL, Estimate, satterthwaite

DOCS = Path(__file__).parent
FILES, PACKAGED = DOCS / "results", "packaged:minilm-l6"
MOST_SEEDS = 100
END = "<!-- end of what results.py writes -->"
MARK = re.compile(r"<!-- (results|verdict [\w-]+) -->\n.*?" + re.escape(END), re.DOTALL)

HEAD = """# Results

The [studies](studies.md) that ship with weft, run in their small versions. This page is generated (`make docs`) from
the files in `docs/results`, which have every figure. The results hold for these budgets, data and bodies; they say
nothing about training to convergence. [Which method should I use?](which-method.md) has the short answers,
[benchmarks](benchmarks.md) the other measurements.

A verdict is *supported* or *refuted* if the difference is significant after Holm's correction for the claims of the
study, else *undecided*, which is not "no difference": look at the minimum detectable difference, the true difference
that the study detects with a power of 80 %. The published difference is that of the reports' own dev scores, on other
bodies and budgets: a claim whose minimum detectable difference exceeds it could not be expected to be decided here.
The number of seeds that would detect half of it is an estimate from the variances of this study, which are themselves
uncertain with three seeds; where it is large, two cores would train for days, and where it is over 100, there are too
few dev rows.
[How to read a study](studies.md#reading-a-study). To repeat a study takes its CPU time; its elapsed time includes what
else the machine did. `DATA` is a folder with
the files of the presets; `--body FOLDER` repeats a study on another body.
"""
UNPAIRED = (
    "Judged by an earlier version of weft, which took the runs of two arms with the same seed as independent. Where "
    "they are alike, its intervals are too wide."
)


@dataclass(frozen=True)
class Shown:
    """A study on one body."""

    result: StudyResult
    study: Study | None
    """The shipped study of this name; None for a study of one's own."""
    body: str

    @property
    def title(self) -> str:
        return self.result.name if self.body == PACKAGED else f"{self.result.name} on {self.body}"

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-").replace(".", "")

    def origin(self, claim: ClaimResult) -> tuple[int | None, str]:
        """Number and publisher of a claim: those of the shipped study, if the result does not have them."""
        written = [own for own in (self.study.claims if self.study else ()) if own.text == claim.text]
        if claim.published_by or not written:
            return claim.number, claim.published_by
        return written[0].number, written[0].published_by

    @property
    def order(self) -> tuple[float, int, str, bool, str]:
        """Studies of the reports' claims by number, then the others as they are listed in docs/studies.md."""
        numbers = [self.origin(claim)[0] or 99 for claim in self.result.claims]
        listed = (DOCS / "studies.md").read_text(encoding="utf-8").find(f"| `{self.result.name}` |")
        return min(numbers, default=99), listed, self.result.name, self.body != PACKAGED, self.body


def read_results(folder: Path = FILES) -> list[Shown]:
    """Read every file of a study, in the order of the page."""
    found = []
    for file in sorted(folder.glob("*.json")):
        result = from_json(StudyResult, json.loads(file.read_text(encoding="utf-8")), str(file))
        body = short_body(result)
        if file.name != file_name(result):
            raise SystemExit(f"{file}: has {result.name} on {body}, so its name should be {file_name(result)}")
        study = load_study(result.name).study if result.name in shipped_texts("studies") else None
        found.append(Shown(result, study, body))
    return sorted(found, key=lambda shown: shown.order)


def short_body(result: StudyResult) -> str:
    names = {body if body.startswith("packaged:") else Path(body).name for body in result.bodies}
    if len(names) != 1:
        raise SystemExit(f"{result.name}: has the bodies {', '.join(sorted(names))}; expected one")
    return names.pop()


def file_name(result: StudyResult) -> str:
    body = short_body(result)
    return f"{result.name}.json" if body == PACKAGED else f"{result.name}@{body}.json"


def add(folder: Path) -> None:
    """Copy study.json of a finished study, with file names in place of the paths of this machine."""
    text = (folder / "study.json").read_text(encoding="utf-8")
    content = without_paths(json.loads(text))
    result = from_json(StudyResult, content, str(folder))
    if not result.finished:
        raise SystemExit(f"{folder}: some runs are missing or have failed; run the study to its end first")
    (FILES / file_name(result)).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_paths(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_paths(inner) for inner in value]
    return re.sub(r"(?<![\w/])/(?:[^\s/'\",;:]+/)+", "", value) if isinstance(value, str) else value


def page(shown: list[Shown]) -> str:
    """Return results.md."""
    best = champion.read_champions()
    sections = [*([champion.section(best)] if best else []), *(section(one) for one in shown)]
    return "\n".join([HEAD, summary(shown), "![Every claim](forest.svg)", "", claims(shown), *sections])


def summary(shown: list[Shown]) -> str:
    """Count the verdicts, and name the claims that bodies decide differently."""
    counts = [f"{count} {verdict}" for verdict, count in verdict_counts(shown).items()]
    parts: dict[int, set[str]] = {}  # number of a claim of the reports -> the verdicts on its parts
    for one in (one for one in shown if one.body == PACKAGED):
        for claim in one.result.claims:
            if number := one.origin(claim)[0]:
                parts.setdefault(number, set()).add(claim.verdict)
    states: dict[str, list[int]] = {"supported": [], "refuted": [], "supported in part": [], "undecided": []}
    for number, found in parts.items():
        states[of_all_parts(found)].append(number)
    words = [f"{len(own)} {state} ({_listed(own)})" for state, own in states.items()]
    lines = [
        f"**{sum(verdict_counts(shown).values())} verdicts**: {', '.join(counts)}. Of the thirteen claims of the "
        f"reports, {len(parts)} were tested on MiniLM-L6: {', '.join(words)}. Most have several parts: such a claim is "
        "supported if all parts are, and refuted if one is.",
        "",
    ]
    missing = [f"`{name}`" for name in shipped_texts("studies") if name not in {one.result.name for one in shown}]
    lines += [f"Shipped studies without results on this page: {', '.join(missing)}.", ""] if missing else []
    verdicts: dict[str, dict[str, str]] = {}
    for one in shown:
        for claim in one.result.claims:
            verdicts.setdefault(claim.text, {})[one.body] = claim.verdict
    for text, own in verdicts.items():
        if len(set(own.values())) > 1:
            words = ", ".join(f"{verdict} on {_body(body)}" for body, verdict in own.items())
            lines += [f"- The bodies differ: {text} is {words}.", ""]
    return "\n".join(lines)


def of_all_parts(verdicts: Set[str]) -> str:
    if "refuted" in verdicts:
        return "refuted"
    if verdicts == {"supported"}:
        return "supported"
    return "supported in part" if "supported" in verdicts else "undecided"


def verdict_counts(shown: list[Shown]) -> dict[str, int]:
    found = [claim.verdict for one in shown for claim in one.result.claims]
    return {verdict: found.count(verdict) for verdict in ("supported", "refuted", "undecided")}


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"


def _body(name: str) -> str:
    return "MiniLM-L6" if name == PACKAGED else name


def claims(shown: list[Shown]) -> str:
    """Return the table of all claims on all bodies."""
    header = ["", "claim", "published by", "body", "verdict", "difference", "95 % interval", "minimum detectable"]
    header += ["published difference", "seeds that detect half of it", "seeds", "steps"]
    rows = []
    for one in shown:
        for claim in one.result.claims:
            number, by = one.origin(claim)
            published = published_difference(one.result, claim)
            arms = [one.result.arms[name].steps for name in (claim.better, claim.worse)]
            rows.append(
                [
                    "" if number is None else str(number),
                    f"[{claim.text}](#{one.anchor})",
                    by or "–",
                    _body(one.body),
                    claim.verdict,
                    f"{tables.number(claim.difference, signed=True)} {claim.metric}",
                    tables.span(claim.low, claim.high, signed=True),
                    tables.number(claim.smallest_difference),
                    tables.number(published, signed=True),
                    "–" if published is None else enough_seeds(one.result, claim, abs(published) / 2),
                    str(len(claim.seeds)),
                    " / ".join(f"{steps:,}" for steps in dict.fromkeys(arms)),
                ]
            )
    return tables.markdown_table(header, rows) + "\n"


def published_difference(result: StudyResult, claim: ClaimResult) -> float | None:
    """Return the difference between the published dev scores of both arms; None if they are not published."""
    primary = dict(name.split(".", 1) for name in result.metrics if name != "overall")
    printed = [result.arms[arm].published for arm in (claim.better, claim.worse)]
    better, worse = (None if own is None else published_score(own.dev, primary, claim.metric) for own in printed)
    return None if better is None or worse is None or claim.on == "gap" else better - worse


def enough_seeds(result: StudyResult, claim: ClaimResult, target: float) -> str:
    """Estimate the number of seeds whose minimum detectable difference is `target`, at the variances of this study."""
    if claim.standard_error is None or not result.paired_seeds:
        return "–"
    better, worse = (result.arms[name].metrics[claim.metric].seeds for name in (claim.better, claim.worse))
    spread = statistics.variance(one - two for one, two in _of_common_seeds(better, worse))
    of_rows = max(0.0, claim.standard_error**2 - spread / len(claim.seeds))
    for seeds in range(2, MOST_SEEDS + 1):
        squared = spread / seeds + of_rows
        own = Estimate(0.0, math.sqrt(squared), satterthwaite(squared, spread / seeds, seeds))
        if own.smallest(LEVEL / claim.claims_asked) <= target:
            return str(seeds)
    return f"over {MOST_SEEDS}"


def _of_common_seeds(
    better: Mapping[str, float | None], worse: Mapping[str, float | None]
) -> Iterator[tuple[float, float]]:
    for seed, one in better.items():
        two = worse.get(seed)
        if one is not None and two is not None:
            yield one, two


def section(one: Shown) -> str:
    """Return the section of one study on one body."""
    result = one.result
    name = result.name if one.body == PACKAGED else f"{result.name}@{one.body}"
    command = f"weft study {result.name} -o studies/{name} --data-dir DATA{options(one)}"
    parts = [f"## {one.title}", result.about, tables.lead(result), f"```sh\n{command}\n```"]
    parts += [tables.markdown_table(*tables.claim_table(result))] if result.claims else []
    parts += [tables.markdown_table(*tables.score_table(result)), tables.markdown_table(*tables.cost_table(result))]
    parts += [] if result.paired_seeds else [UNPAIRED]
    parts += [total(result), "\n".join(f"- {note}" for note in tables.problems(result)), tables.made_on(result)]
    return "\n".join(f"{part}\n" for part in parts if part)


def options(one: Shown) -> str:
    """Return the options of the command that differ from the shipped study."""
    result, written = one.result, one.study
    words = "" if one.body == PACKAGED else f" --body {one.body}"
    if written is None:
        return words
    words += "".join(f" --set {key}={value}" for key, value in result.set.items() if written.set.get(key) != value)
    return words + ("" if result.seeds == written.seeds else f" --seeds {','.join(map(str, result.seeds))}")


def total(result: StudyResult) -> str:
    """Sum the time of all runs, so that a reader knows what it takes to repeat the study."""
    runs = sum(len(arm.seeds) for arm in result.arms.values())
    costs = [arm.cost for arm in result.arms.values()]
    seconds = sum(sum(cost.seconds.seeds.values()) for cost in costs if cost.seconds)
    known = [cost.cpu_seconds for cost in costs if cost.cpu_seconds]
    cpu = duration(sum(sum(cost.seeds.values()) for cost in known)) if len(known) == len(costs) else "not recorded"
    text = f"All {runs} runs together: time {duration(seconds)}, CPU time {cpu}."
    if result.reused:
        origins = sorted({origin.partition("/")[0] for origin in result.reused.values()})
        text += f" {len(result.reused)} of them equal runs of {', '.join(origins)} and were trained once."
    return text


def answer(shown: list[Shown], study: str) -> str:
    """Return the verdicts of a study as a list for a page that is otherwise written by hand."""
    verdicts: dict[str, list[str]] = {}
    for one in (one for one in shown if one.result.name == study):
        for claim in one.result.claims:
            figures = f"{claim.metric} {tables.number(claim.difference, signed=True)}, "
            figures += f"{tables.span(claim.low, claim.high, signed=True)}"
            found = verdicts.setdefault(f"{claim.text[0].upper()}{claim.text[1:]}", [])
            found.append(f"**{claim.verdict}** on {_body(one.body)} ({figures})")
    lines = [f"- {text}: {'; '.join(found)}." for text, found in verdicts.items()]
    if not lines:
        return f"Not decided here: `weft study {study}` has no committed results yet.\n"
    return "\n".join([*lines, "", f"[The study {study}](results.md#{study})"]) + "\n"


def learnt(shown: list[Shown]) -> str:
    """Return three sentences for README.md: how many claims are decided, what held, and what did not or stays open."""
    counts = verdict_counts(shown)
    found = [(claim, one) for one in shown for claim in one.result.claims if one.body == PACKAGED]
    by_size = sorted(found, key=lambda own: -abs(own[0].difference or 0.0))

    def named(verdict: str) -> str:
        chosen = [own for own in by_size if own[0].verdict == verdict][:3]
        return "; ".join(f"{claim.text} ({tables.number(claim.difference, signed=True)})" for claim, _ in chosen)

    first = f"{sum(counts.values())} verdicts so far: {counts['supported']} supported, "
    first += f"{counts['refuted']} refuted, {counts['undecided']} undecided."
    held = named("supported")
    second = f"Supported, with the largest differences: {held}." if held else "No claim is supported yet."
    fell = named("refuted")
    third = (
        f"Refuted: {fell}."
        if fell
        else f"None is refuted; undecided, with the largest differences: {named('undecided')}."
    )
    return f"{first} {second} {third}\n\n![Every claim with its interval](docs/forest.svg)\n"


def fill(text: str, shown: list[Shown]) -> str:
    """Fill the marked places of a page that is otherwise written by hand."""

    def content(found: re.Match[str]) -> str:
        what, _, study = found[1].partition(" ")
        made = answer(shown, study) if what == "verdict" else learnt(shown)
        return f"<!-- {found[1]} -->\n\n{made}\n{END}"

    return MARK.sub(content, text)


def forest(shown: list[Shown]) -> str:
    """Return forest.svg."""
    rows = []
    for one in shown:
        for claim in one.result.claims:
            label = claim.text if one.body == PACKAGED else f"{claim.text} [{one.body}]"
            label = label if len(label) <= 96 else label[:95] + "…"
            rows.append(ForestRow(label, claim.verdict, claim.difference, claim.low, claim.high, claim.margin))
    return picture(rows)


def made() -> dict[Path, str]:
    """Return every file that this script writes and its content."""
    shown = read_results()
    filled = {file: fill(file.read_text(encoding="utf-8"), shown) for file in _written_by_hand()}
    best = champion.read_champions()
    drawn = any("texts_per_second" in own for own in best.values())
    quality = {DOCS / "champion.svg": champion.picture(best)} if drawn else {}
    return {DOCS / "results.md": page(shown), DOCS / "forest.svg": forest(shown)} | quality | filled


def _written_by_hand() -> list[Path]:
    return [DOCS / "which-method.md", DOCS / "better-models.md", DOCS.parent / "README.md"]


if __name__ == "__main__":
    for given in sys.argv[1:]:
        add(Path(given))
    for file, text in made().items():
        file.write_text(text, encoding="utf-8")
