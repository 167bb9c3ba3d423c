"""An independent reading of the five reports: what their texts say must hold of the objects that are built."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torchjd.aggregation import PCGradWeighting

from tests.tiny import write_body
from weft.build import build_plan, layer_factors
from weft.kinds.labels import Labels
from weft.losses.binary_cross_entropy import BinaryCrossEntropy
from weft.losses.dual_objective import DualObjective
from weft.nn.heads.cosine import Cosine, ReluCosine, ScaledCosine
from weft.nn.heads.mlp import Mlp
from weft.nn.heads.shared_pair import SharedPair
from weft.nn.pooling.lstm import Lstm
from weft.nn.pooling.mean import Mean
from weft.nn.pooling.pooler import Pooler
from weft.penalties.norms import Norm
from weft.recipes.assembly import learning_rates
from weft.recipes.recipe import Recipe, load_recipe
from weft.regularizers.smart import Smart
from weft.schedules.plan import Plan
from weft.schedules.sources import separate
from weft.tasks.building import build_network
from weft.tasks.network import Network
from weft.training.optimizer import build_optimizer
from weft.training.trainable import set_trainable

# train rows as the reports count them
SIZES = {"sentiment": 8544, "paraphrase": 141506, "similarity": 6041, "cfimdb": 1701, "yelp": 560000}


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_body(tmp_path_factory.mktemp("twelve") / "body", layers=12)


class Built:
    """A shipped recipe's objects, on a small body of twelve layers and the full sets' sizes."""

    def __init__(self, name: str, body: Path) -> None:
        self.recipe: Recipe = load_recipe(name, data_dir=body.parent, body=str(body), settings=["max_length=64"])
        self.sizes = {task: SIZES[task] for task in self.recipe.tasks}
        self.plan: Plan = build_plan(self.recipe, separate(self.sizes), None)
        known = {task: labels(task, self.recipe.tasks[task].scale) for task in self.sizes}
        self.network: Network = build_network(self.recipe, known, body)

    def batches(self, step: int) -> list[tuple[str, int]]:
        return [(part.task, len(part.rows)) for part in self.plan.window(step).parts]

    def head(self, task: str) -> Any:
        return self.network.task(task).head


def labels(task: str, scale: bool) -> Labels:
    if task == "similarity":
        return Labels("regression", (), 0.0, 5.0, scaled=scale)
    return Labels("classification", tuple("01234"[: 5 if task == "sentiment" else 2]))


def test_0_b1_trains_sentiment_s_head_alone(body: Path) -> None:
    """ "trained only on the sentiment classification head, but was evaluated on all three": rate 1e-3, batch size 8."""
    built = Built("0-B1", body)
    assert list(built.recipe.tasks) == ["sentiment", "paraphrase", "similarity"]
    assert built.plan.steps == 10 * 1068  # 8,544 rows in batches of 8, ten times
    assert {task for step in (0, 5000, built.plan.steps - 1) for task, _ in built.batches(step)} == {"sentiment"}
    set_trainable(built.network, built.recipe.modes()[0])
    assert not any(p.requires_grad for p in built.network.body.parameters())
    assert learning_rates(built.recipe, built.plan)(4000) == 1e-3


def test_0_e4_balances_by_a_sample_and_pays_for_weights(body: Path) -> None:
    """Samples as long as the smallest set, batches of 16, learnt weights, L1 with lambda 1e-4."""
    built = Built("0-E4", body)
    assert built.plan.epoch_ends[0] == 378  # 6,041 rows in batches of 16
    assert built.batches(0) == [("sentiment", 16), ("paraphrase", 16), ("similarity", 16)]
    first, second = (
        {
            int(row)
            for step in range(start, start + 378)
            for part in built.plan.window(step).parts
            if part.task == "paraphrase"
            for row in part.rows
        }
        for start in (0, 378)
    )
    assert len(first) == 6041
    assert first == second  # drawn once
    penalty = built.recipe.penalties[0].build()
    assert isinstance(penalty, Norm)
    assert (penalty.power, penalty.weight) == (1, 1e-4)
    weighting = built.recipe.weighting.build(tuple(built.recipe.tasks))
    optimizer = build_optimizer(built.network, weighting, built.recipe.optimizer, built.recipe.modes())
    assert all(group["weight_decay"] == 0 for group in optimizer.param_groups)
    assert sum(1 for group in optimizer.param_groups for p in group["params"] if p.ndim == 0) == 3  # one w per task


def test_0_e7_uses_all_data_by_batch_sizes(body: Path) -> None:
    """batches = largest / 32, batch_i = max(1, round(len_i / batches)): 32 paraphrase, 2 sentiment, 1 similarity."""
    built = Built("0-E7", body)
    assert dict(built.batches(0)) == {"paraphrase": 32, "sentiment": 2, "similarity": 1}
    assert len(built.plan.epoch_ends) == 10
    assert isinstance(built.head("similarity"), Cosine)
    assert built.recipe.optimizer.weight_decay == 0.01


def test_0_e8_shares_one_layer_between_the_pair_tasks(body: Path) -> None:
    built = Built("0-E8", body)
    heads = [built.head("paraphrase"), built.head("similarity")]
    assert all(isinstance(head, SharedPair) for head in heads)
    assert heads[0].layer is heads[1].layer
    assert heads[0].dense is not heads[1].dense
    assert heads[0].layer.in_features == 3 * 16 + 1  # u, v, |u - v| and their cosine
    assert built.recipe.optimizer.weight_decay == 0


def test_1_seq_trains_ten_epochs_of_each_task_in_turn(body: Path) -> None:
    built = Built("1-seq", body)
    order = [built.batches(end - 1)[0][0] for end in built.plan.epoch_ends]
    assert order == ["sentiment"] * 10 + ["paraphrase"] * 10 + ["similarity"] * 10
    assert built.batches(0) == [("sentiment", 16)]


def test_1_batch_steps_once_for_one_batch_of_each(body: Path) -> None:
    """An epoch ends with the shortest set; all rates are 1e-5; the heads are linear on [CLS] of both texts."""
    built = Built("1-batch", body)
    assert built.batches(0) == [("sentiment", 16), ("paraphrase", 16), ("similarity", 16)]
    assert built.plan.steps == 10 * 378
    assert learning_rates(built.recipe, built.plan)(3000) == 1e-5
    assert built.head("paraphrase").dense.weight.shape == (1, 2 * 16)  # one logit for binary cross-entropy
    assert isinstance(built.network.task("paraphrase").loss, BinaryCrossEntropy)


def test_1_layer_7_similarity_trains_that_layer_and_the_head(body: Path) -> None:
    built = Built("1-layer-7-similarity", body)
    set_trainable(built.network, built.recipe.modes()[0])
    training = {name.split(".")[2] for name, p in built.network.body.named_parameters(prefix="body") if p.requires_grad}
    assert training == {"7"}
    assert all(p.requires_grad for p in built.head("similarity").parameters())
    assert built.recipe.tasks["similarity"].reading == "concat"


def test_1_config_e_scales_each_task_s_four_best_layers(body: Path) -> None:
    """Late layers for sentiment; 2, 3, 7 and 8 for paraphrase; 4 to 7 for similarity; beta 2, alpha 1; 120 units."""
    built = Built("1-config-E", body)
    factors = layer_factors(built.recipe, 12)
    doubled = {task: [layer for layer, factor in own.items() if factor == 2] for task, own in factors.items()}
    assert doubled == {"sentiment": [8, 9, 10, 11], "paraphrase": [2, 3, 7, 8], "similarity": [4, 5, 6, 7]}
    assert all(factor in (1, 2) for own in factors.values() for factor in own.values())
    weighting = built.recipe.weighting.build(tuple(built.recipe.tasks))
    assert weighting(torch.ones(3), ("sentiment", "paraphrase", "similarity")).tolist() == pytest.approx([0.1, 1, 0.2])
    assert isinstance(built.head("sentiment"), Mlp)
    assert built.head("sentiment").dense.in_features == 120
    assert len(built.plan.epoch_ends) == 200


def test_2_pcgrad_zips_the_sets(body: Path) -> None:
    """ "taking a batch from each dataset", batch size 8 for all; similarity by ReLU of the cosine, times five."""
    built = Built("2-pcgrad", body)
    assert built.batches(0) == [("sentiment", 8), ("paraphrase", 8), ("similarity", 8)]
    assert built.plan.epoch_ends[0] == 756  # 6,041 rows in batches of 8
    assert isinstance(built.recipe.surgery.build().weighting, PCGradWeighting)
    head = built.head("similarity")
    assert isinstance(head, ReluCosine)
    assert head(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).tolist() == [[5], [0]]


def test_2_mt_smart_10_runs_three_loops_an_epoch(body: Path) -> None:
    built = Built("2-mt-smart-10", body)
    assert built.plan.epoch_ends[0] == 1068 + 17689 + 756  # each set once, in batches of 8
    assert [built.batches(step)[0][0] for step in (0, 1068, 18757)] == ["sentiment", "paraphrase", "similarity"]
    for task in built.recipe.tasks:
        regularizer = built.network.task(task).regularizer
        assert isinstance(regularizer, Smart)
        assert regularizer.weight == 10


def test_3_pcgrad_scales_the_cosine_and_repeats_small_sets_five_times(body: Path) -> None:
    """One `a` per task; [CLS] for sentiment, the mean for pairs; four batches a step; no segment embeddings."""
    built = Built("3-pcgrad", body)
    heads = [built.head("paraphrase"), built.head("similarity")]
    assert all(isinstance(head, ScaledCosine) for head in heads)
    assert heads[0].a is not heads[1].a
    assert isinstance(built.network.task("paraphrase").pooling, Mean)
    assert not isinstance(built.network.task("sentiment").pooling, Mean)
    assert isinstance(built.recipe.surgery.build().weighting, PCGradWeighting)
    assert [task for task, _ in built.batches(0)] == ["sentiment", "paraphrase", "similarity"] * 4
    epoch = built.plan.epoch_ends[0]
    rows = dict.fromkeys(built.sizes, 0)
    for step in range(epoch):
        for task, count in built.batches(step):
            rows[task] += count
    assert rows == {"sentiment": 5 * 8544, "paraphrase": 141506, "similarity": 5 * 6041}
    assert next(task for task, _ in built.batches(epoch - 1)) == "paraphrase"  # the large set goes on alone
    assert not built.network.body.embeddings.use_segments


def test_3_follows_its_authors_code(body: Path) -> None:
    """The scale starts at 2 and learns 1000 times as fast; sentiment reads the pooler; nothing drops out."""
    built = Built("3-plain", body)
    for task in ("paraphrase", "similarity"):
        head = built.head(task)
        assert (head.gain * float(head.a.detach()), head.gain) == (pytest.approx(2.0), 1000)
    assert isinstance(built.network.task("sentiment").pooling, Pooler)
    loss = built.network.task("paraphrase").loss
    assert isinstance(loss, BinaryCrossEntropy)
    assert not loss.reads_probabilities  # a clipped cosine above 0 means yes
    assert loss.read(torch.tensor([[0.0], [0.01]])).argmax(dim=1).tolist() == [0, 1]
    assert built.recipe.optimizer.eps == 1e-6


def test_3_mlp_maps_each_vector_before_the_cosine(body: Path) -> None:
    head = Built("3-mlp", body).head("similarity")
    assert isinstance(head, ScaledCosine)
    assert [type(layer) for layer in head.map] == [torch.nn.Linear, torch.nn.ReLU]


def test_3_lstm_reads_both_ways_and_pairs_go_through_the_cosine(body: Path) -> None:
    built = Built("3-lstm-2stage", body)
    sizes = {task: built.network.task(task).pooling.width for task in built.recipe.tasks}
    assert sizes == {"sentiment": 2 * 32, "paraphrase": 2 * 128, "similarity": 2 * 128}
    head = built.head("paraphrase")
    assert isinstance(head, ScaledCosine)
    assert [tuple(layer.weight.shape) for layer in head.map] == [(32, 256)]


def test_3_lstm_2stage_freezes_then_frees_the_body(body: Path) -> None:
    built = Built("3-lstm-2stage", body)
    rates = learning_rates(built.recipe, built.plan)
    middle = built.plan.phase_ends[0]
    assert middle == built.plan.steps // 2
    assert (rates(middle - 1), rates(middle)) == (1e-3, 1e-5)
    assert [mode.name for mode in built.recipe.modes()] == ["frozen", "full"]
    assert all(isinstance(built.network.task(task).pooling, Lstm) for task in built.recipe.tasks)


def test_3_yelp_cfimdb_shares_the_polarity_head(body: Path) -> None:
    """ "the layer is common for the 2 additional datasets and distinct for the SST dataset"."""
    built = Built("3-yelp-cfimdb", body)
    assert built.head("cfimdb") is built.head("yelp")
    assert built.head("cfimdb") is not built.head("sentiment")
    assert len(built.plan.epoch_ends) == 2


def test_4_sft_gives_quora_two_epochs_alone(body: Path) -> None:
    built = Built("4-sft", body)
    alone = 2 * 8845  # 141,506 pairs in batches of 16
    assert built.plan.epoch_ends[:2] == (8845, alone)
    assert {tuple(built.batches(step)) for step in (0, 4000, 8845, alone - 2)} == {(("paraphrase", 16),)}
    assert built.batches(alone) == [("sentiment", 16), ("paraphrase", 16), ("similarity", 10)]
    assert len(built.plan.epoch_ends) == 10


def test_4_sft_smart_dual_regularizes_the_classification_tasks(body: Path) -> None:
    """SMART .45 on sentiment and paraphrase, T = 1, sigma 1e-5, epsilon 1e-6, eta 1e-3; not on similarity."""
    built = Built("4-sft-smart-dual", body)
    smart = built.network.task("sentiment").regularizer
    assert isinstance(smart, Smart)
    own = smart.config
    assert (own.weight, own.steps, own.sigma, own.epsilon, own.step_size) == (0.45, 1, 1e-5, 1e-6, 1e-3)
    assert own.projection == "normalize"  # what the library that the report names does
    assert isinstance(built.network.task("paraphrase").regularizer, Smart)
    assert built.network.task("similarity").regularizer is None
    loss = built.network.task("sentiment").loss
    assert isinstance(loss, DualObjective)
    assert loss.reduction == "sum"
    assert (built.recipe.optimizer.lr, built.recipe.optimizer.weight_decay) == (2e-5, 0.01)


def test_4_smart_sum_weighs_a_sum_over_the_batch(body: Path) -> None:
    """The library adds .45 times the *sum* over 16 rows to the *mean* loss; weft's term is a mean over rows."""
    built = Built("4-smart-sum", body)
    for task in ("sentiment", "paraphrase"):
        regularizer = built.network.task(task).regularizer
        assert isinstance(regularizer, Smart)
        assert regularizer.weight == pytest.approx(0.45 * built.recipe.tasks[task].batch_size)


@pytest.mark.parametrize("name", ["0-E1", "1-concat", "2-nocap", "4-srr"])
def test_what_the_course_s_code_settles(body: Path, name: str) -> None:
    """[CLS] through the tanh pooler, token type 0 everywhere, AdamW with eps 1e-6 that decays every parameter."""
    built = Built(name, body)
    assert isinstance(built.network.task("sentiment").pooling, Pooler)
    joint = any(task.reading in ("cross", "concat") for task in built.recipe.tasks.values())
    assert not (joint and built.network.body.embeddings.use_segments)
    weighting = built.recipe.weighting.build(tuple(built.recipe.tasks))
    optimizer = build_optimizer(built.network, weighting, built.recipe.optimizer, built.recipe.modes())
    assert {group["eps"] for group in optimizer.param_groups} == {1e-6}
    assert {group["weight_decay"] for group in optimizer.param_groups} == {built.recipe.optimizer.weight_decay}


@pytest.mark.parametrize("name", ["0-E1", "1-concat", "2-nocap", "3-plain", "4-srr"])
def test_dropout_of_point_three_and_a_constant_rate_everywhere(body: Path, name: str) -> None:
    """All reports say .3; the authors' code of report 3 has none after the body."""
    built = Built(name, body)
    expected = 0.0 if name == "3-plain" else 0.3
    assert all(built.network.task(task).dropout == expected for task in built.recipe.tasks)
    rates = learning_rates(built.recipe, built.plan)
    assert rates(0) == rates(built.plan.steps - 1)
