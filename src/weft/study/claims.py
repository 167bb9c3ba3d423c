"""What a study says of its claims: supported, refuted or undecided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weft.study.format import Claim
from weft.study.outcomes import Measured, Outcomes
from weft.study.statistics import LEVEL, Estimate, difference, holm

Word = Literal["supported", "refuted", "undecided"]


@dataclass(frozen=True)
class Verdict:
    claim: Claim
    word: Word
    why: str
    seeds: tuple[int, ...]
    """those that both arms have"""
    difference: Estimate | None
    """`better` minus `worse`; more is better for the claim"""
    p: float | None
    adjusted: float | None
    """after Holm's correction over the claims of the study"""
    smallest: float | None
    """the difference beyond the margin that this study would have found four times out of five"""
    cost_ratios: tuple[float, ...] = ()
    """cost of `better` over that of `worse`, seed by seed"""


def judge(claims: Sequence[Claim], outcomes: Outcomes) -> list[Verdict]:
    """A claim is decided when its p, corrected for the number of claims, is below 5 %."""
    found = [_compare(claim, outcomes) for claim in claims]
    # a claim of which nothing is known was still asked
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
    if p >= LEVEL:  # and so is the corrected one, which is never smaller
        return "undecided", f"the difference is not clearly on one side of {beyond}"
    above = own.value > -claim.margin
    side = f"{'above' if above else 'below'} {beyond}"
    if corrected >= LEVEL:
        return "undecided", f"clearly {side} by itself, but not as one of several claims"
    return "supported" if above else "refuted", f"the difference is clearly {side}"


def _with_cost(claim: Claim, word: Word, why: str, ratios: tuple[float, ...]) -> tuple[Word, str]:
    """Cost is measured, not inferred: all seeds must agree on which side of the bound it lies."""
    bound = claim.at_most_cost
    assert bound is not None
    if all(ratio > bound for ratio in ratios):
        return "refuted", f"the cost is above {bound:g} of the other's with every seed"
    if any(ratio > bound for ratio in ratios):
        return ("refuted", why) if word == "refuted" else ("undecided", f"the cost is about {bound:g} of the other's")
    return word, f"{why}; the cost is at most {bound:g} of the other's with every seed"


def _ratios(claim: Claim, outcomes: Outcomes, seeds: tuple[int, ...]) -> tuple[float, ...]:
    runs = outcomes.runs
    costs = [(runs[claim.better, seed].cost[claim.cost], runs[claim.worse, seed].cost[claim.cost]) for seed in seeds]
    return tuple(one / two for one, two in costs if two)


def _unknown(claim: Claim, outcomes: Outcomes) -> str:
    for arm in (claim.better, claim.worse):
        if not outcomes.seeds(arm):
            return f"no run of {arm} came to its end"
        if len(outcomes.seeds(arm)) < 2:
            return f"{arm} has one seed, so nothing is known of the spread between seeds"
    return f"{claim.metric} is undefined in a run, or does not vary at all"
