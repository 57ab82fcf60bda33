"""One email to the studio's mail server."""

import smtplib
import ssl
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from approvals.rules.channels import Smtp
from approvals.sessions.sent import Sent
from base.visible import visible

LIMIT: Final = 10.0  # seconds for each step of the exchange
NOT_SET_UP: Final = "The studio has no mail server: set OZ0_EMAIL_URL and OZ0_EMAIL_FROM, and restart it."


def send(server: Smtp | None, *, to: Sequence[str], subject: str, text: str, id: str, at: datetime) -> Sent:
    """Send one plain text to all addresses. `id` is the same in each try, and so is the message's own id."""
    if server is None:
        return Sent(False, NOT_SET_UP)
    began = time.monotonic()
    return replace(_tried(server, to, _message(server, to, subject, text, id, at)), took=time.monotonic() - began)


def _tried(server: Smtp, to: Sequence[str], message: EmailMessage) -> Sent:
    try:
        refused = _exchange(server, to, message)
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return Sent(False, f"The mail server answered {error.smtp_code}: {visible(said, 200)}")
    except smtplib.SMTPRecipientsRefused as error:
        return Sent(False, f"The mail server refuses {_who(error.recipients)}.")
    except (smtplib.SMTPException, OSError) as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        return Sent(False, f"The mail server {server.host}:{server.port} could not be used: {why}.")
    return Sent(True, f"The mail server refuses {_who(refused)}; the others have it." if refused else "")


def _exchange(server: Smtp, to: Sequence[str], message: EmailMessage) -> dict[str, tuple[int, bytes]]:
    context = ssl.create_default_context()
    if server.tls == "whole":
        opened: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=LIMIT, context=context)
    else:
        opened = smtplib.SMTP(server.host, server.port, timeout=LIMIT)
    with opened as smtp:
        if server.tls == "start":
            smtp.starttls(context=context)
        if server.user:
            smtp.login(server.user, server.password)
        return smtp.send_message(message, from_addr=server.sender, to_addrs=list(to))


def _message(server: Smtp, to: Sequence[str], subject: str, text: str, id: str, at: datetime) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = " ".join(subject.split())[:200]
    message["From"] = Address("oz0 studio", addr_spec=server.sender)
    message["To"] = ", ".join(to)
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{id}@{server.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"  # nobody's holiday answers it
    message.set_content(text)
    return message


def _who(recipients: object) -> str:
    return visible(", ".join(map(str, recipients)), 200) if isinstance(recipients, dict) else "every address"
