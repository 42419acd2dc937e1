#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "onnx/graph.hpp"
#include "onnx/trace.hpp"

// Builds a graph from two traces of one model.
namespace trireme::onnx::detail {

// An extent in both passes; if they differ, it is dynamic.
struct Dim {
  std::int64_t first = 0;
  std::int64_t second = 0;

  Dim() = default;
  Dim(std::int64_t constant) : first(constant), second(constant) {}  // NOLINT(google-explicit-constructor)
  Dim(std::int64_t in_first, std::int64_t in_second) : first(in_first), second(in_second) {}
  bool is_constant() const { return first == second; }
  bool operator==(const Dim&) const = default;
};
using Dims = std::vector<Dim>;

using Numbers = std::vector<std::int64_t>;

class Builder;

// Adds the nodes of an operation by its name.
using Emit = void (*)(Builder&);
using Emitters = std::map<std::string_view, Emit>;

class Builder {
 public:
  Builder(Model& model, const Trace& first, const Trace& second);

  Graph build();

  // Of the current operation.
  std::size_t num_operands() const { return operation().operands.size(); }
  bool has(std::size_t operand) const;
  std::string operand(std::size_t number);  // its name in the graph
  Dims dims(std::size_t operand) const;
  Dims result_dims(std::size_t result = 0) const;
  // Its settings; an error if they differ between the passes.
  bool has_setting(std::string_view name) const;
  std::int64_t whole(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;
  Numbers numbers(std::string_view name) const;
  Dim dynamic_whole(std::string_view name) const;  // may differ between the passes, like the next
  Dims dynamic_numbers(std::string_view name) const;
  std::int64_t fixed(const Dim& dim) const;  // an error if it is dynamic
  bool is_made_by_program(std::size_t operand) const;
  void set_result(const std::string& name, std::size_t result = 0);
  // The indices [tokens, choices] of the newest topk or sort that this operand is computed from; "": none has these dims.
  std::string choices_of(std::size_t operand, const Dims& dims);
  [[noreturn]] void refuse(std::string_view why) const;  // names the operation and its layer, or the output

  // Adds a node and returns the name of its result, or the names of several.
  std::string node(std::string_view op, const std::vector<std::string>& inputs, std::vector<Attribute> attributes = {});
  std::vector<std::string> nodes(std::string_view op, const std::vector<std::string>& inputs, std::size_t outputs,
                                 std::vector<Attribute> attributes = {});
  std::string transpose(const std::string& x, const Numbers& order);
  std::string reshape(const std::string& x, const Dims& from, const Dims& to);
  std::string cast(const std::string& x, Type to);

  // Constants; equal ones are added once.
  std::string number(double value);                                    // a float of no dims
  std::string floats(std::span<const float> values);                   // [n]
  std::string numbers_of(const Numbers& values, bool scalar = false);  // int64 [n], or of no dims

  std::string extents(const Dims& dims);                            // int64 [n], computed where they are dynamic
  std::string extent(const Dim& dim);                               // int64 of no dims
  std::string positions(const Dim& count, std::int64_t first = 0);  // int64: first, first + 1, ...

  // Returns make(), or its earlier result for the same key.
  template <typename Make>
  std::string once(const std::string& key, const Make& make) {
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    std::string name = make();
    made_.emplace(key, name);
    return name;
  }

 private:
  const TracedOperation& operation() const { return first_.operations[at_]; }
  const TracedOperation& operation_of_second() const { return second_.operations[at_]; }
  void require_same_passes() const;
  template <typename T>
  const T& same_setting(std::string_view name) const;
  [[noreturn]] void refuse_setting(std::string_view name) const;
  void require_no_expert_rows(const Emitters& pointwise);
  void remove_unused();
  void require_used(const std::string& input) const;
  void add_input(std::size_t number);
  void add_output(std::size_t number);
  std::variant<std::int64_t, std::string> extent_of_port(const std::string& port, std::size_t place, const Dim& dim) const;
  std::string name_of_value(int value);
  std::string stored(const TracedValue& value);
  std::string constant(int value);
  std::string use(const Use& first, const Use& second);
  std::string extent_of_one(const Dim& dim);      // int64 [1]; dim must be dynamic
  std::string extent_of_operand(const Dim& dim);  // "": no operand of the current operation has it
  std::string add_constant(Type type, const std::vector<std::int64_t>& dims, std::vector<std::byte> bytes);
  std::string fresh(std::string_view stem);

  Model& model_;
  const Trace& first_;
  const Trace& second_;
  std::size_t at_ = 0;  // index of the current operation
  Graph graph_;
  std::map<int, std::string> names_;          // of values
  std::map<std::string, std::string> made_;   // what once() made
  std::map<std::string, std::string> inner_;  // the operand of a Transpose, by its result
  std::map<std::string, Numbers> orders_;     // its perm, by its result
  std::set<int> expert_rows_;        // values that are [experts, tokens, features] in the graph and rows of each expert here
  std::map<std::string, int> used_;  // names, and how often
};

// The extents in both passes as a part of a key: "7|2," for one dim.
std::string key_of(const Dims& dims);

// The name of an operator as a template argument.
template <std::size_t size>
struct OperatorName {
  char text[size];
  constexpr OperatorName(const char (&from)[size]) { std::copy_n(from, size, text); }  // NOLINT(google-explicit-constructor)
};

void add_pointwise(Emitters& to);
void add_products(Emitters& to);
void add_norms(Emitters& to);
void add_attention(Emitters& to);
void add_arrays(Emitters& to);
void add_images(Emitters& to);
void add_experts(Emitters& to);
void add_recurrent(Emitters& to);

}  // namespace trireme::onnx::detail
