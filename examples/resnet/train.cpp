#include "train.hpp"

#include "training/image_classifier.hpp"

using namespace trireme;

namespace {

template <typename Model>
void train_model(trainer::Run& run, const ResNetRecipe& recipe, const data::Images& images, Model& model) {
  train_classifier(
      run, recipe, recipe.model, images,
      are_archives(recipe.data) ? usual_normalization(images.training.shape().channels)
                                : data::normalization_of(images.training),
      model, [&] { nn::load_weights<float>(model, recipe.init); }, [&] { nn::save_weights<float>(model, recipe.save); });
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const ResNetRecipe& recipe) {
  recipe.check_save(run);
  const data::Images images = read_on_all(run, [&] {
    if (!are_archives(recipe.data)) return data::read_images(recipe.data, recipe.test_data);
    return read_labelled_archives(recipe, {.size = recipe.image_size});
  });
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
