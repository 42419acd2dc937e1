"""The same as benchmarks/generation, with transformers' generate() and its cache.

Run by compare_generation, which also has it make the folder:
  python3 generation_torch.py --folder model --make
  python3 generation_torch.py --folder model --batch 8 --json out.json
"""

import argparse
import json
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 256


def make(folder):
    """A model of 9.5M parameters, with the default sizes of benchmarks/generation."""
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=384, intermediate_size=1024, num_hidden_layers=6, num_attention_heads=6,
                         num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=True, bos_token_id=None,
                         eos_token_id=None)
    LlamaForCausalLM(config).save_pretrained(folder)


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(options):
    torch.set_num_threads(options.threads)
    model = LlamaForCausalLM.from_pretrained(options.folder, dtype=getattr(torch, options.dtype)).eval()
    prompts = torch.tensor([[(row * 31 + i * 7) % model.config.vocab_size for i in range(options.prompt)]
                            for row in range(options.batch)])

    def text(count):
        return model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=count, min_new_tokens=count,
                              do_sample=False, use_cache=True, pad_token_id=0)[:, options.prompt:]

    text(4)
    of_prompt, of_token = [], []
    for _ in range(options.rounds):
        of_prompt.append(seconds_of(lambda: text(1)))
        of_token.append((seconds_of(lambda: text(options.count)) - of_prompt[-1]) / (options.count - 1))
    step = statistics.median(of_token)
    return {"step_seconds": step, "prompt_seconds": statistics.median(of_prompt), "tokens_per_second": options.batch / step,
            "texts": text(options.count).tolist()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--make", action="store_true")
    for name, default in (("batch", 1), ("prompt", 32), ("count", 200), ("rounds", 3), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.make:
        make(options.folder)
        return
    figures = measure(options)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file)
    print(f"{figures['tokens_per_second']:.0f} tokens/s")


if __name__ == "__main__":
    main()
