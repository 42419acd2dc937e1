#include "trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trireme/data/content.hpp"
#include "trireme/data/on_device.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t validation_steps = 32;

// What weights of train_lstm keep, or trireme-ckpt export of its checkpoints. Nothing: another program has written them.
std::optional<data::Vocabulary> vocabulary_of(const std::string& weights) {
  const SafetensorsFile file(weights);
  const auto found = file.metadata().find(data::vocabulary_name);
  return found == file.metadata().end() ? std::nullopt : std::optional(data::Vocabulary::from_text(found->second));
}

void require_same(const data::Vocabulary& of_text, const data::Vocabulary& of_weights, const std::string& path) {
  if (of_text == of_weights) return;
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = "the weights were trained with another vocabulary than this text gives",
       .name = data::vocabulary_name,
       .path = path,
       .wanted = fmt::format("{} tokens", of_text.size()),
       .had = fmt::format("{} tokens, others or in another order", of_weights.size()),
       .hint = "give the run their text, --tokenizer and --vocabulary; --init FILE --sample N without --data only generates"});
}

}  // namespace

template <typename D>
Trainer<D>::Trainer(const Options& options, const Group& world) : options_(completed(options, world)), world_(world) {
  require_same(world, "option", options_.settings());
  world.agree([this] { open(); }, "open data and files");
}

template <typename D>
void Trainer<D>::open() {
  const TrainingOptions& training = options_.training;
  std::optional<data::Vocabulary> of_weights;
  if (!training.init.empty()) of_weights = vocabulary_of(training.init);
  if (!training.data.empty()) {
    read_text();
    if (of_weights) require_same(*vocabulary_, *of_weights, training.init);
  } else {
    require(of_weights.has_value(), "{} holds no vocabulary: name the text it was trained on, --data", training.init);
    vocabulary_ = std::move(of_weights);
  }
  vocabulary_text_ = vocabulary_->to_text();
  model_ = std::make_unique<Model>(models::LstmLmOptions{.vocabulary = vocabulary_->size(),
                                                         .embedding = options_.embedding,
                                                         .hidden = options_.hidden,
                                                         .layers = options_.layers,
                                                         .dropout = options_.dropout},
                                   ModelContext{.seed = training.seed});
  model_->initialize();
  if (!training.init.empty()) nn::load_weights<float>(*model_, training.init);
}

template <typename D>
void Trainer<D>::read_text() {
  TrainingOptions& training = options_.training;
  const std::string text = data::read_text(training.data);
  training.data_content = data::content_of(text);
  vocabulary_ =
      options_.tokenizer == "word" ? data::Vocabulary::words(text, options_.vocabulary) : data::Vocabulary::characters(text);
  text_ = data::split(data::TokenDataset::from_tokens(vocabulary_->encode(text)), training.validation_fraction);
  loader_ = loader(text_->training, training.micro_batch_size);
  states_.resize(static_cast<std::size_t>(loader_->num_micro_batches()));
}

// Every row of a batch reads a stretch of the text of its own, from its start to its end.
template <typename D>
data::WindowLoader Trainer<D>::loader(const data::TokenDataset& tokens, std::int64_t micro_batch_size) const {
  return {tokens,
          {.batch_size = options_.training.batch_size,
           .micro_batch_size = micro_batch_size,
           .length = options_.block,
           .order = data::WindowOrder::continued,
           .index = world_.rank(),
           .count = world_.size()}};
}

template <typename D>
void Trainer<D>::run() {
  if (!text_) return print_sample();
  Training<Float32, D> training(options_.training, options_.settings(), ProcessMesh(world_), *model_, "tokens");
  TrainingWork work{.micro_batches = static_cast<int>(loader_->num_micro_batches()),
                    .samples_per_step = options_.training.batch_size * options_.block,
                    .backward = [this](parallel::Step& step) { backward(step); },
                    .validate = {},
                    .add_to = [this](State& state) { add_to(state); },
                    .save =
                        [this] {
                          nn::save_weights<float>(*model_, options_.training.save, {{data::vocabulary_name, vocabulary_text_}});
                        }};
  if (text_->validation.size() / options_.training.batch_size > options_.block) work.validate = [this] { return validate(); };
  print_start();
  if (training.run(work)) print_sample();
  world_.barrier("end of training");
}

template <typename D>
void Trainer<D>::backward(parallel::Step& step) {
  for (std::size_t micro_batch = 0; micro_batch < states_.size(); ++micro_batch) {
    const data::TokenBatch batch = loader_->load(step.number(), static_cast<std::int64_t>(micro_batch));
    typename Model::State& state = states_[micro_batch];
    if (!batch.continues) state = {};
    step.backward(batch, [&] {
      auto result = model_->loss(data::on_device<D>(batch.tokens), data::on_device<D>(batch.targets), state);
      state = std::move(result.state);
      return result.loss;
    });
  }
}

// What rows carry goes by row of the whole batch, whichever rank reads it.
template <typename D>
void Trainer<D>::add_to(State& state) {
  state.add(data::vocabulary_name, &vocabulary_text_);
  state.after_load([this] {
    require_same(*vocabulary_, data::Vocabulary::from_text(vocabulary_text_), options_.training.checkpoint_directory);
  });
  const std::int64_t rows = options_.training.batch_size;
  const std::int64_t width = options_.hidden;
  for (int layer = 0; layer < options_.layers; ++layer) {
    StateTensor hidden{.name = fmt::format("rows.hidden.{}", layer), .shape = {rows, width}};
    StateTensor cell{.name = fmt::format("rows.cell.{}", layer), .shape = {rows, width}};
    for (std::size_t micro_batch = 0; micro_batch < states_.size(); ++micro_batch) {
      const data::TokenBatch batch = loader_->load(0, static_cast<std::int64_t>(micro_batch));
      const std::int64_t own = batch.tokens.dim(0);
      const auto add = [&](StateTensor& tensor, std::vector<Variable<float, D>>& of_layers) {
        while (static_cast<int>(of_layers.size()) <= layer) of_layers.emplace_back(Tensor<float, D>::zeros({1, own, width}));
        const Tensor<float, D> values = of_layers[static_cast<std::size_t>(layer)].value();
        tensor.pieces.push_back({.data = model_->store().device().listed(state, values.data(), values.span().size_bytes()),
                                 .elements = {batch.first_sample * width, (batch.first_sample + own) * width}});
      };
      add(hidden, states_[micro_batch].hidden);
      add(cell, states_[micro_batch].cell);
    }
    state.add(std::move(hidden));
    state.add(std::move(cell));
  }
}

// The mean loss of the first steps of the validation text, read as the training text is; each rank computes its rows.
template <typename D>
Validation Trainer<D>::validate() const {
  const data::WindowLoader rows = loader(text_->validation, 0);
  typename Model::State state;
  std::array<double, 2> total{};  // loss, tokens
  for (std::int64_t step = 0; step < validation_steps; ++step) {
    const data::TokenBatch batch = rows.load(step);
    if (step > 0 && !batch.continues) break;  // the text has ended
    auto result = model_->loss(data::on_device<D>(batch.tokens), data::on_device<D>(batch.targets), state);
    state = std::move(result.state);
    total[0] += static_cast<double>(result.loss.sum.value().item());
    total[1] += result.loss.target_weight.item();
  }
  world_.all_reduce(std::span(total), ReduceOp::sum, "validation loss").wait_on_host();
  return {.loss = total[0] / total[1]};
}

template <typename D>
void Trainer<D>::print_start() const {
  if (world_.rank() != 0) return;
  fmt::print("{} parameters, {} layers of width {}; {} tokens to train on, {} different; {} rank{}, {} rows of {} a step\n",
             model_->store().num_elements(), options_.layers, options_.hidden, text_->training.size(), vocabulary_->size(),
             world_.size(), world_.size() == 1 ? "" : "s", options_.training.batch_size, options_.block);
}

template <typename D>
void Trainer<D>::print_sample() const {
  const TrainingOptions& training = options_.training;
  if (world_.rank() != 0 || training.sample == 0) return;
  std::vector<std::int32_t> prompt(1);
  if (text_) text_->training.window(0, prompt);
  const auto tokens = models::generate(*model_, prompt, {.count = training.sample, .temperature = 0.8, .seed = training.seed});
  fmt::print("--- sample ---\n{}\n", vocabulary_->decode(tokens));
}

template class Trainer<TRIREME_DEVICE>;
