"""Telling open pages, after a commit, that what the catalog shows may have changed."""

from base import db, nudge


def changed() -> None:
    """What a tool lists, whether it can be listed, or what the policy says became another with the open write."""
    tenant = db.writing_tenant()
    db.after_commit(lambda: nudge.catalog(tenant))
