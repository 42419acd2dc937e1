"""Training runs of generative adversarial networks."""

import torch
from torch import nn
from torch.nn import functional

from .image_models import drawings
from .training import draw, final_bound, loss_bound, narrowed


class MlpGenerator(nn.Module):
    def __init__(self, config, shape):
        super().__init__()
        self.shape = shape
        self.slope = config["slope"]
        self.fc1 = nn.Linear(config["z"], config["h"])
        self.fc2 = nn.Linear(config["h"], shape.numel())

    def forward(self, z):
        return torch.tanh(self.fc2(functional.leaky_relu(self.fc1(z), self.slope))).view(-1, *self.shape)


class MlpDiscriminator(nn.Module):
    def __init__(self, config, shape):
        super().__init__()
        self.slope = config["slope"]
        self.fc1 = nn.Linear(shape.numel(), config["h"])
        self.fc2 = nn.Linear(config["h"], 1)

    def forward(self, x):
        return self.fc2(functional.leaky_relu(self.fc1(x.flatten(1)), self.slope))


class DcGenerator(nn.Module):
    def __init__(self, config, shape):
        super().__init__()
        channels, height, width = shape
        features = config["f"]
        self.ct1 = nn.ConvTranspose2d(config["z"], 2 * features, (height // 4, width // 4), bias=False)
        self.bn1 = nn.BatchNorm2d(2 * features)
        self.ct2 = nn.ConvTranspose2d(2 * features, features, 4, 2, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(features)
        self.ct3 = nn.ConvTranspose2d(features, channels, 4, 2, 1, bias=False)

    def forward(self, z):
        x = functional.relu(self.bn1(self.ct1(z[:, :, None, None])))
        return torch.tanh(self.ct3(functional.relu(self.bn2(self.ct2(x)))))


class DcDiscriminator(nn.Module):
    def __init__(self, config, shape):
        super().__init__()
        channels, height, width = shape
        features = config["f"]
        self.slope = config["slope"]
        self.conv1 = nn.Conv2d(channels, features, 4, 2, 1)
        self.conv2 = nn.Conv2d(features, 2 * features, 4, 2, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * features)
        self.fc = nn.Linear(2 * features * (height // 4) * (width // 4), 1)

    def forward(self, x):
        x = functional.leaky_relu(self.conv1(x), self.slope)
        return self.fc(functional.leaky_relu(self.bn2(self.conv2(x)), self.slope).flatten(1))


def adversarial_loss(logits, real):
    return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))


def train(generator, discriminator, init, hyper, images, latent, dtype):
    players = {"G": generator, "D": discriminator}
    for prefix, module in players.items():
        module.load_state_dict({name[2:]: value for name, value in init.items() if name.startswith(prefix)})
        module.to(dtype).train()
    options = {key: hyper[key] for key in ("lr", "betas", "eps")}
    of_generator, of_discriminator = (torch.optim.Adam(module.parameters(), **options) for module in players.values())
    losses = {"loss_d": [], "loss_g": []}
    for real, z in zip(images, latent):
        real = real.to(dtype) / 127.5 - 1
        fake = generator(z.to(dtype))
        loss = adversarial_loss(discriminator(real), True) + adversarial_loss(discriminator(fake.detach()), False)
        of_discriminator.zero_grad()
        loss.backward()
        of_discriminator.step()
        losses["loss_d"].append(loss.item())
        loss = adversarial_loss(discriminator(fake), True)
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()
        losses["loss_g"].append(loss.item())
    state = {
        f"{prefix}.{name}": value.detach().clone()
        for prefix, module in players.items()
        for name, value in module.state_dict().items()
    }
    for module in players.values():
        module.float()
    return losses, state


# With this first scale, the gradients of a rank with two samples are finite in float16.
GAINS = {"ct1.weight": 4.0}, {"bn2.weight": 0.3}


def write_gan(fixtures, model, kinds, config, shape, steps, batch, hyper):
    shape = torch.Size(shape)
    generator, discriminator = (kind(config, shape) for kind in kinds)
    random = fixtures.random(model)
    init = {f"G.{name}": value for name, value in draw(generator, random, GAINS[0]).items()}
    init |= {f"D.{name}": value for name, value in draw(discriminator, random, GAINS[1]).items()}
    images, _ = drawings(random, steps, batch, shape, 3)
    latent = random.normal(steps, batch, config["z"])
    fixtures.add(
        f"{model}/init",
        "model_init",
        init,
        model=model,
        config=config,
        notes="G.*: generator, D.*: discriminator; names of torch.nn.",
    )
    stored = images if shape[0] > 1 else images[:, :, 0].contiguous()
    fixtures.add(f"{model}/batches", "batches", {"images": stored, "z": latent}, notes="Real images are image/127.5 - 1.")
    results = [train(generator, discriminator, init, hyper, images, latent, dtype) for dtype in (torch.float64, torch.float32)]
    (losses, state), (other_losses, other_state) = results
    tensors = {name: torch.tensor(values, dtype=torch.float64) for name, values in losses.items()}
    tensors |= {f"final.{name}": value for name, value in narrowed(state).items()}
    tolerance = {
        "loss_abs": max(loss_bound(losses[name], other_losses[name]) for name in losses),
        "final_param_abs": final_bound(state, other_state),
    }
    fixtures.add(
        f"{model}/run",
        "training_run",
        tensors,
        model=model,
        config=config,
        hyper=hyper,
        values=losses,
        tolerance=tolerance,
        notes="A step: fake = G(z); D learns from real and fake, each by itself; then G by the new D.",
    )


def write(fixtures):
    write_gan(
        fixtures,
        "gan_mlp",
        (MlpGenerator, MlpDiscriminator),
        {"z": 5, "h": 19, "slope": 0.1},
        (1, 10, 7),
        6,
        5,
        {"optimizer": "Adam", "eps": 1e-8, "lr": 0.003, "betas": [0.6, 0.99]},
    )
    write_gan(
        fixtures,
        "gan_dc",
        (DcGenerator, DcDiscriminator),
        {"z": 3, "f": 5, "slope": 0.25},
        (2, 12, 8),
        5,
        7,
        {"optimizer": "Adam", "eps": 1e-8, "lr": 0.002, "betas": [0.5, 0.99]},
    )
