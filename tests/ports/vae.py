# A variational autoencoder of images (Kingma, Welling 2013, arXiv 1312.6114). vae.cpp is the same in C++.
import torch
from torch import nn
from torch.nn import functional as F


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode1 = nn.Conv2d(1, 8, 4, stride=2, padding=1)
        self.encode2 = nn.Conv2d(8, 16, 4, stride=2, padding=1)
        self.moments = nn.Linear(16 * 3 * 3, 2 * 5)
        self.expand = nn.Linear(5, 16 * 3 * 3)
        self.decode1 = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.decode2 = nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)

    def encode(self, images):
        x = F.silu(self.encode2(F.silu(self.encode1(images))))
        return self.moments(x.flatten(1)).chunk(2, dim=1)

    def decode(self, z):
        x = F.silu(self.expand(z)).unflatten(1, (16, 3, 3))
        return self.decode2(F.silu(self.decode1(x)))

    def loss(self, images, noise):
        mean, log_variance = self.encode(images)
        logits = self.decode(mean + noise * torch.exp(0.5 * log_variance))
        reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.square() - log_variance.exp())
        return (reconstruction + divergence) / len(images)


def train(weights, data):
    net = Vae()
    net.load_state_dict(weights)
    images = data["images"].permute(0, 3, 1, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for step in range(20):
        loss = net.loss(images, data["noise"][step])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
