"""`oz0 completion`: what a shell needs to complete `oz0 …`."""

import click
from click.shell_completion import get_completion_class

from studio.cli import _told

PROGRAM = "oz0"
SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=_told.Told,
    short_help="Print what a shell needs to complete oz0.",
    exits={_told.Exit.DONE: "the script is printed"},
    examples=[
        'eval "$(oz0 completion bash)"                              in ~/.bashrc',
        "oz0 completion bash > ~/.local/share/bash-completion/completions/oz0",
        'oz0 completion zsh > "${fpath[1]}/_oz0"                    before compinit runs',
        "oz0 completion fish > ~/.config/fish/completions/oz0.fish",
    ],
)
@click.argument("shell", type=click.Choice(SHELLS))
@_told.json_option
def completion(shell: str, as_json: bool) -> None:
    """Print the script by which SHELL completes commands, options, their values and files.

    The shell then asks `oz0` itself, so the script stays good when commands are added.
    """
    import json

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101  click has these three since version 8
    from studio.cli import main

    script = found(main, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source()
    click.echo(json.dumps({"shell": shell, "script": script}) if as_json else script)
