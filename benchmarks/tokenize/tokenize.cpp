// Megabytes a second of the processor's time that a tokenizer encodes and decodes, beside the time to copy the text.
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

using namespace trireme;

namespace {

volatile std::size_t seen;  // keeps the compiler from dropping the work

// Of this program alone, so that others beside it matter less.
template <typename Run>
double processor_seconds_of(const Run& run) {
  const std::clock_t start = std::clock();
  run();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  std::string tokenizer, text, json;
  int rounds = 7;
  CommandLine command("Encodes a text that the tokenizer has not met, then again and again, by one thread.");
  command.option("--tokenizer", tokenizer, "a folder, or a file of one");
  command.option("--text", text, "a file, or a folder of files");
  command.option("--rounds", rounds, "times that it is encoded again");
  command.option("--json", json, "write the figures here");
  command.require("--tokenizer");
  command.require("--text");
  if (const auto code = command.parse(argc, argv)) return *code;

  const auto reader = tokenizers::read_tokenizer(tokenizer);
  const std::string all = data::read_text(text);
  const auto megabytes = static_cast<double>(all.size()) * 1e-6;
  std::vector<std::int32_t> tokens;
  const double first = processor_seconds_of([&] { tokens = reader.encode(all); });
  std::vector<double> again, decoded, copied;
  for (int round = 0; round < rounds; ++round) again.push_back(processor_seconds_of([&] { tokens = reader.encode(all); }));
  for (int round = 0; round < rounds; ++round) {
    decoded.push_back(processor_seconds_of([&] { seen = reader.decode(tokens).size(); }));
    copied.push_back(processor_seconds_of([&] { seen = std::string(all).size(); }));
  }
  const double floor = median(copied);
  fmt::print("{:.1f} MB, {} tokens\n", megabytes, tokens.size());
  fmt::print("first    {:8.1f} MB/s\n", megabytes / first);
  fmt::print("again    {:8.1f} MB/s   {:.0f} times as long as copying it\n", megabytes / median(again), median(again) / floor);
  fmt::print("decoding {:8.1f} MB/s\n", megabytes / median(decoded));
  write_json(json, {{"first_megabytes_per_second", megabytes / first},
                    {"again_megabytes_per_second", megabytes / median(again)},
                    {"decoded_megabytes_per_second", megabytes / median(decoded)},
                    {"tokens", tokens.size()}});
  return 0;
}
