"""Trains a tokenizer by tokenizers: prints seconds and the peak of memory in MB as JSON. Its arguments are those of compare_training."""

import json
import resource
import sys
import time

import tokenizers
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def main():
    rules, size, output, *files = sys.argv[1:]
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=rules == "gpt2")
    if rules == "gpt2":
        tokenizer.pre_tokenizer = byte_level
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=int(size), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    start = time.perf_counter()
    tokenizer.train(files, trainer)
    seconds = time.perf_counter() - start
    tokenizer.save(output)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "version": tokenizers.__version__}))


if __name__ == "__main__":
    main()
