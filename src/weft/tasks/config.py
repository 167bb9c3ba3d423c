"""The configuration of tasks and models."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, field_validator, model_validator

from weft.bodies.adapters import AdapterConfig
from weft.bodies.adapters.base import AdapterOptions
from weft.data.config import DataConfig, DataField
from weft.data.long_texts import LongTextsConfig
from weft.data.long_texts.truncate import TRUNCATE
from weft.data.readings import Reading, Subwords
from weft.foundation.components import Unimported
from weft.foundation.config import Config, check_names, parse
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.foundation.own_code import Importer, SourceFile, names_code, trusts_code
from weft.kinds import KINDS, KindName
from weft.kinds.base import WordSplit
from weft.kinds.cells import canonical
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig
from weft.nn.heads.linear import LinearConfig
from weft.nn.layers import LayerChoice
from weft.nn.pooling import PoolingConfig
from weft.nn.pooling.cls import ClsConfig
from weft.regularizers import RegularizerConfig

_LOSS: TypeAdapter[LossConfig] = TypeAdapter(LossConfig)


class LayerFactors(Config):
    """Factors on a task's gradient per layer of the body, applied before the tasks' gradients are combined."""

    layers: tuple[int, ...] = Field(min_length=1)
    """Layers, counted from 0, whose gradient is multiplied by `beta`."""
    beta: float = Field(default=1.0, ge=0)
    """Factor on the task's gradient on these layers."""
    alpha: float = Field(default=1.0, ge=0)
    """Factor on the task's gradient on all other layers."""

    def by_layer(self, layers: int, task: str) -> dict[int, float]:
        """Return layer -> factor; raise UserError if the body does not have one of the layers."""
        wrong = [k for k in self.layers if not 0 <= k < layers]
        if wrong:
            key = f"tasks.{task}.layer_factors.layers"
            raise UserError(f"{key}: found {wrong[0]}, but the body has layers 0 to {layers - 1}")
        return {k: self.beta if k in self.layers else self.alpha for k in range(layers)}


class TaskConfig(Config):
    """One task: its data, reading, modules, loss and metrics."""

    kind: KindName
    """Kind of the labels: one of several classes, one of several ordered classes, any number of labels, a number, or
    matches: pairs of texts that belong together, without labels."""
    data: DataField = DataConfig()
    """Name of a preset, or a table with the files and columns. Rows given in Python need columns only, which default to
    `text` and `label`."""
    reading: Reading = "single"
    """How texts become token sequences: single (one text), bi (two texts, encoded separately), cross (two texts in one
    sequence) or concat (cross without [SEP] between the texts)."""
    long_texts: LongTextsConfig = TRUNCATE
    """What is read of a text that does not fit into `max_length`: truncate (its beginning), head-tail (its beginning
    and its end) or windows (all of it, in overlapping sequences)."""
    layer: LayerChoice = None
    """Layer that is pooled: its number (0 is the embeddings), or "mix" for a learned mix of all layers. Defaults to the
    last layer."""
    pooling: PoolingConfig = ClsConfig()
    """How the token states of a sequence become one vector. Defaults to cls, or to words for tags."""
    head: HeadConfig = LinearConfig()
    """Layers on top of the pooled vectors. Defaults to linear, and to vectors for matches."""
    share_head: str | None = None
    """Name of a shared head. Tasks with the same name share one head; they need the same head, reading, pooling and
    number of labels. Defaults to a separate head."""
    loss: LossConfig | None = None
    """Loss. Defaults to cross-entropy for classes, binary-cross-entropy for multilabel, mse for regression and
    in-batch-negatives for matches."""
    regularizer: RegularizerConfig | None = None
    """Term added to the loss of each row: smart or r-drop. Defaults to no regularizer."""
    batch_size: int = Field(default=16, ge=1)
    """Rows of this task per forward pass, over all processes."""
    words: WordSplit | None = None
    """tags: how texts that are not lists of words are split: at whitespace and around punctuation, or only at
    whitespace. Defaults to punctuation."""
    subwords: Subwords | None = None
    """tags: which tokens of a word are trained to predict its label, first or all. The first token makes the
    prediction. Defaults to first."""
    labels: tuple[Any, ...] | None = None
    """Class names in the order of the class numbers. Defaults to the labels found in the train file."""
    range: tuple[float, float] | None = None
    """Smallest and largest label of a regression. Defaults to the range found in the train file."""
    scale: bool = True
    """Whether a regression is trained on labels scaled to 0..1. Predictions are always in the label's units."""
    class_weights: Literal["balanced", "effective"] | dict[str, float] | None = None
    """Weight of a row's loss by its class: a table by class, or from the class's rows in train. "balanced" gives all
    classes the same total weight, "effective" the same by effective number of rows (beta = 0.999; another beta:
    `{ effective = 0.99 }`). Defaults to no weights."""
    thresholds: Literal["default", "tuned"] = "default"
    """Decision thresholds, for multilabel and two classes: "default" decides for what is more likely, "tuned" tunes one
    threshold per label on the dev rows and saves it with the model. Dev scores are then cross-fitted."""
    layer_factors: LayerFactors | None = None
    """Factors on the task's gradient per layer: `{ layers = [8, 9, 10, 11], beta = 2.0, alpha = 0.5 }`."""
    metrics: tuple[str, ...] | None = None
    """Metrics; the first is the primary metric, which counts in the overall score. Defaults to the metrics of the
    kind."""
    auxiliary: bool = False
    """Whether the task only helps others to train: it is scored, but does not count in the overall score and not in the
    choice of the best checkpoint."""
    positive: str | None = None
    """Positive class, for two classes: the class of f1-positive, precision, recall and the report's threshold."""

    @field_validator("positive", mode="before")
    @classmethod
    def _as_a_label(cls, value: Any) -> Any:
        return canonical(str(value)) if isinstance(value, str | int | float) else value

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_kind(cls, values: Any) -> Any:
        kind = KINDS.get(str(values.get("kind"))) if isinstance(values, dict) else None
        if kind is None or not kind.defaults:
            return values
        data = values.get("data", {})
        if isinstance(data, dict):
            values = values | {"data": kind.defaults.get("data", {}) | data}
        return {**kind.defaults, **values}

    @model_validator(mode="after")
    def _labels_fit_the_kind(self) -> "TaskConfig":
        kind = KINDS[self.kind]
        kind.check_texts(self.reading, len(self.data.negative))
        kind.check_columns(len(self.data.label_columns))
        kind.check_declared(self.labels, self.range, scaled=self.scale)
        if isinstance(self.pooling, Unimported) or isinstance(self.loss, Unimported):
            return self  # checked again once their code is imported
        kind.check_words(
            self.reading,
            keeps_words=self.pooling.keeps_tokens,
            masks=bool(self.data.mask),
            long_texts=self.long_texts.name,
            words=self.words,
            subwords=self.subwords,
        )
        if self.subwords == "all" and self.chosen_loss.of_texts:
            raise ValueError(f'`subwords` is "all", but loss = "{self.chosen_loss.name}" needs one token for each word')
        return self

    @model_validator(mode="after")
    def _windows_are_of_one_text(self) -> "TaskConfig":
        if self.reading in ("cross", "concat") and not self.long_texts.one_sequence:
            raise ValueError(
                f"long_texts: {self.long_texts.name!r} cuts a text into sequences, but the reading {self.reading!r} "
                'puts two texts into one sequence; use reading = "bi", or long_texts = "head-tail"'
            )
        return self

    @property
    def chosen_loss(self) -> LossConfig:
        """`loss`, or the default loss of the kind"""
        return self.loss or _LOSS.validate_python(KINDS[self.kind].default_loss)


class ModelConfig(Config):
    """The configuration of a model. A recipe adds the configuration of training."""

    model_config = ConfigDict(extra="ignore")
    written: ClassVar[tuple[str, ...]] = ()
    """keys in the order in which a file has them. Defaults to the keys of this class."""
    name: str
    """Name of the model in reports."""
    body: str = "packaged:minilm-l6"
    """Body: a folder in Hugging Face's layout, a hub id, or packaged:minilm-l6."""
    layers: int | None = Field(default=None, ge=1)
    """Number of layers of the body to use, from the first. Defaults to all layers."""
    code: str | None = None
    """Folder of the modules that `use` names, in addition to Python's path. Defaults to the recipe's folder."""
    seed: int = Field(default=11711, ge=0)
    """Seed of all random numbers."""
    max_length: int = Field(default=128, ge=8)
    """Maximum number of tokens in a sequence. Truncated texts are counted and reported."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout before the heads. Larger values did not help in our study (docs/benchmarks.md)."""
    body_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout inside the body. Defaults to the value in the body's configuration."""
    segments: bool = True
    """Whether the second text of a pair has token type 1. With false, both texts have token type 0."""
    calibrate: bool = False
    """Whether to fit a temperature on the dev rows for each task with probabilities, and save it with the model."""
    adapter: AdapterConfig | None = None
    """Small modules that change what the body computes, for all tasks or for each: lora, bottleneck or pal. Defaults
    to no adapter."""
    tasks: dict[str, TaskConfig] = Field(min_length=1)
    """Tasks by name."""

    @field_validator("tasks")
    @classmethod
    def _task_names(cls, tasks: dict[str, TaskConfig]) -> dict[str, TaskConfig]:
        check_names(tasks, "task name")
        if tasks and all(task.auxiliary for task in tasks.values()):
            raise ValueError("every task is auxiliary, so none is left to score; remove `auxiliary` from one of them")
        return tasks

    @model_validator(mode="after")
    def _adapters_of_tasks(self) -> Self:
        chosen = self.adapter.tasks if isinstance(self.adapter, AdapterOptions) else None
        if odd := [task for task in chosen or () if task not in self.tasks]:
            raise ValueError(f"adapter.tasks: there is no task {odd[0]!r}; there are {', '.join(self.tasks)}")
        return self

    def content(self) -> Content:
        """Return plain JSON values; keys without a value are left out."""
        content: Content = self.model_dump(mode="json", exclude_none=True)
        return {key: content[key] for key in self.written or content if key in content}

    def with_code(self, trust_code: bool, where: str) -> tuple[Self, dict[str, SourceFile]]:
        """Import and validate every component that `use` names; return the new config and the source files.

        Raise UserError before any import if there is such a component and the user does not trust it. `where` names the
        file in error messages.
        """
        content = self.content()
        if not names_code(content):
            return self, {}
        importer = Importer(trusts_code(trust_code), Path(self.code) if self.code else None)
        return parse(type(self), content, where, importer), importer.sources

    @property
    def auxiliary(self) -> list[str]:
        """tasks that do not count in the overall score"""
        return [name for name, task in self.tasks.items() if task.auxiliary]

    def answering(self) -> Self:
        """Return a copy for inference, without regularizers."""
        tasks = {name: task.model_copy(update={"regularizer": None}) for name, task in self.tasks.items()}
        return self.model_copy(update={"tasks": tasks})
