#include "train.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "corpus.hpp"
#include "models.hpp"
#include "training/even_windows.hpp"
#include "training/prepared.hpp"
#include "training/token_rows.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

// The data to train and validate with, and the prompt of the sample.
template <typename Loader, typename Validation>
struct Source {
  Loader training;
  std::optional<Validation> validation;
  std::string about;  // a description
  models::TokenText prompt;
  models::TokenText stop = {};
  std::string chat_template = {};  // for the folder of --save
};
using Windows = Source<data::WindowLoader, EvenWindows>;
template <typename Loader>
using Conversations = Source<Loader, data::DocumentRows>;
using LoaderByLength = data::Loader<data::LengthBatches>;

// Large files are scanned by one rank of each node, which caches the result for the others.
void describe_corpus(trainer::Run& run, const LmRecipe& recipe, const Corpus& corpus, std::int64_t vocabulary) {
  if (corpus.content.empty()) {
    run.describe_data(recipe.data);
  } else {
    recipe.describe_data(run, corpus.content);
  }
  take_turns_on_nodes(
      run.world(), [&] { check_vocabulary(recipe, corpus.tokens, vocabulary); }, "look for the largest token");
}

// around: the number of special tokens in each sequence.
Windows windows_of(trainer::Run& run, const LmRecipe& recipe, const std::optional<tokenizers::Tokenizer>& tokenizer,
                   std::int64_t vocabulary, std::int64_t around) {
  const std::int64_t length = recipe.block - around;
  require(length > 0, "--block {} has no room beside {} special tokens", recipe.block, around);
  const Corpus corpus = read_on_all(run, [&] { return read_corpus(recipe, tokenizer); });
  describe_corpus(run, recipe, corpus, vocabulary);
  const auto text = data::split(corpus.tokens, recipe.validation_fraction);
  const bool has_validation = recipe.has_validation(text.validation.size(), length, recipe.block);
  Windows windows{.training = data::WindowLoader(text.training, {.batch = run.batch(), .length = length}),
                  .validation = {},
                  .about = fmt::format("{} tokens to train on", text.training.size()),
                  .prompt = models::TokenText(1)};
  if (has_validation) windows.validation.emplace(EvenWindows{text.validation, length});
  text.training.window(0, windows.prompt);
  return windows;
}

// Rows of token shards.
struct Shards : TokenRows {
  models::TokenText stop = {};
  std::string chat_template = {};  // for the folder of --save
};

std::string about(const Answers& answers, const LmRecipe& recipe) {
  const data::EncodedConversations& training = answers.training;
  std::string text = fmt::format("{} conversations to train on, {} tokens, of which {} are learnt", training.documents.size(),
                                 training.documents.num_tokens(), training.num_learnt);
  const std::int64_t cut = training.num_cut + answers.validation.num_cut;
  const std::int64_t left_out = training.num_left_out + answers.validation.num_left_out;
  if (cut > 0) text += fmt::format("; {} are cut at --block {}", cut, recipe.block);
  if (left_out > 0) text += fmt::format("; {} are left out, since no answer begins before that length", left_out);
  return text;
}

// With sequence parallelism or packing rows are as long as --block, whose length check_sequences() has checked.
template <typename Loader>
Loader conversation_loader(trainer::Run& run, const LmRecipe& recipe, const data::Documents& documents, std::string& about) {
  const bool of_one_length = run.options().sequence_parallel || recipe.packing;
  if constexpr (std::same_as<Loader, LoaderByLength>) {
    const data::LengthBatches batches(documents, {.max_tokens = recipe.max_tokens,
                                                  .length = recipe.block,
                                                  .long_documents = data::LongDocuments::truncated,
                                                  .pad_to_multiple_of = of_one_length ? recipe.block : 16});
    about += fmt::format("; in {} batches by length, {:.1f} % full", batches.size(), 100 * (1 - batches.padding()));
    return Loader(batches, run.batch());
  } else {
    const data::DocumentRows rows(documents, {.length = recipe.block, .packing = recipe.packing});
    if (recipe.packing) {
      about += fmt::format("; packed into {} sequences, {:.1f} % full", rows.size(), 100 * (1 - rows.padding()));
    }
    return Loader(rows, {.batch = run.batch(), .pad_to_multiple_of = of_one_length ? 0 : 16});
  }
}

template <typename Loader>
Conversations<Loader> conversations_of(trainer::Run& run, const LmRecipe& recipe, const tokenizers::Tokenizer& tokenizer,
                                       std::int64_t vocabulary) {
  Answers answers = read_on_all(run, [&] { return read_answers(recipe, tokenizer); });
  for (const auto* part : {&answers.training, &answers.validation}) check_vocabulary(recipe, part->documents, vocabulary);
  recipe.describe_data(run, answers.content);
  const bool has_validation = answers.validation.documents.size() > 0;
  require(has_validation || recipe.validation_interval == 0 || recipe.validation_fraction == 0,
          "{} has too few conversations for a validation part; raise --validation-fraction or set it to 0", recipe.data);
  const auto [tokens, targets] = answers.training.documents[0];
  const auto first = std::ranges::find_if(targets, [](std::int32_t target) { return target != data::no_target; });
  const auto prompt = tokens.first(static_cast<std::size_t>(first - targets.begin()) + 1);
  std::string text = about(answers, recipe);
  Conversations<Loader> conversations{.training = conversation_loader<Loader>(run, recipe, answers.training.documents, text),
                                      .validation = {},
                                      .about = text,
                                      .prompt = models::TokenText(prompt.begin(), prompt.end()),
                                      .stop = {targets.back()},
                                      .chat_template = std::move(answers.chat_template)};
  if (has_validation) {
    conversations.validation.emplace(std::move(answers.validation.documents),
                                     data::DocumentRowsOptions{.length = recipe.block, .packing = recipe.packing});
  }
  return conversations;
}

// The dropout in a folder's config that the model does not support.
double unused_dropout(const models::LlamaOptions& options) { return options.unused_attention_dropout; }
double unused_dropout(const models::GptNeoXOptions& options) {
  return std::max(options.unused_attention_dropout, options.unused_hidden_dropout);
}
double unused_dropout(const auto&) { return 0; }

template <typename Net>
void write_sample(trainer::Run& run, const LmRecipe& recipe, const Net& model,
                  const std::optional<tokenizers::Tokenizer>& tokenizer, const auto& source) {
  if (recipe.sample == 0 || run.mesh().data().rank() != 0) return;
  const auto sampled = models::generate(model, source.prompt,
                                        {.count = recipe.sample,
                                         .temperature = 0.8,
                                         .stop = source.stop,
                                         .seed = run.options().seed,
                                         .context = recipe.block});  // the positions that were trained
  const std::string words = tokenizer ? tokenizer->decode(sampled) : fmt::format("{}", fmt::join(sampled, " "));
  run.note(fmt::format("--- sample ---\n{}", words));
}

// prepare: turns a batch of the loader into one for the model.
template <typename P, typename D, typename Options>
void train_on(trainer::Run& run, const LmRecipe& recipe, LmModel<P, D, Options>& model,
              const std::optional<tokenizers::Tokenizer>& tokenizer, const auto& source, const auto& prepare) {
  const Options& options = model.options();
  recipe.load_weights(run, [&] { models::load_pretrained(model, recipe.init); });
  recipe.adapter.load(run, model);
  const auto optimizer = optim::make_optimizer<P, D>(recipe.optimizer, model, recipe.optimizer_options);
  run.add(model, *optimizer);
  const std::string of_step = recipe.max_tokens > 0 ? fmt::format("batches of up to {} tokens", recipe.max_tokens)
                                                    : fmt::format("sequences of {}", recipe.block);
  run.note(fmt::format("{}, {} layers of width {}; {}; {}, {} {} a step", recipe.adapter.about_parameters(run, model),
                       options.layers, options.width, source.about, ranks_of(run), source.training.batch_size(), of_step));

  const models::SavePretrainedOptions saving{.dtype = recipe.dtype_of_save(),
                                             .from = source_of(recipe),
                                             .tokenizer = named_tokenizer(recipe),
                                             .chat_template = source.chat_template};
  recipe.describe_model(run, [&](const std::string& folder) {
    models::SavePretrainedOptions alone = saving;
    alone.weights = false;
    models::save_pretrained(model, folder, alone);
  });
  for (auto& step : run.steps(source.training)) {
    step.backward(model, step.batches() | std::views::transform([&](const auto& batch) { return prepare(batch); }));
    step.update(*optimizer);
    if (source.validation && recipe.validates(run)) {
      run.report({{"validation_loss", run.evaluate(model, Prepared{&*source.validation, &prepare})}});
    }
  }

  if (run.stopped()) return;
  recipe.adapter.write(run, model, recipe.dtype_of_save(), recipe.init);
  recipe.save_weights(run, [&] { models::save_pretrained(model, recipe.save, saving); });
  if constexpr (!std::same_as<Options, models::BertOptions>) write_sample(run, recipe, model, tokenizer, source);
}

template <typename P, typename D, typename Options>
void train_model(trainer::Run& run, const LmRecipe& recipe, const Options& options,
                 const std::optional<tokenizers::Tokenizer>& tokenizer) {
  require(recipe.block <= options.block, "--block {} is longer than the model's {} positions", recipe.block, options.block);
  check_sequences(run, recipe.block, options.width);
  if (const double dropout = unused_dropout(options); dropout > 0) {
    run.note(fmt::format(
        "the folder's config asks for dropout of {}, which this kind of model does not support: trains without it", dropout));
  }
  ModelContext context = run.context();
  context.lora = recipe.adapter.options(run, usual_targets(options));
  LmModel<P, D, Options> model(options, context);  // before the data are read: it knows the targets of adapters
  recipe.adapter.describe(run, model, recipe.init);
  const bool has_conversations = recipe.tokens == "instructions";
  if constexpr (std::same_as<Options, models::BertOptions>) {
    require(recipe.tokens != "shards",
            "--tokens shards: a BERT fills in masked tokens of a text; give it --tokens text, uint16 or uint32");
    require(!has_conversations, "--tokens instructions: a BERT fills in masked tokens and learns no answers");
    require(recipe.sample == 0, "--sample {}: a BERT continues no text", recipe.sample);
    const Masking masking =
        read_on_all(run, [&] { return masking_of(recipe, tokenizer, options.vocabulary, run.options().seed); });
    const Windows source = windows_of(run, recipe, tokenizer, options.vocabulary, masking.num_around());
    train_on<P, D, Options>(run, recipe, model, tokenizer, source, masking);
  } else {
    const auto as_it_is = [](const data::TokenBatch& batch) { return batch; };
    if (recipe.tokens == "shards") {
      train_on<P, D, Options>(run, recipe, model, tokenizer,
                              Shards{open_token_rows(run, recipe, recipe.block, options.vocabulary)}, as_it_is);
    } else if (recipe.max_tokens > 0) {
      const auto source = conversations_of<LoaderByLength>(run, recipe, *tokenizer, options.vocabulary);
      train_on<P, D, Options>(run, recipe, model, tokenizer, source, as_it_is);
    } else if (has_conversations) {
      const auto source = conversations_of<data::DocumentLoader>(run, recipe, *tokenizer, options.vocabulary);
      train_on<P, D, Options>(run, recipe, model, tokenizer, source, as_it_is);
    } else {
      const Windows source = windows_of(run, recipe, tokenizer, options.vocabulary, 0);
      train_on<P, D, Options>(run, recipe, model, tokenizer, source, as_it_is);
    }
  }
}

}  // namespace

template <typename P, typename D>
void train(trainer::Run& run, const LmRecipe& recipe) {
  recipe.check_save(run);
  recipe.adapter.check_save(run, recipe.save, recipe.init);
  const auto tokenizer = read_on_all(run, [&] { return tokenizer_of(recipe); });
  const LmOptions options = read_on_all(run, [&] { return model_options(recipe, tokenizer); });
  std::visit([&](const auto& of_model) { train_model<P, D>(run, recipe, of_model, tokenizer); }, options);
}

template void train<Float32, TRIREME_DEVICE>(trainer::Run&, const LmRecipe&);
template void train<MixedBfloat16, TRIREME_DEVICE>(trainer::Run&, const LmRecipe&);
template void train<MixedFloat16, TRIREME_DEVICE>(trainer::Run&, const LmRecipe&);
