"""What clients send and get, as pydantic models: they check requests and describe the API."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from weft.kinds import KindName
from weft.serving.refusals import Refusal
from weft.serving.settings import ServerSettings

TEXT = {"type": "string", "pattern": r"^[^\u0000]*$"}
MAX_TASKS = 256
"""names in a request; repeated ones count"""
NAMES = {str: "a text", bool: "true or false", int: "a number", float: "a number", dict: "an object", list: "a list"}


def _texts(value: Any) -> list[str]:
    """One text is a list of one."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise ValueError(f"expected a text or a list of texts, found {NAMES.get(type(value), 'null')}")
    if not texts:
        raise ValueError("expected at least one text, found an empty list")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"entry {number}: expected a text, found {NAMES.get(type(text), 'null')}")
        if "\0" in text:
            raise ValueError(f"entry {number}: has a NUL character; no text has one")
    return texts


Texts = Annotated[
    list[str],
    BeforeValidator(_texts),
    WithJsonSchema({"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}),
]


class RequestBody(BaseModel):
    """Keys that nobody knows are refused: a misspelt one would change nothing and say nothing."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TaskBody(RequestBody):
    """Rows for one task."""

    text: Texts = Field(description="A text, or a list of texts.", examples=["It was a lovely evening."])
    text2: Texts | None = Field(None, description="The second text of each pair, for tasks that read pairs.")


class TasksBody(TaskBody):
    """Rows for several tasks."""

    tasks: list[str] | None = Field(
        None,
        min_length=1,
        max_length=MAX_TASKS,
        fail_fast=True,
        description="Which tasks answer. Defaults to all that can read what was sent.",
    )


class EmbeddingsBody(RequestBody):
    """As OpenAI's clients send it."""

    input: Texts = Field(description="A text, or a list of texts. Lists of token numbers are not read.")
    model: str = Field(description="A name from /v1/models.", json_schema_extra={"pattern": TEXT["pattern"]})
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="base64: float32 numbers, little-endian, as OpenAI sends them."
    )
    dimensions: int | None = Field(None, description="Only the width that the model has.")
    user: str | None = Field(None, description="Accepted because clients send it; used for nothing.")


class Answer(BaseModel):
    """The answer for one row; of a regression the score alone."""

    task: str
    label: str | list[str] | None = Field(None, description="The likeliest class, or all labels that apply.")
    score: float = Field(description="The largest probability, or the number that was predicted.")
    probabilities: dict[str, float] | None = None


class Usage(BaseModel):
    prompt_tokens: int = Field(description="Tokens that the model read, each different text once.")
    total_tokens: int


class TaskAnswers(BaseModel):
    model: str
    answers: list[Answer] = Field(description="In the order of the texts.")
    usage: Usage


class TasksAnswers(BaseModel):
    model: str
    answers: dict[str, list[Answer]] = Field(description="For each task, in the order of the texts.")
    usage: Usage


class Embedding(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: Usage


class TaskInfo(BaseModel):
    name: str
    kind: KindName
    reading: Literal["single", "bi", "cross", "concat"]
    texts: int = Field(description="How many texts a row has: 1 or 2.")
    labels: list[str] | None
    range: list[float] | None = Field(description="Smallest and largest label of a regression.")


class LimitInfo(BaseModel):
    max_texts: int = Field(description="Texts, or pairs, of a request.")
    max_chars: int = Field(description="Characters of a text.")
    max_body: int = Field(description="Bytes of a request.")


class TaskList(BaseModel):
    object: Literal["list"]
    model: str
    limits: LimitInfo
    data: list[TaskInfo]


class ModelInfo(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[ModelInfo]


class Status(BaseModel):
    status: str


class ErrorInfo(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class Error(BaseModel):
    error: ErrorInfo


def check_texts(settings: ServerSettings, sides: Mapping[str, Sequence[str]]) -> None:
    """How many texts, and how long."""
    for key, texts in sides.items():
        if len(texts) > settings.max_texts:
            message = f"{key}: found {len(texts):,} texts, at most {settings.max_texts:,} are allowed in a request"
            raise Refusal(400, message, "too_many_texts", param=key)
        for number, text in enumerate(texts):
            if len(text) > settings.max_chars:
                message = (
                    f"{key}: entry {number} has {len(text):,} characters, at most {settings.max_chars:,} are allowed"
                )
                raise Refusal(400, message, "text_too_long", param=key)


def describe(kind: type[RequestBody], settings: ServerSettings) -> dict[str, Any]:
    """The schema of a request, with what this server allows."""
    schema = kind.model_json_schema()
    for key in ("text", "text2", "input"):
        for choice in _choices(schema["properties"].get(key, {})):
            if choice.get("type") == "string":
                choice["maxLength"] = settings.max_chars
            elif choice.get("type") == "array":
                choice["maxItems"] = settings.max_texts
                choice["items"] = choice["items"] | {"maxLength": settings.max_chars}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Every alternative of a schema, however deep, for `describe` to change in place."""
    schema["anyOf"] = [dict(choice) for choice in schema.get("anyOf", [])]
    return [deep for choice in schema["anyOf"] for deep in ([choice] if "anyOf" not in choice else _choices(choice))]
