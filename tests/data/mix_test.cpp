#include "data/images/mix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "ops/threads.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

// Image i is of class i % classes; its pixels differ from those of the others.
ImageDataset images_of(std::int64_t count, const ImageShape& shape, std::int64_t classes) {
  Bytes pixels;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count * shape.numel(); ++i) pixels.push_back(static_cast<std::uint8_t>(i * 7919 % 251));
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(static_cast<std::int32_t>(i % classes));
  return {shape, std::move(pixels), std::move(labels), classes};
}

Floats floats(const Tensor<float>& tensor) { return {tensor.span().begin(), tensor.span().end()}; }

Floats image(const ImageBatch& batch, std::int64_t row) {
  const auto numel = static_cast<std::size_t>(batch.images.numel() / batch.images.dim(0));
  const auto pixels = batch.images.span().subspan(static_cast<std::size_t>(row) * numel, numel);
  return {pixels.begin(), pixels.end()};
}

// All that the ranks read of a step.
struct Read {
  Floats images;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> partner_labels;
  Floats lambda;
  Floats soft_labels;

  bool operator==(const Read&) const = default;
};

Read read_step(const ImageDataset& dataset, ImageLoaderOptions options, std::int64_t step, int ranks,
               std::int64_t micro_batch_size) {
  Read read;
  const auto append = [](auto& to, const auto& tensor) { to.insert(to.end(), tensor.span().begin(), tensor.span().end()); };
  options.batch.count = ranks;
  options.batch.micro_batch_size = micro_batch_size;
  for (options.batch.index = 0; options.batch.index < ranks; ++options.batch.index) {
    const ImageLoader loader(dataset, options);
    for (std::int64_t micro_batch = 0; micro_batch < loader.num_micro_batches(); ++micro_batch) {
      const ImageBatch batch = loader.load(step, micro_batch);
      append(read.images, batch.images);
      append(read.labels, batch.labels);
      append(read.partner_labels, batch.partner_labels);
      append(read.lambda, batch.lambda);
      append(read.soft_labels, batch.soft_labels);
    }
  }
  return read;
}

ImageLoaderOptions everything() {
  return {.batch = {.batch_size = 8, .seed = 9},
          .augmentation = {.random_resized_crop = RandomResizedCrop{},
                           .crop_padding = 2,
                           .horizontal_flip = true,
                           .rotation = 15,
                           .rand_augment = RandAugment{},
                           .brightness = 0.3,
                           .contrast = 0.2,
                           .saturation = 0.5,
                           .hue = 0.1,
                           .random_erasing = RandomErasing{.p = 0.5, .random_values = true},
                           .mixup_alpha = 0.8,
                           .cutmix_alpha = 1,
                           .mix_probability = 0.8}};
}

Mix mix_of(const Augmentation& augmentation, const ImageShape& shape, std::int64_t sample) {
  return drawn_mix(augmentation, shape, 7, sample);
}

}  // namespace

TEST_CASE("mixed samples do not depend on ranks, micro-batches or threads") {
  const ImageDataset dataset = images_of(20, {.height = 32, .width = 32, .channels = 3}, 6);
  for (const std::int64_t step : {0, 2, 100}) {
    const Read whole = read_step(dataset, everything(), step, 1, 0);
    REQUIRE(whole.partner_labels.size() == 8);
    for (const int ranks : {1, 2, 4}) {
      for (const std::int64_t micro_batch_size : {1, 2}) {
        CHECK((read_step(dataset, everything(), step, ranks, micro_batch_size) == whole));
      }
    }
    for (const int threads : {1, 2, 3, 5}) {
      with_threads(threads, [&] { CHECK((read_step(dataset, everything(), step, 1, 0) == whole)); });
    }
  }
}

TEST_CASE("Mixup weighs each image with the one before it in its step") {
  const ImageDataset dataset = images_of(12, {.height = 3, .width = 5, .channels = 3}, 12);
  const ImageLoaderOptions plain{.batch = {.batch_size = 6}, .normalization = {.mean = {0.5f, 0.4f, 0.3f}, .std = {2, 1, 1}}};
  ImageLoaderOptions mixing = plain;
  mixing.augmentation.mixup_alpha = 1;
  for (const std::int64_t step : {0, 3}) {
    const ImageBatch before = ImageLoader(dataset, plain).load(step);
    const ImageBatch batch = ImageLoader(dataset, mixing).load(step);
    CHECK_FALSE(before.partner_labels.defined());
    CHECK_FALSE(before.lambda.defined());
    CHECK_FALSE(before.soft_labels.defined());
    REQUIRE(batch.soft_labels.shape() == Shape{6, 12});
    for (std::int64_t row = 0; row < 6; ++row) {
      const std::int64_t partner = (row + 5) % 6;
      const float lambda = batch.lambda.data()[row];
      CHECK(lambda > 0);
      CHECK(lambda < 1);
      CHECK(batch.labels.data()[row] == before.labels.data()[row]);
      CHECK(batch.partner_labels.data()[row] == before.labels.data()[partner]);
      const Floats own = image(before, row);
      const Floats other = image(before, partner);
      const Floats got = image(batch, row);
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == Approx(lambda * own[i] + (1 - lambda) * other[i]).margin(1e-6));
      for (std::int64_t label = 0; label < 12; ++label) {
        const float expected = label == batch.labels.data()[row]           ? lambda
                               : label == batch.partner_labels.data()[row] ? 1 - lambda
                                                                           : 0;
        CHECK(batch.soft_labels.data()[row * 12 + label] == expected);
      }
    }
  }
}

TEST_CASE("CutMix puts a box of the image before it in its place") {
  const ImageShape shape{.height = 12, .width = 10, .channels = 3};
  const ImageDataset dataset = images_of(12, shape, 12);
  const ImageLoaderOptions plain{.batch = {.batch_size = 6}};
  ImageLoaderOptions mixing = plain;
  mixing.augmentation.cutmix_alpha = 1;
  const ImageBatch before = ImageLoader(dataset, plain).load(1);
  const ImageBatch batch = ImageLoader(dataset, mixing).load(1);
  int cut = 0;
  for (std::int64_t row = 0; row < 6; ++row) {
    const Mix mix = drawn_mix(mixing.augmentation, shape, 1, batch.first_sample + row);
    const Floats own = image(before, row);
    const Floats other = image(before, (row + 5) % 6);
    const Floats got = image(batch, row);
    std::int64_t of_partner = 0;
    for (std::int64_t y = 0; y < shape.height; ++y) {
      for (std::int64_t x = 0; x < shape.width; ++x) {
        const bool inside =
            y >= mix.box.top && y < mix.box.top + mix.box.height && x >= mix.box.left && x < mix.box.left + mix.box.width;
        of_partner += inside ? 1 : 0;
        for (std::int64_t channel = 0; channel < 3; ++channel) {
          const auto at = static_cast<std::size_t>((y * shape.width + x) * 3 + channel);
          CHECK(got[at] == (inside ? other[at] : own[at]));
        }
      }
    }
    cut += of_partner > 0 ? 1 : 0;
    CHECK(batch.lambda.data()[row] == Approx(1 - static_cast<double>(of_partner) / 120));
    CHECK(batch.partner_labels.data()[row] == before.labels.data()[(row + 5) % 6]);
  }
  CHECK(cut >= 3);
}

// By hand from torchvision's CutMix: half the extents are rounded down, and boxes end with the image.
TEST_CASE("a box around a pixel has its share of the area and ends with the image") {
  const ImageShape shape{.height = 8, .width = 12, .channels = 1};
  CHECK(box_around(4, 6, 0.25, shape) == Box{.top = 2, .left = 3, .height = 4, .width = 6});
  CHECK(box_around(0, 0, 0.25, shape) == Box{.top = 0, .left = 0, .height = 2, .width = 3});
  CHECK(box_around(7, 11, 0.25, shape) == Box{.top = 5, .left = 8, .height = 3, .width = 4});
  CHECK(box_around(4, 6, 1, shape) == Box{.top = 0, .left = 0, .height = 8, .width = 12});
  CHECK(box_around(4, 6, 0.5, shape) == Box{.top = 2, .left = 2, .height = 4, .width = 8});  // 2.83 and 4.24 to each side
  CHECK(box_around(4, 6, 0, shape) == Box{.top = 4, .left = 6, .height = 0, .width = 0});
  CHECK(box_around(0, 0, 1, {.height = 1, .width = 1, .channels = 1}) == Box{});
}

TEST_CASE("shares are those of a Beta distribution") {
  for (const double alpha : {0.05, 0.2, 1.0, 5.0, 200.0}) {
    double sum = 0;
    double squares = 0;
    constexpr int samples = 4000;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const double share = drawn_share(alpha, 7, sample);
      REQUIRE(share >= 0);
      REQUIRE(share <= 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    INFO("alpha " << alpha);
    CHECK(sum / samples == Approx(0.5).margin(5 * std::sqrt(variance / samples)));
    // The fourth moment is below 3 variance^2.
    CHECK(squares / samples == Approx(variance).margin(5 * variance * std::sqrt(2.0 / samples)));
  }
  int below = 0;
  for (std::int64_t sample = 0; sample < 4000; ++sample) below += drawn_share(1, 3, sample) < 0.1 ? 1 : 0;
  CHECK(std::abs(below - 400) < 5 * 19);  // evenly spread; standard deviation 19
}

TEST_CASE("the least alpha leaves one of two images nearly whole") {
  int own = 0;
  for (std::int64_t sample = 0; sample < 1000; ++sample) {
    const double share = drawn_share(1e-3, 7, sample);
    REQUIRE(std::min(share, 1 - share) >= 0);
    own += share > 0.5 ? 1 : 0;
    CHECK((share < 0.5 || share > 0.5));
  }
  CHECK(std::abs(own - 500) < 5 * 16);
}

TEST_CASE("with both, each of Mixup and CutMix is taken equally often, of those that are mixed") {
  const ImageShape shape{.height = 32, .width = 32, .channels = 1};
  int boxes = 0;
  int mixed = 0;
  for (std::int64_t sample = 0; sample < 2000; ++sample) {
    const Mix mix = mix_of({.mixup_alpha = 1, .cutmix_alpha = 1, .mix_probability = 0.6}, shape, sample);
    boxes += mix.in_box ? 1 : 0;
    mixed += mix.in_box || mix.lambda < 1 ? 1 : 0;
    CHECK_FALSE(mix_of({.mixup_alpha = 1}, shape, sample).in_box);
    CHECK(mix_of({.cutmix_alpha = 1}, shape, sample).in_box);
    CHECK(mix_of({.mixup_alpha = 1, .mix_probability = 0}, shape, sample).lambda == 1);
  }
  CHECK(std::abs(mixed - 1200) < 5 * 22);
  CHECK(std::abs(boxes - 600) < 5 * 21);
}

TEST_CASE("images that are not mixed keep their own label alone") {
  const ImageDataset dataset = images_of(8, {.height = 4, .width = 4, .channels = 1}, 3);
  const ImageLoaderOptions plain{.batch = {.batch_size = 8}};
  ImageLoaderOptions mixing = plain;
  mixing.augmentation.mixup_alpha = 1;
  mixing.augmentation.mix_probability = 0;
  const ImageBatch before = ImageLoader(dataset, plain).load(0);
  const ImageBatch batch = ImageLoader(dataset, mixing).load(0);
  CHECK(floats(batch.images) == floats(before.images));
  CHECK(floats(batch.lambda) == Floats(8, 1.0f));
  for (std::int64_t row = 0; row < 8; ++row) CHECK(batch.soft_labels.data()[row * 3 + batch.labels.data()[row]] == 1);
}

TEST_CASE("a batch of one image is mixed with itself") {
  const ImageDataset dataset = images_of(3, {.height = 4, .width = 4, .channels = 1}, 3);
  const ImageLoaderOptions plain{.batch = {.batch_size = 1}};
  for (const Augmentation& augmentation : {Augmentation{.mixup_alpha = 1}, Augmentation{.cutmix_alpha = 1}}) {
    ImageLoaderOptions mixing = plain;
    mixing.augmentation = augmentation;
    const ImageBatch batch = ImageLoader(dataset, mixing).load(1);
    const Floats before = floats(ImageLoader(dataset, plain).load(1).images);
    const Floats got = floats(batch.images);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(before[i]));
    CHECK(batch.partner_labels.data()[0] == batch.labels.data()[0]);
    CHECK(batch.soft_labels.data()[batch.labels.data()[0]] == Approx(1));
  }
}

TEST_CASE("images of one pixel are mixed") {
  const ImageDataset dataset = images_of(8, {.height = 1, .width = 1, .channels = 1}, 8);
  ImageLoaderOptions options = everything();
  options.augmentation.crop_padding = 0;
  const Read whole = read_step(dataset, options, 1, 1, 0);
  CHECK((read_step(dataset, options, 1, 4, 1) == whole));
  CHECK(std::ranges::all_of(whole.images, [](float value) { return std::isfinite(value); }));
}

TEST_CASE("in sequential order the last batch mixes the images that it has") {
  const ImageDataset dataset = images_of(11, {.height = 2, .width = 2, .channels = 1}, 11);
  ImageLoaderOptions options{.batch = {.batch_size = 8}, .order = ImageOrder::sequential, .augmentation = {.mixup_alpha = 1}};
  const Read whole = read_step(dataset, options, 1, 1, 0);
  CHECK(whole.partner_labels == std::vector<std::int32_t>{10, 8, 9, no_label, no_label, no_label, no_label, no_label});
  CHECK(std::ranges::all_of(whole.soft_labels.begin() + 3 * 11, whole.soft_labels.end(), [](float x) { return x == 0; }));
  CHECK(std::ranges::all_of(whole.images.begin() + 3 * 4, whole.images.end(), [](float x) { return x == 0; }));
  for (const int ranks : {2, 4}) CHECK((read_step(dataset, options, 1, ranks, 1) == whole));
}

TEST_CASE("the losses of both labels, weighted by lambda, are that of soft labels") {
  const ImageDataset dataset = images_of(8, {.height = 2, .width = 2, .channels = 1}, 5);
  const ImageBatch batch =
      ImageLoader(dataset, {.batch = {.batch_size = 8}, .augmentation = {.mixup_alpha = 1, .cutmix_alpha = 1}}).load(0);
  Tensor<float> values({8, 5});
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data()[i] = static_cast<float>(i * 7 % 11) / 4;
  const Variable<float> logits(values);
  const Variable<float> lambda(batch.lambda);
  const auto of_both =
      sum(lambda * cross_entropy_rows(logits, batch.labels) + (1 - lambda) * cross_entropy_rows(logits, batch.partner_labels));
  const Tensor<float> logarithms = log_softmax(logits).value();
  double of_soft = 0;
  for (std::int64_t i = 0; i < values.numel(); ++i) of_soft -= batch.soft_labels.data()[i] * logarithms.data()[i];
  CHECK(of_both.value().item() == Approx(of_soft));
}

TEST_CASE("mixtures that cannot be are refused") {
  const ImageDataset dataset = images_of(4, {.height = 2, .width = 2, .channels = 1}, 2);
  const auto load_with = [&](const Augmentation& augmentation) {
    return ImageLoader(dataset, {.batch = {.batch_size = 2}, .augmentation = augmentation});
  };
  CHECK_NOTHROW(load_with({.mixup_alpha = 0.2, .cutmix_alpha = 1}));
  CHECK_THROWS_WITH(load_with({.mixup_alpha = -1}), ContainsSubstring("mixup_alpha -1") && ContainsSubstring("[0.001, 1000]"));
  CHECK_THROWS_WITH(load_with({.mixup_alpha = 1e-4}), ContainsSubstring("mixup_alpha"));
  CHECK_THROWS_WITH(load_with({.cutmix_alpha = std::numeric_limits<double>::quiet_NaN()}),
                    ContainsSubstring("cutmix_alpha nan"));
  CHECK_THROWS_WITH(load_with({.mixup_alpha = 1, .mix_probability = 2}), ContainsSubstring("mix_probability 2"));
}
