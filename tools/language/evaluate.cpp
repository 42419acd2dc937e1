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

template <typename Model>
std::string evaluate_text(const Model& model, const EvaluateProgram& program, const TextCoding& coding) {
  const std::int64_t block = model.options().block;
  const std::int64_t window = program.window == 0 ? block : program.window;
  const std::int64_t stride = program.stride == 0 ? std::max<std::int64_t>(window / 2, 1) : program.stride;
  require(window > 1 && window <= block && stride <= window,
          "--window {} and --stride {}: a window has 2 tokens or more and at most the {} that the model sees, a stride no more",
          window, stride, block);
  const auto tokens = encode(coding, data::read_text(program.text), true, model.options().vocabulary, program.text);
  require(tokens.size() > 1, "{} has {} tokens, a perplexity needs 2 or more", program.text, tokens.size());
  const Likelihood all =
      likelihood_by_windows(model, tokens, static_cast<std::size_t>(window), static_cast<std::size_t>(stride));
  return line_of_text(-all.log / static_cast<double>(all.tokens), all.tokens);
}

// Tokens of the prompt and of a choice; of a long prompt the end.
template <typename Model>
Likelihood likelihood_of_choice(const Model& model, const std::vector<std::int32_t>& prompt,
                                const std::vector<std::int32_t>& choice, const std::string& where) {
  const auto most = static_cast<std::size_t>(model.options().block) + 1;
  require(!prompt.empty() && !choice.empty(), "{} has an empty prompt or choice", where);
  require(choice.size() < most, "{} has a choice of {} tokens, the model sees {}", where, choice.size(), most - 1);
  const std::size_t before = std::min(prompt.size(), most - choice.size());
  std::vector<std::int32_t> text(prompt.end() - static_cast<std::ptrdiff_t>(before), prompt.end());
  text.insert(text.end(), choice.begin(), choice.end());
  return likelihood_of(model, text, before);
}

struct Continued {
  std::vector<std::int32_t> prompt, choice;
};

// A choice is what follows the prompt's tokens in the tokens of both together: alone a word may have others.
Continued with_choice(const TextCoding& coding, const std::vector<std::int32_t>& prompt, const std::string& prompt_text,
                      const std::string& choice, std::int64_t vocabulary, const std::string& where) {
  const auto whole = coding.joins_words ? encode(coding, prompt_text + choice, true, vocabulary, where) : prompt;
  const bool goes_on = whole.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), whole.begin());
  if (!goes_on) return {.prompt = prompt, .choice = encode(coding, choice, false, vocabulary, where)};
  return {.prompt = prompt, .choice = {whole.begin() + std::ssize(prompt), whole.end()}};
}

template <typename Model>
std::string evaluate_choices(const Model& model, const EvaluateProgram& program, const TextCoding& coding) {
  const std::vector<Question> questions = read_questions(program.choices);
  std::size_t right = 0, right_by_length = 0;
  for (std::size_t number = 0; number < questions.size(); ++number) {
    const Question& question = questions[number];
    const std::string where = fmt::format("{}: question {}", program.choices, number);
    const auto prompt = encode(coding, question.prompt, true, model.options().vocabulary, where);
    std::size_t best = 0, best_by_length = 0;
    std::vector<double> logs, logs_by_length;
    for (std::size_t place = 0; place < question.choices.size(); ++place) {
      const std::string& text = question.choices[place];
      const auto [before, choice] = with_choice(coding, prompt, question.prompt, text, model.options().vocabulary, where);
      logs.push_back(likelihood_of_choice(model, before, choice, where).log);
      logs_by_length.push_back(logs.back() / static_cast<double>(text.size()));
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
  const std::map<models::Family, std::string> refused{
      {models::Family::bert, "a BERT fills in masked tokens: it can't say how likely a token is after those before it"},
      {models::Family::vit, "a vision transformer is measured on images: give --images in place of --text and --choices"}};
  const auto read = [&] {
    folder = read_model_folder(path, program.adapter, refused);
    coding = coding_of(program, folder.path);
  };
  world.agree(read, "read the model's folder");
  with_model<P, D>(world, folder, divided_by_all(world), [&](const auto& model) {
    std::string lines;
    if (!program.text.empty()) lines += with_step(evaluate_text(model, program, coding), step) + "\n";
    if (!program.choices.empty()) lines += with_step(evaluate_choices(model, program, coding), step) + "\n";
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
