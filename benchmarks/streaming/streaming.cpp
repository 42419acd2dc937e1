// What token shards cost: reading documents and packed rows beside copying as many bytes in memory, in turn; opening; and the
// first batch of a run that goes on far into a mixture.
//   streaming [--documents 200000] [--length 1024] [--json FILE]

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/documents/packed_rows.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/sources/joined.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t documents = 200'000;
  std::int64_t length = 1024;
  int rounds = 15;
  std::string json;
};

// Documents of 1 to 1023 tokens, on average 512.
Location written_shard(const std::filesystem::path& folder, std::int64_t documents) {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> ends;
  for (std::int64_t document = 0; document < documents; ++document) {
    const auto words = philox(1, 2, static_cast<std::uint64_t>(document));
    tokens.insert(tokens.end(), words[0] % 1023 + 1, static_cast<std::int32_t>(words[1] % 50'000));
    ends.push_back(std::ssize(tokens));
  }
  const Location file = folder / "benchmark.safetensors";
  data::write_token_shard(file, tokens, ends, {}, 50'000);
  return file;
}

// Items without content: of a data set of any size.
struct Numbers {
  std::int64_t count = 0;

  std::int64_t size() const { return count; }
  std::int64_t neighbours() const { return 4096; }
  std::int64_t at(std::int64_t index) const { return index; }
};

double seconds_of_resume() {
  const data::Joined<Numbers> joined({Numbers{700'000'000}, Numbers{2'000'000'000}, Numbers{90'000'000}});
  return seconds_of([&] {
    const data::Loader loader(
        joined, {.batch = {.batch_size = 512}, .mixture = {{0, {5, 4, 1}}, {500'000, {1, 1, 1}}, {1'500'000, {2, 1, 1}}}});
    loader.load(2'000'000);  // 1.02 * 10^9 samples
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("What token shards cost beside copying memory.");
  command.option("--documents", options.documents, "documents of 1 to 1023 tokens");
  command.option("--length", options.length, "tokens of a row");
  command.option("--rounds", options.rounds, "timed passes of each side, in turn");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;

  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("trireme-streaming-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const data::TokenShards shards({written_shard(folder, options.documents)});
  std::optional<data::PackedRows> rows;
  const double opening = seconds_of([&] { rows.emplace(shards, data::PackedRowsOptions{.length = options.length}); });
  constexpr std::int64_t batch = 16;
  const std::int64_t num_batches = rows->size() / batch;
  const auto count = static_cast<std::size_t>(batch * options.length);
  // As many bytes as the tokens, and as the three tensors of the rows, from memory that is in no cache.
  std::vector<std::int32_t> from(static_cast<std::size_t>(3 * num_batches) * count, 1), into(3 * count), tokens(1024);

  const data::Loader shuffled(*rows, {.batch = {.batch_size = batch}});
  std::vector<double> documents, rows_read, copied, copied_rows, shuffled_rows;
  for (int round = -2; round < options.rounds; ++round) {
    const double of_documents = seconds_of([&] {
      for (std::int64_t document = 0; document < shards.size(); ++document) {
        shards.read(document, 0, std::span(tokens).first(static_cast<std::size_t>(shards.length_of(document))));
      }
    });
    const double of_copies = seconds_of([&] {
      for (std::int64_t begin = 0; begin < shards.num_tokens(); begin += 512) {
        std::memcpy(tokens.data(), from.data() + begin % std::ssize(from), 512 * sizeof(std::int32_t));
        asm volatile("" : : "r"(tokens.data()) : "memory");
      }
    });
    const double of_rows = seconds_of([&] {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
      for (std::int64_t at = 0; at < num_batches; ++at) {
        std::iota(indices.begin(), indices.end(), at * batch);
        rows->collate(indices, 0);
      }
    });
    const double of_shuffled = seconds_of([&] {
      for (std::int64_t at = 0; at < num_batches; ++at) shuffled.load(round < 0 ? at : round * num_batches + at);
    });
    const double of_row_copies = seconds_of([&] {
      for (std::int64_t at = 0; at < num_batches; ++at) {
        std::memcpy(into.data(), from.data() + static_cast<std::size_t>(at) * into.size(), into.size() * sizeof(std::int32_t));
        asm volatile("" : : "r"(into.data()) : "memory");
      }
    });
    if (round < 0) continue;
    documents.push_back(of_copies / of_documents);
    rows_read.push_back(of_rows / static_cast<double>(num_batches * batch * options.length) * 1e9);
    copied.push_back(of_documents / static_cast<double>(shards.num_tokens()) * 1e9);
    copied_rows.push_back(of_row_copies / of_rows);
    shuffled_rows.push_back(of_row_copies / of_shuffled);
  }
  const double resume = seconds_of_resume();
  std::filesystem::remove_all(folder);
  fmt::print("documents  {:6.2f} ns a token, {:.2f} of the speed of copying 4 bytes a token\n", median(copied),
             median(documents));
  fmt::print("rows       {:6.2f} ns a token, {:.2f} of the speed of copying 12 bytes a token; {:.1f} % padding\n",
             median(rows_read), median(copied_rows), 100 * rows->padding());
  fmt::print("shuffled   in blocks of neighbours: {:.2f} of the speed of copying 12 bytes a token\n", median(shuffled_rows));
  fmt::print("opening    {:6.1f} ms for {} documents: lengths are read, rows are packed\n", 1e3 * opening, shards.size());
  fmt::print("resume     {:6.1f} ms to the first batch, 1.02e9 samples into a mixture of 3 parts\n", 1e3 * resume);
  write_json(options.json, {{"documents", median(documents)},
                            {"rows", median(copied_rows)},
                            {"shuffled_rows", median(shuffled_rows)},
                            {"opening_ms_per_million", 1e3 * opening / static_cast<double>(shards.size()) * 1e6},
                            {"resume_ms", 1e3 * resume}});
  return 0;
}
