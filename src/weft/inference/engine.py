"""What computes a model's numbers: the torch network here, or its ONNX files in `onnx_engine.py`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.readings import TokenSequence
from weft.foundation.malloc import keep_blocks_for_the_next_pass
from weft.inference.joint import Ask, Values, together
from weft.inference.passes import answers, vectors
from weft.tasks.network import Network


class Engine(ABC):
    """Answers and vectors for token sequences, in their order. There is always at least one."""

    @abstractmethod
    def answers(self, task: str, rows: Sequence[Sequence[TokenSequence]]) -> NDArray[np.float64]:
        """[n, classes] probabilities or [n] numbers (on the scale of training) for rows of one or two sequences"""

    @abstractmethod
    def vectors(self, task: str, sequences: Sequence[TokenSequence]) -> NDArray[np.float32]:
        """[n, width] by the pooling of a task"""

    @abstractmethod
    def together(self, asks: Sequence[Ask]) -> list[Values]:
        """What `answers` or `vectors` gives for each of them, any tasks mixed, every different sequence encoded once"""

    @abstractmethod
    def width(self, task: str) -> int:
        """numbers in each of these vectors"""


class TorchEngine(Engine):
    """The network itself: packed, without padding."""

    def __init__(self, network: Network, device: torch.device) -> None:
        self.network = network
        self.device = device
        if device.type == "cpu":
            keep_blocks_for_the_next_pass()

    def answers(self, task: str, rows: Sequence[Sequence[TokenSequence]]) -> NDArray[np.float64]:
        return answers(self.network, task, rows, self.device)

    def vectors(self, task: str, sequences: Sequence[TokenSequence]) -> NDArray[np.float32]:
        found = vectors(self.network, self.network.task(task), sequences, self.device)
        return found.float().cpu().numpy()

    def together(self, asks: Sequence[Ask]) -> list[Values]:
        return together(self.network, asks, self.device)

    def width(self, task: str) -> int:
        return self.network.task(task).pooling.width
