#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {

// Elements of a tensor that are contiguous in memory, and their row-major range in the whole tensor.
struct StatePiece {
  void* data = nullptr;
  Range elements;
};

// A named tensor. This rank holds all or some of its elements. Name and shape describe the whole tensor and do not depend on
// the layout.
struct StateTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;                          // of the whole tensor
  std::vector<StatePiece> pieces = {};  // ascending, without overlap; may be empty
  bool optional = false;                // may be missing in the checkpoint, or in the program that loads it

  std::int64_t elements_here() const;
};

// The state of a program for checkpoints: a list of places in memory, which saving reads and loading fills. Names are the same
// on all ranks and do not depend on the layout. The places must outlive the list.
class State {
 public:
  using Value = std::variant<std::int64_t*, double*, std::string*>;
  struct NamedValue {
    std::string name;
    Value place;
  };

  void add(StateTensor tensor);
  // All ranks that add a value with this name must hold the same value.
  void add(std::string name, Value place);

  // Adds a tensor that this rank holds as a whole.
  template <typename T>
  void add(std::string name, const Shape& shape, T* data) {
    add({.name = std::move(name),
         .dtype = dtype_of<T>,
         .shape = shape,
         .pieces = {{.data = data, .elements = {0, shape.numel()}}}});
  }

  // before_use() adds an action that runs before the places are read or filled. after_load() adds an action that runs after
  // loading has filled all places. Actions run in the order in which they were added. If a checkpoint lacks a tensor or value,
  // its place keeps the content that it has after the actions of before_use().
  void before_use(std::function<void()> action) { before_use_.push_back(std::move(action)); }
  void after_load(std::function<void()> action) { after_load_.push_back(std::move(action)); }
  void prepare() const;
  void loaded() const;

  const std::vector<StateTensor>& tensors() const { return tensors_; }
  const std::vector<NamedValue>& values() const { return values_; }

 private:
  void claim(const std::string& name);

  std::unordered_set<std::string> names_;
  std::vector<StateTensor> tensors_;
  std::vector<NamedValue> values_;
  std::vector<std::function<void()>> before_use_;
  std::vector<std::function<void()>> after_load_;
};

}  // namespace trireme
