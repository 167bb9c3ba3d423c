"""What `weft check` says about rows that lose tokens, and what reading all of them would cost."""

from dataclasses import replace

from weft.data.dataset import Dataset
from weft.data.long_texts.windows import MOST, WindowsConfig
from weft.data.readings import Reader


def describe_cuts(train: Dataset, positions: int) -> str | None:
    """Describe the cut train rows of a task and the alternatives; None if no row is cut."""
    reader, lengths = train.reader, train.text_lengths()
    cut = int(reader.is_cut(lengths).sum())
    if not cut:
        return None
    now = int(reader.token_counts(lengths).sum())

    def cost(key: str, other: Reader) -> str:
        tokens, left = int(other.token_counts(lengths).sum()), int(other.is_cut(lengths).sum())
        still = f", {left:,} still cut" if left else ""
        return f"with {key}: {tokens:,} ({tokens / now:.1f} x{still})"

    others = []
    if reader.reading in ("single", "bi"):
        way, written = WindowsConfig(), 'long_texts = "windows"'
        if replace(reader, long_texts=way).is_cut(lengths).any():
            needed = int(max(WindowsConfig(most=MOST).counts(side, reader.room).max() for side in lengths))
            way, written = WindowsConfig(most=needed), f'long_texts = {{ name = "windows", most = {needed} }}'
        others.append(cost(written, replace(reader, long_texts=way)))
    longest = min(positions, int(reader.whole_lengths(lengths).max()))
    if longest > reader.max_length:
        others.append(cost(f"max_length = {longest}", replace(reader, max_length=longest)))
    more = "; ".join(others) or f"the body has {positions} positions, so max_length cannot be larger"
    return (
        f"{train.task}: {cut:,} of {len(train):,} train rows lose tokens "
        f'(max_length = {reader.max_length}, long_texts = "{reader.long_texts.name}"). '
        f"One pass over the train rows reads {now:,} tokens; {more}"
    )
