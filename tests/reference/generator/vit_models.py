"""Small vision transformers as transformers writes them, and their outputs for some images."""

import copy
import pathlib
import tempfile

import torch
import transformers

from .fixture_set import safetensors

# name: class, options beyond SIZES
MODELS = {
    "vit": ("ViTForImageClassification", {}),
    "vit_half": (
        "ViTForImageClassification",
        {
            "num_channels": 1,
            "patch_size": 6,
            "num_attention_heads": 2,
            "hidden_act": "gelu_new",
            "layer_norm_eps": 1e-3,
            "dtype": "bfloat16",
        },
    ),
    "deit": ("DeiTForImageClassificationWithTeacher", {}),
}
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 12,
    "patch_size": 4,
    "id2label": {0: "cat", 1: "dog", 2: "bird", 3: "fish", 4: "newt"},
    "label2id": {"cat": 0, "dog": 1, "bird": 2, "fish": 3, "newt": 4},
}
BATCH = 4
LEARNING_RATE = 0.01


def model_of(name, random):
    kind, options = MODELS[name]
    model_class = getattr(transformers, kind)
    model = model_class(model_class.config_class(attn_implementation="eager", **(SIZES | options))).eval()
    dtype = getattr(torch, options.get("dtype", "float32"))
    with torch.no_grad():
        for parameter in model.parameters():
            center = 1.0 if parameter.dim() == 1 and (parameter == 1).all() else 0.0
            values = random.normal(*parameter.shape, deviation=0.25) + center
            parameter.copy_(values.to(dtype))  # rounded as in a file of this type
    return model, dtype


def losses(model, images, labels):
    """The losses of ten steps of SGD on the same batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images).logits, labels)
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def write(fixtures):
    for name in MODELS:
        random = fixtures.random(f"vit/{name}")
        model, dtype = model_of(name, random)
        with tempfile.TemporaryDirectory() as folder:
            copy.deepcopy(model).to(dtype).save_pretrained(folder)
            for file in sorted(pathlib.Path(folder).iterdir()):
                fixtures.write(f"vit/{name}/{file.name}", file.read_bytes())
        model = model.double()
        size, channels = model.config.image_size, model.config.num_channels
        images = random.normal(BATCH, size, size, channels)
        labels = random.integers(BATCH, below=len(SIZES["id2label"]))
        channels_first = images.permute(0, 3, 1, 2).double()
        with torch.no_grad():
            logits = model(channels_first).logits
        fixtures.write(
            f"vit/{name}/expected.safetensors",
            safetensors(
                {
                    "images": images.float().contiguous(),
                    "labels": labels.to(torch.int32),
                    "logits": logits.float(),
                    "sgd_losses": torch.tensor(losses(model, channels_first, labels), dtype=torch.float64),
                }
            ),
        )
    fixtures.write_json("vit/models.json", {"models": list(MODELS), "learning_rate": LEARNING_RATE})
    fixtures.add_other("vit", "vit/models.json", "folders_of_vit", "vision transformers, and in double what they say")
