#include "trireme/data/shards/cut_shards.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "data/sources/together.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/permutation.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t split_stream = hash_name("trireme.data.split");
constexpr std::int64_t documents_of_a_part = 4096;
constexpr const char* recipe_key = "recipe";

// What the shards of one call have in common.
struct Cutting {
  const TokenShards& documents;
  const Collectives* ranks;
  std::int64_t shard_tokens;
  int workers;
  std::int32_t largest_token;
  SafetensorsMetadata metadata;

  int rank() const { return ranks == nullptr ? 0 : ranks->rank(); }
  int num_ranks() const { return ranks == nullptr ? 1 : ranks->size(); }
};

Cutting cutting_of(const TokenShards& documents, const Collectives* ranks, std::int64_t shard_tokens, int workers,
                   nlohmann::json recipe) {
  require(shard_tokens > 0, "a shard has at least one token, got {}", shard_tokens);
  const std::int64_t largest = documents.largest_token();
  require(largest >= 0 && largest <= INT32_MAX, "the metadata of the shards tell the largest token {}", largest);
  SafetensorsMetadata metadata = documents.metadata();
  // These say of a file where it comes from or what it holds.
  for (const char* key : {"format", "digest", "largest_token", "begin", "end", "empty", "broken"}) metadata.erase(key);
  recipe["documents"] = documents.content();
  recipe["shard_tokens"] = shard_tokens;
  metadata[recipe_key] = recipe.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return {.documents = documents,
          .ranks = ranks,
          .shard_tokens = shard_tokens,
          .workers = workers,
          .largest_token = static_cast<std::int32_t>(largest),
          .metadata = std::move(metadata)};
}

// The shards of one prefix. Each follows from the documents and the recipe, so that any rank makes any of them.
class CutShards {
 public:
  using DocumentAt = std::function<std::optional<std::int64_t>(std::int64_t place)>;  // nothing: it is of other shards

  // Looks for shards of an earlier start, on the first rank.
  CutShards(const Cutting& cutting, Location prefix) : cutting_(cutting), prefix_(std::move(prefix)) {
    prepare_token_shards(prefix_);
    if (cutting.rank() != 0) return;
    earlier_ = earlier_token_shards(prefix_, {{recipe_key, cutting.metadata.at(recipe_key)}});
    remove_unfinished_token_shards(prefix_);
  }

  // Finds where each shard begins. As many places as documents are asked for.
  void plan(DocumentAt document_at) {
    document_at_ = std::move(document_at);
    std::int64_t tokens = 0;  // of the shard
    for (std::int64_t place = 0; place < cutting_.documents.size(); ++place) {
      const std::optional<std::int64_t> document = document_at_(place);
      if (!document) continue;
      const std::int64_t length = cutting_.documents.length_of(*document);
      if (begins_.empty() || (tokens > 0 && length > cutting_.shard_tokens - tokens)) {
        begins_.push_back(place);
        tokens = 0;
      }
      tokens += length;
      ++num_documents_;
      num_tokens_ += length;
    }
  }

  std::int64_t num_shards() const { return std::ssize(begins_); }
  std::int64_t num_documents() const { return num_documents_; }
  std::int64_t num_tokens() const { return num_tokens_; }

  // Those that are missing, shared by the ranks. Gives the number of the others. Collective.
  std::int64_t write() const {
    std::vector<std::uint8_t> is_there(begins_.size());
    for (const std::int64_t number : earlier_) {
      if (number < num_shards()) is_there[static_cast<std::size_t>(number)] = 1;
    }
    if (cutting_.ranks != nullptr) cutting_.ranks->broadcast(std::span(is_there), 0, "shards that are there").wait_on_host();
    together(cutting_.ranks, "write shards", [&] {
      int turn = 0;
      for (std::int64_t number = 0; number < num_shards(); ++number) {
        if (is_there[static_cast<std::size_t>(number)] != 0) continue;
        if (turn == cutting_.rank()) write_shard(number);
        turn = (turn + 1) % cutting_.num_ranks();
      }
    });
    return std::ranges::count(is_there, 1);
  }

 private:
  void write_shard(std::int64_t number) const {
    const TokenShards& all = cutting_.documents;
    const auto at = static_cast<std::size_t>(number);
    const std::int64_t end = at + 1 < begins_.size() ? begins_[at + 1] : all.size();
    std::vector<std::int64_t> documents, ends;
    for (std::int64_t place = begins_[at]; place < end; ++place) {
      const std::optional<std::int64_t> document = document_at_(place);
      if (!document) continue;
      documents.push_back(*document);
      ends.push_back((ends.empty() ? 0 : ends.back()) + all.length_of(*document));
    }
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(ends.back())), sources(all.has_sources() ? documents.size() : 0);
    for_each_item(std::ssize(documents), cutting_.workers, [&](std::int64_t item) {
      const auto document = static_cast<std::size_t>(item);
      const std::int64_t begin = item == 0 ? 0 : ends[document - 1];
      all.read(documents[document], 0,
               std::span(tokens).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(ends[document] - begin)));
      if (!sources.empty()) sources[document] = all.source_of(documents[document]);
    });
    write_token_shard(token_shard(prefix_, number), tokens, ends, sources, cutting_.largest_token, cutting_.metadata);
  }

  const Cutting& cutting_;
  Location prefix_;
  std::vector<std::int64_t> earlier_;  // on the first rank: the numbers of shards that are there
  DocumentAt document_at_;
  std::vector<std::int64_t> begins_;  // the place of each shard's first document
  std::int64_t num_documents_ = 0;
  std::int64_t num_tokens_ = 0;
};

// Whether each document is held out. The ranks share the reading.
std::vector<std::uint8_t> held_out(const Cutting& cutting, const SplitShardsOptions& options) {
  const TokenShards& documents = cutting.documents;
  std::vector<std::uint8_t> held(static_cast<std::size_t>(documents.size()));
  const Range own = part_of(documents.size(), cutting.rank(), cutting.num_ranks());
  together(cutting.ranks, "choose what is held out", [&] {
    for_each_item((own.count() + documents_of_a_part - 1) / documents_of_a_part, cutting.workers, [&](std::int64_t part) {
      const std::int64_t first = own.begin + part * documents_of_a_part;
      for (std::int64_t document = first; document < std::min(own.end, first + documents_of_a_part); ++document) {
        const std::vector<std::int32_t> tokens = documents.at(document);
        const std::uint64_t content = digest_of_bytes(std::as_bytes(std::span(tokens)));
        held[static_cast<std::size_t>(document)] =
            philox_uniform(options.seed, split_stream, content) < options.fraction ? 1 : 0;
      }
    });
  });
  if (cutting.ranks != nullptr) cutting.ranks->all_gather(std::span(held), "documents held out").wait_on_host();
  return held;
}

}  // namespace

CutReport cut_shards(const TokenShards& documents, const Location& prefix, const CutOptions& options,
                     const Collectives* ranks) {
  std::optional<Cutting> cutting;
  std::optional<CutShards> shards;
  std::optional<Permutation> order;
  together(ranks, "plan shards", [&] {
    nlohmann::json recipe{{"make", "shards cut anew"}};
    if (options.shuffle_seed) recipe["shuffle_seed"] = *options.shuffle_seed;
    cutting.emplace(cutting_of(documents, ranks, options.shard_tokens, options.workers, std::move(recipe)));
    shards.emplace(*cutting, prefix);
    if (options.shuffle_seed) order.emplace(documents.size(), *options.shuffle_seed, 0);
    shards->plan([&](std::int64_t place) { return order ? (*order)(place) : place; });
  });
  const std::int64_t found = shards->write();
  return {.shards = shards->num_shards(), .shards_found = found};
}

SplitShardsReport split_shards(const TokenShards& documents, const Location& prefix, const SplitShardsOptions& options,
                               const Collectives* ranks) {
  std::optional<Cutting> cutting;
  std::optional<CutShards> training, outside;
  together(ranks, "look for shards", [&] {
    require(options.fraction > 0 && options.fraction < 1, "a fraction of {} leaves a side empty: it lies between 0 and 1",
            options.fraction);
    cutting.emplace(cutting_of(documents, ranks, options.shard_tokens, options.workers,
                               {{"make", "shards of two sides"}, {"fraction", options.fraction}, {"seed", options.seed}}));
    training.emplace(*cutting, prefix.beside("-training"));
    outside.emplace(*cutting, prefix.beside("-held-out"));
  });
  const std::vector<std::uint8_t> held = held_out(*cutting, options);
  together(ranks, "plan shards", [&] {
    const auto count = std::ranges::count(held, 1);
    require(count > 0, "none of {} documents is held out: raise the fraction, {}, or take another seed", documents.size(),
            options.fraction);
    require(count < documents.size(), "all of {} documents are held out: lower the fraction, {}, or take another seed",
            documents.size(), options.fraction);
    const auto those_of = [&held](std::uint8_t side) {
      return [&held, side](std::int64_t document) {
        return held[static_cast<std::size_t>(document)] == side ? std::optional(document) : std::nullopt;
      };
    };
    training->plan(those_of(0));
    outside->plan(those_of(1));
  });
  const std::int64_t found = training->write() + outside->write();
  return {.training_documents = training->num_documents(),
          .training_tokens = training->num_tokens(),
          .held_out_documents = outside->num_documents(),
          .held_out_tokens = outside->num_tokens(),
          .shards = training->num_shards() + outside->num_shards(),
          .shards_found = found};
}

}  // namespace trireme::data
