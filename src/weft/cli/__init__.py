"""The `weft` command."""

import sys
from typing import Annotated

import typer

from weft.cli import (
    add,
    check,
    compare,
    demo,
    embed,
    ensemble,
    evaluate,
    export,
    init,
    mine,
    predict,
    pretrain,
    probe,
    prune,
    recipes,
    remove,
    report,
    serve,
    sharing,
    soup,
    study,
    sweep,
    train,
)
from weft.foundation.errors import Interrupted, RunError, ToldElsewhere, UserError
from weft.foundation.sanitize import for_terminal

OUT_OF_MEMORY = (
    "the memory is full. Less is needed with smaller batches (tasks.NAME.batch_size, with optimizer.accumulate to "
    "make up for it), a shorter max_length, or optimizer.gradient_checkpointing = true; `weft check` estimates what a "
    "recipe needs. Checkpoints that were written are intact: continue with --resume"
)
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fine-tune one encoder on many sentence tasks at once, and learn what helped.",
)
COMMANDS = (
    demo,
    train,
    pretrain,
    evaluate,
    compare,
    add,
    remove,
    predict,
    embed,
    mine,
    serve,
    report,
    study,
    sharing,
    sweep,
    soup,
    ensemble,
    export,
    probe,
    prune,
    init,
    check,
    recipes,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"weft {version('weft')}")
        raise typer.Exit


@app.callback()
def options_of_all(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that need no command."""


for module in COMMANDS:
    app.command()(getattr(module, module.__name__.rpartition(".")[2]))


def main() -> None:
    """Run a command. An error that the user can fix prints one message and exits with code 2, without a traceback."""
    try:
        app()
    except UserError as error:
        sys.exit(_say(error, 2))
    except RunError as error:
        sys.exit(_say(error, 1))
    except ToldElsewhere:
        sys.exit(1)
    except (Interrupted, KeyboardInterrupt) as error:
        sys.exit(_say(error, 130))
    except BrokenPipeError:  # the reader of our output has closed the pipe
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # for example a full disk, or a folder without write permission
        sys.exit(_say(error, 1))
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        sys.exit(_say(RunError(OUT_OF_MEMORY), 1))


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory is exhausted.

    There is no common exception: CUDA, torch's allocator, C++ and Arrow's threads each have their own message.
    """
    said = str(error).lower()
    words = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc", "launch worker thread")
    return isinstance(error, MemoryError) or any(word in said for word in words)


def _say(error: BaseException, code: int) -> int:
    if str(error):
        print(for_terminal(f"weft: {error}"), file=sys.stderr)
    return code
