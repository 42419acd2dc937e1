#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "language_program.hpp"

struct EvaluateProgram : LanguageOptions {
  std::string text;     // path of a file or folder
  std::string choices;  // path of a file
  std::int64_t window = 0;
  std::int64_t stride = 0;
  std::string images;  // path of a file or folder
  std::int64_t batch = 32;
};

struct Question {
  std::string prompt;
  std::vector<std::string> choices;
  std::size_t answer = 0;
};
std::vector<Question> read_questions(const std::string& file);

// A line of JSON.
std::string line_of_text(double nats, std::int64_t tokens);
std::string line_of_choices(std::size_t right, std::size_t right_by_length, std::size_t questions);

// `path`: a folder of transformers or a checkpoint. `step`: of the checkpoint.
template <typename P, typename D>
void evaluate(const trireme::Group& world, const EvaluateProgram& program, const trireme::Location& path,
              std::optional<std::int64_t> step);
