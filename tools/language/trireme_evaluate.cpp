// Measures a model in a folder of transformers or in checkpoints. See trireme-evaluate --help and docs/evaluate.md.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint_model.hpp"
#include "evaluate.hpp"
#include "evaluate_images.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/json_fault.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

bool is_question(const json& line) {
  if (!line.is_object() || !line.contains("prompt") || !line.contains("choices") || !line.contains("answer")) return false;
  const json &choices = line.at("choices"), &answer = line.at("answer");
  if (!line.at("prompt").is_string() || !choices.is_array() || choices.empty() || !answer.is_number_unsigned()) return false;
  for (const json& choice : choices) {
    if (!choice.is_string()) return false;
  }
  return answer.get<std::size_t>() < choices.size();
}

}  // namespace

std::vector<Question> read_questions(const std::string& name) {
  std::ifstream file(name);
  require(file.good(), "--choices {} can't be read", name);
  std::vector<Question> questions;
  std::int64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.empty()) continue;
    const json line = json::parse(text, nullptr, false);
    require(is_question(line),
            "{}: line {}: this is not a question, {{\"prompt\": text, \"choices\": [text, ...], \"answer\": index of the right "
            "choice, from 0}}{}",
            name, number, why_no_json(text));
    questions.push_back({.prompt = line.at("prompt").get<std::string>(),
                         .choices = line.at("choices").get<std::vector<std::string>>(),
                         .answer = line.at("answer").get<std::size_t>()});
  }
  require(!questions.empty(), "--choices {} has no questions", name);
  return questions;
}

std::string line_of_text(double nats, std::int64_t tokens) {
  return nlohmann::ordered_json{{"perplexity", std::exp(nats)}, {"nats_per_token", nats}, {"tokens", tokens}}.dump();
}

std::string line_of_choices(std::size_t right, std::size_t right_by_length, std::size_t questions) {
  const auto all = static_cast<double>(questions);
  return nlohmann::ordered_json{{"accuracy", static_cast<double>(right) / all},
                                {"accuracy_by_length", static_cast<double>(right_by_length) / all},
                                {"questions", questions}}
      .dump();
}

std::string line_of_images(const Mean& right, const Mean& top_5, const Mean& loss) {
  nlohmann::ordered_json line{{"accuracy", right.value()}};
  if (top_5.weight > 0) line["top_5_accuracy"] = top_5.value();
  line["loss"] = loss.value();
  line["images"] = static_cast<std::int64_t>(right.weight);
  return line.dump();
}

int main(int argc, char** argv) {
  EvaluateProgram program;
  CLI::App app(
      "Measures a model in a folder of transformers, or in checkpoints, and prints lines of JSON.\n"
      "The processes of mpirun -n N divide the model, or the images.",
      "trireme-evaluate");
  program.add_to(app);
  const auto text =
      app.add_option("--text", program.text, "a file or folder of text: measure the perplexity with a sliding window");
  const auto window =
      add_number(app, "--window", program.window, "tokens that the model sees at once; 0: as many as it has positions")
          ->check(at_least(0));
  const auto stride =
      add_number(app, "--stride", program.stride, "tokens from one window to the next; 0: half a window")->check(at_least(0));
  const auto choices = app.add_option("--choices", program.choices,
                                      "a file of questions, JSON lines with \"prompt\", \"choices\" and \"answer\": the model "
                                      "answers with the likeliest choice");
  const auto images = app.add_option("--images", program.images,
                                     "images with their classes: measure the accuracy of a vision transformer; a folder with a "
                                     "folder of PNG and JPEG files for each class, or the test images of MNIST or CIFAR-10");
  for (CLI::Option* other : {text, window, stride, choices, app.get_option("--tokens"), app.get_option("--tokenizer"),
                             app.get_option("--adapter")}) {
    images->excludes(other);
  }
  add_number(app, "--batch", program.batch, "images at once on each rank")->check(at_least(1))->needs(images);
  return launch_language_program(app, argc, argv, program, [&](const Group& world) {
    require(!program.text.empty() || !program.choices.empty() || !program.images.empty(),
            "--text, --choices or --images is missing");
    for_each_model(world, program.folder, program.watch, [&](const Location& path, std::optional<std::int64_t> step) {
      program.with_types([&]<typename P, typename D>(P, D) {
        program.images.empty() ? evaluate<P, D>(world, program, path, step) : evaluate_images<P, D>(world, program, path, step);
      });
    });
  });
}
