#include <fmt/format.h>

#include <array>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/locations_of.hpp"

namespace trireme::data_program {
namespace {

constexpr std::array<std::string_view, 1> shard_endings{".safetensors"};

std::vector<Location> shards_of(const std::vector<std::string>& patterns) {
  std::vector<Location> files;
  for (const std::string& pattern : patterns) {
    for (Location& file : data::locations_of(pattern, shard_endings)) files.push_back(std::move(file));
  }
  return files;
}

struct Verdict {
  std::string fault;  // empty: none
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};

Verdict verdict_on(const Location& file, std::optional<std::int64_t> vocabulary) {
  try {
    const data::TokenShards shard({file});
    shard.verify(vocabulary ? std::optional(*vocabulary - 1) : std::nullopt);
    return {.fault = {}, .documents = shard.size(), .tokens = shard.num_tokens()};
  } catch (const std::exception& error) {  // also one that cannot be opened
    return {.fault = error.what()};
  }
}

}  // namespace

data::TokenShards open_shards(const std::vector<std::string>& patterns) { return data::TokenShards(shards_of(patterns)); }

int verify(const std::vector<std::string>& patterns, std::optional<std::int64_t> vocabulary) {
  const std::vector<Location> files = shards_of(patterns);
  std::vector<Verdict> verdicts(files.size());
  data::for_each_item(std::ssize(files), 0, [&](std::int64_t file) {
    verdicts[static_cast<std::size_t>(file)] = verdict_on(files[static_cast<std::size_t>(file)], vocabulary);
  });
  std::int64_t documents = 0, tokens = 0, faulty = 0;
  for (const Verdict& verdict : verdicts) {
    documents += verdict.documents;
    tokens += verdict.tokens;
    if (verdict.fault.empty()) continue;
    ++faulty;
    fmt::print("{}\n", verdict.fault);
  }
  if (faulty > 0) {
    fmt::print("{} of {} shards are faulty\n", faulty, files.size());
    return 1;
  }
  fmt::print("{} shards of {} documents, {} tokens: all whole\n", files.size(), documents, tokens);
  return 0;
}

}  // namespace trireme::data_program
