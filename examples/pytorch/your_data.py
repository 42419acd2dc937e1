# The same as 02_your_data.cpp with PyTorch DDP: torchrun --nproc-per-node 4 your_data.py --csv ../flowers.csv
import argparse
import math
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.hidden = nn.Linear(features, 64)
        self.output = nn.Linear(64, classes)

    def forward(self, x):
        return self.output(torch.relu(self.hidden(x)))


def read_csv(path, label, test_share, seed):
    with open(path) as file:
        header = file.readline().strip().split(",")
        rows = [line.strip().split(",") for line in file if line.strip()]
    column = header.index(label)
    classes = sorted({row[column] for row in rows})
    y = torch.tensor([classes.index(row[column]) for row in rows])
    x = torch.tensor([[float(value) for i, value in enumerate(row) if i != column] for row in rows])
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(rows)))
    tests = round(test_share * len(rows))
    test, training = order[:tests], order[tests:]
    mean, std = x[training].mean(0), x[training].std(0, unbiased=False)
    x = (x - mean) / torch.where(std > 0, std, torch.ones_like(std))
    return TensorDataset(x[training], y[training]), TensorDataset(x[test], y[test]), len(classes)


@torch.no_grad()
def accuracy(model, test, rank, ranks):
    model.eval()
    found = torch.zeros(2, dtype=torch.float64)
    share = torch.utils.data.Subset(test, range(rank, len(test), ranks))
    for x, y in DataLoader(share, batch_size=256):
        found += torch.tensor([(model(x).argmax(1) == y).sum(), len(y)])
    model.train()
    dist.all_reduce(found)
    return (found[0] / found[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", default="examples/flowers.csv")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32, help="of all ranks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint-dir", type=Path, default=Path("run"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)

    training, test, classes = read_csv(args.csv, "class", 0.2, args.seed)
    sampler = DistributedSampler(training, ranks, rank, shuffle=True, seed=args.seed)
    loader = DataLoader(training, batch_size=args.batch_size // ranks, sampler=sampler)
    model = Net(training.tensors[0].shape[1], classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
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
        for x, y in loader:
            loss = nn.functional.cross_entropy(replica(x), y)
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
