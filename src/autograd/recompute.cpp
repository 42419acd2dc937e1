#include "trireme/autograd/recompute.hpp"

#include <algorithm>
#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/recomputed_run.hpp"
#include "autograd/stream_calls.hpp"
#include "trireme/core/error.hpp"

namespace trireme {

Tape* Tape::innermost_with_run() {
  Tape* tape = current();
  while (tape != nullptr && tape->runs_.empty()) tape = tape->outer_;
  return tape;
}

bool Tape::in_further_run() const {
  return std::ranges::any_of(runs_, [](const Run* run) { return run->repeats; });
}

bool Tape::leaves_out(const Kept& kept) {
  bool leaves_out = false;
  for (Run* run : runs_) {
    const std::int64_t number = run->operations++;
    if (run->repeats) {
      leaves_out = leaves_out || number >= run->needed;
    } else if (kept.results) {
      run->needed = number + 1;
    } else if (kept.operands) {
      run->needed = number;
    }
  }
  return leaves_out;
}

std::any Tape::made_once(const std::function<std::any()>& make) {
  if (in_once_) return make();  // within the value of another call, which is kept as a whole
  const auto repeated = std::ranges::find_if(runs_, [](const Run* run) { return run->repeats; });
  std::any value;
  if (repeated == runs_.end()) {
    in_once_ = true;
    try {
      value = make();
    } catch (...) {
      in_once_ = false;
      throw;
    }
    in_once_ = false;
  } else {
    Run& run = **repeated;
    if (run.next_once == run.once.size()) detail::throw_other_results();
    value = run.once[run.next_once++];
  }
  for (Run* run : runs_) {
    if (!run->repeats) run->once.push_back(value);
  }
  return value;
}

// Computes a function once more, and puts what it records on the tape in its own place.
class Tape::RecomputedNode final : public Node {
 public:
  using Slots = std::vector<std::shared_ptr<GradientSlot>>;

  RecomputedNode(Tape& tape, Run run, Slots results, std::function<Slots()> again, std::function<std::uint32_t()> version)
      : tape_(tape),
        run_(std::move(run)),
        results_(std::move(results)),
        again_(std::move(again)),
        version_(std::move(version)),
        first_version_(version_()),
        operations_(run_.operations) {}

  void backward() override {
    const auto has_gradient = [](const auto& slot) { return slot != nullptr && slot->has_own_gradient(); };
    if (std::ranges::none_of(results_, has_gradient)) return;
    require(version_() == first_version_,
            "recompute: an input of the function was changed in place after the first run: change a clone()");
    const Slots results = repeat();
    if (results.size() != results_.size() || run_.next_use != run_.uses.size() || run_.operations != operations_) {
      detail::throw_other_results();
    }
    for (std::size_t at = 0; at < results.size(); ++at) {
      if (results_[at] == nullptr) continue;
      if (results[at] == nullptr) detail::throw_other_results();
      results[at]->take_over(*results_[at]);
    }
  }

 private:
  Slots repeat() {
    const std::optional<TapeOptions>& options = tape_.options_;
    StreamCalls::OfStreams calls;
    if (options) {
      calls = options->calls.counts_->calls_of(*options);
      options->calls.counts_->set_calls(*options, run_.calls);
    }
    const std::shared_ptr<const LayersAround> layers = tape_.layers_;
    tape_.set_layers(run_.layers);
    run_.repeats = true;
    run_.operations = 0;
    run_.added.clear();
    tape_.runs_.push_back(&run_);
    const auto restore = [&] {
      tape_.runs_.pop_back();
      tape_.set_layers(layers);
      if (options) options->calls.counts_->set_calls(*options, calls);
    };
    try {
      Slots results = again_();
      restore();
      results.insert(results.end(), run_.added.begin(), run_.added.end());
      return results;
    } catch (...) {
      restore();
      throw;
    }
  }

  Tape& tape_;
  Run run_;
  Slots results_;
  std::function<Slots()> again_;
  std::function<std::uint32_t()> version_;
  std::uint32_t first_version_;
  std::int64_t operations_;
};

Tape::FirstRun::FirstRun(Tape& tape) : tape_(tape), run_(std::make_unique<Run>()) {
  run_->layers = tape.layers_;
  if (tape.options_) run_->calls = tape.options_->calls.counts_->calls_of(*tape.options_);
  tape.runs_.push_back(run_.get());
}

Tape::FirstRun::~FirstRun() {
  if (run_ != nullptr) tape_.runs_.pop_back();
}

void Tape::FirstRun::finish(std::vector<std::shared_ptr<GradientSlot>> results,
                            std::function<std::vector<std::shared_ptr<GradientSlot>>()> again,
                            std::function<std::uint32_t()> version) {
  tape_.runs_.pop_back();
  const std::unique_ptr<Run> run = std::move(run_);
  if (!run->recorded) return;
  tape_.leaves_out({.operands = true});  // for a function around this one
  results.insert(results.end(), run->added.begin(), run->added.end());
  tape_.add(std::make_unique<RecomputedNode>(tape_, std::move(*run), std::move(results), std::move(again), std::move(version)));
}

namespace detail {

void throw_other_results() {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "recompute: the function did something else when the backward pass ran it again: it used other "
                          "parameters, other values of them or other operations, or returned other results",
               .hint = "the function must depend only on its inputs, on parameters and on random numbers of the tape; don't "
                       "update parameters between forward and backward"});
}

}  // namespace detail
}  // namespace trireme
