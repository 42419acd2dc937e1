"""The results of training on real data, and a classifier trained on them: slow, and needs the data."""

import gzip
import math

import numpy
import torch
from torch.nn import functional

from .fixture_set import safetensors
from .image_models import Cnn
from .training import Trace
from .word_models import gpt_loss, gpt_weights

FILE = "convergence/convergence.json"
SEEDS = 3
GPT = {"n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 256, "n_positions": 64}
GPT_HYPER = {
    "steps": 600,
    "batch": 16,
    "block": 64,
    "optimizer": "AdamW",
    "lr": 0.003,
    "betas": [0.9, 0.95],
    "eps": 1e-8,
    "weight_decay": 0.1,
    "decay": "tensors with 2 or more dimensions",
    "clip": 1.0,
    "schedule": {"warmup": 30, "total": 600, "min_ratio": 0.1},
}
CNN = {"c1": 6, "c2": 11, "hidden": 24, "batch_norm": False}
CNN_HYPER = {"epochs": 1, "batch": 64, "optimizer": "Adam", "lr": 0.002, "betas": [0.9, 0.999], "eps": 1e-8}


def windows(text, starts, length):
    return torch.stack([text[start : start + length + 1] for start in starts])


def train_gpt(random, training, validation):
    weights = gpt_weights(GPT, random)
    for name, value in weights.items():
        if value.dim() == 2:
            last = name.endswith("c_proj.weight")
            value.normal_(0, 0.02 / math.sqrt(2 * GPT["n_layer"]) if last else 0.02, generator=random.generator)
        else:
            value.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
        value.requires_grad_()
    trace = Trace(weights, GPT_HYPER)
    length = GPT_HYPER["block"]
    for _ in range(GPT_HYPER["steps"]):
        batch = windows(training, random.integers(GPT_HYPER["batch"], below=len(training) - length), length)
        trace.step(gpt_loss(weights, GPT, batch[:, :-1], batch[:, 1:]))
    starts = range(0, len(validation) - length, len(validation) // 64)
    with torch.no_grad():
        batch = windows(validation, starts, length)
        return gpt_loss(weights, GPT, batch[:, :-1], batch[:, 1:]).item()


def read_mnist(folder, part):
    images = numpy.frombuffer(gzip.open(folder / f"{part}-images-idx3-ubyte.gz").read(), numpy.uint8, offset=16)
    labels = numpy.frombuffer(gzip.open(folder / f"{part}-labels-idx1-ubyte.gz").read(), numpy.uint8, offset=8)
    pixels = torch.from_numpy(images.copy()).view(-1, 1, 28, 28)
    return pixels, torch.from_numpy(labels.copy()).long()


def normalised(images, dtype=torch.float32):
    return (images.to(dtype) / 255 - 0.1307) / 0.3081


def train_cnn(random, images, labels):
    torch.manual_seed(random.integers(1, below=2**31).item())  # torch's own initial values
    model = Cnn(CNN, 1, 28, 28, 10)
    trace = Trace(dict(model.named_parameters()), CNN_HYPER)
    order = torch.randperm(len(images), generator=random.generator)
    for rows in order[: len(order) // CNN_HYPER["batch"] * CNN_HYPER["batch"]].view(-1, CNN_HYPER["batch"]):
        trace.step(functional.cross_entropy(model(normalised(images[rows])), labels[rows]))
    return model


def write_cnn(fixtures, data):
    images, labels = read_mnist(data / "mnist", "train")
    test_images, test_labels = read_mnist(data / "mnist", "t10k")
    models = [train_cnn(fixtures.random(f"convergence/cnn/{seed}"), images, labels) for seed in range(SEEDS)]
    answers = []
    with torch.no_grad():
        weights = {name: value.clone() for name, value in models[0].state_dict().items()}
        for model in models:
            model.double()
            answers.append(torch.cat([model(normalised(part, torch.float64)) for part in test_images.split(500)]))
    found = [(logits.argmax(1) == test_labels).sum().item() for logits in answers]
    fixtures.write("convergence/mnist_cnn.safetensors", safetensors(weights))
    fixtures.write(
        "convergence/mnist_cnn.expected.safetensors",
        safetensors(
            {
                "logits_first256": answers[0][:256].float(),
                "prediction": answers[0].argmax(1).to(torch.uint8),
            }
        ),
    )
    return {
        "config": CNN,
        "hyper": CNN_HYPER,
        "correct_of_10000_after_one_epoch": found,
        "pretrained": {
            "file": "convergence/mnist_cnn.safetensors",
            "expected": "convergence/mnist_cnn.expected.safetensors",
            "correct_of_10000": found[0],
            "test_loss": functional.cross_entropy(answers[0], test_labels).item(),
            "notes": "Images as (image/255 - 0.1307)/0.3081.",
        },
    }


def write_gpt(fixtures, data):
    text = torch.frombuffer(bytearray((data / "text/tinyshakespeare.txt").read_bytes()), dtype=torch.uint8).long()
    training, validation = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    losses = [train_gpt(fixtures.random(f"convergence/gpt/{seed}"), training, validation) for seed in range(SEEDS)]
    return {"config": GPT, "hyper": GPT_HYPER, "validation_loss_by_step": {str(GPT_HYPER["steps"]): losses}}


def write(fixtures, data):
    """Without data the results of an earlier run are kept."""
    if data is not None:
        fixtures.write_json(FILE, {"gpt_tinyshakespeare": write_gpt(fixtures, data), "cnn_mnist": write_cnn(fixtures, data)})
    if (fixtures.folder / FILE).is_file():
        fixtures.add_other("convergence", FILE, "pretrained_and_convergence", "losses and hits of several seeds on real data")
