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

// Elements of a tensor that lie together in memory, and their places in the whole tensor, row-major.
struct StatePiece {
  void* data = nullptr;
  Range elements;
};

// A named tensor whose elements lie here as a whole or in part. The name and the shape of the whole are those of any layout.
struct StateTensor {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;                          // of the whole tensor
  std::vector<StatePiece> pieces = {};  // ascending, without overlap; may be empty
  bool optional = false;  // a checkpoint without it is loaded all the same, and it is passed over where nobody wants it

  std::int64_t elements_here() const;
};

// What a checkpoint keeps of a program: a list of places, read when it is saved and filled when it is loaded. Whoever has state
// adds it under names that are the same on all ranks, whatever the layout. The places must outlive the list.
class State {
 public:
  using Value = std::variant<std::int64_t*, double*, std::string*>;
  struct NamedValue {
    std::string name;
    Value place;
  };

  void add(StateTensor tensor);
  // Of ranks that add one of the same name all hold the same value.
  void add(std::string name, Value place);

  // A tensor that lies here as a whole.
  template <typename T>
  void add(std::string name, const Shape& shape, T* data) {
    add({.name = std::move(name),
         .dtype = dtype_of<T>,
         .shape = shape,
         .pieces = {{.data = data, .elements = {0, shape.numel()}}}});
  }

  // Called before the places are read or filled: what a checkpoint lacks is left as the places say. And when all of them are
  // filled. In the order added.
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
