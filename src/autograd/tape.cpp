#include "trireme/autograd/tape.hpp"

#include <algorithm>
#include <atomic>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace {

thread_local Tape* current_tape = nullptr;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> serial{0};
  return ++serial;
}

}  // namespace

GradientSlot::GradientSlot(Tape& tape) : tape_serial_(tape.serial()) {}

bool GradientSlot::on(const Tape& tape) const { return tape.serial() == tape_serial_; }

Tape& GradientSlot::tape() const {
  Tape* tape = Tape::current();
  require(tape != nullptr && on(*tape), "backward() on a value whose tape has ended or is not the innermost one");
  return *tape;
}

Tape::Tape(const TapeOptions& options) : options_(options), serial_(next_serial()), outer_(current_tape) {
  current_tape = this;
}

Tape::~Tape() { current_tape = outer_; }

Tape* Tape::current() { return current_tape; }

Tape::Uses& Tape::uses_of(FlatStore& store) {
  for (Uses& uses : uses_) {
    if (uses.store == &store) return uses;
  }
  uses_.push_back({&store, nullptr, std::vector<int>(static_cast<std::size_t>(store.num_parameters()), 0)});
  return uses_.back();
}

void Tape::listen(FlatStore& store, GradientListener& listener) {
  Uses& uses = uses_of(store);
  require(uses.listener == nullptr, "two listeners on one store in one tape");
  uses.listener = &listener;
}

void Tape::add(std::unique_ptr<Node> node) {
  require(!ran_, "an operation was recorded after backward(): open another tape for the next forward pass");
  nodes_.push_back(std::move(node));
}

void Tape::use(FlatStore& store, int parameter) { ++uses_of(store).missing[static_cast<std::size_t>(parameter)]; }

void Tape::contributed(FlatStore& store, int parameter) {
  Uses& uses = uses_of(store);
  int& missing = uses.missing[static_cast<std::size_t>(parameter)];
  require(missing > 0, "parameter {} got a gradient after its last use was counted: list it among the inputs of each operation",
          store.parameter(parameter).name);
  if (--missing == 0 && uses.listener != nullptr) uses.listener->on_final(parameter);
}

void Tape::run_backward() {
  require(!ran_, "backward() ran already on this tape");
  ran_ = true;
  const auto announce = [this](auto&& is_due) {
    for (Uses& uses : uses_) {
      if (uses.listener == nullptr) continue;
      for (const int parameter : uses.store->layout()) {
        if (uses.store->parameter(parameter).trainable && is_due(uses.missing[static_cast<std::size_t>(parameter)])) {
          uses.listener->on_final(parameter);
        }
      }
    }
  };
  announce([](int missing) { return missing == 0; });
  while (!nodes_.empty()) {
    const std::unique_ptr<Node> node = std::move(nodes_.back());
    nodes_.pop_back();
    node->backward();
  }
  announce([](int missing) { return missing > 0; });  // used, but not on a path to the loss
}

namespace detail {

Tape* tape_for(std::string_view operation, std::initializer_list<GradientSlot*> inputs) {
  Tape* tape = Tape::current();
  const bool needed = std::any_of(inputs.begin(), inputs.end(), [](const GradientSlot* input) { return input != nullptr; });
  if (tape == nullptr || !needed) return nullptr;
  for (GradientSlot* input : inputs) {
    if (input == nullptr) continue;
    require(input->on(*tape), "{}: an input was recorded on another tape, which has ended or is not the innermost one",
            operation);
    input->count_use();
  }
  return tape;
}

}  // namespace detail
}  // namespace trireme
