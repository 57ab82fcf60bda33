"""Events at a hook: each starts one job, as its person's, whatever is repeated, raced or replayed (RULES G1)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import Scope
from jobs.models import Event, Hook, HookDelivery, Job, Starter
from jobs.operations import arriving, hooks, switches
from jobs.operations.arriving import Foreign, Greeted, Refused, Started, Unmapped, Unsigned
from jobs.operations.hooks import BadHook, Wanted
from jobs.rules.event_mapping import Constant, Place
from jobs.rules.secret_names import old_signing_name, signing_name
from jobs.rules.starters import Signing, Standing
from tenants.models import AuditEntry, Membership, Role
from tenants.operations import vault
from tenants.rules.who import SYSTEM, Actor
from tests import senders
from tests.builders import World, a_person, a_switch, a_world, see
from tests.catalogs import an_agent_of
from tests.races import Side
from tests.senders import OTHER, PLAIN, STANDARD

pytestmark = pytest.mark.usefixtures("database")

type Clock = Callable[[timedelta], None]
MAPPED = {"account": Place("/order/account"), "month": Place("/order/month", optional=True), "kind": Constant("order")}
ORDER = {"type": "order.made", "order": {"account": "A-12"}}


def a_keeper() -> World:
    """An agent that takes an account, a month and a kind."""
    world = a_world()
    an_agent_of(
        world,
        "keeper",
        "shop.*",
        input={"account": "", "month": 1, "kind": ""},
        input_schema={"account": {"type": "string", "minLength": 2}},
    )
    return world


def a_hook(world: World, person: int | None = None, *, secret: str = STANDARD, **more: Any) -> UUID:
    who = person or world.person
    wanted = Wanted(**{"name": "orders", "agent": "keeper", "mapped": MAPPED, **more})
    return hooks.make(tenant=world.tenant, wanted=wanted, secret=secret, person=who, actor=Actor("pat", "test", who))


def now(world: World) -> datetime:
    with db.read(world.tenant) as at:
        return at


def comes(world: World, hook: UUID, event: Any = ORDER, *, name: str = "msg_1", secret: str = STANDARD) -> Any:
    """What an event is answered with."""
    body = senders.body_of(event)
    return arriving.receive(hook=hook, headers=senders.standard(body, now(world), name=name, secret=secret), body=body)


@pytest.mark.rule("G1")
def test_an_event_starts_its_agent_with_what_it_holds_as_the_persons_who_made_the_hook() -> None:
    world = a_keeper()
    hook = a_hook(world)
    answer = comes(world, hook)
    assert isinstance(answer, Started) and not answer.again
    job = see(world, Job, answer.job)
    assert (job.starter, job.started_by_id, job.hook_id) == (Starter.EVENT, world.person, hook)
    assert job.input == {"account": "A-12", "month": 1, "kind": "order"}
    assert (job.title, job.on_unknown) == ("orders · order.made", "fail")
    with db.read(world.tenant):
        assert Event.objects.get(job=job, kind="job.started").data["hook"] == str(hook)
        kept = HookDelivery.objects.get()
    assert (kept.came, kept.delivery, kept.times, kept.job_id) == ("started", "msg_1", 1, job.pk)
    assert "A-12" not in str(kept.__dict__)  # what it held is in the job's input alone


def test_the_same_event_again_is_the_same_job_also_when_it_comes_four_times_at_once(move_clock: Clock) -> None:
    """CASES R01, of events."""
    world = a_keeper()
    hook = a_hook(world)
    body = senders.body_of(ORDER)
    headers = senders.standard(body, now(world))
    sides = [Side(lambda: arriving.receive(hook=hook, headers=headers, body=body)).start() for _ in range(4)]
    answers = [side.join() for side in sides]
    assert len({one.job for one in answers}) == 1
    assert sorted(one.again for one in answers) == [False, True, True, True]
    move_clock(timedelta(days=3))
    assert comes(world, hook) == Started(answers[0].job, again=True)  # sent once more, signed anew
    changed = comes(world, hook, {**ORDER, "order": {"account": "B-1"}})
    assert isinstance(changed, Refused) and changed.other_body
    with db.read(world.tenant):
        assert (Job.objects.count(), HookDelivery.objects.get().times) == (1, 5)


def test_a_replay_after_five_minutes_and_a_wrong_secret_start_nothing_and_the_page_is_told(move_clock: Clock) -> None:
    world = a_keeper()
    hook = a_hook(world)
    body = senders.body_of(ORDER)
    headers = senders.standard(body, now(world))
    move_clock(timedelta(minutes=5, seconds=2))
    late = arriving.receive(hook=hook, headers=headers, body=body)
    assert isinstance(late, Unsigned) and "five minutes" in late.why
    first = see(world, Hook, hook).unsigned_at
    assert isinstance(comes(world, hook, secret=OTHER), Unsigned)
    assert see(world, Hook, hook).unsigned_at == first  # noted once in ten seconds, however many come
    move_clock(timedelta(seconds=11))
    assert isinstance(comes(world, hook, secret=OTHER), Unsigned)
    assert "secret" in see(world, Hook, hook).unsigned_why
    assert arriving.receive(hook=ids.new(), headers=headers, body=body) == Foreign()
    with db.read(world.tenant):
        assert not Job.objects.exists() and not HookDelivery.objects.exists()


def test_what_cannot_be_mapped_names_its_inputs_and_starts_its_job_when_it_comes_again_and_that_is_mended() -> None:
    world = a_keeper()
    hook = a_hook(world)
    event = {"order": {"number": "A-12"}}
    answer = comes(world, hook, event)
    assert isinstance(answer, Unmapped) and [name for name, _ in answer.troubles] == ["account"]
    short = comes(world, hook, {"order": {"account": "A"}}, name="msg_2")
    assert isinstance(short, Unmapped) and [name for name, _ in short.troubles] == ["account"]
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    assert isinstance(comes(world, hook, {"order": {"account": deep}}, name="msg_3"), Unmapped)
    body = b"{not json"
    unread = arriving.receive(hook=hook, headers=senders.standard(body, now(world), name="msg_4"), body=body)
    assert isinstance(unread, Unmapped) and "not JSON" in unread.why
    mapped = {**MAPPED, "account": Place("/order/number")}
    wanted, actor = Wanted("orders", "keeper", mapped=mapped), Actor("pat", "test", world.person)
    hooks.change(tenant=world.tenant, hook=hook, wanted=wanted, person=world.person, actor=actor)
    assert isinstance(comes(world, hook, event), Started)
    with db.read(world.tenant):
        kept = HookDelivery.objects.get(delivery="msg_1")
        assert (kept.came, kept.times, Job.objects.count()) == ("started", 2, 1)


@pytest.mark.rule("L7")
def test_under_a_kill_switch_it_is_refused_and_told_and_starts_when_it_comes_again_afterwards() -> None:
    world = a_keeper()
    hook = a_hook(world)
    switch = a_switch(world, Scope.TENANT)
    answer = comes(world, hook)
    assert isinstance(answer, Refused) and "kill switch" in answer.why
    with db.read(world.tenant):
        assert "kill switch" in HookDelivery.objects.get().detail
    switches.turn_off(tenant=world.tenant, switch_id=switch, by=SYSTEM)
    assert isinstance(comes(world, hook), Started)


@pytest.mark.rule("A12")
def test_when_its_person_has_left_it_stops_itself_and_says_so_and_goes_on_as_another_ones() -> None:
    world = a_keeper()
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    hook = a_hook(world, vic)
    with db.write(world.tenant):
        Membership.objects.filter(user_id=vic).update(role=Role.VIEWER)
    answer = comes(world, hook)
    assert isinstance(answer, Refused) and answer.off
    assert see(world, Hook, hook).standing == Standing.STOPPED and "vic" in see(world, Hook, hook).because
    with db.read(world.tenant):
        assert AuditEntry.objects.get(verb="hook.stopped").actor == "oz0"
    actor, wanted = Actor("pat", "test", world.person), Wanted("orders", "keeper", mapped=MAPPED)
    with pytest.raises(BadHook, match="vic, who knows its signing secret"):
        hooks.change(tenant=world.tenant, hook=hook, wanted=wanted, person=world.person, actor=actor)
    hooks.new_secret(tenant=world.tenant, hook=hook, secret=OTHER, at_once=False, person=world.person, actor=actor)
    hooks.change(tenant=world.tenant, hook=hook, wanted=wanted, person=world.person, actor=actor)
    answer = comes(world, hook, secret=OTHER)
    assert isinstance(answer, Started) and see(world, Job, answer.job).started_by_id == world.person


@pytest.mark.rule("A14")
def test_a_new_secret_counts_at_once_and_the_one_before_for_a_day_or_not_at_all(move_clock: Clock) -> None:
    world = a_keeper()
    hook, actor = a_hook(world), Actor("pat", "test", world.person)
    hooks.new_secret(tenant=world.tenant, hook=hook, secret=OTHER, at_once=False, person=world.person, actor=actor)
    assert isinstance(comes(world, hook, secret=OTHER), Started)
    assert isinstance(comes(world, hook, name="msg_2"), Started)
    move_clock(timedelta(hours=24, seconds=1))
    assert isinstance(comes(world, hook, name="msg_3"), Unsigned)
    hooks.new_secret(tenant=world.tenant, hook=hook, secret=STANDARD, at_once=True, person=world.person, actor=actor)
    assert isinstance(comes(world, hook, name="msg_4", secret=OTHER), Unsigned)
    with db.read(world.tenant):
        assert vault.find(world.tenant, old_signing_name(hook)) is None
        told = str(list(AuditEntry.objects.values()))
    assert STANDARD not in told and OTHER not in told
    hooks.remove(tenant=world.tenant, hook=hook, actor=actor)
    assert comes(world, hook, name="msg_5") == Foreign()
    with db.read(world.tenant):
        assert vault.find(world.tenant, signing_name(hook)) is None


@pytest.mark.rule("A10")
def test_who_gives_a_hook_its_secret_has_its_jobs_count_as_theirs_and_what_another_signed_counts_no_more() -> None:
    world = a_keeper()
    vic = a_person(world.tenant, "vic", Role.OPERATOR)
    hook = a_hook(world)
    hooks.new_secret(
        tenant=world.tenant, hook=hook, secret=OTHER, at_once=False, person=vic, actor=Actor("vic", "test", vic)
    )
    assert isinstance(comes(world, hook), Unsigned), "the secret that somebody else knows"
    answer = comes(world, hook, secret=OTHER)
    assert isinstance(answer, Started) and see(world, Job, answer.job).started_by_id == vic


def test_events_that_came_before_and_start_now_count_for_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_keeper()
    hook = a_hook(world)
    monkeypatch.setattr(arriving, "MOST_A_MINUTE", 2)
    for name in ("msg_1", "msg_2", "msg_3"):
        assert not isinstance(comes(world, hook, {"order": "none"}, name=name), Started)
    answers = [comes(world, hook, name=name) for name in ("msg_1", "msg_2", "msg_3")]
    assert [isinstance(one, Started) for one in answers] == [True, True, False]


def test_a_paused_one_refuses_and_one_that_is_flooded_says_when_to_come_again(
    move_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_keeper()
    hook, actor = a_hook(world), Actor("pat", "test", world.person)
    monkeypatch.setattr(arriving, "MOST_A_MINUTE", 2)
    for name in ("msg_1", "msg_2"):
        assert isinstance(comes(world, hook, name=name), Started)
    full = comes(world, hook, name="msg_3")
    assert isinstance(full, Refused) and full.too_many
    assert isinstance(comes(world, hook, name="msg_1"), Started)  # it has its job already
    move_clock(timedelta(minutes=1, seconds=1))
    assert isinstance(comes(world, hook, name="msg_3"), Started)
    hooks.turn(tenant=world.tenant, hook=hook, on=False, actor=actor)
    off = comes(world, hook, name="msg_4")
    assert isinstance(off, Refused) and off.off
    hooks.turn(tenant=world.tenant, hook=hook, on=True, actor=actor)
    assert isinstance(comes(world, hook, name="msg_4"), Started)


def test_githubs_ping_is_greeted_and_its_delivery_is_known_by_its_body() -> None:
    world = a_keeper()
    hook = a_hook(world, signing=Signing.GITHUB, secret=PLAIN)
    body = senders.body_of(ORDER)
    assert arriving.receive(hook=hook, headers=senders.github(body, "ping"), body=body) == Greeted({"pong": True})
    first = arriving.receive(hook=hook, headers=senders.github(body), body=body)
    again = arriving.receive(hook=hook, headers=senders.github(body) | {"x-github-delivery": "2"}, body=body)
    assert isinstance(first, Started) and again == Started(first.job, again=True)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("name", {"name": ""}),
        ("signing", {"signing": "wax"}),
        ("secret", {"secret": "short"}),
        ("account", {"mapped": {"account": Constant("A")}}),
    ],
)
def test_what_a_hook_cannot_be_is_said_beside_its_field(field: str, more: dict[str, Any]) -> None:
    world = a_keeper()
    with pytest.raises(BadHook) as refused:
        a_hook(world, **more)
    assert [name for name, _ in refused.value.troubles] == [field]


def test_an_input_that_its_agent_has_not_is_refused_when_it_is_saved() -> None:
    world = a_keeper()
    with pytest.raises(BadHook, match="no input named 'other'"):
        a_hook(world, mapped={"other": Place("/x")})
