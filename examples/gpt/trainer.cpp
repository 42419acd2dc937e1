#include "trainer.hpp"

#include <fmt/format.h>

#include <utility>

#include "trireme/data/content.hpp"
#include "trireme/data/text.hpp"
#include "trireme/data/token_batch.hpp"
#include "trireme/data/window_sampler.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t validation_windows = 64;

models::GptOptions model_options(const Options& options) {
  return {.layers = options.layers,
          .heads = options.heads,
          .width = options.width,
          .block = options.block,
          .vocabulary = data::ByteTokenizer::vocabulary_size,
          .dropout = options.dropout,
          .fp8 = float8_scaling_named(options.fp8)};
}

// What decides who talks to whom must be the same on all ranks.
const Options& agreed(const Options& options, const Group& world) {
  require_same(world, "option", options.settings());
  return options;
}

// Of the embedding, each block and the output layer; none where stages have equally many blocks.
template <typename P, typename D>
std::vector<double> layer_costs(const Options& options, const ProcessMesh& mesh) {
  if (options.layer_costs != "measured" || mesh.pipeline().size() == 1) return options.given_layer_costs();
  const Group& world = mesh.world();
  std::vector<double> costs(static_cast<std::size_t>(options.layers) + 2);
  const auto measure = [&] {
    const std::int64_t batch = completed(options, mesh.data()).training.micro_batch_size;
    if (world.rank() == 0) costs = models::measured_layer_costs<P, D>(model_options(options), batch);
  };
  world.agree(measure, "measure layers");
  world.broadcast(std::span(costs), 0, "costs of layers").wait_on_host();
  if (world.rank() == 0) {
    fmt::print("forward and backward of a micro-batch: embedding {:.2f} ms, each block {:.2f} ms, output layer {:.2f} ms\n",
               1e3 * costs.front(), 1e3 * costs[1], 1e3 * costs.back());
  }
  return costs;
}

}  // namespace

template <typename P, typename D>
Trainer<P, D>::Trainer(const Options& options, const Group& world)
    : world_(world),
      options_(agreed(options, world)),
      mesh_(world, {.data = options.data_parallel, .pipeline = options.pipeline_parallel, .tensor = options.tensor_parallel}),
      model_(model_options(options_), parallel::model_context(mesh_, {.sequence_parallel = options.sequence_parallel,
                                                                      .num_chunks = options.chunks,
                                                                      .layer_costs = layer_costs<P, D>(options, mesh_),
                                                                      .seed = options_.training.seed})) {
  options_.training.pipeline_schedule = options_.schedule;
  options_.training.complete(mesh_.data());
  world.agree([this] { open(); }, "open data and files");
}

template <typename P, typename D>
void Trainer<P, D>::open() {
  TrainingOptions& training = options_.training;
  std::string text = data::read_text(training.data);
  training.data_content = data::content_of(text);
  text_ = data::split(data::TokenDataset::from_bytes(std::move(text)), training.validation_fraction);
  loader_.emplace(text_->training, data::WindowLoaderOptions{.batch = {.batch_size = training.batch_size,
                                                                       .micro_batch_size = training.micro_batch_size,
                                                                       .seed = training.seed,
                                                                       .index = mesh_.data().rank(),
                                                                       .count = mesh_.data().size()},
                                                             .length = options_.block});
  require(training.validation_interval == 0 || training.validation_fraction == 0 || text_->validation.size() > options_.block,
          "the validation part of {} has {} tokens, --block {} needs more; raise --validation-fraction or set it to 0",
          training.data, text_->validation.size(), options_.block);
  model_.initialize();
  if (!training.init.empty()) models::load_gpt2(model_, training.init);
}

template <typename P, typename D>
void Trainer<P, D>::run() {
  Training<P, D> training(options_.training, options_.settings(), mesh_, model_, "tokens");
  TrainingWork work{.micro_batches = static_cast<int>(loader_->num_micro_batches()),
                    .samples_per_step = options_.training.batch_size * options_.block,
                    .backward = [this](parallel::Step& step) { backward(step); },
                    .validate = {},
                    .save = [this] { models::save_gpt2(model_, options_.training.save); }};
  if (text_->validation.size() > options_.block) work.validate = [this] { return validate(); };
  print_start();
  if (training.run(work)) print_sample();
  world_.barrier("end of training");
}

template <typename P, typename D>
void Trainer<P, D>::backward(parallel::Step& step) {
  std::vector<data::BasicTokenBatch<D>> batches;
  for (std::int64_t micro_batch = 0; micro_batch < loader_->num_micro_batches(); ++micro_batch) {
    batches.push_back(data::on_device<D>(loader_->load(step.number(), micro_batch)));
  }
  step.backward(model_, batches);
}

// The mean loss of evenly spaced windows, spread over the replicas.
template <typename P, typename D>
Validation Trainer<P, D>::validate() const {
  const auto starts = data::evenly_spaced_windows(text_->validation.size(), options_.block, validation_windows);
  std::array<double, 2> total{};  // loss, tokens
  const Group& replicas = mesh_.data();
  for (auto window = static_cast<std::size_t>(replicas.rank()); window < starts.size();
       window += static_cast<std::size_t>(replicas.size())) {
    const data::TokenBatch batch = data::read_windows(text_->validation, std::span(starts).subspan(window, 1), options_.block);
    const auto loss = nn::loss_of(model_, data::on_device<D>(batch));
    total[0] += static_cast<double>(loss.sum.value().item());
    total[1] += loss.target_weight.item();
  }
  world_.all_reduce(std::span(total), ReduceOp::sum, "validation loss").wait_on_host();
  return {.loss = total[0] / total[1]};
}

template <typename P, typename D>
void Trainer<P, D>::print_start() const {
  if (world_.rank() != 0) return;
  fmt::print("{} parameters, {} layers of width {}; {} tokens to train on; {} rank{}, {} sequences of {} a step\n",
             model_.store().num_elements(), options_.layers, options_.width, text_->training.size(), world_.size(),
             world_.size() == 1 ? "" : "s", options_.training.batch_size, options_.block);
}

template <typename P, typename D>
void Trainer<P, D>::print_sample() const {
  const TrainingOptions& training = options_.training;
  if (mesh_.data().rank() != 0 || training.sample == 0) return;
  const auto tokens =
      models::generate(model_, tokenizer_.encode("\n"), {.count = training.sample, .temperature = 0.8, .seed = training.seed});
  if (world_.rank() == 0) fmt::print("--- sample ---\n{}\n", tokenizer_.decode(tokens));
}

template class Trainer<Float32, TRIREME_DEVICE>;
template class Trainer<MixedBfloat16, TRIREME_DEVICE>;
template class Trainer<MixedFloat16, TRIREME_DEVICE>;
