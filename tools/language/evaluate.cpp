#include "evaluate.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "likelihood.hpp"
#include "model_folder.hpp"
#include "text_coding.hpp"
#include "trireme/data/text/text.hpp"

using namespace trireme;

namespace {

std::vector<std::int32_t> encode(const TextCoding& coding, const std::string& text, bool begins, std::int64_t vocabulary,
                                 const std::string& where) {
  std::vector<std::int32_t> tokens = coding.encode(text, begins);
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < vocabulary, "{} has the token {}, the model knows 0 to {}: does the tokenizer belong to it?",
            where, token, vocabulary - 1);
  }
  return tokens;
}

// The contents of the program's input files.
struct Measured {
  std::string text;
  std::vector<Question> questions;
};

struct Windows {
  std::vector<std::int32_t> tokens;
  std::size_t window = 0, stride = 0;
};

Windows windows_of(const EvaluateProgram& program, const TextCoding& coding, const std::string& text, std::int64_t vocabulary,
                   std::int64_t block) {
  const std::int64_t window = program.window == 0 ? block : program.window;
  const std::int64_t stride = program.stride == 0 ? std::max<std::int64_t>(window / 2, 1) : program.stride;
  require(window > 1 && window <= block && stride <= window,
          "--window {} and --stride {}: a window has 2 tokens or more and at most the {} that the model sees; a stride is at "
          "most a window",
          window, stride, block);
  Windows windows{.tokens = encode(coding, text, true, vocabulary, program.text),
                  .window = static_cast<std::size_t>(window),
                  .stride = static_cast<std::size_t>(stride)};
  require(windows.tokens.size() > 1, "{} has {} tokens, a perplexity needs 2 or more", program.text, windows.tokens.size());
  return windows;
}

template <typename Model>
std::string evaluate_text(const Model& model, const Windows& windows) {
  const Likelihood all = likelihood_by_windows(model, windows.tokens, windows.window, windows.stride);
  return line_of_text(-all.log / static_cast<double>(all.tokens), all.tokens);
}

struct Continued {
  std::vector<std::int32_t> prompt, choice;
};

// Encodes prompt and choice together. The choice's tokens are those after the prompt's: encoded alone, a word may give others.
Continued with_choice(const TextCoding& coding, const std::vector<std::int32_t>& prompt, const std::string& prompt_text,
                      const std::string& choice, std::int64_t vocabulary, const std::string& where) {
  const auto whole = coding.joins_words ? encode(coding, prompt_text + choice, true, vocabulary, where) : prompt;
  const bool goes_on = whole.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), whole.begin());
  if (!goes_on) return {.prompt = prompt, .choice = encode(coding, choice, false, vocabulary, where)};
  return {.prompt = prompt, .choice = {whole.begin() + std::ssize(prompt), whole.end()}};
}

// The choices of each question. Only the end of a long prompt is kept.
std::vector<std::vector<Continued>> choices_of(const EvaluateProgram& program, const TextCoding& coding,
                                               const std::vector<Question>& questions, std::int64_t vocabulary,
                                               std::int64_t block) {
  const auto most = static_cast<std::size_t>(block) + 1;
  std::vector<std::vector<Continued>> all;
  for (const Question& question : questions) {
    const std::string where = fmt::format("{}: question {}", program.choices, all.size());
    const auto prompt = encode(coding, question.prompt, true, vocabulary, where);
    std::vector<Continued>& choices = all.emplace_back();
    for (const std::string& text : question.choices) {
      Continued choice = with_choice(coding, prompt, question.prompt, text, vocabulary, where);
      require(!choice.prompt.empty() && !choice.choice.empty(), "{} has an empty prompt or choice", where);
      require(choice.choice.size() < most, "{} has a choice of {} tokens, the model sees {}", where, choice.choice.size(),
              block);
      const std::size_t before = std::min(choice.prompt.size(), most - choice.choice.size());
      choice.prompt.erase(choice.prompt.begin(), choice.prompt.end() - static_cast<std::ptrdiff_t>(before));
      choices.push_back(std::move(choice));
    }
  }
  return all;
}

template <typename Model>
std::string evaluate_choices(const Model& model, const std::vector<Question>& questions,
                             const std::vector<std::vector<Continued>>& choices) {
  std::size_t right = 0, right_by_length = 0;
  for (std::size_t number = 0; number < questions.size(); ++number) {
    const Question& question = questions[number];
    std::size_t best = 0, best_by_length = 0;
    std::vector<double> logs, logs_by_length;
    for (std::size_t place = 0; place < question.choices.size(); ++place) {
      const auto& [prompt, choice] = choices[number][place];
      std::vector<std::int32_t> text = prompt;
      text.insert(text.end(), choice.begin(), choice.end());
      logs.push_back(likelihood_of(model, text, prompt.size()).log);
      logs_by_length.push_back(logs.back() / static_cast<double>(question.choices[place].size()));
      if (logs[place] > logs[best]) best = place;
      if (logs_by_length[place] > logs_by_length[best_by_length]) best_by_length = place;
    }
    right += best == question.answer ? 1U : 0U;
    right_by_length += best_by_length == question.answer ? 1U : 0U;
  }
  return line_of_choices(right, right_by_length, questions.size());
}

}  // namespace

template <typename P, typename D>
void evaluate(const Group& world, const EvaluateProgram& program, const Location& path, std::optional<std::int64_t> step) {
  ModelFolder folder;
  TextCoding coding;
  Measured measured;
  const std::map<models::Family, std::string> refused{
      {models::Family::bert, "a BERT fills in masked tokens: it can't say how likely a token is after those before it"},
      {models::Family::vit, "a vision transformer is measured on images: give --images in place of --text and --choices"}};
  const auto read = [&] {
    folder = read_model_folder(path, program.adapter, refused);
    coding = coding_of(program, folder.path);
    if (!program.text.empty()) measured.text = data::read_text(program.text);
    if (!program.choices.empty()) measured.questions = read_questions(program.choices);
  };
  world.agree(read, "read the model's folder and the texts");
  with_model<P, D>(world, folder, divided_by_all(world), [&](const auto& model) {
    const std::int64_t vocabulary = model.options().vocabulary, block = model.options().block;
    Windows windows;
    std::vector<std::vector<Continued>> choices;
    const auto encode_all = [&] {
      if (!program.text.empty()) windows = windows_of(program, coding, measured.text, vocabulary, block);
      choices = choices_of(program, coding, measured.questions, vocabulary, block);
    };
    world.agree(encode_all, "encode the texts");
    std::string lines;
    if (!program.text.empty()) lines += with_step(evaluate_text(model, windows), step) + "\n";
    if (!program.choices.empty()) lines += with_step(evaluate_choices(model, measured.questions, choices), step) + "\n";
    if (world.rank() == 0) std::fputs(lines.c_str(), stdout);
    std::fflush(stdout);
  });
}

template void evaluate<Float32, TRIREME_DEVICE>(const Group&, const EvaluateProgram&, const Location&,
                                                std::optional<std::int64_t>);
template void evaluate<MixedBfloat16, TRIREME_DEVICE>(const Group&, const EvaluateProgram&, const Location&,
                                                      std::optional<std::int64_t>);
template void evaluate<MixedFloat16, TRIREME_DEVICE>(const Group&, const EvaluateProgram&, const Location&,
                                                     std::optional<std::int64_t>);
