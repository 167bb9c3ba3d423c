"""The registries as tests see them: every variant's name and config class."""

from typing import Any, get_args

from weft.foundation.config import Config


def variants(registry: Any) -> dict[str, type[Config]]:
    """Name -> config class of each variant in a union such as LossConfig."""
    members = get_args(get_args(registry)[0]) or (get_args(registry)[0],)
    return {member.model_fields["name"].default: member for member in members}


def of_rows(registry: Any) -> dict[str, type[Config]]:
    """The variants that fit one label per row; test_tags.py covers those for words."""
    found = variants(registry)
    return {
        name: config
        for name, config in found.items()
        if not (getattr(config, "keeps_tokens", False) or getattr(config, "of_texts", False))
    }
