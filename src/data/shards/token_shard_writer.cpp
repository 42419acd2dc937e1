#include "trireme/data/shards/token_shard_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data {
namespace {

constexpr std::string_view shard_ending = ".safetensors";

Location folder_of_shards(const Location& prefix) {
  const Location folder = prefix.parent();
  return folder.empty() ? Location(".") : folder;
}

// Calls use(number, file, what stands behind the name of a shard) for all that begins like one.
void for_each_shard_name(const Location& prefix, const auto& use) {
  const Location folder = folder_of_shards(prefix);
  const std::string beginning = prefix.name() + "-";
  for (const std::string& name : file_system_of(folder)->names_in(folder)) {
    if (!name.starts_with(beginning)) continue;
    const std::string_view rest = std::string_view(name).substr(beginning.size());
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto number = parse_number<std::int64_t>(digits);
    const std::string whole = number ? token_shard(prefix, *number).name() : std::string();
    if (number && name.starts_with(whole)) use(*number, folder / name, std::string_view(name).substr(whole.size()));
  }
}

}  // namespace

TokenShardWriter::TokenShardWriter(Location prefix, TokenShardWriterOptions options)
    : prefix_(std::move(prefix)), options_(std::move(options)) {
  require(options_.shard_tokens > 0, "a shard has at least one token, got {}", options_.shard_tokens);
  require(options_.largest_token >= 0, "the largest token is {}", options_.largest_token);
  require(options_.first_shard >= 0, "the first shard has the number {}", options_.first_shard);
  prepare_token_shards(prefix_);
}

bool TokenShardWriter::has_room(std::int64_t tokens) const noexcept {
  return tokens_.empty() || tokens <= options_.shard_tokens - std::ssize(tokens_);
}

void TokenShardWriter::add(std::span<const std::int32_t> document, std::int32_t source) {
  require(!document.empty(), "a document has no token");
  const auto [least, most] = std::ranges::minmax(document);
  require(least >= 0 && most <= options_.largest_token, "a document has the token {}, which does not lie in [0, {}]",
          least < 0 ? least : most, options_.largest_token);
  if (!has_room(std::ssize(document))) end_shard();
  tokens_.insert(tokens_.end(), document.begin(), document.end());
  ends_.push_back(std::ssize(tokens_));
  if (options_.has_sources) sources_.push_back(source);
  ++num_documents_;
  num_tokens_ += std::ssize(document);
}

void TokenShardWriter::end_shard(const SafetensorsMetadata& more) {
  if (ends_.empty()) return;
  SafetensorsMetadata metadata = options_.metadata;
  for (const auto& [key, value] : more) metadata[key] = value;
  write_token_shard(token_shard(prefix_, options_.first_shard + num_shards_), tokens_, ends_, sources_, options_.largest_token,
                    std::move(metadata));
  ++num_shards_;
  tokens_.clear();
  ends_.clear();
  sources_.clear();
}

Location token_shard(const Location& prefix, std::int64_t number) {
  return prefix.beside(fmt::format("-{:05}{}", number, shard_ending));
}

std::vector<std::int64_t> numbers_of_token_shards(const Location& prefix) {
  std::vector<std::int64_t> numbers;
  for_each_shard_name(prefix, [&](std::int64_t number, const Location&, std::string_view behind) {
    if (behind.empty()) numbers.push_back(number);
  });
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<std::int64_t> earlier_token_shards(const Location& prefix, const SafetensorsMetadata& wanted) {
  std::vector<std::int64_t> numbers = numbers_of_token_shards(prefix);
  for (const std::int64_t number : numbers) {
    const Location file = token_shard(prefix, number);
    const TokenShards shard({file});
    for (const auto& [key, value] : wanted) {
      const auto found = shard.metadata().find(key);
      if (found != shard.metadata().end() && found->second == value) continue;
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("the shard is there already, and is of another {}",
                                          key == "recipe" ? "input or other options" : key),
                   .path = file.string(),
                   .wanted = value,
                   .had = found == shard.metadata().end() ? std::string() : found->second,
                   .hint = "remove the shards of this name, or choose another name"});
    }
  }
  return numbers;
}

void prepare_token_shards(const Location& prefix) {
  require(!prefix.name().empty(), "token shards need the beginning of their names, as in tokens/train");
  const Location folder = folder_of_shards(prefix);
  file_system_of(folder)->create_folder(folder);
}

void remove_unfinished_token_shards(const Location& prefix) {
  for_each_shard_name(prefix, [](std::int64_t, const Location& file, std::string_view behind) {
    if (behind.ends_with(".tmp")) file_system_of(file)->remove_all(file);
  });
}

}  // namespace trireme::data
