"""Inference with the ONNX files that `weft export --to onnx` writes.

The inputs of READING.onnx are `input_ids`, `attention_mask` and `token_type_ids`, all `[n, l]`. Its outputs for each
task of that reading are `TASK.vector` [n, width] and `TASK`: [n, classes] probabilities, or [n] numbers in the label's
units. For labels of words, `TASK` is [n, l, classes] probabilities of all tokens, and there is no vector. With a CRF,
it is the emissions of all tokens; the constants `TASK.transitions` [classes, classes], `TASK.first` and `TASK.last`
[classes] are the scores with which the engine searches for the best tags of the words.

A bi reading encodes its two texts separately, so bi.onnx outputs only vectors. bi-heads.onnx computes `TASK` from
`TASK.first` and `TASK.second`, for all tasks at once.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from weft.data.readings import Reading, TokenSequence
from weft.foundation.errors import UserError
from weft.inference.engine import Engine
from weft.inference.joint import Ask, AskedRows, Places, Values, lay_out, share_out
from weft.inference.memory import Outputs
from weft.inference.padding import padded_groups
from weft.inference.words import Read, most_probable, no_vector, word_answers
from weft.kinds.labels import Labels
from weft.kinds.tags import objects
from weft.losses.crf import Crf

Floats = NDArray[np.float32]
HEADS = "bi-heads"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def graph_file(folder: Path, name: str) -> Path:
    """Return the path of the graph of a reading, or of the bi heads."""
    return folder / f"{name}.onnx"


def is_onnx_folder(folder: Path) -> bool:
    return any(folder.glob("*.onnx"))


class OnnxEngine(Engine):
    """Engine for ONNX Runtime on the CPU, with the same number of threads as torch."""

    def __init__(self, folder: Path, readings: Mapping[str, Reading], labels: Mapping[str, Labels]) -> None:
        self.readings = readings
        self.labels = labels
        names = [*dict.fromkeys(readings.values()), *([HEADS] if "bi" in readings.values() else [])]
        self.sessions = {name: open_session(graph_file(folder, name)) for name in names}
        outputs = {output.name for session in self.sessions.values() for output in session.get_outputs()}
        self.of_words = {task for task in readings if f"{task}.vector" not in outputs}
        """tasks with labels of words"""
        self.read_words: dict[str, Read] = {
            task: self._crf(task).read_words if f"{task}.transitions" in outputs else most_probable
            for task in self.of_words
        }

    @torch.no_grad()
    def _crf(self, task: str) -> Crf:
        """Return the CRF whose scores are constants of the graph."""
        crf = Crf(len(self.labels[task].names)).requires_grad_(False)
        own = dict(crf.named_parameters())
        nothing = {name: np.ones((1, 2), np.int64) for name in INPUTS}
        found = _run(self.sessions[self.readings[task]], [f"{task}.{name}" for name in own], nothing)
        for parameter, values in zip(own.values(), found, strict=True):
            parameter.copy_(torch.from_numpy(np.array(values)))
        return crf

    def _compare(self, task: str, first: Floats, second: Floats) -> Floats:
        """Run the bi heads of one task. The graph needs inputs for all tasks; the other tasks get empty arrays."""
        session = self.sessions[HEADS]
        vectors = {given.name: np.empty((0, given.shape[1]), np.float32) for given in session.get_inputs()}
        values: Floats = _run(session, [task], vectors | {f"{task}.first": first, f"{task}.second": second})[0]
        return values

    def together(self, asks: Sequence[Ask]) -> list[Values]:
        """Run one pass per reading, because each reading has its own graph."""
        results: dict[int, Values] = {}
        for reading in dict.fromkeys(self.readings[ask.task] for ask in asks):
            own = [i for i, ask in enumerate(asks) if self.readings[ask.task] == reading]
            results.update(zip(own, self._together(reading, [asks[i] for i in own]), strict=True))
        return [results[i] for i in range(len(asks))]

    def _together(self, reading: Reading, asks: Sequence[Ask]) -> list[Values]:
        distinct, places = lay_out(asks)
        wanted = {f"{ask.task}.vector" if ask.vectors or reading == "bi" else ask.task for ask in asks}
        found = self._recalled(reading, sorted(wanted), distinct)

        def answer(task: str, where: Places, rows: AskedRows) -> Values:
            if task in self.of_words:
                return _of_words([row[0] for row in rows], found[task][where[:, 0]], self.read_words[task])
            if reading == "bi":
                values = self._compare(task, *(found[f"{task}.vector"][side] for side in where.T))
            else:
                values = found[task][where[:, 0]]
            return self.labels[task].from_units(np.asarray(values, dtype=np.float64))

        return share_out(asks, places, answer, lambda task, where, _: found[f"{task}.vector"][where[:, 0]])

    def width(self, task: str) -> int:
        outputs = self.sessions[self.readings[task]].get_outputs()
        found = [int(output.shape[1]) for output in outputs if output.name == f"{task}.vector"]
        if not found:
            raise no_vector(task)
        return found[0]

    def _recalled(
        self, reading: Reading, outputs: Sequence[str], sequences: Sequence[TokenSequence]
    ) -> dict[str, Floats]:
        """`_outputs`, but only of the sequences that the memory does not know."""
        if self.memory is None:
            return self._outputs(reading, outputs, sequences)

        def compute(indices: list[int]) -> Outputs:
            found = self._outputs(reading, outputs, [sequences[i] for i in indices])
            return {name: dict(zip(indices, rows, strict=True)) for name, rows in found.items()}

        known = self.memory.outputs(sequences, [outputs] * len(sequences), compute)
        rows = {name: [own[i] for i in range(len(sequences))] for name, own in known.items()}
        return {name: _joined([row[None] for row in own]) for name, own in rows.items()}

    def _outputs(
        self, reading: Reading, outputs: Sequence[str], sequences: Sequence[TokenSequence]
    ) -> dict[str, Floats]:
        """Return several outputs of a reading's graph for every sequence, in input order."""
        groups = padded_groups([len(sequence.ids) for sequence in sequences])
        passes = [_run(self.sessions[reading], outputs, pad([sequences[i] for i in group])) for group in groups]
        back = np.argsort(np.concatenate(groups))
        return {name: _joined(values)[back] for name, values in zip(outputs, zip(*passes, strict=True), strict=True)}


def _joined(values: Sequence[Floats]) -> Any:
    """Join the outputs of passes; outputs of all tokens have another length in every pass and become objects."""
    if len(values[0].shape) < 3:
        return np.concatenate(values)
    return objects([row for part in values for row in part])


def _of_words(rows: Sequence[TokenSequence], outputs: Any, read: Read) -> NDArray[np.float64]:
    """Return predictions for words, from the outputs [l, classes] of all tokens of each row."""
    return word_answers(rows, [torch.from_numpy(np.array(own)) for own in outputs], read)


def pad(sequences: Sequence[TokenSequence]) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of a graph, padded with 0 to `[n, longest]`."""
    shape = len(sequences), max(len(sequence.ids) for sequence in sequences)
    inputs = {name: np.zeros(shape, np.int64) for name in INPUTS}
    for row, sequence in enumerate(sequences):
        assert sequence.windows == 1, "tasks with windows are not exported"
        length = len(sequence.ids)
        inputs["input_ids"][row, :length] = sequence.ids
        inputs["attention_mask"][row, :length] = 1
        inputs["token_type_ids"][row, length - sequence.of_second : length] = 1
    return inputs


def _run(session: Any, outputs: Sequence[str], inputs: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Run a graph. It fails, for example, on an unknown token id, if it was exported with another tokenizer."""
    try:
        import onnxruntime

        options = onnxruntime.RunOptions()
        # a graph with per-task adapters runs the body for each task: compute only what is asked for
        options.only_execute_path_to_fetches = True
        return list(session.run(outputs, inputs, options))
    except Exception as error:  # the library's own errors have no common base
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"an ONNX graph fails on these texts ({reason}); export the run again") from None


def open_session(file: Path) -> Any:
    """Open an ONNX file as an `onnxruntime.InferenceSession`."""
    try:
        import onnxruntime
    except ImportError:
        raise UserError(f'{file.parent}: ONNX files need ONNX Runtime; run: pip install "weft[export]"') from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # waiting threads would keep the cores busy that a server needs for its clients
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's own errors have no common base
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{file}: cannot be read as an ONNX graph ({reason}); export the run again") from None
