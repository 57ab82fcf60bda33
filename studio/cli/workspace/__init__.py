"""`oz0 workspace`: the workspaces of this studio, whose rows no other sees."""

from studio.cli import Commands


@Commands.of(__name__, __path__, ["oz0 workspace new billing --admin kim"])
def workspace() -> None:
    """Make further workspaces."""
