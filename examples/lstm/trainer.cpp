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
Trainer<D>::Trainer(const Options& options, const Group& world)
    : options_(completed(options, world)), world_(world), mesh_(world) {
  require_same(world, "option", options_.settings());
  const ModelContext context =
      parallel::model_context(mesh_, {.seed = options_.training.seed, .batch_size = options_.training.batch_size});
  world.agree([&] { open(context); }, "open data and files");
}

template <typename D>
void Trainer<D>::open(const ModelContext& context) {
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
                                   context);
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
}

// Every row of a batch reads a stretch of the text of its own, from its start to its end.
template <typename D>
data::WindowLoader Trainer<D>::loader(const data::TokenDataset& tokens, std::int64_t micro_batch_size) const {
  return {tokens,
          {.batch = {.batch_size = options_.training.batch_size,
                     .micro_batch_size = micro_batch_size,
                     .index = world_.rank(),
                     .count = world_.size()},
           .length = options_.block,
           .order = data::WindowOrder::continued}};
}

template <typename D>
void Trainer<D>::run() {
  if (!text_) return print_sample();
  Training<Float32, D> training(options_.training, options_.settings(), mesh_, *model_, "tokens");
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
  for (std::int64_t micro_batch = 0; micro_batch < loader_->num_micro_batches(); ++micro_batch) {
    const auto batch = data::on_device<D>(loader_->load(step.number(), micro_batch));
    step.backward(batch, [&] { return model_->loss(model_->forward(batch), batch); });
  }
}

template <typename D>
void Trainer<D>::add_to(State& state) {
  state.add(data::vocabulary_name, &vocabulary_text_);
  state.after_load([this] {
    require_same(*vocabulary_, data::Vocabulary::from_text(vocabulary_text_), options_.training.checkpoint_directory);
  });
}

// The mean loss of the first steps of the validation text, read as the training text is; each rank computes its rows.
template <typename D>
Validation Trainer<D>::validate() const {
  const data::WindowLoader rows = loader(text_->validation, 0);
  std::array<double, 2> total{};  // loss, tokens
  for (std::int64_t step = 0; step < validation_steps; ++step) {
    const auto batch = data::on_device<D>(rows.load(step));
    if (step > 0 && !batch.continues) break;  // the text has ended
    const Loss<float, D> loss = model_->loss(model_->forward(batch), batch);
    total[0] += static_cast<double>(loss.sum.value().item());
    total[1] += loss.target_weight.item();
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
