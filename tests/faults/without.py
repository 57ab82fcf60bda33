"""Guards of a node that a drill takes away, to show what each is for; and what the lab's nodes do otherwise."""

from collections.abc import Callable


def sweep() -> None:
    """Nobody closes what a dead node left open."""
    from jobs.operations import sweep

    sweep.Sweeper.sweep = lambda *_, **__: 0  # type: ignore[assignment]


def claim() -> None:
    """A node takes only what a message brings it."""
    from jobs.tasks.pulse import Pulse

    Pulse._claim = lambda self: None  # type: ignore[method-assign]


def keeping() -> None:
    """An outcome is written once, whether or not the database is there."""
    from jobs.tasks.host import Host

    Host.until_committed = lambda self, act: act()  # type: ignore[method-assign]


def guardian() -> None:
    """Tools' servers are started as they are."""
    from base import children

    children.Leash.argv = property(
        lambda self: self.bare, lambda self, argv: setattr(self, "bare", _after_dashes(argv))
    )  # type: ignore[assignment,misc]


def _after_dashes(argv: list[str]) -> list[str]:
    return argv[argv.index("--") + 1 :]


def lab() -> None:
    """Nothing is taken away: leases are short, and some commits are made and not seen."""
    from tests.faults.lab import node_side

    node_side.prepare()


GUARDS: dict[str, Callable[[], None]] = {
    "": lambda: None,
    "sweep": sweep,
    "claim": claim,
    "keeping": keeping,
    "guardian": guardian,
    "lab": lab,
}
