"""The settings that `weft init` writes whatever the labels are, each with the reason that the recipe gives for it."""

BODY = 'body = "packaged:minilm-l6"   # small and quick; any encoder of docs/bodies.md works: a folder or a hub id'
SCHEDULE = [
    "[schedule]",
    'name = "alternating"   # one file per step, in turns: unlike tasks that share a step move the body less for each',
    "",
]


def training_settings(files: int) -> list[str]:
    """Keys of the schedule and the optimizer, by the number of train files. The evidence is in docs/benchmarks.md."""
    rate = "lr = 5e-5   # a good start for small bodies; 2e-5 for BERT base"
    if files > 1:
        rate = "lr = 8e-5   # 5e-5 for one file: unlike tasks undo a part of each other's steps; 3e-5 for BERT base"
    return [
        *(SCHEDULE if files > 1 else []),
        "[optimizer]",
        rate,
        "head_lr = 1e-3   # heads start at random and learn faster than the body",
        "weight_decay = 0.01",
        "warmup = 10",
        "clip = 1.0",
    ]


def run_settings(fewest_rows: int) -> list[str]:
    """Keys of the whole run, by the size of the smallest train file."""
    epochs = 8 if fewest_rows < 1000 else 4 if fewest_rows < 10000 else 2
    return [
        BODY,
        f"epochs = {epochs}   # the smallest train file has {fewest_rows:,} rows: fewer rows, more passes",
        "max_length = 128   # tokens; `weft check` says how many rows are longer",
        "dropout = 0.1",
    ]


def task_settings(*, pair: bool, fixed: str | None, pooled: bool) -> list[str]:
    """Keys of one task, of one text or two.

    `fixed` is the only reading that its kind supports; `pooled` is false for labels of words.
    """
    reading = 'reading = "cross"   # both texts in one sequence: the most accurate; "bi" encodes each once'
    if fixed is not None:
        reading = f'reading = "{fixed}"   # the only reading of this kind'
    return [*([reading] if pair else []), *(['pooling = "mean"'] if pooled else []), "batch_size = 16"]


def dev_fraction(rows: int) -> str:
    """The part of a train file that is set aside where there is no dev file."""
    fraction = 0.2 if rows < 2000 else 0.1
    return f"dev_fraction = {fraction}   # no dev file was given; rows with equal texts stay on one side"
