"""Training runs of image classifiers."""

import torch
from torch import nn
from torch.nn import functional

from .training import Trace, add_run, draw


class Cnn(nn.Module):
    def __init__(self, config, channels, height, width, classes):
        super().__init__()
        c1, c2 = config["c1"], config["c2"]
        self.conv1 = nn.Conv2d(channels, c1, 3, padding=1)
        self.conv2 = nn.Conv2d(c1, c2, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(c1) if config["batch_norm"] else nn.Identity()
        self.bn2 = nn.BatchNorm2d(c2) if config["batch_norm"] else nn.Identity()
        self.fc1 = nn.Linear(c2 * (height // 4) * (width // 4), config["hidden"])
        self.fc2 = nn.Linear(config["hidden"], classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 2)
        x = functional.max_pool2d(functional.relu(self.bn2(self.conv2(x))), 2)
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """With the names of torchvision's."""

    def __init__(self, config, channels, classes):
        super().__init__()
        widths = config["widths"]
        self.conv1 = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.num_layers = len(widths)
        before = widths[0]
        for layer, width in enumerate(widths, start=1):
            blocks = [Block(before, width, 1 if layer == 1 else 2)] + [
                Block(width, width, 1) for _ in range(config["blocks"] - 1)
            ]
            setattr(self, f"layer{layer}", nn.Sequential(*blocks))
            before = width
        self.fc = nn.Linear(before, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        for layer in range(1, self.num_layers + 1):
            x = getattr(self, f"layer{layer}")(x)
        return self.fc(x.mean((2, 3)))


def drawings(random, steps, batch, shape, classes):
    """Bytes [steps, batch, ...] of one picture for each class with noise, and the classes."""
    labels = random.integers(steps, batch, below=classes)
    pictures = random.uniform(classes, *shape, low=40, high=215)
    images = pictures[labels] + random.normal(steps, batch, *shape, deviation=30.0)
    return images.round().clamp(0, 255).to(torch.uint8), labels.to(torch.int32)


def write_classifier(fixtures, folder, model, module, config, shape, steps, batch, classes, mean, std, runs):
    random = fixtures.random(folder)
    init = draw(module, random)
    images, labels = drawings(random, steps, batch, shape, classes)
    fixtures.add(f"{folder}/init", "model_init", init, model=model, config=config, notes="Names and layouts of torch.nn.")
    fixtures.add(
        f"{folder}/batches",
        "batches",
        {"images": images, "labels": labels},
        hyper={"normalise_mean": mean, "normalise_std": std, "source": "drawn by the generator"},
        notes="[steps, batch, (channels,) height, width]; the model reads (image/255 - mean)/std.",
    )
    channels_first = images if images.dim() == 5 else images[:, :, None]
    for name, hyper, whole in runs:

        def train(dtype):
            module.load_state_dict(init)
            module.to(dtype).train()
            shift, scale = (torch.tensor(values, dtype=dtype).view(-1, 1, 1) for values in (mean, std))
            trace = Trace(dict(module.named_parameters()), hyper)
            first = None
            for step in range(steps):
                logits = module((channels_first[step].to(dtype) / 255 - shift) / scale)
                first = logits.detach() if first is None else first
                trace.step(
                    functional.cross_entropy(logits, labels[step].long(), label_smoothing=hyper.get("label_smoothing", 0.0))
                )
            state = {key: value.detach().clone() for key, value in module.state_dict().items()}
            module.float()
            return (trace, state), first

        exact, logits = train(torch.float64)
        add_run(
            fixtures,
            f"{folder}/{name}",
            model,
            config,
            hyper,
            [exact, train(torch.float32)[0]],
            logits=logits,
            first_gradients=whole,
            notes="loss[t]: mean of batch t, before step t.",
        )


def write(fixtures):
    adamw = {
        "optim": {"name": "AdamW", "lr": 0.003, "weight_decay": 0.03, "betas": [0.85, 0.99], "eps": 1e-8},
        "label_smoothing": 0.1,
    }
    sgd = {"optim": {"name": "SGD", "lr": 0.03, "momentum": 0.8, "nesterov": True, "weight_decay": 0.001}, "clip": None}
    plain = {"optim": {"name": "SGD", "lr": 0.02, "momentum": 0.9, "weight_decay": 0.002}}
    config = {"c1": 5, "c2": 7, "hidden": 11, "batch_norm": False}
    write_classifier(
        fixtures,
        "cnn_mnist",
        "cnn_mnist",
        Cnn(config, 1, 14, 19, 6),
        config,
        (14, 19),
        6,
        7,
        6,
        [0.45],
        [0.3],
        [("run_adamw", adamw, True), ("run_sgd", sgd, False)],
    )
    config = {"c1": 6, "c2": 9, "hidden": 13, "batch_norm": True}
    write_classifier(
        fixtures,
        "cnn_mnist_bn",
        "cnn_mnist_bn",
        Cnn(config, 2, 13, 10, 5),
        config,
        (2, 13, 10),
        5,
        9,
        5,
        [0.5, 0.4],
        [0.25, 0.35],
        [("run_sgd", plain, True)],
    )
    config = {"widths": [6, 9, 5], "blocks": 2}
    write_classifier(
        fixtures,
        "resnet_cifar",
        "resnet_cifar",
        ResNet(config, 3, 7),
        config,
        (3, 9, 11),
        4,
        7,
        7,
        [0.5, 0.45, 0.4],
        [0.25, 0.3, 0.2],
        [("run_sgd", plain, True)],
    )
