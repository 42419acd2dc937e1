#include "train.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "training/image_archives.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/images/picture.hpp"
#include "trireme/data/images/read_images.hpp"
#include "trireme/data/loaders/image_loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t num_samples = 64;
constexpr std::int64_t sample_columns = 8;

void check(const trainer::Options& options) {
  const auto* plain = std::get_if<parallel::Plain>(&options.parallel.sum);
  require(
      options.micro_batch_size == 0,
      "a GAN takes no --micro-batch-size, since its generator learns from the discriminator after the discriminator's step: "
      "leave it out");
  require(!std::holds_alternative<parallel::FixedBits>(options.parallel.sum), "a GAN takes no --fixed-bits: leave it out");
  require(plain == nullptr || plain->tuning.profile.empty(),
          "--bucket-profile holds the buckets of one model, and a GAN has two models: leave it out");
  require(options.mesh.pipeline == 1 && options.mesh.tensor == 1,
          "a GAN takes no --pipeline-parallel and --tensor-parallel, since its losses need both models: leave them out");
}

// Normal random numbers [count, width], a function of the seed, the stream and each sample's number, on any rank.
Tensor<float> latent_vectors(std::uint64_t seed, std::string_view stream, std::int64_t first_sample, std::int64_t count,
                             std::int64_t width) {
  Tensor<float> latent({count, width});
  const std::uint64_t key = hash_name(stream);
  for (std::int64_t index = 0; index < latent.numel(); ++index) {
    const auto element = static_cast<std::uint64_t>(first_sample * width + index);
    latent.data()[index] = static_cast<float>(philox_normal(seed, key, element));
  }
  return latent;
}

// Rank 0 makes the images: all ranks hold the same weights and running statistics.
template <typename Generator>
void write_samples(const trainer::Run& run, const GanRecipe& recipe, const Generator& generator) {
  if (recipe.samples.empty()) return;
  const auto write = [&] {
    if (run.world().rank() != 0) return;
    const trainer::Evaluation in_evaluation(generator);
    const auto latent = latent_vectors(run.options().seed, "samples", 0, num_samples, recipe.latent);
    const auto images = cast<float>(generator.images(data::on_device<typename Generator::Device>(latent)));
    data::write_png(recipe.samples,
                    data::image_grid(images.value().template to<Cpu>(), {.columns = sample_columns, .low = -1, .high = 1}));
  };
  run.world().agree(write, "write samples");
}

// A full disk does not end the run. Returns false if the images were not written, and prints the first failure.
template <typename Generator>
bool try_to_write_samples(trainer::Run& run, const GanRecipe& recipe, const Generator& generator, bool& told) {
  try {
    write_samples(run, recipe, generator);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    if (!std::exchange(told, true)) run.note(fmt::format("note: samples were not written: {}", error.what()));
    return false;
  }
}

// The discriminator takes its step inside that of the generator, on the same images.
template <typename Generator, typename Discriminator>
void play(trainer::Run& run, const GanRecipe& recipe, const data::ImageDataset& images, const auto& options) {
  using P = typename Generator::Precision;
  using D = typename Generator::Device;
  Generator generator(options, run.context());
  Discriminator discriminator(options, run.context());
  const std::vector<nn::PrefixedModel> both{{.prefix = "G.", .model = generator}, {.prefix = "D.", .model = discriminator}};
  recipe.load_weights(run, [&] { nn::load_weights<float>(both, recipe.init); });
  const auto of_g = optim::make_optimizer<P, D>(recipe.optimizer, generator, recipe.optimizer_options);
  const auto of_d = optim::make_optimizer<P, D>(recipe.optimizer, discriminator, recipe.optimizer_options);
  run.add(generator, *of_g, "generator.");
  run.add(discriminator, *of_d, "discriminator.");
  const std::vector<float> half(static_cast<std::size_t>(images.shape().channels), 0.5F);
  const data::Prefetching loader(
      data::ImageLoader(images, {.batch = run.batch(), .normalization = {.mean = half, .std = half}}),  // to [-1, 1]
      recipe.ahead_of_archives());
  run.note(fmt::format("{}: {} parameters of the generator, {} of the discriminator; {}, {} images a step", recipe.model,
                       generator.store().num_elements(), discriminator.store().num_elements(), ranks_of(run),
                       loader.batch_size()));
  run.load();
  write_samples(run, recipe, generator);  // throws before the first step if the file can't be written

  bool told_of_samples = false;
  std::optional<double> first_loss;  // of the discriminator; the run reports the generator's
  double last_loss = 0;
  for (auto& step : run.steps(loader)) {
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] {
        const auto latent =
            latent_vectors(run.options().seed, "latent", batch.first_sample, batch.images.dim(0), recipe.latent);
        const auto fake = generator.images(data::on_device<D>(latent));
        parallel::Step inner = run.begin(discriminator);
        inner.backward(batch, [&] {
          const auto real = cast<typename P::Compute>(Variable<float, D>(data::on_device<D>(batch.images)));
          return models::discriminator_loss(discriminator, real, fake);
        });
        inner.update(*of_d, run.update_options(*of_d));
        last_loss = inner.finish().loss();
        return models::generator_loss(discriminator, fake);
      });
    }
    step.update(*of_g);
    if (!first_loss) first_loss = last_loss;
    if (recipe.sample_interval > 0 && run.due(Steps{recipe.sample_interval})) {
      try_to_write_samples(run, recipe, generator, told_of_samples);
    }
  }

  if (first_loss) run.note(fmt::format("discriminator: loss {:.4f} -> {:.4f}", *first_loss, last_loss));
  if (run.stopped()) return;
  recipe.save_weights(run, [&] { nn::save_weights<float>(both, recipe.save); });
  const bool written = try_to_write_samples(run, recipe, generator, told_of_samples);
  if (written && !recipe.samples.empty()) run.note(fmt::format("samples written to {}", recipe.samples));
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const GanRecipe& recipe) {
  check(run.options());
  recipe.check_save(run);
  const auto images = read_on_all(run, [&] {
    return are_archives(recipe.data) ? read_archives(recipe.data, recipe, {.size = recipe.image_size})
                                     : data::read_training_images(recipe.data);
  });
  recipe.describe_data(run, data::content_of(images));
  const auto& [height, width, channels] = images.shape();
  if (recipe.model == "mlp") {
    models::MlpGanOptions options{.image = {height, width}, .channels = channels, .latent = recipe.latent};
    if (recipe.features > 0) options.hidden = recipe.features;
    play<models::MlpGenerator<P, D>, models::MlpDiscriminator<P, D>>(run, recipe, images, options);
  } else {
    models::DcGanOptions options{.image = {height, width}, .channels = channels, .latent = recipe.latent};
    if (recipe.features > 0) options.features = recipe.features;
    play<models::DcGenerator<P, D>, models::DcDiscriminator<P, D>>(run, recipe, images, options);
  }
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const GanRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const GanRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const GanRecipe&);
