// A training step of a small MLP, in which overhead takes longer than the products: through trainer::Run, in a loop by hand,
// and as the bare calls of the operations on existing tensors. All in turn, in the same process.
//   OMP_NUM_THREADS=1 mlp_step [--batch N] [--hidden N] [--json FILE]

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <trireme/trireme.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/optimizer.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t batch = 8;  // of one rank
  std::int64_t in = 32;
  std::int64_t hidden = 64;
  std::int64_t out = 10;
  int steps = 9;  // rounds
  int threads = 1;
  bool no_floor = false;
  std::string precision = "fp32";
  std::string json;
};

constexpr std::int64_t steps_of_round = 500;
constexpr int operations_of_step = 8;   // two products, an activation and a loss, each forward and backward
constexpr double learning_rate = 1e-6;  // so that the loss, and with it the gradients, does not vanish

class Perceptron : public nn::Module<Float32> {
 public:
  Perceptron(const ModelContext& context, const Options& options)
      : Module(context),
        hidden_(*this, "hidden", {.in = options.in, .out = options.hidden}),
        output_(*this, "output", {.in = options.hidden, .out = options.out}) {}
  Value forward(const Value& x) const { return output_.forward(relu(hidden_.forward(x))); }

 private:
  Linear hidden_;
  Linear output_;
};

struct Batch {
  std::int64_t first_sample = 0;
  Tensor<float> x;
  Tensor<std::int32_t> target;
  std::int64_t size() const { return x.dim(0); }
};

Batch made_up_batch(const Options& options) {
  Batch batch{.x = Tensor<float>({options.batch, options.in}), .target = Tensor<std::int32_t>({options.batch})};
  for (std::int64_t i = 0; i < batch.x.numel(); ++i) batch.x.data()[i] = static_cast<float>(i * 37 % 101) / 50.0F - 1;
  for (std::int64_t i = 0; i < batch.target.numel(); ++i) batch.target.data()[i] = static_cast<std::int32_t>(i % options.out);
  return batch;
}

// The same batch in every step.
class OneBatchLoader {
 public:
  OneBatchLoader(Batch batch, std::int64_t ranks) : batch_(std::move(batch)), ranks_(ranks) {}
  std::int64_t num_micro_batches() const { return 1; }
  std::int64_t batch_size() const { return ranks_ * batch_.size(); }
  std::int64_t samples_per_epoch() const { return batch_size(); }
  Batch load(std::int64_t, std::int64_t = 0) const { return batch_; }

 private:
  Batch batch_;
  std::int64_t ranks_;
};

// The model, its optimizer and the steps that a program writes itself.
class ByHand {
 public:
  ByHand(const Group& world, const Options& options)
      : mesh_(world),
        model_(parallel::model_context(mesh_), options),
        replicas_((model_.initialize(), model_), mesh_),
        optimizer_(model_),
        batch_(made_up_batch(options)) {}

  void run() {
    for (std::int64_t index = 0; index < steps_of_round; ++index) {
      parallel::Step step = replicas_.begin(number_++);
      step.backward(batch_, [&] { return cross_entropy(model_.forward(batch_.x), batch_.target); });
      step.update(optimizer_, {.learning_rate = learning_rate});
      step.finish();
    }
  }

  // Forward and backward alone.
  void run_on_tape() {
    for (std::int64_t index = 0; index < steps_of_round; ++index) {
      const Tape tape;
      cross_entropy(model_.forward(batch_.x), batch_.target).backward();
      model_.store().clear_gradients();
    }
  }

 private:
  ProcessMesh mesh_;
  Perceptron model_;
  parallel::DataParallel replicas_;
  optim::AdamW<Float32> optimizer_;
  Batch batch_;
  std::int64_t number_ = 0;
};

// The same arithmetic without a tape, a store or a group.
class BareCalls {
 public:
  explicit BareCalls(const Options& options) : batch_(made_up_batch(options)) {
    const std::int64_t count = (options.in + 1) * options.hidden + (options.hidden + 1) * options.out;
    weights_ = Tensor<float>::full({count}, 0.01F);
    gradients_ = Tensor<float>({count});
    first_ = Tensor<float>::zeros({count});
    second_ = Tensor<float>::zeros({count});
    std::int64_t begin = 0;
    const auto place = [&](const Shape& shape, Tensor<float>& weight, Tensor<float>& gradient) {
      weight = weights_.narrow(begin, shape.numel()).reshape(shape);
      gradient = gradients_.narrow(begin, shape.numel()).reshape(shape);
      begin += shape.numel();
    };
    place({options.hidden, options.in}, hidden_weight_, hidden_weight_gradient_);
    place({options.hidden}, hidden_bias_, hidden_bias_gradient_);
    place({options.out, options.hidden}, output_weight_, output_weight_gradient_);
    place({options.out}, output_bias_, output_bias_gradient_);
    for (Tensor<float>* tensor : {&hidden_, &activated_, &hidden_gradient_, &activated_gradient_}) {
      *tensor = Tensor<float>({options.batch, options.hidden});
    }
    logits_ = Tensor<float>({options.batch, options.out});
    logits_gradient_ = Tensor<float>({options.batch, options.out});
    exponentials_ = Tensor<float>({2, options.batch});
  }

  void run(bool updates) {
    const float scale = 1.0F / static_cast<float>(batch_.size());
    for (std::int64_t index = 0; index < steps_of_round; ++index) {
      ops::linear(batch_.x, hidden_weight_, hidden_bias_, hidden_);
      ops::activation(ops::Activation::relu, hidden_, activated_);
      ops::linear(activated_, output_weight_, output_bias_, logits_);
      ops::cross_entropy(logits_, batch_.target, exponentials_);
      ops::cross_entropy_backward(logits_, batch_.target, exponentials_, {scale}, logits_gradient_);
      ops::matmul(logits_gradient_, activated_, output_weight_gradient_, {.transpose_a = true});
      ops::sum_rows(logits_gradient_, output_bias_gradient_, false);
      ops::matmul(logits_gradient_, output_weight_, activated_gradient_);
      ops::activation_backward(ops::Activation::relu, hidden_, activated_gradient_, hidden_gradient_, false);
      ops::matmul(hidden_gradient_, batch_.x, hidden_weight_gradient_, {.transpose_a = true});
      ops::sum_rows(hidden_gradient_, hidden_bias_gradient_, false);
      if (!updates) continue;
      const ops::AdamStep step{.learning_rate = learning_rate, .weight_decay = 0.01, .decoupled = true, .update = ++number_};
      ops::update_elements<ops::AdamUpdate<float>>(
          step, weights_.span().size(), {gradients_.data(), weights_.data(), first_.data(), second_.data(), nullptr});
    }
  }

 private:
  Batch batch_;
  Tensor<float> weights_, gradients_, first_, second_;
  Tensor<float> hidden_weight_, hidden_bias_, output_weight_, output_bias_;
  Tensor<float> hidden_weight_gradient_, hidden_bias_gradient_, output_weight_gradient_, output_bias_gradient_;
  Tensor<float> hidden_, activated_, logits_, exponentials_;
  Tensor<float> hidden_gradient_, activated_gradient_, logits_gradient_;
  int number_ = 0;
};

// Microseconds of one step, by round.
struct Times {
  std::vector<double> run;
  std::vector<double> by_hand;
  std::vector<double> bare;
  std::vector<double> on_tape;  // without an update
  std::vector<double> bare_without_update;
};

// Before each round of its own, the run's body runs a round of the other two.
Times measure(const Group& world, const Options& options) {
  constexpr double to_step = 1e6 / static_cast<double>(steps_of_round);
  Times times;
  ByHand by_hand(world, options);
  BareCalls bare(options);
  const OneBatchLoader batches(made_up_batch(options), world.size());
  trainer::Options of_run;
  of_run.until = Steps{(options.steps + 1) * steps_of_round};
  of_run.batch_size = batches.batch_size();
  of_run.clip_norm = 0;
  trainer::Run run(world, of_run);
  Perceptron net(run.context(), options);
  optim::AdamW<Float32> optimizer(net, {.learning_rate = learning_rate});
  run.add(net, optimizer);
  std::optional<Stopwatch> stopwatch;  // of this round
  const auto end_round = [&] { times.run.push_back(stopwatch->seconds() * to_step); };
  for (auto& step : run.steps(batches)) {
    if (step.number() % steps_of_round == 0) {
      if (stopwatch) end_round();
      times.by_hand.push_back(slowest_seconds(world, [&] { by_hand.run(); }) * to_step);
      times.bare.push_back(slowest_seconds(world, [&] { bare.run(true); }) * to_step);
      times.on_tape.push_back(slowest_seconds(world, [&] { by_hand.run_on_tape(); }) * to_step);
      times.bare_without_update.push_back(slowest_seconds(world, [&] { bare.run(false); }) * to_step);
      stopwatch.emplace();
    }
    for (const Batch& batch : step.batches()) {
      step.backward(batch, [&] { return cross_entropy(net.forward(batch.x), batch.target); });
    }
    step.update(optimizer);
  }
  end_round();
  for (auto* of_side : {&times.run, &times.by_hand, &times.bare, &times.on_tape, &times.bare_without_update}) {
    of_side->erase(of_side->begin());  // warm-up
  }
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("A training step of a small perceptron through trainer::Run, by hand and as bare calls of operations");
  command.option("--batch", options.batch, "samples of one rank");
  command.option("--in", options.in, "features");
  command.option("--hidden", options.hidden, "features of the layer between");
  command.option("--out", options.out, "classes");
  command.option("--steps", options.steps, fmt::format("rounds of {} steps of each side, in turn", steps_of_round));
  command.option("--threads", options.threads, "of one rank");
  command.option("--precision", options.precision, "of all tensors", {"fp32"});
  command.flag("--no-floor", options.no_floor, "print the step of trainer::Run alone");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  set_log_level(Severity::warning);
  return launch(BackendKind::mpi, {}, [&](const Group& world) {
    const Times times = measure(world, options);
    const double run = median(times.run);
    const double by_hand = median(times.by_hand);
    const double bare = median(times.bare);
    const double peak_rss = peak_rss_bytes(world);
    if (world.rank() != 0) return 0;
    fmt::print("trainer::Run   {:8.2f} us a step\n", run);
    if (!options.no_floor) {
      fmt::print("by hand        {:8.2f} us   trainer::Run / by hand {:.3f}\n", by_hand, run / by_hand);
      fmt::print("bare calls     {:8.2f} us   by hand / bare calls {:.2f}\n", bare, by_hand / bare);
      const double on_tape = median(times.on_tape);
      const double without_update = median(times.bare_without_update);
      fmt::print("without update {:8.2f} us on a tape, {:.2f} us as bare calls: {:.2f} us for each of {} operations\n", on_tape,
                 without_update, (on_tape - without_update) / operations_of_step, operations_of_step);
    }
    write_json(options.json, {{"step_seconds", run * 1e-6},
                              {"by_hand_seconds", by_hand * 1e-6},
                              {"bare_seconds", bare * 1e-6},
                              {"samples_per_second", static_cast<double>(world.size() * options.batch) * 1e6 / run},
                              {"peak_rss_bytes", peak_rss},
                              {"ranks", world.size()},
                              {"threads", options.threads},
                              {"batch", options.batch},
                              {"precision", options.precision}});
    return 0;
  });
}
