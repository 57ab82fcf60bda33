"""Counting tokens: the one door to the tokenizer, whose tables are inside its package (no network, no files)."""

from collections.abc import Sequence
from typing import Final

BASIS: Final = "o200k_base"


def counts(texts: Sequence[str], *, encoding: str = BASIS) -> list[int]:
    """The tokens of each text, in order. A lone surrogate, which no request can carry, counts as U+FFFD does.

    Words that a model's format reserves, such as `<|endoftext|>`, count as the ordinary text that they are.
    """
    import toktok  # 8 MB of tables: read when something is counted, so that `oz0 --help` stays quick

    sent = [text.encode("utf-8", "replace").decode() if _has_surrogates(text) else text for text in texts]
    found: list[int] = toktok.batch_count(sent, encoding, threads=1)
    return found


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
