#include <algorithm>
#include <string>
#include <utility>

#include "catch.hpp"
#include "exported_file.hpp"
#include "model_file.hpp"
#include "trireme/trireme.hpp"

// Values that a program computes from its inputs' sizes and elements do not become constants.

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
             ContainsSubstring("reads a mask that the program computed, which is the same for all elements of the example"));
  const auto attention = [](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    const Variable<float> x(example.input<float>("x", {shape[0], shape[1], 12}));
    example.output("y", scaled_dot_product_attention(x, {}, {.heads = 2}, Tensor<std::int32_t>::zeros(shape)));
  };
  CHECK_THAT(error_of(attention), ContainsSubstring("has a padding mask that is no input; make it by Example::padding_mask()"));
}

TEST_CASE("a tensor that is overwritten between two uses is two tensors") {
  const auto input = [](onnx::Example& example) {
    Tensor<float> x = example.input<float>("x", {2, 4});
    const auto before = relu(Variable<float>(x));
    for (float& element : x.span()) element += 1;
    example.output("y", before + tanh(Variable<float>(x)));
  };
  CHECK_THAT(error_of(input),
             ContainsSubstring("tanh, before any parameter is used, reads a tensor of shape [2, 4] that the program "
                               "computed from its inputs"));
  const ExportedFile to;
  Net net;
  onnx::export_model(net, to.path, pass_of([](auto x) {
                       Tensor<float> summand = Tensor<float>::full({4}, 1);
                       x = x + Variable<float>(summand);
                       for (float& element : summand.span()) element = 2;
                       return x + Variable<float>(summand);
                     }));
  const OnnxFile file(to.path);
  REQUIRE(file.count("Add") == 2);
  CHECK(file.tensors.size() == 2);
}

TEST_CASE("images are resized by whole factors, and the file says by which") {
  const auto resized = [](const InterpolateOptions& options, std::int64_t pixels) {
    return [=](onnx::Example& example) {
      const Variable<float> x(example.input<float>("x", {example.dynamic("batch"), 1, pixels, pixels}));
      example.output("y", interpolate(x, options));
    };
  };
  CHECK(error_of(resized({.scale = 1.0 / 3}, 6)) == "none");
  CHECK(error_of(resized({.size = 3}, 6)) == "none");
  CHECK_THAT(error_of(resized({.scale = 2.3}, 3)), ContainsSubstring("by a scale that gives no whole number of pixels"));
  CHECK_THAT(error_of(resized({.scale = 0.4, .mode = InterpolateMode::bilinear}, 4)),
             ContainsSubstring("by a scale that gives no whole number of pixels"));
  CHECK_THAT(error_of(resized({.size = 4}, 6)), ContainsSubstring("that is neither a multiple nor a divisor of theirs"));
  const ExportedFile to;
  Net net;
  onnx::export_model(net, to.path, resized({.size = 1, .mode = InterpolateMode::bilinear}, 4));
  const OnnxFile file(to.path);
  REQUIRE(file.count("Resize") == 1);
  for (const auto& node : file.nodes) {
    if (node.op == "Resize") CHECK(node.texts.at("coordinate_transformation_mode") == "half_pixel");
  }
}

TEST_CASE("rows of experts are only what the file has of them") {
  const auto with = [](const auto& between) {
    return [=](onnx::Example& example) {
      const std::int64_t tokens = example.dynamic("tokens");
      const Variable<float> x(example.input<float>("x", {tokens, 4})), scores(example.input<float>("scores", {tokens, 2}));
      const auto chosen = topk(softmax(scores), 1);
      const auto rows = std::make_shared<const ops::ExpertRows>(ops::expert_rows(chosen.indices, {.experts = 2}));
      example.output("y", between(x, chosen.values, rows));
    };
  };
  const auto plain = [](const auto& change) {
    return [=](const auto& x, const auto& weights, const ExpertRows& rows) {
      return combine_expert_rows(change(take_expert_rows(x, rows)), weights, rows);
    };
  };
  CHECK(error_of(with(plain([](const auto& x) { return relu(x) * 2 + Variable<float>(Tensor<float>::full({4}, 1)); }))) ==
        "none");
  const std::string why = "mixes rows of experts";
  CHECK_THAT(error_of(with(plain([](const auto& x) { return x - mean(x, {0}, true); }))), ContainsSubstring(why));
  CHECK_THAT(error_of(with(plain([](const auto& x) { return transpose(transpose(x, 0, 1), 0, 1); }))), ContainsSubstring(why));
  CHECK_THAT(error_of(with(plain([](const auto& x) { return softmax(x); }))), ContainsSubstring(why));
  CHECK_THAT(error_of(with([](const auto& x, const auto&, const ExpertRows& rows) { return take_expert_rows(x, rows); })),
             ContainsSubstring("an output has rows of experts"));
  CHECK_THAT(error_of(with([](const auto& x, const auto& weights, const ExpertRows& rows) {
               return combine_expert_rows(x, weights, rows);
             })),
             ContainsSubstring("reads other rows than those of take_expert_rows"));
  // The weights of another topk() than the newest.
  const auto twice = [](onnx::Example& example) {
    const std::int64_t tokens = example.dynamic("tokens");
    const Variable<float> x(example.input<float>("x", {tokens, 4})), scores(example.input<float>("scores", {tokens, 2}));
    const auto chosen = topk(softmax(scores), 1), other = topk(x, 1);
    const auto rows = std::make_shared<const ops::ExpertRows>(ops::expert_rows(chosen.indices, {.experts = 2}));
    example.output("y", combine_expert_rows(take_expert_rows(x, rows), chosen.values, rows) + other.values);
  };
  const ExportedFile to;
  Net net;
  onnx::export_model(net, to.path, twice);
  const OnnxFile file(to.path);
  for (const auto& node : file.nodes) {
    if (node.op == "ScatterElements") CHECK(node.inputs.at(1) == "TopK:1");
  }
}

TEST_CASE("a result that the program changes in place is no longer that of the operation") {
  const auto changed = [](const auto& change) {
    return pass_of([=](const auto& x) {
      const auto doubled = x * 2;
      Tensor<float> elements = doubled.value();
      change(elements);
      return doubled + 1;
    });
  };
  CHECK_THAT(
      error_of(changed([](auto& elements) { elements *= 3; })),
      ContainsSubstring("shift, before any parameter is used, reads a tensor of shape [3, 4] that the program computed"));
  CHECK_THAT(error_of(changed([](auto& elements) {
               for (float& element : elements.span()) element += 1;
             })),
             ContainsSubstring("reads a tensor of shape [3, 4] that the program computed"));
  CHECK_THAT(error_of(changed([](auto& elements) {
               for (float& element : elements.span()) element *= 3;
             })),
             ContainsSubstring("or a tensor that it changed"));  // zeros stay zeros
  CHECK(error_of(changed([](auto&) {})) == "none");
}

TEST_CASE("a slice may end where the example does, and leaves its tensor as it was") {
  const ExportedFile to;
  Net net;
  onnx::export_model(net, to.path, pass_of([](const auto& x) { return sum(slice(x, 0, 0, 3), {0}, true) + x; }));
  const OnnxFile file(to.path);
  REQUIRE(file.count("Slice") == 1);
  for (const auto& node : file.nodes) {
    if (node.op == "Add") CHECK(node.inputs.at(1) == "x");
  }
  CHECK(error_of(pass_of([](const auto& x) { return narrow(x, 0, 0, x.shape()[0]) * 2 + x; })) == "none");
  CHECK_THAT(error_of(pass_of([](const auto& x) { return slice(x, 0, 0, 8) * 2; })),
             ContainsSubstring("slice, before any parameter is used, ends at 8, beyond the extents of the example, 3 and 8"));
}

TEST_CASE("an empty part that is replaced leaves the tensor as it was") {
  const auto replaced = [](std::int64_t begin, std::int64_t end) {
    return pass_of([=](const auto& x) {
      return relu(slice_scatter(
          x, Variable<float>(Tensor<float>::zeros({x.shape()[0], std::max<std::int64_t>(end - begin, 0)})), 1, begin, end));
    });
  };
  for (const auto& [begin, end] : {std::pair(3, 1), std::pair(2, 2), std::pair(0, 0)}) {
    CAPTURE(begin, end);
    const ExportedFile to;
    Net net;
    onnx::export_model(net, to.path, replaced(begin, end));
    const OnnxFile file(to.path);
    CHECK(file.count("Concat") == 0);
    CHECK(file.count("Relu") == 1);
  }
}
