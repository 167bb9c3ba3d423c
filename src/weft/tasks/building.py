"""Builds readers, files and the network from the configs of a model."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from weft.bodies.adapters.base import Adapter
from weft.bodies.body import Body
from weft.bodies.weights import cut_shape, load_body, read_shape
from weft.data.frames import GivenFrames
from weft.data.readings import Reader
from weft.data.task_files import TaskFiles
from weft.data.tokenizer import Tokenizer
from weft.foundation.components import require_made
from weft.foundation.errors import UserError
from weft.foundation.randomness import seeded
from weft.foundation.start import shapes_alone
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.tasks.config import ModelConfig
from weft.tasks.network import Network
from weft.tasks.task import build_task


def task_files(
    config: ModelConfig,
    task: str,
    tokenizer: Tokenizer,
    data_dir: Path | None = None,
    frames: GivenFrames | None = None,
) -> TaskFiles:
    """Build the access to a task's data files, or to the rows given in Python."""
    reader = build_reader(config, task, tokenizer)
    own = (frames or {}).get(task)
    return TaskFiles(task, config.tasks[task].data, reader, tokenizer, config.seed, data_dir, own)


def build_reader(config: ModelConfig, task: str, tokenizer: Tokenizer) -> Reader:
    """Build the reader that turns a task's texts into token sequences."""
    own = config.tasks[task]
    split = KINDS[own.kind].word_split(own.words)
    return Reader(own.reading, tokenizer.template, config.max_length, own.long_texts, split, own.subwords or "first")


def build_network(
    config: ModelConfig,
    labels: Mapping[str, Labels],
    folder: Path,
    dtype: torch.dtype = torch.float32,
    weights: Mapping[str, Tensor | None] | None = None,
    *,
    mapped: bool = False,
) -> Network:
    """Load the body of `folder` and add new heads, each initialized from its own seed.

    `weights` are class weights. `mapped` keeps the body's weights in the memory-mapped file (`load_body`).
    """
    with seeded(config.seed, "body", "start"):
        body = load_body(
            folder,
            dropout=config.body_dropout,
            attention_dropout=config.body_dropout,
            layers=config.layers,
            mapped=mapped,
        )
    return _with_heads(body, config, labels, weights or {}).to(dtype)


def planned_network(config: ModelConfig, labels: Mapping[str, Labels], folder: Path) -> Network:
    """Build the network on the meta device: the settings of an untrusted model must not exhaust memory."""
    try:
        with shapes_alone():
            return _with_heads(Body(cut_shape(read_shape(folder), config.layers)), config, labels, {})
    except (RuntimeError, TypeError, OverflowError) as error:  # sizes beyond the limits of a tensor
        raise UserError(
            f"{folder}: asks for heads or adapters of an impossible size ({str(error).splitlines()[0]})"
        ) from None


def _with_heads(
    body: Body, config: ModelConfig, labels: Mapping[str, Labels], weights: Mapping[str, Tensor | None]
) -> Network:
    if config.max_length > body.shape.positions:
        raise UserError(f"max_length: found {config.max_length}, but the body has {body.shape.positions} positions")
    if not config.segments and not body.has_segments:
        raise UserError(
            f"segments: found false, but the body is a {body.family.title} without token types, which has nothing to "
            "leave out; remove the key"
        )
    if not config.segments:
        body.leave_segments_out()
    tasks = []
    shared: dict[str, nn.Module] = {}
    _require_shared_heads(config)
    for name, task in config.tasks.items():
        with seeded(config.seed, name, "start"):
            tasks.append(build_task(name, task, labels[name], body, config.dropout, shared, weights.get(name)))
    if config.adapter is None:
        return Network(body, tasks)
    if not config.adapter.per_task:
        return Network(body, tasks, adapter=_adapter(body, config, "all"))
    adapters: dict[str, Adapter] = {}
    by_head: dict[str, Adapter] = {}  # tasks that share a head share their adapter
    for name in config.adapter.tasks or tuple(config.tasks):
        shared_head = config.tasks[name].share_head
        own = by_head.get(shared_head or "")
        adapters[name] = _adapter(body, config, name) if own is None else own
        if shared_head is not None:
            by_head[shared_head] = adapters[name]
    return Network(body, tasks, adapters=adapters)


def _adapter(body: Body, config: ModelConfig, owner: str) -> Adapter:
    """Build the adapter of a task, or of "all" tasks, initialized from its own seed."""
    assert config.adapter is not None
    with seeded(config.seed, "adapter", owner):
        adapter = config.adapter.build(body.shape, list(body.layers))
    require_made(config.adapter, adapter, Adapter, "adapter")
    return adapter


def _require_shared_heads(config: ModelConfig) -> None:
    """Raise UserError if only one task uses a `share_head` name, which is probably a typing error."""
    wanted = Counter(task.share_head for task in config.tasks.values())
    for name, task in config.tasks.items():
        if task.share_head is not None and wanted[task.share_head] == 1:
            raise UserError(f"tasks.{name}.share_head: no other task shares the head {task.share_head!r}")
