"""What every command of `oz0` has in common: how its help ends, how its mistakes are told, and how it ends.

An exit code means the same in each: 0 done, 1 it did not go well, 2 a wrong call, 3 what it was given cannot be read,
4 a server could not be listed, 130 interrupted. Each command's help lists its own, and `docs/cli.md` all of them.
"""

import errno
import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

import click


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREADABLE = 3
    NOT_LISTED = 4
    INTERRUPTED = 130


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object; messages go to stderr.")
lines_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, an object a line.")

USUAL: Final[Mapping[int, str]] = {Exit.DONE: "done", Exit.FAILED: "it could not be done, and why is said"}


class Ending:
    """The end of a help text: exit codes, and lines to type."""

    exits: Mapping[int, str]
    examples: Sequence[str]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Exit codes and examples, after the options."""
        if self.exits:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(int(code)), text) for code, text in sorted(self.exits.items())])
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Told(Ending, click.Command):
    """A command whose help says how it ends and how it is called.

    `exits` gives a text for each exit code; 2 and 130 are the same for all. `examples` are whole lines to type.
    """

    def __init__(
        self, *args: Any, exits: Mapping[int, str] | None = None, examples: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.exits = {**(exits or USUAL), Exit.USAGE: "a wrong call of the command"}
        self.examples = tuple(examples)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. With --json a mistake is an object on stdout too, `{"error": …}`; the message is on stderr."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(Exit.INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE or error.filename is None:
                raise  # of a closed pipe click makes a quiet end
            failed = click.ClickException(f"{error.filename}: {error.strerror}\n  fix: {_way_out(error)}")
            _also_as_json(ctx, failed)
            raise failed from error
        except click.UsageError:
            raise
        except click.ClickException as error:
            _also_as_json(ctx, error)
            raise


def _also_as_json(ctx: click.Context, error: click.ClickException) -> None:
    if ctx.params.get("as_json") or ctx.params.get("shape") == "json":
        click.echo(json.dumps({"error": error.format_message()}))


def _way_out(error: OSError) -> str:
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "let this account write there, or name a place where it may"
        case errno.ENOSPC | errno.EDQUOT:
            return "make room there, or name another place"
        case errno.ENOENT:
            return "name something that is there"
        case _:
            return "mend that, and call it again"
