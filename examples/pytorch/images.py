# The same as 03_images.cpp with PyTorch DDP: torchrun --nproc-per-node 2 images.py --images shapes
import argparse
import math
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.output = nn.Linear(16 * 8 * 8, classes)

    def forward(self, images):
        half = nn.functional.max_pool2d(torch.relu(self.first(images)), 2)
        quarter = nn.functional.max_pool2d(torch.relu(self.second(half)), 2)
        return self.output(quarter.flatten(1))


@torch.no_grad()
def accuracy(model, test, rank, ranks):
    model.eval()
    found = torch.zeros(2, dtype=torch.float64)
    for images, labels in DataLoader(Subset(test, range(rank, len(test), ranks)), batch_size=256):
        found += torch.tensor([(model(images).argmax(1) == labels).sum(), len(labels)])
    model.train()
    dist.all_reduce(found)
    return (found[0] / found[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", default="images")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32, help="of all ranks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-dir", type=Path, default=Path("run"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)

    pixels = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
    plain = torch.stack([image for image, _ in ImageFolder(f"{args.images}/training", pixels)])
    pixels.transforms.append(transforms.Normalize(plain.mean((0, 2, 3)), plain.std((0, 2, 3))))
    training = ImageFolder(f"{args.images}/training", pixels)
    test = ImageFolder(f"{args.images}/test", pixels)
    sampler = DistributedSampler(training, ranks, rank, shuffle=True, seed=args.seed)
    loader = DataLoader(training, batch_size=args.batch_size // ranks, sampler=sampler)
    model = Net(len(training.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    total = args.epochs * len(loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / total)))
    first_epoch = 0
    path = args.checkpoint_dir / "checkpoint.pt"
    if path.exists():
        state = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        first_epoch = state["epoch"]
    replica = DistributedDataParallel(model)

    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(replica(images), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(replica.parameters(), 1)
            optimizer.step()
            scheduler.step()
        if (epoch + 1) % 5 and epoch + 1 < args.epochs:
            continue
        found = accuracy(model, test, rank, ranks)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}  test_accuracy {found:.4f}")
            args.checkpoint_dir.mkdir(parents=True, exist_ok=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                     "scheduler": scheduler.state_dict(), "epoch": epoch + 1}
            torch.save(state, path.with_suffix(".tmp"))
            os.replace(path.with_suffix(".tmp"), path)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
