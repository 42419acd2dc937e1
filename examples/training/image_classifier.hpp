#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>

#include "training/image_archives.hpp"
#include "training/image_recipe.hpp"
#include "trireme/data/images/normalized_images.hpp"
#include "trireme/data/images/read_images.hpp"
#include "trireme/data/loaders/image_loader.hpp"
#include "trireme/nn/base/metrics.hpp"
#include "trireme/trireme.hpp"

// A model whose loss has label smoothing: a share of each target is spread over all classes.
template <typename Net>
struct Smoothed : Net {
  using Net::Net;
  auto loss(const typename Net::OutputType& logits, const typename Net::BatchType& batch) const {
    return trireme::models::classification_loss(logits, batch, label_smoothing);
  }
  double label_smoothing = 0;
};

// Trains the model on normalised images. load() and save() read --init and write --save; describe(folder) is for
// Recipe::describe_model and may be empty.
template <typename Model, typename Load, typename Save>
void train_classifier(trireme::trainer::Run& run, const ImageRecipe& recipe, const std::string& name,
                      const trireme::data::Images& images, const trireme::data::Normalization& normalization, Model& model,
                      const Load& load, const Save& save, const std::function<void(const std::string& folder)>& describe = {}) {
  using namespace trireme;
  using D = typename Model::Device;
  model.label_smoothing = recipe.label_smoothing;
  const data::Prefetching loader(
      data::ImageLoader(images.training,
                        {.batch = run.batch(), .normalization = normalization, .augmentation = recipe.augmentation}),
      recipe.ahead_of_archives());
  recipe.load_weights(run, load);
  const auto optimizer = optim::make_optimizer<typename Model::Precision, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  const data::ImageShape& shape = images.training.shape();
  run.note(fmt::format("{}: {} parameters; {} images of {} x {} x {} to train on, {} to test; {}, {} images a step", name,
                       model.store().num_elements(), images.training.count(), shape.height, shape.width, shape.channels,
                       images.test ? images.test->count() : 0, ranks_of(run), loader.batch_size()));

  if (describe) recipe.describe_model(run, describe);
  for (auto& step : run.steps(loader)) {
    step.backward(model, step.batches());
    step.update(*optimizer);
    if (!images.test || !recipe.validates(run)) continue;
    const auto [loss, right] =
        run.evaluate(model, data::NormalizedImages(*images.test, normalization), [](const auto& logits, const auto& batch) {
          return std::array{mean_of(cross_entropy(logits, batch.labels)), accuracy(logits, batch.labels)};
        });
    run.report({{"validation_loss", loss}, {"validation_accuracy", right}});
  }

  if (run.stopped()) return;
  recipe.save_weights(run, save);
}
