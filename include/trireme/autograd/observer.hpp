#pragma once

// What passes the gate of operations (autograd/record.hpp), for those who look on: traces, tests, export.

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

// The settings of an operation by their names, as leaky_relu's "slope".
using Attributes = std::map<std::string, std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>>;

// A tensor that goes into an operation or comes out of it. Two are the same value where storage, offset and shape are the same.
struct Operand {
  std::shared_ptr<const device::Storage> storage;  // null: an optional operand that was not given
  std::int64_t offset = 0;                         // of its first element in the storage, in bytes
  Shape shape;
  DType dtype = DType::float32;
  std::string_view parameter;  // its name where it is a parameter that gets a gradient
};

// Valid while an observer is called.
struct OperationView {
  std::uint64_t number = 0;  // of the operations of this thread; the same in forward and backward
  std::string_view name;
  bool repeatable = true;  // forward has no effect but its results: no running statistics, no collective
  // Backward has kept some of them, or their elements alone: only forward shows them.
  std::span<const Operand> operands;
  std::span<const Operand> results;  // uninitialised before forward

  Attributes attributes() const;

  const void* operation = nullptr;  // what describe() describes
  void (*describe)(const void* operation, Attributes& to) = nullptr;
};

enum class Pass : std::uint8_t { forward, backward };

// Sees each operation of its thread before and after its work in either pass; backward in two parts where it is split
// (Tape::split_backward). What it throws ends the pass; where an operation throws, after() is left out. Operations that an
// observer calls are not observed.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(Pass, const OperationView&) {}
  virtual void after(Pass, const OperationView&) {}
};

// While it lives, the observer sees the operations of this thread. Several may live, the first to come is called first; they
// end in any order, in a call of an observer its own alone.
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
  mutable const Observation* outer_;  // the one that came before
};

namespace detail {

struct Gate {
  const Observation* observation = nullptr;  // the last to come, of this thread
  std::uint64_t operations = 0;              // that have passed
  bool in_observer = false;                  // what an observer does is not observed

  bool observed() const { return observation != nullptr && !in_observer; }
};
extern constinit thread_local Gate gate;

void call_before(Pass pass, const OperationView& view);
void call_after(Pass pass, const OperationView& view);

}  // namespace detail

}  // namespace trireme
