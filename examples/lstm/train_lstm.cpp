// Trains an LSTM language model on text, on one rank or on many: see train_lstm --help and docs/train_lstm.md.

#include "train.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

void LstmRecipe::add_to(trainer::CommandLine& line) {
  optimizer_options.learning_rate = 3e-3;
  optimizer_options.weight_decay = 0;
  optimizer_options.beta2 = 0.99;
  Recipe::add_to(line,
                 "a text file, a folder of text files, or token shards as train-{00..15}.safetensors; without it --init FILE "
                 "--sample N generates text");
  add_text(line);
  line.set_group("Model");
  line.add(
      "tokens", tokens, {"text", "shards"},
      "what the data hold: text; shards: token shards of trireme-data, or a JSON file of several with weights, packed into "
      "rows that each begin with a state of zeros");
  add_shards(line);
  line.add("tokenizer", tokenizer, {"character", "word"},
           "character: the bytes that occur in the text; word: text between spaces");
  line.add(
      "vocabulary", vocabulary,
      "words that are known, the most frequent ones, others are <unk>; of token shards: the number of tokens that the model "
      "knows, or 0: those of --data");
  line.add("layers", layers, "LSTM layers");
  line.add("embedding", embedding, "width of a token's vector");
  line.add("hidden", hidden, "width of the state of a layer");
  line.add("block", block, "tokens that a row reads in a step; the state is passed on to the next step without gradient");
  line.add("dropout", dropout, "of the embedding and of each layer's output");
  line.after_parsing([this, &line] {
    if (tokens == "shards" && !line.given("vocabulary")) vocabulary = 0;
    require(!data.empty() || (tokens == "text" && !init.empty() && sample > 0),
            "--data is missing; without it --init FILE --sample N generates text from weights that contain a vocabulary");
    require_count("--layers", layers, most_layers);
    require_count("--embedding", embedding, most_width);
    require_count("--hidden", hidden, most_width);
    require_count("--block", block, most_width);
    require(vocabulary >= 2 || (tokens == "shards" && vocabulary == 0), "--vocabulary {} is below 2", vocabulary);
    require(dropout >= 0 && dropout < 1, "--dropout {} does not lie in [0, 1)", dropout);
  });
}

int main(int argc, char** argv) {
  trainer::CommandLine line(
      "Trains an LSTM language model on text, on one rank or on many: mpirun -n N train_lstm --data FILE");
  LstmRecipe recipe;
  recipe.add_to(line);
  return trainer::launch(
      argc, argv, line, {.until = Steps{1000}, .batch_size = 16, .warmup = 20, .minimum_learning_rate_ratio = 0.1},
      [&](trainer::Run& run) { recipe.with_types([&]<typename P, typename D>(P, D) { train<D>(run, recipe); }); });
}
