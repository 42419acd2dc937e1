#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"

namespace trireme {

struct StepGraphOptions {
  int eager_steps = 2;  // before one is recorded: they make plans and workspaces
  bool enabled = true;  // false: every step is eager
};

// A training step that is recorded as one CUDA graph and launched from then on, so that the GPU does not wait for the host.
//
//   StepGraph<float, Cuda> graph(model.store(), [&](const TapeOptions& at, const auto& inputs) {
//     Tape tape(at);
//     const auto loss = model.loss(inputs[0], inputs[1]);
//     loss.backward();
//     optimizer.step(optim::summarize(model.store(), loss), {.clip_norm = 1});
//     return loss;
//   });
//   for (...) {
//     optimizer.set_learning_rate(schedule(step));  // outside: inside it would be that of the recorded step for ever
//     graph.run({.seed = 1, .step = step, .first_sample = step * batch}, {tokens, targets});
//     if (const auto loss = graph.newest_loss()) print(loss->step, loss->mean);
//   }
//
// Every step does the same: what depends on data, as a model with branches, or waits for the GPU, as item() and mean(), can't
// be recorded. Then, with one message, all steps are eager, and so are those whose inputs have other shapes than the recorded
// one's. The seed must stay that of the recorded step. On the CPU every step is eager.
template <typename T, typename D = Cpu>
class StepGraph {
 public:
  using Inputs = std::vector<Tensor<std::int32_t, D>>;
  using Step = std::function<Loss<T, D>(const TapeOptions& at, const Inputs& inputs)>;

  struct MeanLoss {
    std::uint64_t step = 0;
    double mean = 0;
  };

  StepGraph(FlatStore& store, Step step, const StepGraphOptions& options = {})
      : store_(store), step_(std::move(step)), options_(options) {
    require(options.eager_steps > 0, "a step is recorded after 1 or more eager ones, not {}", options.eager_steps);
  }

  // The host does not wait, unless the GPU is two steps behind. The inputs may change as soon as it returns.
  void run(const TapeOptions& at, const std::vector<Tensor<std::int32_t>>& inputs) {
    if constexpr (on_host) {
      newest_ = MeanLoss{.step = at.step, .mean = step_(at, inputs).mean()};
    } else {
      run_on_gpu(at, inputs);
    }
  }

  // Of the newest step that is done: often the one before the last. Nothing before the first is.
  std::optional<MeanLoss> newest_loss() {
    if constexpr (!on_host) {
      for (std::optional<Slot>& slot : slots_) {
        if (slot && slot->under_way && slot->done.is_done()) take(*slot);
      }
    }
    return newest_;
  }
  MeanLoss last_loss() {  // of the last step; the host waits
    if constexpr (!on_host) {
      for (std::optional<Slot>& slot : slots_) {
        if (slot) finish(*slot);
      }
    }
    require(newest_.has_value(), "last_loss() before the first step");
    return *newest_;
  }

  bool is_recorded() const { return graph_.has_value(); }

 private:
  static constexpr bool on_host = Tensor<T, D>::on_host;

  struct LossNumbers {
    T sum;
    double kept;
  };

  // What travels between the host and the GPU in a step. There are two, used by turns.
  struct Slot {
    explicit Slot(std::size_t input_bytes)
        : inputs(device::pinned_memory(), input_bytes), loss(device::pinned_memory(), sizeof(LossNumbers)) {}
    ~Slot() {
      try {
        if (under_way) done.wait();  // the GPU may still write
      } catch (const Error&) {       // of its work, which the next call reports
      }
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    device::Storage inputs;
    device::Storage loss;
    device::Event done;
    bool under_way = false;
    std::uint64_t step = 0;
    std::uint64_t number = 0;  // of the run
  };

  void run_on_gpu(const TapeOptions& at, const std::vector<Tensor<std::int32_t>>& inputs) {
    if (inputs_.empty()) make_inputs(inputs);
    std::optional<Slot>& slot = slots_[runs_ % slots_.size()];
    if (!slot) slot.emplace(input_bytes());
    finish(*slot);
    slot->step = at.step;
    slot->number = ++runs_;
    device::fill(D{}, &position_.data()->step, &at.step, sizeof(at.step), 1);
    device::fill(D{}, &position_.data()->first_sample, &at.first_sample, sizeof(at.first_sample), 1);
    TapeOptions on_gpu = at;
    on_gpu.on_device = position_.data();
    fetch(have_shapes_of(inputs) ? run_or_launch(on_gpu, inputs, *slot) : run_others(on_gpu, inputs), *slot);
  }

  Loss<T, D> run_or_launch(const TapeOptions& at, const std::vector<Tensor<std::int32_t>>& inputs, Slot& slot) {
    send(inputs, slot);
    if (!graph_ && options_.enabled && eager_steps_ >= options_.eager_steps) record(at);
    if (graph_) {
      require(at.seed == seed_, "the step was recorded with the seed {}, which {} can't replace", seed_, at.seed);
      graph_->launch();
      return recorded_;
    }
    ++eager_steps_;
    return step_(at, inputs_);
  }

  void record(const TapeOptions& at) {
    try {
      graph_.emplace([&] { recorded_ = step_(at, inputs_); });
      seed_ = at.seed;
    } catch (const device::NotCapturable& error) {
      tell(error.what());
      options_.enabled = false;
      store_.clear_gradients();  // of the backward pass that did not run
    }
  }

  Loss<T, D> run_others(const TapeOptions& at, const std::vector<Tensor<std::int32_t>>& inputs) {
    if (!std::exchange(told_of_shapes_, true)) tell("inputs have other shapes than those of the first step");
    Inputs others;
    for (const auto& input : inputs) others.push_back(input.template to<D>());
    return step_(at, others);
  }

  static void tell(std::string_view reason) {
    fmt::print(stderr, "trireme: a step runs without a CUDA graph, which is slower: {}\n", reason);
  }

  void make_inputs(const std::vector<Tensor<std::int32_t>>& inputs) {
    for (const auto& input : inputs) inputs_.emplace_back(input.shape());
    position_ = Tensor<ops::RandomPosition, D>({1});
  }
  bool have_shapes_of(const std::vector<Tensor<std::int32_t>>& inputs) const {
    return std::equal(inputs.begin(), inputs.end(), inputs_.begin(), inputs_.end(),
                      [](const auto& a, const auto& b) { return a.shape() == b.shape(); });
  }
  std::size_t input_bytes() const {
    std::size_t bytes = 0;
    for (const auto& input : inputs_) bytes += input.span().size_bytes();
    return bytes;
  }

  void send(const std::vector<Tensor<std::int32_t>>& inputs, Slot& slot) {
    auto* pinned = static_cast<std::byte*>(slot.inputs.data());
    for (std::size_t index = 0; index < inputs.size(); ++index) {
      const std::size_t bytes = inputs[index].span().size_bytes();
      std::memcpy(pinned, inputs[index].data(), bytes);
      device::current_stream().copy_from_pinned(inputs_[index].data(), pinned, bytes);
      pinned += bytes;
    }
  }

  void fetch(const Loss<T, D>& loss, Slot& slot) {
    auto* numbers = static_cast<LossNumbers*>(slot.loss.data());
    device::Stream& stream = device::current_stream();
    stream.copy_to_pinned(&numbers->sum, loss.sum.value().data(), sizeof(numbers->sum));
    numbers->kept = loss.kept.known();
    if (loss.kept.element().defined()) {
      stream.copy_to_pinned(&numbers->kept, loss.kept.element().data(), sizeof(numbers->kept));
    }
    stream.record(slot.done);
    slot.under_way = true;
  }

  void finish(Slot& slot) {
    if (!slot.under_way) return;
    slot.done.wait();
    take(slot);
  }
  void take(Slot& slot) {
    slot.under_way = false;
    if (slot.number < newest_number_) return;
    newest_number_ = slot.number;
    const auto* numbers = static_cast<const LossNumbers*>(slot.loss.data());
    newest_ = MeanLoss{.step = slot.step, .mean = numbers->kept == 0 ? 0.0 : static_cast<double>(numbers->sum) / numbers->kept};
  }

  FlatStore& store_;
  Step step_;
  StepGraphOptions options_;
  Inputs inputs_;  // what the recorded step reads
  Tensor<ops::RandomPosition, D> position_;
  std::optional<device::Graph> graph_;
  Loss<T, D> recorded_;
  std::uint64_t seed_ = 0;  // of the recorded step
  std::array<std::optional<Slot>, 2> slots_;
  std::uint64_t runs_ = 0;
  int eager_steps_ = 0;
  bool told_of_shapes_ = false;
  std::optional<MeanLoss> newest_;
  std::uint64_t newest_number_ = 0;
};

}  // namespace trireme
