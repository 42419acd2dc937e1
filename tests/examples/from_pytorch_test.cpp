// The C++ sides of docs/from_pytorch.md, between "// begin: NAME" and "// end", as the page has them:
// pages_test.py compares them. Here they are compiled and, where useful, run.
#include <cmath>
#include <filesystem>
#include <sstream>
#include <trireme/trireme.hpp>

#include "catch.hpp"
#include "temporary_folder.hpp"

using namespace trireme;

namespace {

// begin: module
struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Value& x) const { return output.forward(relu(hidden.forward(x))); }

  Linear hidden{*this, "hidden", {.in = 4, .out = 64}};
  Linear output{*this, "output", {.in = 64, .out = 3}};
};
// end

// begin: sequential
struct Mlp : nn::Module<Float32> {
  Mlp() {
    mlp.add<Linear>(nn::LinearOptions{.in = 4, .out = 64});  // its weight is "mlp.0.weight", as in PyTorch
    mlp.add([](const auto& x) { return relu(x); });
    mlp.add<Linear>(nn::LinearOptions{.in = 64, .out = 3});
  }
  Sequential mlp{*this, "mlp"};
};
// end

// begin: module_list
struct Deep : nn::Module<Float32> {
  Value forward(Value x) const {
    for (std::size_t i = 0; i < layers.size(); ++i) x = relu(layers[i].forward(x));
    return x;
  }
  nn::ModuleList<Linear> layers{*this, "layers", 3, nn::LinearOptions{.in = 4, .out = 4}};
};
// end

// begin: sizes
struct FeedForward : nn::Module<Float32> {
  FeedForward(const Module& parent, std::string_view name, std::int64_t in, std::int64_t middle)
      : Module(parent, name), width(in), hidden(middle) {}
  Value forward(const Value& x) const { return down.forward(gelu_erf(up.forward(x))); }

  std::int64_t width, hidden;
  Linear up{*this, "up", {.in = width, .out = hidden}};
  Linear down{*this, "down", {.in = hidden, .out = width}};
};
struct Around : nn::Module<Float32> {
  FeedForward mlp{*this, "mlp", 8, 32};
};
// end

// begin: parameter
struct Scores : nn::Module<Float32> {
  Value forward(const Value& x) const { return matmul(x, weight.variable()); }

  Parameter<float> weight = add_parameter("weight", {4, 2}, Initializer::normal(0, 0.02));
  Buffer<float> seen = add_buffer("seen", {1}, 0);
};
// end

// begin: tied
struct Autoencoder : nn::Module<Float32> {
  Value forward(const Value& x) const {
    return matmul(relu(encoder.forward(x)), encoder.weight.variable());  // used twice: its gradients are added
  }
  Linear encoder{*this, "encoder", {.in = 4, .out = 2}};
};
// end

// begin: function
struct Cube {
  static constexpr std::string_view name = "cube";
  void forward(const Tensor<float>& x, Tensor<float>& y) const {
    for (std::int64_t i = 0; i < x.numel(); ++i) y.data()[i] = std::pow(x.data()[i], 3.0F);
  }
  void backward(const Tensor<float>& dy, const Tensor<float>& x, const Gradient<float>& dx) const {
    dx.contribute([&](Tensor<float>& sum, bool accumulate) {
      for (std::int64_t i = 0; i < sum.numel(); ++i)
        sum.data()[i] = (accumulate ? sum.data()[i] : 0) + 3 * x.data()[i] * x.data()[i] * dy.data()[i];
    });
  }
};
Variable<float> cube(const Variable<float>& x) { return record(Cube{}, Result<float>{x.shape()}, kept(x)); }
// end

// begin: dataset
struct Waves {  // a vector will do too
  std::int64_t size() const { return 100; }
  float at(std::int64_t index) const { return std::sin(0.1F * static_cast<float>(index)); }
};
// end

data::Table table() {
  // begin: table
  const data::Table table({.feature_names = {"a", "b", "c", "d"},
                           .features = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},  // [rows, features]
                           .labels = {0, 1, 2, 0},
                           .class_names = {"x", "y", "z"}});
  // end
  return table;
}

// Each test trains for two steps on the same few rows.
trainer::Options short_run() { return {.until = Steps{2}, .batch_size = 4}; }

void on_one_rank(const std::function<void(const Group&)>& action) {
  const auto main = [&](const Group& world) {
    action(world);
    return 0;
  };
  REQUIRE(launch(BackendKind::thread, {}, main) == 0);
}

}  // namespace

TEST_CASE("models of PyTorch in C++") {
  const Variable<float> x = Tensor<float>::full({2, 4}, 1);
  Mlp mlp;
  mlp.initialize();
  CHECK(mlp.mlp.forward(x).shape() == Shape{2, 3});
  CHECK(mlp.store().find("mlp.0.weight") >= 0);
  Deep deep;
  deep.initialize();
  CHECK(deep.forward(x).shape() == Shape{2, 4});
  Around around;
  around.initialize();
  CHECK(around.mlp.forward(Tensor<float>::full({2, 8}, 1)).shape() == Shape{2, 8});
  CHECK(around.store().find("mlp.down.bias") >= 0);
  Scores scores;
  scores.initialize();
  CHECK(scores.forward(x).shape() == Shape{2, 2});
  CHECK(scores.seen.value().item() == 0);
  Autoencoder autoencoder;
  autoencoder.initialize();
  CHECK(autoencoder.forward(x).shape() == Shape{2, 4});
}

TEST_CASE("tensors of PyTorch in C++") {
  // begin: tensors
  const auto zeros = Tensor<float>::zeros({2, 3});
  const auto x = Tensor<float>::from({2, 2}, {1, 2, 3, 4});
  x.at(1, 0) = 5;
  const float element = x.at(-1, -1);
  const Tensor<float> copy = x.clone();  // other copies share their elements
  const Tensor<float> row = x.reshape({4}).narrow(0, 2);
  // end
  CHECK(zeros.numel() == 6);
  CHECK(element == 4);
  CHECK(copy.at(1, 0) == 5);
  CHECK(row.at(1) == 2);

  std::ostringstream out;
  // begin: print
  out << x << "\n";  // or fmt::print("{}\n", x)
  out << x.shape().str() << "\n";
  const float only = Tensor<float>::full({1}, 7).item();
  // end
  CHECK(out.str().starts_with("[["));
  CHECK(only == 7);
}

TEST_CASE("parts of PyTorch's tensors in C++") {
  const Variable<float> x = Tensor<float>::from({2, 4}, {1, 2, -3, 4, 5, -6, -7, 8});
  // begin: views
  const auto rows = reshape(x, {-1, 2});
  const auto [first, second] = chunk<2>(x, -1);
  const auto column = select(x, 1, 0);
  const auto shares = cast<float>(sum(x > 0, 1)) / x.shape()[1];
  // end
  CHECK(rows.shape() == Shape{4, 2});
  CHECK((first.value().at(1, 0) == 5 && second.value().at(0, 0) == -3));
  CHECK(column.value().to_vector() == std::vector<float>{1, 5});
  CHECK(shares.to_vector() == std::vector<float>{0.75, 0.5});
}

TEST_CASE("gradients of PyTorch in C++") {
  // begin: backward
  Tensor<float> gradient;
  Tape tape;
  const auto x = watch(Tensor<float>::from({2}, {1, 2}), [&](Tensor<float> of_x) { gradient = of_x; });
  sum(cube(x) + 2 * x).backward();
  // end
  CHECK(gradient.at(0) == 5);
  CHECK(gradient.at(1) == 14);
}

TEST_CASE("detached values") {
  const Tape tape;
  const auto x = watch(Tensor<float>::full({1}, 2), [](const Tensor<float>&) {});
  // begin: detach
  const Variable<float> constant = x.detach();
  // end
  CHECK(constant.slot() == nullptr);
}

TEST_CASE("losses of PyTorch in C++") {
  const Variable<float> logits = Tensor<float>::from({3, 2}, {0, 1, 2, 0, 0, 5});
  const auto labels = Tensor<std::int32_t>::from({3}, {1, 0, -100});
  // begin: losses
  const Loss<float> loss = cross_entropy(logits, labels, {.ignore_index = -100, .label_smoothing = 0.1});
  const double mean = loss.mean();  // over the labels that count
  const auto squares = mse_loss(logits, Tensor<float>::zeros({3, 2}));
  // end
  CHECK(loss.target_weight.item() == 2);
  CHECK(mean > 0);
  CHECK(squares.mean() == Approx(5));
}

TEST_CASE("sums of losses of PyTorch in C++") {
  const Variable<float> logits = Tensor<float>::from({2, 2}, {0, 1, 2, 0});
  const auto labels = arange<std::int32_t>(2);
  const auto target = Tensor<float>::zeros({2, 2});
  // begin: loss_sums
  const auto loss = 0.5 * (cross_entropy(logits, labels) + cross_entropy(transpose(logits, 0, 1), labels));
  const Variable<float> total = mse_loss(logits, target).sum;  // a Variable of one element is a loss too
  const auto penalised = loss + 0.01 * mean(square(logits));
  // end
  CHECK(loss.mean() == Approx((std::log(1 + std::exp(1)) + 2 * std::log(1 + std::exp(2)) + std::log(1 + std::exp(1))) / 4));
  CHECK(total.value().item() == 5);
  CHECK(penalised.mean() == Approx(loss.mean() + 0.0125));
}

TEST_CASE("the loop of PyTorch in C++") {
  on_one_rank([](const Group& world) {
    trainer::Run run(world, short_run());
    // begin: setup
    Net net(run.context());
    optim::AdamW optimizer(net, {.learning_rate = 1e-3, .weight_decay = 0.01});
    run.add(net, optimizer);  // the replicas begin with the same values and stay equal
    const data::Loader rows(table(), run.batch());
    // end
    // begin: loop
    for (auto& step : run.steps(rows)) {
      for (const auto& batch : step.batches()) {
        step.backward(batch, [&] { return cross_entropy(net.forward(batch.x), batch.labels); });
      }
      step.update(optimizer);
    }
    // end
    CHECK(run.done() == 2);
  });
}

TEST_CASE("options of a run") {
  // begin: options
  const trainer::Options options{.until = Epochs{20},
                                 .batch_size = 256,       // of all ranks together
                                 .micro_batch_size = 32,  // of one rank: micro-batches are accumulated
                                 .seed = 42,              // for everything, the same on all ranks
                                 .learning_rate = optim::step_decay(0.1, 1000, 0.5),
                                 .clip_norm = 1};
  // end
  CHECK(options.learning_rate(1000) == Approx(0.05));
}

TEST_CASE("parameter groups") {
  Net net;
  net.initialize();
  // begin: groups
  optim::AdamW optimizer(net, {.weight_decay = 0.1,
                               .decay = optim::Decay::matrices,  // not on biases and norms
                               .groups = {{.pattern = "output.*", .learning_rate_factor = 0.1}}});
  // end
  CHECK(optimizer.learning_rate() == 1e-3);
}

TEST_CASE("half precision") {
  // begin: amp
  struct HalfNet : nn::Module<MixedBfloat16> {  // MixedFloat16 also scales the loss
    Value forward(const Stream& x) const { return output.forward(norm.forward(x)); }

    LayerNorm norm{*this, "norm", {.width = 4}};  // computed in float
    Linear output{*this, "output", {.in = 4, .out = 3}};
  };
  // end
  HalfNet net;
  net.initialize();
  CHECK(net.forward(Tensor<float>::full({1, 4}, 1)).shape() == Shape{1, 3});
}

TEST_CASE("evaluation of PyTorch in C++") {
  on_one_rank([](const Group& world) {
    trainer::Run run(world, short_run());
    Net net(run.context());
    run.add(net);
    // begin: no_grad
    net.eval();                                                // this module and its submodules
    const auto y = net.forward(Tensor<float>::zeros({1, 4}));  // without a Tape nothing is recorded
    net.train();
    // end
    CHECK(y.slot() == nullptr);

    struct Classifier {
      using Device = Cpu;
      const Net& net;
      Model& model() const { return net.model(); }
      Variable<float> forward(const data::Rows& rows) const { return net.forward(rows.x); }
    };
    const Classifier classifier{net};
    const data::Table test = table();
    // begin: evaluate
    const Mean right = run.evaluate(classifier, test, [](const auto& logits, const data::Rows& rows) {
      return accuracy(logits, rows.labels);  // of this batch; evaluate() averages over batches and ranks
    });
    // end
    CHECK(right.weight == 4);
  });
}

TEST_CASE("data of PyTorch in C++") {
  on_one_rank([](const Group& world) {
    trainer::Run run(world, short_run());
    // begin: loader
    const data::Loader loader(Waves{}, {.batch = run.batch(), .workers = 2},
                              [](const std::vector<float>& items, std::int64_t first_sample) {
                                const auto rows = static_cast<std::int64_t>(items.size());
                                return data::Rows{.x = Tensor<float>::from({rows, 1}, items), .first_sample = first_sample};
                              });
    const data::Rows batch = loader.load(7);  // any step: the loader keeps no position
    // end
    CHECK(batch.size() == 4);
    // begin: split
    const auto [training, test] = table().split({.test = 0.25, .seed = 1, .standardize = true});
    // end
    CHECK(training.size() == 3);
    CHECK(test.size() == 1);
  });
}

TEST_CASE("weights and checkpoints of PyTorch in C++") {
  const tests::TemporaryFolder folder;
  const std::string path = (folder.path() / "net.safetensors").string();
  Net net, other;
  net.initialize();
  // begin: weights
  nn::save_weights<float>(net, path);  // safetensors, with the names of a state dict
  nn::load_weights<float>(other, path);
  // end
  CHECK(other.output.bias.value().at(0) == net.output.bias.value().at(0));
  // begin: checkpoints
  const trainer::Options options{.checkpoints = {.directory = folder.path() / "run"},
                                 .checkpoint_every = Epochs{1}};  // run.steps() goes on from the newest one
  // end
  CHECK(options.resume == "auto");
}

TEST_CASE("parameters of PyTorch in C++") {
  Net net;
  // begin: freeze
  net.hidden.weight.freeze();  // permanently; call it before initialization. It gets no optimizer state
  // end
  net.initialize();
  // begin: named_parameters
  for (int i = 0; i < net.store().num_parameters(); ++i) {
    const ParameterInfo& parameter = net.store().parameter(i);
    log(Severity::debug, "{} {}", parameter.name, parameter.shape);
  }
  const std::int64_t elements = net.store().num_elements();
  // end
  CHECK(elements == 4 * 64 + 64 + 64 * 3 + 3);
  const Tape tape;
  // begin: frozen
  const FrozenParameters frozen(net.output);  // frozen while this object lives; gradients still reach the input
  // end
  CHECK(net.output.weight.variable().slot() == nullptr);
  CHECK(net.hidden.bias.master().slot() != nullptr);
}

TEST_CASE("an average of the weights") {
  Net net;
  net.initialize();
  // begin: ema
  optim::ExponentialMovingAverage average(net, {.decay = 0.999});
  average.update();  // after each step
  average.swap();    // evaluate; then swap() back
  // end
  CHECK(average.swapped_in());
}

TEST_CASE("ranks of PyTorch in C++") {
  // begin: ddp
  const auto train = [](const Group& world) {
    std::vector<float> numbers{1, 2, 3};
    world.all_reduce(std::span(numbers), ReduceOp::sum).wait_on_host();
    world.broadcast(std::span(numbers), 0).wait_on_host();
    world.barrier();
    return numbers[0] == static_cast<float>(world.size()) ? 0 : 1;
  };
  const int exit_code = launch(BackendKind::thread, {.ranks = 2}, train);  // or BackendKind::mpi, under mpirun
  // end
  CHECK(exit_code == 0);
}

TEST_CASE("random numbers of PyTorch in C++") {
  // begin: seeds
  const double normal = philox_normal(42, hash_name("noise"), 7);  // number 7 of this stream, the same on all ranks
  // end
  CHECK(normal == philox_normal(42, hash_name("noise"), 7));
}

TEST_CASE("texts of transformers in C++") {
  models::Llama<Float32> model({.layers = 1, .heads = 2, .width = 8, .hidden = 16, .vocabulary = 11});
  model.initialize({.seed = 1});
  // begin: generate
  const std::vector<models::TokenText> prompts{{3, 1, 4}, {7}};
  const auto texts = models::generate(model, prompts, {.count = 20, .temperature = 0.8, .top_p = 0.9, .stop = {2}, .seed = 1});
  // end
  CHECK(texts.size() == 2);
}

TEST_CASE("metrics of PyTorch in C++") {
  // begin: metrics
  monitor::Registry::current().gauge("reward").set(12.5);  // --metrics FILE, or run.add_sink(...)
  // end
  CHECK(monitor::Registry::current().gauge("reward").value() == 12.5);
}

TEST_CASE("training without a loop") {
  on_one_rank([](const Group& world) {
    struct Classifier : nn::Module<Float32> {
      using Module::Module;
      Value forward(const data::Rows& rows) const { return output.forward(rows.x); }
      Loss<float> loss(const Value& y, const data::Rows& rows) const { return cross_entropy(y, rows.labels); }
      Linear output{*this, "output", {.in = 4, .out = 3}};
    };
    trainer::Run run(world, short_run());
    Classifier net(run.context());
    optim::Sgd optimizer(net, {.learning_rate = 0.01});
    const data::Loader rows(table(), run.batch());
    const data::Table test = table();
    // begin: fit
    trainer::fit(run, net, optimizer, rows, {.validate = [&] { return run.evaluate(net, test); }, .patience = 3});
    // end
    CHECK(run.done() == 2);
  });
}
