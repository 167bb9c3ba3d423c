"""Requests and responses as pydantic models, which validate requests and describe the API."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator

from weft.kinds import KindName
from weft.serving.refusals import Refusal
from weft.serving.settings import ServerSettings

TEXT = {"type": "string", "pattern": r"^[^\u0000]*$"}
MAX_TASKS = 256
"""Maximum number of task names in a request, duplicates included."""
NAMES = {str: "a text", bool: "true or false", int: "a number", float: "a number", dict: "an object", list: "a list"}


def _texts(value: Any) -> list[str]:
    """Validate texts; a single text becomes a list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise ValueError(f"expected a text or a list of texts, found {NAMES.get(type(value), 'null')}")
    if not texts:
        raise ValueError("expected at least one text, found an empty list")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"entry {number}: expected a text, found {NAMES.get(type(text), 'null')}")
        if "\0" in text:
            raise ValueError(f"entry {number}: contains a NUL character, which is not allowed")
    return texts


Texts = Annotated[
    list[str],
    BeforeValidator(_texts),
    WithJsonSchema({"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}),
]


def _documents(value: Any) -> list[str]:
    """Validate documents: texts, or objects with the key `text`."""
    if not isinstance(value, list):
        raise ValueError(f"expected a list of texts, found {NAMES.get(type(value), 'null')}")
    return _texts([one["text"] if isinstance(one, dict) and list(one) == ["text"] else one for one in value])


DOCUMENT = {"type": "object", "properties": {"text": TEXT}, "required": ["text"], "additionalProperties": False}
Documents = Annotated[
    list[str],
    BeforeValidator(_documents),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"anyOf": [TEXT, DOCUMENT]}, "minItems": 1}]}),
]


class RequestBody(BaseModel):
    """Base of all requests. Unknown keys are rejected, because a misspelt key would silently have no effect."""

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
        description="Tasks to predict. Defaults to all tasks that can read the texts.",
    )


class EmbeddingsBody(RequestBody):
    """Request of OpenAI's embeddings API."""

    input: Texts = Field(description="A text, or a list of texts. Token ids are not supported.")
    model: str = Field(description="A name from /v1/models.", json_schema_extra={"pattern": TEXT["pattern"]})
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="base64: float32 numbers, little-endian, as OpenAI sends them."
    )
    dimensions: int | None = Field(None, description="Must be the width of the model, if given.")
    user: str | None = Field(None, description="Accepted for compatibility and ignored.")


class SpanAnswer(BaseModel):
    """Characters of a text with one label."""

    start: int = Field(description="First character of the span, counted from 0 in Unicode code points.")
    end: int = Field(description="End of the span: the character after the last one.")
    label: str
    score: float = Field(description="The mean probability of the tags of the span's words.")


class RerankBody(RequestBody):
    """Request of Cohere's and Jina's rerank APIs."""

    model: str = Field(
        description="The model's name, or NAME/TASK for a task that reads two texts.",
        json_schema_extra={"pattern": TEXT["pattern"]},
    )
    query: str = Field(description="The first text.", json_schema_extra={"pattern": TEXT["pattern"]})
    documents: Documents = Field(description="The second texts, as texts or as objects with the key text.")
    top_n: int | None = Field(None, ge=1, description="Number of results. Defaults to all documents.")
    return_documents: bool = Field(False, description="Whether results contain the texts.")

    @field_validator("query")
    @classmethod
    def _without_nul(cls, query: str) -> str:
        return _texts(query)[0]


class Answer(BaseModel):
    """The prediction for one row; a regression has only a score."""

    task: str
    label: str | list[str] | list[SpanAnswer] | None = Field(
        None, description="The most probable class, all labels that apply, or the spans of a task with tags."
    )
    score: float = Field(description="The highest probability, the predicted number, or the mean probability of tags.")
    probabilities: dict[str, float] | None = None


class Usage(BaseModel):
    prompt_tokens: int = Field(description="Tokens processed by the model; repeated texts count once.")
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


class RankedDocument(BaseModel):
    text: str


class RerankResult(BaseModel):
    index: int = Field(description="Place of the document in the request, from 0.")
    relevance_score: float = Field(
        description="Cosine similarity (matches), predicted number (regression), or probability of the positive class."
    )
    document: RankedDocument | None = None


class RerankAnswer(BaseModel):
    id: str
    model: str
    results: list[RerankResult] = Field(description="The most relevant document first.")
    usage: Usage


class TaskInfo(BaseModel):
    name: str
    kind: KindName
    reading: Literal["single", "bi", "cross", "concat"]
    texts: int = Field(description="Number of texts per row: 1 or 2.")
    labels: list[str] | None
    range: list[float] | None = Field(description="Minimum and maximum label of a regression.")


class LimitInfo(BaseModel):
    max_texts: int = Field(description="Maximum number of texts, or pairs, in a request.")
    max_chars: int = Field(description="Maximum number of characters in a text.")
    max_body: int = Field(description="Maximum size of a request in bytes.")


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
    """Check the number of texts and their lengths."""
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
    """Build the schema of a request, with the limits of this server."""
    schema = kind.model_json_schema()
    if "query" in schema["properties"]:
        schema["properties"]["query"]["maxLength"] = settings.max_chars
    for key in ("text", "text2", "input", "documents"):
        for choice in _choices(schema["properties"].get(key, {})):
            if choice.get("type") == "string":
                choice["maxLength"] = settings.max_chars
            elif choice.get("type") == "array":
                choice["maxItems"] = settings.max_texts
                choice["items"] = choice["items"] | {"maxLength": settings.max_chars}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """All alternatives of a schema at any depth, which `describe` changes in place."""
    schema["anyOf"] = [dict(choice) for choice in schema.get("anyOf", [])]
    return [deep for choice in schema["anyOf"] for deep in ([choice] if "anyOf" not in choice else _choices(choice))]
