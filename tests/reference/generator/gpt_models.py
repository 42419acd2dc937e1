"""Small GPT-2 and GPT-NeoX as transformers writes them, and their outputs for some tokens."""

import copy
import pathlib
import tempfile

import torch
import transformers

from .fixture_set import safetensors
from .llama_models import LEARNING_RATE, losses

# name: model_type, options
MODELS = {
    "gpt2": (
        "gpt2",
        {
            "n_positions": 40,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
        },
    ),
    "neox": ("gpt_neox", {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5}}),
    "neox_serial": (
        "gpt_neox",
        {
            "use_parallel_residual": False,
            "attention_bias": False,
            "tie_word_embeddings": True,
            "hidden_act": "gelu_new",
            "layer_norm_eps": 1e-3,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
            "dtype": "bfloat16",
        },
    ),
}
COMMON = {"vocab_size": 53, "bos_token_id": 1, "eos_token_id": 2, "attn_implementation": "eager"}
NEOX = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
}
TIME = 33


def model_of(name, random):
    kind, options = MODELS[name]
    sizes = NEOX if kind == "gpt_neox" else {}
    config = transformers.AutoConfig.for_model(kind, **(COMMON | sizes | options))
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    dtype = getattr(torch, options.get("dtype", "float32"))
    with torch.no_grad():
        for parameter in model.parameters():
            center = 1.0 if parameter.dim() == 1 and (parameter == 1).all() else 0.0
            values = random.normal(*parameter.shape, deviation=0.25) + center
            parameter.copy_(values.to(dtype))  # rounded as in a file of this type
    return model, dtype


def write(fixtures):
    for name in MODELS:
        random = fixtures.random(f"gpt/{name}")
        model, dtype = model_of(name, random)
        with tempfile.TemporaryDirectory() as folder:
            copy.deepcopy(model).to(dtype).save_pretrained(folder)
            for file in sorted(pathlib.Path(folder).iterdir()):
                if file.name != "generation_config.json":
                    fixtures.write(f"gpt/{name}/{file.name}", file.read_bytes())
        model = model.double()
        tokens = random.integers(4, TIME, below=COMMON["vocab_size"])
        with torch.no_grad():
            logits = model(tokens).logits
        fixtures.write(
            f"gpt/{name}/expected.safetensors",
            safetensors(
                {
                    "tokens": tokens.to(torch.int32),
                    "logits": logits.float(),
                    "sgd_losses": torch.tensor(losses(model, tokens), dtype=torch.float64),
                }
            ),
        )
    fixtures.write_json("gpt/models.json", {"models": list(MODELS), "learning_rate": LEARNING_RATE})
    fixtures.add_other("gpt", "gpt/models.json", "folders_of_gpt", "GPT-2 and GPT-NeoX, and in double what they say")
