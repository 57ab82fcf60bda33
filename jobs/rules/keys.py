"""The idempotency key: fixed when a call is submitted, the same on each of its attempts (RULES K1–K4)."""

from typing import Final

DIGEST: Final = 32  # hex digits of the arguments' SHA-256 in a session's key


def activity_key(job: str, *, run_number: int, activity: int) -> str:
    """`<job>/<activity>`, or `<job>/anr<k>/<activity>` once the job continued as new k times."""
    return f"{job}/anr{run_number}/{activity}" if run_number else f"{job}/{activity}"


def session_key(job: str, *, run_number: int, session: int, function: str, digest: str, k: int) -> str:
    """`<job>/s<n>/<function>#<digest>/<k>` of a harness session's call, or `<job>/r<m>/s<n>/…` (RULES K3).

    `digest` is the SHA-256 of the canonical arguments in hex. `k` counts the calls of the function with these arguments
    from 1, anew each time that the session is started, so that a fresh one repeats the keys of a lost one (RULES K4).
    """
    run = f"/r{run_number}" if run_number else ""
    return f"{job}{run}/s{session}/{function}#{digest[:DIGEST]}/{k}"
