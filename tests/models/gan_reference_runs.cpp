// Trains the reference GANs of the index and compares the losses of both models and their final parameters and buffers:
//   gan_reference_runs thread N | mpi       (under mpirun)
// Each run is done with replicated and with sharded steps.

#include <array>
#include <cmath>
#include <cstdio>

#include "models/reference_images.hpp"
#include "models/reference_run.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

// What a step of both models reads: images in [-1, 1] and latent vectors.
class Batches : public tests::ImageBatches {
 public:
  explicit Batches(const SafetensorsFile& file) : ImageBatches(file, {0.5}, {0.5}), latent_(tests::read_floats(file, "z")) {
    width_ = file.at("z").shape[2];
  }

  Tensor<float> latent(std::int64_t step, std::int64_t first, std::int64_t count) const {
    Tensor<float> result({count, width_});
    std::copy_n(latent_.begin() + (step * batch() + first) * width_, result.numel(), result.data());
    return result;
  }

 private:
  std::vector<float> latent_;  // [steps, batch, width]
  std::int64_t width_;
};

struct Mlp {
  using Generator = models::MlpGenerator<Float32>;
  using Discriminator = models::MlpDiscriminator<Float32>;
  static models::MlpGanOptions options(const json& config, const Batches& batches) {
    return {.image = {batches.height(), batches.width()},
            .channels = batches.channels(),
            .latent = config.at("z"),
            .hidden = config.at("h"),
            .slope = config.at("slope")};
  }
};

struct Dc {
  using Generator = models::DcGenerator<Float32>;
  using Discriminator = models::DcDiscriminator<Float32>;
  static models::DcGanOptions options(const json& config, const Batches& batches) {
    return {.image = {batches.height(), batches.width()},
            .channels = batches.channels(),
            .latent = config.at("z"),
            .features = config.at("f"),
            .slope = config.at("slope")};
  }
};

// One of the two models with what trains it.
template <typename Model>
struct Player {
  template <typename Options>
  explicit Player(const Options& options) : model(options) {}

  void start(const Group& world, parallel::Sharding sharding, const json& hyper) {
    data_parallel.emplace(
        model, ProcessMesh(world),
        parallel::DataParallelOptions{.bucket_bytes = 8000, .first_bucket_bytes = 2000, .sharding = sharding});
    optimizer = tests::make_optimizer<Float32>(hyper, model.store());
  }

  double update(parallel::Reduction& reduction, const Loss<float>& loss) {
    loss.backward();
    reduction.add(loss);
    const StepSummary summary = reduction.finish();
    optimizer->step(summary);
    return summary.loss();
  }

  Model model;
  std::optional<parallel::DataParallel> data_parallel;
  std::unique_ptr<optim::Optimizer<Float32>> optimizer;
};

template <typename Model>
void compare(const tests::Fixture& fixture, const std::string& prefix, const Model& model, tests::RunReport& report) {
  const tests::Tolerance tolerance{.atol = fixture.index.at("tolerance").at("final_param_abs"), .rtol = 0};
  tests::compare_tensors(fixture, prefix, tolerance, model.store(), tests::values_in(model.store()), report);
  tests::compare_buffers(fixture, prefix, tolerance, model.store(), report);
}

template <typename Kind>
int train(const tests::Fixture& fixture, const Group& world, parallel::Sharding sharding) {
  const std::string steps_text = sharding == parallel::Sharding::on ? "sharded steps" : "replicated steps";
  tests::RunReport report(world, fmt::format("{}, {} ranks, {}", fixture.id(), world.size(), steps_text));
  const std::string folder = fixture.id().substr(0, fixture.id().find('/'));
  const Batches batches(tests::fixture(folder + "/batches").tensors());
  const auto options = Kind::options(fixture.index.at("config"), batches);
  Player<typename Kind::Generator> generator(options);
  Player<typename Kind::Discriminator> discriminator(options);
  models::load_weights<float>(
      {{.prefix = "G.", .store = generator.model.store()}, {.prefix = "D.", .store = discriminator.model.store()}},
      tests::fixture(folder + "/init").file.string());
  generator.start(world, sharding, fixture.index.at("hyper"));
  discriminator.start(world, sharding, fixture.index.at("hyper"));

  const std::int64_t share = batches.batch() / world.size();
  const std::int64_t first = world.rank() * share;
  const json& values = fixture.index.at("values");
  const double bound = fixture.index.at("tolerance").at("loss_abs");
  double largest = 0;
  for (std::int64_t step = 0; step < std::ssize(values.at("loss_g")); ++step) {
    const auto check = [&](const char* name, double loss) {
      const double difference = std::abs(loss - values.at(name)[static_cast<std::size_t>(step)].get<double>());
      report.expect(difference <= bound, fmt::format("step {}: {} {} is off by {}", step, name, loss, difference));
      largest = std::max(largest, difference);
    };
    auto of_generator = generator.data_parallel->begin_step();
    Tape tape;
    of_generator.listen(tape);
    const Variable<float> fake = generator.model.images(batches.latent(step, first, share));
    {
      auto of_discriminator = discriminator.data_parallel->begin_step();
      Tape inner;
      of_discriminator.listen(inner);
      const Variable<float> real(batches.images(step, first, share));
      check("loss_d", discriminator.update(of_discriminator, models::discriminator_loss(discriminator.model, real, fake)));
    }
    check("loss_g", generator.update(of_generator, models::generator_loss(discriminator.model, fake)));
  }
  compare(fixture, "final.G.", generator.model, report);
  compare(fixture, "final.D.", discriminator.model, report);
  if (world.rank() == 0) {
    std::printf("%s: %d ranks, %s: losses within %.2e\n", fixture.id().c_str(), world.size(), steps_text.c_str(), largest);
  }
  return report.failures();
}

template <typename Kind>
int run_model(const Group& world, const std::string& model) {
  return tests::run_fixtures(world, model, [&](const tests::Fixture& fixture) {
    int failures = train<Kind>(fixture, world, parallel::Sharding::off);
    if (world.size() > 1) failures += train<Kind>(fixture, world, parallel::Sharding::on);
    return failures;
  });
}

int run_all(const Group& world) { return run_model<Mlp>(world, "gan_mlp") + run_model<Dc>(world, "gan_dc"); }

}  // namespace

int main(int argc, char** argv) { return tests::run_on_ranks(argc, argv, run_all); }
