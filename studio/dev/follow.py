"""The program that follows one plugin's folder beside its studio: `python -m studio.dev.follow FOLDER --url URL`.

A save is read and copied, the copy's servers are started and listed, and only then does the copy become the plugin's
current version; what fails on the way is told, and the version before goes on (RULES D4). A save that comes meanwhile
breaks the trial off. One thread does all of it; others only tell it what happened.
"""

import argparse
import json
import os
import queue
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from base import folders, ids
from base.clock import boot_time
from base.ports import listens
from catalog.rules import listing_file
from catalog.rules.findings import Finding
from catalog.rules.lint import costs_of, lint, not_taken, unreadable
from catalog.rules.lint_functions import UNDECLARED
from catalog.rules.manifest import MANIFEST
from catalog.rules.places import placed
from catalog.rules.problems import BadPlugin, Problem
from catalog.rules.servers import MeasuredListing
from catalog.rules.tracebacks import mishap
from catalog.sessions import NotListed, Trial
from studio.cli import _this_studio
from studio.dev import news, reading, saying
from studio.dev.watching import tell_of_saves

if TYPE_CHECKING:
    from studio.dev.taking import Workplace

TICK: Final = 0.5  # seconds between looks at what servers said
FATES: Final = 2.0  # seconds between looks at what policy says of each function
SERVES_IN: Final = 120.0  # seconds for the pages to be there
SAID: Final = 6  # lines of a server's last words that are told where they name no place


@dataclass(frozen=True, slots=True)
class Save:
    """The folder was changed."""

    changed: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial has come to its end."""

    trial: Trial


@dataclass(slots=True)
class Trying:
    """What is being tried now."""

    saved: reading.Saved
    folder: Path
    save: Save
    began: float
    trial: Trial | None = None
    starting: float = 0.0
    """Seconds that its servers took to start and be listed."""


class Follower:
    """Everything that is known of the plugin between two events."""

    def __init__(
        self, folder: Path, url: str, workplace: "Workplace", *, warm: str, as_json: bool, coloured: bool
    ) -> None:
        self._folder: Final = folder
        self._url: Final = url
        self._workplace: Final = workplace
        self._warm: Final = warm
        self._as_json: Final = as_json
        self._coloured: Final = coloured
        self._events: Final[queue.Queue[Save | Tried]] = queue.Queue()
        self._trying: Trying | None = None
        self._loaded: reading.Saved | None = None
        self._listed: Mapping[str, MeasuredListing] = {}
        self._tokens: Mapping[str, int] = {}
        self._fates: tuple[news.Fate, ...] = ()
        self._broken = False
        self._greeted = False
        self._next_fates = 0.0

    def follow(self) -> None:
        """Follow the folder for ever."""
        tell_of_saves(self._folder, lambda changed: self._events.put(Save(changed, time.monotonic())))
        self._events.put(Save((), time.monotonic()))
        patience = time.monotonic() + SERVES_IN
        while True:
            try:
                match self._events.get(timeout=TICK):
                    case Save() as save:
                        self._on_save(save)
                    case Tried(trial) if self._trying is not None and self._trying.trial is trial:
                        self._on_tried(self._trying, trial)
            except queue.Empty:
                self._look_around()
            if not self._greeted and (listens(int(self._url.rpartition(":")[2])) or time.monotonic() > patience):
                self._greeted = True
                self._tell(news.Begun(self._url, self._workplace.link(self._url), str(self._workplace.home)))

    def _on_save(self, save: Save) -> None:
        if self._trying is not None:
            save = Save(tuple(sorted({*self._trying.save.changed, *save.changed})), save.at)
        self._leave()
        try:
            saved = reading.read(self._folder, os.environ)
            folder = reading.copied(saved, self._workplace.home)
        except (BadPlugin, folders.BadFolder) as error:
            self._fail(save, error)
            return
        last = self._loaded
        if last is not None and saved.sources == last.sources and not self._broken:
            self._tell(news.Unchanged(_now(), save.changed))
            return
        trying = self._trying = Trying(saved, folder, save, boot_time())
        if last is not None and saved.servers == last.servers:
            self._take(trying, self._listed)  # nothing that a server is made of was touched
            return
        keys = {tool.id: ids.new() for tool in saved.spec.tools}
        servers = reading.servers_of(saved, folder, self._workplace.home, keys, self._warm)
        trying.trial = Trial(servers, lambda trial: self._events.put(Tried(trial)))

    def _on_tried(self, trying: Trying, trial: Trial) -> None:
        if trial.failed:
            problems = [_not_listed(tool, why, str(trying.folder)) for tool, why in trial.failed.items()]
            self._fail(trying.save, BadPlugin(problems))
        else:
            trying.starting = boot_time() - trying.began
            self._take(trying, trial.listed)
        trial.end()

    def _take(self, trying: Trying, listed: Mapping[str, MeasuredListing]) -> None:
        saved, spec = trying.saved, trying.saved.spec
        text = listing_file.write(saved.files, listed)
        files = {**saved.files, listing_file.LISTING_FILE: text.encode()}
        listing = listing_file.read(text.encode())
        found = placed(not_taken(lint(spec, files, listing), listed, {}), files)
        found += self._keep_listing(text)
        try:
            self._workplace.take(saved, files, listed, trying.began)
        except (BadPlugin, folders.BadFolder) as error:
            self._fail(trying.save, error)
            return
        costs = costs_of(spec, listing)
        before = self._loaded.files if self._loaded is not None else {}
        there = saved.files.keys() | before.keys()  # unlike what an editor made for a moment and renamed
        changed = tuple(path for path in trying.save.changed if path in there)
        self._loaded, self._listed, self._broken, self._trying = saved, listed, False, None
        self._tokens = {cost.label: cost.tokens for cost in costs.functions}
        self._fates = self._workplace.fates([tool.id for tool in spec.tools], self._tokens)
        self._tell(
            news.Loaded(
                at=_now(),
                plugin=spec.name,
                version=spec.version,
                seconds=time.monotonic() - trying.save.at,
                starting=trying.starting,
                tokens=costs.tokens,
                budget=spec.tool_tokens,
                agents=tuple(agent.name for agent in spec.agents),
                skills=len(spec.skills),
                functions=self._fates,
                findings=tuple(one for one in found if one.code != UNDECLARED),  # those are among what policy holds
                changed=changed,
                remote=tuple(tool.id for tool in spec.tools if tool.url),
            )
        )
        self._workplace.tidy()

    def _keep_listing(self, text: str) -> list[Finding]:
        """Write `oz0-listing.json` beside the manifest when it is another one (RULES T5)."""
        place = self._folder / listing_file.LISTING_FILE
        try:
            if not place.is_file() or place.read_bytes() != text.encode():
                place.write_text(text, encoding="utf-8")
        except OSError as error:
            fix = "let this account write there"
            return unreadable([Problem(place.name, 0, "", f"cannot be written: {error.strerror}", fix)])
        return []

    def _fail(self, save: Save, error: Exception) -> None:
        self._broken, self._trying = True, None
        problems = error.problems if isinstance(error, BadPlugin) else (_told(str(error)),)
        spec = self._loaded.spec if self._loaded else None
        goes_on = f"{spec.name} {spec.version}" if spec else ""
        self._tell(news.Broken(_now(), tuple(problems), goes_on, save.changed))

    def _leave(self) -> None:
        """Break off the trial there is."""
        if self._trying is not None and self._trying.trial is not None:
            self._trying.trial.end()
        self._trying = None

    def _look_around(self) -> None:
        """Tell what the servers said, and that policy holds other functions than it did."""
        if self._loaded is None:
            return
        spec = self._loaded.spec
        for tool, line in self._workplace.heard(spec.name):
            source, _, text = line.partition(": ")
            stray = source == "stdout"
            place = saying.place_of(text, self._loaded.files) if stray else ""
            self._tell(news.Heard(tool, source, text, saying.TO_STDERR if stray else "", place))
        if time.monotonic() < self._next_fates:
            return
        self._next_fates = time.monotonic() + FATES
        fates = self._workplace.fates([tool.id for tool in spec.tools], self._tokens)
        if fates != self._fates:
            self._fates = fates
            self._tell(news.Held(_now(), fates))

    def _tell(self, told: news.News) -> None:
        if self._as_json:
            click.echo(json.dumps(told.as_json(), ensure_ascii=False))
            return
        for line in told.lines():
            click.echo(str(line) if self._coloured else line.text, color=self._coloured)


def _not_listed(tool: str, failed: NotListed, folder: str) -> Problem:
    """Where a server's start went wrong, in its own words."""
    said = [line.removeprefix("stderr: ") for line in failed.said if line.startswith("stderr: ")]
    where = mishap(said, folder)
    inside = f"{folder.rstrip('/')}/"
    why = failed.why.replace(inside, "")
    if where.file:
        message = f"the server of {tool} does not start: {where.said.replace(inside, '')}"
        return Problem(where.file, where.line, "", message, "mend it and save")
    last = "".join(f"\n    {line.replace(inside, '')}" for line in said[-SAID:])
    return Problem(MANIFEST, 0, tool, f"its server does not start: {why}{last}", "mend what it says and save")


def _told(text: str) -> Problem:
    said, _, fix = text.partition(" fix: ")
    return Problem(MANIFEST, 0, "", said, fix or "mend it and save")


def _now() -> str:
    return f"{datetime.now().astimezone():%H:%M:%S}"


def main() -> None:
    """Follow a folder until a signal comes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # nothing here has to end in order: guardians end what was started
    parser = argparse.ArgumentParser(prog="python -m studio.dev.follow")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", required=True)
    parser.add_argument("--warm", required=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--colour", action="store_true")
    given = parser.parse_args()
    _this_studio.ready()
    from studio.dev.taking import Workplace

    follower = Follower(
        given.folder, given.url, Workplace(), warm=given.warm, as_json=given.json, coloured=given.colour
    )
    follower.follow()


if __name__ == "__main__":
    main()
