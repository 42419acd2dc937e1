// Replicas of a mixture of experts keep the same bits where nodes cut an expert axis: mpirun -n 6 expert_mpi_runs

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "trireme/files/digest.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t rows = 2, length = 5, vocabulary = 19;

Tensor<std::int32_t> tokens_of(std::int64_t first_sample, std::int64_t shift) {
  Tensor<std::int32_t> tokens({rows, length});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>((first_sample * length + i + shift) * 7919 % vocabulary);
  }
  return tokens;
}

// Ranks 0 to 2 and 3 to 5 are replicas, each with an expert a rank.
void train(const Group& world, parallel::Sharding sharding) {
  const ProcessMesh mesh(world, {.data = 2, .expert = 3});
  models::Llama<Float32> model({.layers = 2,
                                .heads = 2,
                                .width = 16,
                                .hidden = 12,
                                .vocabulary = vocabulary,
                                .experts = {.count = 3, .top_k = 2},
                                .weight_deviation = 0.2},
                               parallel::model_context(mesh));
  model.initialize({.seed = 3});
  parallel::DataParallel replicas(model, mesh, {.sharding = sharding, .check_replicas = 1});
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 0.02});
  for (std::int64_t number = 0; number < 6; ++number) {
    const std::int64_t first = (number * mesh.batch().size() + mesh.batch().rank()) * rows;
    parallel::Step step = replicas.begin(number);
    step.backward(model, std::vector<data::TokenBatch>{
                             {.tokens = tokens_of(first, 0), .targets = tokens_of(first, 1), .first_sample = first}});
    step.update(optimizer, {.clip_norm = 0.8});
  }
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    const Tensor<float> values = store.read_values<float>(index);
    const auto digests =
        mesh.batch().gather_texts(fmt::format("{:x}", digest(parameter.name, std::span<const float>(values.span()))), "values");
    const int copies = parameter.placement.split() ? mesh.data().size() : mesh.batch().size();
    require(std::ranges::count(digests, digests.front()) == copies, "copies of {} differ", parameter.name);
  }
}

}  // namespace

int main() {
  return launch(BackendKind::mpi, {.threads_per_rank = 1}, [](const Group& world) {
    for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) train(world, sharding);
    return 0;
  });
}
