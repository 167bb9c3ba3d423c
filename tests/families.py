"""A random body of every family, as `transformers` itself writes it, with a tokenizer of the family's kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from tests.texts import WORDS
from tests.tiny import ANIMALS, BAD, GOOD, write_tokenizer
from weft.bodies.registry import FAMILIES

BERT = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 40}
PLAIN = BERT | {"max_position_embeddings": 40}
OFFSET = BERT | {"max_position_embeddings": 42, "type_vocab_size": 1}
RELATIVE = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
SMALL: dict[str, dict[str, Any]] = {
    "bert": PLAIN,
    "roberta": OFFSET,
    "xlm-roberta": OFFSET,
    "camembert": OFFSET,
    "distilbert": {"dim": 24, "n_layers": 3, "n_heads": 2, "hidden_dim": 40, "max_position_embeddings": 40},
    "electra": PLAIN | {"embedding_size": 10},
    "albert": PLAIN | {"embedding_size": 10},
    "mpnet": BERT | {"max_position_embeddings": 42},
    "modernbert": PLAIN | {"num_hidden_layers": 4, "local_attention": 8},
    "deberta-v2": PLAIN | RELATIVE | {"position_buckets": 8},
}
"""at most 40 tokens; heads of 12 numbers, because the root of 3 x 12 is exact in any precision"""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "electra-as-wide": ("electra", PLAIN | {"embedding_size": 24}),
    "modernbert-biased": (
        "modernbert",
        SMALL["modernbert"] | {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "local_attention": 100},
    ),
    "deberta-absolute": (
        "deberta-v2",
        PLAIN
        | RELATIVE
        | {"share_att_key": False, "norm_rel_ebd": "none", "position_biased_input": True, "embedding_size": 10}
        | {"type_vocab_size": 2, "max_relative_positions": 16},
    ),
    "deberta-c2p": ("deberta-v2", PLAIN | RELATIVE | {"pos_att_type": "c2p", "share_att_key": False}),
    "roberta-typed": ("roberta", OFFSET | {"type_vocab_size": 2}),
}
"""what some checkpoints of a family have that others have not"""

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
REALISTIC: dict[str, dict[str, Any]] = {
    "bert": BASE,
    "roberta": BASE | {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "xlm-roberta": BASE | {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "camembert": BASE | {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    "distilbert": {},
    "electra": {},
    "albert": BASE,
    "mpnet": BASE | {"max_position_embeddings": 514, "layer_norm_eps": 1e-5},
    "modernbert": {},
    "deberta-v2": BASE | RELATIVE | {"num_hidden_layers": 6, "position_buckets": 256},
}
"""the sizes of the families' base bodies, or of the one that their defaults describe"""


def config_of(model_type: str, vocabulary: int, sizes: dict[str, Any]) -> Any:
    """A config whose special tokens are inside the vocabulary."""
    if model_type == "modernbert":
        special = {"pad": 0, "bos": 2, "eos": 3, "cls": 2, "sep": 3}
        sizes = sizes | {f"{name}_token_id": number for name, number in special.items()}
    return AutoConfig.for_model(model_type, vocab_size=vocabulary, **sizes)


def random_body(
    folder: Path, model_type: str, vocabulary: int, sizes: dict[str, Any], norm: float = 0.0
) -> PreTrainedModel:
    """Saved by `transformers` itself; `norm` is the mean weight of its norms."""
    torch.manual_seed(0)
    model = AutoModel.from_config(config_of(model_type, vocabulary, sizes))
    for name, parameter in model.named_parameters():  # its own start is too close to zero to tell mistakes apart
        mean = norm if parameter.ndim == 1 and name.endswith("weight") else 0.0
        nn.init.normal_(parameter, mean, std=0.08 if parameter.ndim > 1 else 0.3)
    model.save_pretrained(folder)
    return model.eval()


def write_family(folder: Path, model_type: str, **sizes: Any) -> Path:
    """A small body with a tokenizer; `sizes` replace those of `SMALL`."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = TOKENIZERS[model_type](folder)
    random_body(folder, model_type, vocabulary, SMALL[model_type] | sizes, norm=1.0)  # texts must not look all alike
    return folder


def _trained(rust: RustTokenizer, trainer: Any, processor: Any, folder: Path) -> int:
    rust.train_from_iterator([" ".join([*WORDS, *GOOD, *BAD, *ANIMALS, "a", "film", "sees", "no"])] * 3, trainer)
    rust.post_processor = processor(rust)
    rust.save(str(folder / "tokenizer.json"))
    return int(rust.get_vocab_size())


def _template(first: str, last: str, between: str, second: int) -> Callable[[RustTokenizer], Any]:
    """`first a last`, and a pair whose second text has the token type `second`."""

    def processor(rust: RustTokenizer) -> Any:
        return processors.TemplateProcessing(
            single=f"{first} $A {last}",
            pair=f"{first} $A {between} $B:{second} {last}:{second}",
            special_tokens=[(token, rust.token_to_id(token)) for token in (first, last)],
        )

    return processor


def _byte_pairs(special: list[str], processor: Callable[[RustTokenizer], Any]) -> Callable[[Path], int]:
    def write(folder: Path) -> int:
        rust = RustTokenizer(models.BPE())
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        rust.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=420, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
        return _trained(rust, trainer, processor, folder)

    return write


def _unigrams(special: list[str], unknown: str, processor: Callable[[RustTokenizer], Any]) -> Callable[[Path], int]:
    def write(folder: Path) -> int:
        rust = RustTokenizer(models.Unigram())
        rust.normalizer = normalizers.NFKC()
        rust.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=150, special_tokens=special, unk_token=unknown, show_progress=False
        )
        return _trained(rust, trainer, processor, folder)

    return write


def _word_pieces(special: list[str], processor: Callable[[RustTokenizer], Any]) -> Callable[[Path], int]:
    def write(folder: Path) -> int:
        rust = RustTokenizer(models.WordPiece(unk_token="[UNK]"))
        rust.normalizer = normalizers.BertNormalizer()
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
        return _trained(rust, trainer, processor, folder)

    return write


def _roberta_processor(rust: RustTokenizer) -> Any:
    return processors.RobertaProcessing(("</s>", rust.token_to_id("</s>")), ("<s>", rust.token_to_id("<s>")))


FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
DOUBLE = _template("<s>", "</s>", "</s> </s>", 0)
BERTS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TYPED = _template("[CLS]", "[SEP]", "[SEP]", 1)
TOKENIZERS: dict[str, Callable[[Path], int]] = {
    "bert": write_tokenizer,
    "roberta": _byte_pairs(FAIRSEQ, _roberta_processor),
    "xlm-roberta": _unigrams(FAIRSEQ, "<unk>", DOUBLE),
    "camembert": _unigrams(FAIRSEQ, "<unk>", DOUBLE),
    "distilbert": write_tokenizer,
    "electra": write_tokenizer,
    "albert": _unigrams(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], "<unk>", TYPED),
    "mpnet": _word_pieces([*FAIRSEQ[:3], "[UNK]", "<mask>"], DOUBLE),
    "modernbert": _byte_pairs(BERTS, _template("[CLS]", "[SEP]", "[SEP]", 0)),
    "deberta-v2": _unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"], "[UNK]", TYPED),
}
"""the kind of tokenizer, the special tokens and the template that the family's published checkpoints have"""

assert SMALL.keys() == REALISTIC.keys() == TOKENIZERS.keys() == FAMILIES.keys(), "every family has its rows here"
