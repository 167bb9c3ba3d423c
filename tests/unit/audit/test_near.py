import random
from itertools import combinations

from tests.texts import WORDS
from weft.audit.near import THRESHOLD, grams, jaccard, near_pairs


def variants(count: int, seed: int) -> list[str]:
    """Texts, some of them followed by copies with one to three changed characters."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        text = " ".join(draw.choices(WORDS, k=draw.randint(6, 30)))
        found.append(text)
        for _ in range(draw.choice([0, 0, 1, 2])):
            letters = list(text)
            for _ in range(draw.randint(1, 3)):
                letters[draw.randrange(len(letters))] = draw.choice("qxz")
            found.append("".join(letters))
    draw.shuffle(found)
    return list(dict.fromkeys(found))


def brute(text: str) -> set[str]:
    return {text[i : i + 5] for i in range(max(1, len(text) - 4))}


def test_hashing_finds_what_brute_force_finds() -> None:
    texts = variants(250, seed=1)
    sets = [brute(text) for text in texts]
    true = {
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= THRESHOLD
    }
    found = {(pair.first, pair.second) for pair in near_pairs(texts, seed=5)}
    assert len(true) > 60
    assert found <= true  # exact similarities decide
    assert len(found) >= 0.98 * len(true)


def test_similarity_is_exact() -> None:
    one, two = "the quiet harbour woke before dawn", "the quiet harbour woke before noon"
    expected = len(brute(one) & brute(two)) / len(brute(one) | brute(two))
    assert jaccard(grams(one), grams(two)) == expected


def test_pairs_are_deterministic_and_short_texts_are_supported() -> None:
    texts = [*variants(40, seed=2), "a", "", "ab"]
    assert near_pairs(texts, seed=3) == near_pairs(texts, seed=3)
    assert near_pairs([], seed=3) == []


def test_a_large_bucket_is_connected() -> None:
    """A thousand copies of a template: not every pair is compared, but every text has a neighbour."""
    template = "your parcel number %04d has been handed over to the courier and will arrive tomorrow before noon"
    texts = [template % number for number in range(200)]
    touched = {number for pair in near_pairs(texts, seed=1) for number in (pair.first, pair.second)}
    assert touched == set(range(200))
