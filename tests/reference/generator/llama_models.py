"""Small models of the Llama family as transformers writes them, and their outputs for some tokens."""

import contextlib
import copy
import itertools
import math
import pathlib
import sys
import tempfile

import torch
import transformers

from .fixture_set import safetensors

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 24,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}

# name: model_type, options beyond SIZES
MODELS = {
    "llama": ("llama", {}),
    "llama_grouped_tied_llama3": (
        "llama",
        {"num_key_value_heads": 2, "tie_word_embeddings": True, "rope_parameters": LLAMA3},
    ),
    "llama_one_kv_head_yarn": ("llama", {"num_key_value_heads": 1, "rope_parameters": YARN}),
    "llama_biases_linear": (
        "llama",
        {
            "attention_bias": True,
            "mlp_bias": True,
            "rms_norm_eps": 1e-3,
            "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5},
        },
    ),
    "mistral_window": ("mistral", {"num_key_value_heads": 2, "head_dim": 12, "sliding_window": 7}),
    "qwen2_tied": ("qwen2", {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen2_some_windows": (
        "qwen2",
        {"num_key_value_heads": 4, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
    "qwen3": ("qwen3", {"num_key_value_heads": 2, "head_dim": 12}),
    "qwen3_yarn": (
        "qwen3",
        {
            "num_key_value_heads": 1,
            "head_dim": 8,
            "rope_parameters": YARN | {"attention_factor": 0.75, "beta_fast": 8.0, "truncate": False},
        },
    ),
    "mixtral": (
        "mixtral",
        {"num_key_value_heads": 2, "num_local_experts": 4, "router_aux_loss_coef": 0.2, "output_router_logits": True},
    ),
    "mixtral_top1_window": (
        "mixtral",
        {
            "num_local_experts": 3,
            "num_experts_per_tok": 1,
            "sliding_window": 9,
            "rope_parameters": LLAMA3,
            "router_aux_loss_coef": 0.3,  # without it the router's gradient is only rounding
            "output_router_logits": True,
        },
    ),
    "qwen2_moe": (
        "qwen2_moe",
        {
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 20,
            "router_aux_loss_coef": 0.1,
            "output_router_logits": True,
        },
    ),
    "qwen3_moe": (
        "qwen3_moe",
        {
            "num_key_value_heads": 2,
            "head_dim": 12,
            "num_local_experts": 5,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 16,
            "norm_topk_prob": True,
        },
    ),
}
SIZES = {
    "vocab_size": 53,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "attn_implementation": "eager",
}
SHARDED = "llama_grouped_tied_llama3"
CAPACITY_FACTOR = 0.75  # of the experts in a second pass
LEAST_MARGIN = 1e-3  # the least margin of logits between chosen and other experts, in all steps
HALF = {"qwen3": torch.bfloat16, "qwen2_tied": torch.float16}
TIME = 60
NEW_TOKENS = 40
LEARNING_RATE = 0.01


def model_of(name, random):
    kind, options = MODELS[name]
    config = transformers.AutoConfig.for_model(kind, **(SIZES | options))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    if routers(model):
        model.set_experts_implementation("eager")
    dtype = HALF.get(name, torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            center = 1.0 if parameter.dim() == 1 and (parameter == 1).all() else 0.0
            values = random.normal(*parameter.shape, deviation=0.25) + center
            parameter.copy_(values.to(dtype))  # rounded as in a file of this type
    return model, dtype


def greedy(model, prompt):
    """The most likely tokens, and their smallest margin."""
    text, margin = prompt[None], math.inf
    for _ in range(NEW_TOKENS):
        best = model(text).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        text = torch.cat([text, best.indices[:1][None]], 1)
    return text[0, len(prompt) :], margin


def routers(model):
    return [layer.mlp.gate for layer in model.model.layers if hasattr(layer.mlp, "experts")]


def auxiliary_loss(model, router_logits, sequences):
    """transformers' balance loss of each layer and sequence, and the mean of these; transformers takes all together."""
    balance = sys.modules[type(model).__module__].load_balancing_loss_func
    each = [
        balance((of_sequence,), of_sequence.shape[1], model.config.num_experts_per_tok)
        for of_layer in router_logits
        for of_sequence in of_layer.chunk(sequences)
    ]
    return torch.stack(each).mean()


def lead(model, router_logits):
    """The smallest margin between the chosen experts and the others."""
    best = torch.cat(router_logits).topk(model.config.num_experts_per_tok + 1).values
    return (best[:, -2] - best[:, -1]).min().item()


def losses(model, tokens, optimizer):
    """The losses of ten steps on the same batch, and the smallest margin of the chosen experts."""
    values, margin = [], math.inf
    has_experts = bool(routers(model))
    for _ in range(10):
        optimizer.zero_grad()
        output = model(tokens[:, :-1], **({"output_router_logits": True} if has_experts else {}))
        loss = torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), tokens[:, 1:].flatten())
        if has_experts:
            margin = min(margin, lead(model, output.router_logits))
            if margin < LEAST_MARGIN:
                break
            if model.config.output_router_logits:
                loss = loss + model.config.router_aux_loss_coef * auxiliary_loss(model, output.router_logits, len(tokens))
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return torch.tensor(values, dtype=torch.float64), margin


@contextlib.contextmanager
def limited_capacity(model, time):
    """Limits how many choices of a sequence an expert takes: first choices first, of these the earlier tokens, as in Switch and GShard."""

    def limit(router, _, output):
        logits, weights, chosen = output
        experts, choices = logits.shape[1], chosen.shape[1]
        capacity = math.ceil(CAPACITY_FACTOR * choices * time / experts)
        in_order = chosen.view(-1, time, choices).transpose(1, 2).reshape(-1, choices * time)
        places = torch.nn.functional.one_hot(in_order, experts).cumsum(1).gather(2, in_order[..., None])[..., 0]
        kept = (places <= capacity).view(-1, choices, time).transpose(1, 2).reshape(chosen.shape)
        return logits, weights * kept, chosen

    hooks = [router.register_forward_hook(limit) for router in routers(model)]
    yield
    for hook in hooks:
        hook.remove()


def expected(model, tokens):
    """A model's outputs for tokens, and whether its choices of experts are clear enough to be compared."""
    with torch.no_grad():
        if routers(model) and lead(model, model(tokens, output_router_logits=True).router_logits) < LEAST_MARGIN:
            return {}, False
        logits = model(tokens).logits
        text, margin = greedy(model, tokens[0, :5])
        results = {
            "tokens": tokens.to(torch.int32),
            "logits": logits.float(),
            "greedy": text.to(torch.int32),
            "greedy_margin": torch.tensor([margin], dtype=torch.float64),
        }
        if routers(model):
            with limited_capacity(model, tokens.shape[1]):
                results["capacity_logits"] = model(tokens).logits.float()
    margin = math.inf
    if routers(model):
        trained = copy.deepcopy(model)
        adamw = torch.optim.AdamW(trained.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
        results["adamw_losses"], margin = losses(trained, tokens, adamw)
    results["sgd_losses"], of_sgd = losses(model, tokens, torch.optim.SGD(model.parameters(), lr=LEARNING_RATE))
    return results, min(margin, of_sgd) > LEAST_MARGIN


def choose(fixtures, name):
    """The first model of this name whose choices of experts are clear, and its outputs."""
    for attempt in itertools.count():
        random = fixtures.random(f"llama/{name}" + (f"/{attempt}" if attempt else ""))
        model, dtype = model_of(name, random)
        tokens = random.integers(2, TIME, below=SIZES["vocab_size"])
        results, clear = expected(copy.deepcopy(model).double(), tokens)
        if clear:
            return model, dtype, results


def write(fixtures):
    for name in MODELS:
        model, dtype, results = choose(fixtures, name)
        with tempfile.TemporaryDirectory() as folder:
            size = "12KB" if name == SHARDED else "1GB"
            model.to(dtype).save_pretrained(folder, max_shard_size=size)  # rounds the angles too
            for file in sorted(pathlib.Path(folder).iterdir()):
                if file.name != "generation_config.json":
                    fixtures.write(f"llama/{name}/{file.name}", file.read_bytes())
        fixtures.write(f"llama/{name}/expected.safetensors", safetensors(results))
    fixtures.write_json(
        "llama/models.json",
        {"models": list(MODELS), "learning_rate": LEARNING_RATE, "capacity_factor": CAPACITY_FACTOR},
    )
    fixtures.add_other(
        "llama", "llama/models.json", "folders_of_transformers", "models of the Llama family, and in double what they say"
    )
