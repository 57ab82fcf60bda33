"""The ways out to people: a webhook's receiver, the mail server. Each blocks, sends once, and tells how it ended."""
