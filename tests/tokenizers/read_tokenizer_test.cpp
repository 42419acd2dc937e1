#include "trireme/tokenizers/files/read_tokenizer.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "tokenizers/codecs/word_key.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using nlohmann::json;
using tests::TemporaryFolder;
using tokenizers::Tokenizer;
using Numbers = std::vector<std::int32_t>;

namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// A vocabulary of three letters, "ab" and "abc", with two added tokens.
json small() {
  return json::parse(R"({
    "added_tokens": [{"id": 5, "content": "<s>", "special": true, "normalized": false},
                     {"id": 6, "content": "<pad>", "special": true, "normalized": false}],
    "normalizer": null,
    "pre_tokenizer": null,
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                       "pair": [],
                       "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}},
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4}, "merges": ["a b", "ab c"], "unk_token": null}
  })");
}

// The same, for words that begin with "_" for a space.
json of_words() {
  json file = small();
  file["normalizer"] = json::parse(R"({"type": "Replace", "pattern": {"String": " "}, "content": "_"})");
  file["pre_tokenizer"] = json::parse(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})");
  file["model"]["vocab"]["_"] = 7;
  return file;
}

Tokenizer read(const json& file) {
  const TemporaryFolder folder;
  write(folder.path() / "tokenizer.json", file.dump());
  return tokenizers::read_tokenizer(folder.path());
}

// The error message for a file with one change.
std::string refusal(const std::string& pointer, const json& value) {
  json file = small();
  file[json::json_pointer(pointer)] = value;
  try {
    read(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a small tokenizer is read") {
  const Tokenizer tokenizer = read(small());
  CHECK(tokenizer.vocabulary_size() == 7);
  CHECK(tokenizer.encode("abcab<pad>ba") == Numbers{5, 4, 3, 6, 1, 0});
  CHECK(tokenizer.encode("") == Numbers{5});
  CHECK(tokenizer.decode(Numbers{5, 4, 1}) == "<s>abcb");
  CHECK(tokenizer.decode(Numbers{5, 4, 1}, {.skip_special_tokens = true}) == "abcb");
  CHECK_THROWS_WITH(tokenizer.encode("abd"), ContainsSubstring("no token for \"d\""));
  CHECK_THROWS_WITH(tokenizer.encode("ab\xFF"), ContainsSubstring("byte 2 of 3 is 0xFF"));
  CHECK(tokenizer.decode(Numbers{7, 4, 900, 1}) == "abcb");  // models may have more rows than there are tokens
  CHECK_THROWS_WITH(tokenizer.spelling(7), ContainsSubstring("7 is no token"));
  CHECK_THROWS_WITH(tokenizer.decode(Numbers{-1}), ContainsSubstring("-1 is no token"));
}

TEST_CASE("tokenizers of one thread do not share words") {
  json other = small();
  other["model"]["merges"] = json::array();
  const Tokenizer merging = read(small()), plain = read(other);
  for (int round = 0; round < 3; ++round) {
    CHECK(merging.encode("ab") == Numbers{5, 3});
    CHECK(plain.encode("ab") == Numbers{5, 0, 1});
  }
}

TEST_CASE("tokens that no merges lead to are not found in texts") {
  json file = small();
  file["model"]["vocab"]["ca"] = 7;
  file["model"]["vocab"]["ad"] = 8;  // nor is there a token for its "d"
  const Tokenizer tokenizer = read(file);
  CHECK(tokenizer.encode("ca") == Numbers{5, 2, 0});
  CHECK_THROWS_WITH(tokenizer.encode("ad"), ContainsSubstring("no token for \"d\""));
  file["model"]["ignore_merges"] = true;
  CHECK(read(file).encode("ad") == Numbers{5, 8});
}

// As of Llama 2: "_" stands for a space, and begins words.
TEST_CASE("words that share places in the cache keep their own tokens") {
  std::map<std::uint64_t, std::vector<std::string>> by_place;
  std::vector<std::string> shared;  // more words than there are places for them
  for (std::size_t number = 0; shared.size() < 7; ++number) {
    std::string word(1, '_');
    for (std::size_t rest = number; rest > 0; rest /= 3) word += "abc"[rest % 3];
    std::vector<std::string>& those = by_place[tokenizers::ShortWord(word, word.size()).hash() >> 49];
    those.push_back(word.substr(1));
    if (those.size() == 7) shared = those;
  }
  const Tokenizer tokenizer = read(of_words());
  std::string text;
  for (std::size_t at = 0; at < 100; ++at) text += " " + shared[at * at % shared.size()] + " " + shared[at % shared.size()];
  for (int round = 0; round < 2; ++round) CHECK(tokenizer.encode(text) == tokenizer.encode_with_offsets(text).tokens);
}

TEST_CASE("threads encode at once") {
  const Tokenizer words = read(of_words()), whole = read(small());
  std::string text;
  for (std::size_t word = 0; word < 500; ++word) {
    text += fmt::format(" {}{}", std::string(word % 9, 'b'), word % 2 == 0 ? "abc" : "ca");
  }
  std::string letters = text;
  std::erase(letters, ' ');
  const Numbers of_words_alone = words.encode(text), of_whole_alone = whole.encode(letters);
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        if (words.encode(text) != of_words_alone) ++count;
        if (whole.encode(letters) != of_whole_alone) ++count;
        if (words.encode_with_offsets(text).tokens != of_words_alone) ++count;
        if (whole.encode_with_offsets(letters).tokens != of_whole_alone) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("many words keep their order, whatever their lengths") {
  const Tokenizer tokenizer = read(of_words());
  std::string text;
  Numbers expected{5};
  for (int word = 0; word < 200; ++word) {
    const int letters = word * 7 % 40;  // more than 5 are too many tokens to be kept, more than 23 bytes too many too
    text += " " + std::string(static_cast<std::size_t>(letters), 'c') + (word % 3 == 0 ? "ab" : "");
    expected.push_back(7);
    expected.insert(expected.end(), static_cast<std::size_t>(letters), 2);
    if (word % 3 == 0) expected.push_back(3);
  }
  for (int round = 0; round < 2; ++round) CHECK(tokenizer.encode(text) == expected);
  const auto encoding = tokenizer.encode_with_offsets(text);
  CHECK(encoding.tokens == expected);
  for (std::size_t token = 1; token < expected.size(); ++token) {
    const std::string_view piece = std::string_view(text).substr(static_cast<std::size_t>(encoding.offsets[token].begin),
                                                                 static_cast<std::size_t>(encoding.offsets[token].count()));
    REQUIRE(piece == (expected[token] == 7 ? " " : tokenizer.spelling(expected[token])));
  }
}

TEST_CASE("kinds and options that are not known are refused by name") {
  const auto check = [](const char* pointer, const json& value, const char* said) {
    CAPTURE(pointer, value.dump());
    CHECK_THAT(refusal(pointer, value), ContainsSubstring(said));
  };
  check("/model/type", "Unigram", "BPE or WordPiece");
  check("/model/dropout", 0.1, "model.dropout");
  check("/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix");
  check("/model/novelty", 1, "model.novelty");
  check("/normalizer", {{"type", "Nmt"}}, "normalizer.type");
  check("/normalizer", {{"type", "Prepend"}, {"prepend", "a"}, {"how", 1}}, "normalizer.how");
  check("/pre_tokenizer", {{"type", "Whitespace"}}, "pre_tokenizer.type");
  check("/post_processor", {{"type", "Other"}}, "post_processor.type");
  check("/decoder", {{"type", "CTC"}}, "decoder.type");
  check("/novelty", 1, "novelty");
  check("/added_tokens/0/single_word", true, "added_tokens[0].single_word");
  check("/added_tokens/0/id", 3, "added_tokens[0].id");
  check("/added_tokens/0/id", 6, "added_tokens[1].id");
  check("/model/byte_fallback", true, "model.byte_fallback");
  check("/pre_tokenizer",
        {{"type", "Sequence"},
         {"pretokenizers", {{{"type", "BertPreTokenizer"}}, {{"type", "Metaspace"}, {"replacement", "_"}}}}},
        "before all other pre-tokenizers");
  check("/pre_tokenizer",
        {{"type", "Sequence"},
         {"pretokenizers",
          {{{"type", "ByteLevel"}, {"use_regex", false}, {"add_prefix_space", false}}, {{"type", "BertPreTokenizer"}}}}},
        "nothing behind ByteLevel");
  check("/decoder", {{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, {{"type", "WordPiece"}}}}}, "before Fuse");
}

TEST_CASE("vocabularies with faults are refused") {
  const auto check = [](const char* pointer, const json& value, const char* said) {
    CAPTURE(pointer, value.dump());
    CHECK_THAT(refusal(pointer, value), ContainsSubstring(said));
  };
  check("/model/vocab", json::object(), "no object of tokens");
  check("/model/vocab", "a", "no object of tokens");
  check("/model/vocab/a", -1, "number -1");
  check("/model/vocab/a", 1, "same number, 1");
  check("/model/vocab/a", 1 << 30, "1073741824");
  check("/model/vocab/a", "0", "no number for the token \"a\"");
  check("/model/merges", "a b", "merges are no list");
  check("/model/merges/0", "a", "merge 0 is no pair");
  check("/model/merges/1", {"ab", "d"}, "merge 1 needs the token \"d\"");
  check("/model/merges/1", {"b", "c"}, "merge 1 needs the token \"bc\"");
  check("/post_processor/single", json::array(), "post_processor.single");
  check("/post_processor/special_tokens", json::object(), "post_processor.special_tokens.<s>");
  check("/post_processor/special_tokens/<s>/ids", {-5}, "ids");
  check("/post_processor/special_tokens/<s>/ids", {1000}, "1000 is no token");
  json deep = {{"type", "NFC"}};
  for (int level = 0; level < 1000; ++level) deep = {{"type", "Sequence"}, {"normalizers", {deep}}};
  check("/normalizer", deep, "nested");
}

TEST_CASE("files and folders without a tokenizer are errors") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path()), ContainsSubstring("no tokenizer"));
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path() / "absent.json"), ContainsSubstring("can't be read"));
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path() / "weights.bin"), ContainsSubstring(".json, .model or .txt"));
  write(folder.path() / "tokenizer.json", "{\"model\": ");
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path()), ContainsSubstring("is no JSON object"));
  write(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path() / "vocab.txt"), ContainsSubstring("no token [MASK]"));
  write(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[PAD]\n");
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path() / "vocab.txt"),
                    ContainsSubstring("line 3") && ContainsSubstring("[PAD] is there twice"));
  fs::create_directory(folder.path() / "other");
  fs::create_directory(folder.path() / "other" / "tokenizer.json");
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path() / "other"), ContainsSubstring("can't be read"));
  CHECK_THROWS_WITH(tokenizers::read_gpt2(folder.path() / "a", folder.path() / "b"), ContainsSubstring("cannot be opened"));
}

TEST_CASE("a tokenizer that is not known is told by its file") {
  const TemporaryFolder folder;
  CHECK_FALSE(tokenizers::has_tokenizer(folder.path()));
  write(folder.path() / "config.json", "{}");
  write(folder.path() / "model.safetensors", "");
  CHECK_FALSE(tokenizers::has_tokenizer(folder.path()));
  for (const char* const name : {"qwen.tiktoken", "spiece.model", "tekken.json", "vocab.json", "tokenization_baichuan.py"}) {
    CAPTURE(name);
    write(folder.path() / name, "x");
    CHECK_THROWS_WITH(tokenizers::has_tokenizer(folder.path()), ContainsSubstring(std::string("though it has ") + name));
    CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path()), ContainsSubstring(name));
    fs::remove(folder.path() / name);
  }
  // Meta's tokenizer.model of Llama 3: the first lines of a tiktoken file.
  write(folder.path() / "tokenizer.model", "IQ== 0\nIg== 1\n");
  CHECK(tokenizers::has_tokenizer(folder.path()));
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path()), ContainsSubstring("a file of tiktoken") &&
                                                                   ContainsSubstring("tokenizer.model") &&
                                                                   ContainsSubstring("tokenizer.json"));
  write(folder.path() / "tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 499723\n");
  CHECK_THROWS_WITH(tokenizers::read_tokenizer(folder.path() / "tokenizer.model"), ContainsSubstring("a Git LFS pointer"));
}

TEST_CASE("tokens that a folder adds to vocab.json and vocab.txt are found") {
  const TemporaryFolder folder;
  json vocabulary;
  for (const char letter : std::string("abcdefghijklmnopqrstuvwxyz")) vocabulary[std::string(1, letter)] = vocabulary.size();
  write(folder.path() / "vocab.json", vocabulary.dump());
  write(folder.path() / "merges.txt", "");
  write(folder.path() / "added_tokens.json", R"({"<|im_end|>": 27, "<x>": 26})");
  write(folder.path() / "special_tokens_map.json", R"({"eos_token": {"content": "<|im_end|>", "lstrip": true}})");
  const auto read_folder = [&] { return tokenizers::read_tokenizer(folder.path()); };
  CHECK(read_folder().encode("a<x>b<|im_end|>") == Numbers{0, 26, 1, 27});
  CHECK(read_folder().vocabulary_size() == 28);
  CHECK(read_folder().decode(Numbers{0, 26, 27}, {.skip_special_tokens = true}) == "a<x>");
  // Only tokenizer_config.json counts where it has added tokens.
  write(folder.path() / "tokenizer_config.json",
        R"({"added_tokens_decoder": {"30": {"content": "<y>", "lstrip": true, "special": true, "normalized": false}}})");
  CHECK(read_folder().encode("a <y>b") == Numbers{0, 30, 1});
  CHECK(read_folder().find("<x>") == std::nullopt);
  CHECK(read_folder().is_special(30));
  write(folder.path() / "tokenizer_config.json", R"({"added_tokens_decoder": {"thirty": {"content": "<y>"}}})");
  CHECK_THROWS_WITH(read_folder(), ContainsSubstring("not \"thirty\"") && ContainsSubstring("added_tokens_decoder"));
  write(folder.path() / "tokenizer_config.json",
        R"({"added_tokens_decoder": {"30": {"content": "<y>", "single_word": true}}})");
  CHECK_THROWS_WITH(read_folder(), ContainsSubstring("single_word"));
  write(folder.path() / "tokenizer_config.json", "{}");
  write(folder.path() / "added_tokens.json", R"({"<y>": "30"})");
  CHECK_THROWS_WITH(read_folder(), ContainsSubstring("<y>") && ContainsSubstring("added_tokens.json"));
  write(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n");
  write(folder.path() / "added_tokens.json", R"({"<Y>": 7})");
  CHECK(read_folder().encode("a<Y>b<y>") == Numbers{2, 5, 7, 6, 7, 3});  // it is found in lowercase texts
}

TEST_CASE("a tokenizer begins a text where its first character is, whatever a normalizer takes") {
  json file = of_words();
  file["pre_tokenizer"] =
      json::parse(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false})");
  const auto with = [&](const char* normalizer) {
    file["normalizer"] = json::parse(normalizer);
    return read(file);
  };
  const auto bare = [](const Tokenizer& tokenizer, const char* text) {
    return tokenizer.encode(text, {.add_special_tokens = false});
  };
  const Tokenizer takes = with(R"({"type": "Replace", "pattern": {"String": "c"}, "content": ""})");
  CHECK(bare(takes, "ab") == Numbers{7, 3});
  CHECK(bare(takes, "cab") == Numbers{3});  // as tokenizers of Hugging Face: what begins is gone
  CHECK(bare(takes, "ccab") == Numbers{3});
  CHECK(takes.encode_with_offsets("cab", {.add_special_tokens = false}).tokens == Numbers{3});
  const Tokenizer makes_two = with(R"({"type": "Sequence", "normalizers": [
      {"type": "Replace", "pattern": {"String": "b"}, "content": "ca"},
      {"type": "Replace", "pattern": {"String": "c"}, "content": ""}]})");
  CHECK(bare(makes_two, "ba") == Numbers{7, 0, 0});  // the first a comes from the b, which begins the text
  const Tokenizer puts_before = with(R"({"type": "Prepend", "prepend": "a"})");
  CHECK(bare(puts_before, "bc") == Numbers{7, 4});
  CHECK(bare(puts_before, "a<pad>b") == Numbers{7, 0, 0, 6, 3});
}

TEST_CASE("files of tiktoken with faults are refused") {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& text, const char* said) {
    write(folder.path() / "x.tiktoken", text);
    CHECK_THROWS_WITH(tokenizers::read_tiktoken(folder.path() / "x.tiktoken"), ContainsSubstring(said));
  };
  check("", "no token for the byte 0x00");
  check("AA==\n", "line 1 of a tiktoken file has no space");
  check("A* 0\n", "does not begin with base64");
  check("AA== x\n", "does not end with a number");
  check("AA== 0\nAA== 1\n", "line 2");
  check("AA== 0\nAQ== 0\n", "same number, 0");
}
