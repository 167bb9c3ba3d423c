"""The routes and their OpenAPI description."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.responses import Response

from weft.inference.joint import Ask
from weft.inference.model import Model
from weft.serving import schemas
from weft.serving.answering import Answering
from weft.serving.batching import Batcher
from weft.serving.front import Front
from weft.serving.hosts import Hosts
from weft.serving.metrics import Metrics, joined
from weft.serving.pages import FILES, page_file
from weft.serving.parsing import parse
from weft.serving.refusals import Refusal, failure, json_response
from weft.serving.settings import ServerSettings
from weft.serving.tokenizing import Tokenizing
from weft.serving.worker import WorkerLine

ABOUT = "One encoder, many sentence tasks. Embeddings, models and errors have OpenAI's format, reranking has Cohere's."
REFUSALS = {
    400: "The request is invalid or exceeds a limit.",
    401: "The API key is missing or wrong.",
    404: "Unknown task or model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "Content-Type must be application/json.",
    429: "The server is busy. Retry after the time in Retry-After.",
    503: "The server is shutting down.",
}


def refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses for these error statuses."""
    return {status: {"model": schemas.Error, "description": REFUSALS[status]} for status in statuses}


class Api:
    """Routes of one model."""

    def __init__(self, model: Model, settings: ServerSettings, metrics: Metrics) -> None:
        self.model = model
        self.settings = settings
        self.metrics = metrics
        self.started = int(time.time())
        self.draining = False
        self.line: WorkerLine | None = None
        """connection to the supervisor, if this process is one of several"""
        self.answering: Answering

    @asynccontextmanager
    async def life(self, _: FastAPI) -> AsyncIterator[None]:
        """Start the engine's thread with the server and stop it at shutdown."""
        batcher = Batcher(self.model.engine, self.settings, self.metrics)
        tokenizing = Tokenizing(self.metrics.chars.inc)
        self.answering = Answering(self.model, self.settings, batcher, tokenizing)
        chars = self.answering.chars
        self.metrics.watch_queue(lambda: len(batcher.waiting.jobs), lambda: batcher.waiting.tokens, lambda: chars.used)
        yield
        batcher.close()
        tokenizing.close()

    async def predict(self, task: str, request: Request) -> Response:
        """Predictions of one task for a text, a pair, or a list of them."""
        body = parse(schemas.TaskBody, await request.body(), self.settings)
        return self._answer(request, await self.answering.predict(task, body, request.receive))

    async def predict_all(self, request: Request) -> Response:
        """Predictions of several tasks; sequences that they share are encoded once."""
        body = parse(schemas.TasksBody, await request.body(), self.settings)
        return self._answer(request, await self.answering.predict_all(body, request.receive))

    async def embeddings(self, request: Request) -> Response:
        """One embedding for each text."""
        body = parse(schemas.EmbeddingsBody, await request.body(), self.settings)
        return self._answer(request, await self.answering.embed(body, request.receive))

    async def rerank(self, request: Request) -> Response:
        """Documents in the order of their relevance to a query, as Cohere's and Jina's APIs return them."""
        body = parse(schemas.RerankBody, await request.body(), self.settings)
        return self._answer(request, await self.answering.rerank(body, request.scope["state"]["id"], request.receive))

    def _answer(self, request: Request, content: dict[str, Any]) -> Response:
        request.scope["state"]["tokens"] = content["usage"]["total_tokens"]
        return json_response(content)

    async def tasks(self) -> Response:
        """Tasks of the model, and the limits of a request."""
        tasks = [self._task(name) for name in self.model.tasks]
        limits = {name: getattr(self.settings, name) for name in schemas.LimitInfo.model_fields}
        return json_response({"object": "list", "model": self.model.config.name, "limits": limits, "data": tasks})

    def _task(self, name: str) -> dict[str, Any]:
        labels, reading = self.model.labels[name], self.model.config.tasks[name].reading
        return {
            "name": name,
            "kind": labels.kind.name,
            "reading": reading,
            "texts": 1 if reading == "single" else 2,
            "labels": list(labels.names) or None,
            "range": None if labels.limits is None else list(labels.limits),
        }

    async def models(self) -> Response:
        """Model names for embeddings: the model itself, and one for each task's pooling."""
        return json_response({"object": "list", "data": [self._model(name) for name in self.answering.embedders]})

    async def model_info(self, name: str) -> Response:
        """One of the model names."""
        if name not in self.answering.embedders:
            message = f"unknown model {name[:100]!r}; expected one of {', '.join(self.answering.embedders)}"
            raise Refusal(404, message, "model_not_found", param="model")
        return json_response(self._model(name))

    def _model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self.started, "owned_by": "weft"}

    async def healthz(self) -> Response:
        """Liveness: whether the process runs."""
        return json_response({"status": "ok"})

    async def readyz(self) -> Response:
        """Readiness: whether the server accepts requests."""
        if self.draining:
            raise Refusal(503, "the server is shutting down", "draining")
        return json_response({"status": "ready"})

    async def show_metrics(self) -> Response:
        """Metrics for Prometheus, of all workers."""
        page = self.metrics.page() if self.line is None else joined(await self.line.pages())
        return Response(page, media_type=CONTENT_TYPE_LATEST)


def build_app(model: Model, settings: ServerSettings, keys: tuple[bytes, ...], hosts: Hosts) -> tuple[Front, Api]:
    """Build the server as one ASGI application; returns it and its routes."""
    warm_up(model)
    metrics = Metrics()
    api = Api(model, settings, metrics)
    title = f"weft: {model.config.name}"
    app = FastAPI(title=title, description=ABOUT, docs_url=None, redoc_url=None, lifespan=api.life)
    app.add_exception_handler(Refusal, _refuse)
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(Exception, _fail)
    for path, route, body, answer in (
        ("/v1/predict/{task}", api.predict, schemas.TaskBody, schemas.TaskAnswers),
        ("/v1/predict", api.predict_all, schemas.TasksBody, schemas.TasksAnswers),
        ("/v1/embeddings", api.embeddings, schemas.EmbeddingsBody, schemas.EmbeddingsAnswer),
        ("/v1/rerank", api.rerank, schemas.RerankBody, schemas.RerankAnswer),
    ):
        app.add_api_route(
            path,
            route,
            methods=["POST"],
            response_model=answer,
            responses=refused(400, 401, 404, 408, 413, 415, 429),
            openapi_extra={"requestBody": schemas.describe(body, settings)},
        )
    for path, show, what, statuses in (
        ("/v1/tasks", api.tasks, schemas.TaskList, (401,)),
        ("/v1/models", api.models, schemas.ModelList, (401,)),
        ("/v1/models/{name:path}", api.model_info, schemas.ModelInfo, (401, 404)),
        ("/healthz", api.healthz, schemas.Status, ()),
        ("/readyz", api.readyz, schemas.Status, (503,)),
    ):
        app.add_api_route(path, show, response_model=what, responses=refused(*statuses))
    app.add_api_route("/metrics", api.show_metrics, response_class=Response, responses=refused(401))
    _add_pages(app)
    _name_tasks(app.openapi(), model)
    return Front(app, settings, keys, hosts, metrics), api


def _add_pages(app: FastAPI) -> None:
    for path, name in {"/": "index.html", "/docs": "docs.html", **{f"/page/{name}": name for name in FILES}}.items():
        app.add_api_route(path, lambda name=name: page_file(name), include_in_schema=False, response_class=Response)


def _name_tasks(description: dict[str, Any], model: Model) -> None:
    """Add task names and example requests to the OpenAPI description, which FastAPI caches for /openapi.json."""
    first = next(iter(model.config.tasks.values()))
    one = {"text": "It was a lovely evening."}
    pair = {"text": "How do I boil an egg?", "text2": "What is the way to cook an egg?"}
    examples = {
        "/v1/predict/{task}": one if first.reading == "single" else pair,
        "/v1/predict": one if all(task.reading == "single" for task in model.config.tasks.values()) else pair,
        "/v1/embeddings": {"model": model.config.name, "input": ["one vector for each text", "and another"]},
        "/v1/rerank": {"model": model.config.name, "query": pair["text"], "documents": [pair["text2"], one["text"]]},
    }
    for path, example in examples.items():
        description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"] = example
    of_task, of_tasks = (description["paths"][path]["post"] for path in ("/v1/predict/{task}", "/v1/predict"))
    of_task["parameters"][0]["schema"]["enum"] = model.tasks
    for route in (of_task, description["paths"]["/v1/models/{name}"]["get"]):
        del route["responses"]["422"]  # FastAPI's validation error, which no route returns
    named = of_tasks["requestBody"]["content"]["application/json"]["schema"]["properties"]["tasks"]
    named["anyOf"][0]["items"]["enum"] = model.tasks


async def _refuse(_: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    return refusal.response()


async def _no_such_route(_: Request, error: Exception) -> Response:
    """Respond to unknown paths and methods."""
    assert isinstance(error, HTTPException)
    words = {404: "unknown path; /docs lists all paths", 405: "this path does not support the method; see /docs"}
    message = words.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    return Refusal(error.status_code, message, f"http_{error.status_code}", headers=headers).response()


async def _fail(request: Request, _: Exception) -> Response:
    """Respond to an internal error. The exception propagates to `Front`, which logs it."""
    return failure(request.scope["state"]["id"]).response()


def warm_up(model: Model) -> None:
    """Run one pass of every task, because the first pass of a process is slow."""
    asks = [
        Ask(name, model.rows(name, ["warm"], None if task.reading == "single" else ["up"]))
        for name, task in model.config.tasks.items()
    ]
    model.engine.together(asks)
