// A training program that fails at a given place: failing_run CASE FOLDER. See run_failures_test.

#include <csignal>
#include <limits>
#include <stdexcept>
#include <string>

#include "trainer/small_run.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/trainer/fit.hpp"
#include "trireme/trainer/launch.hpp"

using namespace trireme;
using namespace trireme::test;

namespace {

constexpr std::int64_t wrong_step = 5;

// Throws, or gets a signal, on the last rank where the case names this place.
class Trouble {
 public:
  Trouble(std::string what, const Group& world) : what_(std::move(what)), last_(world.rank() == world.size() - 1) {}

  bool is(const std::string& what) const { return what_ == what; }
  void at(const std::string& place, std::int64_t step) const {
    if (step != wrong_step || !last_ || done_) return;
    if (what_ == place) throw std::runtime_error("trouble in " + place);
    const int times = what_ == "twice_" + place ? 2 : what_ == "int_" + place || what_ == "term_" + place ? 1 : 0;
    for (int time = 0; time < times; ++time) std::raise(what_ == "term_" + place ? SIGTERM : SIGINT);
    done_ = times > 0;
  }

 private:
  std::string what_;
  bool last_;
  mutable bool done_ = false;
};

struct TroubledLoader : PointLoader {
  TroubledLoader(const data::BatchOptions& options, const Trouble& trouble) : PointLoader(options), trouble_(trouble) {}
  PointBatch load(std::int64_t step, std::int64_t micro_batch = 0) const {
    trouble_.at("data", step);
    return PointLoader::load(step, micro_batch);
  }

 private:
  const Trouble& trouble_;
};

void train(trainer::Run& run, const std::string& what) {
  const Trouble trouble(what, run.world());
  PointNet net(run.context());
  optim::AdamW<Float32> optimizer(net);
  run.add(net, optimizer);
  std::int64_t now = 0;
  run.keep([&](State&) { trouble.at("save", now); });
  run.after_step([&](const trainer::StepReport& report, StepRequests&) { trouble.at("callback", report.step); });
  const auto validate = [&] {
    return run.evaluate(net, TestPoints(), [&](const auto& y, const PointBatch& batch) {
      trouble.at("validation", now);
      return net.loss(y, batch);
    });
  };
  trainer::Validations validations(run, net, {.validate = validate, .validate_every = Steps{1}});
  const TroubledLoader loader(run.batch(), trouble);
  for (auto& step : run.steps(loader)) {
    now = step.number();
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] {
        trouble.at("model", now);
        const bool is_nan = trouble.is("nan") && now == wrong_step;
        const auto y = net.forward(batch);
        return net.loss(is_nan ? scale(y, std::numeric_limits<float>::quiet_NaN()) : y, batch);
      });
    }
    step.update(optimizer);
    validations.after_update();
    if (trouble.is("gone") && now == wrong_step && run.world().rank() == 0) {
      std::filesystem::remove_all(run.options().checkpoints.directory);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const std::string what = argv[1];
  const std::filesystem::path folder = argv[2];
  return launch(BackendKind::mpi, {}, [&](const Group& world) {
    trainer::Options options{.until = Steps{what == "before" ? 3 : 10},
                             .batch_size = 12,
                             .checkpoints = {.directory = folder / "run"},
                             .checkpoint_every = Steps{1},
                             .process = {.signals = true, .terminal = true, .standard_output = true}};
    if (what == "option") options.seed = 1 + static_cast<std::uint64_t>(world.rank());
    if (what == "full") options.metrics = "/dev/full";
    trainer::Run run(world, options);
    if (what == "other") run.describe("layers", "3");
    train(run, what);
    return 0;
  });
}
