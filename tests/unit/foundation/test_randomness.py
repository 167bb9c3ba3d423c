import torch

from weft.foundation.randomness import derive, generator, seeded


def test_a_seed_depends_on_every_part_of_its_purpose() -> None:
    seeds = {derive(1, 2, "a"), derive(1, 2, "b"), derive(1, 3, "a"), derive(2, 2, "a"), derive(1, "2a")}
    assert len(seeds) == 5
    assert derive(1, 2, "a") == derive(1, 2, "a")


def test_seeded_draws_the_same_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(1, "dropout"):
        first = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    with seeded(1, "dropout"):
        assert torch.equal(torch.rand(3), first)
    with seeded(2, "dropout"):
        assert not torch.equal(torch.rand(3), first)


def test_generators_of_different_purposes_differ() -> None:
    assert generator(1, "a").permutation(50).tolist() != generator(1, "b").permutation(50).tolist()
