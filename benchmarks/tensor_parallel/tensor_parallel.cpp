// Training steps of a GPT that is divided over all ranks, against those of one rank with the whole model:
//   OMP_NUM_THREADS=1 mpirun -n 2 tensor_parallel [--json FILE]
// The ways take turns; while one rank works alone the others sleep. Memory is the peak of a rank's resident set during a step
// in a process that has done nothing else: run each way alone by --only.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Options {
  models::GptOptions model{.layers = 4, .heads = 12, .width = 768, .block = 256, .vocabulary = 8192};
  std::int64_t batch = 4;
  int rounds = 5;
  std::string only;
  std::string json;
};

class Way {
 public:
  Way(std::string name, const Options& options, const Group& group, bool sequence_parallel)
      : name_(std::move(name)),
        options_(options),
        mesh_(group, {.tensor = group.size()}),
        model_(options.model, parallel::model_context(mesh_, {.sequence_parallel = sequence_parallel})) {
    model_.initialize();
    data_parallel_.emplace(model_, mesh_);
    optimizer_.emplace(model_, optim::AdamWOptions{.learning_rate = 1e-4});
  }

  const std::string& name() const { return name_; }
  double loss() const { return loss_; }

  void step() {
    Tensor<std::int32_t> tokens({options_.batch, options_.model.block});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) {
      tokens.data()[i] = static_cast<std::int32_t>(i * 2654435761 % options_.model.vocabulary);
    }
    parallel::Step step = data_parallel_->begin(next_step_++);
    step.backward(0, [&] { return model_.loss(tokens, tokens); });
    step.update(*optimizer_, {.clip_norm = 1});
    loss_ = step.finish().loss();
  }

 private:
  std::string name_;
  const Options& options_;
  ProcessMesh mesh_;
  models::Gpt<Float32> model_;
  std::optional<parallel::DataParallel> data_parallel_;
  std::optional<optim::AdamW<Float32>> optimizer_;
  std::int64_t next_step_ = 0;
  double loss_ = 0;
};

struct Row {
  std::string name;
  double seconds = 0;
  double loss = 0;
};

// Null on a rank that is idle in this way.
std::unique_ptr<Way> make_way(const std::string& name, const Options& options, const Group& world, const Group& alone) {
  if (name == "one rank") return world.rank() == 0 ? std::make_unique<Way>(name, options, alone, false) : nullptr;
  return std::make_unique<Way>(name, options, world, name == "sequence parallel");
}

int benchmark(const Options& options, const Group& world) {
  const Group alone = world.split(world.rank(), 0, "one rank");
  std::vector<std::string> names{"one rank", "tensor parallel", "sequence parallel"};
  if (!options.only.empty()) names = {options.only};
  std::vector<std::unique_ptr<Way>> ways;
  for (const std::string& name : names) ways.push_back(make_way(name, options, world, alone));
  std::vector<std::vector<double>> seconds(ways.size());
  for (int round = -1; round < options.rounds; ++round) {  // the first one warms up
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const double taken = slowest_seconds(world, [&] {
        if (ways[way] != nullptr) ways[way]->step();
      });
      if (round >= 0) seconds[way].push_back(taken);
    }
  }
  const double memory = peak_rss_bytes(world);
  if (world.rank() != 0) return 0;

  nlohmann::ordered_json result;
  const auto tokens = static_cast<double>(options.batch * options.model.block);
  fmt::print("GPT of {} layers of width {}, vocabulary {}, {} tokens a step, {} ranks\n", options.model.layers,
             options.model.width, options.model.vocabulary, tokens, world.size());
  const double base = median(seconds.front());
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const double step = median(seconds[way]);
    fmt::print("{:<18} {:9.1f} ms a step {:8.0f} tokens/s  {:.2f}x  loss {:.6f}\n", names[way], step * 1e3, tokens / step,
               base / step, ways[way]->loss());
    result[names[way]] = {{"seconds", step}, {"tokens_per_second", tokens / step}, {"ratio", base / step}};
  }
  if (!options.only.empty()) {
    fmt::print("peak memory of a rank {:.0f} MB\n", memory / 1e6);
    result["peak_rss_bytes"] = memory;
  }
  write_json(options.json, result);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Training steps of a GPT split over the ranks of a tensor axis, against one rank.");
  command.options_of(options.model);
  command.option("--batch", options.batch, "sequences of a step");
  command.option("--rounds", options.rounds, "timed steps of each way, in turn");
  command.option("--only", options.only, "this way alone, with its memory",
                 {"one rank", "tensor parallel", "sequence parallel"});
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return benchmark(options, world); });
}
