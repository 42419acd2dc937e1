// Trains the reference GPT runs of the index and compares loss, gradients, norms and final parameters:
//   gpt_reference_runs thread N | mpi       (under mpirun)
// Each run is done with one and with several micro-batches, with replicated and with sharded steps, on all meshes of data,
// pipeline and tensor axes that fit; in all precisions as up to 4 threads, in float32 and one other by turns as processes and
// as more threads, whose runs take long. In mixed precision, and of a model that is split, loss and norm alone are compared.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "models/reference_run.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

models::GptOptions model_options(const json& config) {
  return {.layers = config.at("n_layer"),
          .heads = config.at("n_head"),
          .width = config.at("n_embd"),
          .block = config.at("n_positions"),
          .vocabulary = config.at("vocab_size")};
}

// How far a loss may be from the reference; 0: as the index says.
template <typename P>
constexpr double mixed_bound = 0;
template <>
constexpr double mixed_bound<MixedBfloat16> = 3e-3;
template <>
constexpr double mixed_bound<MixedFloat16> = 1e-3;

// A parameter-shaped tensor in the layout of the reference files.
std::vector<float> in_stored_layout(const ParameterInfo& parameter, std::span<const float> values, double scale) {
  std::vector<float> stored(values.size());
  const bool transposed = models::stored_transposed(parameter.name);
  const auto columns = static_cast<std::size_t>(parameter.shape.back());
  const std::size_t height = values.size() / columns;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::size_t to = transposed ? index % columns * height + index / columns : index;
    stored[to] = static_cast<float>(scale * static_cast<double>(values[index]));
  }
  return stored;
}

struct Layout {
  int pipeline = 1;
  std::string schedule = "1f1b";
  int tensor = 1;
  bool sequence_parallel = false;
  int micro_batches = 1;
  parallel::Sharding sharding = parallel::Sharding::none;

  // Of what the rows of a micro-batch must be a multiple: of a sequence-parallel axis each rank takes as many, in whole cache
  // lines.
  std::int64_t rows_divide(std::int64_t width) const {
    return sequence_parallel ? tensor * (16 / std::gcd(width, std::int64_t{16})) : 1;
  }

  // Why a model can't be divided like this; empty when it can.
  std::string refusal(const models::GptOptions& options) const {
    if (options.heads % tensor == 0) return {};
    return fmt::format("{} ranks of a tensor axis can't divide {} heads", tensor, options.heads);
  }

  std::string text() const {
    return fmt::format("pipeline {} x tensor {}, {}{}, {} micro-batches, {} steps", pipeline, tensor, schedule,
                       sequence_parallel ? ", sequence-parallel" : "", micro_batches,
                       sharding == parallel::Sharding::optimizer ? "sharded" : "replicated");
  }
};

template <typename P>
class ReferenceRun {
 public:
  ReferenceRun(const tests::Fixture& fixture, const Group& world, const Layout& layout)
      : fixture_(fixture),
        mesh_(world, {.pipeline = layout.pipeline, .tensor = layout.tensor}),
        layout_(layout),
        text_(fmt::format("{} in {}: data {} x {}", fixture.id(), tests::name_of_precision<P>(), mesh_.data().size(),
                          layout.text())),
        report_(mesh_.world(), text_),
        model_(model_options(fixture.index.at("config")),
               parallel::model_context(mesh_, {.sequence_parallel = layout.sequence_parallel})) {}

  int run() {
    models::load_pretrained(model_, tests::init_of(fixture_).file.string());
    const json& hyper = fixture_.index.at("hyper");
    const int micro_batches = layout_.micro_batches;
    const tests::TokenBatches batches(fixture_, tests::batches_of(fixture_).tensors(), mesh_.data().size() * micro_batches,
                                      layout_.rows_divide(model_.options().width));

    parallel::DataParallel replicas(model_, mesh_,
                                    {.sharding = layout_.sharding,
                                     .buckets = {.bytes = 40000, .first_bytes = 10000, .slice_bytes = 10000},
                                     .schedule = layout_.schedule});
    const auto optimizer = tests::make_optimizer<P>(hyper, model_);
    const optim::LearningRate schedule = tests::make_schedule(hyper);
    double largest = 0;
    for (std::int64_t number = 0; number < batches.num_steps(); ++number) {
      parallel::Step step = replicas.begin(number, micro_batches);
      step.backward(model_, micro_batches_of(batches, number));
      const StepSummary& summary = step.finish();
      if (number == 0) replicas.gather_gradients();
      largest = std::max(largest, compare_step(number, summary));
      const bool updated =
          step.update(*optimizer, {.learning_rate = schedule(number), .clip_norm = tests::clip_norm_of(hyper)});
      report_.expect(updated, fmt::format("step {} was skipped", number));
    }
    if (whole_floats()) compare_final();
    if (mesh_.world().rank() == 0) {
      std::printf("%s: loss within %.2e\n", text_.c_str(), largest);
    }
    return report_.failures();
  }

 private:
  static constexpr bool mixed = mixed_bound<P> > 0;

  // Of this rank.
  std::vector<data::TokenBatch> micro_batches_of(const tests::TokenBatches& batches, std::int64_t step) const {
    std::vector<data::TokenBatch> result;
    for (int micro = 0; micro < layout_.micro_batches; ++micro) {
      const int part = mesh_.data().rank() * layout_.micro_batches + micro;
      result.push_back({.tokens = batches.tokens(step, part),
                        .targets = batches.targets(step, part),
                        .first_sample = part * batches.rows()});
    }
    return result;
  }

  bool whole_floats() const { return !mixed && layout_.pipeline == 1 && layout_.tensor == 1; }

  double compare_step(std::int64_t step, const StepSummary& summary) {
    if (step == 0 && whole_floats()) {
      const auto gradients_of = [&](int index) {
        return in_stored_layout(model_.store().parameter(index), model_.store().template gradient<float>(index).span(),
                                summary.gradient_scale);
      };
      tests::compare_first_gradients(fixture_, model_.store(), gradients_of, report_);
    }
    return tests::compare_step(fixture_, step, summary, report_, mixed_bound<P>);
  }

  void compare_final() {
    const auto values_of = [&](int index) {
      return in_stored_layout(model_.store().parameter(index), model_.store().template values<float>(index).span(), 1);
    };
    const auto without_keys = [](const ParameterInfo& parameter, std::vector<float>& got, std::vector<float>& wanted) {
      if (!parameter.name.ends_with("c_attn.bias")) return;
      const auto width = static_cast<std::ptrdiff_t>(got.size() / 3);  // the keys' gradient is zero in exact arithmetic
      got.erase(got.begin() + width, got.begin() + 2 * width);
      wanted.erase(wanted.begin() + width, wanted.begin() + 2 * width);
    };
    tests::compare_tensors(fixture_, "final.", {.atol = fixture_.index.at("tolerance").at("final_param_abs"), .rtol = 0},
                           model_.store(), values_of, report_, without_keys);
  }

  const tests::Fixture& fixture_;
  ProcessMesh mesh_;
  Layout layout_;
  std::string text_;
  tests::RunReport report_;
  models::Gpt<P> model_;
};

std::vector<Layout> layouts(int ranks) {
  using parallel::Sharding;
  std::vector<Layout> layouts;
  for (const int micro_batches : {1, 2}) {
    layouts.push_back({.micro_batches = micro_batches});
    if (ranks > 1) layouts.push_back({.micro_batches = micro_batches, .sharding = Sharding::optimizer});
  }
  for (const int tensor : {2, 4}) {
    if (ranks % tensor != 0) continue;
    for (const bool sequence_parallel : {false, true}) {
      layouts.push_back({.tensor = tensor, .sequence_parallel = sequence_parallel});
      layouts.push_back({.tensor = tensor,
                         .sequence_parallel = sequence_parallel,
                         .micro_batches = 2,
                         .sharding = ranks == tensor ? Sharding::none : Sharding::optimizer});
    }
  }
  for (const int tensor : {1, 2, 4}) {
    if (ranks % (2 * tensor) != 0) continue;
    for (const char* schedule : {"gpipe", "1f1b", "zb"}) {
      for (const bool sequence_parallel : {false, true}) {
        if (sequence_parallel && tensor == 1) continue;
        layouts.push_back({.pipeline = 2,
                           .schedule = schedule,
                           .tensor = tensor,
                           .sequence_parallel = sequence_parallel,
                           .micro_batches = 2,
                           .sharding = std::string_view(schedule) == "zb" ? Sharding::optimizer : Sharding::none});
      }
    }
  }
  return layouts;
}

int run_all(const Group& world, bool by_turns) {
  int runs = 0;
  return tests::run_fixtures(world, "gpt2", [&, by_turns](const tests::Fixture& fixture) {
    tests::know_run_options(fixture, {"n_layer", "n_embd", "n_head", "vocab_size", "n_positions"},
                            {"clip", "schedule", "targets", "start"});
    int failures = 0;
    for (const Layout& layout : layouts(world.size())) {
      const std::string refusal = layout.refusal(model_options(fixture.index.at("config")));
      if (!refusal.empty()) {
        if (world.rank() == 0) tests::list_skipped(fixture.id() + ", " + layout.text(), refusal);
        continue;
      }
      const int turn = runs++ % 2;
      failures += ReferenceRun<Float32>(fixture, world, layout).run();
      if (!by_turns || turn == 0) failures += ReferenceRun<MixedBfloat16>(fixture, world, layout).run();
      if (!by_turns || turn == 1) failures += ReferenceRun<MixedFloat16>(fixture, world, layout).run();
    }
    return failures;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bool few_threads = argc > 2 && std::string_view(argv[1]) == "thread" && std::atoi(argv[2]) <= 4;
  return tests::run_on_ranks(argc, argv, {"gpt2"}, [&](const Group& world) { return run_all(world, !few_threads); });
}
