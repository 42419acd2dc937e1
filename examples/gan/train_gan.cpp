// Trains a GAN on images, on one rank or on many: see train_gan --help and docs/train_gan.md.

#include <filesystem>

#include "train.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using trainer::Differs;

namespace {

void check(const GanRecipe& recipe) {
  require(!recipe.data.empty(), "--data is missing: name a folder of images");
  require_count("--latent", recipe.latent, most_width);
  if (recipe.features != 0) require_count("--features", recipe.features, most_width);
  require(recipe.sample_interval >= 0, "--sample-interval {} is below 0", recipe.sample_interval);
  for (const char* name : {".bmp", ".gif", ".jpeg", ".jpg", ".ppm", ".svg", ".tif", ".tiff", ".webp"}) {
    require(std::filesystem::path(recipe.samples).extension() != name, "--samples {}: it is written as PNG, so name it .png",
            recipe.samples);
  }
}

}  // namespace

void GanRecipe::add_to(trainer::CommandLine& line) {
  optimizer = "adam";
  optimizer_options.learning_rate = 2e-4;
  optimizer_options.weight_decay = 0;
  optimizer_options.beta1 = 0.5;
  optimizer_options.beta2 = 0.999;
  Recipe::add_to(
      line,
      "a folder with MNIST's files, a file or folder in CIFAR-10's binary format (data_batch_*.bin), or tar archives of images "
      "as train-{000..099}.tar");
  add_image_size(line);
  add_archives(line);
  add_precision(line);
  line.add("model", model, {"mlp", "dcgan"}, "mlp: linear layers; dcgan: convolutions and batch norm");
  line.add("latent", latent, "random numbers from which an image is made");
  line.add("features", features,
           "width of the hidden layers, 256 for mlp unless given, or channels next to the image, 64 for dcgan");
  line.set_group("Samples");
  line.add("samples", samples, "write 64 images of the generator to this file (PNG), always of the same latents",
           Differs::allowed);
  line.add("sample_interval", sample_interval, "steps between --samples; 0: only before the first and after the last",
           Differs::allowed);
  line.after_parsing([this] { check(*this); });
}

int main(int argc, char** argv) {
  trainer::CommandLine line("Trains a GAN on images, on one rank or on many: mpirun -n N train_gan --data FOLDER");
  GanRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 64, .minimum_learning_rate_ratio = 1, .clip_norm = 0},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); }); });
}
