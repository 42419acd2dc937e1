#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "language_program.hpp"
#include "trireme/models/architectures/generate.hpp"

struct GenerateProgram : LanguageOptions {
  std::string prompt;
  std::string prompts;  // a file
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::int64_t batch = 8;
  int tensor_parallel = 0;  // ranks that divide the model; 0: all
  bool timing = false;
  trireme::models::GenerateOptions sampling = {.count = 100, .temperature = 0};
};

// The prompts of --prompt, or of --prompts: each line, or "prompt" of each object in a file whose name ends in .jsonl.
std::vector<std::string> read_prompts(const GenerateProgram& program);

// A line of JSON.
std::string line_of(const std::string& prompt, const std::string& text);

// `path`: a folder of transformers or a checkpoint, of that step.
template <typename P, typename D>
void generate(const trireme::Group& world, const GenerateProgram& program, const trireme::Location& path,
              std::optional<std::int64_t> step);
