"""Drawing trials: each is a server, a function, a fault and a moment, all from one seed and the trial's number."""

import json
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.faults.lab.classes import FAR, KINDS, SERVERS, Kind

TIMEOUT: Final = 4.0  # seconds; of every tool of the lab
NOT_MADE: Final = (401, 403, 404, 405, 406, 413, 415, 421, 426, 429, 307, 308)  # MACHINES 5
NOBODY_KNOWS: Final = (202, 301, 302, 303, 400, 402, 409, 500, 502, 503, 504)
CODES: Final = (-32700, -32600, -32601, -32602, -32020, -32021, -32022)
SPOILT: Final = ("sent_reset", "sent_close", "half_open", "dribble", "wrong_id", "twice", "bad_json", "wrong_type")
SPOILT_MORE: Final = ("gzip", "endless")
AT_PEOPLE: Final = ("queued", "received", "effect", "retrying", "asked")
AT_NODES: Final = ("received", "received", "effect", "effect", "retrying", "asked")


@dataclass(frozen=True, slots=True)
class Trial:
    """One call to be made. `moment` is when a person or a signal comes between; `says` answers its questions."""

    number: int
    server: str
    function: str
    fault: str
    moment: str
    plan: dict[str, Any]
    says: str

    @property
    def kind(self) -> Kind:
        """What may be asked of its function."""
        return KINDS[self.function]

    @property
    def wired(self) -> bool:
        """Whether its wire is spoilt, so that the server need not hear what the studio says."""
        return bool(self.plan.get("wire")) or self.fault == "refused"

    def __str__(self) -> str:
        at = f" at {self.moment}" if self.moment else ""
        return f"trial {self.number}: {self.server}.{self.function}, {self.fault}{at}, {json.dumps(self.plan)}"


def drawn(seed: int, number: int) -> Trial:
    """The trial of this number."""
    dice = Random(f"{seed}/{number}")
    (server,) = dice.choices(SERVERS, (36, 6, 31, 27))
    function = dice.choice(list(KINDS))
    kind = KINDS[function]
    plan: dict[str, Any] = {"before": round(dice.uniform(0, 0.4), 2), "after": round(dice.uniform(0, 0.4), 2)}
    if function == "busy":
        plan["busy"] = dice.choice([1, 1, 2, 4])
    families = {"calm": 6, "cancel": 22, "kill": 24, "freeze": 4, "drain": 3, "limit": 6, "switch": 4}
    families |= {"wire": 50, "refused": 4} if server in FAR else {"server": 40}
    (family,) = dice.choices(list(families), list(families.values()))
    fault, moment = family, ""
    if family == "wire":
        fault = _wire(dice, plan)
    elif family == "server":
        fault = _server(dice, kind, plan)
    elif family == "limit":
        plan["faults"] = [dice.choice(["hangs_before", "hangs_after"])] * dice.choice([1, 1, 1, 2, 4])
    elif family in ("cancel", "switch", "kill", "freeze", "drain"):
        moment = _moment(dice, server, kind, plan, AT_PEOPLE if family in ("cancel", "switch") else AT_NODES)
    says = dice.choice(["truth", "truth", "again", "stop"])
    return Trial(number, server, function, fault, moment, plan, says)


def _wire(dice: Random, plan: dict[str, Any]) -> str:
    draws = (
        lambda: dice.choice(["unsent_reset", "unsent_close"]),
        lambda: f"status:{dice.choice(NOT_MADE)}",
        lambda: f"status:{dice.choice(NOBODY_KNOWS)}",
        lambda: f"code:{dice.choice(CODES)}",
        lambda: f"late_status:{dice.choice(NOBODY_KNOWS)}",
        lambda: f"cut:{dice.random():.3f}",
        lambda: dice.choice(SPOILT),
        lambda: dice.choice(SPOILT),
        lambda: dice.choice(SPOILT_MORE),
        lambda: f"other:{dice.choice((401, 404, 429, 500, 503))}",
    )
    fault = dice.choice(draws)()
    plan["wire"] = [fault] * dice.choice([1, 1, 1, 2, 4])
    return fault.partition(":")[0] if fault.startswith("cut") else fault


def _server(dice: Random, kind: Kind, plan: dict[str, Any]) -> str:
    names = ["exit_before", "exit_after", "exit_soon", "stays", "forks", "floods", "prints"]
    if kind.reports:
        names = ["exit_midway"] * 3 + names
    if kind.reads:
        names.remove("exit_after")
    fault = "huge" if dice.random() < 0.02 else dice.choice(names)
    plan["faults"] = [fault] * dice.choice([1, 1, 1, 2, 4])
    return fault


def _moment(dice: Random, server: str, kind: Kind, plan: dict[str, Any], moments: tuple[str, ...]) -> str:
    """A moment that the call will come to, which its plan sees to."""
    moment = dice.choice(moments)
    if moment == "effect" and kind.reads and not kind.lies:
        moment = "received"
    if moment == "retrying" and not kind.safe:
        moment = "asked"
    if moment == "asked" and kind.safe:
        moment = "received"
    broken = {"wire": ["sent_reset"]} if server in FAR else {"faults": ["exit_before"]}
    match moment:
        case "received":
            plan["before"] = round(dice.uniform(0.6, 1.2), 2)
        case "effect":
            plan["after"] = round(dice.uniform(0.6, 1.2), 2)
        case "retrying":
            plan |= broken
        case "asked" if not kind.approved:
            plan |= broken
    return moment
