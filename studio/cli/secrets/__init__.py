"""`oz0 secrets`: the vaults of this studio. No value is ever printed."""

from studio.cli import Commands


@Commands.of(__name__, __path__, ["oz0 secrets reseal"])
def secrets() -> None:
    """Look after what the vaults are sealed under."""
