#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/parallel/data_parallel.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

struct StepGraphOptions {
  int eager_steps = 2;  // before a step is recorded, to make plans and workspaces; at least 1
  bool enabled = true;  // false: every step is eager
};

// The functions of a DataParallel that a StepGraph needs. Programs call StepGraph.
class RecordedSteps {
 public:
  explicit RecordedSteps(const DataParallel& replicas) : parts_(&replicas.parts()) {}

  Step begin(std::int64_t number, StepRecording& recording) const;
  void before_recording() const;                             // brings the loss scale to the GPU
  void before_launch(std::int64_t number) const;             // brings the loss scale to the GPU and notes the step's number
  void wait_until(const std::function<bool()>& done) const;  // throws if another rank fails

 private:
  DataParallel::Parts* parts_;
};

// Records a training step of one model and one micro-batch as a CUDA graph. Then the graph is launched for each step, so that
// the GPU does not wait for the host. Elements: the element types of the step's inputs.
//
//   parallel::StepGraph<Cuda, std::int32_t, std::int32_t> graph(
//       replicas, [&](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
//         step.backward(place.first_sample, [&] { return model.loss(tokens, targets); });
//         step.update(optimizer, {.clip_norm = 1});
//       });
//   for (...) {
//     graph.run({.number = number, .first_sample = number * batch, .learning_rate = rate(number)}, tokens, targets);
//     if (const auto newest = graph.newest_result()) print(newest->number, newest->loss);
//   }
//
// The function must call update(), and the optimizer must outlive the graph. With several ranks, all ranks must have inputs of
// the same shapes at each step, and the graph must be destroyed before the last copy of the ranks' group. Call
// DataParallel::exchange() between the steps for requests and comparisons of replicas, which a launch can't do.
//
// If dim 0 is the same in all inputs, dim 0 is the number of samples, on which the random numbers of dropout depend.
//
// Every step must do the same work. A model with branches that depend on data, or a function that waits for the GPU, such as
// item() and mean(), can't be recorded. If the step can't be recorded, all steps are eager, and one warning is logged. Steps
// whose inputs have other shapes than the inputs of the first step are eager too. On the CPU every step is eager. Steps report
// no metrics to monitor::Registry.
template <typename D, typename... Elements>
class StepGraph {
 public:
  struct Place {
    std::int64_t number = 0;
    std::int64_t first_sample = 0;
    std::optional<double> learning_rate = {};  // empty: unchanged
  };
  using Body = std::function<void(Step& step, const Place& place, const Tensor<Elements, D>&... inputs)>;

  // From the step's summary.
  struct Result {
    std::int64_t number = 0;
    double loss = 0;
    double gradient_norm = 0;
  };

  StepGraph(DataParallel& replicas, Body body, StepGraphOptions options = {})
      : steps_(replicas), body_(std::move(body)), options_(options) {
    require(options_.eager_steps > 0, "a step is recorded after 1 or more eager ones, not {}", options_.eager_steps);
  }

  // Runs a step. The host waits only if the GPU is two steps behind. The inputs may be changed after run() returns.
  void run(const Place& place, const Tensor<Elements>&... inputs) {
    recording_.learning_rate = place.learning_rate;
    recording_.samples = rows_of(inputs...);
    if (recording_.optimizer != nullptr && place.learning_rate) recording_.optimizer->set_learning_rate(*place.learning_rate);
    if constexpr (on_host) {
      newest_ = result_of(place.number, call(place, inputs...).numbers());
    } else {
      run_on_gpu(place, {inputs...});
    }
  }

  // The result of the newest finished step, often of the step before the last; nothing before the first step has finished. Does
  // not wait.
  std::optional<Result> newest_result() {
    if constexpr (!on_host) {
      for (std::optional<Slot>& slot : slots_) {
        if (slot && slot->under_way && slot->done.is_done()) take(*slot);
      }
    }
    return newest_;
  }
  Result last_result() {  // of the last step, for which the host waits
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
  static constexpr bool on_host = std::is_same_v<D, Cpu>;

  using HostInputs = std::tuple<Tensor<Elements>...>;
  using Inputs = std::tuple<Tensor<Elements, D>...>;

  // Pinned memory for the data that a step moves between the host and the GPU. Steps use two slots in turn.
  struct Slot {
    explicit Slot(std::size_t input_bytes)
        : inputs(device::pinned_memory(), input_bytes), numbers(device::pinned_memory(), sizeof(StepNumbers)) {}
    ~Slot() {
      try {
        if (under_way) done.wait();  // the GPU may still write
      } catch (const Error&) {       // the next call on the GPU reports it
      }
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    device::Storage inputs;
    device::Storage numbers;
    device::Event done;
    bool under_way = false;
    std::int64_t number = 0;
    std::uint64_t run = 0;  // counts the calls of run() from 1
  };

  // Dim 0 of all inputs; nothing if the inputs differ in dim 0.
  static std::optional<std::int64_t> rows_of(const Tensor<Elements>&... inputs) {
    std::optional<std::int64_t> rows;
    bool differ = false;
    [[maybe_unused]] const auto look = [&](const Shape& shape) {
      if (shape.size() == 0) return;
      differ = differ || (rows && *rows != shape[0]);
      rows = shape[0];
    };
    (look(inputs.shape()), ...);
    return differ ? std::nullopt : rows;
  }

  static Result result_of(std::int64_t number, const StepNumbers& numbers) {
    return {.number = number,
            .loss = numbers.target_weight == 0 ? 0.0 : numbers.loss_sum / numbers.target_weight,
            .gradient_norm = numbers.gradient_norm};
  }

  void run_on_gpu(const Place& place, const HostInputs& inputs) {
    if (!inputs_) make_inputs(inputs);
    std::optional<Slot>& slot = slots_[runs_ % slots_.size()];
    if (!slot) slot.emplace(input_bytes());
    finish(*slot);
    slot->number = place.number;
    slot->run = ++runs_;
    const auto step = static_cast<std::uint64_t>(place.number);
    device::fill(D{}, &position_.data()->step, &step, sizeof(step), 1);
    device::fill(D{}, &position_.data()->first_sample, &place.first_sample, sizeof(place.first_sample), 1);
    recording_.position = position_.data();
    fetch(have_shapes_of(inputs) ? run_or_launch(place, inputs, *slot) : run_others(place, inputs), *slot);
  }

  StepSummary run_or_launch(const Place& place, const HostInputs& inputs, Slot& slot) {
    send(inputs, slot);
    if (!graph_ && options_.enabled && eager_steps_ >= options_.eager_steps) record(place);
    if (graph_) {
      steps_.before_launch(place.number);
      graph_->launch();
      return recorded_;
    }
    ++eager_steps_;
    return call_with(place, *inputs_);
  }

  void record(const Place& place) {
    steps_.before_recording();
    try {
      graph_.emplace([&] {
        recording_.is_captured = true;
        recorded_ = call_with(place, *inputs_);
      });
    } catch (const device::NotCapturable& error) {
      tell(error.what());
      options_.enabled = false;
    }
  }

  StepSummary run_others(const Place& place, const HostInputs& inputs) {
    if (!std::exchange(told_of_shapes_, true)) tell("inputs have other shapes than those of the first step");
    return std::apply([&](const auto&... input) { return call(place, input.template to<D>()...); }, inputs);
  }

  StepSummary call_with(const Place& place, const Inputs& inputs) {
    return std::apply([&](const auto&... input) { return call(place, input...); }, inputs);
  }

  StepSummary call(const Place& place, const Tensor<Elements, D>&... inputs) {
    struct Captured {  // resets the flag of record() when the step ends, also by an exception
      bool& flag;
      ~Captured() { flag = false; }
    } captured{recording_.is_captured};
    Step step = steps_.begin(place.number, recording_);
    body_(step, place, inputs...);
    require(step.is_over(), "the function of a StepGraph ends without update()");
    return step.finish();
  }

  static void tell(std::string_view reason) {
    log(Severity::warning, "a step runs without a CUDA graph, which is slower: {}", reason);
  }

  void make_inputs(const HostInputs& inputs) {
    std::apply([this](const auto&... input) { inputs_.emplace(Tensor<Elements, D>(input.shape())...); }, inputs);
    position_ = Tensor<ops::RandomPosition, D>({1});
  }

  // Calls action(input, recorded input) for each input.
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
    steps_.wait_until([&] { return slot.done.is_done(); });
    slot.done.wait();
    take(slot);
  }
  void take(Slot& slot) {
    slot.under_way = false;
    if (slot.run < newest_run_) return;
    newest_run_ = slot.run;
    newest_ = result_of(slot.number, *static_cast<const StepNumbers*>(slot.numbers.data()));
  }

  RecordedSteps steps_;
  Body body_;
  StepGraphOptions options_;
  StepRecording recording_;
  std::optional<Inputs> inputs_;  // the memory that the recorded step reads
  Tensor<ops::RandomPosition, D> position_;
  std::optional<device::Graph> graph_;
  StepSummary recorded_;
  std::array<std::optional<Slot>, 2> slots_;
  std::uint64_t runs_ = 0;
  int eager_steps_ = 0;
  bool told_of_shapes_ = false;
  std::optional<Result> newest_;
  std::uint64_t newest_run_ = 0;
};

}  // namespace parallel
}  // namespace trireme
