// Bidirectional LSTM and GRU layers: against PyTorch, and with the other options of a layer.

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gradient_check.hpp"
#include "temporary_folder.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/nn/weights/weights.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr nn::RecurrentOptions both_ways{.in = 3, .hidden = 2, .layers = 2, .bidirectional = true};

// function(i) for each element i.
template <typename Function>
Tensor<double> sequence(const Shape& shape, const Function& function, std::int64_t first = 0) {
  Tensor<double> values(shape);
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data()[i] = function(static_cast<double>(first + i));
  return values;
}

double pattern(double i) { return std::cos(0.7 * i); }

// The dot product with a pattern, so that every element has a gradient of its own. `first`: the place of the first element in
// torch's tensor, where a state has several layers.
double dot_with_pattern(const Tensor<double>& gradient, std::int64_t first = 0) {
  double dot = 0;
  for (std::int64_t i = 0; i < gradient.numel(); ++i) dot += gradient.data()[i] * pattern(static_cast<double>(first + i));
  return dot;
}

template <typename Module>
void set_weights(Module& module) {
  using T = typename Module::T;
  for (int number = 0; number < module.store().num_parameters(); ++number) {
    Tensor<T> values = module.store().template values<T>(number);
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      values.data()[i] = static_cast<T>(0.5 * std::sin(1 + 0.7 * static_cast<double>(i) + number));
    }
  }
}

// A loss of outputs and final states: its value, and the products of the pattern with the gradients of x, first states and
// parameters.
template <ops::RecurrentCell kind>
std::vector<double> numbers_of(std::int64_t batch, std::int64_t time) {
  constexpr bool cells = kind == ops::RecurrentCell::lstm;
  nn::Recurrent<Float64, kind> module(both_ways);
  set_weights(module);
  double of_x = 0, of_hidden = 0, of_cell = 0;
  const Shape shape{2, batch, both_ways.hidden};
  const Tape tape;
  const auto x = watch(sequence({batch, time, 3}, [](double i) { return std::cos(0.3 * i + 0.1); }),
                       [&](const Tensor<double>& gradient) { of_x += dot_with_pattern(gradient); });
  typename decltype(module)::State first;
  for (std::int64_t layer = 0; layer < both_ways.layers; ++layer) {
    const std::int64_t at = layer * shape.numel();
    const auto state = [&](const auto& function, double& dot) {
      return watch(sequence(shape, function, at),
                   [&dot, at](const Tensor<double>& gradient) { dot += dot_with_pattern(gradient, at); });
    };
    first.hidden.push_back(state([](double i) { return 0.5 * std::sin(0.9 * i); }, of_hidden));
    if (cells) first.cell.push_back(state([](double i) { return 0.5 * std::cos(0.4 * i); }, of_cell));
  }
  const auto [out, after] = module.forward(x, first);
  const auto weighed = [](const Variable<double>& values, const auto& function, std::int64_t at) {
    return sum(multiply(values, Variable<double>(sequence(values.shape(), function, at))));
  };
  auto loss = weighed(
      out, [](double i) { return std::cos(i); }, 0);
  for (std::size_t layer = 0; layer < after.hidden.size(); ++layer) {
    const std::int64_t at = static_cast<std::int64_t>(layer) * shape.numel();
    loss = add(loss, weighed(
                         after.hidden[layer], [](double i) { return std::sin(i + 0.5); }, at));
    if (cells)
      loss = add(loss, weighed(
                           after.cell[layer], [](double i) { return std::cos(0.5 * i); }, at));
  }
  loss.backward();
  std::vector<double> numbers{loss.value().item(), of_x, of_hidden};
  if (cells) numbers.push_back(of_cell);
  for (int number = 0; number < module.store().num_parameters(); ++number) {
    numbers.push_back(dot_with_pattern(module.store().template gradient<double>(number)));
  }
  return numbers;
}

void check_close(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(wanted[i]).epsilon(1e-9).margin(1e-10));
  }
}

std::vector<std::string> names_of(FlatStore& store) {
  std::vector<std::string> names;
  for (int number = 0; number < store.num_parameters(); ++number) {
    names.push_back(store.parameter(number).name + " " + store.parameter(number).shape.str());
  }
  return names;
}

}  // namespace

TEST_CASE("layers that read both ways have torch's values and gradients") {
  using ops::RecurrentCell;
  check_close(
      numbers_of<RecurrentCell::lstm>(2, 4),
      {2.35209193682,   0.441111328859,   -0.117052435994, 0.352132900041,  -1.12438501564, 0.0672469782988, -1.06115561461,
       -1.06115561461,  0.00199633783596, 0.804161579389,  2.03646898262,   2.03646898262,  0.112686638505,  0.198169939164,
       -0.134984006074, -0.134984006074,  0.187708606906,  -0.127764608962, -3.00349022836, -3.00349022836});
  check_close(
      numbers_of<RecurrentCell::lstm>(2, 1),
      {1.74610868364,    0.493265958235,   -0.191764720337,  0.902426410802, -2.03051198304, 0.506960565132,  -1.47481610925,
       -1.47481610925,   0.188322828653,   0.452575402174,   1.14566552976,  1.14566552976,  0.0400518508078, 0.148488257701,
       -0.0657694547976, -0.0657694547976, -0.0176347373708, 0.135482340779, -1.78729219157, -1.78729219157});
  check_close(
      numbers_of<RecurrentCell::lstm>(1, 3),
      {0.334486746313, 0.055229569841,  0.0338942842203,  0.444802265972,  -0.286370716154, 0.0524813565699, -1.11597435,
       -1.11597435,    -0.528115629507, -0.182784371062,  -0.432068326166, -0.432068326166, -0.130988644037, -0.0599980535073,
       0.545319133446, 0.545319133446,  -0.0045348194873, 0.139663781711,  0.948184159225,  0.948184159225});
  check_close(
      numbers_of<RecurrentCell::gru>(2, 4),
      {-0.209210336351, 0.147167677282, 0.812969404856, -0.271905297614, 0.0518960410282, -1.38523816695, -0.567772372753,
       0.717866049018, 0.395032557048, 0.127076023384, 0.0871634314433, -0.0981610088902, 0.116298602617, 0.455661693253,
       0.0181983428685, 0.483930155115, -0.116046436027, -1.7534981934, -0.810399797146});
  check_close(
      numbers_of<RecurrentCell::gru>(2, 1),
      {0.0714961300467, -0.0544358248576, 1.4191562291, -0.474346455551, 0.213113421599, -0.795239827909, -0.424251779632,
       0.501637867481, 0.157086305759, -0.266889780755, -0.239264267371, -0.0239378297313, 0.163420107021, -0.0996315297557,
       -0.0234347501907, -0.113425914039, 0.246280683668, -1.11348202856, -0.541170001072});
  check_close(
      numbers_of<RecurrentCell::gru>(1, 3),
      {0.0133678778242, 0.255238904039, 0.20015906361, 0.0894695415721, -0.144756177151, -1.61690632866, -0.596609934306,
       -0.54259944434, -0.107535154575, -0.0937796979311, -0.0252505012506, 0.141963807753, -0.249500908646, 1.00597579152,
       0.316986429152, -0.155487728668, -0.0982555395655, -0.76663206369, -0.286945865868});
}

TEST_CASE("the forward half of an output comes first, with the weights and in the shapes of a torch state dict") {
  nn::Lstm<Float32> module(both_ways);
  CHECK(names_of(module.store()) ==
        std::vector<std::string>{"weight_ih_l0 [8, 3]", "weight_hh_l0 [8, 2]", "bias_ih_l0 [8]", "bias_hh_l0 [8]",
                                 "weight_ih_l0_reverse [8, 3]", "weight_hh_l0_reverse [8, 2]", "bias_ih_l0_reverse [8]",
                                 "bias_hh_l0_reverse [8]", "weight_ih_l1 [8, 4]", "weight_hh_l1 [8, 2]", "bias_ih_l1 [8]",
                                 "bias_hh_l1 [8]", "weight_ih_l1_reverse [8, 4]", "weight_hh_l1_reverse [8, 2]",
                                 "bias_ih_l1_reverse [8]", "bias_hh_l1_reverse [8]"});
  set_weights(module);
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "lstm.safetensors").string();
  nn::save_weights<float>(module, path);
  nn::Lstm<Float32> other(both_ways);
  nn::load_weights<float>(other, path);
  nn::Lstm<Float64> wide(both_ways);
  set_weights(wide);
  const auto x = sequence({1, 3, 3}, [](double i) { return std::cos(0.3 * i + 0.1); });
  Tensor<float> narrow(x.shape());
  for (std::int64_t i = 0; i < x.numel(); ++i) narrow.data()[i] = static_cast<float>(x.data()[i]);
  const auto half_wide = elements(other.forward(narrow).out.value());
  const auto wanted = elements(wide.forward(x).out.value());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(half_wide[i] == Approx(wanted[i]).margin(1e-6));
  nn::Lstm<Float32> one_way({.in = 3, .hidden = 2, .layers = 2});
  CHECK_THROWS_WITH(nn::load_weights<float>(one_way, path), ContainsSubstring("_l"));
}

TEST_CASE("the reverse half is the layer on the sequence read backwards") {
  constexpr std::int64_t time = 5;
  nn::Gru<Float64> both({.in = 3, .hidden = 2, .bidirectional = true});
  set_weights(both);
  nn::Gru<Float64> one({.in = 3, .hidden = 2});
  for (int number = 0; number < 4; ++number) {
    Tensor<double> to = one.store().values<double>(number);
    const Tensor<double> from = both.store().values<double>(number + 4);
    for (std::int64_t i = 0; i < to.numel(); ++i) to.data()[i] = from.data()[i];
  }
  const auto x = random({2, time, 3}, 1);
  const auto got = both.forward(x);
  const auto backwards = one.forward(flip(Variable<double>(x), {1}));
  const auto back = flip(backwards.out, {1});
  for (std::int64_t row = 0; row < 2; ++row) {
    for (std::int64_t step = 0; step < time; ++step) {
      for (std::int64_t unit = 0; unit < 2; ++unit) {
        CHECK(got.out.value().at(row, step, 2 + unit) == Approx(back.value().at(row, step, unit)).epsilon(1e-12));
      }
    }
    for (std::int64_t unit = 0; unit < 2; ++unit) {  // the reverse direction's last step is the first one
      CHECK(got.state.hidden[0].value().at(1, row, unit) == got.out.value().at(row, 0, 2 + unit));
      CHECK(got.state.hidden[0].value().at(0, row, unit) == got.out.value().at(row, time - 1, unit));
    }
  }
}

TEST_CASE("both directions have dropout between layers in training, and none in evaluation") {
  auto options = both_ways;
  options.dropout = 0.5;
  nn::Gru<Float64> dropping(options);
  nn::Gru<Float64> plain(both_ways);
  set_weights(dropping);
  set_weights(plain);
  const auto x = random({2, 4, 3}, 1);
  const auto wanted = elements(plain.forward(x).out.value());
  const Tape tape({.seed = 3});
  CHECK(elements(dropping.forward(x).out.value()) != wanted);
  dropping.eval();
  CHECK(elements(dropping.forward(x).out.value()) == wanted);
  options.layers = 1;  // between layers only
  nn::Gru<Float64> single(options);
  set_weights(single);
  const auto trained = elements(single.forward(x).out.value());
  single.eval();
  CHECK(elements(single.forward(x).out.value()) == trained);
}

TEST_CASE("frozen layers get no gradients, and those of what lies around them stay as they are") {
  const auto gradients = [](bool freeze) {
    struct Net : nn::Module<Float64> {
      nn::Lstm<Float64> lstm{*this, "lstm", both_ways};
      nn::Linear<Float64> head{*this, "head", {.in = 4, .out = 2}};
    } net;
    net.initialize({.seed = 2});
    std::vector<double> all;
    const Tape tape;
    const auto x = watch(random({2, 4, 3}, 1), [&](const Tensor<double>& gradient) { all = elements(gradient); });
    const auto backward = [&] { sum(square(net.head.forward(net.lstm.forward(x).out))).backward(); };
    if (freeze) {
      const FrozenParameters frozen(net.lstm);
      backward();
      CHECK_FALSE(net.store().has_gradient(4));
    } else {
      backward();
    }
    for (int number = 16; number < net.store().num_parameters(); ++number) {
      for (const double element : net.store().gradient<double>(number).span()) all.push_back(element);
    }
    return all;
  };
  CHECK(gradients(true) == gradients(false));
}

TEST_CASE("a layer that reads both ways carries no state on, and names steps and states that are missing") {
  nn::Lstm<Float32> module(both_ways);
  module.initialize({.seed = 1});
  CHECK_THROWS_WITH(module.forward(Tensor<float>::zeros({2, 0, 3})), ContainsSubstring("has no steps"));
  auto carried = both_ways;
  carried.carried = true;
  CHECK_THROWS_WITH(nn::Lstm<Float32>(carried), ContainsSubstring("set only one of bidirectional and carried"));
  const Variable<float> one_direction(Tensor<float>::zeros({1, 2, 2}));
  CHECK_THROWS_WITH(module.forward(Tensor<float>::zeros({2, 4, 3}), {.hidden = {one_direction, one_direction}, .cell = {}}),
                    ContainsSubstring("needs [2, 2, 2]"));
}

namespace {

template <typename P>
struct Tagger : nn::Staged<P, Cpu, data::TokenBatch, Variable<typename P::Master>> {
  using Batch = data::TokenBatch;
  explicit Tagger(const ModelContext& context) : Tagger::Staged(context) {
    const auto first = [this](const Batch& batch) { return embed.forward(batch.tokens); };
    const auto last = [this](const Variable<typename P::Master>& x) { return head.forward(cast<typename P::Compute>(x)); };
    this->layers(this->layer({embed}, first), lstm, gru, this->layer({head}, last));
  }
  auto loss(const Variable<typename P::Compute>& logits, const Batch& batch) const {
    return cross_entropy(logits, batch.targets);
  }

  nn::Embedding<P> embed{*this, "embed", {.rows = 7, .width = 6}};
  nn::Lstm<P> lstm{*this, "lstm", {.in = 6, .hidden = 4, .layers = 2, .bidirectional = true, .dropout = 0.2}};
  nn::Gru<P> gru{*this, "gru", {.in = 8, .hidden = 3, .bidirectional = true}};
  nn::Linear<P> head{*this, "head", {.in = 6, .out = 7}};
};

data::TokenBatch tokens_from(std::int64_t first_sample, std::int64_t rows) {
  data::TokenBatch batch{.tokens = Tensor<std::int32_t>({rows, 5}), .targets = Tensor<std::int32_t>({rows, 5})};
  batch.first_sample = first_sample;
  for (std::int64_t i = 0; i < rows * 5; ++i) {
    batch.tokens.data()[i] = static_cast<std::int32_t>((first_sample * 5 + i) * (i + 3) % 7);
    batch.targets.data()[i] = static_cast<std::int32_t>((batch.tokens.data()[i] + i) % 7);
  }
  return batch;
}

// The weights by name after two steps.
template <typename P>
std::map<std::string, std::vector<float>> trained(int ranks, const MeshOptions& shape) {
  std::map<std::string, std::vector<float>> all;
  std::mutex mutex;
  const auto train = [&](const Group& world) {
    const ProcessMesh mesh(world, shape);
    Tagger<P> model(parallel::model_context(mesh));
    model.initialize();
    parallel::DataParallel replicas(model, mesh);
    optim::Sgd<P> optimizer(model, {.learning_rate = 0.5});
    for (std::int64_t number = 0; number < 2; ++number) {
      parallel::Step step = replicas.begin(number, 2);
      step.backward(model, std::vector{tokens_from(number * 8, 4), tokens_from(number * 8 + 4, 4)});
      step.update(optimizer);
    }
    const std::lock_guard lock(mutex);
    for (int number = 0; number < model.store().num_parameters(); ++number) {
      all[model.store().parameter(number).name] = elements(model.store().template read_values<float>(number));
    }
  };
  testing::run_ranks(ranks, train, {.threads_per_rank = 1});
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("layers that read both ways train in a pipeline and beside divided layers as on one rank, bit by bit", "",
                   Float32, MixedBfloat16) {
  const auto alone = trained<TestType>(1, {});
  CHECK(alone.size() == 1 + 16 + 8 + 2);
  CHECK(trained<TestType>(2, {.pipeline = 2}) == alone);
  CHECK(trained<TestType>(2, {.tensor = 2}) == alone);
}
