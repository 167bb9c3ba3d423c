"""Export to ONNX: one graph per reading, with all its tasks. `inference/onnx_engine.py` defines inputs and outputs."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from weft.data.readings import Reading
from weft.export.agreement import TOLERANCE, largest_difference
from weft.export.graph import PairHeads, ReadingGraph
from weft.export.outcome import Outcome, Quantization
from weft.export.source import ExportSource
from weft.export.tokenizer_file import save_tokenizer
from weft.foundation.errors import UserError
from weft.foundation.records import without_nan
from weft.inference.model import load
from weft.inference.onnx_engine import HEADS, graph_file
from weft.losses.crf import Crf
from weft.runs.model_folder import read_settings, write_settings

OPSET = 20
"""the first opset with GELU as one operator"""


def write(source: ExportSource, folder: Path) -> Outcome:
    """Write the graphs, tokenizer and weft.json, and check that the outputs agree with the model's."""
    require_libraries()
    _require_expressible(source)
    _require_one_sequence(source)
    outcome = Outcome()
    for reading, tasks in by_reading(source).items():
        _save_reading(source, reading, tasks, folder)
    save_tokenizer(source, folder, "cross")
    seal(folder, read_settings(source.folder), {"to": "onnx"})
    exported = load(folder)
    for name in source.tasks:
        difference = largest_difference(source.model, exported, name)
        if not difference <= TOLERANCE:  # also true for NaN
            raise UserError(
                f"--to onnx: the ONNX graph of {name!r} differs from the model by {difference:.1e}, more than "
                f"{TOLERANCE:.0e}; nothing was written. Leave the task out, or use the model folder as it is"
            )
        reading = source.config(name).reading
        files = f"{reading}.onnx and {HEADS}.onnx" if reading == "bi" else f"{reading}.onnx"
        remark = f"; {source.remark(name)}" if source.remark(name) else ""
        outcome.written[name] = f"{files} (largest difference from the model {difference:.0e}){remark}"
    return outcome


def quantize(source: ExportSource, folder: Path, data_dir: Path | None) -> Quantization:
    """Replace the graphs by graphs with 8-bit weights, and evaluate both on the dev files."""
    from weft.export.quantize import to_int8

    files = [graph_file(folder, reading) for reading in by_reading(source)]
    before, size = load(folder).evaluate(data_dir=data_dir), sum(file.stat().st_size for file in files)
    for file in files:
        to_int8(file, len(source.network.body.layers))
    settings = read_settings(source.folder)
    seal(folder, settings, {"to": "onnx", "quantize": "int8"})
    after = load(folder).evaluate(data_dir=data_dir)
    scores = {
        kind: {"tasks": evaluation.scores, "overall": evaluation.overall}
        for kind, evaluation in (("fp32", before), ("int8", after))
    }
    seal(folder, settings, {"to": "onnx", "quantize": "int8", "dev": without_nan(scores)})
    return Quantization(before, after, size, sum(file.stat().st_size for file in files))


def by_reading(source: ExportSource) -> dict[Reading, list[str]]:
    """Return the tasks of each reading."""
    found: dict[Reading, list[str]] = {}
    for name in source.tasks:
        found.setdefault(source.config(name).reading, []).append(name)
    return found


def _require_expressible(source: ExportSource) -> None:
    for name in source.tasks:
        loss = source.config(name).chosen_loss
        if loss.of_texts and not isinstance(source.task(name).loss, Crf):
            raise UserError(
                f'--to onnx: the task {name!r} has loss = {{ use = "{loss.use}" }}, which reads whole texts, and an '
                'ONNX folder holds no code; use the model folder as it is, or train with loss = "crf"'
            )


def _require_one_sequence(source: ExportSource) -> None:
    """Raise UserError for a task whose texts may be several sequences: a graph has one answer per sequence."""
    for name in source.tasks:
        way = source.config(name).long_texts
        if not way.one_sequence:
            raise UserError(
                f'--to onnx: {name!r} has long_texts = "{way.name}", which reads a text as several sequences, and an '
                "ONNX graph answers each sequence by itself. Use the model folder with weft (predict, serve), or "
                'train the task with long_texts = "head-tail"'
            )


def require_libraries() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f'--to onnx: {error.name} is not installed; run: pip install "weft[export]"') from None


def _save_reading(source: ExportSource, reading: Reading, tasks: list[str], folder: Path) -> None:
    graph = ReadingGraph(source.shared_merged(), tasks, pairs=reading == "bi")
    # any sizes except 0 and 1, which the tracer would treat as static
    ids = torch.ones(3, 5, dtype=torch.long)
    _save_graph(graph, (ids, torch.ones_like(ids), torch.zeros_like(ids)), 2, graph_file(folder, reading))
    if reading == "bi":
        heads = PairHeads(source.network, tasks)
        vectors = tuple(torch.ones(3, source.task(name).pooling.width) for name in tasks for _ in range(2))
        _save_graph(heads, vectors, 1, graph_file(folder, HEADS))


def _save_graph(graph: ReadingGraph | PairHeads, example: tuple[torch.Tensor, ...], free: int, file: Path) -> None:
    """Trace a graph whose inputs may have any size along their first `free` axes."""
    sizes: Any = tuple(dict.fromkeys(range(free), Dim.DYNAMIC) for _ in example)
    if isinstance(graph, PairHeads):
        sizes = (sizes,)  # its forward takes the vectors as one tuple
    with _quiet(), torch.no_grad():  # with gradients, attention with a bias would be traced in another memory layout
        program = torch.onnx.export(
            graph.eval(),
            example,
            input_names=graph.inputs,
            output_names=graph.outputs,
            dynamic_shapes=sizes,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None, "the dynamo exporter returns a program"
    program.save(str(file), external_data=False)


def seal(folder: Path, settings: dict[str, Any], export: dict[str, Any]) -> None:
    """Write weft.json for the graphs now in the folder: the model's own settings, and how it was exported."""
    files = [*sorted(file.name for file in folder.glob("*.onnx")), "tokenizer.json"]
    write_settings(folder, settings | {"export": export}, files)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress log messages and warnings of the exporter: libraries that are not needed, outputs that are constant."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
