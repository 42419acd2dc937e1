#include "train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>

#include "training/prepared.hpp"
#include "training/token_rows.hpp"
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

models::LstmLmOptions options_of(const LstmRecipe& recipe, std::int64_t vocabulary) {
  return {.vocabulary = vocabulary,
          .embedding = recipe.embedding,
          .hidden = recipe.hidden,
          .layers = recipe.layers,
          .dropout = recipe.dropout};
}

// An LSTM reads the documents of a row as one text, and has states for each row of a step's batch.
struct AsOneText {
  std::int64_t batch_size;

  data::TokenBatch operator()(data::TokenBatch batch) const {
    batch.document_starts = {};
    batch.first_row = batch.first_sample % batch_size;
    return batch;
  }
};

template <typename D>
void tell_sample(trainer::Run& run, const LstmRecipe& recipe, const models::LstmLm<Float32, D>& model,
                 const models::TokenText& prompt, const auto& text_of) {
  if (recipe.sample == 0 || run.mesh().data().rank() != 0) return;
  const auto tokens = models::generate(model, prompt, {.count = recipe.sample, .temperature = 0.8, .seed = run.options().seed});
  run.note(fmt::format("--- sample ---\n{}", text_of(tokens)));
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

// Trains on the loader's rows; validate() gives a loss, or is empty.
template <typename D>
void train_rows(trainer::Run& run, const LstmRecipe& recipe, models::LstmLm<Float32, D>& model, const auto& rows,
                const std::string& about, const std::function<Mean()>& validate) {
  const auto optimizer = optim::make_optimizer<Float32, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  run.note(fmt::format("{} parameters, {} layers of width {}; {}, {} different; {}, {} rows of {} a step",
                       model.store().num_elements(), recipe.layers, recipe.hidden, about, model.options().vocabulary,
                       ranks_of(run), rows.batch_size(), recipe.block));
  for (auto& step : run.steps(rows)) {
    step.backward(model, step.batches() | std::views::transform(AsOneText{rows.batch_size()}));
    step.update(*optimizer);
    if (validate && recipe.validates(run)) run.report({{"validation_loss", validate()}});
  }
}

template <typename D>
void train_on_shards(trainer::Run& run, const LstmRecipe& recipe) {
  const TokenRows rows = open_token_rows(run, recipe, recipe.block, recipe.vocabulary);
  models::LstmLm<Float32, D> model(options_of(recipe, rows.vocabulary), run.context());
  recipe.load_weights(run, [&] { nn::load_weights<float>(model, recipe.init); });
  const AsOneText as_one_text{rows.training.batch_size()};
  std::function<Mean()> validate;
  if (rows.validation) {
    validate = [&] { return run.evaluate(model, Prepared{&*rows.validation, &as_one_text}); };
  }
  train_rows(run, recipe, model, rows.training, rows.about, validate);
  if (run.stopped()) return;
  recipe.save_weights(run, [&] { nn::save_weights<float>(model, recipe.save); });
  tell_sample(run, recipe, model, rows.prompt,
              [](const models::TokenText& tokens) { return fmt::format("{}", fmt::join(tokens, " ")); });
}

template <typename D>
void train_on_text(trainer::Run& run, const LstmRecipe& recipe) {
  const Text text = read_on_all(run, [&] { return read(recipe); });
  models::LstmLm<Float32, D> model(options_of(recipe, text.vocabulary.size()), text.tokens ? run.context() : ModelContext());
  recipe.load_weights(run, [&] { nn::load_weights<float>(model, recipe.init); });
  models::TokenText prompt(1);
  if (text.tokens) text.tokens->training.window(0, prompt);
  const auto tell = [&] {
    tell_sample(run, recipe, model, prompt, [&](const models::TokenText& tokens) { return text.vocabulary.decode(tokens); });
  };
  if (!text.tokens) return tell();

  // Each row of a batch reads its own part of the text, from start to end.
  const auto rows_of = [&](const data::TokenDataset& tokens, std::int64_t micro_batch_size) {
    data::BatchOptions batch = run.batch();
    batch.micro_batch_size = micro_batch_size;
    return data::WindowLoader(tokens, {.batch = batch, .length = recipe.block, .order = data::WindowOrder::continued});
  };
  const auto& [training, validation] = *text.tokens;
  const data::WindowLoader rows = rows_of(training, run.batch().micro_batch_size);
  std::function<Mean()> validate;
  if (validation.size() / rows.batch_size() > recipe.block) {
    validate = [&run, &model, rows = rows_of(validation, 0)] { return validation_loss(run, model, rows); };
  }

  recipe.describe_data(run, text.content);
  std::string vocabulary = text.vocabulary.to_text();  // becomes the checkpoint's when one is loaded
  run.keep([&](State& state) {
    state.add(data::vocabulary_name, &vocabulary);
    state.after_load([&] {
      require_same(text.vocabulary, data::Vocabulary::from_text(vocabulary), run.options().checkpoints.directory.string());
    });
  });
  train_rows(run, recipe, model, rows, fmt::format("{} tokens to train on", training.size()), validate);
  if (run.stopped()) return;
  recipe.save_weights(run, [&] { nn::save_weights<float>(model, recipe.save, {{data::vocabulary_name, vocabulary}}); });
  tell();
}

}  // namespace

template <typename D>
void train(trainer::Run& run, const LstmRecipe& recipe) {
  recipe.check_save(run);
  if (recipe.tokens == "shards") {
    train_on_shards<D>(run, recipe);
  } else {
    train_on_text<D>(run, recipe);
  }
}

template void train<TRIREME_DEVICE>(trainer::Run&, const LstmRecipe&);
