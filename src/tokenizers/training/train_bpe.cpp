#include "trireme/tokenizers/training/train_bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tokenizers/text/utf8.hpp"
#include "tokenizers/training/count_words.hpp"
#include "tokenizers/training/learn_merges.hpp"
#include "tokenizers/training/text_source.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::int64_t most_tokens = std::int64_t{1} << 24;

void check(const BpeTrainingOptions& options) {
  require(options.threads >= 1, "a tokenizer is trained by {} threads, it needs 1 or more", options.threads);
  std::vector<std::string> sorted = options.special_tokens;
  std::ranges::sort(sorted);
  for (const std::string& token : sorted) {
    require(!token.empty() && first_invalid(token) == token.size(), "the special token \"{}\" is empty or no UTF-8",
            shown(token));
  }
  const auto twice = std::ranges::adjacent_find(sorted);
  require(twice == sorted.end(), "the special token \"{}\" is there twice", twice == sorted.end() ? "" : *twice);
  const std::int64_t least = 256 + std::ssize(sorted);
  require(options.vocabulary_size >= least && options.vocabulary_size <= most_tokens,
          "a vocabulary of {} tokens: it must have {} to {}, among them the 256 bytes and the {} special tokens",
          options.vocabulary_size, least, most_tokens, sorted.size());
}

TrainedBpe train(TextSource& source, const BpeTrainingOptions& options) {
  check(options);
  WordSplitter splitter;
  splitter.add(SplitByRegex{.regex = Regex(options.pattern, RegexRules::oniguruma)});
  const CountedWords counted = count_words(source, splitter, options.skip_invalid, options.threads);
  TrainedBpe trained{.special_tokens = options.special_tokens,
                     .pattern = options.pattern,
                     .texts = counted.texts,
                     .skipped_texts = counted.skipped_texts,
                     .bytes = counted.bytes,
                     .words = counted.words,
                     .distinct_words = counted.counts->size()};
  LearntMerges learnt = learn_merges(*counted.counts, options);
  trained.merges = std::move(learnt.merges);
  for (std::int32_t token = 0; token < learnt.tokens.size(); ++token) trained.tokens.push_back(learnt.tokens.text(token));
  return trained;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

std::string TrainedBpe::tokenizer_json() const {
  std::string json = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [";
  const auto to = std::back_inserter(json);
  for (std::size_t number = 0; number < special_tokens.size(); ++number) {
    fmt::format_to(to,
                   "{}\n    {{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                   "\"normalized\": false, \"special\": true}}",
                   number == 0 ? "" : ",", number, quoted(special_tokens[number]));
  }
  fmt::format_to(
      to,
      "],\n  \"normalizer\": null,\n  \"pre_tokenizer\": {{\"type\": \"Sequence\", \"pretokenizers\": [\n"
      "    {{\"type\": \"Split\", \"pattern\": {{\"Regex\": {}}}, \"behavior\": \"Isolated\", \"invert\": false}},\n"
      "    {{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": false}}]}},\n",
      quoted(pattern));
  json +=
      "  \"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": false, \"use_regex\": "
      "true},\n"
      "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true},\n"
      "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
      "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n    \"vocab\": {";
  for (std::size_t number = 0; number < tokens.size(); ++number) {
    fmt::format_to(to, "{}\n      {}: {}", number == 0 ? "" : ",", quoted(tokens[number]), number);
  }
  json += "\n    },\n    \"merges\": [";
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    fmt::format_to(to, "{}\n      [{}, {}]", rank == 0 ? "" : ",", quoted(tokens[static_cast<std::size_t>(left)]),
                   quoted(tokens[static_cast<std::size_t>(right)]));
  }
  json += "\n    ]\n  }\n}\n";
  return json;
}

TrainedBpe train_bpe(const TextFiles& files, const BpeTrainingOptions& options) {
  return train(*source_of_files(files), options);
}

TrainedBpe train_bpe(std::span<const std::string> texts, const BpeTrainingOptions& options) {
  const auto next = [at = std::size_t{0}, texts]() mutable {
    return at < texts.size() ? std::optional(texts[at++]) : std::nullopt;
  };
  return train(*source_of_texts(next), options);
}

TrainedBpe train_bpe(const std::function<std::optional<std::string>()>& next, const BpeTrainingOptions& options) {
  return train(*source_of_texts(next), options);
}

}  // namespace trireme::tokenizers
