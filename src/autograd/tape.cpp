#include "trireme/autograd/tape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <utility>

#include "autograd/recomputed_run.hpp"
#include "autograd/stream_calls.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/autograd/module_switches.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/core/range.hpp"

namespace trireme {
namespace {

thread_local Tape* current_tape = nullptr;
thread_local detail::OpenContribution* innermost_contribution = nullptr;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

// The number of this thread, from 1. Unlike a thread's id, no later thread gets the same one.
std::uint64_t number_of_thread() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number = ++threads;
  return number;
}

bool lie_within(const LayersAround* layers, const LayersAround* others) {
  while (layers != nullptr && layers != others) layers = layers->outer.get();
  return layers == others;
}

template <typename Finals>
void announce(const Finals& finals) {
  for (const auto& [listener, parameter] : finals) listener->on_final(parameter);
}

}  // namespace

GradientSlot::GradientSlot(Tape& tape) : tape_serial_(tape.serial()) {}

bool GradientSlot::on(const Tape& tape) const { return tape.serial() == tape_serial_; }

Tape& GradientSlot::tape() const {
  Tape* tape = Tape::current();
  require(tape != nullptr && on(*tape), "backward() on a value whose tape has ended, is suspended or not the innermost one");
  return *tape;
}

namespace detail {

OpenContribution::OpenContribution(const GradientSlot& slot) : place_(slot.place()), outer_(innermost_contribution) {
  innermost_contribution = this;
}

OpenContribution::~OpenContribution() { innermost_contribution = outer_; }

OpenContribution* OpenContribution::to(const GradientSlot& slot) {
  OpenContribution* open = innermost_contribution;
  while (open != nullptr && open->place_ != slot.place()) open = open->outer_;
  return open;
}

}  // namespace detail

// Micro-batches that have samples in common would draw the same numbers for different rows.
void StreamCalls::Counts::require_own_samples(OfRank& rank, const Range& samples) {
  const auto after = rank.ends.upper_bound(samples.begin);
  const auto before = rank.ends.lower_bound(samples.begin);
  const auto refuse = [&](std::int64_t begin, std::int64_t end) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("dropout: this micro-batch has samples {} to {}, and another one of its step has {} to {}: "
                                "they would drop the same elements",
                                samples.begin, samples.end - 1, begin, end - 1),
         .hint = "first_sample numbers the samples of all micro-batches; where a batch has several rows for a sample it "
                 "says how many samples it has, by a member `samples`"});
  };
  if (after != rank.ends.end() && after->first < samples.end) refuse(after->first, after->second);
  if (before != rank.ends.begin() && std::prev(before)->second > samples.begin) {
    refuse(std::prev(before)->first, std::prev(before)->second);
  }
  rank.ends[samples.begin] = samples.end;
}

StreamCalls::StreamCalls() : counts_(std::make_shared<Counts>()) {}

TapeOptions TapeOptions::restarted() const {
  TapeOptions again = *this;
  again.calls = {};
  again.calls.layers_ = calls.layers_;
  return again;
}

Tape::Tape() : serial_(next_serial()), outer_(current_tape) {
  if (outer_ != nullptr) layers_ = outer_->layers_;
  current_tape = this;
}

Tape::Tape(const TapeOptions& options) : Tape() {
  options_ = options;
  StreamCalls& calls = options_->calls;
  if (calls.rank_ == 0) calls.rank_ = number_of_thread();
  set_layers(lie_within(layers_.get(), calls.layers_.get()) ? layers_ : calls.layers_);
}

Tape::RandomCall Tape::next_call(std::string_view operation, std::string_view stream) {
  if (!options_) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{}: the tape was opened without TapeOptions, so that every step and every rank would "
                                        "draw the same random numbers",
                                        operation),
                 .hint = "open it as Tape tape({.seed = 1, .step = step, .first_sample = first, .samples = count}), where "
                         "first is the number of "
                         "the micro-batch's first sample among those of all ranks"});
  }
  std::uint64_t number = hash_name(stream);
  int depth = 0;
  for (const LayersAround* at = layers_.get(); at != nullptr; at = at->outer.get()) {
    const LayerOfList& layer = *at->layer;
    const bool of_module =
        std::ranges::any_of(layer.modules, [&](const std::string& module) { return is_within(module, stream); });
    const std::uint64_t share = of_module ? layer.repetition * 0x9e3779b97f4a7c15 : layer.number * 0xd1342543de82ef95;
    number += std::rotl(share, 13 * depth++);
  }
  return {.at = *options_, .stream = number, .call = options_->calls.counts_->next(*options_, number)};
}

std::int64_t Tape::rows_per_sample(std::string_view operation, std::int64_t rows) const {
  if (!options_->samples) {
    if (options_->first_sample == 0 && options_->on_device == nullptr) return 1;  // the rows start at 0, whatever the number is
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{}: random numbers for {} rows need the number of samples, which is not given: a "
                                        "layer may have made several rows of one sample",
                                        operation, rows),
                 .hint =
                     "give the batch a member `samples` or a function size(), or write backward(Range{first, first + samples}, "
                     "loss), or TapeOptions{.samples = ...}"});
  }
  const std::int64_t samples = *options_->samples;
  if (samples > 0 && rows % samples == 0) return rows / samples;
  if (samples == 0 && rows == 0) return 0;
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("{}: {} rows do not belong to {} samples, each with equally many", operation, rows, samples),
       .hint = "dim 0 must hold one sample after the other: move it there, or set DropoutRows::per_sample; a batch that counts "
               "samples in another way needs a member `samples`"});
}

void Tape::enter_layer(const LayerOfList& layer) {
  set_layers(std::make_shared<const LayersAround>(LayersAround{.layer = &layer, .outer = layers_}));
}

void Tape::leave_layer() { set_layers(layers_->outer); }

// Stores the layers in the options too: copies take them to other threads and to a backward pass.
void Tape::set_layers(std::shared_ptr<const LayersAround> layers) {
  layers_ = std::move(layers);
  if (options_) options_->calls.layers_ = layers_;
}

Tape::~Tape() {
  if (!suspended_) leave();
}

void Tape::leave() {
  Tape** place = &current_tape;
  while (*place != nullptr && *place != this) place = &(*place)->outer_;  // tapes may end in any order
  if (*place != nullptr) *place = outer_;
}

Tape* Tape::current() { return current_tape; }

void Tape::suspend() {
  require(current_tape == this, "suspend() of a tape that is not the current one");
  suspended_ = true;
  leave();
}

void Tape::resume() {
  require(suspended_, "resume() of a tape that is not suspended");
  suspended_ = false;
  outer_ = current_tape;
  current_tape = this;
}

Tape::Uses& Tape::uses_of(FlatStore& store) {
  for (Uses& uses : uses_) {
    if (uses.store == &store) return uses;
  }
  uses_.push_back(
      {.store = &store, .listener = nullptr, .missing = std::vector<int>(static_cast<std::size_t>(store.num_parameters()), 0)});
  return uses_.back();
}

void Tape::listen(FlatStore& store, GradientListener& listener) {
  Uses& uses = uses_of(store);
  require(uses.listener == nullptr, "two listeners on one store in one tape");
  uses.listener = &listener;
}

void Tape::add(std::unique_ptr<Node> node) {
  require(!ran_ || in_further_run(), "an operation was recorded after backward(): open another tape for the next forward pass");
  bool is_kept = true;
  for (Run* run : runs_) {
    run->recorded = true;
    is_kept = is_kept && run->repeats;
  }
  if (is_kept) nodes_.push_back(std::move(node));
}

void Tape::use(const std::shared_ptr<Model>& model, int parameter) {
  const Run::Use use{.store = &model->store(), .parameter = parameter, .version = model->store().version(parameter)};
  bool is_counted = false;
  for (Run* run : runs_) {
    if (!run->repeats) {
      run->uses.push_back(use);
      continue;
    }
    is_counted = true;
    if (run->next_use == run->uses.size() || run->uses[run->next_use++] != use) detail::throw_other_results();
  }
  if (is_counted) return;
  Uses& uses = uses_of(model->store());
  if (uses.model == nullptr) uses.model = model;
  ++uses.missing[static_cast<std::size_t>(parameter)];
}

void Tape::contributed(FlatStore& store, int parameter) {
  Uses& uses = uses_of(store);
  int& missing = uses.missing[static_cast<std::size_t>(parameter)];
  require(missing > 0,
          "parameter {} got a gradient after its last use was counted: give it one contribution for each operation of which it "
          "is an operand",
          store.parameter(parameter).name);
  if (--missing == 0 && uses.listener != nullptr) uses.listener->on_final(parameter);
}

// Parameters whose gradients still lack contributions (used), or lack none. Before the backward pass, the latter are those that
// forward did not use.
std::vector<Tape::Final> Tape::finals(bool used) const {
  std::vector<Final> result;
  for (const Uses& uses : uses_) {
    if (uses.listener == nullptr) continue;
    for (const int parameter : uses.store->layout()) {
      const bool lacks = uses.missing[static_cast<std::size_t>(parameter)] > 0;
      if (uses.store->parameter(parameter).trainable && lacks == used) result.push_back({uses.listener, parameter});
    }
  }
  return result;
}

void Tape::split_backward() {
  require(!ran_, "split_backward() comes before backward()");
  splits_ = true;
}

void Tape::add_loss(std::shared_ptr<AddedLoss> loss) {
  require(!ran_ || in_further_run(), "add_loss() after backward(): a loss is added in the forward pass");
  for (Run* run : runs_) run->added.push_back(loss->slot());
  if (!in_further_run()) added_losses_.push_back(std::move(loss));
}

void Tape::run_backward() {
  require(!ran_, "backward() ran already on this tape");
  for (const auto& loss : added_losses_) loss->begin_alone();
  ran_ = true;
  if (splits_) {
    unused_ = finals(false);  // gradients of earlier micro-batches may be deferred, so not yet final
  } else {
    announce(finals(false));
  }
  while (!nodes_.empty()) {
    std::unique_ptr<Node> node = std::move(nodes_.back());
    nodes_.pop_back();
    if (!splits_) {
      node->backward();
    } else if (node->input_gradients()) {
      put_off_.push_back(std::move(node));
    }
  }
  if (!splits_) announce(finals(true));  // used, but not on a path to the loss
}

void Tape::run_weight_gradients() {
  require(splits_ && ran_, "run_weight_gradients() comes after split_backward() and backward()");
  require(current_tape == this, "run_weight_gradients() of a tape that is not the current one");
  splits_ = false;  // once
  announce(unused_);
  for (std::unique_ptr<Node>& node : put_off_) std::exchange(node, nullptr)->weight_gradients();
  put_off_.clear();
  announce(finals(true));
}

namespace detail {

void throw_undefined_operand(std::string_view operation, std::initializer_list<bool> given, int operands) {
  const auto place = std::find(given.begin(), given.end(), false) - given.begin();
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{}: operand {} of {} is undefined", operation, place + 1, operands),
               .hint = "a Variable or Tensor that was only declared holds nothing: give it a value first"});
}

void throw_not_recorded() {
  const bool on_tape = Tape::current() != nullptr;
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = on_tape
                      ? "backward() on a value that was computed only from constants: there is nothing to compute gradients for"
                      : "backward() on a value that was not recorded: open a Tape before the forward pass",
       .hint = on_tape ? "constants are results of detach(), tensors, frozen parameters, and everything computed before the "
                         "Tape was opened"
                       : ""});
}

void throw_changed_in_place(std::string_view operation, const Shape& shape) {
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("{}: a tensor of shape {} that its backward pass needs was changed in place after its forward "
                              "pass",
                              operation, shape),
       .hint = "make a tensor of the result (y = y * 0.5 for y *= 0.5), or change a clone()"});
}

void require_on(std::string_view operation, const Tape& tape, const GradientSlot& slot) {
  require(slot.on(tape), "{}: an operand was recorded on another tape, which has ended, is suspended or not the innermost one",
          operation);
}

}  // namespace detail
}  // namespace trireme
