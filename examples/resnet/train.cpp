#include "train.hpp"

#include <fmt/format.h>

#include <array>

#include "trireme/data/content.hpp"
#include "trireme/data/image_loader.hpp"
#include "trireme/data/normalized_images.hpp"
#include "trireme/data/read_images.hpp"
#include "trireme/nn/metrics.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

// A model that learns from targets of which a share is spread over all classes.
template <typename Net>
struct Smoothed : Net {
  using Net::Net;
  auto loss(const typename Net::OutputType& logits, const typename Net::BatchType& batch) const {
    return models::classification_loss(logits, batch, label_smoothing);
  }
  double label_smoothing = 0;
};

template <typename Model>
void train_model(trainer::Run& run, const ResNetRecipe& recipe, const data::Images& images, Model& model) {
  using D = typename Model::Device;
  model.label_smoothing = recipe.label_smoothing;
  const auto normalization = data::normalization_of(images.training);
  const data::ImageLoader loader(images.training,
                                 {.batch = run.batch(), .normalization = normalization, .augmentation = recipe.augmentation});
  recipe.load_weights(run, [&] { nn::load_weights<float>(model, recipe.init); });
  const auto optimizer = optim::make_optimizer<typename Model::Precision, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  const data::ImageShape& shape = images.training.shape();
  run.note(fmt::format("{}: {} parameters; {} images of {} x {} x {} to train on, {} to test; {}, {} images a step",
                       recipe.model, model.store().num_elements(), images.training.count(), shape.height, shape.width,
                       shape.channels, images.test ? images.test->count() : 0, ranks_of(run), loader.batch_size()));

  for (auto& step : run.steps(loader)) {
    step.backward(model, batches_on<D>(step));
    step.update(*optimizer);
    if (!images.test || !recipe.validates(run)) continue;
    const auto [loss, right] =
        run.evaluate(model, data::NormalizedImages(*images.test, normalization), [](const auto& logits, const auto& batch) {
          return std::array{mean_of(cross_entropy(logits, batch.labels)), accuracy(logits, batch.labels)};
        });
    run.report({{"validation_loss", loss}, {"validation_accuracy", right}});
  }

  if (run.stopped()) return;
  recipe.save_weights(run, [&] { nn::save_weights<float>(model, recipe.save); });
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const ResNetRecipe& recipe) {
  recipe.check_save(run);
  const data::Images images = read_on_all(run, [&] { return data::read_images(recipe.data, recipe.test_data); });
  recipe.describe_data(run, data::content_of(images.training));
  const data::ImageShape& shape = images.training.shape();
  const std::int64_t classes = images.training.classes();
  if (recipe.model == "cnn") {
    const models::CnnOptions options{.image = {shape.height, shape.width}, .channels = shape.channels, .classes = classes};
    Smoothed<models::Cnn<P, D>> model(options, run.context());
    train_model(run, recipe, images, model);
  } else {
    auto options = recipe.model == "resnet50" ? models::ResNetOptions::resnet50() : models::ResNetOptions::resnet18();
    options.channels = shape.channels;
    options.classes = classes;
    Smoothed<models::ResNet<P, D>> model(options, run.context());
    train_model(run, recipe, images, model);
  }
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const ResNetRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const ResNetRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const ResNetRecipe&);
