"""Download of Hugging Face hub data sets as parquet files."""

from pathlib import Path
from typing import Any

from weft.foundation.atomic import replacing
from weft.foundation.errors import UserError


def fetch_split(name: str, split: str, folder: Path, task: str) -> Path:
    """Return the parquet file of a split, such as `train` of `nyu-mll/glue:qqp`, cached in `folder` per revision."""
    key = f"tasks.{task}.data.hub"
    try:
        import datasets
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        raise UserError(f"{key}: reading hub data sets needs: pip install 'weft[hub]'") from None
    repository, _, subset = name.partition(":")
    wanted: dict[str, Any] = {"allow_patterns": [f"{subset}/*", "README.md"]} if subset else {}
    try:
        # Download the files first: all later steps work offline.
        snapshot = Path(snapshot_download(repository, repo_type="dataset", **wanted))
    except HFValidationError as error:
        raise UserError(f"{key}: {name!r} is not a hub id ({error})") from None
    except OSError as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"{key}: the hub did not give {name!r} ({reason}); check the name, the network and HF_HOME, "
            "or name files on disk"
        ) from None
    target = folder / "hub" / f"{repository.replace('/', '--')}-{subset}-{split}-{snapshot.name[:12]}.parquet"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(str(snapshot), subset or None, split=split, cache_dir=str(folder / "datasets"))
        with replacing(target) as temporary:
            rows.to_parquet(str(temporary))
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{key}: split {split!r} of {name!r} cannot be read ({reason})") from None
    return target
