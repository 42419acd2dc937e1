#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "commands.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/documents/packed_rows.hpp"
#include "trireme/data/sources/dataset.hpp"

namespace trireme::data_program {
namespace {

constexpr std::int64_t documents_at_once = 1 << 16;
constexpr std::array<std::pair<const char*, double>, 7> quantiles{
    {{"min", 0}, {"p5", 0.05}, {"p25", 0.25}, {"median", 0.5}, {"p75", 0.75}, {"p95", 0.95}, {"max", 1}}};

// How many documents have each length.
using Lengths = std::map<std::int64_t, std::int64_t>;

struct SourceCounts {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};

struct Counted {
  Lengths lengths;
  std::map<std::int32_t, SourceCounts> sources;

  void add(const Counted& more) {
    for (const auto& [length, count] : more.lengths) lengths[length] += count;
    for (const auto& [source, counts] : more.sources) {
      sources[source].documents += counts.documents;
      sources[source].tokens += counts.tokens;
    }
  }
};

Counted count(const data::TokenShards& shards) {
  Counted all;
  std::mutex mutex;
  data::for_each_item((shards.size() - 1) / documents_at_once + 1, 0, [&](std::int64_t part) {
    Counted own;
    const std::int64_t first = part * documents_at_once;
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(std::min(documents_at_once, shards.size() - first)));
    shards.read_lengths(first, lengths);
    for (std::size_t at = 0; at < lengths.size(); ++at) {
      const std::int64_t length = lengths[at], document = first + static_cast<std::int64_t>(at);
      ++own.lengths[length];
      SourceCounts& source = own.sources[shards.source_of(document)];
      ++source.documents;
      source.tokens += length;
    }
    const std::scoped_lock lock(mutex);
    all.add(own);
  });
  return all;
}

// The length that this share of the documents does not exceed.
std::int64_t quantile(const Lengths& lengths, std::int64_t documents, double share) {
  const auto wanted = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(documents))));
  std::int64_t below = 0;
  for (const auto& [length, count] : lengths) {
    below += count;
    if (below >= wanted) return length;
  }
  return lengths.rbegin()->first;
}

// As tokenize wrote them into the metadata; else numbers.
std::string name_of_source(const data::TokenShards& shards, std::int32_t source) {
  const auto found = shards.metadata().find("sources");
  if (found == shards.metadata().end()) return fmt::format("{}", source);
  const auto names = nlohmann::json::parse(found->second, nullptr, false);
  const bool has_name = names.is_array() && source >= 0 && std::cmp_less(source, names.size()) &&
                        names[static_cast<std::size_t>(source)].is_string();
  return has_name ? names[static_cast<std::size_t>(source)].get<std::string>() : fmt::format("{}", source);
}

}  // namespace

int statistics(const StatisticsCommand& command) {
  const data::TokenShards shards = open_shards(command.patterns);
  const Counted counted = count(shards);
  nlohmann::ordered_json result{{"shards", shards.num_shards()},
                                {"documents", shards.size()},
                                {"tokens", shards.num_tokens()},
                                {"mean_length", static_cast<double>(shards.num_tokens()) / static_cast<double>(shards.size())}};
  for (const auto& [name, share] : quantiles) result["lengths"][name] = quantile(counted.lengths, shards.size(), share);
  for (const auto& [source, counts] : counted.sources) {
    result["sources"].push_back({{"source", source},
                                 {"name", name_of_source(shards, source)},
                                 {"documents", counts.documents},
                                 {"tokens", counts.tokens}});
  }
  if (command.length) {
    const data::PackedRows rows(shards, {.length = *command.length});
    result["packed"] = {{"length", *command.length}, {"rows", rows.size()}, {"padding", rows.padding()}};
  }
  if (command.json) {
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{} shards, {} documents, {} tokens\n\nlength of a document\n", shards.num_shards(), shards.size(),
             shards.num_tokens());
  for (const auto& [name, share] : quantiles) fmt::print("{:>10} {:>12}\n", name, result["lengths"][name].get<std::int64_t>());
  fmt::print("{:>10} {:>12.1f}\n\n{:>12} {:>14} {:>7}  source\n", "mean", result["mean_length"].get<double>(), "documents",
             "tokens", "share");
  for (const auto& [source, counts] : counted.sources) {
    fmt::print("{:>12} {:>14} {:>6.1f}%  {}\n", counts.documents, counts.tokens,
               100 * static_cast<double>(counts.tokens) / static_cast<double>(shards.num_tokens()),
               name_of_source(shards, source));
  }
  if (command.length) {
    fmt::print("\npacked into {} rows of {} tokens, {:.2f} % padding\n", result["packed"]["rows"].get<std::int64_t>(),
               *command.length, 100 * result["packed"]["padding"].get<double>());
  }
  return 0;
}

}  // namespace trireme::data_program
