"""The body against transformers' BertModel: states, gradients, layouts, files."""

import numpy as np
import pytest
import torch
from transformers import AutoModel

from tests.parity.harness import hugging_face_gradients, pad, random_bert, unpad
from tests.texts import MIXED_SENTENCES
from weft.bodies.source import find_body
from weft.bodies.weights import load_body
from weft.data.readings import Reader, pack
from weft.data.tokenizer import Tokenizer
from weft.foundation.values import Encoded

BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 1000,
}


def packaged_sentences() -> Encoded:
    tokenizer = Tokenizer.load(find_body("packaged:minilm-l6"))
    reader = Reader("single", tokenizer.cls, tokenizer.sep, 128)
    ids = [np.array(ids, dtype=np.int32) for ids in tokenizer.encode(MIXED_SENTENCES)]
    return pack([reader.sequences(one, None)[0] for one in ids])


def random_sequences(vocabulary: int, lengths: list[int]) -> Encoded:
    generator = torch.Generator().manual_seed(5)
    total = sum(lengths)
    return Encoded(
        torch.randint(vocabulary, (total,), generator=generator),
        torch.randint(2, (total,), generator=generator),
        tuple(lengths),
    )


def test_last_hidden_state_on_packaged_weights() -> None:
    folder = find_body("packaged:minilm-l6")
    encoded = packaged_sentences()
    assert len(encoded.lengths) == 64
    assert len(set(encoded.lengths)) > 12
    ids, mask, segments = pad(encoded)
    with torch.no_grad():
        theirs = AutoModel.from_pretrained(folder).eval()(ids, attention_mask=mask, token_type_ids=segments)
        ours = load_body(folder).eval()(encoded)[-1]
    assert (ours - unpad(theirs.last_hidden_state, encoded)).abs().max() < 1e-5


def test_every_layer_of_a_random_base_model(tmp_path) -> None:
    theirs = random_bert(tmp_path, **BASE)
    encoded = random_sequences(1000, [3, 50, 50, 17, 128, 1, 17, 64])
    ids, mask, segments = pad(encoded)
    body = load_body(tmp_path).eval()
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask, token_type_ids=segments, output_hidden_states=True)
        packed = body(encoded)
        padded = body.padded(ids, mask, segments)
    assert len(packed) == len(expected.hidden_states) == 13
    for ours, ours_padded, hidden in zip(packed, padded, expected.hidden_states, strict=True):
        assert (ours - unpad(hidden, encoded)).abs().max() < 1e-5
        assert (unpad(ours_padded, encoded) - unpad(hidden, encoded)).abs().max() < 1e-5
    pooled = torch.tanh(body.pooler(packed[-1][encoded.starts]))
    assert (pooled - expected.pooler_output).abs().max() < 1e-5


@pytest.mark.parametrize("layout", ["packed", "padded"])
def test_gradients_of_all_parameters_in_float64(tmp_path, layout: str) -> None:
    theirs = random_bert(
        tmp_path, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, vocab_size=90
    ).double()
    encoded = random_sequences(90, [5, 12, 1, 12, 30])
    ids, mask, segments = pad(encoded)
    weights = torch.randn(sum(encoded.lengths), 48, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    output = theirs(ids, attention_mask=mask, token_type_ids=segments)
    ((unpad(output.last_hidden_state, encoded) * weights).sum() + output.pooler_output.square().sum()).backward()

    body = load_body(tmp_path).double().eval()
    if layout == "packed":
        hidden = body(encoded)[-1]
    else:
        hidden = unpad(body.padded(ids, mask, segments)[-1], encoded)
    pooled = torch.tanh(body.pooler(hidden[encoded.starts]))
    ((hidden * weights).sum() + pooled.square().sum()).backward()

    expected = {name: p.grad for name, p in theirs.named_parameters()}
    ours = hugging_face_gradients(body, layers=3)
    assert ours.keys() == expected.keys()
    largest = max(g.abs().max() for g in expected.values())
    for name, gradient in expected.items():
        assert (ours[name] - gradient).abs().max() / largest < 1e-9, name
