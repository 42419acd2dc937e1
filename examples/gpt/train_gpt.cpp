// Trains a GPT on text, on one rank or on many: see train_gpt --help and docs/train_gpt.md.

#include <charconv>
#include <cmath>

#include "train.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/matmul/float8.hpp"

using namespace trireme;
using trainer::Differs;

namespace {

void check(const GptRecipe& recipe) {
  require(!recipe.data.empty(), "--data is missing: name a text file, a folder of text files, or token shards");
  require(recipe.vocabulary == 0 || recipe.tokens == "shards",
          "--vocabulary {} is for --tokens shards; a text has 256 tokens, its bytes", recipe.vocabulary);
  require(recipe.vocabulary >= 0 && recipe.vocabulary <= most_width, "--vocabulary {} does not lie in [1, {}]",
          recipe.vocabulary, most_width);
  require_count("--layers", recipe.layers, most_layers);
  require_count("--heads", recipe.heads, most_width);
  require_count("--width", recipe.width, most_width);
  require_count("--block", recipe.block, most_width);
  require(recipe.width % recipe.heads == 0, "--heads {} does not divide --width {}", recipe.heads, recipe.width);
  require(recipe.dropout >= 0 && recipe.dropout < 1, "--dropout {} does not lie in [0, 1)", recipe.dropout);
  require(recipe.attention_dropout >= 0 && recipe.attention_dropout < 1, "--attention-dropout {} does not lie in [0, 1)",
          recipe.attention_dropout);
  const std::size_t costs = given_layer_costs(recipe).size();
  require(costs == 0 || costs == static_cast<std::size_t>(recipe.layers) + 2,
          "--layer-costs has {} numbers, with --layers {} it needs {}: embedding, blocks, output layer", costs, recipe.layers,
          recipe.layers + 2);
  if (recipe.fp8 == "none") return;
  require(recipe.precision == "bf16", "--fp8 {} needs --precision bf16, not {}", recipe.fp8, recipe.precision);
  constexpr std::int64_t multiple = ops::float8_multiple;
  require(recipe.width % multiple == 0 && recipe.block % multiple == 0,
          "--fp8 {} needs --width {} and --block {} to be multiples of {}", recipe.fp8, recipe.width, recipe.block, multiple);
}

}  // namespace

std::vector<double> given_layer_costs(const GptRecipe& recipe) {
  const std::string& text = recipe.layer_costs;
  if (text == "equal" || text == "measured") return {};
  std::vector<double> costs;
  const char* const end = text.data() + text.size();
  for (const char* begin = text.data(); begin <= end;) {
    const auto [after, failure] = std::from_chars(begin, end, costs.emplace_back());
    require(failure == std::errc() && costs.back() >= 0 && std::isfinite(costs.back()) && (after == end || *after == ','),
            "--layer-costs {} is not equal, measured or numbers from 0 on with commas between them", text);
    begin = after + 1;
  }
  return costs;
}

void GptRecipe::add_to(trainer::CommandLine& line) {
  Recipe::add_to(line, "a text file, a folder of text files, or token shards as train-{00..15}.safetensors");
  add_text(line);
  add_precision(line);
  line.add(
      "tokens", tokens, {"text", "shards"},
      "what the data hold: text; shards: token shards of trireme-data, or a JSON file of several with weights, packed into "
      "sequences");
  add_shards(line);
  line.add("tokenizer", tokenizer, {"byte"}, "of texts; byte: every byte is a token");
  line.add("vocabulary", vocabulary, "of token shards: the number of tokens that the model knows; 0: those of --data");
  line.add("layers", layers, "transformer blocks");
  line.add("heads", heads, "attention heads; must divide the width");
  line.add("width", width, "size of the residual stream");
  line.add("block", block, "tokens the model sees");
  line.add("dropout", dropout, "of the embedding and of each block's output");
  line.add("attention_dropout", attention_dropout, "of the shares that tokens have in attention; above 0 it is slower",
           Differs::told);
  line.add("fp8", fp8, {"none", "current", "delayed"},
           "8-bit products in the blocks' linear layers, with --precision bf16; how their operands are scaled", Differs::told);
  line.add("layer_costs", layer_costs,
           "by which the stages of a pipeline are cut: equal: as many blocks each; measured: before the first step; or numbers "
           "with commas between them for the embedding, each block and the output layer",
           Differs::allowed);
  line.after_parsing([this] { check(*this); });
}

int main(int argc, char** argv) {
  trainer::CommandLine line("Trains a GPT on text, on one rank or on many: mpirun -n N train_gpt --data FILE");
  GptRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 16, .warmup = 20, .minimum_learning_rate_ratio = 0.1},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<P, D>(run, recipe); }); });
}
