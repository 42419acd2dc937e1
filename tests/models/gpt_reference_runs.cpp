// Trains the reference GPT runs of the index and compares loss, gradients, norms and final parameters:
//   gpt_reference_runs thread N | mpi       (under mpirun)
// Each run is done with one and with several micro-batches, with replicated and with sharded steps, on all meshes of data,
// pipeline and tensor axes that fit. In mixed precision, and of a model that is split, loss and norm alone are compared.

#include <fmt/format.h>

#include <cstdio>
#include <optional>
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
  parallel::Sharding sharding = parallel::Sharding::off;
};

template <typename P>
class ReferenceRun {
 public:
  ReferenceRun(const tests::Fixture& fixture, const Group& world, const Layout& layout)
      : fixture_(fixture),
        mesh_(world, {.pipeline = layout.pipeline, .tensor = layout.tensor}),
        layout_(layout),
        text_(fmt::format("{} in {}: data {} x pipeline {} x tensor {}, {}{}, {} micro-batches, {} steps", fixture.id(),
                          tests::name_of_precision<P>(), mesh_.data().size(), layout.pipeline, layout.tensor, layout.schedule,
                          layout.sequence_parallel ? ", sequence-parallel" : "", layout.micro_batches,
                          layout.sharding == parallel::Sharding::on ? "sharded" : "replicated")),
        report_(mesh_.world(), text_),
        model_(model_options(fixture.index.at("config")),
               parallel::model_part(mesh_, {.sequence_parallel = layout.sequence_parallel})) {}

  int run() {
    const std::string folder = fixture_.id().substr(0, fixture_.id().find('/'));
    models::load_gpt2(model_, tests::fixture(folder + "/init").file.string());
    const SafetensorsFile batches = tests::fixture(folder + "/batches").tensors();
    const json& hyper = fixture_.index.at("hyper");
    const std::string targets_name = hyper.value("targets", "targets");
    const Shape shape = batches.at("input_ids").shape;
    const auto tokens = tests::read_integers(batches, "input_ids");
    const auto targets = tests::read_integers(batches, targets_name);

    parallel::DataParallel data_parallel(model_, mesh_,
                                         {.bucket_bytes = 40000, .first_bucket_bytes = 10000, .sharding = layout_.sharding});
    const auto optimizer = tests::make_optimizer<P>(hyper, model_.store());
    const optim::Schedule schedule = tests::make_schedule(hyper);
    const int micro_batches = layout_.micro_batches;
    const std::int64_t share = shape[1] / mesh_.data().size() / micro_batches;
    amp::GradScaler scaler({.enabled = std::same_as<P, MixedFloat16>});
    std::int64_t step = 0;
    const auto part_of = [&](const std::vector<std::int64_t>& all, int micro) {
      return tests::rows_of(all, shape, step, (mesh_.data().rank() * micro_batches + micro) * share, share);
    };
    std::optional<parallel::Pipeline<float>> pipeline;
    if (layout_.pipeline > 1) {
      parallel::PipelineStage<float> stage;
      const int index = mesh_.pipeline().rank();
      const Shape between = model_.stage_shape(share, shape[2]);
      if (index > 0) stage.input = between;
      if (index + 1 < layout_.pipeline) {
        stage.output = between;
        stage.forward = [&, index](const Variable<float>& x, int micro) {
          return model_.stage(index, x, part_of(tokens, micro));
        };
      } else {
        stage.loss = [&](const Variable<float>& x, int micro) {
          return scaler.scale(model_.last_stage(x, part_of(targets, micro)));
        };
      }
      pipeline.emplace(mesh_,
                       parallel::make_pipeline_schedule(
                           {.name = layout_.schedule, .num_ranks = layout_.pipeline, .num_micro_batches = micro_batches}),
                       std::vector{stage});
    }
    double largest = 0;
    for (; step < shape[0]; ++step) {
      auto reduction = data_parallel.begin_step(micro_batches);
      if (pipeline) {
        pipeline->run(reduction, {}, share);
      } else {
        for (int micro = 0; micro < micro_batches; ++micro) {
          Tape tape;
          reduction.listen(tape);
          const auto loss = model_.loss(part_of(tokens, micro), part_of(targets, micro));
          scaler.scale(loss).backward();
          reduction.add(loss);
        }
      }
      StepSummary summary = reduction.finish();
      scaler.unscale(*optimizer, summary);
      if (step == 0) data_parallel.gather_gradients();
      largest = std::max(largest, compare_step(step, summary));
      optimizer->set_learning_rate(schedule(step));
      const bool stepped = scaler.step(*optimizer, summary, {.clip_norm = tests::clip_norm_of(hyper)});
      report_.expect(stepped, fmt::format("step {} was skipped", step));
      scaler.update();
    }
    if (whole_floats()) compare_final();
    if (mesh_.world().rank() == 0) {
      std::printf("%s: loss within %.2e\n", text_.c_str(), largest);
    }
    return report_.failures();
  }

 private:
  static constexpr bool mixed = mixed_bound<P> > 0;

  bool whole_floats() const { return !mixed && layout_.pipeline == 1 && layout_.tensor == 1; }

  double compare_step(std::int64_t step, const StepSummary& summary) {
    if (step == 0 && whole_floats()) {
      const json& tolerance = fixture_.index.at("tolerance").at("grad_step0");
      compare("grad_step0.", {.atol = tolerance.at("atol"), .rtol = tolerance.at("rtol")}, [&](int index) {
        return in_stored_layout(model_.store().parameter(index), model_.store().template gradient<float>(index).span(),
                                summary.gradient_scale);
      });
    }
    return tests::compare_step(fixture_, step, summary, report_, mixed_bound<P>);
  }

  void compare_final() {
    compare("final.", {.atol = fixture_.index.at("tolerance").at("final_param_abs"), .rtol = 0}, [&](int index) {
      return in_stored_layout(model_.store().parameter(index), model_.store().template values<float>(index).span(), 1);
    });
  }

  void compare(const std::string& prefix, tests::Tolerance tolerance, const tests::ValuesOf& values_of) {
    const auto without_keys = [&](const ParameterInfo& parameter, std::vector<float>& got, std::vector<float>& wanted) {
      if (prefix != "final." || !parameter.name.ends_with("c_attn.bias")) return;
      const auto width = static_cast<std::ptrdiff_t>(got.size() / 3);  // the keys' gradient is zero in exact arithmetic
      got.erase(got.begin() + width, got.begin() + 2 * width);
      wanted.erase(wanted.begin() + width, wanted.begin() + 2 * width);
    };
    tests::compare_tensors(fixture_, prefix, tolerance, model_.store(), values_of, report_, without_keys);
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
    if (ranks > 1) layouts.push_back({.micro_batches = micro_batches, .sharding = Sharding::on});
  }
  for (const int tensor : {2, 4}) {
    if (ranks % tensor != 0) continue;
    for (const bool sequence_parallel : {false, true}) {
      layouts.push_back({.tensor = tensor, .sequence_parallel = sequence_parallel});
      layouts.push_back({.tensor = tensor,
                         .sequence_parallel = sequence_parallel,
                         .micro_batches = 2,
                         .sharding = ranks == tensor ? Sharding::off : Sharding::on});
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
                           .sharding = std::string_view(schedule) == "zb" ? Sharding::on : Sharding::off});
      }
    }
  }
  return layouts;
}

int run_all(const Group& world) {
  return tests::run_fixtures(world, "gpt2", [&](const tests::Fixture& fixture) {
    int failures = 0;
    const std::int64_t batch =
        tests::fixture(fixture.id().substr(0, fixture.id().find('/')) + "/batches").tensors().at("input_ids").shape[1];
    for (const Layout& layout : layouts(world.size())) {
      if (batch % (world.size() / layout.pipeline / layout.tensor * layout.micro_batches) != 0) continue;
      failures += ReferenceRun<Float32>(fixture, world, layout).run();
      failures += ReferenceRun<MixedBfloat16>(fixture, world, layout).run();
      failures += ReferenceRun<MixedFloat16>(fixture, world, layout).run();
    }
    return failures;
  });
}

}  // namespace

int main(int argc, char** argv) { return tests::run_on_ranks(argc, argv, run_all); }
