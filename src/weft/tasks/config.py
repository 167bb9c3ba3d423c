"""A task as a recipe writes it."""

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from weft.data.config import DataConfig, DataField
from weft.data.labels import Kind, canonical
from weft.data.readings import Reading
from weft.foundation.config import Config, check_names
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.losses import LossConfig
from weft.losses.binary_cross_entropy import BinaryCrossEntropyConfig
from weft.losses.cross_entropy import CrossEntropyConfig
from weft.losses.mse import MeanSquaredErrorConfig
from weft.nn.heads import HeadConfig
from weft.nn.heads.linear import LinearConfig
from weft.nn.layers import LayerChoice
from weft.nn.pooling import PoolingConfig
from weft.nn.pooling.cls import ClsConfig
from weft.regularizers import RegularizerConfig


class LayerFactors(Config):
    """A task's gradient on each layer of the body, scaled before the tasks' gradients are combined."""

    layers: tuple[int, ...] = Field(min_length=1)
    """the layers, counted from 0, that matter most to the task"""
    beta: float = Field(default=1.0, ge=0)
    """what the task's gradient on these layers is multiplied by"""
    alpha: float = Field(default=1.0, ge=0)
    """the same for all other layers"""

    def by_layer(self, layers: int, task: str) -> dict[int, float]:
        wrong = [k for k in self.layers if not 0 <= k < layers]
        if wrong:
            key = f"tasks.{task}.layer_factors.layers"
            raise UserError(f"{key}: found {wrong[0]}, but the body has layers 0 to {layers - 1}")
        return {k: self.beta if k in self.layers else self.alpha for k in range(layers)}


class TaskConfig(Config):
    """One task: its data, how it is read, and what is learnt from it."""

    kind: Kind
    """what the labels are: one of several classes, of ordered classes, any of several labels, or a number"""
    data: DataField = DataConfig()
    """A preset's name, or a table with the files and columns. Rows that are given in Python need columns alone, which
    default to `text` and `label`."""
    reading: Reading = "single"
    """how texts become sequences: single, bi (each alone), cross (both in one), concat (cross without [SEP] between)"""
    layer: LayerChoice = None
    """which layer is pooled: its number (0 the embeddings), "mix" for a learnt mix of all; the last unless said"""
    pooling: PoolingConfig = ClsConfig()
    """how a sequence becomes one vector"""
    head: HeadConfig = LinearConfig()
    """what stands on the vectors"""
    share_head: str | None = None
    """tasks with the same name here share one head; they must have the same kind of head and number of labels"""
    loss: LossConfig | None = None
    """cross-entropy for classes, binary-cross-entropy for multilabel and mse for numbers, unless said"""
    regularizer: RegularizerConfig | None = None
    """what is added to each row's loss: smart or r-drop"""
    batch_size: int = Field(default=16, ge=1)
    """rows of this task in each forward pass, over all processes"""
    labels: tuple[Any, ...] | None = None
    """class names in the order of their numbers; those seen in the train file unless said"""
    range: tuple[float, float] | None = None
    """smallest and largest label of a regression; those seen in the train file unless said"""
    scale: bool = True
    """whether a regression is trained on labels brought to 0..1; predictions are always in the label's units"""
    class_weights: Literal["balanced"] | dict[str, float] | None = None
    """how much a row counts by its class: "balanced" makes rare classes as heavy as common ones"""
    layer_factors: LayerFactors | None = None
    """scales the task's own gradient layer by layer: `{ layers = [8, 9, 10, 11], beta = 2.0, alpha = 0.5 }`"""
    metrics: tuple[str, ...] | None = None
    """what is measured; the first one counts in the overall score"""
    positive: str | None = None
    """of two classes the one that f1-positive, precision, recall and the report's threshold are about"""

    @field_validator("positive", mode="before")
    @classmethod
    def _as_a_label(cls, value: Any) -> Any:
        return canonical(str(value)) if isinstance(value, str | int | float) else value

    @model_validator(mode="after")
    def _labels_fit_the_kind(self) -> "TaskConfig":
        if len(self.data.label_columns) > 1 and self.kind != "multilabel":
            raise ValueError(f'`data.label` names several columns: that needs kind = "multilabel", not "{self.kind}"')
        if self.kind == "regression":
            if self.labels is not None:
                raise ValueError("`labels` names classes, but the task is a regression; `range` declares its bounds")
            if self.range is not None and not self.range[0] < self.range[1]:
                raise ValueError(f"`range` is {list(self.range)}; expected the smaller number first")
        elif self.range is not None or not self.scale:
            raise ValueError(f"`range` and `scale` are for a regression, but the task is a {self.kind}")
        elif self.labels is not None and len({canonical(str(name)) for name in self.labels}) < max(2, len(self.labels)):
            raise ValueError("`labels` must be at least two, each once")
        return self

    @property
    def chosen_loss(self) -> LossConfig:
        if self.loss is not None:
            return self.loss
        if self.kind == "regression":
            return MeanSquaredErrorConfig()
        return BinaryCrossEntropyConfig() if self.kind == "multilabel" else CrossEntropyConfig()


class ModelConfig(Config):
    """What a trained model is made of. A recipe is one, with all that training needs besides."""

    model_config = ConfigDict(extra="ignore")
    written: ClassVar[tuple[str, ...]] = ()
    """all keys in the order in which a file has them; those of this class by default"""
    name: str
    """how reports call it"""
    body: str = "packaged:minilm-l6"
    """a folder in Hugging Face's layout, a hub id, or packaged:minilm-l6"""
    seed: int = Field(default=11711, ge=0)
    """every random draw follows from it"""
    max_length: int = Field(default=128, ge=8)
    """tokens in a sequence; what is cut is counted and reported"""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Before the heads. Defaults to 0.1: more did not help in our study (docs/results.md)."""
    body_dropout: float | None = Field(default=None, ge=0, lt=1)
    """inside the body; the checkpoint's own unless said"""
    segments: bool = True
    """Whether the second text of a pair has a token type of its own. With false both texts have type 0."""
    calibrate: bool = False
    """fit a temperature for each class task's probabilities on the dev rows, and save it with the model"""
    tasks: dict[str, TaskConfig] = Field(min_length=1)

    @field_validator("tasks")
    @classmethod
    def _task_names(cls, tasks: dict[str, TaskConfig]) -> dict[str, TaskConfig]:
        check_names(tasks, "task name")
        return tasks

    def content(self) -> Content:
        """Plain values, as JSON has them; what is not set is left out."""
        content: Content = self.model_dump(mode="json", exclude_none=True)
        return {key: content[key] for key in self.written or content if key in content}
