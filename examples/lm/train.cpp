#include "train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "corpus.hpp"
#include "training/even_windows.hpp"
#include "trireme/models/hugging_face.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

DType dtype_of_save(const LmRecipe& recipe) {
  if (recipe.save_dtype == "bfloat16") return DType::bfloat16;
  return recipe.save_dtype == "float16" ? DType::float16 : DType::float32;
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const LmRecipe& recipe) {
  recipe.check_save(run);
  const auto tokenizer = read_on_all(run, [&] { return tokenizer_of(recipe); });
  const models::LlamaOptions options = read_on_all(run, [&] { return model_options(recipe, tokenizer); });
  require(recipe.block <= options.block, "--block {} is longer than the model's {} positions", recipe.block, options.block);
  check_sequences(run, recipe.block, options.width);
  const Corpus corpus = read_on_all(run, [&] { return read_corpus(recipe, tokenizer); });
  check_vocabulary(recipe, corpus.tokens, options.vocabulary);
  recipe.describe_data(run, corpus.content);
  const auto text = data::split(corpus.tokens, recipe.validation_fraction);
  const bool has_validation = text.validation.size() > recipe.block;
  require(has_validation || recipe.validation_interval == 0 || recipe.validation_fraction == 0,
          "the validation part of {} has {} tokens, --block {} needs more; raise --validation-fraction or set it to 0",
          recipe.data, text.validation.size(), recipe.block);
  const data::WindowLoader windows(text.training, {.batch = run.batch(), .length = recipe.block});

  models::Llama<P, D> model(options, run.context());
  recipe.load_weights(run, [&] { models::load_pretrained(model, recipe.init); });
  const auto optimizer = optim::make_optimizer<P, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  run.note(fmt::format("{} parameters, {} layers of width {}; {} tokens to train on; {}, {} sequences of {} a step",
                       model.store().num_elements(), options.layers, options.width, text.training.size(), ranks_of(run),
                       windows.batch_size(), recipe.block));

  for (auto& step : run.steps(windows)) {
    step.backward(model, batches_on<D>(step));
    step.update(*optimizer);
    if (has_validation && recipe.validates(run)) {
      run.report({{"validation_loss", run.evaluate(model, EvenWindows{text.validation, recipe.block})}});
    }
  }

  if (run.stopped()) return;
  recipe.save_weights(run, [&] {
    models::save_pretrained(model, recipe.save,
                            {.dtype = dtype_of_save(recipe), .from = source_of(recipe), .tokenizer = named_tokenizer(recipe)});
  });
  if (recipe.sample == 0 || run.mesh().data().rank() != 0) return;
  std::vector<std::int32_t> prompt(1);
  text.training.window(0, prompt);
  const auto sampled = models::generate(model, prompt,
                                        {.count = recipe.sample,
                                         .temperature = 0.8,
                                         .seed = run.options().seed,
                                         .context = recipe.block});  // positions that were trained
  const std::string words = tokenizer ? tokenizer->decode(sampled) : fmt::format("{}", fmt::join(sampled, " "));
  run.note(fmt::format("--- sample ---\n{}", words));
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const LmRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const LmRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const LmRecipe&);
