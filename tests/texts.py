"""Texts for tests, written for this project."""

_STORY = (
    "the quiet harbour woke before dawn and a cook lit her stove while gulls argued over yesterday's bread "
    "nobody on the pier could say whether the ferry would sail since fog had swallowed both lighthouses and the "
    "old captain refused to guess so we waited drinking tea from paper cups trading stories about storms"
)
WORDS = _STORY.split()

MIXED_SENTENCES = [
    " ".join(WORDS[(7 * i) % 20 : (7 * i) % 20 + 1 + (11 * i) % 32]).capitalize() + ".!?"[i % 3] for i in range(64)
]
"""64 sentences of 1 to 32 words"""
