"""The computation of an ONNX graph as modules that torch can trace: padded texts in, vectors and answers out."""

from collections.abc import Sequence

from torch import Tensor, nn

from weft.bodies.adapted import AdaptedPass
from weft.bodies.adapters.base import Adapter
from weft.losses.crf import Crf
from weft.tasks.network import Network
from weft.tasks.task import Task


class ReadingGraph(nn.Module):
    """Body and poolings, and also the heads unless they need two vectors."""

    def __init__(self, network: Network, tasks: Sequence[str], *, pairs: bool) -> None:
        super().__init__()
        self.body = network.body
        self.own = {name: network.adapter_of(name) for name in tasks}
        self.adapters = nn.ModuleList(adapter for adapter in self.own.values() if adapter is not None)
        self.tasks = nn.ModuleList(network.task(name) for name in tasks)
        self.pairs = pairs
        kept = {name for name in tasks if network.task(name).pooling.keeps_tokens}
        self.inputs = ["input_ids", "attention_mask", "token_type_ids"]
        ends = {name: [""] if name in kept else [".vector"] if pairs else [".vector", ""] for name in tasks}
        for name in kept:
            ends[name] += [f".{scores}" for scores in crf_scores(network.task(name))]
        self.outputs = [f"{name}{end}" for name, own in ends.items() for end in own]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, ...]:
        states: dict[Adapter | None, tuple[Tensor, ...]] = {}  # tasks with the same adapter share a pass
        results = []
        for task in self.tasks:
            assert isinstance(task, Task)
            adapter = self.own[task.name]
            if adapter not in states:
                adapted = AdaptedPass([(adapter, 1)])
                states[adapter] = self.body.padded(input_ids, attention_mask, token_type_ids, adapted)
            vectors = task.padded_vectors(states[adapter], attention_mask)
            if task.pooling.keeps_tokens:
                results += [of_tokens(task, vectors), *crf_scores(task).values()]
                continue
            results += [vectors] if self.pairs else [vectors, in_units(task, [vectors])]
        return tuple(results)


class PairHeads(nn.Module):
    """The heads of bi tasks; the inputs are the two vectors of each task, in the order of `inputs`."""

    def __init__(self, network: Network, tasks: Sequence[str]) -> None:
        super().__init__()
        self.tasks = nn.ModuleList(network.task(name) for name in tasks)
        self.inputs = [f"{name}.{side}" for name in tasks for side in ("first", "second")]
        self.outputs = list(tasks)

    def forward(self, *vectors: Tensor) -> tuple[Tensor, ...]:
        results = []
        for number, task in enumerate(self.tasks):
            assert isinstance(task, Task)
            results.append(in_units(task, list(vectors[2 * number : 2 * number + 2])))
        return tuple(results)


def of_tokens(task: Task, states: Tensor) -> Tensor:
    """[n, l, classes] probabilities of all tokens; with a CRF, the outputs of the head"""
    output = task.outputs([states.flatten(0, 1)])
    answer: Tensor = output if isinstance(task.loss, Crf) else task.loss.read(output)
    return answer.reshape(*states.shape[:2], -1)


def crf_scores(task: Task) -> dict[str, Tensor]:
    """The scores of a task's CRF by name, none without one. They are constant outputs of a graph."""
    return dict(task.loss.named_parameters()) if isinstance(task.loss, Crf) else {}


def in_units(task: Task, vectors: list[Tensor]) -> Tensor:
    """Return probabilities, or values in the label's own units."""
    answer: Tensor = task.loss.read(task.outputs(vectors))
    return task.labels.in_units(answer)
