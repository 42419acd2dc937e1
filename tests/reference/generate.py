#!/usr/bin/env python3
"""Writes the reference results that the tests compare with, in the format of README.md beside this file.

    generate.py [--out FOLDER] [--seed SEED] [--data FOLDER]

The same seed gives the same files with the same versions (requirements.txt) on the same kind of processor.
"""

import argparse
import pathlib

import torch

from generator import bert_models, chats, convergence, functions, gan_models, gpt_models, image_models, llama_models, lora_models
from generator import operations, optimizers, parquet_files, pictures, ports, precision, pretrained, samples, tokenizer_files
from generator import tokenizer_training, vit_models, word_models
from generator.fixture_set import FixtureSet

PARTS = (
    operations,
    functions,
    optimizers,
    precision,
    word_models,
    image_models,
    gan_models,
    pretrained,
    llama_models,
    vit_models,
    bert_models,
    gpt_models,
    lora_models,
    tokenizer_files,
    tokenizer_training,
    chats,
    samples,
    parquet_files,
    pictures,
    ports,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent, help="the folder of the set"
    )
    parser.add_argument("--seed", type=int, default=2718, help="another one gives other numbers of the same sizes")
    parser.add_argument(
        "--data", type=pathlib.Path, help="real data, for what training on them reaches; otherwise that stays as it is"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    fixtures = FixtureSet(options.out, options.seed)
    for part in PARTS:
        part.write(fixtures)
    convergence.write(fixtures, options.data)
    fixtures.write_index()
    print(f"{len(fixtures.entries)} fixtures, {fixtures.num_bytes / 1e6:.2f} MB in {options.out}")


if __name__ == "__main__":
    main()
