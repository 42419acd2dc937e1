// Trains small models for 20 steps in every combination of precision, reduction, mesh and accumulation, and prints a line for
// each:
//   model precision reduction DATAxPIPELINExTENSOR micro-batches  DIGEST-OF-WEIGHTS DIGEST-OF-LOSSES-AND-NORMS
// or `refused` for the digests. Two runs on one machine print the same text. weight_digests [TEXT]: only lines that begin so.

#include <fmt/format.h>

#include <atomic>
#include <concepts>
#include <cstdio>
#include <map>
#include <optional>

#include "trireme/core/philox.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr int steps = 20;
constexpr std::int64_t samples = 12;  // of a step, on all ranks together; what micro-batches do not divide is left out
constexpr std::int64_t time_steps = 6;
constexpr std::int64_t vocabulary = 40;
constexpr std::int64_t side = 8;  // of an image
constexpr std::int64_t classes = 5;
constexpr std::int64_t latent = 7;

const std::vector<std::string> models_trained = {"gpt", "cnn", "resnet", "lstm", "gan", "mlp"};
const std::vector<std::string> precisions = {"Float32", "MixedBfloat16", "MixedFloat16"};
const std::vector<std::string> reductions = {"plain", "sharded", "fixed_bits", "int8"};
const std::vector<MeshOptions> meshes = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {2, 2, 1}, {1, 1, 2}, {2, 1, 2}};

// Those of fixed bits are divided into powers of two.
std::vector<int> accumulations_of(const std::string& reduction) { return {1, reduction == "fixed_bits" ? 2 : 3}; }

struct Combination {
  std::string model;
  std::string precision;
  std::string reduction;
  MeshOptions mesh;
  int accumulation = 1;

  std::string str() const {
    return fmt::format("{} {} {} {}x{}x{} {}", model, precision, reduction, mesh.data, mesh.pipeline, mesh.tensor,
                       accumulation);
  }
};

struct Refused {};  // thrown on all ranks where the library or a model does not have the combination

struct Outcome {                                                         // of a rank
  std::map<std::pair<std::string, std::int64_t>, std::uint64_t> pieces;  // digests, by tensor and the first element's place
  std::vector<double> losses;                                            // and norms

  void add(const StepSummary& summary) {
    losses.push_back(summary.loss());
    losses.push_back(summary.is_finite() ? summary.gradient_norm : 0);  // of an overflow: inf or nan
  }
  void add(FlatStore& store, const std::string& prefix = {}) {
    State state;
    store.add_to(state, prefix);
    for (const StateTensor& tensor : state.tensors()) {
      if (tensor.optional) continue;  // none of the model's: states of the rows of a batch
      for (const StatePiece& piece : tensor.pieces) {
        pieces[{tensor.name, piece.elements.begin}] =
            digest(tensor.name, tensor.dtype, piece.data, piece.elements.count(), piece.elements.begin);
      }
    }
  }
};

struct MicroBatch {
  int index = 0;
  std::int64_t first_sample = 0;  // of all steps
  std::int64_t first_row = 0;     // of the step
  std::int64_t samples = 0;
};

constexpr std::uint64_t seed = 3;  // of random numbers

// [rows, time_steps]; targets are shifted by one.
Tensor<std::int32_t> tokens_of(const MicroBatch& batch, std::int64_t shift) {
  Tensor<std::int32_t> tokens({batch.samples, time_steps});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    const std::int64_t at = batch.first_sample * time_steps + i + shift;
    tokens.data()[i] = static_cast<std::int32_t>((at * at + 3 * at) % vocabulary);
  }
  return tokens;
}

// Random numbers in (-1, 1); dim 0 of the shape counts the batch's samples.
Tensor<float> noise_of(const MicroBatch& batch, std::string_view stream, const Shape& shape) {
  Tensor<float> noise(shape);
  const std::int64_t first = batch.first_sample * (noise.numel() / batch.samples);
  for (std::int64_t i = 0; i < noise.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(first + i);
    noise.data()[i] = static_cast<float>(2 * philox_uniform(5, hash_name(stream), index) - 1);
  }
  return noise;
}

Tensor<std::int32_t> labels_of(const MicroBatch& batch) {
  Tensor<std::int32_t> labels({batch.samples});
  for (std::int64_t i = 0; i < batch.samples; ++i)
    labels.data()[i] = static_cast<std::int32_t>((batch.first_sample + i) % classes);
  return labels;
}

// The training of one model.
template <typename P>
class Training {
 public:
  Training(Model& model, const ProcessMesh& mesh, const Combination& combination, const std::string& optimizer,
           double learning_rate)
      : mesh_(mesh), accumulation_(combination.accumulation) {
    model.store().initialize<float>(7);
    reduce_by(combination, model);
    optimizer_ = optim::make_optimizer<P>(optimizer, model, {.learning_rate = learning_rate, .weight_decay = 0.01});
  }

  MicroBatch micro_batch(std::int64_t number, int index) const {
    const std::int64_t rows = samples / mesh_.data().size() / accumulation_;
    const std::int64_t first_row = (mesh_.data().rank() * accumulation_ + index) * rows;
    return {.index = index, .first_sample = number * samples + first_row, .first_row = first_row, .samples = rows};
  }

  // run(step): all micro-batches.
  template <typename Run>
  StepSummary take_step(std::int64_t number, const Run& run) {
    parallel::Step step = replicas_->begin(number, accumulation_);
    run(step);
    step.update(*optimizer_, {.clip_norm = 0.5});
    return step.finish();
  }

  template <typename LossOf>
  StepSummary take_step_of_losses(std::int64_t number, const LossOf& loss_of) {
    return take_step(number, [&](parallel::Step& step) {
      for (int index = 0; index < accumulation_; ++index) {
        const MicroBatch batch = micro_batch(number, index);
        step.backward(batch, [&] { return loss_of(batch); });
      }
    });
  }

 private:
  void reduce_by(const Combination& combination, Model& model) {
    const std::string& reduction = combination.reduction;
    parallel::ParallelOptions options{
        .sharding = reduction == "sharded" ? parallel::Sharding::optimizer : parallel::Sharding::none,
        .buckets = {.bytes = 4000, .first_bytes = 400, .slice_bytes = 4000},
        .loss_scale = {.growth_interval = 7}};
    if (reduction == "fixed_bits") {
      options.sum = parallel::FixedBits{.micro_batches = combination.mesh.data * combination.accumulation};
    } else if (reduction == "int8") {
      options.sum = parallel::Hooked{
          {.hook = parallel::int8_hook(), .only_if_faster = false, .between = parallel::CompressionBetween::ranks}};
    }
    try {
      replicas_.emplace(model, mesh_, options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      throw Refused();
    }
  }

  ProcessMesh mesh_;
  int accumulation_;
  std::optional<parallel::DataParallel> replicas_;
  std::unique_ptr<optim::Optimizer<P>> optimizer_;
};

// loss_of(batch): of a model that lies here as a whole.
template <typename P, typename LossOf>
Outcome train_whole(const nn::Module<P>& model, const Group& world, const Combination& combination,
                    const std::string& optimizer, double learning_rate, const LossOf& loss_of) {
  Training<P> training(model, ProcessMesh(world), combination, optimizer, learning_rate);
  Outcome outcome;
  for (std::int64_t number = 0; number < steps; ++number) outcome.add(training.take_step_of_losses(number, loss_of));
  outcome.add(model.store());
  return outcome;
}

template <typename P>
Outcome train_gpt(const Group& world, const Combination& combination) {
  const ProcessMesh mesh(world, combination.mesh);
  const models::Gpt<P> model(
      {.layers = 4, .heads = 2, .width = 32, .block = time_steps, .vocabulary = vocabulary, .dropout = 0.1},
      parallel::model_context(mesh, {.seed = seed}));
  Training<P> training(model, mesh, combination, "adamw", 0.01);
  Outcome outcome;
  for (std::int64_t number = 0; number < steps; ++number) {
    std::vector<data::TokenBatch> batches;
    for (int index = 0; index < combination.accumulation; ++index) {
      const MicroBatch batch = training.micro_batch(number, index);
      batches.push_back({.tokens = tokens_of(batch, 0), .targets = tokens_of(batch, 1), .first_sample = batch.first_sample});
    }
    outcome.add(training.take_step(number, [&](parallel::Step& step) { step.backward(model, batches); }));
  }
  outcome.add(model.store());
  return outcome;
}

template <typename P>
Outcome train_cnn(const Group& world, const Combination& combination) {
  const models::Cnn<P> model(
      {.image = {side, side}, .first = 6, .second = 10, .hidden = 24, .classes = classes, .batch_norm = false, .dropout = 0.1},
      ModelContext{.seed = seed});
  return train_whole<P>(model, world, combination, "sgd", 0.05, [&](const MicroBatch& batch) {
    return model.loss(noise_of(batch, "images", {batch.samples, side, side, 1}), labels_of(batch));
  });
}

template <typename P>
Outcome train_resnet(const Group& world, const Combination& combination) {
  const models::ResNet<P> model({.widths = {16, 32}, .blocks = {1, 1}, .classes = classes});
  return train_whole<P>(model, world, combination, "lars", 1, [&](const MicroBatch& batch) {
    return model.loss(noise_of(batch, "images", {batch.samples, side, side, 3}), labels_of(batch));
  });
}

// Rows go on with the states that the step before has left.
template <typename P>
Outcome train_lstm(const Group& world, const Combination& combination) {
  const int parts = combination.mesh.data * combination.accumulation;
  const std::int64_t batch_size = samples / parts * parts;  // of equal micro-batches
  const models::LstmLm<P> model({.vocabulary = vocabulary, .embedding = 16, .hidden = 24, .layers = 2, .dropout = 0.1},
                                parallel::model_context(ProcessMesh(world), {.seed = seed, .batch_size = batch_size}));
  return train_whole<P>(model, world, combination, "rmsprop", 0.002, [&](const MicroBatch& batch) {
    const data::TokenBatch tokens{.tokens = tokens_of(batch, 0),
                                  .targets = tokens_of(batch, 1),
                                  .first_sample = batch.first_sample,
                                  .first_row = batch.first_row,
                                  .continues = batch.first_sample >= samples};
    return model.loss(model.forward(tokens), tokens);
  });
}

// The discriminator takes a step, then the generator.
template <typename P>
Outcome train_gan(const Group& world, const Combination& combination) {
  const models::DcGanOptions options{.image = {side, side}, .latent = latent, .features = 8};
  const models::DcGenerator<P> generator(options);
  const models::DcDiscriminator<P> discriminator(options);
  Training<P> of_generator(generator, ProcessMesh(world.split(0, world.rank(), "generator")), combination, "adam", 0.002);
  Training<P> of_discriminator(discriminator, ProcessMesh(world.split(0, world.rank(), "discriminator")), combination, "adam",
                               0.002);
  const auto fake = [&](const MicroBatch& batch) {
    return generator.images(noise_of(batch, "latent", {batch.samples, latent}));
  };
  Outcome outcome;
  for (std::int64_t number = 0; number < steps; ++number) {
    outcome.add(of_discriminator.take_step_of_losses(number, [&](const MicroBatch& batch) {
      const Variable<float> real(noise_of(batch, "images", {batch.samples, side, side, 1}));
      return models::discriminator_loss(discriminator, cast<typename P::Compute>(real), fake(batch));
    }));
    outcome.add(of_generator.take_step_of_losses(
        number, [&](const MicroBatch& batch) { return models::generator_loss(discriminator, fake(batch)); }));
  }
  outcome.add(generator.store(), "generator.");
  outcome.add(discriminator.store(), "discriminator.");
  return outcome;
}

// The table of the first layer is the weight of the last one too.
template <typename P>
struct TiedMlp : nn::Module<P> {
  using nn::Module<P>::Module;

  nn::Embedding<P> table{*this, "table", {.rows = vocabulary, .width = 24, .initializer = Initializer::normal(0, 0.1)}};
  nn::Dropout<P> drop{*this, "drop", 0.1};
  nn::Linear<P> wide{*this, "wide", {.in = 24, .out = 72}};
  nn::Linear<P> narrow{*this, "narrow", {.in = 72, .out = 24}};

  Loss<float> loss(const Tensor<std::int32_t>& tokens, const Tensor<std::int32_t>& targets) const {
    const auto x = cast<typename P::Compute>(drop.forward(table.forward(tokens)));
    return cross_entropy(linear(narrow.forward(gelu(wide.forward(x))), table.weight.variable()), targets);
  }
};

template <typename P>
Outcome train_mlp(const Group& world, const Combination& combination) {
  const TiedMlp<P> model(ModelContext{.seed = seed});
  return train_whole<P>(model, world, combination, "lamb", 0.01,
                        [&](const MicroBatch& batch) { return model.loss(tokens_of(batch, 0), tokens_of(batch, 1)); });
}

template <typename P>
Outcome train(const Group& world, const Combination& combination) {
  const std::string& model = combination.model;
  if (model == "gpt") return train_gpt<P>(world, combination);
  if (combination.mesh.pipeline * combination.mesh.tensor > 1) throw Refused();
  if (model == "cnn") return train_cnn<P>(world, combination);
  if (model == "resnet") return train_resnet<P>(world, combination);
  if (model == "gan") return train_gan<P>(world, combination);
  if (model == "mlp") return train_mlp<P>(world, combination);
  if constexpr (std::same_as<P, Float32>) return train_lstm<P>(world, combination);
  throw Refused();  // an LSTM has no mixed precision
}

Outcome train_in_precision(const Group& world, const Combination& combination) {
  if (combination.precision == "Float32") return train<Float32>(world, combination);
  if (combination.precision == "MixedBfloat16") return train<MixedBfloat16>(world, combination);
  return train<MixedFloat16>(world, combination);
}

// The digests of the weights of all ranks together, each piece counted once, and of the losses.
std::string digests_of(const std::vector<Outcome>& outcomes) {
  Outcome all{.pieces = {}, .losses = outcomes.front().losses};
  std::uint64_t weights = 0;
  for (const Outcome& outcome : outcomes) {
    for (const auto& [piece, value] : outcome.pieces) {
      const auto [place, added] = all.pieces.emplace(piece, value);
      require(place->second == value, "ranks hold different bits of {}", piece.first);
      if (added) weights += value;
    }
    require(outcome.losses == all.losses, "ranks were told different losses");
  }
  return fmt::format("{:016x} {:016x}", weights, digest<double>("losses", all.losses));
}

std::string digests_of(const Combination& combination) {
  std::vector<Outcome> outcomes(
      static_cast<std::size_t>(combination.mesh.data * combination.mesh.pipeline * combination.mesh.tensor));
  std::atomic<bool> refused = false;
  const auto body = [&](const Group& world) {
    try {
      outcomes[static_cast<std::size_t>(world.rank())] = train_in_precision(world, combination);
    } catch (const Refused&) {
      refused = true;
    }
  };
  testing::run_ranks(static_cast<int>(outcomes.size()), body, {.threads_per_rank = 1});
  return refused ? "refused" : digests_of(outcomes);
}

void print_line(const Combination& combination, const std::string& beginning) {
  const std::string name = combination.str();
  if (!name.starts_with(beginning)) return;
  fmt::print("{}  {}\n", name, digests_of(combination));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string beginning = argc > 1 ? argv[1] : "";
  for (const std::string& model : models_trained) {
    for (const std::string& precision : precisions) {
      for (const std::string& reduction : reductions) {
        for (const MeshOptions& mesh : meshes) {
          for (const int accumulation : accumulations_of(reduction))
            print_line({model, precision, reduction, mesh, accumulation}, beginning);
        }
      }
    }
  }
}
