"""Writes a transformers folder of every family, with random weights, for compare_onnx --folders.

  python3 onnx_folders.py folder
"""

import pathlib
import sys

import torch
import transformers

BODY = {"hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8}
TEXT = BODY | {"vocab_size": 8000, "intermediate_size": 512, "max_position_embeddings": 256}
GROUPED = TEXT | {"num_key_value_heads": 2}
IMAGES = BODY | {"image_size": 64, "patch_size": 8, "intermediate_size": 1024, "num_labels": 20}
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "norm_topk_prob": True}
MODELS = {
    "llama2": ("LlamaForCausalLM", TEXT),
    "llama3": ("LlamaForCausalLM", GROUPED | {"tie_word_embeddings": True, "rope_theta": 500000.0, "rope_scaling": LLAMA3_ROPE}),
    "mistral": ("MistralForCausalLM", GROUPED | {"sliding_window": 5}),
    "mixtral": ("MixtralForCausalLM", GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2": ("Qwen2ForCausalLM", GROUPED | {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", GROUPED | {"head_dim": 64, "tie_word_embeddings": True}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", GROUPED | {"head_dim": 64} | EXPERTS),
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": 8000, "n_positions": 256, "n_embd": 256, "n_layer": 3, "n_head": 8}),
    "gpt_neox": ("GPTNeoXForCausalLM", TEXT),
    "bert": ("BertForMaskedLM", TEXT),
    "bert_classifier": ("BertForSequenceClassification", TEXT | {"num_labels": 4}),
    "vit": ("ViTForImageClassification", IMAGES),
    "deit": ("DeiTForImageClassificationWithTeacher", IMAGES),
}


def main():
    torch.manual_seed(0)
    for name, (architecture, options) in MODELS.items():
        model = getattr(transformers, architecture)
        model(model.config_class(**options)).save_pretrained(pathlib.Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
