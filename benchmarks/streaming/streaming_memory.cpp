// The memory of a process that reads a million packed rows of a mixture of three sources, ahead on a thread: a line for every
// tenth of them. Without --data the sources are made, 100 million tokens, so that they are read about ten times.
//   streaming_memory [--data mixture.json] [--samples 1000000] [--length 1024]

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/documents/token_mixture.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"

using namespace trireme;

namespace {

struct Options {
  std::string data;
  std::int64_t samples = 1'000'000;
  std::int64_t batch = 32;
  std::int64_t length = 1024;
  std::int64_t prefetch = 4;
  int threads = 1;
  std::string json;
};

constexpr int sources = 3;
constexpr int shards = 4;  // of each

// Documents of 1 to 1023 tokens, on average 512.
void write_mixture(const std::filesystem::path& folder) {
  for (int shard = 0; shard < sources * shards; ++shard) {
    std::vector<std::int32_t> tokens;
    std::vector<std::int64_t> ends;
    for (std::uint64_t document = 0; document < 16'000; ++document) {
      const auto words = philox(1, static_cast<std::uint64_t>(shard), document);
      tokens.insert(tokens.end(), words[0] % 1023 + 1, static_cast<std::int32_t>(words[1] % 50'000));
      ends.push_back(std::ssize(tokens));
    }
    data::write_token_shard(folder / fmt::format("{}-{}.safetensors", shard / shards, shard % shards), tokens, ends, {},
                            50'000);
  }
  nlohmann::json parts;
  for (int source = 0; source < sources; ++source) {
    parts.push_back({{"data", fmt::format("{}-{{0..{}}}.safetensors", source, shards - 1)}, {"weight", sources - source}});
  }
  write_text(folder / "mixture.json", nlohmann::json{{"parts", parts}, {"weights_from_step", {{"10000", {1, 1, 1}}}}}.dump());
}

// MiB of a line of /proc/self/status.
double mebibytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("The memory of a process that reads a million packed rows of a mixture of token shards.");
  command.option("--data", options.data, "token shards, or the JSON file of a mixture; not given: a mixture is made");
  command.option("--samples", options.samples, "rows that are read");
  command.option("--batch", options.batch, "rows of a batch");
  command.option("--length", options.length, "tokens of a row");
  command.option("--prefetch", options.prefetch, "batches that are prefetched");
  command.option("--threads", options.threads, "that prefetch");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;

  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("trireme-memory-{}", ::getpid());
  std::filesystem::create_directories(folder);
  if (options.data.empty()) {
    write_mixture(folder);
    options.data = folder / "mixture.json";
  }
  const double before = mebibytes("RssAnon");
  const data::TokenMixture mixture = data::open_token_mixture(options.data, {.length = options.length});
  const data::Prefetching loader(
      data::Loader(mixture.rows, {.batch = {.batch_size = options.batch}, .mixture = mixture.weights}),
      {.threads = options.threads, .batches = options.prefetch});
  fmt::print("{} rows of {} tokens in {} parts; {:.1f} MiB before they were opened\n", mixture.rows.size(), options.length,
             mixture.names.size(), before);
  fmt::print("{:>10} {:>12} {:>14} {:>14}\n", "samples", "own MiB", "mapped MiB", "samples/s");
  const std::int64_t steps = options.samples / options.batch;
  std::vector<double> own;
  std::int64_t step = 0;
  for (int tenth = 0; tenth <= 10; ++tenth) {
    const std::int64_t end = tenth == 0 ? std::min<std::int64_t>(steps, 100) : steps * tenth / 10, begin = step;
    const double seconds = seconds_of([&] {
      for (; step < end; ++step) loader.load(step);
    });
    own.push_back(mebibytes("RssAnon"));
    fmt::print("{:10} {:12.1f} {:14.1f} {:14.0f}\n", step * options.batch, own.back(), mebibytes("RssFile"),
               static_cast<double>((step - begin) * options.batch) / seconds);
  }
  std::filesystem::remove_all(folder);
  write_json(options.json, {{"before", before}, {"own", own}, {"samples", step * options.batch}});
  return 0;
}
