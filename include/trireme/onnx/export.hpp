#pragma once

// Models as ONNX files (opset 17), for runtimes that do not know Trireme; see docs/onnx.md.
//
//   onnx::export_model(net, "net.onnx", [&](onnx::Example& example) {
//     const auto x = example.input<float>("x", {example.dynamic("batch"), 4});
//     example.output("logits", net.forward(data::Rows{.x = x}));
//   });
//
// export_model() calls the function twice, with different dynamic extents and different input elements. An observer
// (autograd/observer.hpp) sees the operations of both passes. If an extent differs between the passes, the file computes this
// extent from the inputs' extents.

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

// Makes the inputs of one pass and takes its outputs. The file uses the given names.
class Example {
 public:
  explicit Example(detail::Tracer& tracer) : tracer_(&tracer) {}

  // An extent that may be any multiple of `multiple_of` in the file. Returns a small example, 3 to 18 times `multiple_of`. In
  // one pass, calls with the same name return the same number.
  std::int64_t dynamic(std::string_view name, std::int64_t multiple_of = 1);

  // An input of the model. Its elements are zeros in the first pass. In the second pass they are different numbers: floats in
  // [-8, 8], std::int32_t in [0, below). For indices into a table, `below` is at most the number of rows of the table. Integers
  // are int64 in the file, as with other exporters.
  template <typename T>
  requires std::same_as<T, float> || std::same_as<T, std::int32_t> Tensor<T> input(std::string_view name, const Shape& shape,
                                                                                   std::int32_t below = 2) {
    return added<T>(name, shape, detail::InputForm::plain, below);
  }
  // In the file this input is an attention mask, 0 where a token is padding. The returned Tensor is a key_padding_mask, not 0
  // where a token is padding.
  Tensor<std::int32_t> padding_mask(std::string_view name, const Shape& shape) {
    return added<std::int32_t>(name, shape, detail::InputForm::padding_mask, 2);
  }
  // `shape` and the Tensor are [batch, height, width, channels]; in the file the input is [batch, channels, height, width].
  Tensor<float> images(std::string_view name, const Shape& shape) {
    return added<float>(name, shape, detail::InputForm::images, 0);
  }

  // float, bfloat16 and float16 outputs are float32 in the file. Integers and bool are allowed too.
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
  std::map<std::string, std::string> metadata = {};  // the file's metadata_props, such as a tokenizer or the names of classes
  // If the weights have more bytes than this, they are written to a second file. Its name is the name of the first file plus
  // ".data". An ONNX file can't hold 2 GiB.
  std::int64_t external_data_above = 2'000'000'000;
};

struct Exported {
  std::int64_t nodes = 0;
  std::int64_t weights = 0;       // tensors that are parameters or buffers of the model
  std::int64_t weight_bytes = 0;  // in float32
  bool external_data = false;
};

// Exports a model in evaluation mode that lies as a whole on this rank's CPU. If every rank has the whole model, only one rank
// calls export_model(). Weights are float32, also for a model that computes in bfloat16 or float16. A file at `path` is
// replaced when the new file is complete. The old file of weights is removed if the new file needs none. Throws
// Error{invalid_argument}, which names the operation and its layer, in these cases:
//   - The export does not support an operation, even if no output needs this operation.
//   - Operations or their settings depend on sizes.
//   - The program computes with inputs outside of operations on Variables.
//   - A dynamic extent does not come from the inputs.
Exported export_model(Model& model, const Location& path, const std::function<void(Example&)>& pass,
                      const ExportOptions& options = {});

}  // namespace onnx
}  // namespace trireme
