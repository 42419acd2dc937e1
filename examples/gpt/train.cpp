#include "train.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "training/even_windows.hpp"
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

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const GptRecipe& recipe) {
  recipe.check_save(run);
  std::string bytes = read_on_all(run, [&] { return data::read_text(recipe.data); });
  recipe.describe_data(run, data::content_of(bytes));
  const auto text = data::split(data::TokenDataset::from_bytes(std::move(bytes)), recipe.validation_fraction);
  const bool has_validation = recipe.has_validation(text.validation.size(), recipe.block, recipe.block);
  check_sequences(run, recipe.block, recipe.width);
  const data::WindowLoader windows(text.training, {.batch = run.batch(), .length = recipe.block});

  const models::GptOptions options{.layers = recipe.layers,
                                   .heads = recipe.heads,
                                   .width = recipe.width,
                                   .block = recipe.block,
                                   .vocabulary = tokenizers::Tokenizer::bytes().vocabulary_size(),
                                   .dropout = recipe.dropout,
                                   .attention_dropout = recipe.attention_dropout,
                                   .fp8 = float8_scaling_named(recipe.fp8)};
  models::Gpt<P, D> model(options, run.context(layer_costs<P, D>(run, recipe, options)));
  recipe.load_weights(run, [&] { models::load_pretrained(model, recipe.init); });
  const auto optimizer = optim::make_optimizer<P, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  run.note(fmt::format("{} parameters, {} layers of width {}; {} tokens to train on; {}, {} sequences of {} a step",
                       model.store().num_elements(), recipe.layers, recipe.width, text.training.size(), ranks_of(run),
                       windows.batch_size(), recipe.block));

  for (auto& step : run.steps(windows)) {
    step.backward(model, step.batches());
    step.update(*optimizer);
    if (has_validation && recipe.validates(run)) {
      run.report({{"validation_loss", run.evaluate(model, EvenWindows{text.validation, recipe.block})}});
    }
  }

  if (run.stopped()) return;
  recipe.save_weights(run, [&] { models::save_gpt2(model, recipe.save); });
  if (recipe.sample == 0 || run.mesh().data().rank() != 0) return;
  const auto tokenizer = tokenizers::Tokenizer::bytes();
  const auto tokens =
      models::generate(model, tokenizer.encode("\n"), {.count = recipe.sample, .temperature = 0.8, .seed = run.options().seed});
  run.note(fmt::format("--- sample ---\n{}", tokenizer.decode(tokens)));
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const GptRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const GptRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const GptRecipe&);
