"""When a run of a job has become too long, and whether a summary of it will do (RULES G3)."""

from collections.abc import Iterable
from typing import Final

from catalog.rules.agents import RunBounds
from jobs.rules.turns import TurnAnswer, TurnFailed, TurnOutcome

LETTERS_A_TOKEN: Final = 4  # about; only what no provider has counted yet is measured so
WORTH_IT: Final = 4  # a run has grown by one part in so many of its bound before it is summed up
LONGEST_SUMMARY: Final = 32_000  # characters
MOST_IN_VAIN: Final = 3  # summaries of one run that were of no use, before its job fails


def tokens_of_texts(texts: Iterable[str]) -> int:
    """About how many tokens these texts come to."""
    return sum(map(len, texts)) // LETTERS_A_TOKEN


def is_full(bounds: RunBounds, *, turns: int, tokens: int, base: int, left: int) -> bool:
    """Whether a run is to be summed up before its model is asked again.

    `turns` are its answers so far, `tokens` what one more request would send of it, `base` what its first one sent, and
    `left` the turns that the job may still take: the last one is better spent on its work. No summary makes a run
    shorter than its base, so one that has grown by less than a quarter of its bound goes on past it.
    """
    if turns < 1 or left < 2:
        return False
    return 0 < bounds.turns <= turns or 0 < bounds.tokens <= min(tokens, (tokens - base) * WORTH_IT)


def as_summary(outcome: TurnOutcome) -> TurnOutcome:
    """What the answer to a request for a summary comes to: one that cannot be used is a failure, and says why."""
    if not isinstance(outcome, TurnAnswer):
        return outcome
    why = ""
    if outcome.wanted:
        why = "the model called functions instead of writing it; none of them was made"
    elif not outcome.say.strip():
        why = "it is empty"
    elif len(outcome.say) > LONGEST_SUMMARY:
        why = f"it is {len(outcome.say):,} characters long, and may have {LONGEST_SUMMARY:,}"
    return TurnFailed(why, usage=outcome.usage) if why else outcome


def without_summary(error: str, *, in_vain: int) -> str:
    """What a person reads of a summary that could not be had, the `in_vain`th of its run."""
    if in_vain < MOST_IN_VAIN:
        return f"No summary of this run could be had, so the job goes on in it: {error}"
    return f"No summary of this run could be had, {in_vain} times: {error}"
