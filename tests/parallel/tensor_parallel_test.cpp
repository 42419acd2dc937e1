#include <algorithm>
#include <cmath>
#include <memory>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/folders/gpt2_safetensors.hpp"
#include "trireme/nn/attention/attention.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/hooks/compression.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t batch = 4;
constexpr std::int64_t time_steps = 8;

// 37 classes: no number of ranks divides them.
constexpr models::GptOptions gpt_options{
    .layers = 2, .heads = 4, .width = 16, .block = time_steps, .vocabulary = 37, .dropout = 0.1};

Tensor<std::int32_t> tokens(int from) {
  Tensor<std::int32_t> tokens({batch, time_steps});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data()[i] = static_cast<std::int32_t>((i * 7 + from) % 37);
  return tokens;
}

Tensor<std::int32_t> targets() {
  Tensor<std::int32_t> targets = tokens(5);
  targets.data()[3] = ops::ignored_target;
  return targets;
}

// Heads and keys in different numbers, rotary positions, RMS norm.
struct Grouped : nn::Module<Float64> {
  using Module::Module;

  nn::Embedding<Float64> embedding{*this, "embedding", {.rows = 37, .width = 16, .split = true}};
  nn::RmsNorm<Float64> norm{*this, "norm", {.width = 16}};
  nn::MultiheadAttention<Float64> attention{
      *this, "attention", {.embed_dim = 16, .num_heads = 8, .num_kv_heads = 4, .causal = true, .rotary_base = 100}};
  nn::Dropout<Float64> dropout{*this, "dropout", 0.1};
  nn::LayerNorm<Float64> last{*this, "last", {.width = 16}};
  nn::Linear<Float64> head{*this, "head", {.in = 16, .out = 37, .split = nn::TensorSplit::column}};

  Loss<double> loss(const Tensor<std::int32_t>& in, const Tensor<std::int32_t>& out) const {
    const std::int64_t time = in.dim(1);
    const auto attended = attention.forward(norm.forward(embedding.forward(in)), {}, time);
    const auto logits = head.forward(last.forward(dropout.forward(attended)));
    if (tensor_axis() == nullptr) return cross_entropy(logits, out);
    return vocab_parallel_cross_entropy(logits, out, even_part(37, *tensor_axis()).begin, 37, *tensor_axis());
  }
};

template <typename Model>
double backward(const Model& model) {
  Tape tape({.seed = 3, .step = 2, .first_sample = 8, .samples = batch});
  const auto loss = model.loss(tokens(0), targets());
  loss.backward();
  require(loss.target_weight == batch * time_steps - 1 && loss.nominal_targets == batch * time_steps, "{} of {} targets",
          static_cast<double>(loss.target_weight), loss.nominal_targets);
  return loss.mean();
}

void require_near(double had, double wanted, const std::string& what) {
  require(std::abs(had - wanted) <= 1e-12 * (1 + std::abs(wanted)), "{}: {} instead of {}", what, had, wanted);
}

// Every element on this rank, against the same one of the whole model.
template <typename Get>
void require_pieces_near(FlatStore& part, FlatStore& whole, const Get& get) {
  require(part.num_parameters() == whole.num_parameters(), "{} parameters", part.num_parameters());
  for (int index = 0; index < part.num_parameters(); ++index) {
    const ParameterInfo& parameter = part.parameter(index);
    require(parameter.placement.shape == whole.parameter(index).shape, "{} is a part of {}", parameter.name,
            parameter.placement.shape);
    const Tensor<double> had = get(part, index);
    const Tensor<double> wanted = get(whole, index);
    for (const auto& piece : parameter.placement.pieces()) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        require_near(had.data()[piece.here + i], wanted.data()[piece.whole + i], parameter.name);
      }
    }
  }
}

const auto values_of = [](FlatStore& store, int index) { return store.values<double>(index); };
const auto gradient_of = [](FlatStore& store, int index) { return store.gradient<double>(index); };

template <typename Make>
void require_as_whole(const Make& make, const std::vector<int>& sizes) {
  const auto whole = make(ModelContext{});
  whole->initialize({.seed = 7});
  const double loss = backward(*whole);
  for (const int ranks : sizes) {
    for (const bool sequence_parallel : {false, true}) {
      testing::run_ranks(ranks, [&](const Group& world) {
        const ProcessMesh mesh(world, {.tensor = ranks});
        const auto model = make(parallel::model_context(mesh, {.sequence_parallel = sequence_parallel}));
        model->initialize({.seed = 7});
        require_pieces_near(model->store(), whole->store(), values_of);
        require_near(backward(*model), loss, "loss");
        require_pieces_near(model->store(), whole->store(), gradient_of);
      });
    }
  }
}

// A few steps of LAMB, which takes norms of whole parameters, clipped by the norm of all.
std::unique_ptr<models::Gpt<Float64>> trained(const Group& world, const MeshOptions& axes, parallel::Sharding sharding,
                                              std::vector<StepSummary>& summaries) {
  const ProcessMesh mesh(world, axes);
  auto model = std::make_unique<models::Gpt<Float64>>(gpt_options,
                                                      parallel::model_context(mesh, {.sequence_parallel = true, .seed = 3}));
  model->initialize({.seed = 7});
  parallel::DataParallel replicas(*model, mesh,
                                  {.sharding = sharding, .buckets = {.bytes = 4000, .first_bytes = 400, .slice_bytes = 4000}});
  // A layer norm's weights have the norm 4, which would be clamped if several ranks counted them.
  optim::Lamb<Float64> optimizer(*model, {.learning_rate = 0.01, .max_norm = 5});
  const std::int64_t share = batch / mesh.data().size();
  const std::int64_t first = mesh.data().rank() * share;
  for (int number = 0; number < 3; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(Range{first, first + share},
                  [&] { return model->loss(tokens(number).narrow(first, share), targets().narrow(first, share)); });
    step.update(optimizer, {.clip_norm = 0.5});
    summaries.push_back(step.finish());
  }
  return model;
}

}  // namespace

TEST_CASE("a placement tells which elements lie here") {
  const Placement columns{.shape = {2, 6, 2}, .dim = 1, .ranges = {{1, 3}, {5, 6}}};
  CHECK(columns.local_shape() == Shape{2, 3, 2});
  std::vector<std::int64_t> wholes;
  std::int64_t next = 0;
  for (const auto& piece : columns.pieces()) {
    CHECK(piece.here == next);
    next += piece.count;
    for (std::int64_t i = 0; i < piece.count; ++i) wholes.push_back(piece.whole + i);
  }
  CHECK(wholes == std::vector<std::int64_t>{2, 3, 4, 5, 10, 11, 14, 15, 16, 17, 22, 23});
}

TEST_CASE("a GPT on a tensor axis has the values, loss and gradients of the whole one") {
  require_as_whole([](const ModelContext& context) { return std::make_unique<models::Gpt<Float64>>(gpt_options, context); },
                   {2, 4});
}

TEST_CASE("grouped queries, rotary positions and RMS norm on a tensor axis") {
  require_as_whole([](const ModelContext& context) { return std::make_unique<Grouped>(context); }, {2, 4});
}

TEST_CASE("a split backward pass of divided layers gives the same bits, the gradients of weights when they are run") {
  struct Mlp : nn::Module<Float32> {
    using Module::Module;
    nn::Linear<Float32> up{*this, "up", {.in = 16, .out = 32, .split = nn::TensorSplit::column}};
    nn::Linear<Float32> down{*this, "down", {.in = 32, .out = 16, .split = nn::TensorSplit::row}};
  };
  for (const bool sequence_parallel : {false, true}) {
    testing::run_ranks(2, [&](const Group& world) {
      Mlp model(parallel::model_context(ProcessMesh(world, {.tensor = 2}), {.sequence_parallel = sequence_parallel}));
      model.initialize({.seed = 7});
      const auto x = Tensor<float>::full({sequence_parallel ? 2 : 4, 16}, 0.1F);
      for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] *= static_cast<float>(i % 7);
      std::vector<float> inputs[2];
      std::vector<float> weights[2];
      for (const bool split : {false, true}) {
        Tape tape;
        if (split) tape.split_backward();
        const auto input = watch(x, [&](const Tensor<float>& dx) { inputs[split].assign(dx.data(), dx.data() + dx.numel()); });
        sum(model.down.forward(gelu(model.up.forward(input)))).backward();
        if (split) {
          for (int index = 0; index < model.store().num_parameters(); ++index) {
            require(!model.store().has_gradient(index), "{} is final already", model.store().parameter(index).name);
          }
          tape.run_weight_gradients();
        }
        const auto gradients = model.store().gradients<float>().span();
        weights[split].assign(gradients.begin(), gradients.end());
        model.store().clear_gradients();
      }
      require(!inputs[0].empty() && inputs[0] == inputs[1], "another gradient of the input");
      require(std::ranges::any_of(weights[0], [](float dw) { return dw != 0; }), "no gradient");
      require(weights[0] == weights[1], "other gradients of the weights");
    });
  }
}

TEST_CASE("steps on data and tensor axes are those of one rank") {
  std::vector<StepSummary> wanted;
  std::unique_ptr<models::Gpt<Float64>> whole;
  testing::run_ranks(1, [&](const Group& world) { whole = trained(world, {}, parallel::Sharding::none, wanted); });
  for (const auto& [ranks, tensor] : {std::pair{2, 2}, std::pair{4, 2}, std::pair{8, 4}}) {
    for (const auto sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
      testing::run_ranks(ranks, [&, tensor = tensor](const Group& world) {
        std::vector<StepSummary> summaries;
        const auto model = trained(world, {.tensor = tensor}, sharding, summaries);
        for (std::size_t step = 0; step < summaries.size(); ++step) {
          require_near(summaries[step].loss(), wanted[step].loss(), "loss");
          require_near(summaries[step].gradient_norm, wanted[step].gradient_norm, "norm");
        }
        require_pieces_near(model->store(), whole->store(), values_of);
      });
    }
  }
}

TEST_CASE("the logits of the next token are those of the whole model") {
  models::Gpt<Float64> whole(gpt_options);
  whole.initialize({.seed = 7});
  for (const std::int64_t length : {1, 3, 8}) {
    Tensor<std::int32_t> prompt({1, length});
    std::copy_n(tokens(0).data(), length, prompt.data());
    const Tensor<double> wanted = whole.next_token_logits(prompt);
    for (const bool sequence_parallel : {false, true}) {
      testing::run_ranks(2, [&](const Group& world) {
        const auto context =
            parallel::model_context(ProcessMesh(world, {.tensor = 2}), {.sequence_parallel = sequence_parallel});
        const models::Gpt<Float64> model(gpt_options, context);
        model.store().initialize<double>(7);
        const Tensor<double> had = model.next_token_logits(prompt);
        for (std::int64_t i = 0; i < wanted.numel(); ++i) require_near(had.data()[i], wanted.data()[i], "logit");
      });
    }
  }
}

TEST_CASE("more ranks than classes") {
  models::GptOptions options = gpt_options;
  options.vocabulary = 3;
  options.dropout = 0;
  auto read = Tensor<std::int32_t>::zeros({batch, time_steps});
  for (std::int64_t i = 0; i < read.numel(); ++i) read.data()[i] = static_cast<std::int32_t>(i % 3);
  models::Gpt<Float64> whole(options);
  whole.initialize({.seed = 7});
  const double wanted = whole.loss(read, read).mean();
  testing::run_ranks(4, [&](const Group& world) {
    const models::Gpt<Float64> model(options, parallel::model_context(ProcessMesh(world, {.tensor = 4})));
    model.store().initialize<double>(7);
    Tape tape;
    const auto loss = model.loss(read, read);
    loss.backward();
    require_near(loss.mean(), wanted, "loss");
  });
}

TEST_CASE("weights of a divided model are saved and loaded as a whole") {
  const tests::TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  models::Gpt<Float64> whole(gpt_options);
  whole.initialize({.seed = 7});
  models::save_gpt2(whole, path("whole"));
  testing::run_ranks(2, [&](const Group& world) {
    models::Gpt<Float64> model(gpt_options, parallel::model_context(ProcessMesh(world, {.tensor = 2})));
    model.initialize({.seed = 8});
    models::load_pretrained(model, path("whole"));
    models::save_gpt2(model, path("joined"));
  });
  models::Gpt<Float64> joined(gpt_options);
  models::load_pretrained(whole, path("whole"));
  models::load_pretrained(joined, path("joined"));
  CHECK_NOTHROW(require_pieces_near(joined.store(), whole.store(), values_of));
}

TEST_CASE("a model and a mesh that don't go together are refused") {
  const auto refused = [](const std::function<void(const Group&)>& body, const std::string& text) {
    CHECK_THROWS_WITH(testing::run_ranks(2, body), ContainsSubstring(text));
  };
  refused(
      [](const Group& world) {
        models::Gpt<Float64> model(gpt_options);
        parallel::DataParallel data_parallel(model, ProcessMesh(world, {.tensor = 2}));
      },
      "the model is divided between 1 ranks, the tensor axis of the mesh has 2");
  refused(
      [](const Group& world) {
        models::Gpt<Float64> model(gpt_options, parallel::model_context(ProcessMesh(world, {.tensor = 2})));
        parallel::DataParallel data_parallel(model, ProcessMesh(world));
      },
      "the model is divided between 2 ranks, the tensor axis of the mesh has 1");
  refused(
      [](const Group& world) {
        const ProcessMesh mesh(world, {.tensor = 2});
        models::Gpt<Float64> model(gpt_options, parallel::model_context(mesh));
        model.initialize({.seed = static_cast<std::uint64_t>(world.rank())});
        parallel::DataParallel data_parallel(model, mesh);
      },
      "transformer.wpe.weight");
  refused(
      [](const Group& world) {
        const ProcessMesh mesh(world, {.tensor = 2});
        models::Gpt<Float64> model(gpt_options, parallel::model_context(mesh));
        parallel::DataParallel data_parallel(model, mesh, {.sum = parallel::Hooked{{.hook = parallel::float16_hook()}}});
      },
      "leave it out");
}

TEST_CASE("sizes that don't fit a tensor axis are refused") {
  const auto refused = [](int ranks, const std::function<void(const ModelContext&)>& use, const std::string& text,
                          bool sequence_parallel = false) {
    testing::run_ranks(ranks, [&](const Group& world) {
      const auto context =
          parallel::model_context(ProcessMesh(world, {.tensor = ranks}), {.sequence_parallel = sequence_parallel});
      try {
        use(context);
      } catch (const Error& error) {
        require(std::string(error.what()).find(text) != std::string::npos, "unexpected: {}", error.what());
        return;
      }
      require(false, "no error: {}", text);
    });
  };
  refused(
      3, [](const ModelContext& context) { models::Gpt<Float64> model(gpt_options, context); }, "can't divide 4 heads");
  refused(
      2,
      [](const ModelContext& context) {
        struct Plain : nn::Module<Float64> {
          using Module::Module;
          nn::Linear<Float64> layer{*this, "layer", {.in = 2, .out = 2}};
        };
        const Plain model(context);
        static_cast<void>(model.layer.forward(Tensor<double>({4, 2})));
      },
      "layer: a linear layer of a sequence-parallel model must be split", true);
  refused(
      2,
      [](const ModelContext& context) {
        struct Convolutional : nn::Module<Float64> {
          using Module::Module;
          nn::Conv2d<Float64> layer{*this, "layer", {.in = 2, .out = 2, .kernel = {3, 3}}};
        };
        const Convolutional model(context);
      },
      "layer: a convolution needs all rows", true);
  refused(
      2,
      [](const ModelContext& context) {
        models::Gpt<Float64> model(gpt_options, context);
        model.initialize();
        static_cast<void>(model.logits(Tensor<std::int32_t>::zeros({1, 3})));
      },
      "can't share out 3 rows", true);
}
