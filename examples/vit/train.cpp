#include "train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "training/image_classifier.hpp"
#include "trireme/data/images/read_image_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;

namespace {

struct NamedImages {
  data::Images images;
  std::vector<std::string> class_names;  // empty if the data have no names
};

// As the model of --init was trained, if there is one.
data::Resizing resizing_for(const VitRecipe& recipe, std::int64_t size) {
  return recipe.init.empty() ? data::Resizing() : models::image_resizing(recipe.init, size);
}

NamedImages read(const VitRecipe& recipe) {
  if (are_archives(recipe.data)) {
    const models::VisionTransformerOptions options = model_options(recipe, recipe.image_size);
    ArchivedImages of_model{.size = options.image_size, .channels = options.channels};
    if (!recipe.init.empty()) of_model.resizing = resizing_for(recipe, options.image_size);
    return {.images = read_labelled_archives(recipe, of_model), .class_names = {}};
  }
  if (!data::has_class_folders(recipe.data)) {
    require(recipe.image_size == 0,
            "--image-size is for tar archives and for a folder that has a folder for each class; {} is neither", recipe.data);
    return {.images = data::read_images(recipe.data, recipe.test_data), .class_names = {}};
  }
  const models::VisionTransformerOptions options = model_options(recipe, recipe.image_size);
  data::ImageFolderOptions of_folder{.height = options.image_size, .width = options.image_size, .channels = options.channels};
  of_folder.resizing = resizing_for(recipe, options.image_size);
  of_folder.bad_samples = recipe.bad_sample_options();
  data::ImageFolder training = data::read_image_folder(recipe.data, of_folder);
  if (training.class_names != options.labels && std::ranges::is_permutation(training.class_names, options.labels)) {
    of_folder.classes = options.labels;  // the order in which the model's head has them
    training = data::read_image_folder(recipe.data, of_folder);
  }
  of_folder.classes = training.class_names;
  NamedImages read{.images = {.training = std::move(training.images), .test = {}}, .class_names = training.class_names};
  if (!recipe.test_data.empty()) read.images.test = data::read_image_folder(recipe.test_data, of_folder).images;
  return read;
}

// The options of the model, with the classes of the data.
models::VisionTransformerOptions options_for(const VitRecipe& recipe, const NamedImages& data) {
  const data::ImageShape& shape = data.images.training.shape();
  require(shape.height == shape.width, "a vision transformer reads square images, those of {} are {} x {}", recipe.data,
          shape.height, shape.width);
  models::VisionTransformerOptions options = model_options(recipe, shape.height);
  if (is_named(recipe)) options.channels = shape.channels;
  require(options.image_size == shape.height && options.channels == shape.channels,
          "the model reads images of {} x {} x {}, those of {} are {} x {} x {}", options.image_size, options.image_size,
          options.channels, recipe.data, shape.height, shape.width, shape.channels);
  const std::int64_t classes = data.images.training.classes();
  const std::vector<std::string> of_model = options.labels;
  if (!data.class_names.empty() || options.classes != classes) options.labels = data.class_names;
  const bool are_others = !is_named(recipe) && !recipe.init.empty() && !data.class_names.empty() && !of_model.empty() &&
                          options.classes == classes && of_model != data.class_names;
  require(!are_others || recipe.allow_missing,
          "the classes of {} are {}, those of --init {}: --allow-missing trains its head for the others", recipe.data,
          fmt::join(data.class_names, ", "), fmt::join(of_model, ", "));
  options.classes = classes;
  return options;
}

// The normalization with which the model of --init was trained.
data::Normalization normalization_for(const VitRecipe& recipe, const data::ImageDataset& training) {
  const auto known = recipe.init.empty() ? std::nullopt : models::image_normalization(recipe.init);
  if (known) return *known;
  return are_archives(recipe.data) ? usual_normalization(training.shape().channels) : data::normalization_of(training);
}

void note_differences(trainer::Run& run, const nn::LoadedWeights& loaded) {
  if (!loaded.missing.empty()) run.note(fmt::format("not in --init, initial values: {}", fmt::join(loaded.missing, ", ")));
  if (!loaded.unexpected.empty()) run.note(fmt::format("in --init alone, left out: {}", fmt::join(loaded.unexpected, ", ")));
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const VitRecipe& recipe) {
  recipe.check_save(run);
  const NamedImages data = read_on_all(run, [&] { return read(recipe); });
  const auto options = read_on_all(run, [&] { return options_for(recipe, data); });
  recipe.describe_data(run, data::content_of(data.images.training));
  const auto normalization = read_on_all(run, [&] { return normalization_for(recipe, data.images.training); });
  // It depends on --init, which a resumed run may have or not, so it is compared. Checkpoints that lack it accept any.
  const std::string means = fmt::format("{} {}", fmt::join(normalization.mean, " "), fmt::join(normalization.std, " "));
  run.describe("normalization", means, trainer::Differs::refused, means);
  Smoothed<models::VisionTransformer<P, D>> model(options, run.context());
  const std::string name =
      fmt::format("{} layers of width {}, patches of {}", options.layers, options.width, options.patch_size);
  train_classifier(
      run, recipe, name, data.images, normalization, model,
      [&] {
        model.initialize();
        note_differences(run, models::load_pretrained(model, recipe.init, {.allow_missing = recipe.allow_missing}));
      },
      [&] {
        models::save_pretrained(model, recipe.save,
                                {.dtype = recipe.dtype_of_save(), .from = recipe.init, .normalization = normalization});
      },
      [&](const std::string& folder) {
        models::save_pretrained(model, folder, {.from = recipe.init, .normalization = normalization, .weights = false});
      });
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const VitRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const VitRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const VitRecipe&);
