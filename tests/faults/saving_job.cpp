// A job that trains a small model and saves checkpoints, for the tests that kill it.
//   saving_job DIR STEPS INTERVAL [RANK CALL before|after]
// It goes on from the newest checkpoint in DIR. The rank is killed at that call to the file system. DIR.log gets lines of rank
// 0: "start STEP DIGEST", "step STEP DIGEST" of each state that is saved and of the last, "committed STEP", and "calls
// CALLS..." of all ranks to the file system.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>

#include "faults/killing_file_system.hpp"
#include "state_digest.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;
using tests::KillingFileSystem;

namespace {

constexpr std::int64_t batch = 8;
constexpr std::int64_t features = 12;
constexpr std::int64_t classes = 5;

struct Net : nn::Module<Float32> {
  nn::Linear<Float32> hidden{*this, "hidden", {.in = features, .out = 24}};
  nn::Linear<Float32> output{*this, "output", {.in = 24, .out = classes}};
};

struct Arguments {
  std::filesystem::path directory;
  std::int64_t steps = 0;
  std::int64_t interval = 0;
  int killed_rank = -1;
  tests::KillPoint point = {};
};

class Job {
 public:
  Job(const Arguments& arguments, const Group& world)
      : arguments_(arguments),
        world_(world),
        files_(
            std::make_shared<KillingFileSystem>(world.rank() == arguments.killed_rank ? arguments.point : tests::KillPoint{})),
        net_(initialized()),
        data_parallel_(*net_, ProcessMesh(world)),
        optimizer_(*net_, {.learning_rate = 0.01}) {
    data_parallel_.add_to(state_);
    optimizer_.add_to(state_);
  }

  void run() {
    checkpoint::Checkpoints checkpoints(
        world_, {.directory = arguments_.directory, .keep = 2, .chunk_bytes = 512, .file_system = files_});
    const auto loaded = checkpoints.load_newest(state_);
    std::int64_t done = loaded ? loaded->step : 0;
    log(fmt::format("start {} {}", done, digest_of_all()));
    while (done < arguments_.steps) {
      train(done++);
      tell(checkpoints.poll());
      if (done % arguments_.interval != 0 && done != arguments_.steps) continue;
      log(fmt::format("step {} {}", done, digest_of_all()));
      tell(checkpoints.finish());
      checkpoints.save(done, state_);
    }
    tell(checkpoints.finish());
    log("calls " + joined(fmt::format("{}", files_->calls())));
  }

 private:
  static std::unique_ptr<Net> initialized() {
    auto net = std::make_unique<Net>();
    net->initialize({.seed = 5});
    return net;
  }

  void train(std::int64_t number) {
    const std::int64_t rows = batch / world_.size();
    const std::int64_t first = number * batch + world_.rank() * rows;
    Tensor<float> x({rows, features});
    Tensor<std::int32_t> wanted({rows});
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t sample = first + row;
      for (std::int64_t i = 0; i < features; ++i) {
        x.data()[row * features + i] = static_cast<float>((sample * 31 + i * i * 7) % 17) / 17;
      }
      wanted.data()[row] = static_cast<std::int32_t>(sample * sample % classes);
    }
    parallel::Step step = data_parallel_.begin(number);
    step.backward(first,
                  [&] { return cross_entropy(net_->output.forward(gelu(net_->hidden.forward(Variable<float>(x)))), wanted); });
    step.update(optimizer_);
  }

  std::string joined(const std::string& text) const {
    const auto texts = world_.gather_texts(text);
    return fmt::format("{}", fmt::join(texts, " "));
  }

  // Of the ranks' digests, which differ where a step is sharded.
  std::string digest_of_all() const {
    return fmt::format("{:016x}", hash_name(joined(fmt::format("{}", tests::digest_of(state_)))));
  }

  void tell(std::optional<std::int64_t> committed) const {
    if (committed) log(fmt::format("committed {}", *committed));
  }

  void log(const std::string& line) const {
    if (world_.rank() == 0) std::ofstream(arguments_.directory.string() + ".log", std::ios::app) << line << '\n';
  }

  Arguments arguments_;
  Group world_;
  std::shared_ptr<KillingFileSystem> files_;
  std::unique_ptr<Net> net_;
  parallel::DataParallel data_parallel_;
  optim::AdamW<Float32> optimizer_;
  State state_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 7) return 64;
  Arguments arguments{.directory = argv[1], .steps = std::atoll(argv[2]), .interval = std::atoll(argv[3])};
  if (argc == 7) {
    arguments.killed_rank = std::atoi(argv[4]);
    arguments.point = {.call = std::atoll(argv[5]), .after = argv[6] == std::string_view("after")};
  }
  return launch(BackendKind::mpi, {.threads_per_rank = 1}, [&](const Group& world) {
    Job(arguments, world).run();
    return 0;
  });
}
