#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comm/expect.hpp"
#include "comm/nccl_ranks.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/step_graph.hpp"

// Steps of ranks with a GPU each that are launched as a graph, collectives included, against the same steps eager.
namespace {

using namespace trireme;
using namespace trireme::test;
using P = MixedBfloat16;

constexpr models::GptOptions model_options{.layers = 2, .heads = 4, .width = 64, .block = 32, .vocabulary = 96, .dropout = 0.1};
constexpr std::int64_t rows = 2;
constexpr std::int64_t steps = 8;

Tensor<std::int32_t> tokens_of(std::int64_t step, int rank, std::int64_t factor) {
  Tensor<std::int32_t> tokens({rows, model_options.block});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>((factor * i + step + rank) % model_options.vocabulary);
  }
  return tokens;
}

class Run {
 public:
  Run(const Group& gpu, parallel::Sharding sharding, const std::string& optimizer, bool recorded)
      : gpu_(gpu),
        replicas_(initialized(model_), ProcessMesh(gpu),
                  {.sharding = sharding, .buckets = {.bytes = 1 << 15}, .check_replicas = 3}),
        optimizer_(optim::make_optimizer<P, Cuda>(optimizer, model_, {.weight_decay = 0.1})),
        graph_(replicas_,
               [this](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
                 step.backward(place.first_sample, [&] { return model_.loss(tokens, targets); });
                 step.update(*optimizer_, {.clip_norm = 0.5});
               },
               {.enabled = recorded}) {}

  void run(std::int64_t number) {
    graph_.run({.number = number, .first_sample = rows * gpu_.rank(), .learning_rate = 1e-3 / static_cast<double>(number + 1)},
               tokens_of(number, gpu_.rank(), 7), tokens_of(number, gpu_.rank(), 5));
    const StepRequests asked = replicas_.exchange({.checkpoint = number == 4 && gpu_.rank() == 1});
    expect(asked.checkpoint == (number == 4), "a checkpoint after step 4 alone, not after {}", number);
  }

  // Losses and norms of all steps, then the values.
  std::vector<double> train() {
    std::vector<double> numbers;
    for (std::int64_t number = 0; number < steps; ++number) {
      run(number);
      numbers.push_back(graph_.last_result().loss);
      numbers.push_back(graph_.last_result().gradient_norm);
    }
    for (int index = 0; index < model_.store().num_parameters(); ++index) {
      const Tensor<float> values = model_.store().template read_values<float>(index);
      numbers.insert(numbers.end(), values.span().begin(), values.span().end());
    }
    return numbers;
  }

  bool is_recorded() const { return graph_.is_recorded(); }

 private:
  static models::Gpt<P, Cuda>& initialized(models::Gpt<P, Cuda>& model) {
    model.initialize({.seed = 1});
    return model;
  }

  Group gpu_;
  models::Gpt<P, Cuda> model_{model_options, ModelContext{.seed = 3}};
  parallel::DataParallel replicas_;
  std::unique_ptr<optim::Optimizer<P, Cuda>> optimizer_;
  parallel::StepGraph<Cuda, std::int32_t, std::int32_t> graph_;
};

int check_all(const Group& gpu) {
  using parallel::Sharding;
  const std::vector<std::pair<Sharding, std::string>> cases{
      {Sharding::none, "adamw"}, {Sharding::optimizer, "adamw"}, {Sharding::optimizer, "lamb"}};
  for (const auto& [sharding, optimizer] : cases) {
    Run recorded(gpu, sharding, optimizer, true);
    const std::vector<double> launched = recorded.train();
    expect(recorded.is_recorded(), "a recorded step");
    expect(launched == Run(gpu, sharding, optimizer, false).train(), "launched steps of {} that give the bits of eager ones",
           optimizer);
  }
  return 0;
}

// The last rank fails between launches: the GPUs of the others wait for its own, and nothing hangs.
int fail(const Group& gpu) {
  Run run(gpu, parallel::Sharding::none, "adamw", true);
  for (std::int64_t number = 0; number < steps; ++number) {
    if (number == 5 && gpu.rank() == gpu.size() - 1) throw std::runtime_error("boom");
    run.run(number);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run_nccl_ranks(argc, argv, check_all, fail); }
