"""Whether an event was signed: each sender's way, the window of time, changed bodies, and what it is called."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules.event_signing import NotReadable, NotSigned, drawn, signed, why_no_secret
from jobs.rules.starters import Signing
from tests import senders
from tests.senders import OTHER, PLAIN, STANDARD

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BODY = senders.body_of({"type": "order.made", "id": "evt_1", "event_id": "Ev1", "event": {"type": "message"}})
SECRETS = {Signing.STANDARD: STANDARD, Signing.GITHUB: PLAIN, Signing.STRIPE: PLAIN, Signing.SLACK: PLAIN}


def headers(signing: Signing, body: bytes = BODY, at: datetime = NOW) -> dict[str, str]:
    """What this sender would send with a body."""
    match signing:
        case Signing.STANDARD:
            return senders.standard(body, at)
        case Signing.GITHUB:
            return senders.github(body)
        case Signing.STRIPE:
            return senders.stripe(body, at)
        case Signing.SLACK:
            return senders.slack(body, at)


def looked_at(signing: Signing, sent: Mapping[str, str], body: bytes = BODY, now: datetime = NOW) -> Any:
    return signed(signing, sent, body, [SECRETS[signing]], now=now)


@pytest.mark.parametrize(
    ("signing", "name", "kind"),
    [
        (Signing.STANDARD, "msg_1", "order.made"),
        (Signing.GITHUB, "sha256:", "issues"),
        (Signing.STRIPE, "evt_1", "order.made"),
        (Signing.SLACK, "Ev1", "message"),
    ],
)
def test_each_senders_own_signature_counts_and_says_what_the_event_is_called(
    signing: Signing, name: str, kind: str
) -> None:
    found = looked_at(signing, headers(signing))
    assert found.name.startswith(name) and found.kind == kind and found.event["id"] == "evt_1"


@pytest.mark.parametrize("signing", Signing)
def test_a_changed_body_another_secret_and_no_signature_count_for_nothing(signing: Signing) -> None:
    sent = headers(signing)
    with pytest.raises(NotSigned, match="not by this hook's secret"):
        looked_at(signing, sent, BODY + b" ")
    other = OTHER if signing is Signing.STANDARD else PLAIN + "x"
    with pytest.raises(NotSigned, match="not by this hook's secret"):
        signed(signing, sent, BODY, [other], now=NOW)
    assert signed(signing, sent, BODY, [other, SECRETS[signing]], now=NOW).event  # the one before counts beside it
    for bare in ({}, dict.fromkeys(sent, ""), dict.fromkeys(sent, "é")):
        with pytest.raises(NotSigned):
            looked_at(signing, bare)


@pytest.mark.parametrize("signing", [Signing.STANDARD, Signing.STRIPE, Signing.SLACK])
def test_what_was_signed_five_minutes_ago_or_will_be_in_five_counts_and_beyond_nothing_does(signing: Signing) -> None:
    sent = headers(signing)
    for minutes, counts in ((-5, True), (5, True), (-6, False), (6, False)):
        now = NOW + timedelta(minutes=minutes)
        if counts:
            assert looked_at(signing, sent, now=now).event
        else:
            with pytest.raises(NotSigned, match="five minutes"):
                looked_at(signing, sent, now=now)


def test_the_name_and_the_time_of_a_standard_webhook_are_part_of_what_is_signed() -> None:
    sent = headers(Signing.STANDARD)
    later = str(int((NOW + timedelta(seconds=1)).timestamp()))
    for forged in ({"webhook-id": "msg_2"}, {"webhook-timestamp": later}):
        with pytest.raises(NotSigned, match="not by this hook's secret"):
            looked_at(Signing.STANDARD, sent | forged)
    two = {"webhook-signature": f"v1,{'A' * 43}= {sent['webhook-signature']} v1a,x"}
    assert looked_at(Signing.STANDARD, sent | two).name == "msg_1"
    with pytest.raises(NotSigned, match="more than 10"):
        looked_at(Signing.STANDARD, sent | {"webhook-signature": " ".join(["v1,x"] * 11)})


def test_githubs_same_body_is_the_same_event_whatever_its_unsigned_headers_say() -> None:
    sent = headers(Signing.GITHUB)
    first, again = looked_at(Signing.GITHUB, sent), looked_at(Signing.GITHUB, sent | {"x-github-delivery": "other"})
    assert first.name == again.name != looked_at(Signing.GITHUB, senders.github(b"{}"), b"{}").name


def test_who_only_asks_if_somebody_is_here_is_answered_and_starts_nothing() -> None:
    body = senders.body_of({"type": "url_verification", "challenge": "c" * 9})
    assert looked_at(Signing.SLACK, senders.slack(body, NOW), body).hello == {"challenge": "c" * 9}
    assert looked_at(Signing.GITHUB, senders.github(BODY, "ping")).hello
    assert looked_at(Signing.SLACK, headers(Signing.SLACK)).hello is None
    with pytest.raises(NotSigned):
        looked_at(Signing.SLACK, {}, body)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"NaN", b"[" * 100_000, b"1" * 5_000])
def test_a_body_that_is_no_json_is_told_once_its_signature_counts(body: bytes) -> None:
    with pytest.raises(NotReadable, match="its body is"):
        looked_at(Signing.STANDARD, senders.standard(body, NOW), body)


HEADERS = st.dictionaries(
    st.sampled_from(
        [
            *("webhook-id", "webhook-timestamp", "webhook-signature", "x-hub-signature-256", "stripe-signature"),
            *("x-slack-signature", "x-slack-request-timestamp", "x-github-event"),
        ]
    ),
    st.text(max_size=30) | st.sampled_from(["t=1,v1=a", "v1,aaaa", "99999999999999999999", "-1", "1777636800"]),
)


@given(st.sampled_from(list(Signing)), HEADERS, st.binary(max_size=20))
def test_nothing_that_somebody_makes_up_counts_or_is_an_error_of_ours(
    signing: Signing, sent: dict[str, str], body: bytes
) -> None:
    with pytest.raises(NotSigned):
        looked_at(signing, sent, body)


def test_a_drawn_secret_can_be_used_and_one_that_is_too_short_or_no_key_cannot() -> None:
    assert why_no_secret(Signing.STANDARD, drawn(bytes(32))) is None
    assert why_no_secret(Signing.GITHUB, drawn(bytes(32))) is None
    for signing, secret in (
        (Signing.GITHUB, "short"),
        (Signing.STANDARD, "whsec_not base64 at all"),
        (Signing.STANDARD, "whsec_c2hvcnQ="),
        (Signing.SLACK, "x" * 201),
        (Signing.SLACK, "with a space and long"),
    ):
        assert why_no_secret(signing, secret)
