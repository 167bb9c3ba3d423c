"""Bodies of every family against those of transformers: states, gradients, layouts, files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from tests.families import REALISTIC, SMALL, VARIANTS, random_body
from tests.parity.harness import hugging_face_gradients, inputs_of, pad, random_sequences, unpad
from tests.texts import MIXED_SENTENCES
from weft.bodies.body import Body
from weft.bodies.source import find_body
from weft.bodies.weights import hugging_face_config, load_body, write_config
from weft.data.readings import Reader, pack
from weft.data.tokenizer import Tokenizer
from weft.foundation.values import Encoded
from weft.tasks.store import body_tensors, save_tensors

CASES = {name: (name, sizes) for name, sizes in SMALL.items()} | VARIANTS
LENGTHS = [5, 12, 1, 12, 40, 1, 33]
"""40 is the limit"""


def packaged_sentences() -> Encoded:
    tokenizer = Tokenizer.load(find_body("packaged:minilm-l6"))
    reader = Reader("single", tokenizer.template, 128)
    ids = [np.array(ids, dtype=np.int32) for ids in tokenizer.encode(MIXED_SENTENCES)]
    return pack([reader.sequences(one, None)[0] for one in ids])


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


@torch.no_grad()
def compare_layers(
    folder: Path, model_type: str, vocabulary: int, sizes: dict[str, object], lengths: list[int]
) -> None:
    """All hidden states and the pooler, packed and padded, within 1e-5; of the largest number where that is above 1."""
    theirs = random_body(folder, model_type, vocabulary, sizes)
    body = load_body(folder).eval()
    encoded = random_sequences(vocabulary, lengths)
    expected = theirs(**inputs_of(body, encoded), output_hidden_states=True)
    packed, padded = body(encoded), body.padded(*pad(encoded, body.shape.pad))
    assert len(packed) == len(padded) == len(expected.hidden_states) == body.shape.layers + 1
    for ours, ours_padded, theirs_padded in zip(packed, padded, expected.hidden_states, strict=True):
        hidden = unpad(theirs_padded, encoded)
        largest = hidden.abs().max().clamp(min=1)  # what no norm has bounded, between ModernBERT's layers, grows to 20
        assert (ours - hidden).abs().max() / largest < 1e-5
        assert (unpad(ours_padded, encoded) - hidden).abs().max() / largest < 1e-5
    assert (packed[-1] - unpad(expected.last_hidden_state, encoded)).abs().max() < 1e-5
    if body.pooler is not None:
        pooled = torch.tanh(body.pooler(packed[-1][encoded.starts]))
        assert (pooled - expected.pooler_output).abs().max() < 1e-5


@pytest.mark.parametrize("case", CASES)
def test_every_layer(tmp_path: Path, case: str) -> None:
    compare_layers(tmp_path, CASES[case][0], 90, CASES[case][1], LENGTHS)


@pytest.mark.parametrize(
    "model_type", [name if name == "bert" else pytest.param(name, marks=pytest.mark.long) for name in REALISTIC]
)
def test_every_layer_of_a_body_of_real_size(tmp_path: Path, model_type: str) -> None:
    compare_layers(tmp_path, model_type, 1000, REALISTIC[model_type], [3, 50, 50, 17, 128, 1, 17, 300])


@pytest.mark.parametrize("layout", ["packed", "padded"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("exact_rotation")
def test_gradients_of_all_parameters_in_float64(tmp_path: Path, case: str, layout: str) -> None:
    theirs = random_body(tmp_path, CASES[case][0], 90, CASES[case][1]).double()
    body = load_body(tmp_path).double().eval()
    encoded = random_sequences(90, LENGTHS)
    shape = sum(encoded.lengths), body.shape.width
    weights = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    output = theirs(**inputs_of(body, encoded))
    pooled = output.pooler_output.square().sum() if body.pooler is not None else 0
    ((unpad(output.last_hidden_state, encoded) * weights).sum() + pooled).backward()

    if layout == "packed":
        hidden = body(encoded)[-1]
    else:
        hidden = unpad(body.padded(*pad(encoded, body.shape.pad))[-1], encoded)
    pooled = torch.tanh(body.pooler(hidden[encoded.starts])).square().sum() if body.pooler is not None else 0
    ((hidden * weights).sum() + pooled).backward()

    expected = {name: p.grad for name, p in theirs.named_parameters()}
    ours = hugging_face_gradients(body)
    assert ours.keys() == expected.keys()
    largest = max(g.abs().max() for g in expected.values())
    for name, gradient in expected.items():
        assert (ours[name] - gradient).abs().max() / largest < 1e-9, name


@pytest.mark.parametrize("case", CASES)
def test_what_weft_saves_opens_in_transformers_with_the_same_states(tmp_path: Path, case: str) -> None:
    random_body(tmp_path, CASES[case][0], 90, CASES[case][1])
    body = load_body(tmp_path).eval()
    saved = tmp_path / "saved"
    saved.mkdir()
    write_config(body.shape, saved)
    save_tensors(body_tensors(body), saved / "model.safetensors")
    theirs, loading = AutoModel.from_pretrained(saved, output_loading_info=True)
    assert not any(loading.values()), loading
    encoded = random_sequences(90, LENGTHS)
    with torch.no_grad():
        output = theirs.eval()(**inputs_of(body, encoded)).last_hidden_state
        assert (body(encoded)[-1] - unpad(output, encoded)).abs().max() < 1e-6
    again = load_body(saved)
    assert again.shape == body.shape
    assert all(torch.equal(p, q) for p, q in zip(again.parameters(), body.parameters(), strict=True))
    assert hugging_face_config(again.shape) == hugging_face_config(body.shape)


def gradients(body: Body, encoded: Encoded, read: Tensor | None) -> list[Tensor | None]:
    body.zero_grad()
    body(encoded, read)[-1][encoded.starts].square().sum().backward()
    return [None if p.grad is None else p.grad.clone() for p in body.parameters()]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("model_type", SMALL)
def test_first_tokens_alone_and_layers_computed_again_change_nothing(
    tmp_path: Path, model_type: str, recompute: bool
) -> None:
    random_body(tmp_path, model_type, 90, SMALL[model_type])
    body = load_body(tmp_path).double().eval()
    encoded = random_sequences(90, LENGTHS)
    expected = gradients(body, encoded, None)
    body.recompute = recompute
    states, whole = body(encoded, encoded.starts), body(encoded)
    torch.testing.assert_close(states[-1][encoded.starts], whole[-1][encoded.starts], rtol=0, atol=1e-12)
    for one, other in zip(gradients(body, encoded, encoded.starts), expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("model_type", ["roberta", "mpnet"])
def test_a_text_that_spells_the_padding_token_has_the_positions_of_transformers(
    tmp_path: Path, model_type: str
) -> None:
    theirs = random_body(tmp_path, model_type, 90, SMALL[model_type])
    body = load_body(tmp_path).eval()
    encoded = random_sequences(90, [9, 4, 9, 1, 6])
    encoded.ids[[3, 4, 10, 21]] = body.shape.pad
    ids, mask, _ = pad(encoded, body.shape.pad)
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=mask).last_hidden_state
        assert (body(encoded)[-1] - unpad(expected, encoded)).abs().max() < 1e-5
        assert (unpad(body.padded(ids, mask, torch.zeros_like(ids))[-1] - expected, encoded)).abs().max() < 1e-5


@torch.no_grad()
def test_texts_far_longer_than_512_tokens(tmp_path: Path) -> None:
    sizes = SMALL["modernbert"] | {"max_position_embeddings": 2048, "local_attention": 128}
    compare_layers(tmp_path, "modernbert", 90, sizes, [1500, 7, 600, 2048])
