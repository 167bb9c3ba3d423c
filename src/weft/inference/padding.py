"""Groups of sequences that are padded to a common length: where to cut, so that a pass has little padding."""

from collections.abc import Sequence

TOKENS = 1024
"""maximum number of padded tokens per pass: larger batches are not faster, and these fit in the CPU cache"""
OVERHEAD = 24
"""what one more pass costs, as a number of tokens: measured for MiniLM-L6 in int8, where it is largest"""


def padded_groups(lengths: Sequence[int], tokens: int = TOKENS, overhead: int = OVERHEAD) -> list[list[int]]:
    """Return the indices of all sequences, sorted by length, in the groups that cost least.

    A group costs its padded size, `count x longest`, at most `tokens`, plus `overhead`. A longer sequence forms its
    own group. Groups of neighbours in the sorted order are enough: `cost[i] = min_j cost[j] + overhead + (i - j) l_i`
    is the least cost of the first i sequences, the last of which has the length l_i.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    costs, starts = [0], [0]
    for end, index in enumerate(order, 1):
        length = lengths[index]
        first = max(0, end - max(1, tokens // length))
        options = [costs[start] + (end - start) * length for start in range(first, end)]
        least = min(options)
        costs.append(least + overhead)
        starts.append(first + options.index(least))
    groups: list[list[int]] = []
    end = len(order)
    while end:
        groups.append(order[starts[end] : end])
        end = starts[end]
    return groups[::-1]
