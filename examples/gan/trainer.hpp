#pragma once

#include <memory>
#include <optional>

#include "options.hpp"
#include "player.hpp"
#include "training/images.hpp"
#include "training/metrics.hpp"
#include "training/progress.hpp"
#include "trireme/trireme.hpp"

// The models of --model.
struct MlpGan {
  using Generator = trireme::models::MlpGenerator<trireme::Float32>;
  using Discriminator = trireme::models::MlpDiscriminator<trireme::Float32>;
  static trireme::models::MlpGanOptions options(const Options& options, const trireme::data::ImageShape& image);
};
struct DcGan {
  using Generator = trireme::models::DcGenerator<trireme::Float32>;
  using Discriminator = trireme::models::DcDiscriminator<trireme::Float32>;
  static trireme::models::DcGanOptions options(const Options& options, const trireme::data::ImageShape& image);
};

// One rank's part of a training run. Gan: MlpGan, DcGan.
template <typename Gan>
class Trainer {
 public:
  // Collective: a wrong option or file is the same error on all ranks.
  Trainer(const Options& options, const trireme::Group& world);

  void run();

 private:
  // What a step showed of both models.
  struct Step {
    trireme::StepSummary discriminator;
    trireme::StepSummary generator;
    double seconds = 0;
    std::uint64_t bytes_sent = 0;
  };

  void open();  // what may fail on one rank alone
  Step train_step(std::int64_t step);
  void report(std::int64_t step, const Step& result);
  void write_samples() const;
  void save() const;
  void print_start() const;
  void print_end(double seconds, const std::string& first_losses, const std::string& last_losses) const;
  std::vector<trireme::models::PrefixedStore> stores() const;

  Options options_;
  trireme::Group world_;
  std::optional<trireme::data::ImageLoader> loader_;
  std::optional<MetricsFile> metrics_;
  std::unique_ptr<typename Gan::Generator> generator_;
  std::unique_ptr<typename Gan::Discriminator> discriminator_;
  std::optional<Player> generator_player_;
  std::optional<Player> discriminator_player_;
  std::optional<Progress> progress_;
  double exposed_seconds_ = 0;
};

extern template class Trainer<MlpGan>;
extern template class Trainer<DcGan>;
