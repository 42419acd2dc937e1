#include "trireme/data/shards/cut_shards.hpp"

#include <algorithm>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/permutation.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t split_stream = hash_name("trireme.data.split");
constexpr std::int64_t documents_of_a_part = 4096;

TokenShardWriterOptions cutting(const TokenShards& documents, std::int64_t shard_tokens) {
  SafetensorsMetadata metadata = documents.metadata();
  // These say of a file where it comes from or what it holds.
  for (const char* key : {"format", "digest", "largest_token", "recipe", "begin", "end", "empty", "broken"})
    metadata.erase(key);
  const std::int64_t largest = documents.largest_token();
  require(largest >= 0 && largest <= INT32_MAX, "the metadata of the shards tell the largest token {}", largest);
  return {.shard_tokens = shard_tokens,
          .largest_token = static_cast<std::int32_t>(largest),
          .has_sources = documents.has_sources(),
          .metadata = std::move(metadata)};
}

void copy_document(const TokenShards& documents, std::int64_t document, TokenShardWriter& to) {
  to.add(documents.at(document), documents.source_of(document));
}

// Whether each document is held out.
std::vector<char> held_out(const TokenShards& documents, const SplitShardsOptions& options) {
  std::vector<char> held(static_cast<std::size_t>(documents.size()));
  for_each_item((documents.size() - 1) / documents_of_a_part + 1, 0, [&](std::int64_t part) {
    const std::int64_t first = part * documents_of_a_part;
    for (std::int64_t document = first; document < std::min(documents.size(), first + documents_of_a_part); ++document) {
      const std::vector<std::int32_t> tokens = documents.at(document);
      const std::uint64_t content = digest_of_bytes(std::as_bytes(std::span(tokens)));
      held[static_cast<std::size_t>(document)] = philox_uniform(options.seed, split_stream, content) < options.fraction ? 1 : 0;
    }
  });
  return held;
}

}  // namespace

std::int64_t cut_shards(const TokenShards& documents, const Location& prefix, const CutOptions& options) {
  require_no_token_shards(prefix);
  remove_unfinished_token_shards(prefix);
  TokenShardWriter writer(prefix, cutting(documents, options.shard_tokens));
  std::optional<Permutation> order;
  if (options.shuffle_seed) order.emplace(documents.size(), *options.shuffle_seed, 0);
  for (std::int64_t place = 0; place < documents.size(); ++place)
    copy_document(documents, order ? (*order)(place) : place, writer);
  writer.end_shard();
  return writer.num_shards();
}

SplitShardsReport split_shards(const TokenShards& documents, const Location& prefix, const SplitShardsOptions& options) {
  require(options.fraction > 0 && options.fraction < 1, "a fraction of {} leaves a side empty: it lies between 0 and 1",
          options.fraction);
  const Location to_training = prefix.beside("-training"), to_held_out = prefix.beside("-held-out");
  require_no_token_shards(to_training);
  require_no_token_shards(to_held_out);
  remove_unfinished_token_shards(to_training);
  remove_unfinished_token_shards(to_held_out);
  const std::vector<char> held = held_out(documents, options);
  const auto count = std::ranges::count(held, 1);
  require(count > 0, "none of {} documents is held out: raise the fraction, {}, or take another seed", documents.size(),
          options.fraction);
  require(count < documents.size(), "all of {} documents are held out: lower the fraction, {}, or take another seed",
          documents.size(), options.fraction);
  const TokenShardWriterOptions cut = cutting(documents, options.shard_tokens);
  TokenShardWriter training(to_training, cut), outside(to_held_out, cut);
  for (std::int64_t document = 0; document < documents.size(); ++document) {
    copy_document(documents, document, held[static_cast<std::size_t>(document)] != 0 ? outside : training);
  }
  training.end_shard();
  outside.end_shard();
  return {.training_documents = training.num_documents(),
          .training_tokens = training.num_tokens(),
          .held_out_documents = outside.num_documents(),
          .held_out_tokens = outside.num_tokens()};
}

}  // namespace trireme::data
