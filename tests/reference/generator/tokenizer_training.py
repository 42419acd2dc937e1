"""The merges that BpeTrainer of tokenizers learns from some texts."""

import json
import random
import re

import tokenizers
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from generator.tokenizer_files import CL100K, QWEN2, SENTENCES

SPECIAL = ["<|endoftext|>", "<pad>"]


def invented_words(numbers, count):
    """Lines of words of syllables: a few words are frequent, many are rare, and counts are often equal."""
    syllables = ["ka", "to", "mi", "ren", "sha", "lo", "é", "ü", "st", "ing", "un", "ро", "го", "'s", "12", "…"]
    words = ["".join(numbers.choice(syllables) for _ in range(numbers.randint(1, 5))) for _ in range(300)]
    chosen = (words[int(len(words) * numbers.random() ** 3)] for _ in range(count))
    return "".join(word + numbers.choice([" ", " ", " ", ", ", "\n", ".  ", "\r\n"]) for word in chosen)


def two_letters(numbers, count):
    """Here many pairs give the same token, and some pairs are merged more than once."""
    words = ("".join(numbers.choice("ab") for _ in range(numbers.randint(1, 14))) for _ in range(count))
    return "".join(word + numbers.choice("  \n") for word in words)


def unusual():
    """Zero bytes, runs, and no newline at the end."""
    return "a\0b the\0\0the cat\r\n\r\n\0the\0the\x7f \u200b\U0010fffd\n" * 4 + "=" * 70 + "a" * 33 + " the end"


def trained(text, by_lines, rules, vocabulary_size, min_frequency, special_tokens):
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=rules == "gpt2")
    pattern = {"gpt2": None, "llama3": CL100K, "qwen2": QWEN2}[rules]
    if pattern is None:
        tokenizer.pre_tokenizer = byte_level
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=special_tokens,
        show_progress=False,
    )
    tokenizer.train_from_iterator(re.split(r"(?<=\n)", text) if by_lines else [text], trainer)
    return tokenizer


def write(fixtures):
    numbers = random.Random(f"{fixtures.seed}/tokenizer training")
    texts = {
        "sentences": "".join(SENTENCES),
        "invented": invented_words(numbers, 1500),
        "letters": two_letters(numbers, 500),
        "unusual": unusual(),
    }
    results = []
    for name, text in texts.items():
        for by_lines, rules, vocabulary_size, min_frequency, special_tokens in (
            (True, "gpt2", 300, 0, SPECIAL),
            (True, "llama3", 450, 2, []),
            (False, "qwen2", 800, 0, ["!", "the", "ab", *SPECIAL]),
        ):
            tokenizer = trained(text, by_lines, rules, vocabulary_size, min_frequency, special_tokens)
            made = json.loads(tokenizer.to_str())["model"]
            results.append(
                {
                    "text": name,
                    "rules": rules,
                    "by_lines": by_lines,
                    "vocabulary_size": vocabulary_size,
                    "min_frequency": min_frequency,
                    "special_tokens": special_tokens,
                    "vocabulary": sorted(made["vocab"], key=made["vocab"].get),
                    "merges": [f"{left} {right}" for left, right in made["merges"]],
                    "tokens": tokenizer.encode(text).ids[:200],
                }
            )
    content = {"texts": texts, "trained": results}
    fixtures.write("tokenizers/training.json", json.dumps(content, separators=(",", ":")) + "\n")
    fixtures.add_other(
        "tokenizer_training",
        "tokenizers/training.json",
        "tokenizer_training",
        f"the vocabularies and merges that BpeTrainer of tokenizers {tokenizers.__version__} learns from texts",
    )
