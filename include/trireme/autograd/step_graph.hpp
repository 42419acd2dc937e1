#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/tape.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"

namespace trireme {

struct StepGraphOptions {
  int eager_steps = 2;  // before one is recorded: they make plans and workspaces
  bool enabled = true;  // false: every step is eager

  // How the host waits until done() for the end of a step; with several ranks as Group::wait_until does, so that it does not
  // wait for ever where another rank fails. Empty: it waits for the GPU alone.
  std::function<void(const std::function<bool()>& done)> wait = {};
};

// A training step of one model that is recorded as one CUDA graph and launched from then on, so that the GPU does not wait for
// the host. Elements: the types of a step's inputs.
//
//   StepGraph<Cuda, std::int32_t, std::int32_t> graph(
//       model.store(), [&](const TapeOptions& at, const auto& tokens, const auto& targets) {
//         Tape tape(at);
//         const auto loss = model.loss(tokens, targets);
//         loss.backward();
//         const StepSummary summary = optim::summarize(model.store(), loss);
//         optimizer.step(summary, {.clip_norm = 1});
//         return summary;
//       });
//   for (...) {
//     optimizer.set_learning_rate(schedule(step));  // outside: inside it would be that of the recorded step for ever
//     graph.run({.seed = 1, .step = step, .first_sample = step * batch}, tokens, targets);
//     if (const auto newest = graph.newest_result()) print(newest->step, newest->loss);
//   }
//
// With several ranks the summary is that of Reduction::finish_on_device(), all ranks have inputs of the same shapes at each
// step, and the graph ends before the last copy of the group whose collectives it holds.
//
// Every step does the same: what depends on data, as a model with branches, or waits for the GPU, as item() and mean(), can't
// be recorded. Then, with one message, all steps are eager, and so are those whose inputs have other shapes than the recorded
// one's. The seed must stay that of the recorded step. On the CPU every step is eager.
template <typename D, typename... Elements>
class StepGraph {
 public:
  using Step = std::function<StepSummary(const TapeOptions& at, const Tensor<Elements, D>&... inputs)>;

  // What the summary that the function returned says.
  struct Result {
    std::uint64_t step = 0;
    double loss = 0;
    double gradient_norm = 0;
  };

  StepGraph(FlatStore& store, Step step, StepGraphOptions options = {})
      : store_(store), step_(std::move(step)), options_(std::move(options)) {
    require(options_.eager_steps > 0, "a step is recorded after 1 or more eager ones, not {}", options_.eager_steps);
  }

  // The host does not wait, unless the GPU is two steps behind. The inputs may change as soon as it returns.
  void run(const TapeOptions& at, const Tensor<Elements>&... inputs) {
    const KeptBuffers buffers(store_.buffers());
    if constexpr (on_host) {
      newest_ = result_of(at.step, step_(at, inputs...).numbers());
    } else {
      run_on_gpu(at, {inputs...});
    }
  }

  // Of the newest step that is done: often the one before the last. Nothing before the first is.
  std::optional<Result> newest_result() {
    if constexpr (!on_host) {
      for (std::optional<Slot>& slot : slots_) {
        if (slot && slot->under_way && slot->done.is_done()) take(*slot);
      }
    }
    return newest_;
  }
  Result last_result() {  // of the last step; the host waits
    if constexpr (!on_host) {
      for (std::optional<Slot>& slot : slots_) {
        if (slot) finish(*slot);
      }
    }
    require(newest_.has_value(), "last_result() before the first step");
    return *newest_;
  }

  bool is_recorded() const { return graph_.has_value(); }

 private:
  // A step that is skipped gives the buffers the values of before. A launch does that on the GPU, and no optimizer ends it
  // here.
  class KeptBuffers {
   public:
    explicit KeptBuffers(BufferPlane& buffers) : buffers_(buffers) { keep(buffers); }
    ~KeptBuffers() { buffers_.end_step(); }
    KeptBuffers(const KeptBuffers&) = delete;
    KeptBuffers& operator=(const KeptBuffers&) = delete;

    static void keep(BufferPlane& buffers) {
      if (buffers.size() > 0) buffers.keep();
    }

   private:
    BufferPlane& buffers_;
  };

  static constexpr bool on_host = std::is_same_v<D, Cpu>;

  using HostInputs = std::tuple<Tensor<Elements>...>;
  using Inputs = std::tuple<Tensor<Elements, D>...>;

  // What travels between the host and the GPU in a step. There are two, used by turns.
  struct Slot {
    explicit Slot(std::size_t input_bytes)
        : inputs(device::pinned_memory(), input_bytes), numbers(device::pinned_memory(), sizeof(StepNumbers)) {}
    ~Slot() {
      try {
        if (under_way) done.wait();  // the GPU may still write
      } catch (const Error&) {       // of its work, which the next call reports
      }
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    device::Storage inputs;
    device::Storage numbers;
    device::Event done;
    bool under_way = false;
    std::uint64_t step = 0;
    std::uint64_t number = 0;  // of the run
  };

  static Result result_of(std::uint64_t step, const StepNumbers& numbers) {
    return {.step = step,
            .loss = numbers.target_weight == 0 ? 0.0 : numbers.loss_sum / numbers.target_weight,
            .gradient_norm = numbers.gradient_norm};
  }

  void run_on_gpu(const TapeOptions& at, const HostInputs& inputs) {
    if (!inputs_) make_inputs(inputs);
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

  StepSummary run_or_launch(const TapeOptions& at, const HostInputs& inputs, Slot& slot) {
    send(inputs, slot);
    if (!graph_ && options_.enabled && eager_steps_ >= options_.eager_steps) record(at);
    if (graph_) {
      require(at.seed == seed_, "the step was recorded with the seed {}, which {} can't replace", seed_, at.seed);
      graph_->launch();
      return recorded_;
    }
    ++eager_steps_;
    return call(at, *inputs_);
  }

  void record(const TapeOptions& at) {
    try {
      graph_.emplace([&] { recorded_ = call(at.restarted(), *inputs_); });
      seed_ = at.seed;
    } catch (const device::NotCapturable& error) {
      tell(error.what());
      options_.enabled = false;
      store_.clear_gradients();  // of the backward pass that did not run
      KeptBuffers::keep(store_.buffers());
    }
  }

  StepSummary run_others(const TapeOptions& at, const HostInputs& inputs) {
    if (!std::exchange(told_of_shapes_, true)) tell("inputs have other shapes than those of the first step");
    return std::apply([&](const auto&... input) { return step_(at, input.template to<D>()...); }, inputs);
  }

  StepSummary call(const TapeOptions& at, const Inputs& inputs) {
    return std::apply([&](const auto&... input) { return step_(at, input...); }, inputs);
  }

  static void tell(std::string_view reason) {
    fmt::print(stderr, "trireme: a step runs without a CUDA graph, which is slower: {}\n", reason);
  }

  void make_inputs(const HostInputs& inputs) {
    std::apply([this](const auto&... input) { inputs_.emplace(Tensor<Elements, D>(input.shape())...); }, inputs);
    position_ = Tensor<ops::RandomPosition, D>({1});
  }

  // Calls action(input, the same in what the recorded step reads) for each of them.
  template <typename Action>
  void for_each(const HostInputs& inputs, const Action& action) const {
    [&]<std::size_t... place>(std::index_sequence<place...>) {
      (action(std::get<place>(inputs), std::get<place>(*inputs_)), ...);
    }
    (std::index_sequence_for<Elements...>{});
  }
  bool have_shapes_of(const HostInputs& inputs) const {
    bool same = true;
    for_each(inputs, [&](const auto& input, const auto& recorded) { same = same && input.shape() == recorded.shape(); });
    return same;
  }
  std::size_t input_bytes() const {
    return std::apply([](const auto&... input) { return (std::size_t{0} + ... + input.span().size_bytes()); }, *inputs_);
  }

  void send(const HostInputs& inputs, Slot& slot) {
    auto* pinned = static_cast<std::byte*>(slot.inputs.data());
    for_each(inputs, [&](const auto& input, const auto& recorded) {
      const std::size_t bytes = input.span().size_bytes();
      std::memcpy(pinned, input.data(), bytes);
      device::current_stream().copy_from_pinned(recorded.data(), pinned, bytes);
      pinned += bytes;
    });
  }

  void fetch(const StepSummary& summary, Slot& slot) {
    device::Stream& stream = device::current_stream();
    auto* numbers = static_cast<StepNumbers*>(slot.numbers.data());
    *numbers = summary.numbers();
    if (summary.on_device) stream.copy_to_pinned(numbers, summary.on_device.get(), sizeof(StepNumbers));
    stream.record(slot.done);
    slot.under_way = true;
  }

  void finish(Slot& slot) {
    if (!slot.under_way) return;
    if (options_.wait) options_.wait([&] { return slot.done.is_done(); });
    slot.done.wait();
    take(slot);
  }
  void take(Slot& slot) {
    slot.under_way = false;
    if (slot.number < newest_number_) return;
    newest_number_ = slot.number;
    newest_ = result_of(slot.step, *static_cast<const StepNumbers*>(slot.numbers.data()));
  }

  FlatStore& store_;
  Step step_;
  StepGraphOptions options_;
  std::optional<Inputs> inputs_;  // what the recorded step reads
  Tensor<ops::RandomPosition, D> position_;
  std::optional<device::Graph> graph_;
  StepSummary recorded_;
  std::uint64_t seed_ = 0;  // of the recorded step
  std::array<std::optional<Slot>, 2> slots_;
  std::uint64_t runs_ = 0;
  int eager_steps_ = 0;
  bool told_of_shapes_ = false;
  std::optional<Result> newest_;
  std::uint64_t newest_number_ = 0;
};

}  // namespace trireme
