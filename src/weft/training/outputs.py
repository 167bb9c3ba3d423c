"""Stored outputs of a frozen body: computed in parts, keyed by content, kept in the cache folder.

A part is a function of the body, the texts and the rows that are computed together, never of what was stored before. So
a run with a filled cache equals a run with an empty one, bit by bit.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import nn

from weft.data.arrays import array_folder, open_array, store_array
from weft.data.dataset import Dataset
from weft.data.readings import TokenSequence, pack
from weft.data.stored import Floats, StoredLayout
from weft.data.tokens import PRIVATE, hash_of
from weft.foundation.config import Config
from weft.foundation.errors import RunError, UserError
from weft.foundation.records import to_json
from weft.inference.passes import at_rest, by_length, vectors, without_repeats
from weft.runs.environment import environment
from weft.tasks.network import Network

FORMAT = "1"
GB = 1e9


class CacheConfig(Config):
    """What is stored of a frozen body's outputs, so that they are computed once."""

    states: Literal["auto", "off"] = "auto"
    """Whether the outputs of frozen layers are stored ("auto") or computed at every step ("off"). They are stored for
    rows that a phase reads more than once, unless dropout, a regularizer or an output penalty needs the whole pass."""
    precision: Literal["fp32", "fp16"] = "fp32"
    """Precision of the stored outputs. fp16 halves the disk space and rounds each number to about 3 digits. A run with
    `optimizer.precision = "fp64"` stores fp64 instead of fp32."""
    max_gb: float = Field(default=20.0, gt=0)
    """Maximum size in GB of all stored outputs in the cache folder. The files that were used longest ago are deleted
    first. A phase that needs more computes its outputs at every step."""


@dataclass(frozen=True)
class OutputForm:
    """What is stored of a sequence for a task."""

    depth: int | None
    """layer whose token states are stored; None for pooled vectors"""
    width: int
    pooling: str = ""
    """layer and poolings of the vectors; empty for states"""
    adapter: str = ""
    """the task whose own adapter changes the states; empty if all tasks have the same states"""

    def __str__(self) -> str:
        return "pooled vectors" if self.depth is None else f"token states of layer {self.depth}"


@dataclass(frozen=True)
class Stock:
    """Rows of one source, and what is stored of them."""

    datasets: tuple[Dataset, ...]
    """data sets that read it"""
    form: OutputForm
    layout: StoredLayout

    @property
    def parts(self) -> range:
        return range(len(self.layout.starts))

    @cached_property
    def texts(self) -> str:
        """Identifies the texts and how they are read."""
        return repr(self.datasets[0].texts_key)


class OutputStore:
    """The arrays of stocks in the cache folder, for the body as it is now."""

    def __init__(self, config: CacheConfig, network: Network, device: torch.device) -> None:
        self.network = network
        self.device = device
        self.most = config.max_gb * GB
        """maximum size of the folder"""
        double = next(network.parameters()).dtype == torch.float64
        self.dtype = np.dtype(np.float64 if double else np.float32)
        """type of the network's weights"""
        self.stored_dtype = np.dtype(np.float16) if config.precision == "fp16" else self.dtype

    def paths(self, stock: Stock, body: str) -> list[Path]:
        """Return the file of each part; `body` is the digest of the body."""
        task = self.network.adapter_of(stock.datasets[0].task)
        settings = repr((stock.form, self.stored_dtype.str))
        found = []
        for part in stock.parts:
            rows = hashlib.sha256(stock.layout.rows[stock.layout.part(part)].tobytes())
            key = hash_of(body, _digest(task), settings, stock.texts, rows.hexdigest())
            found.append(array_folder("states") / f"{key}.npy")
        return found

    def body_digest(self) -> str:
        """Return a digest of the frozen layers as they are now, and of the machine, whose rounding they have."""
        body = self.network.body
        shape = replace(body.shape, dropout=0.0, attention_dropout=0.0)
        machine = to_json(environment(torch.device(self.device.type), 1, {}))
        modules = [body.embeddings, *body.layers[: self.network.settled], body.relative, body.final, body.pooler]
        settings = repr((FORMAT, machine, shape, body.embeddings.use_segments, self.network.settled))
        return hash_of(settings, *(_digest(module) for module in modules))

    def open(self, stock: Stock, part: int, path: Path) -> Floats:
        """Return the array of a part; it is computed now if the cache lacks it."""
        found = open_array(path)
        if found is not None and found.shape == stock.layout.part_shape(part):
            path.touch(PRIVATE)  # the time of its last use, by which old files are deleted
            return found
        with at_rest(self.network), torch.no_grad():
            values = self._compute(stock, part)
        try:
            return store_array(values, path)
        except OSError as error:
            raise RunError(
                f"{path}: cannot be written ({error.strerror}). Free disk space or set WEFT_CACHE to another folder, "
                "then continue with --resume"
            ) from None

    def require_space(self, size: int) -> None:
        """Raise UserError if the disk has less space than this, old files of the folder not counted."""
        if not size:
            return
        folder = array_folder("states")
        free = shutil.disk_usage(folder).free + sum(_bytes(path) for path in folder.iterdir())
        if size > free:
            raise UserError(
                f"cache: the outputs of the frozen body need {in_words(size)}, but the disk of {folder} has "
                f"{in_words(free)} left. Free some space, set WEFT_CACHE to a folder on a larger disk, or set "
                'cache.precision = "fp16" or cache.states = "off" in the recipe'
            )

    def make_room(self, used: Collection[Path], size: int) -> None:
        """Delete the files that were used longest ago, until the folder has room for the files of a phase.

        A process that still reads a deleted file is not affected: it has mapped the file.
        """
        folder = array_folder("states")
        others = sorted((path for path in folder.glob("*.npy") if path not in used), key=_last_use)
        total = size + sum(_bytes(path) for path in others)
        missing = size - sum(_bytes(path) for path in used)
        for path in others:
            if total <= self.most and missing <= shutil.disk_usage(folder).free:
                return
            total -= _bytes(path)
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)

    def _compute(self, stock: Stock, part: int) -> Floats:
        first = stock.datasets[0]
        indices = stock.layout.rows[stock.layout.part(part)]
        sequences = [sequence for index in indices for sequence in first.sequences_at(int(index))]
        shape = stock.layout.part_shape(part)
        if stock.form.depth is None:
            found = vectors(self.network, self.network.task(first.task), sequences, self.device)
            return found.view(shape).cpu().numpy().astype(self.stored_dtype)
        values = np.empty(shape, dtype=self.stored_dtype)
        distinct, places = without_repeats(sequences)
        copies: dict[int, list[int]] = {}
        for place, end in zip(places, np.cumsum([len(one.ids) for one in sequences]).tolist(), strict=True):
            copies.setdefault(place, []).append(end)
        for place, states in self._states(first.task, stock.form.depth, distinct):
            for end in copies[place]:
                values[end - len(states) : end] = states
        return values

    def _states(
        self, task: str, depth: int, sequences: Sequence[TokenSequence]
    ) -> Iterator[tuple[int, NDArray[np.floating[Any]]]]:
        """Yield the number of each sequence and the states [l, w] of its tokens."""
        for group in by_length(sequences):
            encoded = pack([sequences[i] for i in group]).to(self.device)
            adapted = self.network.adapted([(task, len(encoded.ids))])
            states = self.network.body.states_at(encoded, depth, adapted).cpu().numpy()
            ends = np.cumsum([len(sequences[i].ids) for i in group])
            yield from zip(group, np.split(states, ends[:-1]), strict=True)


def _digest(module: nn.Module | None) -> str:
    """Return a digest of the tensors of a module."""
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items() if module is not None else ():
        digest.update(repr((name, tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # not there yet, or deleted by another process


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def in_words(size: float) -> str:
    """Return a number of bytes as text."""
    if size >= GB:
        return f"{size / GB:.1f} GB"
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
