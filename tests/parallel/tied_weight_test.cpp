#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "parallel/gpt_mesh_runs.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

// A GPT whose first and last stage both hold the token embedding.
namespace {

using namespace trireme;
using parallel::ParallelOptions;

constexpr int micro_batches = 2;
constexpr std::int64_t rows = 2;  // of a micro-batch
constexpr models::GptOptions gpt_options{
    .layers = 3, .heads = 2, .width = 16, .block = tests::gpt_time_steps, .vocabulary = 37};
constexpr std::string_view tied = "transformer.wte.weight";

class TiedRun {
 public:
  TiedRun(const Group& world, const MeshOptions& axes, const ParallelOptions& options, std::uint64_t seed_of_last_stage = 7)
      : mesh_(world, axes), model_(gpt_options, parallel::model_context(mesh_)) {
    const bool last = mesh_.pipeline().rank() + 1 == mesh_.pipeline().size();
    model_.initialize({.seed = last ? seed_of_last_stage : 7});
    replicas_.emplace(model_, mesh_, options);
    optimizer_.emplace(model_, optim::AdamWOptions{.learning_rate = 0.01});
  }

  StepSummary step() {
    parallel::Step step = backward();
    step.update(*optimizer_, {.clip_norm = 0.5});
    ++step_;
    return step.finish();
  }

  void give_up_step() { const parallel::Step step = backward(); }

  FlatStore& store() { return model_.store(); }
  const ProcessMesh& mesh() const { return mesh_; }

  // Whether the copies of this rank's pipeline are the same bits.
  bool copies_are_same() {
    const int index = store().find(tied);
    std::string bits;
    if (index >= 0) {
      const auto bytes = std::as_bytes(store().values<float>(index).span());
      for (const std::byte byte : bytes) {
        bits += static_cast<char>('a' + (std::to_integer<int>(byte) >> 4));
        bits += static_cast<char>('a' + (std::to_integer<int>(byte) & 15));
      }
    }
    const auto all = mesh_.pipeline().gather_texts(bits, "copies");
    return all.front() == all.back();
  }

 private:
  parallel::Step backward() {
    parallel::Step step = replicas_->begin(step_, micro_batches);
    step.backward(model_, tests::gpt_batches(step_, mesh_.data().rank() * micro_batches * rows, micro_batches, rows));
    return step;
  }

  ProcessMesh mesh_;
  models::Gpt<Float32> model_;
  std::optional<parallel::DataParallel> replicas_;
  std::optional<optim::AdamW<Float32>> optimizer_;
  std::int64_t step_ = 0;
};

std::vector<std::string> errors_of(int ranks, const std::function<void(const Group&)>& body) {
  std::mutex mutex;
  std::vector<std::string> errors;
  try {
    testing::run_ranks(ranks, [&](const Group& world) {
      try {
        body(world);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        errors.emplace_back(error.what());
        throw;
      }
    });
  } catch (const Error&) {
  }
  return errors;
}

}  // namespace

// The progress of the stages' sums when the step is given up depends on timing.
TEST_CASE("a step of a pipeline with a tied weight can be given up") {
  for (const parallel::Sharding sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
    std::vector<double> losses[2];
    std::mutex mutex;
    for (const bool gives_up : {false, true}) {
      testing::run_ranks(4, [&](const Group& world) {
        TiedRun run(world, {.data = 2, .pipeline = 2}, {.sharding = sharding, .buckets = {.bytes = 3000, .first_bytes = 300}});
        for (int step = 0; step < 4; ++step) {
          if (gives_up) run.give_up_step();
          const double loss = run.step().loss();
          const std::lock_guard lock(mutex);
          if (world.rank() == 0) losses[gives_up ? 1 : 0].push_back(loss);
        }
      });
    }
    CHECK(losses[1] == losses[0]);
  }
}

TEST_CASE("the copies of a tied weight keep the same bits, whatever reduces their gradients") {
  using parallel::CompressionBetween;
  using parallel::Sharding;
  const auto compressed = [](const parallel::HookFactory& hook, Sharding sharding = Sharding::none,
                             CompressionBetween between = CompressionBetween::ranks) {
    return [=] {
      return ParallelOptions{.sum = parallel::Hooked{{.hook = hook, .only_if_faster = false, .between = between}},
                             .sharding = sharding,
                             .buckets = {.bytes = 3000, .first_bytes = 300}};
    };
  };
  const std::vector<std::pair<std::string, std::function<ParallelOptions()>>> all{
      {"plain", [] { return ParallelOptions{.sharding = Sharding::none, .buckets = {.bytes = 3000}}; }},
      {"sharded",
       [] { return ParallelOptions{.sharding = Sharding::optimizer, .buckets = {.bytes = 3000, .slice_bytes = 3000}}; }},
      {"tuned",
       [] {
         return ParallelOptions{
             .sum = parallel::Plain{.tuning = {.on = true}}, .sharding = Sharding::none, .buckets = {.bytes = 3000}};
       }},
      {"fixed", [] { return ParallelOptions{.sum = parallel::FixedBits{.micro_batches = 4}, .buckets = {.bytes = 3000}}; }},
      {"int8", compressed(parallel::int8_hook())},
      {"powersgd", compressed(parallel::power_sgd_hook({.rank = 2}))},
      {"topk", compressed(parallel::top_k_hook({.ratio = 0.05, .dense_below = 16}))},
      {"bf16", compressed(parallel::bfloat16_hook())},
      {"powersgd, sharded", compressed(parallel::power_sgd_hook({.rank = 2}), Sharding::optimizer)},
      {"int8 without a network, sharded", compressed(parallel::int8_hook(), Sharding::optimizer, CompressionBetween::nodes)},
      {"topk with momentum, sharded", compressed(parallel::top_k_hook({.ratio = 0.05, .momentum = 0.5, .dense_below = 16}),
                                                 Sharding::optimizer, CompressionBetween::nodes)},
  };
  for (const auto& [name, options] : all) {
    for (const MeshOptions& axes :
         {MeshOptions{.data = 2, .pipeline = 2}, MeshOptions{.data = 2, .pipeline = 2, .tensor = 2}}) {
      if (axes.tensor > 1 && std::holds_alternative<parallel::Hooked>(options().sum)) continue;  // refused
      CAPTURE(name, axes.tensor);
      const auto errors = errors_of(axes.data * axes.pipeline * axes.tensor, [&, options = options](const Group& world) {
        TiedRun run(world, axes, options());
        double first = 0;
        double last = 0;
        for (int step = 0; step < 20; ++step) {
          last = run.step().loss();
          if (step == 0) first = last;
          require(run.copies_are_same(), "the copies differ after step {}", step);
        }
        require(last < first, "a loss of {} at first, {} at last", first, last);
      });
      CAPTURE(errors);
      CHECK(errors.empty());
    }
  }
}

TEST_CASE("a copy of a tied weight that is changed on one stage alone is an error on all ranks") {
  for (const bool sharded : {false, true}) {
    for (const int data : {1, 2}) {
      CAPTURE(sharded, data);
      const auto errors = errors_of(3 * data, [&](const Group& world) {
        TiedRun run(world, {.data = data, .pipeline = 3},
                    {.sharding = sharded ? parallel::Sharding::optimizer : parallel::Sharding::none, .check_replicas = 4});
        run.step();
        if (run.mesh().pipeline().rank() == 2) run.store().values<float>(run.store().find(tied)).data()[100] += 0.125F;
        for (int step = 0; step < 6; ++step) run.step();
      });
      REQUIRE(errors.size() == static_cast<std::size_t>(3 * data));
      for (const std::string& error : errors) {
        CHECK_THAT(error,
                   ContainsSubstring("the stages that hold the tied parameter transformer.wte.weight no longer hold the same"));
      }
    }
  }
}

TEST_CASE("copies of a tied weight that differ at the start are refused on all ranks") {
  const auto errors = errors_of(4, [](const Group& world) { TiedRun(world, {.data = 2, .pipeline = 2}, {}, 8); });
  REQUIRE(errors.size() == 4);
  for (const std::string& error : errors) {
    CHECK_THAT(error, ContainsSubstring("rank 1 of the pipeline holds the tied parameter transformer.wte.weight"));
  }
}

TEST_CASE("whether compression is on is decided for the whole mesh") {
  std::mutex mutex;
  std::vector<std::string> texts;
  const auto errors = errors_of(4, [&](const Group& world) {
    const ProcessMesh mesh(world, {.data = 2, .pipeline = 2});
    models::Gpt<Float32> model(gpt_options, parallel::model_context(mesh));
    model.initialize({.seed = 7});
    parallel::DataParallel replicas(
        model, mesh,
        {.sum = parallel::Hooked{{.hook = parallel::int8_hook(), .between = parallel::CompressionBetween::ranks}}});
    const parallel::Step step = replicas.begin(0);
    const std::lock_guard lock(mutex);
    texts.push_back(replicas.compression_decision().value().text);
  });
  CHECK(errors.empty());
  REQUIRE(texts.size() == 4);
  for (const std::string& text : texts) CHECK(text == texts.front());
}
