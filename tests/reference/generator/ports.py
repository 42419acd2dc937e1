"""The programs of tests/ports: weights to start from, data, and the losses of 20 steps."""

import importlib.util
import pathlib

import torch

from .fixture_set import rounded_up
from .training import draw
from .word_models import sequences

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "ports"
MOST = 1e-4  # the relative tolerance of a loss


def program(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(random, count, length, words):
    """Words from 1 on, and 0 after the end of each text."""
    ends = random.integers(count, 1, below=length - 1) + 2
    return (random.integers(count, length, below=words - 1) + 1) * (torch.arange(length) < ends)


def unet(random):
    images = random.normal(4, 16, 16, 3)
    return {"images": images, "regions": (images.sum(3, keepdim=True) > 0.5).float()}


def conformer(random):
    return {
        "speech": random.normal(3, 16, 10),
        "letters": random.integers(3, 4, below=8) + 1,
        "times": torch.tensor([16, 13, 11]),
        "lengths": torch.tensor([4, 3, 4]),
    }


def vae(random):
    places = torch.arange(12.0)
    waves = torch.sin(random.uniform(6, 1, 1, low=0.3, high=1.0) * (places.view(12, 1) + 2 * places))
    return {"images": (waves > 0).float().unsqueeze(-1), "noise": random.normal(20, 6, 5)}


def two_tower(random):
    return {"queries": texts(random, 10, 5, 40), "items": texts(random, 10, 7, 60)}


def wavenet(random):
    return {"samples": sequences(random, 3, 33, 32)}


def graph_attention(random):
    nodes = torch.arange(20)
    edges = torch.cat([nodes.expand(2, 20), random.integers(2, 50, below=20)], 1)  # each node sees itself
    return {"nodes": random.normal(20, 12), "edges": edges, "classes": random.integers(20, below=5)}


PORTS = {
    "conformer": (conformer, "Recognizer"),
    "graph_attention": (graph_attention, "GraphNet"),
    "two_tower": (two_tower, "TwoTower"),
    "unet": (unet, "UNet"),
    "vae": (vae, "Vae"),
    "wavenet": (wavenet, "WaveNet"),
}


def losses_of(train, weights, data, dtype):
    def converted(tensors):
        return {name: value.to(dtype) if value.is_floating_point() else value.clone() for name, value in tensors.items()}

    torch.set_default_dtype(dtype)
    try:
        return torch.tensor(train(converted(weights), converted(data)), dtype=torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)


def write(fixtures):
    for name, (draw_data, model) in PORTS.items():
        original = program(name)
        random = fixtures.random(f"ports/{name}")
        net = getattr(original, model)()
        weights = draw(net, random)
        for path, module in net.named_modules():
            if getattr(module, "padding_idx", None) is not None:
                weights[f"{path}.weight"][module.padding_idx] = 0
        data = draw_data(random)
        exact, approximate = (losses_of(original.train, weights, data, dtype) for dtype in (torch.float64, torch.float32))
        rtol = rounded_up(max(2e-6, 16 * ((exact - approximate) / exact).abs().max().item()))
        if rtol > MOST or not exact[-1] < exact[0]:
            raise RuntimeError(f"{name}: losses {exact.tolist()}, a float32 run is off by {rtol / 16}")
        fixtures.add(f"ports/{name}_weights", "port_weights", weights, notes="The state dict of the original.")
        stored = {key: value if value.is_floating_point() else value.to(torch.int32) for key, value in data.items()}
        fixtures.add(
            f"ports/{name}",
            "port",
            stored | {"loss_f64": exact, "loss_f32": approximate},
            port=name,
            weights=f"ports/{name}_weights",
            tolerance={"atol": 0.0, "rtol": rtol},
            notes=f"tests/ports/{name}.py; loss[t]: before step t. Images are [batch, height, width, channels].",
        )
