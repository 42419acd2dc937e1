"""Small models with LoRA adapters as transformers and PEFT write them, and their outputs and losses for some tokens."""

import json
import pathlib
import tempfile

import peft
import torch
import transformers

from .fixture_set import safetensors

# name: model_type, options, options of LoraConfig
MODELS = {
    "llama_qv": (
        "llama",
        {"num_key_value_heads": 2, "tie_word_embeddings": True},
        {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    ),
    "llama_all": (
        "llama",
        {"attention_bias": True, "mlp_bias": True},
        {"r": 3, "lora_alpha": 6, "target_modules": "all-linear", "use_rslora": True},
    ),
    "qwen3_some": (
        "qwen3",
        {"num_key_value_heads": 2, "head_dim": 12},
        {"r": 2, "lora_alpha": 5, "target_modules": ["k_proj", "o_proj", "mlp.up_proj"]},
    ),
    "gpt2": (
        "gpt2",
        {"n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}
        | {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        {"r": 4, "lora_alpha": 4, "target_modules": ["c_attn", "mlp.c_proj"], "fan_in_fan_out": True},
    ),
    "neox": (
        "gpt_neox",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5}},
        {"r": 4, "lora_alpha": 8, "target_modules": ["query_key_value", "dense_4h_to_h"]},
    ),
}
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
}
COMMON = {"vocab_size": 53, "bos_token_id": 1, "eos_token_id": 2, "attn_implementation": "eager"}
TIME = 33
LEARNING_RATE = 0.01


def draw(parameters, random, deviation):
    with torch.no_grad():
        for parameter in parameters:
            center = 1.0 if parameter.dim() == 1 and (parameter == 1).all() else 0.0
            parameter.copy_(random.normal(*parameter.shape, deviation=deviation) + center)


def losses(model, tokens, optimizer):
    """The losses of ten steps on the same batch."""
    values = []
    for _ in range(10):
        optimizer.zero_grad()
        logits = model(tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return torch.tensor(values, dtype=torch.float64)


def write(fixtures):
    for name, (kind, options, lora) in MODELS.items():
        random = fixtures.random(f"lora/{name}")
        config = transformers.AutoConfig.for_model(kind, **(COMMON | ({} if kind == "gpt2" else SIZES) | options))
        base = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
        draw(base.parameters(), random, 0.25)
        with tempfile.TemporaryDirectory() as folder:
            base.save_pretrained(folder)
            model = peft.get_peft_model(base, peft.LoraConfig(task_type="CAUSAL_LM", **lora)).eval()
            draw((p for p in model.parameters() if p.requires_grad), random, 0.1)
            model.save_pretrained(folder)
            for file in sorted(pathlib.Path(folder).iterdir()):
                if file.name == "adapter_config.json":  # PEFT writes a set without an order
                    adapter = json.loads(file.read_text())
                    fixtures.write_json(f"lora/{name}/{file.name}", adapter | {"target_modules": sorted(adapter["target_modules"])})
                elif file.name not in {"generation_config.json", "README.md"}:
                    fixtures.write(f"lora/{name}/{file.name}", file.read_bytes())
        model = model.double()
        tokens = random.integers(4, TIME, below=COMMON["vocab_size"])
        start = {key: value.clone() for key, value in model.state_dict().items()}
        results = {"tokens": tokens.to(torch.int32)}
        with torch.no_grad():
            results["logits"] = model(tokens).logits.float()
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        results["sgd_losses"] = losses(model, tokens, torch.optim.SGD(trained, lr=LEARNING_RATE))
        model.load_state_dict(start)
        adamw = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=0.01)
        results["adamw_losses"] = losses(model, tokens, adamw)
        fixtures.write(f"lora/{name}/expected.safetensors", safetensors(results))
    fixtures.write_json("lora/models.json", {"models": list(MODELS), "learning_rate": LEARNING_RATE})
    fixtures.add_other("lora", "lora/models.json", "folders_of_peft", "adapters of PEFT, and in double what they say and learn")
