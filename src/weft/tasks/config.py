"""A task as a recipe writes it."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, field_validator, model_validator

from weft.data.config import DataConfig, DataField
from weft.data.readings import Reading
from weft.foundation.config import Config, check_names, parse
from weft.foundation.content import Content
from weft.foundation.errors import UserError
from weft.foundation.own_code import Importer, SourceFile, names_code, trusts_code
from weft.kinds import KINDS, KindName
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

    kind: KindName
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
        kind = KINDS[self.kind]
        kind.check_columns(len(self.data.label_columns))
        kind.check_declared(self.labels, self.range, scaled=self.scale)
        return self

    @property
    def chosen_loss(self) -> LossConfig:
        return self.loss or _LOSS.validate_python(KINDS[self.kind].default_loss)


class ModelConfig(Config):
    """What a trained model is made of. A recipe is one, with all that training needs besides."""

    model_config = ConfigDict(extra="ignore")
    written: ClassVar[tuple[str, ...]] = ()
    """all keys in the order in which a file has them; those of this class by default"""
    name: str
    """how reports call it"""
    body: str = "packaged:minilm-l6"
    """a folder in Hugging Face's layout, a hub id, or packaged:minilm-l6"""
    code: str | None = None
    """Folder of the modules that `use` names, besides Python's own path. Defaults to the recipe's folder."""
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

    def with_code(self, trust_code: bool, where: str) -> tuple[Self, dict[str, SourceFile]]:
        """The same with every part that `use` names imported and validated, and the files that define them.

        UserError, before anything is imported, if there is such a part and the user does not trust it; `where` is what
        messages call the file.
        """
        content = self.content()
        if not names_code(content):
            return self, {}
        importer = Importer(trusts_code(trust_code), Path(self.code) if self.code else None)
        return parse(type(self), content, where, importer), importer.sources

    def answering(self) -> Self:
        """The same without what acts in training alone."""
        tasks = {name: task.model_copy(update={"regularizer": None}) for name, task in self.tasks.items()}
        return self.model_copy(update={"tasks": tasks})
