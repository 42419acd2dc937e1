#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "language_program.hpp"
#include "trireme/models/architectures/generate.hpp"

struct GenerateProgram : LanguageOptions {
  std::string prompt;
  std::string prompts;  // path of a file
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::int64_t batch = 8;
  int tensor_parallel = 0;  // ranks that divide the model; 0: all
  bool timing = false;
  trireme::models::GenerateOptions sampling = {.count = 100, .temperature = 0};
};

// The prompt of --prompt, or the prompts in the file of --prompts: each line, or if its name ends in .jsonl, "prompt" of each
// object.
std::vector<std::string> read_prompts(const GenerateProgram& program);

// A line of JSON.
std::string line_of(const std::string& prompt, const std::string& text);

// `path`: a folder of transformers or a checkpoint. `step`: of the checkpoint.
template <typename P, typename D>
void generate(const trireme::Group& world, const GenerateProgram& program, const trireme::Location& path,
              std::optional<std::int64_t> step);
