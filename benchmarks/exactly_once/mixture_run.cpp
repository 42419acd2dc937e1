// Trains a tiny model on a mixture of token shards, and writes down what its batches hold. benchmarks/exactly_once/exactly_once
// kills it again and again. Tokens of the shards are numbers that occur once, from 1 on; the model learns their last 8 bits.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <ranges>
#include <string>
#include <trireme/trireme.hpp>

#include "measurement/command_line.hpp"

using namespace trireme;

namespace {

struct Settings {
  std::string data;
  std::string log;
  std::string checkpoints;
  std::int64_t length = 64;
  std::int64_t batch = 24;
  std::int64_t steps = 1000;
  std::int64_t checkpoint_every = 5;
  std::int64_t prefetch = 3;
};

// The tokens of a row as runs of successive numbers: "120-131 7-9". Padding is 0 and is left out.
std::string runs_of(const std::int32_t* tokens, std::int64_t count) {
  std::string text;
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && tokens[end] == tokens[end - 1] + 1;) ++end;
    if (tokens[begin] != 0) text += fmt::format(" {}-{}", tokens[begin], tokens[end - 1]);
  }
  return text;
}

// A file of this rank with a line for each sample: its step, its number, its tokens. Each batch is one write, which outlives
// the process.
class Log {
 public:
  Log(const std::string& name, int rank)
      : file_(::open(fmt::format("{}.{}", name, rank).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)) {
    require(file_ >= 0, "{}: can't write", name);
  }
  ~Log() { ::close(file_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(std::int64_t step, const data::TokenBatch& batch) {
    std::string lines;
    for (std::int64_t row = 0; row < batch.rows(); ++row) {
      lines += fmt::format("{} {}{}\n", step, batch.first_sample + row,
                           runs_of(batch.tokens.data() + row * batch.time(), batch.time()));
    }
    require(::write(file_, lines.data(), lines.size()) == std::ssize(lines), "the log is not written");
  }

 private:
  int file_;
};

data::TokenBatch last_bits_of(data::TokenBatch batch) {
  for (auto* tensor : {&batch.tokens, &batch.targets}) {
    for (std::int32_t& token : tensor->span()) {
      if (token >= 0) token &= 255;  // others are targets that are ignored
    }
  }
  return batch;
}

int train(const Group& world, const Settings& settings) {
  trainer::Run run(world, {.until = Steps{settings.steps},
                           .batch_size = settings.batch,
                           .checkpoints = {.directory = settings.checkpoints},
                           .checkpoint_every = Steps{settings.checkpoint_every},
                           .process = {.standard_output = true}});
  const data::TokenMixture mixture = data::open_token_mixture(settings.data, {.length = settings.length});
  models::Llama<Float32> model(
      {.layers = 1, .heads = 2, .width = 16, .hidden = 32, .vocabulary = 256, .block = settings.length}, run.context());
  optim::AdamW<Float32> optimizer(model);
  run.add(model, optimizer);
  const data::Prefetching loader(data::Loader(mixture.rows, {.batch = run.batch(), .mixture = mixture.weights}),
                                 {.batches = settings.prefetch});
  Log log(settings.log, run.world().rank());
  for (auto& step : run.steps(loader)) {
    step.backward(model, step.batches() | std::views::transform([&](data::TokenBatch batch) {
                           log.write(step.number(), batch);
                           return last_bits_of(std::move(batch));
                         }));
    step.update(optimizer);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CommandLine command("Trains a tiny model on a mixture of token shards, and writes down what its batches hold.");
  command.option("--data", settings.data, "token shards, or the JSON file of a mixture");
  command.option("--log", settings.log, "where each rank writes its lines: this name, a dot, and its number");
  command.option("--checkpoint-dir", settings.checkpoints, "a folder; the run resumes from the newest checkpoint in it");
  command.option("--checkpoint-interval", settings.checkpoint_every, "steps from one checkpoint to the next");
  command.option("--length", settings.length, "tokens of a row");
  command.option("--batch-size", settings.batch, "rows of a step, over all ranks");
  command.option("--steps", settings.steps, "of the whole run");
  command.option("--prefetch", settings.prefetch, "micro-batches that are prefetched");
  for (const char* name : {"--data", "--log", "--checkpoint-dir"}) command.require(name);
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return train(world, settings); });
}
