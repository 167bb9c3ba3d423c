"""From a request to an answer: admission, tokenization off the event loop, batched inference, labels."""

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.types import Receive

from weft.foundation.errors import UserError
from weft.inference.joint import Ask, Values
from weft.inference.model import Model
from weft.kinds.base import Answer
from weft.kinds.labels import Labels
from weft.serving.admission import Room
from weft.serving.batching import Batcher
from weft.serving.refusals import ClientGone, Refusal
from weft.serving.schemas import EmbeddingsBody, RerankBody, TaskBody, TasksBody, check_texts
from weft.serving.settings import ServerSettings
from weft.serving.tokenizing import Tokenizing
from weft.serving.waiting import cut


@dataclass(frozen=True)
class Question:
    """A request before tokenization."""

    tokenize: Callable[[slice], list[Ask]]
    """tokenizes a slice of the rows, for every ask"""
    chars: list[int]
    """characters of each row, counted once for each task that reads it"""


class Answering:
    """Computes the answers of the routes. `receive` is the ASGI callable that reports a disconnect of the client."""

    def __init__(self, model: Model, settings: ServerSettings, batcher: Batcher, tokenizing: Tokenizing) -> None:
        self.model = model
        self.name = model.config.name
        self.settings = settings
        self.batcher = batcher
        self.tokenizing = tokenizing
        self.requests = Room(settings.queue_requests, "requests")
        self.chars = Room(settings.queue_chars, "characters")
        self.pairs = {name for name, task in model.config.tasks.items() if task.reading != "single"}
        vectors = [task for task in model.tasks if model.labels[task].kind.word_split(None) is None]
        self.embedders = {f"{self.name}/{task}": task for task in vectors}
        if vectors:
            self.embedders = {self.name: model.embedding_task()} | self.embedders
        """name in /v1/models -> task whose pooling it uses"""
        able = [task for task in model.tasks if task in self.pairs and _gives_relevance(model, task)]
        self.rerankers = dict([(self.name, able[0])] if able else []) | {f"{self.name}/{task}": task for task in able}
        """model name -> task that ranks documents; the model's own name means the first of these tasks"""

    async def predict(self, task: str, body: TaskBody, receive: Receive) -> dict[str, Any]:
        self._require(task)
        self._check(body)
        (values,), tokens = await self._values(self._question(body.text, {task: body.text2}), receive)
        return {"model": self.name, "answers": self._read(task, values), "usage": _usage(tokens)}

    async def predict_all(self, body: TasksBody, receive: Receive) -> dict[str, Any]:
        self._check(body)
        tasks = self._choose(body)
        seconds = {task: body.text2 if task in self.pairs else None for task in tasks}
        values, tokens = await self._values(self._question(body.text, seconds), receive)
        answers = {task: self._read(task, own) for task, own in zip(tasks, values, strict=True)}
        return {"model": self.name, "answers": answers, "usage": _usage(tokens)}

    async def embed(self, body: EmbeddingsBody, receive: Receive) -> dict[str, Any]:
        task = self.embedders.get(body.model)
        if task is None:
            message = f"unknown model {body.model[:100]!r}; expected one of {', '.join(self.embedders)}"
            raise Refusal(404, message, "model_not_found", param="model")
        width = self.model.engine.width(task)
        if body.dimensions not in (None, width):
            message = f"dimensions: found {body.dimensions}, expected {width}; other sizes are not supported"
            raise Refusal(400, message, "unsupported_dimensions", param="dimensions")
        check_texts(self.settings, {"input": body.input})

        def tokenize(rows: slice) -> list[Ask]:
            return [
                Ask(task, [[sequence] for sequence in self.model.texts_alone(task, body.input[rows])], vectors=True)
            ]

        (vectors,), tokens = await self._values(Question(tokenize, list(map(len, body.input))), receive)
        data = [
            {"object": "embedding", "index": i, "embedding": _written(vector, body.encoding_format)}
            for i, vector in enumerate(vectors)
        ]
        return {"object": "list", "model": body.model, "data": data, "usage": _usage(tokens)}

    async def rerank(self, body: RerankBody, request: str, receive: Receive) -> dict[str, Any]:
        """Rank documents; `request` is the id of the request."""
        task = self.rerankers.get(body.model)
        if task is None:
            known = ", ".join(self.rerankers) or "none: no task reads two texts and gives one number or two classes"
            message = f"unknown model {body.model[:100]!r}; models that rank documents: {known}"
            raise Refusal(404, message, "model_not_found", param="model")
        check_texts(self.settings, {"query": [body.query], "documents": body.documents})
        question = self._question([body.query] * len(body.documents), {task: body.documents})
        (values,), tokens = await self._values(question, receive)
        scores = [
            _relevance(self.model.labels[task], (one.label, one.score, one.probabilities))
            for one in self.model.read(task, np.asarray(values, dtype=np.float64))
        ]
        order = np.argsort(-np.array(scores), kind="stable")[: body.top_n].tolist()
        results = [{"index": i, "relevance_score": scores[i]} for i in order]
        if body.return_documents:
            results = [result | {"document": {"text": body.documents[result["index"]]}} for result in results]
        return {"id": request, "model": body.model, "results": results, "usage": _usage(tokens)}

    def _require(self, task: str) -> None:
        if task not in self.model.tasks:
            message = f"unknown task {task[:100]!r}; expected one of {', '.join(self.model.tasks)}"
            raise Refusal(404, message, "task_not_found", param="task")

    def _check(self, body: TaskBody) -> None:
        check_texts(self.settings, {"text": body.text} | ({"text2": body.text2} if body.text2 else {}))

    def _choose(self, body: TasksBody) -> list[str]:
        """The requested tasks without duplicates, or all tasks that can read the texts."""
        for task in body.tasks or ():
            self._require(task)
        readable = [task for task in self.model.tasks if body.text2 or task not in self.pairs]
        chosen = list(dict.fromkeys(body.tasks or readable))
        if not chosen:
            raise Refusal(
                400, "text2: all tasks read two texts for each row, found one", "invalid_value", param="text2"
            )
        if body.text2 and not self.pairs.intersection(chosen):
            message = f"text2: no chosen task reads it; {', '.join(chosen)} reads one text for each row"
            raise Refusal(400, message, "invalid_value", param="text2")
        return chosen

    def _question(self, texts: list[str], seconds: Mapping[str, list[str] | None]) -> Question:
        """Build the question of several tasks about the same rows, each with the second texts that it reads."""
        try:
            for task, second in seconds.items():
                self.model.check_texts(task, texts, second)
        except UserError as error:  # one text for a task that reads two, or lists of different lengths
            raise Refusal(400, str(error), "invalid_value", param="text2") from None

        def tokenize(rows: slice) -> list[Ask]:
            return [
                Ask(task, self.model.rows(task, texts[rows], second[rows] if second else None))
                for task, second in seconds.items()
            ]

        sides = [side for second in seconds.values() for side in (texts, second) if side]
        return Question(tokenize, [sum(map(len, row)) for row in zip(*sides, strict=True)])

    async def _values(self, question: Question, receive: Receive) -> tuple[list[Values], int]:
        """Return the outputs of the engine and the number of tokens it read. A disconnect cancels the work."""
        work = asyncio.ensure_future(self._work(question))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            waiting: set[asyncio.Future[Any]] = {work, gone}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientGone
            return work.result()
        finally:
            work.cancel()
            gone.cancel()

    async def _work(self, question: Question) -> tuple[list[Values], int]:
        with self.requests.hold(1):
            with self.chars.hold(sum(question.chars)):
                asks = await self.tokenizing.asks(question.tokenize, question.chars)
            pieces = list(cut(asks, self.settings.batch_tokens))
            return await self.batcher.ask(pieces), sum(piece.tokens for piece in pieces)

    def _read(self, task: str, values: Values) -> list[dict[str, Any]]:
        return [prediction.as_dict() for prediction in self.model.read(task, np.asarray(values))]


def _gives_relevance(model: Model, task: str) -> bool:
    """Whether an answer of the task has a number by which documents can be ranked."""
    labels = model.labels[task]
    probabilities = dict.fromkeys(labels.names, 0.0) or None
    return labels.kind.relevance(labels, (None, 0.0, probabilities)) is not None


def _relevance(labels: Labels, answer: Answer) -> float:
    score = labels.kind.relevance(labels, answer)
    assert score is not None, "only tasks that give a score are asked"
    return score


async def _gone(receive: Receive) -> None:
    """Return when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _written(vector: Values, encoding: str) -> list[float] | str:
    if encoding == "float":
        numbers: list[float] = vector.tolist()
        return numbers
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
