#pragma once

// Models as ONNX files (opset 17), for runtimes that do not know Trireme: docs/onnx.md.
//
//   onnx::export_model(net, "net.onnx", [&](onnx::Example& example) {
//     const auto x = example.input<float>("x", {example.dynamic("batch"), 4});
//     example.output("logits", net.forward(data::Rows{.x = x}));
//   });
//
// The function is called twice, with other numbers for what is dynamic and other elements of the inputs. An observer
// (autograd/observer.hpp) sees the operations of both passes; where an extent differs between them, the file computes it from
// those of its inputs.

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/observer.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace onnx {

namespace detail {
class Tracer;
enum class InputForm : std::uint8_t { plain, padding_mask, images };
}  // namespace detail

// Makes the inputs of one pass and takes its outputs. Names are those in the file.
class Example {
 public:
  explicit Example(detail::Tracer& tracer) : tracer_(&tracer) {}

  // An extent that may be any number in the file, or any multiple of one: it gives a small one, 3 to 18 times `multiple_of`.
  // The same name gives the same number.
  std::int64_t dynamic(std::string_view name, std::int64_t multiple_of = 1);

  // Zeros in the first pass and several numbers in the second, of [-8, 8], those of std::int32_t from 0 to below - 1: 1 for
  // indices of a table of one row. Whole numbers are int64 in the file, as other exporters have them.
  template <typename T>
  requires std::same_as<T, float> || std::same_as<T, std::int32_t> Tensor<T> input(std::string_view name, const Shape& shape,
                                                                                   std::int32_t below = 2) {
    return added<T>(name, shape, detail::InputForm::plain, below);
  }
  // In the file an attention mask, which is 0 where a token is padding; the Tensor is a key_padding_mask, which is not.
  Tensor<std::int32_t> padding_mask(std::string_view name, const Shape& shape) {
    return added<std::int32_t>(name, shape, detail::InputForm::padding_mask, 2);
  }
  // shape and the Tensor: [batch, height, width, channels]; in the file [batch, channels, height, width].
  Tensor<float> images(std::string_view name, const Shape& shape) {
    return added<float>(name, shape, detail::InputForm::images, 0);
  }

  // Of float, bfloat16 or float16, which are float32 in the file, or of whole numbers and bool.
  template <typename T>
  void output(std::string_view name, const Variable<T>& value) {
    output(name, value.value());
  }
  template <typename T>
  void output(std::string_view name, const Tensor<T>& value) {
    add_output(name, view_of(value));
  }

 private:
  template <typename T>
  Tensor<T> added(std::string_view name, const Shape& shape, detail::InputForm form, std::int32_t below) {
    Tensor<T> x(shape);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data()[i] = std::same_as<T, float> ? static_cast<T>(real_element(i)) : static_cast<T>(whole_element(i, below));
    }
    add_input(name, view_of(x), form);
    return x;
  }
  template <typename T>
  static Operand view_of(const Tensor<T>& x) {
    if (!x.defined()) return {};
    return {.storage = x.storage(), .offset = x.offset_in_bytes(), .shape = x.shape(), .dtype = dtype_of<T>, .parameter = {}};
  }
  float real_element(std::int64_t index) const;  // of an input of this pass
  std::int32_t whole_element(std::int64_t index, std::int32_t below) const;
  void add_input(std::string_view name, const Operand& tensor, detail::InputForm form);
  void add_output(std::string_view name, const Operand& tensor);

  detail::Tracer* tracer_;
};

struct ExportOptions {
  std::map<std::string, std::string> metadata = {};  // the file's metadata_props, as a tokenizer or the names of classes
  // Above so many bytes the weights go to a second file, named as the first with ".data" after it. A file can't hold 2 GiB.
  std::int64_t external_data_above = 2'000'000'000;
};

struct Exported {
  std::int64_t nodes = 0;
  std::int64_t weights = 0;       // tensors that are parameters or buffers of the model
  std::int64_t weight_bytes = 0;  // in float32
  bool external_data = false;
};

// Writes a model, in evaluation, whose layers lie here as a whole and on the CPU. Weights are float32, also of a model that
// computes in bfloat16 or float16; they are copied to the file one after the other. What is at `path` is replaced when the new
// file is complete; a file of weights that belonged to it is removed where the new one needs none. Where every rank has all of
// a model, one of them exports it. Error{invalid_argument} that names the operation and its layer where this export has no form
// for it, needed by an output or not, where sizes change which operations a model takes or their settings, where the program
// computes something of the inputs beside operations on Variables, and where a dynamic extent does not come from inputs.
Exported export_model(Model& model, const Location& path, const std::function<void(Example&)>& pass,
                      const ExportOptions& options = {});

}  // namespace onnx
}  // namespace trireme
