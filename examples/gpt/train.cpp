#include "train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "training/even_windows.hpp"
#include "training/token_rows.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/data/text/token_dataset.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/layer_costs.hpp"
#include "trireme/models/folders/gpt2_safetensors.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

using namespace trireme;

namespace {

// The costs of the embedding, each block and the output layer; none if stages get equally many blocks. Collective.
template <typename P, typename D>
std::vector<double> layer_costs(trainer::Run& run, const GptRecipe& recipe, const models::GptOptions& model) {
  if (recipe.layer_costs != "measured" || run.mesh().pipeline().size() == 1) return given_layer_costs(recipe);
  const data::BatchOptions batch = run.batch();
  std::vector<double> costs(static_cast<std::size_t>(recipe.layers) + 2);
  const auto measure = [&] {
    const std::int64_t sequences = batch.micro_batch_size > 0 ? batch.micro_batch_size : batch.batch_size / batch.count;
    if (run.world().rank() == 0) costs = models::measured_layer_costs<P, D>(model, sequences);
  };
  run.world().agree(measure, "measure layers");
  run.world().broadcast(std::span(costs), 0, "costs of layers").wait_on_host();
  run.note(
      fmt::format("forward and backward of a micro-batch: embedding {:.2f} ms, each block {:.2f} ms, output layer {:.2f} ms",
                  1e3 * costs.front(), 1e3 * costs[1], 1e3 * costs.back()));
  return costs;
}

// The data to train and validate on.
template <typename Loader, typename Validation>
struct Source {
  const Loader& loader;
  const std::optional<Validation>& validation;
  std::string about;  // a description
  std::int64_t vocabulary;
  models::TokenText prompt;  // of the sample
};

template <typename P, typename D>
void train_on(trainer::Run& run, const GptRecipe& recipe, const auto& source, const auto& text_of) {
  check_sequences(run, recipe.block, recipe.width);
  const models::GptOptions options{.layers = recipe.layers,
                                   .heads = recipe.heads,
                                   .width = recipe.width,
                                   .block = recipe.block,
                                   .vocabulary = source.vocabulary,
                                   .dropout = recipe.dropout,
                                   .attention_dropout = recipe.attention_dropout,
                                   .fp8 = float8_scaling_named(recipe.fp8)};
  models::Gpt<P, D> model(options, run.context(layer_costs<P, D>(run, recipe, options)));
  recipe.load_weights(run, [&] { models::load_pretrained(model, recipe.init); });
  const auto optimizer = optim::make_optimizer<P, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  run.note(fmt::format("{} parameters, {} layers of width {}; {}; {}, {} sequences of {} a step", model.store().num_elements(),
                       recipe.layers, recipe.width, source.about, ranks_of(run), source.loader.batch_size(), recipe.block));

  for (auto& step : run.steps(source.loader)) {
    step.backward(model, step.batches());
    step.update(*optimizer);
    if (source.validation && recipe.validates(run)) {
      run.report({{"validation_loss", run.evaluate(model, *source.validation)}});
    }
  }

  if (run.stopped()) return;
  recipe.save_weights(run, [&] { models::save_gpt2(model, recipe.save); });
  if (recipe.sample == 0 || run.mesh().data().rank() != 0) return;
  const auto tokens =
      models::generate(model, source.prompt, {.count = recipe.sample, .temperature = 0.8, .seed = run.options().seed});
  run.note(fmt::format("--- sample ---\n{}", text_of(tokens)));
}

template <typename P, typename D>
void train_on_text(trainer::Run& run, const GptRecipe& recipe) {
  std::string bytes = read_on_all(run, [&] { return data::read_text(recipe.data); });
  recipe.describe_data(run, data::content_of(bytes));
  const auto text = data::split(data::TokenDataset::from_bytes(std::move(bytes)), recipe.validation_fraction);
  std::optional<EvenWindows> validation;
  if (recipe.has_validation(text.validation.size(), recipe.block, recipe.block)) {
    validation.emplace(EvenWindows{text.validation, recipe.block});
  }
  const data::WindowLoader windows(text.training, {.batch = run.batch(), .length = recipe.block});
  const auto tokenizer = tokenizers::Tokenizer::bytes();
  const Source<data::WindowLoader, EvenWindows> source{.loader = windows,
                                                       .validation = validation,
                                                       .about = fmt::format("{} tokens to train on", text.training.size()),
                                                       .vocabulary = tokenizer.vocabulary_size(),
                                                       .prompt = tokenizer.encode("\n")};
  train_on<P, D>(run, recipe, source, [&](const models::TokenText& tokens) { return tokenizer.decode(tokens); });
}

template <typename P, typename D>
void train_on_shards(trainer::Run& run, const GptRecipe& recipe) {
  const TokenRows rows = open_token_rows(run, recipe, recipe.block, recipe.vocabulary);
  const Source<decltype(rows.training), data::Joined<data::PackedRows>> source{.loader = rows.training,
                                                                               .validation = rows.validation,
                                                                               .about = rows.about,
                                                                               .vocabulary = rows.vocabulary,
                                                                               .prompt = rows.prompt};
  train_on<P, D>(run, recipe, source,
                 [](const models::TokenText& tokens) { return fmt::format("{}", fmt::join(tokens, " ")); });
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const GptRecipe& recipe) {
  recipe.check_save(run);
  if (recipe.tokens == "shards") {
    train_on_shards<P, D>(run, recipe);
  } else {
    train_on_text<P, D>(run, recipe);
  }
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const GptRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const GptRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const GptRecipe&);
