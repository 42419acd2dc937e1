"""Training runs of GPT-2 and of an LSTM language model."""

import torch
from torch.nn import functional

from .training import Trace, add_run, draw


def sequences(random, count, length, vocabulary):
    """Token sequences that a model can learn: each token follows from the one before, up to a little noise."""
    tokens = [random.integers(count, below=vocabulary)]
    noise = random.integers(count, length, below=3)
    for place in range(1, length):
        tokens.append((5 * tokens[-1] + noise[:, place]) % vocabulary)
    return torch.stack(tokens, 1)


def gpt_weights(config, random):
    width = config["n_embd"]
    shapes = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["n_positions"], width)}
    for layer in range(config["n_layer"]):
        shapes |= {
            f"h.{layer}.ln_1.weight": (width,),
            f"h.{layer}.ln_1.bias": (width,),
            f"h.{layer}.attn.c_attn.weight": (width, 3 * width),
            f"h.{layer}.attn.c_attn.bias": (3 * width,),
            f"h.{layer}.attn.c_proj.weight": (width, width),
            f"h.{layer}.attn.c_proj.bias": (width,),
            f"h.{layer}.ln_2.weight": (width,),
            f"h.{layer}.ln_2.bias": (width,),
            f"h.{layer}.mlp.c_fc.weight": (width, 4 * width),
            f"h.{layer}.mlp.c_fc.bias": (4 * width,),
            f"h.{layer}.mlp.c_proj.weight": (4 * width, width),
            f"h.{layer}.mlp.c_proj.bias": (width,),
        }
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    weights = {}
    for name, shape in shapes.items():
        around = 1.0 if "ln_" in name and name.endswith("weight") else 0.0
        weights[f"transformer.{name}"] = random.normal(*shape, deviation=0.1 if len(shape) == 2 else 0.05) + around
    return weights


def gpt_logits(weights, config, tokens):
    """[batch, time] -> [batch, time, vocabulary], with the names and layouts of Hugging Face's GPT-2."""
    w = {name.removeprefix("transformer."): value for name, value in weights.items()}
    batch, time = tokens.shape
    width, heads = config["n_embd"], config["n_head"]

    def norm(x, name):
        return functional.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

    def conv1d(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][:time]
    for layer in range(config["n_layer"]):
        parts = conv1d(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn").split(width, dim=-1)
        q, k, v = (part.view(batch, time, heads, -1).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + conv1d(seen.transpose(1, 2).reshape(batch, time, width), f"h.{layer}.attn.c_proj")
        hidden = functional.gelu(conv1d(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc"), approximate="tanh")
        x = x + conv1d(hidden, f"h.{layer}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def gpt_loss(weights, config, tokens, targets):
    logits = gpt_logits(weights, config, tokens)
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten().long())


def without_keys(state):
    """For bounds: the gradient of the keys' bias is only rounding, which Adam makes large."""
    kept = dict(state)
    for name, value in state.items():
        if name.endswith("c_attn.bias"):
            width = value.shape[0] // 3
            kept[name] = torch.cat([value[:width], value[2 * width :]])
    return kept


def write_gpt(fixtures, folder, config, steps, batch, time, runs):
    """runs: (name, hyper, whether it holds gradients and weights)"""
    random = fixtures.random(folder)
    init = gpt_weights(config, random)
    tokens = sequences(random, steps * batch, time + 1, config["vocab_size"]).to(torch.int32).view(steps, batch, time + 1)
    inputs, targets = tokens[..., :-1].contiguous(), tokens[..., 1:].contiguous()
    uneven = targets.clone()
    for row in range(batch):
        uneven[:, row, 1 + (5 * row + 3) % time :] = -100
    fixtures.add(
        f"{folder}/init",
        "model_init",
        init,
        model="gpt2",
        config=config,
        notes="Hugging Face's GPT-2 names and layouts, weights [in, out], the output layer tied to wte.",
    )
    fixtures.add(
        f"{folder}/batches",
        "batches",
        {"input_ids": inputs, "targets": targets, "targets_uneven": uneven},
        notes="[steps, batch, time]; -100 in targets_uneven counts for nothing.",
    )
    for name, hyper, whole in runs:
        wanted = uneven if hyper.get("targets") == "targets_uneven" else targets

        def train(dtype):
            weights = {key: value.to(dtype).clone().requires_grad_() for key, value in init.items()}
            trace = Trace(weights, hyper)
            for step in range(steps):
                trace.step(gpt_loss(weights, config, inputs[step].long(), wanted[step]))
            return trace, {key: value.detach() for key, value in weights.items()}

        results = [train(dtype) for dtype in (torch.float64, torch.float32)]
        add_run(
            fixtures,
            f"{folder}/{name}",
            "gpt2",
            config,
            hyper,
            results,
            first_gradients=whole,
            final=whole,
            of_bound=without_keys,
            notes="loss[t]: mean of all counted targets of batch t, before step t; grad_norm: before clipping.",
        )


class Lstm(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = torch.nn.Embedding(config["vocab"], config["embed"])
        self.lstm = torch.nn.LSTM(config["embed"], config["hidden"], config["layers"], batch_first=True)
        self.fc = torch.nn.Linear(config["hidden"], config["vocab"])

    def forward(self, tokens, state):
        out, state = self.lstm(self.embed(tokens), state)
        return self.fc(out), state


def write_lstm(fixtures, folder, config, num_batches, steps, start, batch, time, hyper):
    random = fixtures.random(folder)
    module = Lstm(config)
    init = draw(module, random)
    tokens = sequences(random, batch, num_batches * time + 1, config["vocab"]).to(torch.int32)
    inputs = tokens[:, :-1].view(batch, num_batches, time).transpose(0, 1).contiguous()
    targets = tokens[:, 1:].reshape(batch, num_batches, time).transpose(0, 1).contiguous()
    fixtures.add(
        f"{folder}/init", "model_init", init, model="lstm_lm", config=config, notes="embed -> lstm -> fc, names of torch.nn."
    )
    fixtures.add(
        f"{folder}/batches",
        "batches",
        {"input_ids": inputs, "targets": targets},
        notes="[batches, batch, time]; a row of a batch goes on where the one before ended.",
    )
    hyper = hyper | {"start": start}

    def train(dtype):
        module.load_state_dict(init)
        module.to(dtype)
        trace = Trace(dict(module.named_parameters()), hyper)
        state = None
        for step in range(start, start + steps):
            logits, state = module(inputs[step].long(), state)
            state = tuple(value.detach() for value in state)
            trace.step(functional.cross_entropy(logits.flatten(0, 1), targets[step].flatten().long()))
        final = {key: value.detach().clone() for key, value in module.state_dict().items()}
        module.float()
        return trace, final

    results = [train(dtype) for dtype in (torch.float64, torch.float32)]
    add_run(
        fixtures,
        f"{folder}/run",
        "lstm_lm",
        config,
        hyper,
        results,
        notes="Step t reads batch start + t. The state is zero at first and then kept, without gradient.",
    )


def write(fixtures):
    sgd = {"optimizer": "SGD", "lr": 0.08, "momentum": 0.8, "weight_decay": 0.0, "decay": "all"}
    three_heads = {"n_layer": 3, "n_embd": 24, "n_head": 3, "vocab_size": 83, "n_positions": 19}
    write_gpt(fixtures, "gpt2_three_heads", three_heads, 4, 5, 17, [("run_sgd", sgd, True)])
    adamw = {
        "optimizer": "AdamW",
        "betas": [0.85, 0.98],
        "eps": 1e-6,
        "lr": 0.004,
        "weight_decay": 0.05,
        "decay": "tensors with 2 or more dimensions",
        "clip": 1.9,
        "schedule": {"warmup": 2, "total": 5, "min_ratio": 0.2},
        "targets": "targets_uneven",
    }
    four_heads = {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61, "n_positions": 12}
    write_gpt(fixtures, "gpt2_four_heads", four_heads, 4, 6, 12, [("run_uneven_targets", adamw, True)])
    lstm = {"vocab": 29, "embed": 7, "hidden": 13, "layers": 3}
    adam = {"optimizer": "Adam", "eps": 1e-8, "lr": 0.006, "betas": [0.9, 0.99], "clip": 0.3}
    write_lstm(fixtures, "lstm_lm", lstm, num_batches=8, steps=6, start=2, batch=5, time=9, hyper=adam)
    lstm = {"vocab": 17, "embed": 10, "hidden": 6, "layers": 1}
    sgd = {"optimizer": "SGD", "lr": 0.5, "momentum": 0.9, "weight_decay": 0.01}
    write_lstm(fixtures, "lstm_lm_one_layer", lstm, num_batches=5, steps=5, start=0, batch=3, time=14, hyper=sgd)
