#include "trainer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <concepts>

#include "trireme/data/content.hpp"
#include "trireme/data/on_device.hpp"
#include "trireme/nn/metrics.hpp"

using namespace trireme;

namespace {

template <typename Model>
std::unique_ptr<Model> make_model(const std::string& name, const data::ImageDataset& images, const ModelContext& context) {
  const data::ImageShape& shape = images.shape();
  if constexpr (std::constructible_from<Model, models::CnnOptions>) {
    return std::make_unique<Model>(
        models::CnnOptions{.image = {shape.height, shape.width}, .channels = shape.channels, .classes = images.classes()},
        context);
  } else {
    auto options = name == "resnet50" ? models::ResNetOptions::resnet50() : models::ResNetOptions::resnet18();
    options.channels = shape.channels;
    options.classes = images.classes();
    return std::make_unique<Model>(options, context);
  }
}

}  // namespace

template <typename Model>
Trainer<Model>::Trainer(const Options& options, const Group& world) : options_(completed(options, world)), world_(world) {
  require_same(world, "option", options_.settings());
  world.agree([this] { open(); }, "open data and files");
}

template <typename Model>
void Trainer<Model>::open() {
  TrainingOptions& training = options_.training;
  images_ = data::read_images(training.data, options_.test_data);
  training.data_content = data::content_of(images_->training);
  normalization_ = data::normalization_of(images_->training);
  loader_ = loader(images_->training, data::ImageOrder::shuffled);
  if (options_.epochs > 0) {
    const double steps = options_.epochs * static_cast<double>(images_->training.count());
    training.steps = static_cast<std::int64_t>(std::ceil(steps / static_cast<double>(training.batch_size)));
  }
  model_ = make_model<Model>(options_.model, images_->training, {.seed = training.seed});
  model_->initialize();
  if (!training.init.empty()) nn::load_weights<float>(*model_, training.init);
}

template <typename Model>
data::ImageLoader Trainer<Model>::loader(const data::ImageDataset& images, data::ImageOrder order) const {
  const bool trains = order == data::ImageOrder::shuffled;
  return {images,
          {.batch = {.batch_size = options_.training.batch_size,
                     .micro_batch_size = options_.training.micro_batch_size,
                     .seed = options_.training.seed,
                     .index = world_.rank(),
                     .count = world_.size()},
           .order = order,
           .normalization = normalization_,
           .augmentation = trains ? options_.augmentation : data::Augmentation()}};
}

template <typename Model>
void Trainer<Model>::run() {
  Training<typename Model::Precision, D> training(options_.training, options_.settings(), ProcessMesh(world_), *model_,
                                                  "images");
  TrainingWork work{.micro_batches = static_cast<int>(loader_->num_micro_batches()),
                    .samples_per_step = options_.training.batch_size,
                    .backward = [this](parallel::Step& step) { backward(step); },
                    .validate = {},
                    .save = [this] { nn::save_weights<float>(*model_, options_.training.save); }};
  if (images_->test) work.validate = [this] { return validate(); };
  print_start();
  training.run(work);
  world_.barrier("end of training");
}

template <typename Model>
void Trainer<Model>::backward(parallel::Step& step) {
  for (std::int64_t micro_batch = 0; micro_batch < loader_->num_micro_batches(); ++micro_batch) {
    const data::ImageBatch batch = loader_->load(step.number(), micro_batch);
    step.backward(batch, [&] {
      return cross_entropy(model_->logits(data::on_device<D>(batch.images)), data::on_device<D>(batch.labels),
                           {.label_smoothing = options_.label_smoothing});
    });
  }
}

// The mean loss and the accuracy of the test images, spread over the ranks.
template <typename Model>
Validation Trainer<Model>::validate() const {
  const data::ImageLoader test = loader(*images_->test, data::ImageOrder::sequential);
  model_->eval();
  std::array<Mean, 2> means;  // the loss, the images whose class was found
  for (std::int64_t step = 0; step < test.steps_per_epoch(); ++step) {
    for (std::int64_t micro_batch = 0; micro_batch < test.num_micro_batches(); ++micro_batch) {
      const data::ImageBatch batch = test.load(step, micro_batch);
      if (batch.valid == 0) continue;
      const Variable<float, D> logits = cast<float>(model_->logits(data::on_device<D>(batch.images)));
      const auto labels = data::on_device<D>(batch.labels);
      const auto loss = cross_entropy(logits, labels);
      means[0] += {static_cast<double>(loss.sum.value().item()), loss.target_weight.item()};
      means[1] += accuracy(logits, labels);
    }
  }
  model_->train();
  all_reduce(world_, means);
  return {.loss = means[0].value(), .accuracy = means[1].value()};
}

template <typename Model>
void Trainer<Model>::print_start() const {
  if (world_.rank() != 0) return;
  const data::ImageShape& shape = images_->training.shape();
  fmt::print("{}: {} parameters; {} images of {} x {} x {} to train on, {} to test; {} rank{}, {} images a step\n",
             options_.model, model_->store().num_elements(), images_->training.count(), shape.height, shape.width,
             shape.channels, images_->test ? images_->test->count() : 0, world_.size(), world_.size() == 1 ? "" : "s",
             options_.training.batch_size);
}

template class Trainer<models::Cnn<Float32, TRIREME_DEVICE>>;
template class Trainer<models::Cnn<MixedBfloat16, TRIREME_DEVICE>>;
template class Trainer<models::Cnn<MixedFloat16, TRIREME_DEVICE>>;
template class Trainer<models::ResNet<Float32, TRIREME_DEVICE>>;
template class Trainer<models::ResNet<MixedBfloat16, TRIREME_DEVICE>>;
template class Trainer<models::ResNet<MixedFloat16, TRIREME_DEVICE>>;
