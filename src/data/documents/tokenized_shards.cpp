#include "data/documents/tokenized_shards.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/data/sources/locations_of.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr const char *begin_key = "begin", *end_key = "end", *empty_key = "empty", *broken_key = "broken";
constexpr std::size_t most_names = 1000;  // of sources, that metadata have

// In words that differ where texts become other tokens.
std::string words_of(const tokenizers::Tokenizer& tokenizer) {
  constexpr std::string_view probe =
      "It's the 3rd of 12,345 tests:  \"naïve\" Größen,\n\tif (x != y) { return 0xFF; }\r\n\n日本語 и кириллица 🎉 ﬁ Ａ";
  std::string all;
  for (std::int64_t token = 0; token < tokenizer.vocabulary_size(); ++token) {
    try {
      all += tokenizer.spelling(static_cast<std::int32_t>(token));
    } catch (const Error&) {  // a number that no token has
    }
    all += '\0';
  }
  for (const std::int32_t token : tokenizer.encode(probe)) all += fmt::format("{} ", token);
  return fmt::format("{} tokens, digest {:016x}", tokenizer.vocabulary_size(), digest_of_bytes(std::as_bytes(std::span(all))));
}

std::string words_of(const TokenizedInputs& inputs, const TokenizeOptions& options) {
  std::string files;
  for (const Location& file : inputs.files) files += fmt::format("{}\n{}\n", file, open_file(file)->size());
  const nlohmann::json words{{"field", options.text_field},
                             {"separator", options.separator},
                             {"end_token", options.end_token ? *options.end_token : -1},
                             {"special_tokens", options.special_tokens},
                             {"skip_broken", options.skip_broken},
                             {"shard_tokens", options.shard_tokens},
                             {"sources", options.sources == SourceNumbers::files ? "files" : "patterns"},
                             {"files", inputs.files.size()},
                             {"digest", fmt::format("{:016x}", digest_of_bytes(std::as_bytes(std::span(files))))}};
  return words.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string value_of(const SafetensorsMetadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

std::int64_t count_in(const SafetensorsMetadata& metadata, const char* key) {
  return parse_number<std::int64_t>(value_of(metadata, key)).value_or(0);
}

[[noreturn]] void refuse_earlier(const Location& shard, std::string message) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = std::move(message),
               .path = shard.string(),
               .hint = "remove the shards of this name, or choose another name"});
}

}  // namespace

TokenizedInputs inputs_of(std::span<const std::string> patterns, SourceNumbers sources) {
  require(!patterns.empty(), "there are no inputs to tokenize");
  TokenizedInputs inputs;
  for (std::size_t pattern = 0; pattern < patterns.size(); ++pattern) {
    for (Location& file : locations_of(patterns[pattern])) {
      const bool of_files = sources == SourceNumbers::files;
      inputs.sources.push_back(static_cast<std::int32_t>(of_files ? inputs.files.size() : pattern));
      inputs.files.push_back(std::move(file));
      if (of_files && inputs.names.size() < most_names) inputs.names.push_back(inputs.files.back().string());
    }
    if (sources == SourceNumbers::patterns) inputs.names.push_back(patterns[pattern]);
  }
  return inputs;
}

TokenizedShards::TokenizedShards(const TokenizedInputs& inputs, const tokenizers::Tokenizer& tokenizer, Location prefix,
                                 const TokenizeOptions& options)
    : inputs_(inputs), prefix_(std::move(prefix)), options_(options) {
  const nlohmann::json names(inputs.names);
  common_ = {{"tokenizer", words_of(tokenizer)},
             {"recipe", words_of(inputs, options)},
             {"sources", names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
  find_earlier();
  remove_unfinished_token_shards(prefix_);
  begin_ = next_;
  writer_.emplace(prefix_, TokenShardWriterOptions{.shard_tokens = options.shard_tokens,
                                                   .largest_token = static_cast<std::int32_t>(tokenizer.vocabulary_size() - 1),
                                                   .metadata = common_,
                                                   .first_shard = report_.shards});
}

void TokenizedShards::find_earlier() {
  for (const std::int64_t number :
       earlier_token_shards(prefix_, {{"tokenizer", common_.at("tokenizer")}, {"recipe", common_.at("recipe")}})) {
    const Location file = token_shard(prefix_, number);
    const TokenShards shard({file});
    const SafetensorsMetadata& metadata = shard.metadata();
    if (number != report_.shards) continue;  // one before it is missing: it is made again
    if (place_in(metadata, begin_key, file) != next_)
      refuse_earlier(file, "the shard does not go on where the one before it ends");
    next_ = place_in(metadata, end_key, file);
    ++report_.shards;
    ++report_.shards_found;
    report_.documents += shard.size();
    report_.tokens += shard.num_tokens();
    report_.empty += count_in(metadata, empty_key);
    report_.broken += count_in(metadata, broken_key);
  }
}

DocumentPlace TokenizedShards::place_in(const SafetensorsMetadata& metadata, const char* key, const Location& shard) const {
  const auto object = nlohmann::json::parse(value_of(metadata, key), nullptr, false);
  if (object.is_object() && object.contains("number") && object.contains("byte") && object["number"].is_number_integer() &&
      object["byte"].is_number_integer()) {
    const DocumentPlace place{object["number"].get<std::int64_t>(), object["byte"].get<std::int64_t>()};
    if (place.file >= 0 && place.file <= std::ssize(inputs_.files) && place.byte >= 0) return place;
  }
  refuse_earlier(shard, fmt::format("the metadata do not tell the {} of the shard in the inputs", key));
}

std::string TokenizedShards::text_of(const DocumentPlace& place) const {
  nlohmann::json text{{"number", place.file}, {"byte", place.byte}};
  if (place.file < std::ssize(inputs_.files)) text["file"] = inputs_.files[static_cast<std::size_t>(place.file)].string();
  return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void TokenizedShards::add(std::span<const std::int32_t> tokens, const RawDocument& document) {
  if (!writer_->has_room(std::ssize(tokens))) end_shard();
  writer_->add(tokens, inputs_.sources[static_cast<std::size_t>(document.place.file)]);
  next_ = document.next;
  empty_ += std::exchange(pending_empty_, 0);
  broken_ += std::exchange(pending_broken_, 0);
  ++report_.documents;
  report_.tokens += std::ssize(tokens);
}

void TokenizedShards::leave_out(bool is_broken) { ++(is_broken ? pending_broken_ : pending_empty_); }

void TokenizedShards::end_shard() {
  writer_->end_shard({{begin_key, text_of(begin_)},
                      {end_key, text_of(next_)},
                      {empty_key, fmt::format("{}", empty_)},
                      {broken_key, fmt::format("{}", broken_)}});
  begin_ = next_;
  ++report_.shards;
  report_.empty += std::exchange(empty_, 0);
  report_.broken += std::exchange(broken_, 0);
  if (options_.after_shard) options_.after_shard(report_);
}

void TokenizedShards::finish() {
  const DocumentPlace end{std::ssize(inputs_.files), 0};
  if (next_ == end) return;
  empty_ += std::exchange(pending_empty_, 0);
  broken_ += std::exchange(pending_broken_, 0);
  next_ = end;
  if (report_.documents == 0) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("{} files have no document: {} are empty, {} broken", inputs_.files.size(), empty_, broken_),
         .path = inputs_.files.front().string()});
  }
  end_shard();
}

}  // namespace trireme::data
