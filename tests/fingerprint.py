"""What must be equal between a run that was interrupted and one that never was."""

import hashlib
import json
from pathlib import Path


def fingerprint(run: Path) -> dict[str, str]:
    """Hashes of all weights, of the optimizer and of the predictions; the log without its times."""
    files = [*run.glob("model/*"), *run.glob("predictions/*"), *run.glob("checkpoints/*/*.safetensors")]
    found = {str(f.relative_to(run)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found["log"] = json.dumps([{k: v for k, v in record.items() if k != "seconds"} for record in records])
    assert any(name.startswith("checkpoints") for name in found)
    return found
