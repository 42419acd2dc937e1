#include "train.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>

#include "trireme/data/text/text.hpp"
#include "trireme/data/text/vocabulary.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t validation_steps = 32;

// The vocabulary in weights of train_lstm, or in those that trireme-ckpt exported from its checkpoints; nothing in weights of
// another program.
std::optional<data::Vocabulary> vocabulary_of(const std::string& weights) {
  const SafetensorsFile file(weights);
  const auto found = file.metadata().find(data::vocabulary_name);
  return found == file.metadata().end() ? std::nullopt : std::optional(data::Vocabulary::from_text(found->second));
}

void require_same(const data::Vocabulary& of_text, const data::Vocabulary& of_weights, const std::string& path) {
  if (of_text == of_weights) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "the weights were trained with another vocabulary than this text gives",
               .name = data::vocabulary_name,
               .path = path,
               .wanted = fmt::format("{} tokens", of_text.size()),
               .had = fmt::format("{} tokens, others or in another order", of_weights.size()),
               .hint =
                   "give the run the weights' text, --tokenizer and --vocabulary; --init FILE --sample N without --data only "
                   "generates"});
}

struct Text {
  data::Vocabulary vocabulary;
  std::optional<data::TrainingSplit> tokens = {};  // nothing: the model only generates
  std::string content = {};
};

Text read(const LstmRecipe& recipe) {
  std::optional<data::Vocabulary> of_weights;
  if (!recipe.init.empty()) of_weights = vocabulary_of(recipe.init);
  if (recipe.data.empty()) {
    require(of_weights.has_value(), "{} holds no vocabulary: name the text it was trained on with --data", recipe.init);
    return {.vocabulary = *std::move(of_weights)};
  }
  const std::string text = data::read_text(recipe.data);
  const auto vocabulary =
      recipe.tokenizer == "word" ? data::Vocabulary::words(text, recipe.vocabulary) : data::Vocabulary::characters(text);
  if (of_weights) require_same(vocabulary, *of_weights, recipe.init);
  return {.vocabulary = vocabulary,
          .tokens = data::split(data::TokenDataset::from_tokens(vocabulary.encode(text)), recipe.validation_fraction),
          .content = data::content_of(text)};
}

template <typename D>
void tell_sample(trainer::Run& run, const models::LstmLm<Float32, D>& model, const Text& text, std::int64_t count) {
  if (count == 0 || run.mesh().data().rank() != 0) return;
  std::vector<std::int32_t> prompt(1);
  if (text.tokens) text.tokens->training.window(0, prompt);
  const auto tokens = models::generate(model, prompt, {.count = count, .temperature = 0.8, .seed = run.options().seed});
  run.note(fmt::format("--- sample ---\n{}", text.vocabulary.decode(tokens)));
}

// The mean loss over the first steps of a text whose rows continue from step to step; each rank computes its own rows.
template <typename D>
Mean validation_loss(const trainer::Run& run, const models::LstmLm<Float32, D>& model, const data::WindowLoader& rows) {
  const trainer::Evaluation in_evaluation(model);
  Mean loss;
  for (std::int64_t step = 0; step < validation_steps; ++step) {
    const auto batch = data::on_device<D>(rows.load(step));
    if (step > 0 && !batch.continues) break;  // the text has ended
    loss += mean_of(nn::loss_of(model, batch));
  }
  run.all_reduce(std::span(&loss, 1));
  return loss;
}

}  // namespace

template <typename D>
void train(trainer::Run& run, const LstmRecipe& recipe) {
  recipe.check_save(run);
  const Text text = read_on_all(run, [&] { return read(recipe); });
  models::LstmLm<Float32, D> model({.vocabulary = text.vocabulary.size(),
                                    .embedding = recipe.embedding,
                                    .hidden = recipe.hidden,
                                    .layers = recipe.layers,
                                    .dropout = recipe.dropout},
                                   text.tokens ? run.context() : ModelContext());
  recipe.load_weights(run, [&] { nn::load_weights<float>(model, recipe.init); });
  if (!text.tokens) return tell_sample(run, model, text, recipe.sample);

  // Each row of a batch reads its own part of the text, from start to end.
  const auto rows_of = [&](const data::TokenDataset& tokens, std::int64_t micro_batch_size) {
    data::BatchOptions batch = run.batch();
    batch.micro_batch_size = micro_batch_size;
    return data::WindowLoader(tokens, {.batch = batch, .length = recipe.block, .order = data::WindowOrder::continued});
  };
  const auto& [training, validation] = *text.tokens;
  const data::WindowLoader rows = rows_of(training, run.batch().micro_batch_size);
  std::optional<data::WindowLoader> validation_rows;
  if (validation.size() / rows.batch_size() > recipe.block) validation_rows = rows_of(validation, 0);

  recipe.describe_data(run, text.content);
  std::string vocabulary = text.vocabulary.to_text();  // becomes the checkpoint's when one is loaded
  run.keep([&](State& state) {
    state.add(data::vocabulary_name, &vocabulary);
    state.after_load([&] {
      require_same(text.vocabulary, data::Vocabulary::from_text(vocabulary), run.options().checkpoints.directory.string());
    });
  });
  const auto optimizer = optim::make_optimizer<Float32, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  run.note(fmt::format("{} parameters, {} layers of width {}; {} tokens to train on, {} different; {}, {} rows of {} a step",
                       model.store().num_elements(), recipe.layers, recipe.hidden, training.size(), text.vocabulary.size(),
                       ranks_of(run), rows.batch_size(), recipe.block));

  for (auto& step : run.steps(rows)) {
    step.backward(model, step.batches());
    step.update(*optimizer);
    if (validation_rows && recipe.validates(run)) {
      run.report({{"validation_loss", validation_loss(run, model, *validation_rows)}});
    }
  }

  if (run.stopped()) return;
  recipe.save_weights(run, [&] { nn::save_weights<float>(model, recipe.save, {{data::vocabulary_name, vocabulary}}); });
  tell_sample(run, model, text, recipe.sample);
}

template void train<TRIREME_DEVICE>(trainer::Run&, const LstmRecipe&);
