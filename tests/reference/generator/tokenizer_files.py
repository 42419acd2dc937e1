"""Tokenizers as tokenizers, tiktoken and sentencepiece write them, and their tokens for some texts.

    python3 -m generator.tokenizer_files

prints the characters that BERT's rules know, and those that normal forms leave alone, for src/tokenizers.
"""

import base64
import io
import json
import unicodedata

import sentencepiece
import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = CL100K.replace("{1,3}", "")
SENTENCES = (
    "The quick brown fox doesn't jump over 12345 lazy dogs, they're sleeping; it's 3.14159 o'clock!\n",
    "We'll see what I'd have done if you've been there: \"nothing\", he said, and went home.\r\n\r\n",
    "Größe, naïve café, São Tomé, Æther, ﬁne; İstanbul and ſharp s: STRASSE straße.\n",
    "Привет, мир! Как дела? Всё хорошо, спасибо.  Ещё раз: привет.\n",
    "你好，世界。日本語のテキスト、한국어 텍스트도 있습니다.\n",
    "    def f(x):\n        return x ** 2  # squares\n\n\tif (a && b) { c += 1; }\n",
    "नमस्ते दुनिया, مرحبا بالعالم, שלום עולם, สวัสดีชาวโลก 👋🏽 👨‍👩‍👧 🇩🇪\n",
)
SPECIAL = ("<|endoftext|>", "<|begin_of_text|>", "[MASK]", "<s>", "</s>", "'s", "'LL", "'ſ", "   ", "\r\n\r\n", " \n ")
VOCABULARY = 420


def characters():
    """All characters of Unicode 14."""
    return [code for code in range(1, 0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]


def random_texts(random, count):
    known = characters()
    marks = [code for code in known if unicodedata.category(chr(code))[0] == "M"]
    letters = [code for code in known if unicodedata.category(chr(code))[0] in "LN"]
    common = [ord(each) for each in " \n\t\r'.,!?-abcdefgxyzSTDMLRVE0123456789éñüßſK\u0301\u0308\u3000\u00a0\u200b\u180e\u2028中文한дпр"]

    def any_of(values):
        return values[int(random.integers(1, below=len(values)))]

    texts = []
    for _ in range(count):
        text = ""
        for _ in range(1 + int(random.integers(1, below=30))):
            kind = int(random.integers(1, below=20))
            if kind == 0:
                text += any_of(SPECIAL)
            elif kind < 11:
                text += chr(any_of(common))
            else:
                text += chr(any_of(marks if kind < 13 else letters if kind < 17 else known))
        texts.append(text)
    return texts


def bpe(pre_tokenizer, normalizer=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def gpt2():
    tokenizer = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def roberta():
    tokenizer = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    numbers = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*numbers, trim_offsets=True, add_prefix_space=True)
    return tokenizer


def llama3():
    split = pre_tokenizers.Split(Regex(CL100K), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = bpe(pre_tokenizers.Sequence([split, byte_level]), ignore_merges=True)
    begin = "<|begin_of_text|>"
    tokenizer.add_special_tokens([begin, "<|eot_id|>"])
    template = processors.TemplateProcessing(
        single=f"{begin} $A",
        pair=f"{begin} $A {begin}:1 $B:1",
        special_tokens=[(begin, tokenizer.token_to_id(begin))],
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


def qwen2():
    split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return bpe(pre_tokenizers.Sequence([split, byte_level]), normalizers.NFC())


def neox():
    tokenizer = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * count, normalized=True) for count in range(8, 1, -1)])
    return tokenizer


def sentencepiece_like():
    """As the tokenizer.json of Llama 2: merges go over whole texts."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY + 200, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def llama2():
    tokenizer = sentencepiece_like()
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def mistral():
    tokenizer = sentencepiece_like()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return tokenizer


def bert(lowercase=True):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def offsets_in_bytes(text, encoding):
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return [place for begin, end in encoding.offsets for place in (places[begin], places[end])]


def described(tokenizer, texts):
    """Offsets only where no character changes: tokenizers gives composed characters the offsets of their first part."""
    results = []
    for text in texts:
        encoding = tokenizer.encode(text)
        result = {"tokens": encoding.ids, "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=True)}
        if unicodedata.is_normalized("NFD", text) and unicodedata.is_normalized("NFC", text):
            result["offsets"] = offsets_in_bytes(text, encoding)
        results.append(result)
    return results


def pair(tokenizer, first, second):
    encoding = tokenizer.encode(first, second)
    return {"tokens": encoding.ids, "types": encoding.type_ids}


def tiktoken_ranks():
    """The tokens of a byte-level tokenizer, numbered from 0, by their bytes."""
    tokenizer = llama3()
    shown = [byte for byte in range(256) if 33 <= byte < 127 or 161 <= byte < 173 or byte >= 174]
    others = [byte for byte in range(256) if byte not in shown]
    bytes_of = {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(others)}
    vocabulary = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1])
    words = [bytes(bytes_of[letter] for letter in token) for token, _ in vocabulary if token != "<|endoftext|>"]
    return {word: number for number, word in enumerate(words)}


def write(fixtures):
    random = fixtures.random("tokenizers")
    texts = ["", " ", "a", *SENTENCES, *random_texts(random, 40)]
    expected = {"texts": texts, "tokenizers": {}}
    made = {
        "gpt2": gpt2(),
        "roberta": roberta(),
        "llama3": llama3(),
        "qwen2": qwen2(),
        "neox": neox(),
        "llama2": llama2(),
        "mistral": mistral(),
        "bert": bert(),
        "bert_cased": bert(lowercase=False),
    }
    for name, tokenizer in made.items():
        fixtures.write(f"tokenizers/{name}/tokenizer.json", tokenizer.to_str())
        expected["tokenizers"][name] = {
            "results": described(tokenizer, texts),
            "pair": pair(tokenizer, SENTENCES[0], SENTENCES[1]),
        }

    ranks = tiktoken_ranks()
    lines = [f"{base64.b64encode(word).decode()} {number}\n" for word, number in ranks.items()]
    fixtures.write("tokenizers/cl100k.tiktoken", "".join(lines))
    special = {"<|endoftext|>": len(ranks)}
    encoding = tiktoken.Encoding("cl100k", pat_str=CL100K, mergeable_ranks=ranks, special_tokens=special)
    expected["tiktoken"] = {"special_tokens": special, "tokens": [encoding.encode(text, allowed_special="all") for text in texts]}

    expected["sentencepiece"] = {}
    for kind, options in (("bpe", {"byte_fallback": True}), ("unigram", {})):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(" ".join(sentence.split()) for sentence in SENTENCES),
            model_writer=model,
            model_type=kind,
            vocab_size=VOCABULARY + 100 if kind == "bpe" else 220,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            minloglevel=2,
            **options,
        )
        fixtures.write(f"tokenizers/sentencepiece_{kind}/tokenizer.model", model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        expected["sentencepiece"][kind] = [
            {"tokens": processor.encode(text), "decoded": processor.decode(processor.encode(text))} for text in texts
        ]
    fixtures.write("tokenizers/expected.json", json.dumps(expected, separators=(",", ":")) + "\n")
    fixtures.add_other(
        "tokenizers",
        "tokenizers/expected.json",
        "tokenizers",
        f"files of tokenizers {tokenizers.__version__}, tiktoken and sentencepiece, and what they make of texts",
    )


def ranges_of(codes):
    ranges = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ", ".join(f"{{0x{first:X}, 0x{last:X}}}" for first, last in ranges)


def print_characters():
    known = characters()
    beyond_ascii = [code for code in known if code >= 0x80]
    options = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    clean = normalizers.BertNormalizer(**(options | {"clean_text": True}))
    strip = normalizers.BertNormalizer(**(options | {"strip_accents": True}))
    words = pre_tokenizers.BertPreTokenizer()
    decompose = normalizers.NFD()
    compatible = normalizers.NFKD()

    def between(code, before="a", after="b"):
        return before + chr(code) + after

    def is_dropped(normalizer, code):
        return normalizer.normalize_str(between(code)) == "ab"

    def differs(code):
        if compatible.normalize_str(chr(code)) != unicodedata.normalize("NFKD", chr(code)):
            return True
        around = (between(code, "a", "\u0334"), between(code, "a\u0345", ""))
        return unicodedata.combining(chr(code)) != 0 and any(
            decompose.normalize_str(text) != unicodedata.normalize("NFD", text) for text in around
        )

    found = {
        "other": [code for code in beyond_ascii if is_dropped(clean, code) and code != 0xFFFD],
        "nonspacing": [
            code for code in beyond_ascii if is_dropped(strip, code) and len(decompose.normalize_str(chr(code))) == 1
        ],
        "punctuation": [
            code for code in beyond_ascii if not chr(code).isspace() and len(words.pre_tokenize_str(between(code))) == 3
        ],
        "later": [code for code in known if differs(code)],
    }
    for name, codes in found.items():
        print(f"{name}: {ranges_of(codes)}\n")


if __name__ == "__main__":
    print_characters()
