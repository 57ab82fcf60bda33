"""The idempotency key: fixed when a call is submitted, the same on each of its attempts (RULES K1, K2)."""


def activity_key(job: str, *, run_number: int, activity: int) -> str:
    """`<job>/<activity>`, or `<job>/anr<k>/<activity>` once the job continued as new k times."""
    return f"{job}/anr{run_number}/{activity}" if run_number else f"{job}/{activity}"
