"""Senders of events, by their own books: Standard Webhooks, GitHub, Stripe and Slack."""

import base64
import hashlib
import hmac
import json
from datetime import datetime
from typing import Any

STANDARD = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(reversed(range(32)))).decode()
PLAIN = "a secret of 16 letters or more".replace(" ", "-")


def body_of(event: Any) -> bytes:
    """The bytes of an event."""
    return json.dumps(event).encode()


def standard(body: bytes, at: datetime, *, name: str = "msg_1", secret: str = STANDARD) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    stamp = str(int(at.timestamp()))
    mac = hmac.new(key, f"{name}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": name,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }


def github(body: bytes, kind: str = "issues", secret: str = PLAIN) -> dict[str, str]:
    """The headers of GitHub."""
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-hub-signature-256": f"sha256={mac}", "x-github-event": kind, "x-github-delivery": "72d3162e"}


def stripe(body: bytes, at: datetime, secret: str = PLAIN) -> dict[str, str]:
    """The header of Stripe, with a signature of an older scheme beside the one that counts."""
    stamp = int(at.timestamp())
    mac = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t={stamp},v1={mac},v0=00"}


def slack(body: bytes, at: datetime, secret: str = PLAIN) -> dict[str, str]:
    """The headers of Slack."""
    stamp = int(at.timestamp())
    mac = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"x-slack-signature": f"v0={mac}", "x-slack-request-timestamp": str(stamp)}
