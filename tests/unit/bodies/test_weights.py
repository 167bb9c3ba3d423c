import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.tiny import write_body
from weft.bodies.body import Body
from weft.bodies.registry import FAMILIES
from weft.bodies.shape import BodyShape
from weft.bodies.weights import from_hugging_face, load_body, read_shape, to_hugging_face
from weft.foundation.errors import RunError, UserError
from weft.tasks.store import body_tensors

SMALL = BodyShape(vocabulary=11, width=8, layers=2, heads=2, inner=12, positions=9)


def test_names_go_there_and_back() -> None:
    state = {name: p.detach() for name, p in Body(SMALL).named_parameters()}
    theirs = to_hugging_face(state, SMALL)
    back = from_hugging_face(theirs, SMALL, "test")
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)
    assert len(theirs) == 2 * 16 + 5 + 2


def test_old_spellings_are_understood(tmp_path: Path) -> None:
    write_body(tmp_path)
    modern = load_file(tmp_path / "model.safetensors")
    old = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for name, t in modern.items()
    }
    old["cls.predictions.bias"] = torch.zeros(3)
    (tmp_path / "model.safetensors").unlink()
    torch.save(old, tmp_path / "pytorch_model.bin")
    body = load_body(tmp_path)
    expected = from_hugging_face(modern, body.shape, "test")
    assert all(torch.equal(p, expected[name]) for name, p in body.named_parameters())


def test_a_checkpoint_without_a_pooler_keeps_the_random_one(tmp_path: Path) -> None:
    write_body(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({k: v for k, v in tensors.items() if not k.startswith("pooler")}, tmp_path / "model.safetensors")
    assert load_body(tmp_path).pooler.weight.std() > 0


@pytest.mark.parametrize("found", ["gpt2", "deberta", "xlnet", ["bert"], None])
def test_an_unknown_architecture_is_rejected_with_the_known_ones(tmp_path: Path, found: object) -> None:
    write_body(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": found}), encoding="utf-8")
    with pytest.raises(UserError) as error:
        load_body(tmp_path)
    assert f"model_type is {found!r}; this architecture is not supported. Expected one of bert, roberta," in str(
        error.value
    )
    assert all(known in str(error.value) for known in FAMILIES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": "many"}, "hidden_size is 'many', expected a int"),
        ({"hidden_size": 17}, "not a multiple of 2 heads"),
        ({"hidden_act": "swish"}, "hidden_act is 'swish'"),
        ({"is_decoder": True}, "encoders only"),
        ({"position_embedding_type": "relative_key"}, "expected 'absolute'"),
        ({"num_hidden_layers": 3}, "encoder.layer.2.attention.self.query.weight is missing"),
        ({"num_hidden_layers": 1}, "do not belong to a 1-layer BERT"),
        ({"intermediate_size": 48}, "but config.json asks for"),
    ],
)
def test_a_config_that_does_not_fit(tmp_path: Path, change: dict[str, object], message: str) -> None:
    write_body(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change), encoding="utf-8")
    with pytest.raises(UserError, match=message) as error:
        load_body(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_damaged_files(tmp_path: Path) -> None:
    write_body(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_body(tmp_path)
    weights.unlink()
    with pytest.raises(UserError, match="neither model.safetensors nor pytorch_model.bin"):
        load_body(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"not an archive")
    with pytest.raises(UserError, match="cannot be read as plain tensors"):
        load_body(tmp_path)
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="is not JSON"):
        load_body(tmp_path)


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("code from a model folder ran",))


def test_no_code_from_an_old_checkpoint_is_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_body(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"x": _Evil()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError):
        load_body(tmp_path)
    assert "ran" not in capfd.readouterr().out


def test_dropout_of_the_checkpoint_unless_said(tmp_path: Path) -> None:
    write_body(tmp_path, dropout=0.2)
    assert read_shape(tmp_path).dropout == 0.2
    assert load_body(tmp_path).embeddings.dropout.p == 0.2
    changed = load_body(tmp_path, dropout=0.4, attention_dropout=0.0)
    assert (changed.embeddings.dropout.p, changed.layers[0].attention_dropout) == (0.4, 0.0)


def test_a_parameter_that_would_be_written_nowhere_stops_saving() -> None:
    """A body that has grown a tensor must not lose it silently on its way to disk."""
    body = Body(SMALL)
    body.layers[1].gate = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(RunError, match=r"layers\.1\.gate has no name in a BERT checkpoint"):
        body_tensors(body)
    body.layers[1].gate = None
    body.register_buffer("scale", torch.ones(1))
    with pytest.raises(RunError, match="parameter scale has no name"):
        body_tensors(body)
    body.scale = None
    assert body_tensors(body, layers=1).keys() < body_tensors(body).keys()


def test_without_segments_both_texts_keep_the_pretrained_vector_of_type_0() -> None:
    body = Body(SMALL).eval()
    ids = torch.tensor([[1, 2, 3, 4]])
    mask, types = torch.ones_like(ids), torch.tensor([[0, 0, 1, 1]])
    all_first = body.padded(ids, mask, torch.zeros_like(types))[-1]
    assert not torch.allclose(body.padded(ids, mask, types)[-1], all_first)
    body.leave_segments_out()
    torch.testing.assert_close(body.padded(ids, mask, types)[-1], all_first)
    saved = body_tensors(body)["embeddings.token_type_embeddings.weight"]
    assert torch.equal(saved, body.embeddings.segments.weight[:1].expand_as(saved))
