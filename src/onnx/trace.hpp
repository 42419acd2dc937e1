#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/autograd/observer.hpp"
#include "trireme/onnx/export.hpp"

// What an observer saw of one forward pass.
namespace trireme::onnx::detail {

// Where a tensor comes from.
struct TracedValue {
  enum class Kind : std::uint8_t { input, parameter, buffer, constant, result };
  Kind kind = Kind::result;
  int index = 0;  // of an input, a parameter or a buffer
  Shape shape = {};
  DType dtype = DType::float32;
  std::vector<std::byte> bytes = {};  // of an input or a constant, when it was first used
  std::uint32_t checksum = 0;         // of a result's elements, as the operation has left them
  std::uint32_t version = 0;          // of its block, at the same time
};

// A use of a value. Its shape differs from the value's if a Tensor was reshaped outside of operations.
struct Use {
  int value = -1;  // below 0: an operand that was not given
  Shape shape = {};
};

struct TracedOperation {
  std::string name;
  Attributes attributes;
  std::vector<Use> operands = {};
  std::vector<int> results = {};
  bool is_view = false;    // the first result has the elements of the first operand
  std::string layer = {};  // the parameter that was used last
};

struct TracedInput {
  std::string name;
  int value = 0;
  InputForm form = InputForm::plain;
};
struct TracedOutput {
  std::string name;
  Use use;
};

struct Trace {
  std::vector<TracedValue> values;
  std::vector<TracedOperation> operations;
  std::vector<TracedInput> inputs;
  std::vector<TracedOutput> outputs;
  std::vector<std::pair<std::string, std::int64_t>> dynamic;  // names and numbers of this pass
};

class Tracer final : public Observer {
 public:
  Tracer(Model& model, int pass) : model_(model), pass_(pass) {}

  void before(Pass pass, const OperationView& view) override;
  void after(Pass pass, const OperationView& view) override;

  int pass() const { return pass_; }
  std::int64_t dynamic(std::string_view name, std::int64_t multiple_of);
  void add_input(std::string_view name, const Operand& tensor, InputForm form);
  void add_output(std::string_view name, const Operand& tensor);

  Trace take() { return std::move(trace_); }

 private:
  int add_value(TracedValue value, const Operand& tensor);
  Use use_of(const Operand& tensor);
  int find_known(const Operand& tensor) const;  // -1: none
  bool is_overwritten(int value, const Operand& tensor) const;
  int find_stored(const Operand& tensor);

  struct Known {
    std::shared_ptr<const device::Storage> storage;  // kept, so that no other tensor gets its place
    std::int64_t offset;
    Shape shape;
    int value;
  };

  Model& model_;
  int pass_;
  Trace trace_;
  std::multimap<const void*, Known> known_;
  std::map<std::pair<bool, int>, int> stored_;  // the values of parameters and buffers
  std::string layer_;
};

}  // namespace trireme::onnx::detail
