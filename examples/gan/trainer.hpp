#pragma once

#include <concepts>
#include <memory>
#include <optional>

#include "options.hpp"
#include "player.hpp"
#include "training/metrics.hpp"
#include "training/progress.hpp"
#include "training/run_checkpoints.hpp"
#include "trireme/data/read_images.hpp"
#include "trireme/trireme.hpp"

// The models of --model and --precision.
template <typename P, typename D>
struct MlpGan {
  using Precision = P;
  using Device = D;
  using Generator = trireme::models::MlpGenerator<P, D>;
  using Discriminator = trireme::models::MlpDiscriminator<P, D>;
  static trireme::models::MlpGanOptions options(const Options& options, const trireme::data::ImageShape& image);
};
template <typename P, typename D>
struct DcGan {
  using Precision = P;
  using Device = D;
  using Generator = trireme::models::DcGenerator<P, D>;
  using Discriminator = trireme::models::DcDiscriminator<P, D>;
  static trireme::models::DcGanOptions options(const Options& options, const trireme::data::ImageShape& image);
};

// One rank's part of a training run. Gan: MlpGan or DcGan of Float32, MixedBfloat16 or MixedFloat16.
template <typename Gan>
class Trainer {
 public:
  // Collective: a wrong option or file is the same error on all ranks.
  Trainer(const Options& options, const trireme::Group& world);

  void run();

 private:
  using Precision = typename Gan::Precision;
  using D = typename Gan::Device;

  // What a step showed of both models.
  struct Step {
    trireme::StepSummary discriminator;
    trireme::StepSummary generator;
    double seconds = 0;
    std::uint64_t bytes_sent = 0;
  };

  static constexpr bool scaled = std::same_as<Precision, trireme::MixedFloat16>;

  void open();  // what may fail on one rank alone
  Step train_step(std::int64_t step);
  void report(std::int64_t step, const Step& result, Progress& progress);
  void write_samples() const;
  void save() const;
  void print_start() const;
  void print_end(double seconds, std::int64_t steps, const std::string& first_losses, const std::string& last_losses) const;
  std::vector<trireme::nn::PrefixedModel> networks() const;

  Options options_;
  trireme::Group world_;
  std::optional<trireme::data::ImageLoader> loader_;
  std::optional<RunCheckpoints> checkpoints_;
  std::optional<MetricsFile> metrics_;
  std::unique_ptr<typename Gan::Generator> generator_;
  std::unique_ptr<typename Gan::Discriminator> discriminator_;
  std::optional<Player<Precision, D>> generator_player_;
  std::optional<Player<Precision, D>> discriminator_player_;
  double exposed_seconds_ = 0;
};
