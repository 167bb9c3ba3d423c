"""What "equal to transformers" means, for every test that claims it.

`Twin` is a plain multitask model over `transformers.BertModel`: padded batches, one task after another, ordinary
torch. Give it a weft network and it takes over its weights; train both on the same rows and compare.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from weft.bodies.weights import names, to_hugging_face
from weft.foundation.values import Batch, Encoded
from weft.tasks.network import Network


def random_bert(folder: Path, **shape: int) -> BertModel:
    """A BERT of any size with random weights, saved by `transformers` itself."""
    torch.manual_seed(0)
    model = BertModel(BertConfig(**shape))
    for parameter in model.parameters():  # its own start is too close to zero to tell mistakes apart
        nn.init.normal_(parameter, std=0.08 if parameter.ndim > 1 else 0.3)
    model.save_pretrained(folder)
    return model.eval()


def pad(encoded: Encoded) -> tuple[Tensor, Tensor, Tensor]:
    """ids, mask and segments [n, longest] of packed sequences."""
    lengths = list(encoded.lengths)
    ids = nn.utils.rnn.pad_sequence(list(encoded.ids.split(lengths)), batch_first=True)
    segments = nn.utils.rnn.pad_sequence(list(encoded.segments.split(lengths)), batch_first=True)
    mask = (torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]).long()
    return ids, mask, segments


def unpad(hidden: Tensor, encoded: Encoded) -> Tensor:
    """[n, longest, w] -> [t, w]"""
    return torch.cat([row[:length] for row, length in zip(hidden, encoded.lengths, strict=True)])


def hugging_face_gradients(body: nn.Module, layers: int) -> dict[str, Tensor]:
    """The gradients of our body under Hugging Face's names."""
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in body.named_parameters()}
    return to_hugging_face(gradients, layers)


class Twin(nn.Module):
    """The same model, written the way a user would write it over transformers."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        shape = network.body.shape
        self.bert = BertModel(
            BertConfig(
                vocab_size=shape.vocabulary,
                hidden_size=shape.width,
                num_hidden_layers=shape.layers,
                num_attention_heads=shape.heads,
                intermediate_size=shape.inner,
                max_position_embeddings=shape.positions,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            ),
            add_pooling_layer=True,
        ).to(next(network.parameters()).dtype)
        self.bert.load_state_dict(to_hugging_face(dict(network.body.named_parameters()), shape.layers))
        self.poolings = {name: type(network.task(name).pooling).__name__ for name in network.tasks}
        self.heads = nn.ModuleDict()
        for name in network.tasks:
            dense = network.task(name).head.dense
            copy = nn.Linear(dense.in_features, dense.out_features, dtype=dense.weight.dtype)
            copy.load_state_dict(dense.state_dict())
            self.heads[name] = copy

    def vector(self, task: str, encoded: Encoded) -> Tensor:
        ids, mask, segments = pad(encoded)
        output = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=segments)
        if self.poolings[task] == "Pooler":
            return output.pooler_output
        if self.poolings[task] == "Cls":
            return output.last_hidden_state[:, 0]
        weights = mask[:, :, None].to(output.last_hidden_state.dtype)
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
        """Parameter groups by the usual rule: no decay on biases and LayerNorms."""
        plain = [p for name, p in self.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
        ids = {id(p) for p in plain}
        rest = [p for p in self.parameters() if id(p) not in ids]
        return [{"params": rest, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]

    @torch.no_grad()
    def distance(self, network: Network) -> float:
        """Largest difference between any two weights of the twins."""
        ours = to_hugging_face(dict(network.body.named_parameters()), network.body.shape.layers)
        theirs = dict(self.bert.named_parameters())
        assert set(ours) == {name for parts in names(network.body.shape.layers).values() for name in parts}
        differences = [(ours[name] - theirs[name]).abs().max() for name in ours]
        for name, head in self.heads.items():
            dense = network.task(name).head.dense
            differences += [(dense.weight - head.weight).abs().max(), (dense.bias - head.bias).abs().max()]
        return float(torch.stack(differences).max())
