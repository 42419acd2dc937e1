#include "trireme/tokenizers/files/read_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "tokenizers/codecs/wordpiece.hpp"
#include "tokenizers/files/folder_tokens.hpp"
#include "tokenizers/files/json_parts.hpp"
#include "tokenizers/files/sentencepiece_codec.hpp"
#include "tokenizers/files/tiktoken.hpp"
#include "tokenizers/files/tokenizer_json.hpp"
#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::tokenizers {
namespace {

// The lines of a file without line ends.
std::vector<std::string> lines_of(const Location& path) {
  std::istringstream text(open_file(path)->content());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

// Adds a special token, unless the folder has defined it already.
void add_special(const char* content, std::int32_t number, TextCodecParts& parts) {
  const auto has_number = [number](const AddedToken& token) { return token.number == number; };
  if (std::ranges::any_of(parts.added, has_number)) return;
  add_token({.token = {.content = content, .number = number, .is_special = true}}, parts);
}

// Reads BERT's vocab.txt, one token per line. The folder's tokenizer_config.json says whether it is cased.
std::shared_ptr<const detail::Codec> read_vocab_txt(const Location& path) {
  std::vector<std::string> lines = lines_of(path);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  auto tokens = std::make_shared<TokenSpellings>(lines.size());
  const auto refuse = [&](const std::string& what) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("a WordPiece vocabulary is wrong in line {}: {}", tokens->size() + 1, what),
                 .path = path.string()});
  };
  for (std::string& line : lines) {
    if (first_invalid(line) < line.size()) refuse("it is no UTF-8");
    if (tokens->find(line)) refuse(fmt::format("the token {} is there twice", shown(line)));
    tokens->add(std::move(line), tokens->size());
  }
  const auto number_of = [&](const char* token) {
    const auto number = tokens->find(token);
    if (!number) {
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = fmt::format("a WordPiece vocabulary has no token {}", token),
                   .path = path.string()});
    }
    return *number;
  };
  BertNormalizerOptions normalizer;
  const auto config_path = path.parent() / "tokenizer_config.json";
  if (is_there(config_path)) {
    const ConfigFile config(config_path, "a tokenizer's config");
    normalizer.lowercase = config.flag_or("do_lower_case", true);
    normalizer.handle_chinese_chars = config.flag_or("tokenize_chinese_chars", true);
    if (config.has("strip_accents")) normalizer.strip_accents = config.flag_or("strip_accents", true);
  }
  TextCodecParts parts{.spellings = tokens, .texts = tokens, .model = std::make_shared<WordPiece>(tokens, WordPieceOptions{})};
  parts.normalizer = bert_normalizer(normalizer);
  add_folder_tokens(path.parent(), parts);
  for (const char* const special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    add_special(special, number_of(special), parts);
  }
  parts.splitter.add(SplitLikeBert{});
  const std::vector<std::int32_t> begin{number_of("[CLS]")}, end{number_of("[SEP]")};
  parts.single = {{.tokens = begin}, {.text = 0}, {.tokens = end}};
  parts.pair = {{.tokens = begin}, {.text = 0}, {.tokens = end}, {.text = 1, .type = 1}, {.type = 1, .tokens = end}};
  parts.decoder = {.continuing_prefix = "##", .cleans_up = true};
  return std::make_shared<TextCodec>(std::move(parts));
}

std::shared_ptr<const detail::Codec> gpt2_codec(const Location& vocabulary, const Location& merges) {
  const std::string text = open_file(vocabulary)->content();
  const auto tokens = nlohmann::json::parse(text, nullptr, false);
  if (tokens.is_discarded()) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = "a tokenizer's vocabulary is no JSON object" + why_no_json(text),
                 .path = vocabulary.string()});
  }
  nlohmann::json pairs = nlohmann::json::array();
  for (std::string& line : lines_of(merges)) {
    if (!line.starts_with("#version") && !line.empty()) pairs.push_back(std::move(line));
  }
  ModelParts model = byte_level_bpe(tokens, pairs, vocabulary.string());
  TextCodecParts parts{.spellings = model.spellings, .texts = model.texts, .model = model.model};
  add_folder_tokens(vocabulary.parent(), parts);
  if (const auto number = model.spellings->find("<|endoftext|>")) add_special("<|endoftext|>", *number, parts);
  parts.splitter.add(SplitByRegex{.regex = Regex(patterns::gpt2, RegexRules::oniguruma)});
  return std::make_shared<TextCodec>(std::move(parts));
}

bool has_file(const Location& folder, const char* name) { return is_there(folder / name); }

bool has_gpt2(const Location& folder) { return has_file(folder, "vocab.json") && has_file(folder, "merges.txt"); }

bool is_read(const Location& folder) {
  return has_file(folder, "tokenizer.json") || has_file(folder, "tokenizer.model") || has_file(folder, "vocab.txt") ||
         has_gpt2(folder);
}

// The first file in a folder whose name looks like a tokenizer's; empty if there is none.
std::string file_of_tokenizer(const Location& folder) {
  constexpr std::array<std::string_view, 8> begins{"added_tokens", "merges", "sentencepiece", "special_tokens_map",
                                                   "spiece",       "tekken", "tokeniz",       "vocab"};
  constexpr std::array<std::string_view, 4> ends{".bpe", ".model", ".spm", ".tiktoken"};
  std::vector<std::string> found;
  if (!is_folder(folder)) return "";
  for (const std::string& name : file_system_of(folder)->names_in(folder)) {
    const bool belongs = std::ranges::any_of(begins, [&](std::string_view begin) { return name.starts_with(begin); }) ||
                         std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
    if (belongs) found.push_back(name);
  }
  return found.empty() ? "" : std::ranges::min(found);
}

[[noreturn]] void refuse_folder(const Location& folder) {
  const std::string other = file_of_tokenizer(folder);
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format(
                   "a folder has no tokenizer{}: no tokenizer.json, tokenizer.model, vocab.txt, or vocab.json with merges.txt",
                   other.empty() ? "" : fmt::format(" that is known, though it has {}", shown(other))),
               .path = folder.string(),
               .hint = other.empty()
                           ? "transformers writes one by save_pretrained() of a tokenizer"
                           : "transformers writes a tokenizer.json by save_pretrained() of a tokenizer; or name another "
                             "tokenizer, or that texts are bytes"});
}

// Reads a tokenizer.model of sentencepiece. In Meta's own folders a file of this name is a tiktoken file, which is refused.
std::shared_ptr<const detail::Codec> read_model_file(const Location& path) {
  const auto file = open_file(path);
  std::string begin(std::min<std::size_t>(file->size(), 1024), '\0');
  file->read_at(std::as_writable_bytes(std::span(begin)), 0);
  const auto refuse = [&](const char* message, const char* hint) {
    throw Error({.code = ErrorCode::invalid_argument, .message = message, .path = path.string(), .hint = hint});
  };
  if (begin.starts_with("version https://git-lfs")) {
    refuse("the file is a Git LFS pointer instead of the tokenizer", "fetch the files of the folder by git lfs pull");
  }
  if (is_tiktoken_line(std::string_view(begin).substr(0, begin.find_first_of("\r\n")))) {
    refuse(
        "this is a file of tiktoken, as Meta has it beside its own weights, and no model of sentencepiece",
        "name the folder that transformers reads, with its tokenizer.json; in a program read_tiktoken() reads the file, given "
        "its pattern and special tokens");
  }
  return read_sentencepiece(path);
}

std::shared_ptr<const detail::Codec> read_folder(const Location& folder) {
  if (has_file(folder, "tokenizer.json")) return read_tokenizer_json(folder / "tokenizer.json");
  if (has_file(folder, "tokenizer.model")) return read_model_file(folder / "tokenizer.model");
  if (has_file(folder, "vocab.txt")) return read_vocab_txt(folder / "vocab.txt");
  if (has_gpt2(folder)) {
    if (has_file(folder, "tokenizer_config.json")) {
      const ConfigFile config(folder / "tokenizer_config.json", "a tokenizer's config");
      if (!config.text_or("tokenizer_class", "GPT2Tokenizer").starts_with("GPT2")) {
        config.refuse("tokenizer_class", "GPT2Tokenizer: of others a folder needs tokenizer.json, which transformers writes");
      }
    }
    return gpt2_codec(folder / "vocab.json", folder / "merges.txt");
  }
  refuse_folder(folder);
}

}  // namespace

Tokenizer read_tokenizer(const Location& path) {
  if (is_folder(path)) return Tokenizer(read_folder(path));
  if (path.extension() == ".json") return Tokenizer(read_tokenizer_json(path));
  if (path.extension() == ".model") return Tokenizer(read_model_file(path));
  if (path.extension() == ".txt") return Tokenizer(read_vocab_txt(path));
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = "a tokenizer is a folder, or a file that ends with .json, .model or .txt; read_tiktoken() reads tiktoken's",
       .path = path.string()});
}

bool has_tokenizer(const Location& folder) {
  if (!is_read(folder) && !file_of_tokenizer(folder).empty()) refuse_folder(folder);
  return is_read(folder);
}

Tokenizer read_tiktoken(const Location& path, const TiktokenOptions& options) {
  return Tokenizer(tiktoken_codec(lines_of(path), path.string(), options));
}

Tokenizer read_gpt2(const Location& vocabulary, const Location& merges) { return Tokenizer(gpt2_codec(vocabulary, merges)); }

}  // namespace trireme::tokenizers
