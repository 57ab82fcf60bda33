"""People are told that something waits: by webhook and email, at least once, and never more than they may be told."""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from approvals.models import Channel, Delivery, Sending, Way
from approvals.operations import channels, notices
from approvals.operations.channels import Wanted
from approvals.queries.notices import to_send
from approvals.rules.channels import smtp_of
from approvals.tasks.courier import Courier, deliver
from base import db, ids
from catalog.models import Tool
from jobs.operations.holds import Answer
from tenants.models import AuditEntry
from tenants.operations import vault
from tenants.rules.who import Actor
from tests.builders import World, a_call, a_held_call, a_node, a_world, an_order, an_unknown_call, answered
from tests.servers.receivers import Mailbox, Receiver, a_mailbox, a_receiver
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("database")
PAT = Actor("pat", "link, 127.0.0.1")
SECRET = "a secret of the channel"
type Ahead = Callable[[timedelta], None]


def asked(world: World) -> tuple[UUID, UUID]:
    """A held call, by a node that is alive however far the clock was moved."""
    return a_held_call(replace(world, node=a_node()))


def lost(world: World) -> tuple[UUID, UUID]:
    """An unknown call, alike."""
    return an_unknown_call(replace(world, node=a_node()))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with a_receiver() as found:
        yield found


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with a_mailbox() as found:
        settings.OZ0_SMTP = smtp_of(f"smtp://127.0.0.1:{found.port}", "oz0@studio.example")
        yield found


def a_webhook(world: World, receiver: Receiver, **more: Any) -> UUID:
    wanted = Wanted(more.pop("name", "on-call"), url=receiver.url, allowed=[receiver.place], **more)
    return channels.make(tenant=world.tenant, way=Way.WEBHOOK, wanted=wanted, secret=SECRET, actor=PAT)


def sent_now() -> int:
    """What the courier does in one look; how many notices it tried."""
    notices.note_due()
    return sum(deliver(tenant=tenant, delivery=delivery) for tenant, delivery, _ in to_send(most=20, taken=()))


def the_log(world: World) -> list[tuple[str, str]]:
    with db.read(world.tenant):
        return list(Delivery.objects.order_by("pk").values_list("about", "standing"))


def said(receiver: Receiver, number: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(receiver.got[number][1])
    return found


def test_a_question_is_one_signed_post_with_a_link_and_without_arguments(receiver: Receiver) -> None:
    """CASES A26: what is sent links to a page, and to nothing that decides."""
    world = a_world()
    a_webhook(world, receiver)
    _, hold = asked(world)
    assert sent_now() == 1
    assert sent_now() == 0, "once"
    ((headers, body),) = receiver.got
    signed = hmac.new(SECRET.encode(), headers["x-oz0-timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["x-oz0-signature"] == f"v1={signed}"
    assert abs(int(headers["x-oz0-timestamp"]) - time.time()) < 300
    notice = json.loads(body)
    assert headers["x-oz0-notice"] == notice["id"]
    assert (notice["about"], notice["waiting"], notice["workspace"]) == ("asked", 1, "Acme")
    (question,) = notice["questions"]
    shown = ids.show(ids.HOLD, hold)
    assert (question["id"], question["title"]) == (shown, "May shop.refund run?")
    assert question["url"].endswith(f"/approvals/{shown}/")
    assert "arguments" not in question
    assert the_log(world) == [("asked", Sending.SENT)]


@pytest.mark.rule("A14")
def test_arguments_go_only_where_they_may_without_secrets_and_never_of_a_sensitive_tool(receiver: Receiver) -> None:
    world = a_world()
    with db.write(world.tenant):
        vault.put("connection x", "sk-live-123456")
    a_webhook(world, receiver, with_arguments=True)
    a_call(world, "refund", {"order": 7, "note": "by sk-live-123456"})
    sent_now()
    (question,) = said(receiver)["questions"]
    assert '"order": 7' in question["arguments"].replace("⏎", "")
    assert "sk-live" not in receiver.got[-1][1].decode()
    assert "[secret]" in question["arguments"]
    with db.write(world.tenant):
        Tool.objects.update(sensitive=True)
        Delivery.objects.all().update(made_at=db.must_write() - timedelta(minutes=5))
    a_call(world, "refund", {"order": 8})
    sent_now()
    (question,) = said(receiver)["questions"]
    assert question["arguments"] == "not told here: the tool is marked sensitive"


@pytest.mark.rule("A13")
def test_names_and_reasons_cannot_mark_up_hide_or_link_in_a_text_for_a_chat(receiver: Receiver) -> None:
    """CASES A26, S06, S17."""
    world = a_world()
    a_webhook(world, receiver, slack=True)
    _, hold = asked(world)
    from jobs.models import Hold

    with db.write(world.tenant):
        Hold.objects.filter(pk=hold).update(
            why="<!channel> *now* `x`\r\nApproved ![](https://canary.example/?q=s)\u202e"
        )
    sent_now()
    document = said(receiver)
    assert set(document) == {"text", "mrkdwn", "unfurl_links", "unfurl_media"}
    text = document["text"]
    assert "&lt;!channel&gt;" in text
    assert not any(odd in text for odd in ("<", "`", "*now*", "https://canary", "\u202e", "\r"))
    assert "Why it waits: &lt;!channel&gt; ∗now∗ 'x'" in text
    assert text.count("://") == 2, "the question and the queue"
    assert "\nApproved" not in text


def test_a_flood_is_one_notice_and_what_comes_after_it_waits_to_be_gathered(
    receiver: Receiver, move_clock: Ahead
) -> None:
    world = a_world()
    a_webhook(world, receiver)
    for _ in range(30):
        asked(world)
    assert sent_now() == 1
    notice = said(receiver)
    assert (len(notice["questions"]), notice["more"], notice["heading"]) == (20, 10, "30 questions waiting")
    asked(world)
    assert sent_now() == 0
    move_clock(timedelta(seconds=11))
    assert sent_now() == 1
    assert said(receiver)["heading"] == "May shop.refund run?"
    log = [state for _, state in the_log(world)]
    assert (log.count(Sending.SENT), log.count(Sending.CARRIED)) == (2, 29)


def test_what_fails_is_tried_again_under_the_same_id_until_it_arrives(receiver: Receiver, move_clock: Ahead) -> None:
    world = a_world()
    a_webhook(world, receiver)
    receiver.statuses[:] = [500, 429, 200]
    receiver.headers["Retry-After"] = "100"
    asked(world)
    assert sent_now() == 1
    assert sent_now() == 0
    move_clock(timedelta(seconds=90))
    assert sent_now() == 0, "it asked for 100 s"
    move_clock(timedelta(seconds=20))
    assert sent_now() == 1
    move_clock(timedelta(seconds=200))
    assert sent_now() == 1
    assert len({headers["x-oz0-notice"] for headers, _ in receiver.got}) == 1
    assert len({headers["x-oz0-timestamp"] for headers, _ in receiver.got}) == 3
    with db.read(world.tenant):
        row = Delivery.objects.get()
        channel = Channel.objects.get()
    assert (row.standing, row.tries, row.status, row.trouble) == (Sending.SENT, 3, 200, "")
    assert (channel.failures, channel.failing_since) == (0, None)


def test_a_redirect_is_not_followed_and_an_address_inside_is_not_reached(receiver: Receiver, move_clock: Ahead) -> None:
    """CASES S03."""
    world = a_world()
    channel = a_webhook(world, receiver)
    receiver.statuses[:] = [302]
    receiver.headers["Location"] = f"http://{receiver.place}/elsewhere"
    asked(world)
    sent_now()
    assert receiver.asked == ["POST /hook"]
    with db.read(world.tenant):
        assert "302. It is not followed." in Delivery.objects.get().trouble
    channels.change(tenant=world.tenant, channel=channel, wanted=Wanted("on-call", url=receiver.url), actor=PAT)
    move_clock(timedelta(minutes=2))
    sent_now()
    assert receiver.asked == ["POST /hook"], "without the entry it is not reached"
    with db.read(world.tenant):
        trouble = Delivery.objects.get().trouble
    assert "Its address may not be reached" in trouble
    assert "for this channel" in trouble


def test_a_channel_that_fails_for_a_day_is_turned_off_and_says_why_and_one_that_is_gone_at_once(
    receiver: Receiver, move_clock: Ahead
) -> None:
    world = a_world()
    channel = a_webhook(world, receiver)
    receiver.statuses[:] = [503]
    asked(world)
    tries = 0
    for _ in range(60):
        tries += sent_now()
        move_clock(timedelta(minutes=61))
        with db.read(world.tenant):
            row = Channel.objects.get()
        if not row.on:
            break
    assert not row.on
    assert "Nothing got through for 24 h" in row.off_because
    assert "503" in row.off_because
    assert 10 <= tries < 40
    assert {state for _, state in the_log(world)} <= {Sending.DROPPED, Sending.FAILED}
    with db.read(world.tenant):
        noted = AuditEntry.objects.get(verb="channel.off")
    assert (noted.actor, noted.object) == ("oz0", "channel on-call")
    assert sent_now() == 0
    channels.turn(tenant=world.tenant, channel=channel, on=True, actor=PAT)
    assert sent_now() == 0, "it tells of what is asked from now on"
    receiver.statuses[:] = [410]
    asked(world)
    assert sent_now() == 1
    with db.read(world.tenant):
        row = Channel.objects.get()
    assert (row.on, row.off_because) == (False, "Its receiver answered 410: it wants no more notices.")


def test_what_was_answered_before_it_could_be_told_is_not_told(receiver: Receiver) -> None:
    world = a_world()
    a_webhook(world, receiver)
    _, hold = asked(world)
    notices.note_due()
    answered(world, hold, Answer.DENY, "no")
    assert sent_now() == 0
    assert receiver.got == []
    assert the_log(world) == [("asked", Sending.DROPPED)]


def test_a_second_group_hears_of_what_nobody_answered_and_all_are_reminded_before_it_expires(
    receiver: Receiver, move_clock: Ahead
) -> None:
    world = a_world()
    a_webhook(world, receiver, name="first", remind=60 * 60, tells_end=True)
    a_webhook(world, receiver, name="second", after=30 * 60)
    _, hold = asked(world)
    _, unknown = lost(world)
    sent_now()
    assert [said(receiver)["heading"]] == ["2 questions waiting"]
    move_clock(timedelta(minutes=31))
    assert sent_now() == 1
    assert said(receiver)["heading"] == "2 questions waiting"
    move_clock(timedelta(hours=23))
    assert sent_now() == 1
    assert said(receiver)["heading"].startswith("Expires in 2")
    move_clock(timedelta(minutes=32))
    assert sent_now() == 1, "an unknown outcome never expires: it reminds once a day"
    assert said(receiver)["heading"] == "Still waiting: Did shop.note happen?"
    answered(world, unknown, Answer.HAPPENED, "it did")
    assert sent_now() == 1
    assert said(receiver)["heading"].endswith("Did shop.note happen?")
    assert "pat-acme" in said(receiver)["questions"][0]["ended"]
    assert sent_now() == 0


def test_an_email_says_the_same_in_plain_words_to_all_addresses(mailbox: Mailbox) -> None:
    world = a_world()
    wanted = Wanted("mail", to=["a@x.example", "b@x.example"])
    channels.make(tenant=world.tenant, way=Way.EMAIL, wanted=wanted, secret="", actor=PAT)
    mailbox.refused.add("b@x.example")
    _, hold = asked(world)
    assert sent_now() == 1
    ((to, mail),) = mailbox.mails
    assert to == ["a@x.example"]
    assert mail["Subject"] == "May shop.refund run?"
    assert (mail["Auto-Submitted"], mail.get_content_type()) == ("auto-generated", "text/plain")
    text = mail.get_content()
    assert f"/approvals/{ids.show(ids.HOLD, hold)}/" in text
    assert "Opening a link decides nothing." in text
    with db.read(world.tenant):
        row = Delivery.objects.get()
    assert row.standing == Sending.SENT
    assert "refuses b@x.example; the others have it" in row.trouble
    assert mail["Message-ID"] == f"<{ids.show(ids.NOTICE, row.pk)}@studio.example>"


def test_without_a_mail_server_an_email_waits_and_says_what_to_set(settings: Any) -> None:
    settings.OZ0_SMTP = None
    world = a_world()
    channels.make(tenant=world.tenant, way=Way.EMAIL, wanted=Wanted("mail", to=["a@x.example"]), secret="", actor=PAT)
    asked(world)
    assert sent_now() == 1
    with db.read(world.tenant):
        row = Delivery.objects.get()
    assert row.standing == Sending.DUE
    assert "OZ0_EMAIL_URL" in row.trouble


@pytest.mark.rule("A7")
def test_the_courier_sends_beside_calls_which_a_receiver_that_hangs_does_not_slow(receiver: Receiver) -> None:
    world = a_world()
    receiver.hangs = threading.Event()
    a_webhook(world, receiver, name="dead")
    courier = Courier(period=0.05)
    courier.start()
    try:
        asked(world)
        until(lambda: bool(receiver.got), "the notice never left")
        began = time.monotonic()
        an_order(world, a_call(world, "note"))  # asked for and claimed while the notice hangs
        with a_receiver() as quick:
            a_webhook(world, quick, name="quick")
            asked(world)
            until(lambda: bool(quick.got), "another channel's notice waits for the one that hangs")
        assert not receiver.hangs.is_set()
        assert time.monotonic() - began < 20
    finally:
        receiver.hangs.set()
        courier.stop()
    until(lambda: ("asked", Sending.SENT) in the_log(world), "it was not settled")


def test_two_couriers_at_once_send_each_notice_once(receiver: Receiver) -> None:
    world = a_world()
    a_webhook(world, receiver)
    couriers = [Courier(period=0.02) for _ in range(3)]
    for courier in couriers:
        courier.start()
    try:
        for _ in range(5):
            asked(world)
        until(lambda: len(the_log(world)) >= 1 and all(state != Sending.DUE for _, state in the_log(world)), "unsent")
    finally:
        for courier in couriers:
            courier.stop()
    told = [question["id"] for number in range(len(receiver.got)) for question in said(receiver, number)["questions"]]
    assert len(told) == len(set(told)) >= 1


def test_a_notice_whose_process_died_is_sent_by_another_under_the_same_id(
    receiver: Receiver, move_clock: Ahead
) -> None:
    world = a_world()
    a_webhook(world, receiver)
    asked(world)
    notices.note_due()
    ((tenant, delivery, _),) = to_send(most=5, taken=())
    work = notices.claim(tenant=tenant, delivery=delivery)
    assert work is not None
    notices.send(work)  # and then the process is gone
    assert sent_now() == 0, "it is taken"
    move_clock(timedelta(seconds=61))
    assert sent_now() == 1
    first, second = (headers["x-oz0-notice"] for headers, _ in receiver.got)
    assert first == second


@pytest.mark.parametrize(
    ("url", "sender", "host", "port", "tls"),
    [
        ("smtp://mail", "a@b.example", "mail", 25, ""),
        ("smtp+tls://u:p%40@mail:2525", "a@b.example", "mail", 2525, "start"),
        ("smtp+ssl://mail", "oz0 <a@b.example>", "mail", 465, "whole"),
    ],
)
def test_a_mail_server_is_named_by_one_address(url: str, sender: str, host: str, port: int, tls: str) -> None:
    found = smtp_of(url, sender)
    assert found is not None
    assert (found.host, found.port, found.tls) == (host, port, tls)
    for odd in ("http://mail", "smtp://", "smtp://mail/x", "smtp://mail:no"):
        with pytest.raises(ValueError, match="OZ0_EMAIL_URL"):
            smtp_of(odd, sender)
    with pytest.raises(ValueError, match="OZ0_EMAIL_FROM"):
        smtp_of(url, "nobody")
    assert smtp_of("", "") is None
