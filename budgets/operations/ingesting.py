"""Taking what programs tell of their calls: each event once, and none as another (RULES S6, S7; CASES J11)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Count

from base import db
from budgets.models import Item, Operation, Project, Run, SpendEvent, TagValue
from budgets.rules import events, identity, prices
from budgets.rules.events import Denial, Taken, Told
from budgets.rules.words import DuplicateBy, EventStatus, ItemState, Rejection


def ingest(*, tenant: UUID, project: UUID, told: Sequence[Told]) -> list[Taken]:
    """Take each event that is new and in order, all in one transaction; what became of each, in the order they came.

    Whoever comes twice at once waits: a project's events are taken one request after another.
    """
    with db.write(tenant) as now:
        Project.objects.select_for_update(no_key=True).get(pk=project)
        return _Taking(tenant, project, told, now).all()


class _Taking:
    """One request's events, with what there is to compare them with."""

    def __init__(self, tenant: UUID, project: UUID, told: Sequence[Told], now: datetime) -> None:
        self._whose: dict[str, Any] = {"tenant_id": tenant, "project_id": project}
        self._project, self._told, self._now = project, told, now
        there = SpendEvent.objects.filter(project_id=project)
        by_call = there.filter(call_id__in={one.call_id for one in told})
        by_moment = there.filter(timestamp__in={one.timestamp for one in told})
        self._known = {(row.call_id, row.attempt_index): row.digest for row in by_call}
        self._legacy = set(by_moment.values_list("timestamp", "instance_id"))
        self._denials = self._denials_told()
        tags = {pair for one in told for pair in one.tags.items()}
        kept = TagValue.objects.filter(project_id=project)
        named = kept.filter(key__in={key for key, _ in tags}, value__in={value for _, value in tags})
        self._values: set[tuple[str, str]] = set(named.values_list("key", "value"))
        self._counts = Counter(dict(kept.values_list("key").annotate(Count("id"))))
        self._new_values: list[TagValue] = []
        self._priced: dict[tuple[str, str], bool] = {}

    def all(self) -> list[Taken]:
        """Judge each, then write those that are taken."""
        found = [self._judged(one) for one in self._told]
        new = [one.told for one in found if one.rejection is None and one.by is None]
        runs = self._runs(new)
        TagValue.objects.bulk_create(self._new_values)
        SpendEvent.objects.bulk_create(self._row(one, runs) for one in new)
        return found

    def _judged(self, told: Told) -> Taken:
        if (digest := self._known.get(told.name)) is not None:
            return Taken(told, by=DuplicateBy.CALL_ID, same=digest == told.digest)
        if told.legacy_name in self._legacy:
            return Taken(told, by=DuplicateBy.LEGACY_KEY)
        if (rejection := self._why_not(told)) is not None:
            return Taken(told, rejection=rejection)
        self._known[told.name] = told.digest
        self._legacy.add(told.legacy_name)
        return Taken(told)

    def _why_not(self, told: Told) -> Rejection | None:
        if (found := events.why_not(told)) is not None:
            return found
        denials = self._denials.get(told.instance_id) if told.status is EventStatus.BUDGET_DENIED else None
        if denials is not None and not events.is_of(told, UUID(told.instance_id), denials):
            return Rejection.NOT_AS_ADMITTED
        name = (told.provider, told.model)
        if name not in self._priced:
            self._priced[name] = prices.is_known(*name, self._now)
        if not self._priced[name]:
            return Rejection.UNKNOWN_MODEL
        return None if self._tagged(told.tags) else Rejection.TAG_CARDINALITY_EXCEEDED

    def _denials_told(self) -> Mapping[str, Mapping[str, Denial]]:
        """The denied items of the operations that these events name, by operation and call id."""
        denied = [one for one in self._told if one.status is EventStatus.BUDGET_DENIED]
        named = {name for one in denied if (name := identity.parse(one.instance_id)) is not None}
        mine = Operation.objects.filter(pk__in=named, project_id=self._project)
        found: dict[str, dict[str, Denial]] = {str(name): {} for name in mine.values_list("pk", flat=True)}
        rows = Item.objects.filter(operation__in=mine, standing=ItemState.COMPLETED, result__allowed=False)
        for row in rows:
            if row.checked_at is not None:
                call = str(identity.denial_call_id(row.operation_id, row.index))
                found[str(row.operation_id)][call] = Denial(row.index, row.checked_at, row.asked)
        return found

    def _tagged(self, tags: Mapping[str, str]) -> bool:
        """Note values that are new; False when a tag would have too many, or the project too many tags."""
        new = set(tags.items()) - self._values
        for key, _ in new:
            first_of_key = key not in self._counts
            if self._counts[key] >= events.MOST_VALUES or (first_of_key and len(self._counts) >= events.MOST_KEYS):
                return False
        for key, _ in new:
            self._counts[key] += 1
        self._values |= new
        self._new_values += [TagValue(key=key, value=value, **self._whose) for key, value in sorted(new)]
        return True

    def _runs(self, new: Sequence[Told]) -> Mapping[str, Run]:
        """The runs of these events, with what they come to by now."""
        of: dict[str, list[Told]] = defaultdict(list)
        for one in new:
            if one.agent_run_id is not None:
                of[one.agent_run_id].append(one)
        found = {row.name: row for row in Run.objects.filter(project_id=self._project, name__in=of)}
        for name, told in of.items():
            moments = [one.timestamp for one in told]
            row = found.get(name) or Run(name=name, first_at=min(moments), last_at=max(moments), **self._whose)
            row.first_at, row.last_at = min(row.first_at, *moments), max(row.last_at, *moments)
            row.calls += len(told)
            row.denied += sum(one.status is EventStatus.BUDGET_DENIED for one in told)
            row.input_tokens += sum(one.input_tokens for one in told)
            row.output_tokens += sum(one.output_tokens for one in told)
            row.cost += sum((prices.cost(one.used, self._now) or Decimal(0) for one in told), Decimal(0))
            row.save()
            found[name] = row
        return found

    def _row(self, told: Told, runs: Mapping[str, Run]) -> SpendEvent:
        return SpendEvent(
            call_id=told.call_id,
            attempt_index=told.attempt_index,
            instance_id=told.instance_id,
            timestamp=told.timestamp,
            status=told.status,
            model=told.model,
            provider=told.provider,
            modality=told.modality,
            input_tokens=told.input_tokens,
            output_tokens=told.output_tokens,
            cost=prices.cost(told.used, self._now),
            tags=dict(told.tags),
            run=runs[told.agent_run_id] if told.agent_run_id is not None else None,
            digest=told.digest,
            received_at=self._now,
            **self._whose,
        )
