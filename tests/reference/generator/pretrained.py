"""A GPT-2 after a short training, and a text that it generates."""

import math

import torch
from torch.nn import functional

from .fixture_set import safetensors
from .word_models import gpt_logits, gpt_loss, gpt_weights

CONFIG = {"n_layer": 2, "n_embd": 24, "n_head": 3, "vocab_size": 128, "n_positions": 21}
TEXT = "the ranks add what they have, each gets the sum of all. " * 8
PROMPT = "the r"
LENGTH = 20  # of the prompt and the generated text


def trained(random):
    tokens = torch.tensor(list(TEXT.encode()))
    time = CONFIG["n_positions"]
    weights = {name: value.requires_grad_() for name, value in gpt_weights(CONFIG, random).items()}
    optimizer = torch.optim.AdamW(weights.values(), lr=0.01)
    for _ in range(120):
        starts = random.integers(8, below=len(tokens) - time)
        windows = torch.stack([tokens[start : start + time + 1] for start in starts])
        optimizer.zero_grad()
        gpt_loss(weights, CONFIG, windows[:, :-1], windows[:, 1:]).backward()
        optimizer.step()
    return {name: value.detach() for name, value in weights.items()}


def write(fixtures):
    weights = trained(fixtures.random("pretrained"))
    fixtures.write("pretrained/gpt2_sentence.safetensors", safetensors(weights, {"format": "pt"}))
    exact = {name: value.double() for name, value in weights.items()}
    tokens = torch.tensor(list(TEXT.encode()))
    windows = torch.stack([tokens[start : start + 18] for start in (0, 11, 25)])
    inputs, targets = windows[:, :-1], windows[:, 1:]
    logits = gpt_logits(exact, CONFIG, inputs)
    losses = torch.stack([functional.cross_entropy(row, wanted) for row, wanted in zip(logits, targets)])
    fixtures.write(
        "pretrained/gpt2_sentence.expected.safetensors",
        safetensors(
            {
                "val_input_ids": inputs.to(torch.int32).contiguous(),
                "val_targets": targets.to(torch.int32).contiguous(),
                "logits_window0": logits[0].float(),
                "val_loss_per_window": losses,
            }
        ),
    )
    text = list(PROMPT.encode())
    margin = math.inf
    while len(text) < LENGTH:
        best = gpt_logits(exact, CONFIG, torch.tensor([text]))[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        text.append(best.indices[0].item())
    fixtures.write_json(
        "pretrained/convergence.json",
        {
            "gpt_sentence": {
                "config": CONFIG,
                "pretrained": {
                    "file": "pretrained/gpt2_sentence.safetensors",
                    "expected": "pretrained/gpt2_sentence.expected.safetensors",
                    "greedy_prompt": PROMPT,
                    "greedy_text": bytes(text).decode(),
                    "greedy_min_margin": margin,
                    "notes": "Hugging Face's GPT-2 names and layouts. Logits and losses in double from these weights.",
                },
            },
        },
    )
    fixtures.add_other(
        "pretrained",
        "pretrained/convergence.json",
        "pretrained_and_convergence",
        "trained models, what they answer, and what training reaches",
    )
