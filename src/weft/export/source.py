"""The model to export."""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.bodies.adapters.base import Adapter
from weft.bodies.body import Body
from weft.data.long_texts.truncate import TRUNCATE
from weft.inference.model import Model, load
from weft.nn.layers import OneLayer
from weft.runs.model_folder import model_folder
from weft.tasks.config import TaskConfig
from weft.tasks.network import Network
from weft.tasks.task import Task


@dataclass(frozen=True)
class ExportSource:
    """A trained model to export."""

    folder: Path
    model: Model
    network: Network
    """a copy of the model's network in fp32"""

    @property
    def tasks(self) -> list[str]:
        return self.model.tasks

    def body(self, task: str) -> Body:
        """Return the body as the task reads it, with the task's adapter merged into the weights."""
        return _merged(self.network.body, self.network.adapter_of(task))

    def shared_merged(self) -> Network:
        """Return the network with the shared adapter merged into the body, if there is one to merge."""
        if self.network.adapter is None or not self.network.adapter.can_merge:
            return self.network
        merged = deepcopy(self.network)
        assert merged.adapter is not None
        merged.adapter.merge(list(merged.body.layers))
        merged.adapter = None
        return merged

    def config(self, task: str) -> TaskConfig:
        return self.model.config.tasks[task]

    def task(self, name: str) -> Task:
        return self.network.task(name)

    @property
    def max_length(self) -> int:
        return self.model.config.max_length

    def layers(self, task: str) -> int | None:
        """Return the number of body layers that a task needs, or None if it reads a mix of all layers."""
        layer = self.task(task).layer
        return layer.number if isinstance(layer, OneLayer) else None

    def temperature(self, task: str) -> float:
        """Return the temperature by which a calibrated task's logits are divided; 1 if it is not calibrated."""
        return self.model.temperatures.get(task, 1.0)

    def remark(self, task: str) -> str:
        """Return the preprocessing that weft does itself and a user of the export must do, or an empty string."""
        masks, way = self.config(task).data.mask, self.config(task).long_texts
        masked = [f"mask its texts first ({', '.join(masks)}), as in training"] if masks else []
        cut = [] if way == TRUNCATE else [f"of a text with more than {self.max_length} tokens {way.in_words}"]
        return "; ".join(masked + cut)


def _merged(body: Body, adapter: Adapter | None) -> Body:
    if adapter is None:
        return body
    merged = deepcopy(body)
    adapter.merge(list(merged.layers))
    return merged


def unmergeable(source: ExportSource, name: str) -> str | None:
    """Return why a task's adapter cannot be part of a plain body and what to use instead, or None."""
    adapter, config = source.network.adapter_of(name), source.model.config.adapter
    if adapter is None or config is None or adapter.can_merge:
        return None
    return f'adapter = "{config.name}" adds layers, which no class of this library has; use --to onnx'


def own_code(source: ExportSource, name: str, keys: Sequence[str] = ("pooling", "head", "loss")) -> str | None:
    """Return which part of a task is custom code that no other library has, or None."""
    config = source.config(name)
    parts = {"pooling": config.pooling, "head": config.head, "loss": config.chosen_loss}
    found = [f'{key} = {{ use = "{parts[key].use}" }}' for key in keys if parts[key].use is not None]
    return f"{found[0]} is code that the exported folder does not hold; use --to onnx" if found else None


def other_cut(source: ExportSource, name: str) -> str | None:
    """Return why the tokenizer of another library reads long texts differently from a task, or None."""
    way = source.config(name).long_texts
    if way == TRUNCATE:
        return None
    more = " or --to onnx" if way.one_sequence else ""
    return (
        f'long_texts = "{way.name}": the tokenizers of other libraries read only the beginning of a long text; '
        f"use the model folder with weft (predict, serve){more}"
    )


def open_source(folder: Path, trust_code: bool = False) -> ExportSource:
    path = model_folder(folder)
    model = load(path, "cpu", trust_code=trust_code)
    return ExportSource(path, model, deepcopy(model.network).float().eval())


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
