"""What "equal to transformers" means, for every test that claims it.

`Twin` is a plain multitask model over a body of `transformers`: padded batches, one task after another, ordinary
torch. Give it a weft network and it takes over its weights; train both on the same rows and compare.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from weft.bodies.body import Body
from weft.bodies.weights import hugging_face_config, to_hugging_face
from weft.foundation.values import Batch, Encoded
from weft.tasks.network import Network


def random_sequences(vocabulary: int, lengths: list[int]) -> Encoded:
    """Of any tokens but the first five, which are special ones."""
    generator = torch.Generator().manual_seed(5)
    total = sum(lengths)
    return Encoded(
        torch.randint(5, vocabulary, (total,), generator=generator),
        torch.randint(2, (total,), generator=generator),
        tuple(lengths),
    )


def pad(encoded: Encoded, padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """ids, mask and segments [n, longest] of packed sequences."""
    lengths = list(encoded.lengths)
    ids = nn.utils.rnn.pad_sequence(list(encoded.ids.split(lengths)), batch_first=True, padding_value=padding)
    segments = nn.utils.rnn.pad_sequence(list(encoded.segments.split(lengths)), batch_first=True)
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    return ids, mask, segments


def unpad(hidden: Tensor, encoded: Encoded) -> Tensor:
    """[n, longest, w] -> [t, w]"""
    return torch.cat([row[:length] for row, length in zip(hidden, encoded.lengths, strict=True)])


def inputs_of(body: Body, encoded: Encoded) -> dict[str, Tensor]:
    """What `transformers`' class of the same family takes."""
    ids, mask, segments = pad(encoded, body.shape.pad)
    types = {"token_type_ids": segments} if body.has_segments else {}
    return {"input_ids": ids, "attention_mask": mask, **types}


def hugging_face_gradients(body: Body) -> dict[str, Tensor]:
    """The gradients of our body under Hugging Face's names."""
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in body.named_parameters()}
    return to_hugging_face(gradients, body.shape)


class Twin(nn.Module):
    """The same model, written the way a user would write it over transformers."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.ours = [network.body]  # in a list, so that its parameters are not the twin's
        config: Any = AutoConfig.for_model(**hugging_face_config(network.body.shape))
        self.body = AutoModel.from_config(config).to(next(network.parameters()).dtype)
        self.body.load_state_dict(to_hugging_face(dict(network.body.named_parameters()), network.body.shape))
        self.poolings = {name: type(network.task(name).pooling).__name__ for name in network.tasks}
        self.heads = nn.ModuleDict()
        for name in network.tasks:
            dense = network.task(name).head.dense
            copy = nn.Linear(dense.in_features, dense.out_features, dtype=dense.weight.dtype)
            copy.load_state_dict(dense.state_dict())
            self.heads[name] = copy

    def vector(self, task: str, encoded: Encoded) -> Tensor:
        inputs = inputs_of(self.ours[0], encoded)
        output = self.body(**inputs)
        if self.poolings[task] == "Pooler":
            return output.pooler_output
        if self.poolings[task] == "Cls":
            return output.last_hidden_state[:, 0]
        weights = inputs["attention_mask"][:, :, None].to(output.last_hidden_state.dtype)
        return (output.last_hidden_state * weights).sum(1) / weights.sum(1)

    def loss(self, batches: Sequence[Batch]) -> Tensor:
        """The sum over tasks of the mean loss."""
        total = torch.zeros((), dtype=next(self.parameters()).dtype)
        for batch in batches:
            vectors = torch.cat([self.vector(batch.task, text) for text in batch.texts], dim=1)
            output = self.heads[batch.task](vectors)
            if batch.target.is_floating_point():
                total = total + nn.functional.mse_loss(output[:, 0], batch.target.to(output.dtype))
            else:
                total = total + nn.functional.cross_entropy(output, batch.target)
        return total

    def decayed(self) -> list[dict[str, object]]:
        """Parameter groups by the usual rule: no decay on biases and norms, which are vectors."""
        plain = [p for p in self.parameters() if p.ndim == 1]
        rest = [p for p in self.parameters() if p.ndim > 1]
        return [{"params": rest, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]

    @torch.no_grad()
    def distance(self, network: Network) -> float:
        """Largest difference between any two weights of the twins."""
        ours = to_hugging_face(dict(network.body.named_parameters()), network.body.shape)
        theirs = dict(self.body.named_parameters())
        assert ours.keys() == theirs.keys()
        differences = [(ours[name] - theirs[name]).abs().max() for name in ours]
        for name, head in self.heads.items():
            dense = network.task(name).head.dense
            differences += [(dense.weight - head.weight).abs().max(), (dense.bias - head.bias).abs().max()]
        return float(torch.stack(differences).max())
