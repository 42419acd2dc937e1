// Trains a byte-level BPE tokenizer: trireme-train-tokenizer --help, docs/tokenizers.md.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <thread>

#include "command_line.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/data/sources/locations_of.hpp"
#include "trireme/device/core_quota.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/tokenizers/training/train_bpe.hpp"

using namespace trireme;

namespace {

struct TrainingProgram {
  std::vector<std::string> files;
  std::string output;
  std::string rules = "llama3";
  tokenizers::TextFiles texts;
  tokenizers::BpeTrainingOptions options;
};

const std::map<std::string, std::string>& patterns_by_name() {
  static const std::map<std::string, std::string> patterns{
      {"gpt2", tokenizers::patterns::gpt2}, {"llama3", tokenizers::patterns::cl100k}, {"qwen2", tokenizers::patterns::qwen2}};
  return patterns;
}

int cores() {
  const auto of_machine = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(of_machine, device::core_quota()));
}

void run(TrainingProgram& program) {
  for (const std::string& pattern : program.files) {
    for (Location& location : data::locations_of(pattern)) program.texts.files.push_back(std::move(location));
  }
  program.options.pattern = patterns_by_name().at(program.rules);
  const Location folder(program.output);
  file_system_of(folder)->create_folder(folder);  // before the work: what is wrong with it is told at once
  const Stopwatch watch;
  const tokenizers::TrainedBpe trained = tokenizers::train_bpe(program.texts, program.options);
  const std::string json = trained.tokenizer_json();
  FileReplacement file(folder / "tokenizer.json");
  file.write(std::as_bytes(std::span(json)));
  file.commit();
  fmt::print("{}: {} tokens, {} merges\n", (folder / "tokenizer.json").string(), trained.tokens.size(), trained.merges.size());
  fmt::print("{} texts, {:.1f} MB, {} words, {} distinct ones, {:.1f} s\n", trained.texts,
             static_cast<double>(trained.bytes) * 1e-6, trained.words, trained.distinct_words, watch.seconds());
  if (trained.skipped_texts > 0) fmt::print("{} texts that are no UTF-8 were skipped\n", trained.skipped_texts);
}

}  // namespace

int main(int argc, char** argv) {
  TrainingProgram program;
  program.options.threads = cores();
  CLI::App app(
      "Trains a byte-level BPE tokenizer on text files, with the merges that Hugging Face's tokenizers learns. Each line is a\n"
      "text. Writes tokenizer.json to a folder.",
      "trireme-train-tokenizer");
  app.add_option("files", program.files, "files, as names or patterns: train-{000..099}.txt, @list.txt")->required();
  app.add_option("--output", program.output, "folder for tokenizer.json")->required();
  add_number(app, "--vocab-size", program.options.vocabulary_size, "tokens, at most: special ones, 256 bytes and merged ones");
  add_number(app, "--min-frequency", program.options.min_frequency, "do not merge pairs of tokens that occur less often")
      ->check(at_least(0));
  app.add_option("--special-token", program.options.special_tokens,
                 "such as <|endoftext|>; may be repeated; they get the first numbers");
  app.add_option("--rules", program.rules, "how texts are split into words: gpt2, llama3 or qwen2")
      ->check(CLI::IsMember(patterns_by_name()))
      ->capture_default_str();
  CLI::Option* field = app.add_option("--text-field", program.texts.json_field,
                                      "the files are JSON lines; each object has its text in this field");
  app.add_flag("--whole-files", program.texts.whole, "each file is one text: words may span lines")->excludes(field);
  app.add_flag("--skip-invalid", program.options.skip_invalid, "count texts that are no UTF-8 instead of stopping at them");
  add_number(app, "--threads", program.options.threads, "threads that count words; the result is the same for any number")
      ->check(at_least(1));
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  return run_tool(app.get_name(), [&] {
    run(program);
    return 0;
  });
}
