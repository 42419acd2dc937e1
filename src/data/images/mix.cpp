#include "data/images/mix.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/sources/draws.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t mix_stream = hash_name("trireme.data.mix");
constexpr std::uint64_t share_stream = hash_name("trireme.data.mix.share");

struct MixDraw {
  enum : std::uint64_t { probability, kind, row, column, count };
};

constexpr std::uint64_t gamma_attempts = 63;  // an attempt is rejected about once in twenty
constexpr std::uint64_t places_of_gamma = 2 * gamma_attempts + 2;

// The logarithm of a number drawn from Gamma(alpha, 1) (Marsaglia, Tsang 2000, "A simple method for generating gamma
// variables"). The logarithm avoids underflow for small alpha.
double log_gamma_variate(double alpha, const Draws& draws, std::uint64_t first_place) {
  const double d = alpha + 1 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  double found = d;
  for (std::uint64_t place = first_place; place < first_place + 2 * gamma_attempts; place += 2) {
    const double normal = draws.normal(place);
    const double root = 1 + c * normal;
    if (root <= 0) continue;
    const double cube = root * root * root;
    if (std::log(draws.between(0, 1, place + 1)) >= normal * normal / 2 + d * (1 - cube + std::log(cube))) continue;
    found = d * cube;
    break;
  }
  return std::log(found) + std::log(draws.between(0, 1, first_place + 2 * gamma_attempts)) / alpha;
}

// Mixes line y of an image with that of its partner.
void mix_line(float* own, const float* partner, const Mix& mix, std::int64_t y, const ImageShape& shape) {
  if (!mix.in_box) {
    const std::int64_t values = shape.width * shape.channels;
    for (std::int64_t i = 0; i < values; ++i) own[i] = mix.lambda * own[i] + (1 - mix.lambda) * partner[i];
  } else if (y >= mix.box.top && y < mix.box.top + mix.box.height) {
    const std::int64_t first = mix.box.left * shape.channels;
    std::copy_n(partner + first, mix.box.width * shape.channels, own + first);
  }
}

}  // namespace

bool mixes(const Augmentation& augmentation) { return augmentation.mixup_alpha > 0 || augmentation.cutmix_alpha > 0; }

double drawn_share(double alpha, std::uint64_t seed, std::int64_t sample) {
  const Draws draws(seed, share_stream, sample, 2 * places_of_gamma);
  const double own = log_gamma_variate(alpha, draws, 0);
  const double partner = log_gamma_variate(alpha, draws, places_of_gamma);
  return 1 / (1 + std::exp(partner - own));
}

Mix drawn_mix(const Augmentation& augmentation, const ImageShape& shape, std::uint64_t seed, std::int64_t sample) {
  const Draws draws(seed, mix_stream, sample, MixDraw::count);
  if (draws.between(0, 1, MixDraw::probability) >= augmentation.mix_probability) return {};
  const bool both = augmentation.mixup_alpha > 0 && augmentation.cutmix_alpha > 0;
  const bool in_box = both ? draws.below(2, MixDraw::kind) == 1 : augmentation.cutmix_alpha > 0;
  const double lambda = drawn_share(in_box ? augmentation.cutmix_alpha : augmentation.mixup_alpha, seed, sample);
  if (!in_box) return {.lambda = static_cast<float>(lambda)};
  const Box box =
      box_around(draws.below(shape.height, MixDraw::row), draws.below(shape.width, MixDraw::column), 1 - lambda, shape);
  const double share = static_cast<double>(box.height * box.width) / static_cast<double>(shape.height * shape.width);
  return {.lambda = static_cast<float>(1 - share), .in_box = true, .box = box};
}

void mix(ImageBatch& batch, const Partner& first_partner, std::int64_t classes, const Augmentation& augmentation,
         std::uint64_t seed) {
  const std::int64_t rows = batch.images.dim(0);
  const ImageShape shape{.height = batch.images.dim(1), .width = batch.images.dim(2), .channels = batch.images.dim(3)};
  batch.partner_labels = Tensor<std::int32_t>::full({rows}, no_label);
  batch.lambda = Tensor<float>::full({rows}, 1.0f);
  batch.soft_labels = Tensor<float>::full({rows, classes}, 0.0f);
  std::vector<Mix> drawn;
  for (std::int64_t row = 0; row < batch.valid; ++row) {
    const Mix& mix = drawn.emplace_back(drawn_mix(augmentation, shape, seed, batch.first_sample + row));
    const std::int32_t label = batch.labels.data()[row];
    const std::int32_t partner_label = row == 0 ? first_partner.label : batch.labels.data()[row - 1];
    batch.partner_labels.data()[row] = partner_label;
    batch.lambda.data()[row] = mix.lambda;
    batch.soft_labels.data()[row * classes + label] += mix.lambda;
    batch.soft_labels.data()[row * classes + partner_label] += 1 - mix.lambda;
  }
  // Threads divide the lines of the images. Rows are mixed from last to first, so that the previous row is still unmixed.
#pragma omp parallel for schedule(static) if (batch.images.numel() >= least_values)
  for (std::int64_t y = 0; y < shape.height; ++y) {
    const std::int64_t line = y * shape.width * shape.channels;
    for (std::int64_t row = batch.valid; row-- > 0;) {
      float* own = batch.images.data() + row * shape.numel() + line;
      const float* partner = row == 0 ? first_partner.pixels.data() + line : own - shape.numel();
      mix_line(own, partner, drawn[static_cast<std::size_t>(row)], y, shape);
    }
  }
}

}  // namespace trireme::data
