// Trains a vision transformer, from scratch or from a folder of transformers, on one rank or on many: see train_vit --help and
// docs/train_vit.md.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "train.hpp"
#include "trireme/core/error.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;
using trainer::Differs;

namespace {

using Options = models::VisionTransformerOptions;

const std::map<std::string, Options>& model_sizes() {
  static const std::map<std::string, Options> sizes{{"vit:tiny", Options::tiny()},
                                                    {"vit:small", Options::small()},
                                                    {"vit:base", Options::base()},
                                                    {"vit:large", Options::large()}};
  return sizes;
}

std::vector<std::string> names_of_sizes() {
  std::vector<std::string> names;
  for (const auto& [name, options] : model_sizes()) names.push_back(name);
  return names;
}

void check(const VitRecipe& recipe) {
  require(!recipe.data.empty(), "--data is missing: name a folder of images");
  require(!recipe.model.empty() || !recipe.init.empty(), "--model or --init is missing: name a folder of transformers, or {}",
          fmt::join(names_of_sizes(), ", "));
  require(recipe.image_size >= 0 && recipe.patch_size >= 0, "--image-size {} and --patch-size {} are numbers of pixels",
          recipe.image_size, recipe.patch_size);
  require(recipe.patch_size == 0 || is_named(recipe), "--patch-size is for a --model by name; a folder has its own");
  require(recipe.image_size == 0 || is_named(recipe), "--image-size is for a --model by name; a folder has its own");
  require(!recipe.allow_missing || !recipe.init.empty(), "--allow-missing is for --init: give that too");
}

}  // namespace

bool is_named(const VitRecipe& recipe) { return model_sizes().contains(recipe.model); }

Options model_options(const VitRecipe& recipe, std::int64_t image_size) {
  const std::string& model = recipe.model.empty() ? recipe.init : recipe.model;
  if (!is_named(recipe)) {
    require(!model.starts_with("vit:"), "--model {}: use one of {}, or a folder of transformers", model,
            fmt::join(names_of_sizes(), ", "));
    return models::vit_options(model);
  }
  Options options = model_sizes().at(model);
  if (image_size > 0) options.image_size = image_size;
  const std::int64_t of_images = options.image_size < 64 ? 4 : 16;
  options.patch_size = recipe.patch_size > 0 ? recipe.patch_size : of_images;
  return options;
}

void VitRecipe::add_to(trainer::CommandLine& line) {
  optimizer_options = {
      .learning_rate = 5e-4, .weight_decay = 0.05, .beta1 = 0.9, .beta2 = 0.999, .decay = optim::Decay::matrices};
  Recipe::add_to(line,
                 "a folder with MNIST's files, a file or folder in CIFAR-10's binary format (data_batch_*.bin), a folder with "
                 "one of PNG and JPEG files for each class, or tar archives as train-{000..099}.tar");
  add_classes(line);
  add_archives(line);
  add_validation(line);
  add_test_images(line);
  add_precision(line);
  line.add("model", model,
           fmt::format("{}; or a folder of transformers, whose config.json says the sizes; not given: --init's",
                       fmt::join(names_of_sizes(), ", ")));
  line.add("image_size", image_size,
           "pixels to which images of tar archives, and of a folder for each class, are resized; 0: the model's");
  line.add("patch_size", patch_size, "of a model by name; 0: 4 of images below 64 pixels, else 16");
  line.add("allow_missing", allow_missing,
           "keep the initial values of tensors that --init lacks or has in another shape: a new head", Differs::allowed);
  line.add("save_dtype", save_dtype, {"float32", "bfloat16", "float16"}, "of the weights in --save", Differs::allowed);
  add_augmentation(line);
  line.after_parsing([this] { check(*this); });
}

int main(int argc, char** argv) {
  trainer::CommandLine line(
      "Trains a vision transformer on images, on one rank or on many: mpirun -n N train_vit --data FOLDER --model NAME");
  VitRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(argc, argv, line, {.until = Steps{1000}, .batch_size = 128, .warmup = 20}, [&](trainer::Run& run) {
    recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); });
  });
}
