"""`weft serve`"""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options
from weft.foundation.errors import UserError

NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def serve(
    model: options.ModelArgument,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on. Defaults to the loopback interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 selects a free one.")] = 8000,
    api_key_file: Annotated[
        Path | None, typer.Option("--api-key-file", metavar="F", help="File with the accepted API keys, one per line.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="Host name that clients use; may be repeated."),
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option("--batch-tokens", min=0, help="Maximum tokens per forward pass; 0 disables batching.")
    ] = 512,
    max_wait_ms: Annotated[
        float, typer.Option("--max-wait-ms", min=0, help="Maximum time that a request waits for a batch.")
    ] = 3.0,
    queue_tokens: Annotated[
        int, typer.Option("--queue-tokens", min=1, help="Maximum tokens in the queue; beyond it clients get 429.")
    ] = 65_536,
    queue_chars: Annotated[
        int, typer.Option("--queue-chars", min=1, help="Maximum characters waiting to be tokenized; beyond it 429.")
    ] = 4_000_000,
    queue_requests: Annotated[
        int, typer.Option("--queue-requests", min=1, help="Maximum requests in progress; beyond it 429.")
    ] = 1024,
    max_body: Annotated[int, typer.Option("--max-body", min=1, help="Maximum bytes per request.")] = 1_000_000,
    max_texts: Annotated[int, typer.Option("--max-texts", min=1, help="Maximum texts or pairs per request.")] = 256,
    max_chars: Annotated[int, typer.Option("--max-chars", min=1, help="Maximum characters per text.")] = 20_000,
    body_seconds: Annotated[
        float, typer.Option("--body-seconds", min=0.1, help="Maximum time that a client may take to send a request.")
    ] = 10.0,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="torch, onnx or onnx-int8 (faster, slightly different answers); exported once, then cached.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=256, help="Processes behind the port; they divide the cores.")
    ] = 1,
    device: options.Device = "auto",
    trust_code: options.TrustCode = False,
) -> None:
    """Serve predictions over HTTP, with a web page to try the model."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UserError(f'serve: {missing[0]} is not installed; run: pip install "weft[serve]"')
    from weft.serving.hosts import Hosts
    from weft.serving.job import ServerJob
    from weft.serving.keys import read_keys
    from weft.serving.listening import open_socket, reserve_socket
    from weft.serving.settings import ServerSettings

    keys = read_keys(api_key_file)
    listener = open_socket(host, port) if workers == 1 else reserve_socket(host, port)
    where, at = listener.getsockname()[:2]
    Hosts(where, host, allowed_host or ())  # rejects a wrong name before anything is loaded
    folder = model if engine is None else _folder_for(engine, model, workers, trust_code)
    settings = ServerSettings(
        max_body=max_body,
        max_texts=max_texts,
        max_chars=max_chars,
        batch_tokens=batch_tokens,
        max_wait=max_wait_ms / 1000,
        queue_tokens=queue_tokens,
        queue_chars=queue_chars,
        queue_requests=queue_requests,
        body_seconds=body_seconds,
    )
    job = ServerJob(folder, device, trust_code, settings, keys, host, at, tuple(allowed_host or ()), workers)
    place = f"http://{f'[{where}]' if ':' in where else where}:{at}"

    def announce(name: str) -> None:
        print(f"{name} answers at {place} (a page to try it; {place}/docs describes the API)", flush=True)

    if workers == 1:
        from weft.serving.server import serve_job

        serve_job(job, listener, lambda loaded: announce(loaded.config.name))
    else:
        from weft.serving.supervisor import Supervisor

        Supervisor(job, lambda: announce(f"{model} with {workers} workers")).run()


def _folder_for(engine: str, model: Path, workers: int, trust_code: bool) -> Path:
    """Return the folder to serve, exported first if needed; by another process if this one is to stay small."""
    if workers == 1:
        return _export(engine, model, trust_code)
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        return other.submit(_export, engine, model, trust_code).result()


def _export(engine: str, model: Path, trust_code: bool) -> Path:
    from weft.export.engines import engine_folder

    return engine_folder(model, engine, trust_code=trust_code)
