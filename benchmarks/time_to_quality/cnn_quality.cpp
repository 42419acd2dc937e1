// The time to train a small convolutional network to a given accuracy on MNIST's test digits. Seed, order of the
// data and target are fixed; the output is MLPerf's log lines.
//   mpirun -n 2 cnn_quality --data FOLDER    with MNIST's four files

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "time_to_quality/quality.hpp"
#include "trireme/data/images/mnist.hpp"
#include "trireme/data/loaders/image_loader.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

struct Options {
  std::string data;
  double target = 0.985;
  int threads = 1;
  std::int64_t seed = 1;
  std::int64_t batch = 128;  // images of a step, all ranks together
  std::int64_t most_steps = 600;
  std::int64_t evaluate_every = 50;
  double learning_rate = 0.03;
};

data::ImageDataset read(const std::filesystem::path& folder, const std::string& part) {
  const auto file = [&](const std::string& name) {
    const std::filesystem::path plain = folder / name;
    return std::filesystem::exists(plain) ? plain : folder / (name + ".gz");
  };
  return data::read_mnist(file(part + "-images-idx3-ubyte"), file(part + "-labels-idx1-ubyte"));
}

// The share of the test images whose class has the largest logit; the ranks divide the images.
double accuracy(const models::Cnn<Float32>& model, const data::ImageLoader& test, const Group& world) {
  std::array<double, 2> total{};  // found, images
  for (std::int64_t step = 0; step < test.steps_per_epoch(); ++step) {
    const data::ImageBatch batch = test.load(step);
    const auto logits = model.logits(batch.images);
    const std::int64_t classes = logits.value().dim(1);
    for (std::int64_t row = 0; row < batch.valid; ++row) {
      const float* first = logits.value().data() + row * classes;
      total[0] += std::max_element(first, first + classes) - first == batch.labels.data()[row] ? 1 : 0;
    }
    total[1] += static_cast<double>(batch.valid);
  }
  world.all_reduce(std::span(total), ReduceOp::sum, "accuracy").wait_on_host();
  return total[0] / total[1];
}

int run(const Options& options, const Group& world) {
  const Mllog log(world);
  log_submission(log, {.benchmark = "cnn_mnist",
                       .seed = options.seed,
                       .batch_size = options.batch,
                       .optimizer = "sgd",
                       .learning_rate = options.learning_rate,
                       .weight_decay = 5e-4,
                       .target = options.target});
  log.start("init_start", nlohmann::ordered_json::object());
  models::Cnn<Float32> model({}, ModelContext{.seed = static_cast<std::uint64_t>(options.seed)});
  model.initialize();
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::Sgd<Float32> optimizer(model, {.learning_rate = options.learning_rate, .momentum = 0.9, .weight_decay = 5e-4});
  const optim::LearningRate schedule = optim::cosine(options.learning_rate, options.most_steps, 0);
  log.end("init_stop", nlohmann::ordered_json::object());
  log.start("run_start", nlohmann::ordered_json::object());

  std::optional<data::ImageDataset> training;
  std::optional<data::ImageDataset> test;
  world.agree(
      [&] {
        training = read(options.data, "train");
        test = read(options.data, "t10k");
      },
      "read MNIST");
  const data::Normalization normalization = data::normalization_of(*training);
  const auto loader_of = [&](const data::ImageDataset& images, data::ImageOrder order) {
    return data::ImageLoader(images, {.batch = {.batch_size = options.batch,
                                                .seed = static_cast<std::uint64_t>(options.seed),
                                                .index = world.rank(),
                                                .count = world.size()},
                                      .order = order,
                                      .normalization = normalization});
  };
  const data::ImageLoader loader = loader_of(*training, data::ImageOrder::shuffled);
  const data::ImageLoader test_loader = loader_of(*test, data::ImageOrder::sequential);
  log.event("train_samples", training->count());
  log.event("eval_samples", test->count());
  return train_to_quality(log, {.most_steps = options.most_steps,
                                .evaluate_every = options.evaluate_every,
                                .batch_size = options.batch,
                                .train =
                                    [&](std::int64_t number) {
                                      const data::ImageBatch batch = loader.load(number);
                                      parallel::Step step = replicas.begin(number);
                                      step.backward(batch, [&] { return model.loss(batch.images, batch.labels); });
                                      step.update(optimizer, {.learning_rate = schedule(number)});
                                    },
                                .evaluate =
                                    [&] {
                                      model.eval();
                                      const double found = accuracy(model, test_loader, world);
                                      model.train();
                                      return found;
                                    },
                                .reached = [&](double found) { return found >= options.target; }});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Trains a small network on MNIST to a stated accuracy and prints MLPerf's log lines.");
  command.option("--data", options.data, "a folder with MNIST's four files, packed or not");
  command.require("--data");
  command.option("--target", options.target, "share of the test images whose class is found", {.least = 0, .most = 1});
  command.option("--threads", options.threads, "threads of one rank");
  command.option("--learning-rate", options.learning_rate, "the largest of its schedule");
  command.option("--seed", options.seed, "of weights and order");
  command.option("--batch", options.batch, "images of a step, all ranks together");
  command.option("--most-steps", options.most_steps, "the run is aborted after them");
  command.option("--evaluate-every", options.evaluate_every, "steps");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {.threads_per_rank = options.threads},
                [&](const Group& world) { return run(options, world); });
}
