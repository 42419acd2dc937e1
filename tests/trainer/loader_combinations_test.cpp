// Every pair of loaders, batch sizes, micro-batches, meshes before and after a restart, and reading ahead, against the same
// training on one rank without a restart: the same losses up to rounding, or one message that refuses the pair.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "covering_array.hpp"
#include "trainer/resumed_run.hpp"
#include "trireme/data/documents/length_batches.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/loaders/token_windows.hpp"
#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/sources/joined.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;

namespace {

constexpr std::int64_t num_steps = 8, stops_after = 3, row_length = 6, num_tokens_in_vocabulary = 13;

enum class Source : std::uint8_t { windows, mixture, length_batches };
enum class Sizes : std::uint8_t { one, growing, uneven };

struct LoaderSetup {
  Source source = Source::windows;
  Sizes sizes = Sizes::one;
  std::int64_t micro_batches = 1;
  MeshOptions mesh{.data = 1};
  std::optional<MeshOptions> resumed_on = {};
  bool reads_ahead = false;
  trainer::RateScaling scaling = trainer::RateScaling::none;

  std::string str() const {
    const MeshOptions after = resumed_on.value_or(MeshOptions{.data = 0});
    return fmt::format("{}, {}, {} micro-batches, data {} x pipeline {}, then {} x {}{}, rate scaling {}",
                       std::array{"windows", "a mixture", "batches by length"}[static_cast<std::size_t>(source)],
                       std::array{"one size", "growing", "uneven sizes"}[static_cast<std::size_t>(sizes)], micro_batches,
                       mesh.data, mesh.pipeline, after.data, after.pipeline, reads_ahead ? ", reads ahead" : "",
                       static_cast<int>(scaling));
  }
  LoaderSetup alone() const { return {.source = source, .sizes = sizes, .scaling = scaling}; }
};

// Source, sizes, micro-batches, mesh, mesh after the restart, reading ahead, rate scaling.
constexpr std::array<std::size_t, 7> factors_of_loaders = {3, 3, 2, 5, 5, 2, 3};

LoaderSetup loader_setup_of(const tests::Combination& row) {
  constexpr std::array<MeshOptions, 5> meshes = {{{.data = 1}, {.data = 2}, {.data = 3}, {1, 2, 1}, {2, 2, 1}}};
  return {.source = static_cast<Source>(row[0]),
          .sizes = static_cast<Sizes>(row[1]),
          .micro_batches = static_cast<std::int64_t>(row[2]) + 1,
          .mesh = meshes[row[3]],
          .resumed_on = meshes[row[4]],
          .reads_ahead = row[5] == 1,
          .scaling = static_cast<trainer::RateScaling>(row[6])};
}

const std::map<tests::ChoicePair, const char*> refused_pairs{
    {{{0, 2}, {1, 1}}, "leave batch_size_from_step out"},
    {{{0, 2}, {1, 2}}, "leave batch_size_from_step out"},
    {{{0, 2}, {2, 1}}, "a micro-batch cannot have 6 of them"},
    {{{1, 2}, {2, 1}}, "which its 2 micro-batches cannot share equally"}};

data::TokenDataset tokens_from(std::uint8_t first) {
  std::string bytes;
  for (int i = 0; i < 400; ++i) bytes += static_cast<char>((first + i * i + 3 * i) % num_tokens_in_vocabulary);
  return data::TokenDataset::from_bytes(bytes);
}

data::LengthBatches by_length(std::uint8_t first) {
  const data::TokenDataset tokens = tokens_from(first);
  data::Documents documents;
  for (std::int64_t begin = 0, count = 1; begin + count < 390; begin += count, count = count % row_length + 1) {
    std::vector<std::int32_t> document(static_cast<std::size_t>(count));
    tokens.window(begin, document);
    documents.add(document);
  }
  return data::LengthBatches(documents, {.max_tokens = 2 * row_length, .length = row_length, .pad_to_multiple_of = 1});
}

std::vector<data::MixtureWeights> weights() { return {{0, {0.75, 0.25}}, {4, {0.25, 0.75}}}; }

trainer::Options options_of(const LoaderSetup& setup, const MeshOptions& mesh, const RunFolder* folder) {
  trainer::Options options{.until = Steps{num_steps},
                           .batch_size = 12,
                           .micro_batch_size = setup.micro_batches == 1 ? 0 : 12 / mesh.data / setup.micro_batches,
                           .warmup = 2,
                           .scale_learning_rate = setup.scaling,
                           .checkpoint_every = never,
                           .mesh = mesh};
  if (folder != nullptr) options.checkpoints = {.directory = folder->path, .chunk_bytes = 1024};
  if (setup.sizes == Sizes::growing) options.batch_size_from_step = {{2, 24}, {5, 36}};
  if (setup.sizes == Sizes::uneven) options.batch_size_from_step = {{2, 13}, {5, 7}};
  return options;
}

// The losses of the steps until `last`.
std::vector<double> losses_of(const LoaderSetup& setup, const MeshOptions& mesh, const RunFolder* folder, std::int64_t last) {
  std::vector<double> losses;
  testing::run_ranks(mesh.data * mesh.pipeline, [&](const Group& world) {
    trainer::Run run(world, options_of(setup, mesh, folder));
    models::Gpt<Float64> model({.layers = 2,
                                .heads = 2,
                                .width = 8,
                                .block = row_length,
                                .vocabulary = num_tokens_in_vocabulary,
                                .embedding_dropout = 0.1,
                                .weight_deviation = 0.3},
                               run.context());
    optim::Sgd<Float64> optimizer(model, {.learning_rate = 0.1, .momentum = 0.5});
    run.add(model, optimizer);
    run.after_step([&](const trainer::StepReport& report, StepRequests&) {
      if (world.rank() == 0) losses.push_back(report.loss);
    });
    const auto train = [&](const auto& loader) {
      const data::Prefetching ahead(loader, {.threads = setup.reads_ahead ? 2 : 0, .batches = 3});
      for (auto& step : run.steps(ahead)) {
        step.backward(model, step.batches());
        step.update(optimizer);
        if (run.done() == last) run.stop();
      }
    };
    switch (setup.source) {
      case Source::windows:
        return train(data::WindowLoader(tokens_from(0),
                                        {.batch = run.batch(), .length = row_length, .order = data::WindowOrder::shuffled}));
      case Source::mixture:
        return train(data::Loader(data::Joined(std::vector{data::TokenWindows(tokens_from(0), row_length),
                                                           data::TokenWindows(tokens_from(5), row_length)}),
                                  {.batch = run.batch(), .mixture = weights()}));
      case Source::length_batches:
        return train(
            data::Loader(data::Joined(std::vector{by_length(0), by_length(5)}), {.batch = run.batch(), .mixture = weights()}));
    }
  });
  return losses;
}

std::vector<double> losses_of(const LoaderSetup& setup) {
  if (!setup.resumed_on) return losses_of(setup, setup.mesh, nullptr, num_steps);
  const RunFolder folder;
  std::vector<double> losses = losses_of(setup, setup.mesh, &folder, stops_after);
  const std::vector<double> after = losses_of(setup, *setup.resumed_on, &folder, num_steps);
  losses.insert(losses.end(), after.begin(), after.end());
  return losses;
}

}  // namespace

TEST_CASE("every pair of loaders, batch sizes, meshes and restarts trains what one rank trains") {
  const Silence silence;
  std::set<tests::ChoicePair> excluded;
  for (const auto& [pair, message] : refused_pairs) excluded.insert(pair);
  std::map<std::string, std::vector<double>> alone;
  for (const tests::Combination& row : tests::covering_array(factors_of_loaders, excluded)) {
    const LoaderSetup setup = loader_setup_of(row);
    INFO(setup.str());
    const std::vector<double> losses = losses_of(setup);
    const auto [wanted, missing] = alone.try_emplace(setup.alone().str());
    if (missing) wanted->second = losses_of(setup.alone());
    REQUIRE(std::ssize(losses) == num_steps);
    REQUIRE(std::ssize(wanted->second) == num_steps);
    for (std::size_t step = 0; step < losses.size(); ++step) {
      INFO("step " << step);
      CHECK(losses[step] == Approx(wanted->second[step]).epsilon(1e-9));
    }
  }
  CHECK(alone.size() > 5);
}

TEST_CASE("pairs of loaders and batch sizes that can't be are refused on all ranks") {
  const Silence silence;
  for (const auto& [pair, message] : refused_pairs) {
    tests::Combination row(factors_of_loaders.size());
    row[pair.first.factor] = pair.first.value;
    row[pair.second.factor] = pair.second.value;
    LoaderSetup setup = loader_setup_of(row);
    INFO(setup.str());
    CHECK_THROWS_WITH(losses_of(setup, setup.mesh, nullptr, num_steps), ContainsSubstring(message));
  }
}
