"""The head of masked-language modelling, and its tensors in checkpoints."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.bodies.body import Body
from weft.bodies.shape import ACTIVATIONS
from weft.bodies.weights import modern_name, read_tensors, write_config
from weft.foundation.content import read_json
from weft.foundation.errors import UserError
from weft.tasks.store import body_tensors, save_tensors


class MaskedLanguageHead(nn.Module):
    """`norm(activation(W h + b)) E^T + c` with E the body's token embeddings: one logit for each token."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        width = body.embeddings.tokens.embedding_dim
        names = body.family.masked_head
        self.dense = nn.Linear(body.shape.width, width)
        self.norm = nn.LayerNorm(width, eps=body.shape.norm_eps)
        self.bias = nn.Parameter(torch.zeros(body.shape.vocabulary))
        self.activation = ACTIVATIONS[(names.activation if names else None) or body.shape.activation]
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor, table: Tensor) -> Tensor:
        """[m, w] states of tokens and the [v, e] token embeddings -> [m, v] logits."""
        logits: Tensor = F.linear(self.norm(self.activation(self.dense(states))), table, self.bias)
        return logits

    def names(self, body: Body) -> dict[str, str]:
        """Return our parameter -> its name in checkpoints; empty if the family's head has no table of names."""
        known = body.family.masked_head
        if known is None:
            return {}
        modules = {"dense": known.dense, "norm": known.norm}
        return {"bias": known.bias} | {
            f"{ours}.{kind}": f"{theirs}.{kind}" for ours, theirs in modules.items() for kind in ("weight", "bias")
        }


def load_head(body: Body, folder: Path) -> tuple[MaskedLanguageHead, bool]:
    """Return the head of a checkpoint, or a new one; and whether it is that of the checkpoint."""
    head = MaskedLanguageHead(body)
    names = head.names(body)
    read, file = read_tensors(folder)
    tensors = {modern_name(name, body.family): tensor for name, tensor in read.items()}
    tied = read_json(folder / "config.json").get("tie_word_embeddings", True)
    if not tied or not names or not all(name in tensors for name in names.values()):
        return head, False
    state = {ours: tensors[theirs].float() for ours, theirs in names.items()}
    for ours, parameter in head.named_parameters():
        if state[ours].shape != parameter.shape:
            raise UserError(
                f"{file}: {names[ours]} has shape {tuple(state[ours].shape)}, expected {tuple(parameter.shape)}"
            )
    head.load_state_dict(state)
    return head, True


def save_body(body: Body, head: MaskedLanguageHead, folder: Path) -> None:
    """Write config.json and model.safetensors: with the head, as `transformers` has it, if its names are known."""
    tensors = body_tensors(body)
    names, known = head.names(body), body.family.masked_head
    if known is not None:
        tensors = {f"{known.prefix}{name}": tensor for name, tensor in tensors.items()}
        tensors |= {names[ours]: p.detach().cpu().contiguous() for ours, p in head.named_parameters()}
        write_config(body.shape, folder, architectures=[known.architecture])
    else:
        write_config(body.shape, folder)
    save_tensors(tensors, folder / "model.safetensors")
