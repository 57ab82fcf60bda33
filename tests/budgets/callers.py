"""Programs that hold a key of a project, for tests of the journal's API."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.test import Client

from base import db
from budgets.models import Key
from budgets.operations import keys
from budgets.rules.identity import denial_call_id
from budgets.rules.words import KeyScope
from tenants.models import Membership
from tenants.queries.seats import Seat, seats_of
from tenants.rules.bearers import written
from tenants.rules.who import Actor
from tests.budgets.ledgers import Ledger, an_id
from tests.builders import a_person

V1 = "/api/v1/budgets"


def a_seat(ledger: Ledger, name: str = "pat") -> Seat:
    """A person of the ledger's tenant."""
    with db.read(ledger.tenant):
        found = Membership.objects.filter(user__username=name).values_list("user_id", flat=True).first()
    person = a_person(ledger.tenant, name) if found is None else found
    return next(seat for seat in seats_of(person) if seat.tenant == ledger.tenant)


def a_secret(name: str) -> str:
    """A secret as they are written, the same for the same name."""
    return written("".join(filter(str.isalnum, name)).ljust(36, "0")[:36])


class Caller:
    """A program with a key."""

    def __init__(
        self, ledger: Ledger, name: str = "k", scope: KeyScope = KeyScope.FULL, *, seat: Seat | None = None
    ) -> None:
        self.ledger, self.token = ledger, a_secret(f"{name}{ledger.project.hex[-12:]}")
        seat = seat or a_seat(ledger)
        self.key = keys.make(
            tenant=ledger.tenant,
            project=ledger.project,
            secret=self.token,
            name=name,
            scope=scope,
            actor=Actor(seat.username, "test", seat.person_id),
        )

    @property
    def row(self) -> Key:
        """The key as it is kept."""
        with db.read(self.ledger.tenant):
            return Key.objects.get(pk=self.key)

    def ask(self, method: str, path: str, said: Any = None, **headers: str) -> Any:
        """One request."""
        return asked(self.token, method, path, said, **headers)

    def submit(self, *checks: dict[str, Any], operation: UUID | str | None = None) -> Any:
        """POST these checks under a fresh id."""
        name = str(operation or an_id(self.ledger))
        return self.ask("POST", "/check/batches", {"operation_id": name, "checks": list(checks)})

    def look_up(self, operation: UUID | str) -> Any:
        """GET an operation."""
        return self.ask("GET", f"/check/batches/{operation}")

    def confirm(self, reservation: str, tokens: int = 4_000, **more: Any) -> Any:
        """POST what a call has used."""
        return self.ask("POST", "/confirm", {"reservation_id": reservation, **used(tokens), **more})

    def ingest(self, *events: dict[str, Any]) -> Any:
        """POST events."""
        return self.ask("POST", "/ingest", {"events": list(events)})


def asked(token: str, method: str, path: str, said: Any = None, **headers: str) -> Any:
    """One request with this secret."""
    body = said if isinstance(said, bytes) else b"" if said is None else json.dumps(said, ensure_ascii=False).encode()
    kind = headers.pop("content_type", "application/json")
    given = {"Authorization": f"Bearer {token}", **headers}
    return Client().generic(method, V1 + path, body, content_type=kind, headers=given)


def a_check(cents: int = 1, **more: Any) -> dict[str, Any]:
    """A check of so many cents, as it is sent."""
    tokens = {"estimated_input_tokens": 4_000 * cents, "estimated_output_tokens": 0}
    return {"model": "gpt-4o", "provider": "openai", **tokens, **more}


def used(tokens: int = 4_000) -> dict[str, Any]:
    """What a call has used, as it is sent."""
    return {"model": "gpt-4o", "provider": "openai", "input_tokens": tokens, "output_tokens": 0}


def an_event(call: str, at: datetime | str, **more: Any) -> dict[str, Any]:
    """An event of a call that went well."""
    moment = at if isinstance(at, str) else at.isoformat()
    told = {"call_id": call, "instance_id": "sdk", "attempt_index": 0, "timestamp": moment, "status": "success"}
    return {**told, **used(), **more}


def a_denial(batch: dict[str, Any], index: int, check: dict[str, Any]) -> dict[str, Any]:
    """The very event of a denied item."""
    operation = batch["operation_id"]
    return {
        "call_id": str(denial_call_id(UUID(operation), index)),
        "instance_id": operation,
        "attempt_index": 0,
        "timestamp": batch["items"][index]["checked_at"],
        "status": "budget_denied",
        **{name: check[name] for name in ("model", "provider", "tags", "agent_run_id") if name in check},
    }


def codes(answers: Sequence[Any]) -> list[tuple[int, str]]:
    """Status and code of each."""
    return [(one.status_code, one.json()["detail"]["code"]) for one in answers]
