"""Small models of the Llama family as transformers writes them, and what they say of some tokens."""

import copy
import math
import pathlib
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
HALF = {"qwen3": torch.bfloat16, "qwen2_tied": torch.float16}
TIME = 60
NEW_TOKENS = 40
LEARNING_RATE = 0.01


def model_of(name, random):
    kind, options = MODELS[name]
    config = transformers.AutoConfig.for_model(kind, **(SIZES | options))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    dtype = HALF.get(name, torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            center = 1.0 if parameter.dim() == 1 and (parameter == 1).all() else 0.0
            values = random.normal(*parameter.shape, deviation=0.25) + center
            parameter.copy_(values.to(dtype))  # what a file in this type holds
    return model, dtype


def greedy(model, prompt):
    """The most likely tokens, and by how much at least they lead."""
    text, margin = prompt[None], math.inf
    for _ in range(NEW_TOKENS):
        best = model(text).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        text = torch.cat([text, best.indices[:1][None]], 1)
    return text[0, len(prompt) :], margin


def losses(model, tokens):
    """Of ten steps of SGD on the same batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        logits = model(tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def write(fixtures):
    for name in MODELS:
        random = fixtures.random(f"llama/{name}")
        model, dtype = model_of(name, random)
        with tempfile.TemporaryDirectory() as folder:
            size = "12KB" if name == SHARDED else "1GB"
            copy.deepcopy(model).to(dtype).save_pretrained(folder, max_shard_size=size)  # rounds the angles too
            for file in sorted(pathlib.Path(folder).iterdir()):
                if file.name != "generation_config.json":
                    fixtures.write(f"llama/{name}/{file.name}", file.read_bytes())
        model = model.double()
        tokens = random.integers(2, TIME, below=SIZES["vocab_size"])
        with torch.no_grad():
            logits = model(tokens).logits
            text, margin = greedy(model, tokens[0, :5])
        fixtures.write(
            f"llama/{name}/expected.safetensors",
            safetensors(
                {
                    "tokens": tokens.to(torch.int32),
                    "logits": logits.float(),
                    "greedy": text.to(torch.int32),
                    "greedy_margin": torch.tensor([margin], dtype=torch.float64),
                    "sgd_losses": torch.tensor(losses(model, tokens), dtype=torch.float64),
                }
            ),
        )
    fixtures.write_json("llama/models.json", {"models": list(MODELS), "learning_rate": LEARNING_RATE})
    fixtures.add_other(
        "llama", "llama/models.json", "folders_of_transformers", "models of the Llama family, and in double what they say"
    )
