#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "trireme/core/error.hpp"

using trireme::require;

namespace {

void add_model(CLI::App& app, Options& options) {
  const auto add = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->group("Model")->capture_default_str();
  };
  add("--tokenizer", options.tokenizer, "character: the bytes that occur in the text; word: what stands between spaces")
      ->check(CLI::IsMember({"character", "word"}));
  add("--vocabulary", options.vocabulary, "words that are known, the most frequent ones; others are <unk>");
  add("--layers", options.layers, "LSTM layers");
  add("--embedding", options.embedding, "width of a token's vector");
  add("--hidden", options.hidden, "width of the state of a layer");
  add("--block", options.block, "tokens of a step's stretch of text; the state goes on to the next without gradient");
  add("--dropout", options.dropout, "of the embedding and of each layer's output");
}

void check(const Options& options) {
  require(options.layers > 0 && options.embedding > 0 && options.hidden > 0 && options.block > 0,
          "--layers, --embedding, --hidden and --block are above 0");
  require(options.vocabulary >= 2, "--vocabulary {} is below 2", options.vocabulary);
  require(!options.training.data.empty() || (!options.training.init.empty() && options.training.sample > 0),
          "--data is missing; without it --init FILE --sample N generates text from weights that have their vocabulary");
  require(options.dropout >= 0 && options.dropout < 1, "--dropout {} does not lie in [0, 1)", options.dropout);
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  options.training.learning_rate = 3e-3;
  options.training.weight_decay = 0;
  options.training.beta2 = 0.99;
  CLI::App app{"Trains an LSTM language model on text, on one rank or on many: mpirun -n N train_lstm --data FILE"};
  TrainingParser parser(app, "train_lstm", options.training);
  parser.add_text();
  app.get_option("--data")->required(false);
  parser.add_device();
  add_model(app, options);
  if (parser.parse(argc, argv, help)) check(options);
  return options;
}

trireme::optim::Settings Options::settings() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  trireme::optim::Settings settings = training.settings();
  settings.insert(settings.end(), {{"tokenizer", tokenizer},
                                   {"vocabulary", text(vocabulary)},
                                   {"layers", text(layers)},
                                   {"embedding", text(embedding)},
                                   {"hidden", text(hidden)},
                                   {"block", text(block)},
                                   {"dropout", text(dropout)}});
  return settings;
}
