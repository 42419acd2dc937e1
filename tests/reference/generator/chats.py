"""Conversations as transformers renders and encodes them, and the losses of a model that learns only the answers."""

import json

import torch
import transformers

from . import llama_models, tokenizer_files
from .chat_templates import WRITTEN
from .fixture_set import safetensors

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}"
)
LLAMA2 = (
    "{% set start = 0 %}{% if messages[0]['role'] == 'system' %}{% set start = 1 %}{% endif %}"
    "{% for message in messages[start:] %}{% set content = message['content'] %}"
    "{% if loop.first and start == 1 %}"
    "{% set content = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' + content %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{% generation %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endgeneration %}{% endif %}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% set start = 0 %}{% if messages[0]['role'] == 'system' %}{% set start = 1 %}{% endif %}"
    "{% for message in messages[start:] %}{% set content = message['content'] %}"
    "{% if loop.first and start == 1 %}{% set content = messages[0]['content'] + '\n\n' + content %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + content + ' [/INST]' }}"
    "{% else %}{% generation %}{{ content + eos_token }}{% endgeneration %}{% endif %}{% endfor %}"
)
ZEPHYR = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}"
    "{% else %}{{ message['content'] + eos_token }}{% endif %}{{ '\n' }}{% endfor %}"
)
# The usual texts of Alpaca and of a prompt with its completion, both as TRL encodes texts: with the tokenizer's own tokens.
ALPACA = (
    "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}"
    "{% else %}{{ 'Below is an instruction that describes a task. "
    "Write a response that appropriately completes the request.' }}{% endif %}"
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ '\n\n### Instruction:\n' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ '\n\n### Response:\n' }}"
    "{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}{% endif %}{% endfor %}"
)
PLAIN = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}"
    "{% else %}{{ message['content'] }}{% endif %}{% endfor %}"
)
AS_TEXT = ("alpaca", "plain")
TEMPLATES = {
    "byte_level": {"chatml": CHATML, "llama3": LLAMA3, "zephyr": ZEPHYR, "alpaca": ALPACA, "plain": PLAIN},
    "prepending": {"llama2": LLAMA2, "mistral": MISTRAL, "zephyr": ZEPHYR, "alpaca": ALPACA, "plain": PLAIN},
    "metaspace": {"llama2": LLAMA2, "mistral": MISTRAL, "alpaca": ALPACA, "plain": PLAIN},
}

SYSTEM = {"role": "system", "content": " You're terse, and quick. \n"}
TURNS = [
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "It's 4."},
    {"role": "user", "content": "  And naïve café in São Tomé? Привет, мир!\n"},
    {"role": "assistant", "content": "\n\nWe'll see: \"nothing\", he said.\n    return x ** 2  # squares "},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": "你好 👋🏽"},
]
CONVERSATIONS = [TURNS[:2], TURNS, [SYSTEM, *TURNS[:4]], [SYSTEM, *TURNS[2:4]], TURNS[:3], [TURNS[0], TURNS[5]]]

DOCUMENTS = 30
LONGEST = 24
BATCH = 6
LEARNING_RATE = 0.05


def tokenizers():
    byte_level = tokenizer_files.llama3()
    byte_level.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>"])
    marks = {"bos_token": "<|begin_of_text|>", "eos_token": "<|endoftext|>"}
    sentencepiece = {"bos_token": "<s>", "eos_token": "</s>"}
    made = {
        "byte_level": (byte_level, marks),
        "prepending": (tokenizer_files.llama2(), sentencepiece),
        "metaspace": (tokenizer_files.mistral(), sentencepiece),
    }
    return {
        name: transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **marks)
        for name, (tokenizer, marks) in made.items()
    }


def encoded(tokenizer, template, messages, as_text):
    text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
    result = tokenizer.apply_chat_template(
        messages, chat_template=template, return_dict=True, return_assistant_tokens_mask=True
    )
    tokens, mask = result["input_ids"], result["assistant_masks"]
    added = tokenizer(text)["input_ids"][: -len(tokens)] if as_text else []
    return {"text": text, "tokens": added + tokens, "mask": [0] * len(added) + mask}


def written_is_the_same(tokenizer, template, results):
    for messages, result in zip(CONVERSATIONS, results):
        text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        assert text.endswith(result["text"])  # with alpaca and plain the tokenizer adds tokens at the beginning
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == result["tokens"]


def prompts_are_masked(tokenizer, results):
    """As in TRL, the completion is the tokens after those of the prompt alone."""
    for messages, result in zip(CONVERSATIONS, results):
        if len(messages) == 2 and messages[0]["role"] == "user":
            prompt = tokenizer(messages[0]["content"])["input_ids"]
            whole = tokenizer(messages[0]["content"] + messages[1]["content"] + tokenizer.eos_token)["input_ids"]
            assert whole == result["tokens"] and whole[: len(prompt)] == prompt
            assert result["mask"] == [0] * len(prompt) + [1] * (len(whole) - len(prompt))


def documents(random):
    """Tokens padded with 0, and which of them are learnt: between one and nearly all of a document."""
    tokens = torch.zeros(DOCUMENTS, LONGEST, dtype=torch.int64)
    targets = torch.full((DOCUMENTS, LONGEST), -100)
    lengths = 2 + random.integers(DOCUMENTS, below=LONGEST - 1)
    for row, length in enumerate(lengths.tolist()):
        tokens[row, :length] = random.integers(length, below=llama_models.SIZES["vocab_size"])
        prompt = 1 + int(random.integers(1, below=length - 1))
        targets[row, prompt - 1 : length - 1] = tokens[row, prompt:length]
    return tokens, targets, lengths


def losses(model, tokens, targets, lengths):
    """The losses of ten steps, each with the next documents, by transformers over padded rows."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    values = []
    for step in range(10):
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % DOCUMENTS
        mask = (torch.arange(LONGEST)[None] < lengths[rows][:, None]).to(torch.int64)
        labels = torch.full_like(targets[rows], -100)  # transformers shifts them
        labels[:, 1:] = targets[rows][:, :-1]
        loss = model(input_ids=tokens[rows], attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return torch.tensor(values, dtype=torch.float64)


def write(fixtures):
    expected = {"conversations": CONVERSATIONS, "tokenizers": {}}
    for name, tokenizer in tokenizers().items():
        fixtures.write(f"chats/{name}/tokenizer.json", tokenizer.backend_tokenizer.to_str())
        fixtures.write(
            f"chats/{name}/tokenizer_config.json",
            json.dumps({"bos_token": tokenizer.bos_token, "eos_token": {"content": tokenizer.eos_token}}) + "\n",
        )
        expected["tokenizers"][name] = {}
        for template, text in TEMPLATES[name].items():
            results = [encoded(tokenizer, text, messages, template in AS_TEXT) for messages in CONVERSATIONS]
            written = WRITTEN[name][template]
            written_is_the_same(tokenizer, written, results)
            expected["tokenizers"][name][template] = {"jinja": text, "written": written, "results": results}
        prompts_are_masked(tokenizer, expected["tokenizers"][name]["plain"]["results"])
    random = fixtures.random("chats")
    tokens, targets, lengths = documents(random)
    model, _ = llama_models.model_of("llama", fixtures.random("llama/llama"))
    results = {
        "tokens": tokens.to(torch.int32),
        "targets": targets.to(torch.int32),
        "lengths": lengths.to(torch.int32),
        "sgd_losses": losses(model.double(), tokens, targets, lengths),
    }
    fixtures.write("chats/learnt.safetensors", safetensors(results))
    expected["samples"] = [{"file": "learnt.safetensors"}]
    expected |= {"batch": BATCH, "learning_rate": LEARNING_RATE, "model": "llama/llama"}
    fixtures.write("chats/expected.json", json.dumps(expected, separators=(",", ":")) + "\n")
    fixtures.add_other(
        "chats", "chats/expected.json", "conversations", "conversations by chat templates of transformers, and the losses of answers"
    )
