"""Differences between the recipes of several runs."""

import json
from collections.abc import Sequence
from typing import Any


def recipe_differences(recipes: Sequence[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return (key, its value in each recipe) for every key whose values differ, except the name."""
    flat = [_flat(recipe) for recipe in recipes]
    keys = dict.fromkeys(key for own in flat for key in own)
    found = []
    for key in keys:
        values = [own.get(key, "–") for own in flat]
        if len(set(values)) > 1 and key != "name":
            found.append((key, values))
    return found


def _flat(value: Any, key: str = "") -> dict[str, str]:
    if not isinstance(value, dict):
        return {key: json.dumps(value, ensure_ascii=False)}
    found: dict[str, str] = {}
    for name, inner in value.items():
        found |= _flat(inner, f"{key}.{name}" if key else name)
    return found
