// Makes token shards of texts, checks, counts, splits and cuts them, and tells what a step has read: trireme-data --help,
// docs/trireme_data.md.

#include <fmt/format.h>

#include <optional>

#include "commands.hpp"
#include "launched_program.hpp"
#include "trireme/data/shards/cut_shards.hpp"

using namespace trireme;

namespace {

constexpr const char* about_pattern = "token shards: files, train-{000..099}.safetensors, @list.txt, folders";
constexpr const char* about_output = "beginning of the files' names: PREFIX-00000.safetensors and so on";
constexpr const char* about_shard_tokens = "tokens of a shard at most";
constexpr const char* about_workers = "threads; 0: all cores of this rank";

data::TokenShards open_on_all(const std::vector<std::string>& patterns, const Group& world) {
  std::optional<data::TokenShards> shards;
  const auto open = [&] { shards = data_program::open_shards(patterns); };
  world.agree(open, "open the shards");
  return *std::move(shards);
}

void tell_found(std::int64_t shards) { shards > 0 ? fmt::print("; {} shards were there already\n", shards) : fmt::print("\n"); }

int cut(const std::vector<std::string>& patterns, const std::string& output, const data::CutOptions& options,
        const Group& world) {
  const data::TokenShards shards = open_on_all(patterns, world);
  const data::CutReport report = data::cut_shards(shards, output, options, &world);
  if (world.rank() != 0) return 0;
  fmt::print("{} shards of {} documents, {} tokens", report.shards, shards.size(), shards.num_tokens());
  tell_found(report.shards_found);
  return 0;
}

int split(const std::vector<std::string>& patterns, const std::string& output, const data::SplitShardsOptions& options,
          const Group& world) {
  const data::SplitShardsReport report = data::split_shards(open_on_all(patterns, world), output, options, &world);
  if (world.rank() != 0) return 0;
  fmt::print("{}-training: {} documents, {} tokens\n{}-held-out: {} documents, {} tokens", output, report.training_documents,
             report.training_tokens, output, report.held_out_documents, report.held_out_tokens);
  tell_found(report.shards_found);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes token shards of texts, and looks into them: what train_lm --tokens shards reads.", "trireme-data");
  app.require_subcommand(1);
  data_program::TokenizeCommand tokenizing;
  data_program::StatisticsCommand counting;
  data_program::IdsCommand asking;
  data::CutOptions cutting;
  data::SplitShardsOptions splitting;
  std::string output;
  std::vector<std::string> patterns;
  std::optional<std::int64_t> vocabulary;

  CLI::App* tokenize = app.add_subcommand("tokenize", "makes token shards of texts and JSON lines; mpirun shares the work");
  tokenize
      ->add_option(
          "INPUT", tokenizing.inputs,
          "text files, JSON lines (.jsonl, .json), each also with .gz, as names, web-{000..099}.jsonl, @list.txt or folders")
      ->required();
  tokenize
      ->add_option("--tokenizer", tokenizing.tokenizer,
                   "a folder of transformers, its tokenizer.json or tokenizer.model, or byte: every byte is a token")
      ->required();
  tokenize->add_option("--output", tokenizing.output, about_output)->required()->type_name("PREFIX");
  tokenize->add_option("--text-field", tokenizing.options.text_field, "of a line of JSON")->capture_default_str();
  tokenize->add_option("--separator", tokenizing.separator,
                       "between the documents of a text file, with \\n for a new line; not given: a file is a document");
  tokenize
      ->add_option("--end-token", tokenizing.end_token,
                   "puts this token behind each document; without a name the tokenizer's own")
      ->expected(0, 1)
      ->type_name("[TOKEN]");
  tokenize->add_flag("--special-tokens", tokenizing.options.special_tokens, "with what the tokenizer puts around a text");
  add_number(*tokenize, "--shard-tokens", tokenizing.options.shard_tokens, about_shard_tokens)->check(at_least(1));
  tokenize->add_flag("--sources-are-files", tokenizing.sources_are_files,
                     "document_sources number the files; not given: the INPUTs");
  tokenize->add_flag("--skip-broken", tokenizing.options.skip_broken,
                     "counts broken documents; not given: the first one is an error");
  add_number(*tokenize, "--workers", tokenizing.options.workers, about_workers)->check(at_least(0));

  CLI::App* verify = app.add_subcommand("verify", "reads all of the shards; exit code 1 and a line for each faulty file");
  verify->add_option("PATTERN", patterns, about_pattern)->required();
  add_number(*verify, "--vocabulary", vocabulary, "tokens are below this")->check(at_least(1));

  CLI::App* indexer =
      app.add_subcommand("index", "where the samples of tar archives and the lines of files begin, kept beside them");
  indexer
      ->add_option("PATTERN", patterns,
                   "archives or files of lines: train-{000..099}.tar, part-{0..9}.jsonl, @list.txt, folders")
      ->required();

  CLI::App* stats = app.add_subcommand("stats", "documents, tokens, lengths and sources");
  stats->add_option("PATTERN", counting.patterns, about_pattern)->required();
  add_number(*stats, "--length", counting.length, "of rows: tells how many they are, and their padding")->check(at_least(1));
  stats->add_flag("--json", counting.json, "a line of JSON");

  CLI::App* splitter = app.add_subcommand(
      "split", "into PREFIX-training and PREFIX-held-out, by the content of each document; mpirun shares the work");
  splitter->add_option("PATTERN", patterns, about_pattern)->required();
  splitter->add_option("--output", output, about_output)->required()->type_name("PREFIX");
  add_number(*splitter, "--fraction", splitting.fraction, "of the documents that are held out")->check(between(0, 1));
  add_number(*splitter, "--seed", splitting.seed, "decides which");
  add_number(*splitter, "--shard-tokens", splitting.shard_tokens, about_shard_tokens)->check(at_least(1));
  add_number(*splitter, "--workers", splitting.workers, about_workers)->check(at_least(0));

  CLI::App* shard = app.add_subcommand("shard", "cuts shards anew; mpirun shares the work");
  shard->add_option("PATTERN", patterns, about_pattern)->required();
  shard->add_option("--output", output, about_output)->required()->type_name("PREFIX");
  add_number(*shard, "--shard-tokens", cutting.shard_tokens, about_shard_tokens)->check(at_least(1));
  add_number(*shard, "--shuffle", cutting.shuffle_seed, "a seed: documents come in a random order");
  add_number(*shard, "--workers", cutting.workers, about_workers)->check(at_least(0));

  CLI::App* ids = app.add_subcommand("ids", "the documents of a step's samples, a line of JSON each, of a run on token shards");
  ids->add_option("RUN", asking.run, "directory of checkpoints, or one of its folders")->required();
  add_number(*ids, "--step", asking.step, "as metrics number it, from 1 on")->required()->check(at_least(1));
  ids->add_option("--data", asking.data, "where the shards lie now; not given: as the run was told");
  ids->add_option("--tokenizer", asking.tokenizer, "tells the texts too: a folder, a file, or byte");

  return launch_program(
      app, argc, argv, [] { return BackendKind::mpi; },
      [&](const Group& world) {
        if (*tokenize) return data_program::tokenize(tokenizing, world);
        if (*splitter) return split(patterns, output, splitting, world);
        if (*shard) return cut(patterns, output, cutting, world);
        if (world.rank() != 0) return 0;
        if (*verify) return data_program::verify(patterns, vocabulary);
        if (*indexer) return data_program::index(patterns);
        if (*stats) return data_program::statistics(counting);
        return data_program::ids(asking);
      });
}
