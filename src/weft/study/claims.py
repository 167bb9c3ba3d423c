"""Decides the claims of a study: supported, refuted or undecided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weft.study.format import Claim
from weft.study.outcomes import Measured, Outcomes
from weft.study.statistics import LEVEL, Estimate, difference, holm

Word = Literal["supported", "refuted", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """The decision on one claim, with the statistics behind it."""

    claim: Claim
    word: Word
    why: str
    seeds: tuple[int, ...]
    """Seeds that both arms have."""
    difference: Estimate | None
    """`better` minus `worse`; larger favours the claim."""
    p: float | None
    adjusted: float | None
    """The p-value after Holm's correction over all claims of the study."""
    smallest: float | None
    """Minimum detectable difference from the margin, at a power of 80 %."""
    cost_ratios: tuple[float, ...] = ()
    """Cost of `better` divided by the cost of `worse`, per seed."""


def judge(claims: Sequence[Claim], outcomes: Outcomes) -> list[Verdict]:
    """Decide each claim. A claim is decided if its p-value, corrected for the number of claims, is below 5 %."""
    found = [_compare(claim, outcomes) for claim in claims]
    # a claim without an estimate still counts as a test in Holm's correction
    ps = [1.0 if own is None else own.p(-claim.margin) for claim, (own, _) in zip(claims, found, strict=True)]
    adjusted = holm(ps)
    verdicts = []
    for claim, (own, seeds), p, corrected in zip(claims, found, ps, adjusted, strict=True):
        if own is None:
            verdicts.append(Verdict(claim, "undecided", _unknown(claim, outcomes), seeds, None, None, None, None))
            continue
        ratios = _ratios(claim, outcomes, seeds)
        word, why = _quality(claim, own, p, corrected)
        if claim.at_most_cost is not None:
            word, why = _with_cost(claim, word, why, ratios)
        smallest = own.smallest(LEVEL / len(claims))
        verdicts.append(Verdict(claim, word, why, seeds, own, p, corrected, smallest, ratios))
    return verdicts


def _compare(claim: Claim, outcomes: Outcomes) -> tuple[Estimate | None, tuple[int, ...]]:
    if not (outcomes.seeds(claim.better) and outcomes.seeds(claim.worse)):
        return None, ()
    better, worse = (_measured(claim, arm, outcomes) for arm in (claim.better, claim.worse))
    return difference(better, worse), tuple(s for s in better.seeds if s in worse.seeds)


def _measured(claim: Claim, arm: str, outcomes: Outcomes) -> Measured:
    return (outcomes.gap if claim.on == "gap" else outcomes.measured)(arm, claim.metric)


def _quality(claim: Claim, own: Estimate, p: float, corrected: float) -> tuple[Word, str]:
    beyond = f"-{claim.margin:g}" if claim.margin else "0"
    if p >= LEVEL:  # the corrected p is never smaller, so it is not significant either
        return "undecided", f"the difference is not significantly different from {beyond}"
    above = own.value > -claim.margin
    side = f"{'above' if above else 'below'} {beyond}"
    if corrected >= LEVEL:
        return "undecided", f"significantly {side} on its own, but not after correction for several claims"
    return "supported" if above else "refuted", f"the difference is significantly {side}"


def _with_cost(claim: Claim, word: Word, why: str, ratios: tuple[float, ...]) -> tuple[Word, str]:
    """Combine the verdict on quality with the cost bound, which all seeds must meet or all must exceed."""
    bound = claim.at_most_cost
    assert bound is not None
    if all(ratio > bound for ratio in ratios):
        return "refuted", f"the cost ratio exceeds {bound:g} for every seed"
    if any(ratio > bound for ratio in ratios):
        return ("refuted", why) if word == "refuted" else ("undecided", f"the cost ratio is about {bound:g}")
    return word, f"{why}; the cost ratio is at most {bound:g} for every seed"


def _ratios(claim: Claim, outcomes: Outcomes, seeds: tuple[int, ...]) -> tuple[float, ...]:
    runs = outcomes.runs
    costs = [[runs[arm, seed].cost.get(claim.cost) for arm in (claim.better, claim.worse)] for seed in seeds]
    return tuple(one / two for one, two in costs if one is not None and two)


def _unknown(claim: Claim, outcomes: Outcomes) -> str:
    for arm in (claim.better, claim.worse):
        if not outcomes.seeds(arm):
            return f"no run of {arm} finished"
        if len(outcomes.seeds(arm)) < 2:
            return f"{arm} has one seed, so the variance between seeds is unknown"
    better, worse = outcomes.seeds(claim.better), outcomes.seeds(claim.worse)
    if len(set(better) & set(worse)) < 2:
        return f"{claim.better} and {claim.worse} have fewer than two finished seeds in common"
    return f"{claim.metric} is undefined in a run, or its variance is zero"
