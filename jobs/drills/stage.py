"""Where one function is drilled: a state folder and a server of its own, and calls made exactly as a node makes them.

The node, its attempts and the rules of what follows an outcome are the product's own; only the waits before a further
attempt are left out.
"""

import errno
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from base import ids
from base.clock import boot_time
from catalog.rules.drill_file import FunctionDrill, ToolDrill
from catalog.rules.kinds import Traits, traits_of
from catalog.rules.manifest import ToolSpec, command
from catalog.rules.servers import MeasuredListing, ServerSpec
from catalog.rules.templates import Values, fill, fill_text
from jobs.drills.observing import Observer, changes
from jobs.node import Node, NotOpened
from jobs.rules.drills import Fault, Finding, Verdict
from jobs.rules.keys import activity_key
from jobs.rules.limits import MAX_ATTEMPTS, own_limit
from jobs.rules.orders import End, Order, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.retry import AskPerson, Facts, RetryAt, next_step
from jobs.rules.states import CallState, Effect

RELAY: Final = Path(__file__).with_name("relay.py")
PATIENCE: Final = 30.0  # seconds for what a server must do at some time
LOOK_AGAIN: Final = 0.02


class CannotMeasure(Exception):
    """A fault could not be put to the function, or its control showed nothing: why, and the way out in `fix`."""

    def __init__(self, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.fix: Final = fix


class NotApplicable(Exception):
    """The fault says nothing about this function; the message says why."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call with all its attempts."""

    outcomes: tuple[Outcome, ...]

    @property
    def last(self) -> Outcome:
        """How it ended."""
        return self.outcomes[-1]

    @property
    def answered(self) -> bool:
        """Whether it got a result that is no error."""
        return self.last.end is End.ANSWERED and self.last.result is not None and not self.last.result.is_error

    @property
    def text(self) -> str:
        """What a model would read, or how it ended instead."""
        return self.last.result.text if self.last.result is not None else self.last.wire.detail


class Stage:
    """One function of a tool, ready to be called. `folder` is its own and empty; `plugin` is where the server runs."""

    def __init__(
        self, node: Node, *, tool: ToolSpec, drill: ToolDrill, function: str, plugin: Path, folder: Path
    ) -> None:
        self.node: Final = node
        self.tool: Final = tool
        self.drill: Final = drill
        self.function: Final = function
        self.how: Final[FunctionDrill] = drill.functions.get(function, FunctionDrill())
        self.home: Final = folder / "home"
        self._plugin: Final = plugin
        self._folder: Final = folder
        self._ids: Final = (ids.new(), ids.new())
        self.starts = 0
        self._keys = 0
        self._threads: Final = ThreadPoolExecutor(8, thread_name_prefix=f"oz0-drill-{function}")
        self.home.mkdir(parents=True)
        self.server = self._next_server()
        self.traits: Traits = traits_of({}, {})
        self.one = 0  # effects of one call
        self.first_key = ""
        self.first_text = ""
        self.first_at = 0.0

    # --- the server ----------------------------------------------------------------------------------------------

    def open(self) -> MeasuredListing:
        """A live server, started when there is none. Raises `CannotMeasure`."""
        opened = self.node.open(self.server)
        if isinstance(opened, NotOpened):
            raise CannotMeasure(f"its server does not start: {opened.detail}", "run `oz0 plugin test` without --drill")
        for entry in opened.listing.functions:
            if entry.name == self.function:
                self.traits = traits_of(entry.annotations, entry.meta)
        return opened.listing

    def renew(self) -> None:
        """The next call gets a server of its own, started anew on the same state."""
        self.server = self._next_server()

    def _next_server(self) -> ServerSpec:
        self.starts += 1
        control = self._control(str(self.starts))
        control.mkdir()
        os.mkfifo(control / "orders")
        argv = command(self.drill.argv or self.tool.argv, python=sys.executable, home=str(self.home))
        return ServerSpec(
            tenant=self._ids[0],
            tool_id=self._ids[1],
            tool=self.tool.id,
            version=str(self.starts),
            credential_version="",
            argv=(sys.executable, "-I", "-S", str(RELAY), str(control), "--", *argv),
            cwd=str(self._plugin),
            startup=self.tool.startup,
            slots=self.tool.slots,
            env={name: os.environ[name] for name in self.tool.env if name in os.environ},
        )

    def _control(self, version: str) -> Path:
        return self._folder / f"server-{version}"

    def order(self, do: str, *, at: str = "now") -> None:
        """Tell the relay of the live server what to do, and when."""
        try:
            pipe = os.open(self._control(self.server.version) / "orders", os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise CannotMeasure("its server was not running when the fault was to be put to it") from error
            raise
        try:
            os.write(pipe, json.dumps({"at": at, "do": do}).encode() + b"\n")
        finally:
            os.close(pipe)

    def seen(self, event: str, server: ServerSpec | None = None) -> list[dict[str, Any]]:
        """What the relay of a server, the live one, saw of this kind, in order."""
        path = self._control((server or self.server).version) / "seen.jsonl"
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [one for line in whole if (one := json.loads(line))["event"] == event]

    def pause(self, seconds: float) -> None:
        """Let a call go on for so long."""
        Event().wait(seconds)

    def until(self, truth: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait for it. Raises `CannotMeasure`."""
        limit = time.monotonic() + seconds
        pause = Event()
        while not truth():
            if time.monotonic() > limit:
                raise CannotMeasure(f"{what} did not come within {seconds:g} s")
            pause.wait(LOOK_AGAIN)

    # --- the world -----------------------------------------------------------------------------------------------

    def look(self, *, everything: bool = False) -> Counter[str]:
        """Every effect there is; with `everything` also those that are not this function's own."""
        wanted = {} if everything else self.how.effect
        passed_over = frozenset({self._trouble()} if self.drill.trouble else ())
        return Observer(self.drill.effects, self.home, self._plugin, wanted, passed_over).look()

    def leave_a_mark(self) -> bool:
        """Make an effect from outside, as a control."""
        return Observer(self.drill.effects, self.home, self._plugin, {}).leave_a_mark()

    def trouble(self, **wanted: Any) -> None:
        """What the server is to suffer from now on; nothing without words."""
        if not self.drill.trouble:
            return
        path = self._trouble()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".drill")
        fresh.write_text(json.dumps({"functions": [self.function], **wanted} if wanted else {}))
        fresh.replace(path)

    def busy_left(self) -> int:
        """How many busy answers the trouble file still holds."""
        busy = json.loads(self._trouble().read_text()).get("busy") or {}
        return int(busy.get("calls", 0))

    def _trouble(self) -> Path:
        return Path(fill_text(self.drill.trouble, Values(home=str(self.home))))

    # --- calls ---------------------------------------------------------------------------------------------------

    def arguments(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The function's arguments as the drill file gives them, some of them replaced."""
        return self.filled({**self.how.arguments, **(more or {})})

    def filled(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of any function, with what stands for the state folder filled in."""
        filled: dict[str, Any] = fill(dict(arguments), Values(home=str(self.home)))
        return filled

    def key(self) -> str:
        """A key that no call has had."""
        self._keys += 1
        return activity_key(ids.show(ids.JOB, self._ids[0]), run_number=0, activity=self._keys)

    def call(
        self,
        key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        function: str = "",
        first_timeout: float = 0,
        insist: bool = False,
        between: Callable[[], object] = lambda: None,
    ) -> Made:
        """Make a call to its end: further attempts by the platform's own rules, and where those ask a person about a
        function that honours the key, "run it again" once. `between` runs before each further attempt; `insist` makes
        a busy call again also where the rules would not.
        """
        outcomes: list[Outcome] = []
        effect, run_again, traits = Effect.NONE, False, self.traits
        while True:
            timeout = first_timeout if first_timeout and not outcomes else self.tool.timeout
            outcomes.append(self.attempt(key, arguments, function=function, number=len(outcomes) + 1, timeout=timeout))
            facts = Facts(
                state=CallState.RUNNING,
                read_only=traits.read_only,
                retry_safe=traits.retry_safe,
                honours_key=traits.honours_key,
                attempts=len(outcomes),
                effect=effect,
                run_again=run_again,
            )
            match next_step(facts, outcomes[-1], now=datetime.now(UTC), jitter=0.0):
                case RetryAt(effect=so_far):
                    effect = so_far
                case AskPerson(effect=so_far) if traits.honours_key and not run_again:
                    effect, run_again = so_far, True
                case _ if insist and outcomes[-1].end is End.BUSY and len(outcomes) < MAX_ATTEMPTS:
                    pass
                case _:
                    return Made(tuple(outcomes))
            between()

    def attempt(
        self,
        key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        function: str = "",
        number: int = 1,
        timeout: float = 0,
        began: Callable[[Order], object] = lambda _: None,
    ) -> Outcome:
        """One attempt, by the node. A server that it took along is replaced for the next."""
        name = function or self.function
        listing = self.open()
        entry = next((one for one in listing.functions if one.name == name), None)
        if entry is None:
            raise CannotMeasure(f"its server does not list {name}", "name a function that it lists")
        traits = traits_of(entry.annotations, entry.meta)
        seconds = timeout or self.tool.timeout
        order = Order(
            tenant=self._ids[0],
            job_id=self._ids[0],
            call_id=ids.new(),
            attempt_id=ids.new(),
            number=number,
            server=self.server,
            function=name,
            arguments=arguments if arguments is not None else self.arguments(),
            key=key,
            entry_digest=entry.digest,
            retry_safe=traits.retry_safe,
            timeout=seconds,
            own_limit=own_limit(seconds),
            cleanup=min(self.tool.cleanup, seconds),
        )
        began(order)
        outcome = self.node.run(order, started=boot_time())
        if outcome.end in (End.BROKEN, End.LOST) or outcome.reason == Reason.SERVER_NOT_UP:
            self.renew()
        return outcome

    def start[T](self, act: Callable[[], T]) -> "Future[T]":
        """Do something on a thread of its own."""
        return self._threads.submit(act)

    def effects_of(self, act: Callable[[], Made]) -> tuple[Made, int]:
        """What a call came to, and how many effects it had."""
        before = self.look()
        made = act()
        return made, changes(before, self.look())

    def another(self) -> str:
        """The control of every fault of keys: a call under another key does act, and it is seen. A sentence."""
        for arguments in (self.arguments(), self.arguments(self.how.other) if self.how.other else None):
            if arguments is None:
                continue
            before = self.look()
            made = self.call(self.key(), arguments)
            effects = changes(before, self.look())
            if made.answered and effects:
                return f"under another key it acts: {plural(effects)} more"
        raise CannotMeasure(
            "a call under another key had no effect that is seen, so a repeat that acts would not be seen either",
            "give arguments of a call that acts each time, and `effects:` that show it",
        )

    # --- findings ------------------------------------------------------------------------------------------------

    def proven(self, fault: Fault, said: str, control: str) -> Finding:
        """It keeps what it says, and the control showed that a breach would have been seen."""
        return Finding(self.tool.id, self.function, fault, Verdict.PROVEN, said, control)

    def failed(self, fault: Fault, said: str, fix: str, control: str = "") -> Finding:
        """It does not."""
        return Finding(self.tool.id, self.function, fault, Verdict.FAILED, said, control, fix)

    def close(self) -> None:
        """Give its threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def plural(effects: int) -> str:
    """`1 effect`, `2 effects`."""
    return f"{effects} effect" if effects == 1 else f"{effects} effects"
