#include "trainer.hpp"

#include <fmt/format.h>

#include <chrono>

#include "training/run_steps.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/content.hpp"
#include "trireme/data/on_device.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t num_samples = 64;
constexpr std::int64_t sample_columns = 8;

// [count, width], normal: a function of the seed and of each sample's number, whichever rank reads it.
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

std::string losses_text(const StepSummary& discriminator, const StepSummary& generator) {
  return fmt::format("loss_d {:.4f}  loss_g {:.4f}", discriminator.loss(), generator.loss());
}

}  // namespace

template <typename P, typename D>
models::MlpGanOptions MlpGan<P, D>::options(const Options& options, const data::ImageShape& image) {
  models::MlpGanOptions result{.image = {image.height, image.width}, .channels = image.channels, .latent = options.latent};
  if (options.features > 0) result.hidden = options.features;
  return result;
}

template <typename P, typename D>
models::DcGanOptions DcGan<P, D>::options(const Options& options, const data::ImageShape& image) {
  models::DcGanOptions result{.image = {image.height, image.width}, .channels = image.channels, .latent = options.latent};
  if (options.features > 0) result.features = options.features;
  return result;
}

template <typename Gan>
Trainer<Gan>::Trainer(const Options& options, const Group& world) : options_(completed(options, world)), world_(world) {
  require_same(world, "option", options_.settings());
  world.agree([this] { open(); }, "open data");
  checkpoints_.emplace(options_.training, world, options_.settings());
  const auto open_metrics = [this] {
    metrics_.emplace(world_.rank() == 0 ? options_.training.metrics : std::string(), "images", checkpoints_->first_step());
  };
  world.agree(open_metrics, "open the metrics file");
  generator_player_.emplace(options_.training, world, *generator_, "generator");
  discriminator_player_.emplace(options_.training, world, *discriminator_, "discriminator");
}

template <typename Gan>
void Trainer<Gan>::open() {
  TrainingOptions& training = options_.training;
  const data::ImageDataset images = data::read_training_images(training.data);
  training.data_content = data::content_of(images);
  const std::vector<float> half(static_cast<std::size_t>(images.shape().channels), 0.5F);
  loader_.emplace(
      images,
      data::ImageLoaderOptions{
          .batch = {.batch_size = training.batch_size, .seed = training.seed, .index = world_.rank(), .count = world_.size()},
          .normalization = {.mean = half, .std = half}});  // to [-1, 1]
  const auto model_options = Gan::options(options_, images.shape());
  const ModelContext context{.seed = training.seed};
  generator_ = std::make_unique<typename Gan::Generator>(model_options, context);
  discriminator_ = std::make_unique<typename Gan::Discriminator>(model_options, context);
  generator_->initialize();
  discriminator_->initialize();
  if (!training.init.empty()) nn::load_weights<float>(networks(), training.init);
}

template <typename Gan>
std::vector<nn::PrefixedModel> Trainer<Gan>::networks() const {
  return {{.prefix = "G.", .model = *generator_}, {.prefix = "D.", .model = *discriminator_}};
}

template <typename Gan>
void Trainer<Gan>::run() {
  const TrainingOptions& training = options_.training;
  print_start();
  write_samples();  // a file that can't be written is found out before the first step
  std::string first, last;
  const auto step = [&](std::int64_t index, Progress& progress) {
    const Step result = train_step(index);
    report(index, result, progress);
    last = losses_text(result.discriminator, result.generator);
    if (first.empty()) first = last;
    const std::int64_t done = index + 1;
    if (done == training.steps || (options_.sample_interval > 0 && done % options_.sample_interval == 0)) write_samples();
    return result.generator.requests;
  };
  const auto add_to = [this](State& state) {
    generator_player_->add_to(state);
    discriminator_player_->add_to(state);
  };
  const auto print = [&](double seconds, std::int64_t steps) { print_end(seconds, steps, first, last); };
  run_steps(training, world_, "images", *checkpoints_,
            {.step = step, .add_to = add_to, .save = [this] { save(); }, .print_end = print});
  world_.barrier("end of training");
}

// The discriminator takes its step inside that of the generator, on the same images.
template <typename Gan>
typename Trainer<Gan>::Step Trainer<Gan>::train_step(std::int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t sent_before = generator_player_->bytes_sent() + discriminator_player_->bytes_sent();
  const data::ImageBatch batch = loader_->load(step);
  Step result;
  parallel::Step of_generator = generator_player_->begin(step);
  of_generator.ask(checkpoints_->requests());
  of_generator.backward(batch, [&] {
    const Tensor<float> latent =
        latent_vectors(options_.training.seed, "latent", batch.first_sample, batch.images.dim(0), options_.latent);
    const auto fake = generator_->images(data::on_device<D>(latent));
    parallel::Step of_discriminator = discriminator_player_->begin(step);
    of_discriminator.backward(batch, [&] {
      const auto real = cast<typename Precision::Compute>(Variable<float, D>(data::on_device<D>(batch.images)));
      return models::discriminator_loss(*discriminator_, real, fake);
    });
    result.discriminator = discriminator_player_->update(of_discriminator);
    return models::generator_loss(*discriminator_, fake);
  });
  result.generator = generator_player_->update(of_generator);
  result.seconds = seconds_since(start);
  result.bytes_sent = generator_player_->bytes_sent() + discriminator_player_->bytes_sent() - sent_before;
  return result;
}

template <typename Gan>
void Trainer<Gan>::report(std::int64_t step, const Step& result, Progress& progress) {
  const StepSummary& of_d = result.discriminator;
  const StepSummary& of_g = result.generator;
  const double exposed = of_d.exposed_communication_seconds + of_g.exposed_communication_seconds;
  const double images_per_second = static_cast<double>(options_.training.batch_size) / result.seconds;
  exposed_seconds_ += exposed;
  std::vector<Metric> line{{"step", step},
                           {"loss_d", of_d.loss()},
                           {"loss_g", of_g.loss()},
                           {"learning_rate", generator_player_->learning_rate()},
                           {"gradient_norm_d", of_d.gradient_norm},
                           {"gradient_norm_g", of_g.gradient_norm},
                           {"images_per_second", images_per_second},
                           {"seconds", result.seconds},
                           {"compute_seconds", result.seconds - exposed},
                           {"exposed_communication_seconds", exposed},
                           {"bytes_sent", static_cast<std::int64_t>(result.bytes_sent)}};
  if (scaled) {
    line.insert(line.end(), {{"loss_scale_d", discriminator_player_->scaler().scale()},
                             {"loss_scale_g", generator_player_->scaler().scale()},
                             {"skipped_steps_d", discriminator_player_->skipped_steps()},
                             {"skipped_steps_g", generator_player_->skipped_steps()}});
  }
  metrics_->write(line);
  for (const std::string& decision : generator_player_->decisions()) progress.note("generator: " + decision);
  for (const std::string& decision : discriminator_player_->decisions()) progress.note("discriminator: " + decision);
  checkpoints_->note_loss(losses_text(of_d, of_g));
  progress.step(step, losses_text(of_d, of_g), images_per_second, result.bytes_sent);
}

// All ranks hold the same weights and running statistics; rank 0 makes the images.
template <typename Gan>
void Trainer<Gan>::write_samples() const {
  if (options_.samples.empty()) return;
  const auto write = [&] {
    if (world_.rank() != 0) return;
    generator_->eval();
    const Tensor<float> latent = latent_vectors(options_.training.seed, "samples", 0, num_samples, options_.latent);
    const auto images = generator_->images(data::on_device<D>(latent));
    generator_->train();
    data::write_png(options_.samples, data::image_grid(cast<float>(images).value().template to<Cpu>(),
                                                       {.columns = sample_columns, .low = -1, .high = 1}));
  };
  world_.agree(write, "write samples");
}

template <typename Gan>
void Trainer<Gan>::save() const {
  if (world_.rank() == 0) nn::save_weights<float>(networks(), options_.training.save);
}

template <typename Gan>
void Trainer<Gan>::print_start() const {
  if (world_.rank() != 0) return;
  fmt::print("{}: {} parameters of the generator, {} of the discriminator; {} rank{}, {} images a step\n", options_.model,
             generator_->store().num_elements(), discriminator_->store().num_elements(), world_.size(),
             world_.size() == 1 ? "" : "s", options_.training.batch_size);
}

template <typename Gan>
void Trainer<Gan>::print_end(double seconds, std::int64_t steps, const std::string& first, const std::string& last) const {
  fmt::print("{} steps in {:.1f} s: {} -> {}, {:.0f} images/s, {:.1f} % of the time waiting for other ranks\n", steps, seconds,
             first, last, static_cast<double>(steps * options_.training.batch_size) / seconds,
             100 * exposed_seconds_ / seconds);
  if (scaled) {
    const auto& of_d = discriminator_player_->scaler();
    const auto& of_g = generator_player_->scaler();
    fmt::print("loss scales {} and {}, {} and {} steps skipped\n", of_d.scale(), of_g.scale(), of_d.skipped_steps(),
               of_g.skipped_steps());
  }
  if (!options_.samples.empty()) fmt::print("samples written to {}\n", options_.samples);
}

template class Trainer<MlpGan<Float32, TRIREME_DEVICE>>;
template class Trainer<MlpGan<MixedBfloat16, TRIREME_DEVICE>>;
template class Trainer<MlpGan<MixedFloat16, TRIREME_DEVICE>>;
template class Trainer<DcGan<Float32, TRIREME_DEVICE>>;
template class Trainer<DcGan<MixedBfloat16, TRIREME_DEVICE>>;
template class Trainer<DcGan<MixedFloat16, TRIREME_DEVICE>>;
