"""A task trained by weft, for `transformers`: a body, a pooling, a head, and the rule by which its outputs are read.

`weft export --to transformers` puts this file beside the weights of every task for which the library has no class of
its own. It needs torch and transformers, nothing else:

    AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)    answers
    AutoModel.from_pretrained(folder, trust_remote_code=True)                             vectors (`pooler_output`)
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput

TINY = 1e-6  # the smallest sigmoid that `dual-objective` divides by the sum of all


class WeftConfig(PretrainedConfig):
    """`body_config` is that of the body; `weft_task` says what stands on it, by the names of weft's recipes."""

    model_type = "weft"
    sub_configs: ClassVar[dict[str, Any]] = {"body_config": AutoConfig}

    def __init__(self, body_config: Any = None, weft_task: dict[str, Any] | None = None, **settings: Any) -> None:
        if body_config is None:
            body_config = {"model_type": "bert"}
        if isinstance(body_config, dict):
            body_config = AutoConfig.for_model(**body_config)
        self.body_config = body_config
        self.weft_task = weft_task or {}
        super().__init__(**settings)


class Cls(nn.Module):
    """The state of the first token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return hidden[:, 0]


class Pooler(Cls):
    """`tanh(W h + b)` of the first token."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.dense = nn.Linear(width, width)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return torch.tanh(self.dense(hidden[:, 0]))


class Mean(Cls):
    """The mean over all tokens."""

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        real = mask[:, :, None].to(hidden.dtype)
        return (hidden * real).sum(dim=1) / real.sum(dim=1)


class Max(Cls):
    """The largest value of each entry over all tokens."""

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        return hidden.masked_fill(~mask[:, :, None], float("-inf")).amax(dim=1)


class Attention(Cls):
    """`sum_k a_k h_k`, `a = softmax(q · h_k)`."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.query = nn.Parameter(torch.zeros(width))

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        shares = (hidden @ self.query).masked_fill(~mask, float("-inf")).softmax(dim=1)
        return (shares[:, :, None] * hidden).sum(dim=1)


class Lstm(Cls):
    """The last state of an LSTM; of both directions side by side, if there are two."""

    def __init__(self, width: int, size: int, bidirectional: bool) -> None:
        super().__init__(size * (2 if bidirectional else 1))
        self.lstm = nn.LSTM(width, size, batch_first=True, bidirectional=bidirectional)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(hidden, lengths, batch_first=True, enforce_sorted=False)
        last: Tensor = self.lstm(packed)[1][0]
        return last.transpose(0, 1).flatten(1)


POOLINGS = {"cls": Cls, "pooler": Pooler, "mean": Mean, "max": Max, "attention": Attention, "lstm": Lstm}


class LayerMix(nn.Module):
    """`sum_k softmax(w)_k h_k` over the embeddings and all layers."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers + 1))

    def forward(self, hidden: tuple[Tensor, ...]) -> Tensor:
        shares = self.weights.softmax(dim=0)
        return torch.stack([share * layer for share, layer in zip(shares, hidden, strict=True)]).sum(dim=0)


def joined(first: Tensor, second: Tensor | None) -> Tensor:
    return first if second is None else torch.cat([first, second], dim=1)


class Linear(nn.Module):
    """`W u + b`, or `W (u, v) + b`."""

    def __init__(self, width: int, sides: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(sides * width, outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        return self.dense(joined(first, second))


class Difference(nn.Module):
    """`W (u, v, |u - v|) + b`."""

    def __init__(self, width: int, sides: int, outputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear((sides + 1) * width, outputs)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.dense(torch.cat([first, second, (first - second).abs()], dim=1))


class Mlp(nn.Module):
    """`W_k relu(... relu(W_1 x + b_1) ...) + b_k` on `x = u` or `(u, v)`."""

    def __init__(self, width: int, sides: int, outputs: int, sizes: list[int], dropout: float) -> None:
        super().__init__()
        inputs, layers = sides * width, []
        for size in sizes:
            layers += [nn.Linear(inputs, size), nn.ReLU(), nn.Dropout(dropout)]
            inputs = size
        self.hidden = nn.Sequential(*layers)
        self.dense = nn.Linear(inputs, outputs)

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        return self.dense(self.hidden(joined(first, second)))


class Hidden(Mlp):
    """One hidden layer."""

    def __init__(self, width: int, sides: int, outputs: int, units: int) -> None:
        super().__init__(width, sides, outputs, [units], 0.0)


class Cosine(nn.Module):
    """`cos(u, v)`."""

    def __init__(self, width: int, sides: int, outputs: int) -> None:
        super().__init__()

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return F.cosine_similarity(first, second, dim=1)[:, None]


class ReluCosine(Cosine):
    """`5 relu(cos(u, v))`."""

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return 5 * super().forward(first, second).relu()


class ScaledCosine(Cosine):
    """`clip(a (cos(u, v) - 1) + 1, 0, 1)`, on vectors that go through a layer of `units` first if it is given."""

    def __init__(
        self, width: int, sides: int, outputs: int, start: float, gain: float, units: int | None, activation: str | None
    ) -> None:
        super().__init__(width, sides, outputs)
        self.gain = gain
        self.a = nn.Parameter(torch.tensor(start / gain))
        layers = [] if units is None else [nn.Linear(width, units), nn.ReLU()]
        self.map = nn.Sequential(*(layers[:1] if activation == "none" else layers))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return (self.gain * self.a * (super().forward(self.map(first), self.map(second)) - 1) + 1).clamp(0, 1)


class SharedPair(Cosine):
    """`W_t leaky_relu(W (u, v, |u - v|, cos(u, v)))`."""

    def __init__(self, width: int, sides: int, outputs: int, size: int, group: str, shared: bool) -> None:
        super().__init__(width, sides, outputs)
        self.layer = nn.Linear((sides + 1) * width + 1, size)
        self.dense = nn.Linear(size, outputs)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        pair = [first, second, (first - second).abs(), super().forward(first, second)]
        return self.dense(F.leaky_relu(self.layer(torch.cat(pair, dim=1))))


HEADS: dict[str, type[nn.Module]] = {"linear": Linear, "difference": Difference, "hidden": Hidden, "mlp": Mlp}
HEADS |= {"cosine": Cosine, "relu-cosine": ReluCosine, "scaled-cosine": ScaledCosine, "shared-pair": SharedPair}
HEADS["vectors"] = Cosine  # its unit vectors are read by their cosine


def log_of(probabilities: Tensor) -> Tensor:
    """Logits whose softmax is these probabilities."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()


def yes_or_no(yes: Tensor, task: dict[str, Any]) -> Tensor:
    return log_of(torch.cat([1 - yes, yes], dim=1))


def in_range(share: Tensor, task: dict[str, Any]) -> Tensor:
    low, high = task["range"]
    return low + share * (high - low)


def by_questions(output: Tensor, task: dict[str, Any]) -> Tensor:
    """Of several labels the logit of each; of two classes the logits (0, o), whose softmax is the sigmoid of o."""
    if task["gives_probability"]:
        return yes_or_no(output, task)
    return output if task["outputs"] > 1 else torch.cat([torch.zeros_like(output), output], dim=1)


def by_shares(output: Tensor, task: dict[str, Any]) -> Tensor:
    shares = output.sigmoid().clamp(min=TINY)
    return log_of(shares / shares.sum(dim=1, keepdim=True))


LOGITS: dict[str, Callable[[Tensor, dict[str, Any]], Tensor]] = {
    **dict.fromkeys(("cross-entropy", "ordinal-log", "focal", "logit-adjusted"), lambda output, _: output),
    "in-batch-negatives": lambda cos, _: cos,
    **dict.fromkeys(("cosent", "angle"), lambda cos, task: in_range(cos.clamp(0, 1), task)),
    "binary-cross-entropy": by_questions,
    "mse": lambda output, task: in_range(output, task) if task["scaled"] else output,
    "cosine-embedding": lambda cos, task: (in_range if task["range"] else yes_or_no)(cos.clamp(0, 1), task),
    "dual-objective": by_shares,
}
"""a loss -> what a head gives as logits for a softmax (for a sigmoid if several labels may apply), or as numbers"""


def build(known: Mapping[str, type[nn.Module]], variant: dict[str, Any], *shape: int) -> Any:
    """The module that a recipe's table names, with the settings beside the name."""
    return known[variant["name"]](*shape, **{key: value for key, value in variant.items() if key != "name"})


def real_tokens(input_ids: Tensor, attention_mask: Tensor | None, types: Tensor | None) -> tuple[Tensor, Tensor]:
    """[rows, positions] which tokens are real, and which of these belong to the second text."""
    mask = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
    return mask, torch.zeros_like(mask) if types is None else mask & types.bool()


class WeftModel(PreTrainedModel):
    """Body and pooling: one vector for each sequence."""

    config_class = WeftConfig
    base_model_prefix = "body"
    _supports_sdpa = True
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str] | None] = [r"^head\."]

    def __init__(self, config: WeftConfig) -> None:
        super().__init__(config)
        self.task = config.weft_task
        self.body = AutoModel.from_config(config.body_config, **self.task["body_options"])
        self.layer = LayerMix(config.body_config.num_hidden_layers) if self.task["layer"] == "mix" else None
        self.pooling = build(POOLINGS, self.task["pooling"], config.body_config.hidden_size)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> BaseModelOutputWithPooling:
        """States of the layer that the task reads, and its vectors; a bi task's texts go in one by one."""
        mask, second = real_tokens(input_ids, attention_mask, token_type_ids)
        if self.task["reading"] == "bi" and second.any():
            raise ValueError("this task gives each text a vector of its own: tokenize texts, not pairs")
        return self.encode(input_ids, mask, second)

    def encode(self, input_ids: Tensor, mask: Tensor, second: Tensor) -> BaseModelOutputWithPooling:
        """Of the tokens in `mask` alone, as if they had come without padding and without others between them."""
        order = mask.int().argsort(dim=1, descending=True, stable=True)[:, : int(mask.sum(dim=1).max())]
        ids, real, types = (tensor.gather(1, order) for tensor in (input_ids, mask, second.long()))
        longest = self.task["max_length"]
        if ids.shape[1] > longest:
            if self.task["reading"] in ("cross", "concat"):
                raise ValueError(f"found {ids.shape[1]} tokens, expected {longest}: tokenize with truncation=True")
            last = torch.where(real[:, longest], self.task["sep"], ids[:, longest - 1])
            ids = torch.cat([ids[:, : longest - 1], last[:, None]], dim=1)
            real, types = real[:, :longest], types[:, :longest]
        known, layer = {"token_type_ids": types} if self.task["types"] else {}, self.task["layer"]
        states = self.body(ids, attention_mask=real.long(), output_hidden_states=layer is not None, **known)
        hidden = states.last_hidden_state if self.layer is None else self.layer(states.hidden_states)
        if isinstance(layer, int):
            hidden = states.hidden_states[layer]
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=self.pooling(hidden, real))


class WeftForSequenceClassification(WeftModel):
    """Body, pooling and head: the answer for each row.

    `logits` are read as `config.problem_type` says: by a softmax, by a sigmoid for each label, or as they are for a
    regression, which gives numbers in the label's own units.
    """

    _keys_to_ignore_on_load_unexpected = None

    def __init__(self, config: WeftConfig) -> None:
        super().__init__(config)
        self.dropout = nn.Dropout(self.task["dropout"])
        sides = 2 if self.task["reading"] == "bi" else 1
        self.head = build(HEADS, self.task["head"], self.pooling.width, sides, self.task["outputs"])
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """Rows as the folder's tokenizer makes them: `tokenizer(texts)`, or `tokenizer(texts, second_texts)`."""
        mask, second = real_tokens(input_ids, attention_mask, token_type_ids)
        reading = self.task["reading"]
        if reading in ("bi", "cross") and not second.any(dim=1).all():
            raise ValueError("this task reads two texts: call tokenizer(texts, second_texts) and pass token_type_ids")
        if reading == "single" and second.any():
            raise ValueError("this task reads one text: call tokenizer(texts)")
        nothing = torch.zeros_like(second)
        sides = [(mask & ~second, nothing), (second, nothing)] if reading == "bi" else [(mask, second)]
        vectors = [self.encode(input_ids, *side).pooler_output for side in sides]
        kept = self.dropout(torch.ones_like(vectors[0]))  # one mask for both sides, which are compared
        output = self.head(vectors[0] * kept, vectors[1] * kept if len(vectors) > 1 else None)
        logits = LOGITS[self.task["loss"]](output, self.task) / self.task["temperature"]
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config)
        return SequenceClassifierOutput(loss=loss, logits=logits)
