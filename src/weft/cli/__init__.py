"""The `weft` command."""

import sys

import typer

from weft.cli import check, demo, embed, evaluate, export, init, predict, recipes, train
from weft.errors import Interrupted, RunError, UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fine-tune one BERT body on many sentence tasks at once, and learn what helped.",
)
for module in (demo, train, evaluate, predict, embed, export, init, check, recipes):
    app.command()(getattr(module, module.__name__.rpartition(".")[2]))


def main() -> None:
    """Run a command; what a user can mend is one message and exit code 2, never a traceback."""
    try:
        app()
    except UserError as error:
        sys.exit(_say(error, 2))
    except RunError as error:
        sys.exit(_say(error, 1))
    except (Interrupted, KeyboardInterrupt) as error:
        sys.exit(_say(error, 130))
    except BrokenPipeError:  # whoever read our output has gone
        sys.stderr.close()
        sys.exit(1)


def _say(error: BaseException, code: int) -> int:
    if str(error):
        print(f"weft: {error}", file=sys.stderr)
    return code
