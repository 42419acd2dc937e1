#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct Function {
  std::string name;  // "sum_first", as peers/functions_torch.py has it
  std::function<void()> run;
  std::function<void()> copy;  // memcpy of as many bytes as it reads and writes
};

// Functions on float tensors of `bytes` bytes; each call allocates its results, as in a program.
std::vector<Function> functions_of(std::int64_t bytes);
