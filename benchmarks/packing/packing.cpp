// Training steps of a Llama on the paragraphs of a text, with bytes as tokens: padded to one length, padded to the longest of
// the step, and packed.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <trireme/testing/ranks.hpp>
#include <trireme/trireme.hpp>
#include <utility>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"

namespace {

using namespace trireme;

struct Options {
  models::LlamaOptions model = {.kv_heads = 2, .block = 1024, .tied = true};
  std::string text;
  std::int64_t batch = 8;
  int steps = 7;
  int threads = 1;
  std::string json;
};

// A paragraph: lines up to a blank one.
data::Documents paragraphs(std::string_view text) {
  data::Documents documents;
  std::vector<std::int32_t> tokens;
  const auto end = [&] {
    if (tokens.size() > 1) documents.add(tokens);
    tokens.clear();
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') == text.npos ? text.size() : text.find('\n') + 1);
    text.remove_prefix(line.size());
    if (line.find_first_not_of(" \r\n") == line.npos) {
      end();
    } else {
      for (const char c : line) tokens.push_back(static_cast<unsigned char>(c));
    }
  }
  end();
  return documents;
}

struct Way {
  std::string name;
  data::DocumentLoader loader;
  std::vector<double> seconds = {};
  std::int64_t learnt = 0;  // tokens without padding, in all measured steps
};

int run(const Options& options) {
  const data::Documents documents = paragraphs(data::read_text(options.text));
  const std::int64_t length = options.model.block;
  const data::DocumentRows padded(documents, {.length = length}), packed(documents, {.length = length, .packing = true});
  fmt::print("{} paragraphs of {:.0f} tokens in the mean, rows of {}: {:.1f} % padding, packed {:.1f} %\n", documents.size(),
             static_cast<double>(documents.num_tokens()) / static_cast<double>(documents.size()), length,
             100 * padded.padding(), 100 * packed.padding());
  const data::BatchOptions batch{.batch_size = options.batch};
  std::vector<Way> ways;
  ways.push_back({"padded", data::DocumentLoader(padded, {.batch = batch})});
  ways.push_back({"padded to the longest", data::DocumentLoader(padded, {.batch = batch, .pad_to_multiple_of = 8})});
  ways.push_back({"packed", data::DocumentLoader(packed, {.batch = batch})});

  models::Llama<Float32> model(options.model);
  model.initialize({.seed = 1});
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 1e-4});
  trireme::testing::run_ranks(1, [&](const Group& world) {
    parallel::DataParallel replicas(model, ProcessMesh(world));
    std::int64_t number = 0;
    for (int step = 0; step <= options.steps; ++step) {  // in turn, so that all see the same machine
      for (Way& way : ways) {
        const data::TokenBatch rows = way.loader.load(step);
        const double seconds = seconds_of([&] {
          parallel::Step training = replicas.begin(number++);
          training.backward(model, std::vector{rows});
          training.update(optimizer);
        });
        if (step == 0) continue;
        way.seconds.push_back(seconds);
        for (std::int64_t i = 0; i < rows.targets.numel(); ++i) way.learnt += rows.targets.data()[i] == data::no_target ? 0 : 1;
      }
    }
  });
  nlohmann::json results;
  double of_padded = 0;
  for (const Way& way : ways) {
    double seconds = 0;
    for (const double of_step : way.seconds) seconds += of_step;
    const double per_second = static_cast<double>(way.learnt) / seconds;
    if (of_padded == 0) of_padded = per_second;
    fmt::print("{:22} {:8.1f} ms a step, {:8.0f} targets/s, {:.2f} times padded\n", way.name, 1e3 * median(way.seconds),
               per_second, per_second / of_padded);
    results[way.name] = {{"step_seconds", median(way.seconds)}, {"targets_per_second", per_second}};
  }
  write_json(options.json, results);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A Llama's training step on documents that are padded or packed; the defaults are the 9.5M model.");
  command.option("--text", options.text, "a file whose paragraphs are the documents");
  command.option("--layers", options.model.layers, "blocks");
  command.option("--width", options.model.width, "of the residual stream");
  command.option("--hidden", options.model.hidden, "features of a block's MLP");
  command.option("--length", options.model.block, "tokens of a row");
  command.option("--batch", options.batch, "rows of a step");
  command.option("--threads", options.threads, "OpenMP threads");
  command.option("--steps", options.steps, "measured, after one that is not");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(options.threads);
  return run(options);
}
