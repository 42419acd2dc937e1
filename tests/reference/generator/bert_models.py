"""Small BERTs as transformers writes them, and their outputs for some padded texts."""

import copy
import pathlib
import tempfile

import torch
import transformers

from .fixture_set import safetensors

# name: class, options beyond SIZES
MODELS = {
    "masked": ("BertForMaskedLM", {}),
    "classifier": (
        "BertForSequenceClassification",
        {
            "id2label": {0: "no", 1: "yes", 2: "both"},
            "label2id": {"no": 0, "yes": 1, "both": 2},
            "hidden_act": "relu",
            "layer_norm_eps": 1e-3,
            "dtype": "float16",
        },
    ),
}
SIZES = {
    "vocab_size": 53,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
LENGTHS = [16, 11, 16, 5]
TIME = 16
LEARNING_RATE = 0.01


def model_of(name, random):
    kind, options = MODELS[name]
    config = transformers.BertConfig(attn_implementation="eager", **(SIZES | options))
    model = getattr(transformers, kind)(config).eval()
    dtype = getattr(torch, options.get("dtype", "float32"))
    with torch.no_grad():
        for parameter in model.parameters():
            center = 1.0 if parameter.dim() == 1 and (parameter == 1).all() else 0.0
            values = random.normal(*parameter.shape, deviation=0.25) + center
            parameter.copy_(values.to(dtype))  # rounded as in a file of this type
    return model, dtype


def losses(model, inputs, targets):
    """The losses of ten steps of SGD on the same batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        logits = model(**inputs).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def write(fixtures):
    for name in MODELS:
        random = fixtures.random(f"bert/{name}")
        model, dtype = model_of(name, random)
        with tempfile.TemporaryDirectory() as folder:
            copy.deepcopy(model).to(dtype).save_pretrained(folder)
            for file in sorted(pathlib.Path(folder).iterdir()):
                if file.name != "generation_config.json":
                    fixtures.write(f"bert/{name}/{file.name}", file.read_bytes())
        model = model.double()
        tokens = random.integers(len(LENGTHS), TIME, below=SIZES["vocab_size"] - 1) + 1
        attended = (torch.arange(TIME)[None] < torch.tensor(LENGTHS)[:, None]).long()
        tokens = tokens * attended  # 0 is the padding token; transformers never changes its vector
        types = (torch.arange(TIME)[None] >= torch.tensor(LENGTHS)[:, None] // 2).long()
        inputs = {"input_ids": tokens, "attention_mask": attended, "token_type_ids": types}
        if name == "masked":
            chosen = (random.uniform(len(LENGTHS), TIME) < 0.3) & (attended == 1)
            targets = torch.where(chosen, random.integers(len(LENGTHS), TIME, below=SIZES["vocab_size"]), -100)
        else:
            targets = random.integers(len(LENGTHS), below=3)
        with torch.no_grad():
            logits = model(**inputs).logits
        fixtures.write(
            f"bert/{name}/expected.safetensors",
            safetensors(
                {
                    "tokens": tokens.to(torch.int32),
                    "padding": (1 - attended).to(torch.int32),
                    "types": types.to(torch.int32),
                    "targets": targets.to(torch.int32),
                    "logits": logits.float(),
                    "sgd_losses": torch.tensor(losses(model, inputs, targets), dtype=torch.float64),
                }
            ),
        )
    fixtures.write_json("bert/models.json", {"models": list(MODELS), "learning_rate": LEARNING_RATE})
    fixtures.add_other("bert", "bert/models.json", "folders_of_bert", "BERTs, and in double what they say of padded texts")
