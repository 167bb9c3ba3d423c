"""Model soups: the weights of several runs averaged into one model, greedily by dev score.

Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models improves accuracy without increasing
inference time", 2022. The runs are sorted by their overall dev score. Starting from the best, each next run is added
if the mean of the weights then scores at least as well on the dev rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from weft.data.config import DataConfig
from weft.evaluation.scoring import Evaluation
from weft.foundation.atomic import new_folder
from weft.foundation.errors import UserError
from weft.foundation.records import JsonRecord, to_json
from weft.foundation.sanitize import for_markdown
from weft.inference.evaluate import evaluate_network
from weft.inference.model import Model, load
from weft.runs.folder import RunPaths
from weft.runs.model_folder import model_digest, save_model
from weft.tasks.network import Network

SAME = ("reading", "layer", "pooling", "head", "share_head")
"""keys of a task that decide what its weights mean"""
NOT_DEV = ("train", "test", "doubts")
"""keys of a task's data that do not decide which dev rows it has"""
State = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Ingredient(JsonRecord):
    """One run of a soup."""

    folder: str
    """its name, without the folders above it"""
    digest: str
    """digest of its model"""
    overall: float
    """its own overall dev score"""
    with_it: float
    """overall dev score of the soup with this run added"""
    kept: bool


@dataclass(frozen=True, kw_only=True)
class SoupRecord(JsonRecord):
    """soup.json: what a soup is made of, in the order of tasting."""

    overall: float
    """overall dev score of the soup"""
    ingredients: list[Ingredient]


@dataclass(frozen=True)
class Soup:
    """A soup that was made."""

    record: SoupRecord
    evaluation: Evaluation
    """its scores on the dev rows"""


def make_soup(
    folders: Sequence[Path],
    out: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    trust_code: bool = False,
    tell: Callable[[Ingredient], None] = lambda _: None,
) -> Soup:
    """Average the weights of runs greedily by dev score and write a model folder; `tell` hears of each ingredient."""
    with new_folder(out) as folder:
        digests = [model_digest(one) for one in folders]
        if len(set(digests)) < max(2, len(digests)):
            raise UserError("a soup needs at least two runs with different models")
        models = [load(one, device, trust_code=trust_code) for one in folders]
        for other, model in zip(folders[1:], models[1:], strict=True):
            _require_alike(folders[0], models[0], other, model)
        pot = Pot(models[0], data_dir)
        states = [state_of(model.network) for model in models]
        alone = [pot.score(state) for state in states]
        order = sorted(range(len(models)), key=lambda i: -_worth(alone[i]))
        kept, best = [order[0]], alone[order[0]]
        ingredients = []
        for number in order:
            tasted = best if number == order[0] else pot.score(mean_of([states[i] for i in (*kept, number)]))
            if number != order[0] and _worth(tasted) >= _worth(best):
                kept, best = [*kept, number], tasted
            ingredients.append(
                Ingredient(
                    folder=_name(folders[number]),
                    digest=digests[number],
                    overall=alone[number].overall,
                    with_it=tasted.overall,
                    kept=number in kept,
                )
            )
            tell(ingredients[-1])
        pot.fill(mean_of([states[i] for i in kept]))
        result = SoupRecord(overall=best.overall, ingredients=ingredients)
        config = models[0].config.model_copy(update={"name": f"soup of {len(kept)} of {len(models)} runs"})
        save_model(pot.network, models[0].tokenizer, config, best, pot.train, pot.dev, folder)
        (folder / "soup.json").write_text(to_json(result, indent=2) + "\n", encoding="utf-8")
        with (folder / "README.md").open("a", encoding="utf-8") as card:
            card.write(_section(result))
    return Soup(result, best)


class Pot:
    """A network that takes any weights, and the rows that score them."""

    def __init__(self, model: Model, data_dir: Path | None) -> None:
        self.network = model.network
        self.dev, self.train = (model.datasets(model.tasks, split, data_dir) for split in ("dev", "train"))
        self.device = next(self.network.parameters()).device

    def fill(self, state: State) -> None:
        self.network.load_state_dict(state)

    def score(self, state: State) -> Evaluation:
        """Evaluate the dev rows with these weights."""
        self.fill(state)
        return evaluate_network(self.network, self.dev, 0, self.device)


def state_of(network: Network) -> State:
    """Return a copy of all weights."""
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


def mean_of(states: Sequence[State]) -> State:
    """Return the mean of weights, computed in double precision."""
    return {
        name: torch.stack([state[name].double() for state in states]).mean(dim=0).to(tensor.dtype)
        for name, tensor in states[0].items()
    }


def _name(folder: Path) -> str:
    """Return the name of a run, also if its model folder was given."""
    path = folder.resolve()
    return path.parent.name if path == RunPaths(path.parent).model else path.name


def _worth(evaluation: Evaluation) -> float:
    """Return the overall score; an undefined score ranks last."""
    return evaluation.overall if math.isfinite(evaluation.overall) else -1.0


def _require_alike(first: Path, model: Model, other: Path, another: Model) -> None:
    """Raise UserError unless the weights of two models mean the same and both are scored on the same dev rows."""

    def refuse(what: str, own: object, found: object) -> None:
        if own != found:
            raise UserError(f"{other}: {what} is {found}, but {own} in {first}; the runs of a soup must be alike")

    refuse(
        "the body", *(replace(one.network.body.shape, dropout=0.0, attention_dropout=0.0) for one in (model, another))
    )
    refuse("the list of tasks", model.tasks, another.tasks)
    refuse("the tokenizer", model.tokenizer.digest, another.tokenizer.digest)
    refuse("max_length", model.config.max_length, another.config.max_length)
    refuse("segments", model.config.segments, another.config.segments)
    for name in model.tasks:
        refuse(f"tasks.{name}: the label", model.labels[name].content(), another.labels[name].content())
        mine, theirs = (one.config.content()["tasks"][name] for one in (model, another))
        for key in SAME:
            refuse(f"tasks.{name}.{key}", mine.get(key), theirs.get(key))
        refuse(f"tasks.{name}.loss", *(one.config.tasks[name].chosen_loss.name for one in (model, another)))
        for key in (key for key in DataConfig.model_fields if key not in NOT_DEV):
            refuse(f"tasks.{name}.data.{key}", mine["data"].get(key), theirs["data"].get(key))
        if "dev_fraction" in mine["data"]:
            seeds = [one.config.tasks[name].data.split_seed(one.config.seed) for one in (model, another)]
            refuse("seed, which divides train and dev,", *seeds)
            refuse(f"tasks.{name}.data.train", mine["data"].get("train"), theirs["data"].get("train"))


def _section(record: SoupRecord) -> str:
    """Return the section of the model card about the ingredients."""
    lines = ["| run | own dev score | soup with it | kept |", "| --- | --- | --- | --- |"]
    for one in record.ingredients:
        kept = "yes" if one.kept else "no"
        lines.append(f"| {for_markdown(one.folder)} | {one.overall:.4f} | {one.with_it:.4f} | {kept} |")
    return (
        "\n## Ingredients\n\nThe weights are the mean of the runs that were kept. They were chosen by the same dev "
        "rows that the scores above are of, so the scores are a little optimistic.\n\n" + "\n".join(lines) + "\n"
    )
