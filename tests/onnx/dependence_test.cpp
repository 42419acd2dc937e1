#include <string>

#include "catch.hpp"
#include "exported_file.hpp"
#include "model_file.hpp"
#include "trireme/trireme.hpp"

// What a program makes of its inputs' sizes and elements becomes no constant.

using namespace trireme;
using tests::ExportedFile;
using tests::OnnxFile;
using tests::pass_of;

namespace {

struct Net : nn::Module<Float32> {
  explicit Net(const ModelContext& context = {}) : Module(context) { this->initialize(); }
  Value forward(const Value& x) const { return hidden.forward(x); }
  Linear hidden{*this, "hidden", {.in = 4, .out = 4}};
};

std::string error_of(const auto& pass) {
  const ExportedFile to;
  Net net;
  try {
    onnx::export_model(net, to.path, pass);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a setting that follows from a size or an element is an error") {
  const auto mean = [](onnx::Example& example) {
    const Variable<float> x(example.input<float>("x", {example.dynamic("batch"), example.dynamic("time"), 4}));
    example.output("y", sum(x, {1}) / static_cast<float>(x.shape()[1]));
  };
  CHECK_THAT(error_of(mean),
             ContainsSubstring("scale, before any parameter is used, has a setting factor that follows from the "
                               "inputs' sizes or elements"));
  CHECK_THAT(error_of(pass_of([](const auto& x) { return x * x.value().data()[0]; })),
             ContainsSubstring("has a setting factor that follows"));
  CHECK_THAT(error_of(pass_of([](const auto& x) {
               return pad(x, {0, x.shape()[0]});
             })),
             ContainsSubstring("has a setting amounts that follows"));
  CHECK_THAT(error_of(pass_of([](const auto& x) { return slice(x, 1, 0, 4, x.shape()[0]); })),
             ContainsSubstring("has a dynamic extent where the graph needs a number"));
}

TEST_CASE("a part of a dynamic extent, rounded, is no constant") {
  for (const std::int64_t parts : {2, 3}) {
    for (const bool rounds_up : {false, true}) {
      INFO(parts << ' ' << rounds_up);
      const auto cut = [&](const auto& x) {
        const std::int64_t rows = x.shape()[0], part = rounds_up ? (rows + parts - 1) / parts : rows / parts;
        return narrow(x, 0, 0, part);
      };
      CHECK_THAT(error_of(pass_of(cut)), ContainsSubstring("has an extent that is"));
      const auto rest = [&](const auto& x) {
        const std::int64_t rows = x.shape()[0], part = rounds_up ? (rows + parts - 1) / parts : rows / parts;
        return sum(narrow(x, 0, part, rows - part), {0});
      };
      CHECK_THAT(error_of(pass_of(rest)), ContainsSubstring("has an extent that is"));
    }
  }
  CHECK_THAT(error_of(pass_of([](const auto& x) { return chunk(x, 2, 0).back(); })),
             ContainsSubstring("has an extent that is"));
}

TEST_CASE("an input that the program reads itself is an error") {
  const auto by_element = [](onnx::Example& example) {
    const auto tokens = example.input<std::int32_t>("tokens", {1, 2});
    const Variable<float> x(example.input<float>("x", {example.dynamic("batch"), 4}));
    example.output("y", tokens.data()[0] == 0 ? relu(x) : tanh(x));
  };
  CHECK_THAT(error_of(by_element), ContainsSubstring("is relu in one and tanh in the other"));
  const auto unread = [](onnx::Example& example) {
    example.input<std::int32_t>("tokens", {1, 2});
    example.output("y", relu(Variable<float>(example.input<float>("x", {example.dynamic("batch"), 4}))));
  };
  CHECK_THAT(error_of(unread), ContainsSubstring("no output depends on the input tokens"));
}

TEST_CASE("a mask that is the same for all elements of both passes is an error") {
  CHECK_THAT(error_of(pass_of([](const auto& x) { return where(gt(x, 100), x, x * 2); })),
             ContainsSubstring("reads a mask that the program computed, the same for all elements of the example"));
  const auto attention = [](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    const Variable<float> x(example.input<float>("x", {shape[0], shape[1], 12}));
    example.output("y", scaled_dot_product_attention(x, {}, {.heads = 2}, Tensor<std::int32_t>::zeros(shape)));
  };
  CHECK_THAT(error_of(attention), ContainsSubstring("has a padding mask that is no input; make it by Example::padding_mask()"));
}
