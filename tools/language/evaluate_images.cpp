#include "evaluate_images.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "model_folder.hpp"
#include "trireme/data/images/read_image_folder.hpp"
#include "trireme/data/images/read_images.hpp"
#include "trireme/data/loaders/evaluation_batches.hpp"
#include "trireme/data/sources/batch_share.hpp"
#include "trireme/data/sources/on_device.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/base/metrics.hpp"

using namespace trireme;

namespace {

// Reads this rank's share of the images. The labels are the class indices of the model.
data::ImageDataset read_share(const Group& world, const EvaluateProgram& program, const ModelFolder& folder_of_model,
                              const models::VisionTransformerOptions& model) {
  const std::string& path = program.images;
  if (data::has_class_folders(path)) {
    data::ImageFolder folder =
        data::read_image_folder(path, {.height = model.image_size,
                                       .width = model.image_size,
                                       .channels = model.channels,
                                       .classes = model.labels,
                                       .resizing = models::image_resizing(folder_of_model.path, model.image_size),
                                       .index = world.rank(),
                                       .count = world.size()});
    require(folder.images.classes() == model.classes, "{} has folders of {} classes, the model knows {}", path,
            folder.images.classes(), model.classes);
    return std::move(folder.images);
  }
  const data::ImageDataset images = data::read_test_images(path);
  const data::ImageShape& shape = images.shape();
  require(shape == data::ImageShape{model.image_size, model.image_size, model.channels},
          "the model reads images of {} x {} x {}, those of {} are {} x {} x {}", model.image_size, model.image_size,
          model.channels, path, shape.height, shape.width, shape.channels);
  require(images.classes() == model.classes, "the images of {} are of {} classes, the model knows {}", path, images.classes(),
          model.classes);
  const Range share = data::share_of(images.count(), world.rank(), world.size());
  return images.part(share.begin, share.count());
}

data::Normalization normalization_of(const Location& folder) {
  std::optional<data::Normalization> known = models::image_normalization(folder);
  if (!known) {
    throw Error({.code = ErrorCode::io,
                 .message = "the model's folder does not say how its images were normalised",
                 .path = folder.string(),
                 .hint = "give it a preprocessor_config.json with \"image_mean\" and \"image_std\" of each channel"});
  }
  return *std::move(known);
}

}  // namespace

template <typename P, typename D>
void evaluate_images(const Group& world, const EvaluateProgram& program, const Location& path,
                     std::optional<std::int64_t> step) {
  ModelFolder folder;
  models::VisionTransformerOptions options;
  std::optional<data::NormalizedImages> images;
  const auto read = [&] {
    folder = read_model_folder(path, {});
    options = models::vit_options(folder.path);
    options.dropout = options.attention_dropout = 0;
    const data::Normalization normalization = normalization_of(folder.path);
    images.emplace(read_share(world, program, folder, options), normalization);
  };
  world.agree(read, "read the images");
  models::VisionTransformer<P, D> model(options);
  world.agree([&] { load_model(model, folder, world); }, "load the model");
  std::array<Mean, 3> means;
  auto& [right, top_5, loss] = means;
  for (const data::ImageBatch& on_host : data::evaluation_batches(*images, {.batch_size = program.batch})) {
    const auto batch = data::on_device<D>(on_host);
    const auto logits = model.logits(batch.images);
    right += accuracy(logits, batch.labels);
    if (options.classes >= 5) top_5 += top_k_accuracy(logits, batch.labels, 5);
    loss += mean_of(cross_entropy(logits, batch.labels));
  }
  all_reduce(world, std::span(means));
  if (world.rank() == 0) fmt::print("{}\n", with_step(line_of_images(right, top_5, loss), step));
  std::fflush(stdout);
}

template void evaluate_images<Float32, TRIREME_DEVICE>(const Group&, const EvaluateProgram&, const Location&,
                                                       std::optional<std::int64_t>);
template void evaluate_images<MixedBfloat16, TRIREME_DEVICE>(const Group&, const EvaluateProgram&, const Location&,
                                                             std::optional<std::int64_t>);
template void evaluate_images<MixedFloat16, TRIREME_DEVICE>(const Group&, const EvaluateProgram&, const Location&,
                                                            std::optional<std::int64_t>);
