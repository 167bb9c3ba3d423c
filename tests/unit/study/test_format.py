"""A study file: what it may say, and what it is told when it says something else."""

from pathlib import Path

import pytest

from tests.tiny import recipe_content, write_recipe
from weft.build import assemble
from weft.foundation.errors import UserError
from weft.study.description import describe
from weft.study.format import StudyBudget, load_study, parse_study, study_toml
from weft.study.plan import arm_recipe, plan_study, steps_of, with_settings

STUDY = """
name = "s"
base = "recipe.toml"
seeds = [1, 2]
budget = { steps = 4 }
baseline = "a"
[set]
epochs = 3
[arms.a]
[arms.b]
"tasks.similarity.head" = "cosine"
[[claims]]
text = "b beats a"
better = "b"
worse = "a"
metric = "similarity.pearson"
"""


@pytest.fixture(scope="module")
def place(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("format")
    write_recipe(folder, recipe_content(tiny))
    return folder


def written(place: Path, text: str) -> str:
    (place / "s.toml").write_text(text, encoding="utf-8")
    return str(place / "s.toml")


def test_an_arm_is_the_base_with_the_changes_of_all_and_its_own(place: Path) -> None:
    source = load_study(written(place, STUDY))
    a, b = (arm_recipe(source, name) for name in ("a", "b"))
    assert (a.epochs, b.epochs) == (3, 3)
    assert (a.tasks["similarity"].head.name, b.tasks["similarity"].head.name) == ("linear", "cosine")
    assert with_settings(source.study, ["epochs=5"]).set == {"epochs": 5}


def test_an_arm_unsets_keys_of_the_recipe_and_of_all_arms(place: Path) -> None:
    text = STUDY.replace(
        "[arms.a]", 'dropout = 0.5\n[arms.a]\nunset = ["dropout", "tasks.*.pooling", "optimizer.clip"]'
    )
    source = load_study(written(place, text))
    a, b = (arm_recipe(source, name) for name in ("a", "b"))
    assert (a.dropout, b.dropout) == (0.1, 0.5)
    assert {task.pooling.name for task in a.tasks.values()} == {"cls"}
    assert b.tasks["similarity"].pooling.name == "mean"
    assert (a.optimizer.clip, b.optimizer.clip) == (None, 1.0)
    assert parse_study(study_toml(source.study), "s") == source.study


def test_a_resolved_study_with_unset_keys_is_the_same_study(place: Path) -> None:
    text = STUDY.replace("[arms.a]", '[arms.a]\nunset = ["optimizer.clip"]')
    plan = plan_study(load_study(written(place, text)))
    again = plan_study(load_study(written(place, study_toml(plan.study))))
    assert again.study == plan.study
    assert again.arms["a"].recipe == plan.arms["a"].recipe
    assert "optimizer.clip unset" in "\n".join(describe(plan))


def test_the_plan_tells_how_many_rows_an_arm_sees(place: Path) -> None:
    """4 steps of a 3-epoch recipe are spread over all epochs: a row may be drawn twice before others are seen."""
    plan = plan_study(load_study(written(place, STUDY)))
    arm = plan.arms["a"]
    window_rows = {"sentiment": 4, "paraphrase": 8, "similarity": 5}
    sizes = {"sentiment": 26, "paraphrase": 34, "similarity": 22}
    made = assemble(arm.recipe, steps=arm.steps)
    for task, seen in arm.train_rows.items():
        rows = [
            row for step in range(4) for part in made.plan.window(step).parts if part.task == task for row in part.rows
        ]
        assert (seen.of, seen.drawn, seen.distinct) == (sizes[task], len(rows), len(set(rows)))
        assert seen.drawn <= 4 * window_rows[task]
    said = "\n".join(describe(plan))
    seen = arm.train_rows["sentiment"]
    assert f"train rows: {seen.distinct} distinct of 26 sentiment ({seen.drawn} drawn)" in said


def test_a_study_reads_back_from_its_own_file() -> None:
    study = parse_study(
        STUDY + 'margin = 0.01\n[full]\nseeds = [1]\nbudget = { tokens = 9 }\nset = { "a.b" = 1 }\n', "s"
    )
    assert parse_study(study_toml(study), "s") == study


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('baseline = "a"', 'baseline = "c"', "baseline: found 'c', expected one of a, b"),
        ('better = "b"', 'better = "a"', "with itself"),
        ("seeds = [1, 2]", "seeds = [1, 1]", "seeds: expected distinct integers >= 0"),
        ("{ steps = 4 }", "{ steps = 4, tokens = 5 }", "budget: expected exactly one of"),
        ("{ steps = 4 }", "{ stesp = 4 }", "budget.stesp: there is no such key; did you mean 'steps'?"),
        ('base = "recipe.toml"', "", "arms.a has no `recipe`, and the study has no `base`"),
        ("[arms.a]", "[arms.a]\noptimizer.lr = 1.0", '"optimizer.lr" = ... in quotes'),
        ("[arms.b]", '[arms.b]\nunset = ["tasks.similarity.head"]', "`unset` removes tasks.similarity.head, but"),
        ("[arms.a]", '[arms."a."]', "the arm name 'a.' must start with a letter"),
        ("[arms.a]", '[arms."b c"]\n[arms.b_c]\n[arms.a]', "'b c' and 'b_c' would share the file name 'b_c'"),
        ('name = "s"', 'name = "s  s"', "the study name 's  s' must start"),
        ("[arms.a]", '[arms.a]\npublished = "9-x"', "is not a shipped recipe with published scores"),
        ('metric = "similarity.pearson"', 'metric = "overall"\non = "gap"', "needs the metric of a task"),
    ],
)
def test_what_is_wrong_is_said(place: Path, old: str, new: str, said: str) -> None:
    assert old in STUDY
    with pytest.raises(UserError) as error:
        load_study(written(place, STUDY.replace(old, new)))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"tasks.similarity.head" = "cosine"',
            '"tasks.similarity.haed" = 1',
            "arms.b: tasks.similarity.haed: there is no",
        ),
        (
            'metric = "similarity.pearson"',
            'metric = "similarity.accuracy"',
            "claims.0.metric: found 'similarity.accuracy'",
        ),
        ("[arms.a]", '[arms.a]\nunset = ["tasks.similarity.head"]', "arms.a.unset: found 'tasks.similarity.head', but"),
        ("[arms.a]", '[arms.a]\nunset = ["tasks.*.kind"]', "arms.a: tasks.sentiment.kind: is missing"),
        ("[arms.a]", '[arms.a]\nonly = ["sentimnet"]', "arms.a.only: found 'sentimnet'"),
        ("[arms.a]", '[arms.a]\nteachers = ["c"]', "arms.a.teachers: c: found 'c', expected one of a, b"),
        ("[arms.a]", '[arms.a]\nteachers = ["a"]', "arms.a.teachers: a wait for each other"),
        ("[arms.a]", '[arms.a]\nteachers = ["b"]\n"distill.weight" = 2', "distill.weight"),
        ("[arms.a]", '[arms.a]\nteachers = ["b"]\n"distill.teachers" = ["x"]', "both name the teachers"),
        (
            "[arms.a]",
            '[arms.a]\nteachers = ["c"]\nonly = ["similarity"]\n[arms.c]\nonly = ["sentiment"]',
            "s: arms.a.teachers: c has the tasks sentiment and none of a's (similarity)",
        ),
        ("[arms.a]", '[arms.a]\n"surgery" = "pcgrad"\n"schedule" = "sequential"', "arm a: surgery: 'pcgrad'"),
    ],
)
def test_what_cannot_be_planned_is_said(place: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        plan_study(load_study(written(place, STUDY.replace(old, new))))
    assert said in str(error.value)


def test_dev_rows_that_differ_are_refused(place: Path, tiny: Path) -> None:
    other = tiny / "data" / "similarity-train.tsv"
    text = STUDY.replace("[arms.a]", f'[arms.a]\n"tasks.similarity.data.dev" = "{other}"')
    with pytest.raises(UserError, match="the dev rows of similarity differ between 'a' and 'b'"):
        plan_study(load_study(written(place, text)))
    data = f'{{ train = "{other}", dev_fraction = 0.5, text = "a", text2 = "b", label = "sim" }}'
    with pytest.raises(UserError, match="samples other dev rows for every seed"):
        plan_study(load_study(written(place, STUDY.replace("[arms.a]", f'[arms.a]\n"tasks.similarity.data" = {data}'))))
    fixed = data.replace("0.5,", "0.5, dev_seed = 7,")
    plan = plan_study(load_study(written(place, STUDY.replace("[set]", f'[set]\n"tasks.similarity.data" = {fixed}'))))
    assert {arm.recipe.tasks["similarity"].data.split_seed(seed) for arm, seed in plan.runs()} == {7}


def test_teachers_come_before_their_students(place: Path) -> None:
    text = STUDY.replace("[arms.a]", '[arms.a]\nteachers = ["b", "c"]\n"distill.weight" = 0.25\n[arms.c]')
    plan = plan_study(load_study(written(place, text)))
    assert plan.study.teaching_order() == [["c", "b"], ["a"]]
    distill = plan.arms["a"].recipe.distill
    assert distill is not None
    assert (distill.teachers, distill.weight) == (("b", "c"), 0.25)
    assert "taught by b, c" in "\n".join(describe(plan))
    again = plan_study(load_study(written(place, study_toml(plan.study))))
    assert again.study == plan.study
    assert again.arms["a"].recipe == plan.arms["a"].recipe


def test_a_budget_of_examples_or_tokens_becomes_steps(place: Path) -> None:
    recipe = arm_recipe(load_study(written(place, STUDY)), "a")
    rows = sum(task.batch_size for task in recipe.tasks.values())
    assert steps_of(recipe, StudyBudget(examples=10 * rows)) in (10, 11)  # the last batch of a pass is short
    assert steps_of(recipe, StudyBudget(tokens=1)) == 1
    alone = recipe.model_copy(update={"schedule": recipe.schedule.model_copy(update={"tasks": ("sentiment",)})})
    assert steps_of(alone, StudyBudget(examples=40)) in (10, 11, 12)


def test_names_that_are_not_there() -> None:
    with pytest.raises(UserError, match="did you mean 'readings'"):
        load_study("raedings")
    with pytest.raises(UserError, match="there is no such file"):
        load_study("none.toml")
