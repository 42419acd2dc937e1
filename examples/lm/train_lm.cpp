// Trains a language model on text, tokens or conversations, from scratch or from a folder of transformers, on one rank or many:
// see train_lm --help and docs/train_lm.md.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models.hpp"
#include "train.hpp"
#include "trireme/core/error.hpp"
#include "trireme/tokenizers/chat/chat_template.hpp"
#include "trireme/trainer/launch.hpp"

using namespace trireme;
using trainer::Differs;

namespace {

void check(const LmRecipe& recipe) {
  require(!recipe.data.empty(),
          "--data is missing: name a text file, a folder of text files, a file of tokens, or token shards");
  require(!recipe.model.empty() || !recipe.init.empty(), "--model or --init is missing: name a folder of transformers, or {}",
          fmt::join(names_of_sizes(), ", "));
  require(recipe.block > 0, "--block {} is not above 0", recipe.block);
  require(recipe.chat_template.empty() || recipe.tokens == "instructions",
          "--chat-template {} is for conversations: give --tokens instructions with it", recipe.chat_template);
  require(!recipe.packing || recipe.tokens == "instructions",
          "--packing is for conversations: give --tokens instructions with it; other tokens always fill their sequences");
  require(recipe.max_tokens == 0 || (recipe.tokens == "instructions" && !recipe.packing),
          "--max-tokens is for conversations that are not packed: give --tokens instructions with it, and no --packing");
  require(recipe.max_tokens == 0 || recipe.max_tokens >= recipe.block, "--max-tokens {} holds no sequence of --block {}",
          recipe.max_tokens, recipe.block);
}

}  // namespace

void LmRecipe::add_to(trainer::CommandLine& line) {
  Recipe::add_to(line,
                 "a text file, a folder of text files, a file of tokens, token shards as train-{00..15}.safetensors, or "
                 "conversations as lines of JSON");
  add_text(line);
  add_precision(line);
  line.add("model", model,
           fmt::format("{}; or a folder of transformers, whose config.json says the sizes; not given: --init's",
                       fmt::join(names_of_sizes(), ", ")));
  line.add("tokens", tokens, {"text", "uint16", "uint32", "shards", "instructions"},
           "what the data hold: text; uint16, uint32: a file of such numbers, each a token; shards: token shards of "
           "trireme-data, or a "
           "JSON file of several with weights, packed into sequences; instructions: lines of JSON with "
           "prompt and completion, or with messages, of which the answers are learnt");
  line.add("chat_template", chat_template,
           fmt::format("how a conversation becomes a text: {}; not given: that of the model's folder, where it is one of these",
                       fmt::join(tokenizers::ChatTemplate::names(), ", ")));
  line.add("packing", packing,
           "put as many whole conversations into a sequence as fit, each learnt as if alone, instead of one and padding");
  line.add("max_tokens", max_tokens,
           "put conversations of about the same length into batches of at most so many tokens, with padding; --batch-size then "
           "counts these batches; 0: sequences of one length");
  add_shards(line);
  line.add("tokenizer", tokenizer,
           "of texts and conversations: byte: every byte is a token; a folder of transformers, or its tokenizer.json or "
           "tokenizer.model; not given: "
           "that of the model's folder, or byte");
  line.add("block", block, "tokens of a sequence");
  line.add("save_dtype", save_dtype, {"float32", "bfloat16", "float16"}, "of the weights in --save and --save-adapter",
           Differs::allowed);
  adapter.add_to(line, init);
  line.after_parsing([this] { check(*this); });
}

int main(int argc, char** argv) {
  trainer::CommandLine line(
      "Trains a Llama, Mistral, Mixtral, Qwen, GPT-2, GPT-NeoX or BERT on text, tokens or conversations, on one rank or on "
      "many: "
      "mpirun -n N train_lm --data FILE --model NAME");
  LmRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 16, .warmup = 20, .minimum_learning_rate_ratio = 0.1},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); }); });
}
