#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/models/architectures/classification_loss.hpp"
#include "trireme/models/architectures/cnn.hpp"
#include "trireme/models/architectures/resnet.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/model_context.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

class Order final : public GradientListener {
 public:
  void on_final(int parameter) override { parameters.push_back(parameter); }
  std::vector<int> parameters;
};

// The modules of parameters, in the order in which backward completes their gradients, and in that of the store.
template <typename Model>
void check_order(Model& model, const Shape& images) {
  model.initialize({.seed = 1});
  Order order;
  Tape tape;
  tape.listen(model.store(), order);
  model.loss(Tensor<float>::full(images, 0.5F), Tensor<std::int32_t>::full({images[0]}, 1)).backward();
  const auto modules = [&](std::span<const int> parameters) {
    std::vector<std::string> names;
    for (const int parameter : parameters) {
      const std::string& name = model.store().parameter(parameter).name;
      const std::string module = name.substr(0, name.rfind('.'));
      if (names.empty() || names.back() != module) names.push_back(module);
    }
    return names;
  };
  CHECK(modules(order.parameters) == modules(model.store().layout()));
}

}  // namespace

TEST_CASE("backward of a CNN completes gradients in the order of the store: buckets can start early") {
  models::Cnn<Float32> model({.image = 8, .first = 4, .second = 4, .hidden = 8});
  check_order(model, {2, 8, 8, 1});
}

namespace {

// The results of a training pass: losses, gradients, running statistics.
template <typename Model, typename Options>
std::vector<float> results(const Options& options, const Shape& images, int stages) {
  Model model(options, ModelContext{.chunks = stages});
  CHECK(model.stages().size() == static_cast<std::size_t>(stages));
  model.initialize({.seed = 1});
  Tensor<float> pixels(images);
  for (std::int64_t index = 0; index < pixels.numel(); ++index) pixels.data()[index] = static_cast<float>(index % 7) / 7;
  const auto labels = Tensor<std::int32_t>::full({images[0]}, 1);
  const Loss<float> loss = [&] {
    Tape tape({.seed = 3});
    const auto recorded = model.loss(pixels, labels);
    recorded.backward();
    return recorded;
  }();
  model.eval();
  std::vector<float> all{loss.sum.value().item(), nn::loss_of(model, {.images = pixels, .labels = labels}).sum.value().item()};
  const auto append = [&all](const Tensor<float>& values) {
    all.insert(all.end(), values.span().begin(), values.span().end());
  };
  for (int index = 0; index < model.store().num_parameters(); ++index) append(model.store().template gradient<float>(index));
  append(model.store().buffers().template values<float>());
  return all;
}

}  // namespace

TEST_CASE("a CNN and a ResNet in several stages compute what they do in one, bit by bit") {
  const models::CnnOptions cnn{.image = 8, .first = 4, .second = 4, .hidden = 8, .dropout = 0.2};
  auto without_norm = cnn;
  without_norm.batch_norm = false;
  for (const auto& options : {cnn, without_norm}) {
    const auto in_one = results<models::Cnn<Float32>>(options, {2, 8, 8, 1}, 1);
    for (const int stages : {2, 4}) CHECK(results<models::Cnn<Float32>>(options, {2, 8, 8, 1}, stages) == in_one);
  }
  const models::ResNetOptions resnet{.stem = models::ResNetOptions::Stem::imagenet, .widths = {16, 32}, .blocks = {1, 2}};
  const auto in_one = results<models::ResNet<Float32>>(resnet, {2, 16, 16, 3}, 1);
  for (const int stages : {2, 5}) CHECK(results<models::ResNet<Float32>>(resnet, {2, 16, 16, 3}, stages) == in_one);
}

namespace {

using Values = std::map<std::string, std::vector<float>>;  // by name

std::vector<float> elements(const Tensor<float>& values) { return {values.span().begin(), values.span().end()}; }

data::ImageBatch batch_of(std::int64_t first_sample, const Shape& images) {
  data::ImageBatch batch{.images = Tensor<float>(images),
                         .labels = Tensor<std::int32_t>({images[0]}),
                         .first_sample = first_sample,
                         .valid = images[0]};
  for (std::int64_t index = 0; index < batch.images.numel(); ++index) {
    batch.images.data()[index] =
        static_cast<float>(philox_normal(1, static_cast<std::uint64_t>(first_sample), static_cast<std::uint64_t>(index)));
  }
  for (std::int64_t row = 0; row < images[0]; ++row) {
    batch.labels.data()[row] = static_cast<std::int32_t>((first_sample + row) % 10);
  }
  return batch;
}

// A batch's labels after Mixup.
data::ImageBatch softened(data::ImageBatch batch) {
  const std::int64_t rows = batch.labels.numel();
  batch.soft_labels = Tensor<float>::zeros({rows, 10});
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.soft_labels.at(row, batch.labels.at(row)) += 0.75F;
    batch.soft_labels.at(row, batch.labels.at(row == 0 ? rows - 1 : row - 1)) += 0.25F;
  }
  return batch;
}

// Weights, running statistics and logits after three steps of two micro-batches.
template <typename Model, typename Options>
Values trained(const Options& options, const Shape& images, int ranks, bool soft = false) {
  Values all;
  std::mutex mutex;
  const auto train = [&](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = ranks});
    Model model(options, parallel::model_context(mesh));
    model.initialize();
    parallel::DataParallel replicas(model, mesh);
    optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.05, .momentum = 0.9});
    for (std::int64_t number = 0; number < 3; ++number) {
      const std::int64_t first = number * 2 * images[0];
      std::vector batches{batch_of(first, images), batch_of(first + images[0], images)};
      if (soft) batches = {softened(batches[0]), softened(batches[1])};
      parallel::Step step = replicas.begin(number, 2);
      step.backward(model, batches);
      step.update(optimizer);
    }
    model.eval();
    const auto logits = elements(model.logits(batch_of(1000, images).images).value());
    const std::lock_guard lock(mutex);
    all["logits"] = logits;
    FlatStore& store = model.store();
    for (int index = 0; index < store.num_parameters(); ++index) {
      all[store.parameter(index).name] = elements(store.template read_values<float>(index));
    }
    for (int index = 0; index < store.buffers().size(); ++index) {
      all[store.buffers().info(index).name] = elements(store.buffers().template read_values<float>(index));
    }
  };
  testing::run_ranks(ranks, train, {.threads_per_rank = 1});  // their number decides how convolutions sum
  return all;
}

}  // namespace

TEST_CASE("a CNN and a ResNet train in a pipeline as on one rank, bit by bit") {
  const models::CnnOptions cnn{.image = 8, .first = 4, .second = 4, .hidden = 8, .dropout = 0.2};
  CHECK(trained<models::Cnn<Float32>>(cnn, {3, 8, 8, 1}, 2) == trained<models::Cnn<Float32>>(cnn, {3, 8, 8, 1}, 1));
  const models::ResNetOptions resnet{.widths = {16, 32}, .blocks = {1, 1}};
  CHECK(trained<models::ResNet<Float32>>(resnet, {3, 8, 8, 3}, 2) == trained<models::ResNet<Float32>>(resnet, {3, 8, 8, 3}, 1));
}

TEST_CASE("soft labels train a CNN and a ResNet in a pipeline as on one rank, and not as hard labels do") {
  const models::CnnOptions cnn{.image = 8, .first = 4, .second = 4, .hidden = 8, .dropout = 0.2};
  const auto alone = trained<models::Cnn<Float32>>(cnn, {3, 8, 8, 1}, 1, true);
  CHECK(trained<models::Cnn<Float32>>(cnn, {3, 8, 8, 1}, 2, true) == alone);
  CHECK(trained<models::Cnn<Float32>>(cnn, {3, 8, 8, 1}, 1, false) != alone);
  const models::ResNetOptions resnet{.widths = {16, 32}, .blocks = {1, 1}};
  CHECK(trained<models::ResNet<Float32>>(resnet, {3, 8, 8, 3}, 2, true) ==
        trained<models::ResNet<Float32>>(resnet, {3, 8, 8, 3}, 1, true));
}

namespace {

// Logits and soft labels of three images, for which torch gives what is expected below.
Tensor<float> three_logits() {
  Tensor<float> logits({3, 4});
  for (std::int64_t i = 0; i < 12; ++i) logits.data()[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i)));
  return logits;
}

data::ImageBatch three_images() {
  return {.images = {},
          .labels = Tensor<std::int32_t>::from({3}, {0, 2, 2}),
          .soft_labels = Tensor<float>::from({3, 4}, {0.7F, 0.3F, 0, 0, 0, 0, 1, 0, 0.25F, 0.25F, 0.5F, 0})};
}

}  // namespace

TEMPLATE_TEST_CASE("the loss of a model of images is torch's cross-entropy with soft labels, where the batch has them", "",
                   (models::Cnn<Float32>), (models::ResNet<Float32>)) {
  const auto model = [] {
    if constexpr (std::is_same_v<TestType, models::Cnn<Float32>>) {
      return std::make_unique<TestType>(models::CnnOptions{.image = 8, .first = 4, .second = 4, .hidden = 8, .classes = 4});
    } else {
      return std::make_unique<TestType>(models::ResNetOptions{.widths = {4}, .blocks = {1}, .classes = 4});
    }
  }();
  const Variable<float> logits(three_logits());
  data::ImageBatch batch = three_images();
  std::vector<float> gradient;
  {
    const Tape tape;
    const auto watched = watch(three_logits(), [&](const Tensor<float>& d) { gradient = elements(d); });
    const Loss<float> loss = model->loss(watched, batch);
    CHECK(loss.mean() == Approx(1.3454310126927584));
    loss.backward();
  }
  const std::vector<double> wanted{-0.175844044252,  0.0506797673814,  0.0962645398788,  0.0288997369913,
                                   0.0239892668187,  0.0719650912893,  -0.17580512929,   0.0798507711821,
                                   -0.0548189729392, -0.0528783170481, -0.0673412655851, 0.175038555572};
  REQUIRE(gradient.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(gradient[i] == Approx(wanted[i]).margin(1e-7));
  CHECK(models::classification_loss(logits, batch, 0.1).mean() == Approx(1.3716246613461314));

  batch.labels.at(2) = data::no_label;  // the last row holds no image: the batch of the first two
  const Loss<float> of_two = model->loss(logits, batch);
  CHECK(of_two.target_weight.item() == 2);
  CHECK(of_two.nominal_targets == 3);
  CHECK(of_two.mean() == Approx(1.1090076779325457));
  CHECK(models::classification_loss(logits, batch, 0.1).mean() == Approx(1.155380712505705));

  batch = three_images();
  batch.labels = {};
  CHECK(model->loss(logits, batch).mean() == Approx(1.3454310126927584));
  batch = three_images();
  batch.soft_labels = {};
  CHECK(model->loss(logits, batch).mean() == cross_entropy(logits, batch.labels).mean());
  CHECK(models::classification_loss(logits, batch, 0.1).mean() ==
        cross_entropy(logits, batch.labels, {.label_smoothing = 0.1}).mean());
}

TEST_CASE("soft labels or labels of another shape are an error that names both shapes") {
  const Variable<float> logits(three_logits());
  data::ImageBatch batch = three_images();
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 4}, Shape{12}}) {
    batch.soft_labels = Tensor<float>::zeros(shape);
    CHECK_THROWS_WITH(models::classification_loss(logits, batch),
                      ContainsSubstring("soft labels " + shape.str() + " for logits [3, 4]"));
  }
  batch = three_images();
  batch.labels = Tensor<std::int32_t>::zeros({2});
  CHECK_THROWS_WITH(models::classification_loss(logits, batch), ContainsSubstring("labels [2] for logits [3, 4]"));
}

TEMPLATE_TEST_CASE("soft labels have the master type of a mixed model", "", MixedBfloat16, MixedFloat16) {
  using T = typename TestType::Compute;
  Tensor<T> logits({3, 4});
  for (std::int64_t i = 0; i < 12; ++i) logits.data()[i] = static_cast<T>(three_logits().data()[i]);
  const models::Cnn<TestType> model({.image = 8, .first = 4, .second = 4, .hidden = 8, .classes = 4});
  const Loss<float> loss = model.loss(Variable<T>(logits), three_images());
  CHECK(loss.mean() == Approx(1.3454310126927584).epsilon(5e-3));
}

TEST_CASE("a ResNet is cut where its convolutions multiply equally often") {
  const auto cut = [](models::ResNetOptions options, int stages) {
    options.widths = {16, 32, 64, 128};
    std::vector<std::int64_t> counts;
    const models::ResNet<Float32> model(options, ModelContext{.chunks = stages});
    for (const Range& stage : model.stages()) counts.push_back(stage.count());
    return counts;
  };
  CHECK(cut(models::ResNetOptions::resnet18(), 2) == std::vector<std::int64_t>{5, 5});
  CHECK(cut(models::ResNetOptions::resnet18(), 4) == std::vector<std::int64_t>{3, 2, 2, 3});
  CHECK(cut(models::ResNetOptions::resnet50(), 2) == std::vector<std::int64_t>{9, 9});
}

TEST_CASE("a ResNet of basic blocks and one of bottlenecks have torchvision's parameters") {
  const auto count = [](models::ResNetOptions options) {
    options.stem = models::ResNetOptions::Stem::imagenet;
    options.classes = 1000;
    return models::ResNet<Float32>(options).store().num_elements();
  };
  CHECK(count(models::ResNetOptions::resnet18()) == 11'689'512);
  CHECK(count(models::ResNetOptions::resnet50()) == 25'557'032);
}

TEST_CASE("a ResNet with the stem for large images reads them") {
  models::ResNet<Float32> model({.block = models::ResNetOptions::Block::bottleneck,
                                 .stem = models::ResNetOptions::Stem::imagenet,
                                 .widths = {4, 8},
                                 .blocks = {1, 2}});
  model.initialize({.seed = 1});
  CHECK(model.logits(Tensor<float>::full({2, 40, 36, 3}, 0.5F)).shape() == Shape{2, 10});
  CHECK_THROWS_AS(model.logits(Tensor<float>::full({2, 40, 36, 1}, 0.5F)), Error);
}
