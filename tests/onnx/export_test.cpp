#include "trireme/onnx/export.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "catch.hpp"
#include "exported_file.hpp"
#include "model_file.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;
using tests::ExportedFile;
using tests::OnnxFile;
using tests::pass_of;
using Texts = std::vector<std::string>;

namespace {

struct Net : nn::Module<Float32> {
  explicit Net(const ModelContext& context = {}) : Module(context) {}
  Value forward(const Value& x) const { return output.forward(dropout.forward(relu(norm.forward(hidden.forward(x))))); }
  Linear hidden{*this, "hidden", {.in = 4, .out = 64}};
  BatchNorm1d norm{*this, "norm", {.channels = 64}};
  Dropout dropout{*this, "dropout", 0.5};
  Linear output{*this, "output", {.in = 64, .out = 3}};
};

template <typename Model>
auto text_pass(const Model& model) {
  return [&model](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    example.output("logits", model.logits(example.input<std::int32_t>("input_ids", shape)));
  };
}

// Every parameter is in the file once, with the same bits.
void check_weights(Model& model, const OnnxFile& file) {
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const std::string name = store.parameter(index).name;
    INFO(name);
    REQUIRE(file.tensors.contains(name));
    const tests::OnnxTensor& tensor = file.tensors.at(name);
    const Tensor<float> values = store.read_values<float>(index);
    CHECK(tensor.type == 1);
    CHECK(std::ranges::equal(tensor.dims, values.shape().dims()));
    REQUIRE(tensor.bytes.size() == values.span().size_bytes());
    CHECK(std::memcmp(tensor.bytes.data(), values.data(), tensor.bytes.size()) == 0);
  }
  std::size_t most = 0;  // bytes of a constant
  for (const auto& [name, tensor] : file.tensors) {
    if (store.find(name) < 0 && store.buffers().find(name) < 0) most = std::max(most, tensor.bytes.size());
  }
  CHECK(most <= 256);
}

models::LlamaOptions small_llama() {
  return {.layers = 2, .heads = 4, .kv_heads = 2, .width = 32, .hidden = 40, .vocabulary = 50, .block = 64};
}

}  // namespace

TEST_CASE("a user's layers become nodes with dynamic extents, named weights and metadata") {
  const ExportedFile to;
  Net net;
  net.initialize();
  const auto exported = onnx::export_model(net, to.path, pass_of([&](const auto& x) { return net.forward(x); }),
                                           {.metadata = {{"labels", "setosa, \"versicolor\""}}});
  CHECK(net.training());
  CHECK(exported.weights == 8);
  CHECK(exported.weight_bytes == 4 * (4 * 64 + 64 + 4 * 64 + 64 * 3 + 3));
  CHECK_FALSE(exported.external_data);
  const OnnxFile file(to.path);
  CHECK(file.ir_version == 8);
  CHECK(file.opset == 17);
  CHECK(file.metadata == std::map<std::string, std::string>{{"labels", "setosa, \"versicolor\""}});
  REQUIRE(file.inputs.size() == 1);
  CHECK(file.inputs[0].name == "x");
  CHECK(file.inputs[0].type == 1);
  CHECK(file.inputs[0].dims == Texts{"batch", "4"});
  REQUIRE(file.outputs.size() == 1);
  CHECK(file.outputs[0].name == "y");
  CHECK(file.outputs[0].dims == Texts{"batch", "3"});
  CHECK(file.ops() == Texts{"Gemm", "Add", "Sqrt", "Sub", "Div", "Mul", "Add", "Relu", "Gemm", "Identity"});
  check_weights(net, file);
  CHECK(file.tensors.contains("norm.running_mean"));
  CHECK(exported.nodes == std::ssize(file.nodes));
}

TEST_CASE("a tied weight lies in the file once, and looks up rows as well as it multiplies") {
  const ExportedFile to;
  models::Gpt<Float32> gpt({.layers = 2, .heads = 2, .width = 32, .block = 16, .vocabulary = 40});
  gpt.initialize();
  onnx::export_model(gpt, to.path, text_pass(gpt));
  const OnnxFile file(to.path);
  check_weights(gpt, file);
  Texts uses;
  for (const auto& node : file.users_of("transformer.wte.weight")) uses.push_back(node.op);
  CHECK(uses == Texts{"Gather", "Transpose"});
  CHECK(file.inputs.at(0).type == 7);
  CHECK(file.inputs.at(0).dims == Texts{"batch", "sequence"});
  CHECK(file.outputs.at(0).dims == Texts{"batch", "sequence", "40"});
  CHECK(file.count("LayerNormalization") == 5);
  CHECK(file.count("Softmax") == 2);
  CHECK(file.count("Range") == 1);  // the mask is made once
  for (const auto& [name, tensor] : file.tensors) {
    if (tensor.type != 7) continue;
    for (std::size_t i = 0; i < tensor.bytes.size(); i += 8) {
      std::int64_t number = 0;
      std::memcpy(&number, tensor.bytes.data() + i, 8);
      CHECK(number != 8);  // no size of the two passes, nor a product of them
      CHECK(number != 9);
      CHECK(number != 10);
      CHECK(number != 80);
    }
  }
}

TEST_CASE("attention takes its window from the layer, not from the length of an example") {
  const ExportedFile plain, windowed;
  auto options = small_llama();
  models::Llama<Float32> llama(options);
  llama.initialize();
  onnx::export_model(llama, plain.path, text_pass(llama));
  CHECK(OnnxFile(plain.path).count("GreaterOrEqual") == 0);
  for (const std::int64_t window : {4, 1000}) {
    options.window = window;
    models::Llama<Float32> mistral(options);
    mistral.initialize();
    onnx::export_model(mistral, windowed.path, text_pass(mistral));
    const OnnxFile file(windowed.path);
    CHECK(file.count("GreaterOrEqual") == 1);
    check_weights(mistral, file);
  }
}

TEST_CASE("a model that computes in bfloat16 has its master weights in the file") {
  const ExportedFile mixed, plain;
  models::Llama<MixedBfloat16> in_bfloat16(small_llama());
  in_bfloat16.initialize();
  onnx::export_model(in_bfloat16, mixed.path, text_pass(in_bfloat16));
  check_weights(in_bfloat16, OnnxFile(mixed.path));
  models::Llama<Float32> in_float(small_llama());
  in_float.initialize();
  onnx::export_model(in_float, plain.path, text_pass(in_float));
  CHECK(OnnxFile(mixed.path).ops() == OnnxFile(plain.path).ops());
}

TEST_CASE("layers that round their weights on the way have the master weights in the file") {
  const auto exported = []<typename P>(P) {
    struct Mixed : nn::Module<P> {
      Mixed() { this->initialize(); }
      nn::Conv1d<P> conv1d{*this, "conv1d", {.in = 2, .out = 4, .kernel = 3}};
      nn::ConvTranspose1d<P> back{*this, "back", {.in = 4, .out = 2, .kernel = 3}};
      nn::Conv3d<P> conv3d{*this, "conv3d", {.in = 2, .out = 3, .kernel = 2}};
      nn::WeightNormLinear<P> normalized{*this, "normalized", {.in = 3, .out = 5}};
    } net;
    const ExportedFile to;
    onnx::export_model(net, to.path, [&](onnx::Example& example) {
      using T = typename P::Compute;
      const std::int64_t batch = example.dynamic("batch");
      const auto steps = cast<T>(Variable<float>(example.input<float>("steps", {batch, 8, 2})));
      const auto volume = cast<T>(Variable<float>(example.input<float>("volume", {batch, 3, 4, 4, 2})));
      example.output("y", net.back.forward(net.conv1d.forward(steps)));
      example.output("z", net.normalized.forward(net.conv3d.forward(volume)));
    });
    const OnnxFile file(to.path);
    check_weights(net, file);
    Texts ops = file.ops();
    std::ranges::sort(ops);
    return ops;
  };
  CHECK(exported(MixedBfloat16()) == exported(Float32()));
}

TEST_CASE("weights go to a file of their own above a limit") {
  const ExportedFile to;
  models::Llama<Float32> llama(small_llama());
  llama.initialize();
  const auto inside = onnx::export_model(llama, to.path, text_pass(llama));
  CHECK_FALSE(inside.external_data);
  const auto size = std::filesystem::file_size(to.path);
  const auto exported = onnx::export_model(llama, to.path, text_pass(llama), {.external_data_above = inside.weight_bytes - 1});
  CHECK(exported.external_data);
  CHECK(std::filesystem::file_size(to.path) < size - static_cast<std::uintmax_t>(inside.weight_bytes) * 9 / 10);
  const OnnxFile file(to.path);
  check_weights(llama, file);
  CHECK(file.tensors.at("lm_head.weight").is_external);
  CHECK_FALSE(file.tensors.at("model.norm.weight").is_external);  // 128 bytes
  onnx::export_model(llama, to.path, text_pass(llama));
  CHECK_FALSE(std::filesystem::exists(to.path + ".data"));
}

TEST_CASE("BERT's padding is an attention mask in the file, and images have their channels first") {
  const ExportedFile text, picture;
  models::Bert<Float32> bert({.layers = 1, .heads = 2, .width = 16, .hidden = 20, .vocabulary = 30, .block = 16});
  bert.initialize();
  onnx::export_model(bert, text.path, [&](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    const auto tokens = example.input<std::int32_t>("input_ids", shape);
    example.output("logits", bert.logits(tokens, example.padding_mask("attention_mask", shape)));
  });
  const OnnxFile of_text(text.path);
  REQUIRE(of_text.inputs.size() == 2);
  CHECK(of_text.inputs[1].type == 7);
  REQUIRE(of_text.users_of("attention_mask").size() == 1);
  CHECK(of_text.users_of("attention_mask")[0].op == "Equal");
  CHECK(of_text.count("Expand") == 1);  // token types, all 0
  check_weights(bert, of_text);
  onnx::export_model(bert, text.path, [](onnx::Example& example) {
    example.output("padding", example.padding_mask("attention_mask", {example.dynamic("batch"), 3}));
  });
  const OnnxFile of_mask(text.path);
  CHECK(of_mask.ops() == Texts{"Equal", "Cast", "Identity"});
  CHECK(of_mask.outputs.at(0).type == 7);

  models::Cnn<Float32> cnn({});
  cnn.initialize();
  onnx::export_model(cnn, picture.path, [&](onnx::Example& example) {
    example.output("logits", cnn.logits(example.images("pixel_values", {example.dynamic("batch"), 28, 28, 1})));
  });
  const OnnxFile of_picture(picture.path);
  CHECK(of_picture.inputs.at(0).dims == Texts{"batch", "1", "28", "28"});
  REQUIRE(of_picture.users_of("pixel_values").size() == 1);
  CHECK(of_picture.users_of("pixel_values")[0].op == "Conv");
  CHECK(of_picture.count("Conv") == 2);
  CHECK(of_picture.count("MaxPool") == 2);
  check_weights(cnn, of_picture);
}

TEST_CASE("all experts compute all tokens, weighted by what the router chose") {
  const ExportedFile to;
  auto options = small_llama();
  options.experts = {.count = 4, .top_k = 2, .shared_hidden = 8, .shared_gate = true};
  models::Llama<Float32> mixture(options);
  mixture.initialize();
  onnx::export_model(mixture, to.path, text_pass(mixture));
  const OnnxFile file(to.path);
  check_weights(mixture, file);
  CHECK(file.count("TopK") == 2);
  CHECK(file.count("ScatterElements") == 2);
  options.experts.capacity_factor = 1;
  models::Llama<Float32> limited(options);
  limited.initialize();
  CHECK_THROWS_WITH(onnx::export_model(limited, to.path, text_pass(limited)),
                    ContainsSubstring("take_expert_rows, in or after the layer model.layers.0.mlp.gate, limits the tokens"));
}

TEST_CASE("recurrent layers have nodes of their own") {
  const ExportedFile to;
  models::LstmLm<Float32> lstm({.vocabulary = 30, .embedding = 8, .hidden = 12, .layers = 2});
  lstm.initialize();
  onnx::export_model(lstm, to.path, [&](onnx::Example& example) {
    nn::RecurrentState<float> state;
    const auto tokens = example.input<std::int32_t>("tokens", {example.dynamic("batch"), example.dynamic("sequence")});
    example.output("logits", lstm.logits(tokens, state));
    example.output("state", state.hidden.at(1));
  });
  const OnnxFile file(to.path);
  check_weights(lstm, file);
  CHECK(file.count("LSTM") == 2);
  CHECK(file.outputs.at(1).dims == Texts{"1", "batch", "12"});
}

TEST_CASE("adapters are merged before an export") {
  const ExportedFile to;
  ModelContext context;
  context.lora = LoraOptions{.rank = 2, .targets = {"all-linear"}};
  models::Llama<Float32> llama(small_llama(), context);
  llama.initialize();
  CHECK_THROWS_WITH(onnx::export_model(llama, to.path, text_pass(llama)), ContainsSubstring("nn::merge_adapter() first"));
  nn::merge_adapter(llama);
  onnx::export_model(llama, to.path, text_pass(llama));
  CHECK(OnnxFile(to.path).tensors.contains("model.layers.0.self_attn.qkv_proj.weight"));
}

TEST_CASE("what can't be exported is one error that says what and where") {
  const ExportedFile to;
  Net net;
  net.initialize();
  const auto error_of = [&](const auto& pass) -> std::string {
    try {
      onnx::export_model(net, to.path, pass);
    } catch (const Error& error) {
      CHECK_FALSE(std::filesystem::exists(to.path));
      return error.what();
    }
    return {};
  };
  const auto error_of_function = [&](const auto& function) { return error_of(pass_of(function)); };
  CHECK_THAT(error_of_function([&](const auto& x) { return map([](auto a) { return a * a; }, net.hidden.forward(x)); }),
             ContainsSubstring("the operation map, in or after the layer hidden, has no form"));
  CHECK_THAT(error_of_function([](const auto& x) { return x.shape()[0] < 4 ? relu(x) : tanh(x); }),
             ContainsSubstring("the operation 0 is relu in one and tanh in the other"));
  CHECK_THAT(
      error_of_function([](const auto& x) {
        Tensor<float> ramp(x.shape());
        for (std::int64_t i = 0; i < ramp.numel(); ++i) ramp.data()[i] = static_cast<float>(i);
        return x * ramp;
      }),
      ContainsSubstring("the operation multiply, before any parameter is used, reads a tensor of shape [3, 4] that the program "
                        "computed from its inputs, or from their sizes, outside of operations"));
  CHECK_THAT(error_of([&](onnx::Example& example) {
               example.input<float>("x", {1, 4});
             }),
             ContainsSubstring("named no output"));
  CHECK_THAT(error_of([&](onnx::Example& example) {
               example.input<float>("x", {1, 4});
               example.input<float>("x", {1, 4});
             }),
             ContainsSubstring("two inputs have the name x"));
  CHECK_THAT(error_of([&](onnx::Example& example) {
               const Variable<float> x(example.input<float>("x", {1, 4}));
               example.output("y", expand(x, {example.dynamic("more"), 4}));
             }),
             ContainsSubstring("no multiple of the inputs' dynamic extents"));
  const auto batch = [](onnx::Example& example) {
    return Variable<float>(example.input<float>("x", {example.dynamic("batch"), 4}));
  };
  CHECK_THAT(error_of([&](onnx::Example& example) { example.output("x", batch(example)); }),
             ContainsSubstring("an input and an output have the name x"));
  CHECK_THAT(error_of([&](onnx::Example& example) { example.output("y", Variable<float>()); }),
             ContainsSubstring("the output y is an undefined tensor"));
  CHECK_THAT(error_of([&](onnx::Example& example) { example.output("label", argmax(net.forward(batch(example)), 1)); }),
             ContainsSubstring("an output reads a tensor of shape [3] that the program computed from its inputs"));
  CHECK_THAT(error_of([&](onnx::Example& example) {
               example.input<float>("x", {example.dynamic("batch"), 0});
             }),
             ContainsSubstring("the input x has the shape [3, 0]"));
  CHECK_THAT(error_of([&](onnx::Example& example) {
               example.images("x", {example.dynamic("batch"), 28, 28});
             }),
             ContainsSubstring("images(\"x\"): the shape [3, 28, 28] is not [batch, height, width, channels]"));
  CHECK_THAT(error_of([&](onnx::Example& example) {
               example.input<float>("x", {example.dynamic("rows", 0), 4});
             }),
             ContainsSubstring("dynamic(\"rows\"): a multiple of 0"));
  Tape tape;
  CHECK_THAT(error_of_function([&](const auto& x) { return net.forward(x); }), ContainsSubstring("without a tape"));
}

TEST_CASE("what the program computes of inputs beside the gate is an error, not a constant of the example") {
  const ExportedFile to;
  Net net;
  net.initialize();
  const std::string why = "that the program computed from its inputs";
  CHECK_THROWS_WITH(onnx::export_model(net, to.path, pass_of([](const auto& x) { return where(gt(x, 0), x, x * 2); })),
                    ContainsSubstring(why));
  const auto masked = [&](onnx::Example& example) {
    const auto tokens = example.input<std::int32_t>("tokens", {example.dynamic("batch"), 4});
    example.output("y", where(eq(tokens, 0), Variable<float>(Tensor<float>::full({1, 4}, 2)), 1));
  };
  CHECK_THROWS_WITH(onnx::export_model(net, to.path, masked), ContainsSubstring(why));

  models::Llama<Float32> llama(small_llama());
  llama.initialize();
  const auto packed = [&](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    const auto tokens = example.input<std::int32_t>("input_ids", shape);
    example.output("logits",
                   llama.forward({.tokens = tokens, .document_starts = example.input<std::int32_t>("starts", shape, 1)}));
  };
  CHECK_THROWS_WITH(onnx::export_model(llama, to.path, packed),
                    ContainsSubstring("in or after the layer model.layers.0.self_attn.qkv_proj") &&
                        ContainsSubstring("documents that are packed in rows"));
  CHECK_FALSE(std::filesystem::exists(to.path));
}

TEST_CASE("extents that layers make of dynamic ones are computed in the file") {
  const ExportedFile to;
  Net net;
  net.initialize();
  const auto pass = [](onnx::Example& example) {
    const std::int64_t batch = example.dynamic("batch"), time = example.dynamic("time", 4);
    const Variable<float> x(example.input<float>("x", {batch, time, 6}));
    const auto longer = cat<float>({x, narrow(x, 1, 0, 1)}, 1);
    example.output("last", select(x, 1, time - 1));
    example.output("rows", reshape(longer, {batch * (time + 1), 6}));
    example.output("quarters", reshape(slice(x, 1, 0, time, 4), {batch, time / 4 * 6}));
    example.output("pairs", Variable<float>(example.input<float>("in_pairs", {2 * batch, 3})));
  };
  onnx::export_model(net, to.path, pass);
  const OnnxFile file(to.path);
  CHECK(file.inputs.at(0).dims == Texts{"batch", "time", "6"});
  CHECK(file.inputs.at(1).dims == Texts{"in_pairs_0", "3"});
  CHECK(file.outputs.at(0).dims == Texts{"batch", "6"});
  CHECK(file.outputs.at(1).dims == Texts{"rows_0", "6"});
  for (const auto& [name, tensor] : file.tensors) {
    for (std::size_t i = 0; tensor.type == 7 && i < tensor.bytes.size(); i += 8) {
      std::int64_t number = 0;
      std::memcpy(&number, tensor.bytes.data() + i, 8);
      const bool is_of_the_example =
          number == 8 || number == 11 || number == 12 || number == 13 || number == 36 || number == 39 || number == 40;
      CHECK_FALSE(is_of_the_example);
    }
  }
}

TEST_CASE("no two tensors have one name, whatever a model calls its own") {
  struct Named : nn::Module<Float32> {
    Named() {
      for (const char* name : {"constant_1", "constant", "y", "x", "Add:0"}) {
        parameters.push_back(this->add_parameter(name, {4}, Initializer::constant(1)));
      }
    }
    std::vector<Parameter<float>> parameters;
  } net;
  net.initialize();
  const ExportedFile to;
  onnx::export_model(net, to.path, pass_of([&](auto x) {
                       for (const auto& parameter : net.parameters) x = (x + parameter.master() + 3) * 0.5;
                       return x;
                     }));
  const OnnxFile file(to.path);
  std::vector<std::string> names{"x"};
  for (const auto& [name, tensor] : file.tensors) names.push_back(name);
  for (const auto& node : file.nodes) names.insert(names.end(), node.outputs.begin(), node.outputs.end());
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
  CHECK(file.tensors.contains("constant_1"));
}

TEST_CASE("not a number is written as it is") {
  const ExportedFile to;
  auto options = small_llama();
  options.experts = {.count = 4, .top_k = 2};
  models::Llama<Float32> llama(options);
  llama.initialize();
  for (int index = 0; index < llama.store().num_parameters(); ++index) {
    const Tensor<float> values = llama.store().read_values<float>(index);
    for (float& value : values.span()) value = std::numeric_limits<float>::quiet_NaN();
    llama.store().write_values(index, values);
  }
  onnx::export_model(llama, to.path, text_pass(llama));
  check_weights(llama, OnnxFile(to.path));
}

TEST_CASE("a model without values, or a part of one, is not written, and a file that can't be replaced stays") {
  const ExportedFile to;
  Net net;
  const auto pass = pass_of([&](const auto& x) { return net.forward(x); });
  CHECK_THROWS_WITH(onnx::export_model(net, to.path, pass), ContainsSubstring("have no values"));
  net.initialize();
  CHECK_THROWS_WITH(onnx::export_model(net, "", pass), ContainsSubstring("needs the name of a file"));
  CHECK_THROWS_WITH(onnx::export_model(net, to.folder.path().string(), pass), ContainsSubstring("is a folder"));
  CHECK_THROWS_WITH(onnx::export_model(net, to.path + "/none/model.onnx", pass, {.external_data_above = 0}),
                    ContainsSubstring("/none/model.onnx"));
  CHECK_THROWS_AS(onnx::export_model(net, std::string(5000, 'x'), pass), Error);
  CHECK(std::filesystem::is_empty(to.folder.path()));

  Texts errors(2);
  testing::run_ranks(2, [&](const Group& world) {
    models::Llama<Float32> part(small_llama(), {.tensor = std::make_shared<Group>(world)});
    part.initialize();
    try {
      onnx::export_model(part, to.path, text_pass(part));
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  for (const std::string& error : errors) CHECK_THAT(error, ContainsSubstring("this model is divided over ranks"));
  CHECK(std::filesystem::is_empty(to.folder.path()));
}

TEST_CASE("an exported model that could not be expressed stays as it was") {
  const ExportedFile to;
  Net net;
  net.initialize();
  const auto pass = pass_of([](const auto& x) { return map([](auto a) { return a * a; }, x); });
  CHECK_THROWS_AS(onnx::export_model(net, to.path, pass), Error);
  CHECK(net.training());
}
