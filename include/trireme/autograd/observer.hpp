#pragma once

// Observers of the operations that pass the gate (autograd/record.hpp): for traces, tests and export.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/shape.hpp"
#include "trireme/device/memory.hpp"

namespace trireme TRIREME_EXPORT {

// The settings of an operation by their names, such as leaky_relu's "slope".
using Attributes = std::map<std::string, std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>>;

// A tensor that goes into an operation or comes out of it. Two Operands with equal storage, offset and shape are the same
// value.
struct Operand {
  std::shared_ptr<const device::Storage> storage;  // null: an optional operand that was not given
  std::int64_t offset = 0;                         // of its first element in the storage, in bytes
  Shape shape;
  DType dtype = DType::float32;
  std::string_view parameter;  // the name of a parameter that gets a gradient
};

// Valid while an observer is called.
struct OperationView {
  std::uint64_t number = 0;  // among the operations of this thread; the same in both passes
  std::string_view name;
  bool repeatable = true;  // the forward pass has no side effects: no running statistics, no collective
  // Empty in the backward pass, for which only some operands, or only their elements, were kept.
  std::span<const Operand> operands;
  std::span<const Operand> results;  // uninitialised before the forward pass

  Attributes attributes() const;

  const void* operation = nullptr;  // the argument of describe()
  void (*describe)(const void* operation, Attributes& to) = nullptr;
};

enum class Pass : std::uint8_t { forward, backward };

// An observer is called before and after each operation of its thread, in the forward and in the backward pass. If the backward
// pass of an operation is split (Tape::split_backward), the observer is called for each of the two parts. An exception that the
// observer throws ends the pass. If the operation throws, after() is not called. Operations that an observer calls are not
// observed.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(Pass, const OperationView&) {}
  virtual void after(Pass, const OperationView&) {}
};

// While in scope, shows the operations of this thread to the observer. Several Observations may exist; the observer of the
// oldest Observation is called first. Observations may end in any order, but while an observer is called, only the Observation
// of this observer may end.
//
//   struct Names : Observer { void before(Pass, const OperationView& of) override { fmt::print("{}\n", of.name); } };
//   Names names;
//   const Observation observation(names);
class Observation {
 public:
  explicit Observation(Observer& observer);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  void before(Pass pass, const OperationView& view) const;
  void after(Pass pass, const OperationView& view) const;

 private:
  Observer& observer_;
  mutable const Observation* outer_;  // the Observation that was made before
};

namespace detail {

struct Gate {
  const Observation* observation = nullptr;  // the newest of this thread
  std::uint64_t operations = 0;              // number of operations so far
  bool in_observer = false;                  // operations that an observer calls are not observed

  bool observed() const { return observation != nullptr && !in_observer; }
};
extern constinit thread_local Gate gate;

void call_before(Pass pass, const OperationView& view);
void call_after(Pass pass, const OperationView& view);

}  // namespace detail

}  // namespace trireme
