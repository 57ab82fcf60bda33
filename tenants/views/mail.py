"""Sending one message to one person, where the settings say how. It never fails what it tells of."""

import logging
from collections.abc import Mapping
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

log = logging.getLogger(__name__)


def can_send() -> bool:
    """Whether the settings name a mail server."""
    return bool(settings.OZ0_EMAIL_URL)


def send(*, to: str, subject: str, template: str, context: Mapping[str, Any]) -> bool:
    """Send a text; whether the mail server took it. Blocks for as long as that takes, at most 10 s a step."""
    if not can_send():
        return False
    try:
        send_mail(" ".join(subject.split()), render_to_string(template, dict(context)), None, [to])
    except (SMTPException, OSError) as error:
        log.warning("the mail server took no message (%s): %s", type(error).__name__, error)
        return False
    return True
