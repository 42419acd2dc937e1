// Continues texts with a model in a folder of transformers or in checkpoints. See trireme-generate --help and docs/generate.md.
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint_model.hpp"
#include "generate.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/json_fault.hpp"

using namespace trireme;
using nlohmann::json;

std::vector<std::string> read_prompts(const GenerateProgram& program) {
  if (program.prompts.empty()) return {program.prompt};
  std::ifstream file(program.prompts);
  require(file.good(), "--prompts {} can't be read", program.prompts);
  std::vector<std::string> prompts;
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    if (program.prompts.ends_with(".jsonl")) {
      const json object = json::parse(line, nullptr, false);
      const bool has_prompt = object.is_object() && object.contains("prompt") && object.at("prompt").is_string();
      require(has_prompt, "{}: line {}: this is not a JSON object with a text \"prompt\"{}", program.prompts, number,
              why_no_json(line));
      line = object.at("prompt").get<std::string>();
    }
    prompts.push_back(line);
  }
  require(!prompts.empty(), "--prompts {} has no prompts", program.prompts);
  return prompts;
}

std::string line_of(const std::string& prompt, const std::string& text) {
  const nlohmann::ordered_json line{{"prompt", prompt}, {"text", text}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace);  // bytes that are not UTF-8
}

int main(int argc, char** argv) {
  GenerateProgram program;
  models::GenerateOptions& sampling = program.sampling;
  CLI::App app(
      "Continues texts with a model in a folder of transformers, or in checkpoints. The processes of mpirun -n N divide the "
      "model, or the prompts.\n"
      "--prompt prints the text as it grows, --prompts one line of JSON for each prompt.",
      "trireme-generate");
  program.add_to(app);
  const auto prompt = app.add_option("--prompt", program.prompt, "the text to continue");
  const auto prompts =
      app.add_option("--prompts", program.prompts,
                     "a file of prompts, one per line; if its name ends in .jsonl, of JSON objects with \"prompt\"");
  prompt->excludes(prompts);
  add_number(app, "--count", sampling.count, "tokens to add, at most")->check(at_least(0));
  add_number(app, "--temperature", sampling.temperature, "0 takes the most likely token, 1 draws by the model's probabilities")
      ->check(at_least(0));
  add_number(app, "--top-k", sampling.top_k, "draw from so many of the most likely tokens; 0: from all")->check(at_least(0));
  add_number(app, "--top-p", sampling.top_p, "draw from the fewest most likely tokens whose probabilities add up to this")
      ->check(above(0));
  app.add_option("--stop", program.stop, "a text ends with this token, given as text; may be repeated");
  app.add_flag("--ignore-eos", program.ignore_eos, "go on after the model's end of text, eos_token_id");
  add_number(app, "--seed", sampling.seed, "seed for drawing tokens: the same seed gives the same texts");
  add_number(app, "--context", sampling.context, "most tokens that the model sees; 0: as many as it has positions")
      ->check(at_least(0));
  add_number(app, "--batch", program.batch, "prompts that are continued at once")->check(at_least(1));
  add_number(app, "--tensor-parallel", program.tensor_parallel,
             "ranks that divide the model, 0: all; each such group is a replica, and replicas take the batches in turn")
      ->check(at_least(0));
  app.add_flag("--timing", program.timing, "print the time to stderr");
  return launch_language_program(app, argc, argv, program, [&](const Group& world) {
    require(!program.prompt.empty() || !program.prompts.empty(), "--prompt or --prompts is missing");
    for_each_model(world, program.folder, program.watch, [&](const Location& path, std::optional<std::int64_t> step) {
      program.with_types([&]<typename P, typename D>(P, D) { generate<P, D>(world, program, path, step); });
    });
  });
}
