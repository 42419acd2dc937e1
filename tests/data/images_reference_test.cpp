#include <fmt/format.h>

#include <algorithm>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/data/images/cifar10.hpp"
#include "trireme/data/images/mnist.hpp"
#include "trireme/data/loaders/image_loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

ImageDataset mnist_training() {
  const auto folder = tests::data_folder_or_skip() / "mnist";
  return read_mnist(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz");
}

// images[steps, batch, channels, height, width] of a fixture against the loader's in their own order.
std::vector<std::string> check_batches(const tests::Fixture& fixture, const ImageDataset& dataset) {
  std::vector<std::string> problems;
  const SafetensorsFile file = fixture.tensors();
  const Shape dims = file.at("images").shape;
  const std::int64_t batch_size = dims[1];
  const auto& [height, width, channels] = dataset.shape();
  const auto pixels = file.read_values<std::uint8_t>("images");
  const auto labels = file.read_values<std::int32_t>("labels");
  const Normalization normalization{.mean = fixture.index.at("hyper").at("normalise_mean").get<std::vector<float>>(),
                                    .std = fixture.index.at("hyper").at("normalise_std").get<std::vector<float>>()};
  const ImageLoader loader(
      dataset, {.batch = {.batch_size = batch_size}, .order = ImageOrder::sequential, .normalization = normalization});
  std::vector<float> expected(static_cast<std::size_t>(batch_size * dataset.shape().numel()));
  for (std::int64_t step = 0; step < dims[0]; ++step) {
    const ImageBatch batch = loader.load(step);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t channel = at % channels;
      const std::int64_t pixel = at / channels % (height * width);
      const std::int64_t row = at / dataset.shape().numel();
      const std::int64_t from = ((step * batch_size + row) * channels + channel) * height * width + pixel;
      const auto c = static_cast<std::size_t>(channel);
      expected[i] =
          (static_cast<float>(pixels[static_cast<std::size_t>(from)]) / 255 - normalization.mean[c]) / normalization.std[c];
    }
    const std::string worst = tests::mismatch(batch.images.span(), expected, {.atol = 1e-6, .rtol = 1e-6});
    if (!worst.empty()) problems.push_back(fmt::format("images of batch {}: {}", step, worst));
    if (!std::equal(batch.labels.span().begin(), batch.labels.span().end(), labels.begin() + step * batch_size)) {
      problems.push_back(fmt::format("labels of batch {} differ", step));
    }
  }
  return problems;
}

}  // namespace

TEST_CASE("MNIST is read as everybody knows it") {
  const ImageDataset training = mnist_training();
  CHECK(training.count() == 60'000);
  CHECK(training.shape() == ImageShape{.height = 28, .width = 28, .channels = 1});
  const std::vector<std::int32_t> first = {5, 0, 4, 1, 9};
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(training.label(static_cast<std::int64_t>(i)) == first[i]);
  const Normalization normalization = normalization_of(training);
  CHECK(normalization.mean.at(0) == Approx(0.1307).margin(5e-5));
  CHECK(normalization.std.at(0) == Approx(0.3081).margin(5e-5));
  const auto folder = tests::data_folder_or_skip() / "mnist";
  const ImageDataset test = read_mnist(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz");
  CHECK(test.count() == 10'000);
  CHECK(test.label(0) == 7);
  CHECK_THROWS_WITH(read_mnist(folder / "train-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz"),
                    ContainsSubstring("60000 labels") && ContainsSubstring("had 10000"));
}

TEST_CASE("batches of MNIST and CIFAR-10 are those that PyTorch was given") {
  const ImageDataset mnist = mnist_training();
  const ImageDataset cifar = read_cifar10({tests::data_folder_or_skip() / "cifar10"});
  CHECK(cifar.count() == 4000);
  const auto check = [&](const tests::Fixture& fixture) {
    const auto hyper = fixture.index.value("hyper", nlohmann::json::object());
    if (!hyper.contains("normalise_mean")) throw tests::SkippedFixture{"no batches of a data set of images"};
    if (hyper.contains("source")) throw tests::SkippedFixture{"the images are " + hyper.at("source").get<std::string>()};
    return check_batches(fixture, hyper.at("normalise_mean").size() == 3 ? cifar : mnist);
  };
  CHECK(tests::problems_of("batches", check) == "");
}
