"""Inference engines: the PyTorch network here, ONNX Runtime in `onnx_engine.py`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from weft.bodies.linear import transpose_in_memory
from weft.data.readings import TokenSequence
from weft.foundation.malloc import keep_blocks_for_the_next_pass
from weft.inference.joint import Ask, AskedRows, Values, together
from weft.inference.memory import EncodedTexts
from weft.inference.words import no_vector
from weft.tasks.network import Network


class Engine(ABC):
    """Base class of engines. Outputs are in input order. Inputs must not be empty."""

    memory: EncodedTexts | None = None
    """known outputs of sequences, which are not computed again"""

    def answers(self, task: str, rows: AskedRows) -> Values:
        """Return [n, classes] probabilities or [n] numbers (on the training scale) for rows of one or two sequences."""
        return self.together([Ask(task, rows)])[0]

    def vectors(self, task: str, sequences: Sequence[TokenSequence]) -> NDArray[np.float32]:
        """Return [n, width] vectors from the pooling of a task."""
        found = self.together([Ask(task, [[sequence] for sequence in sequences], vectors=True)])
        return np.asarray(found[0], dtype=np.float32)

    @abstractmethod
    def together(self, asks: Sequence[Ask]) -> list[Values]:
        """Return `answers` or `vectors` for each ask. Tasks may be mixed; equal sequences are encoded once."""

    def run_in_parallel(self, most: int) -> int:  # noqa: ARG002
        """Prepare for calls of `together` in up to `most` threads at once; return in how many to call it."""
        return 1

    def favor_small_passes(self) -> None:  # noqa: B027 (engines may have nothing to do)
        """Make passes of few tokens faster at the cost of a copy of the weights, for a process that lives long."""

    @abstractmethod
    def width(self, task: str) -> int:
        """Return the dimension of the task's vectors."""


class TorchEngine(Engine):
    """Runs the PyTorch network on packed sequences, without padding."""

    def __init__(self, network: Network, device: torch.device) -> None:
        self.network = network
        self.device = device
        if device.type == "cpu":
            keep_blocks_for_the_next_pass()

    def together(self, asks: Sequence[Ask]) -> list[Values]:
        return together(self.network, asks, self.device, self.memory)

    def run_in_parallel(self, most: int) -> int:
        """Divide torch's threads among the calls: those of one operation wait for each other, calls do not.

        A small operation does not use several threads well, so two passes on one thread each need less time than two
        passes after each other on two threads.
        """
        if self.device.type != "cpu":
            return 1
        threads = torch.get_num_threads()
        # the most calls that use all threads but one, which then serves clients
        calls = max(n for n in range(1, min(most, threads) + 1) if n * (threads // n) >= threads - 1)
        torch.set_num_threads(threads // calls)
        return calls

    def favor_small_passes(self) -> None:
        if self.device.type == "cpu":
            transpose_in_memory(self.network)

    def width(self, task: str) -> int:
        pooling = self.network.task(task).pooling
        if pooling.keeps_tokens:
            raise no_vector(task)
        return pooling.width
