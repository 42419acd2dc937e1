#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/base/group.hpp"
#include "trireme/data/documents/tokenize.hpp"
#include "trireme/data/shards/token_shards.hpp"

// What trireme-data does: each prints what it finds and returns the exit code.
namespace trireme::data_program {

struct TokenizeCommand {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string output;
  std::optional<std::string> end_token;  // empty: the tokenizer's own
  std::string separator;                 // with \n and \t
  bool sources_are_files = false;
  data::TokenizeOptions options;
};
int tokenize(TokenizeCommand command, const Group& world);

// Of patterns of shards.
data::TokenShards open_shards(const std::vector<std::string>& patterns);

int verify(const std::vector<std::string>& patterns, std::optional<std::int64_t> vocabulary);  // 1: damaged

// Writes the indexes of tar archives and files of lines beside them.
int index(const std::vector<std::string>& patterns);

struct StatisticsCommand {
  std::vector<std::string> patterns;
  std::optional<std::int64_t> length;  // of rows
  bool json = false;
};
int statistics(const StatisticsCommand& command);

struct IdsCommand {
  std::string run;
  std::int64_t step = 0;
  std::string data;       // empty: what the run was given
  std::string tokenizer;  // for the texts; empty: none
};
int ids(const IdsCommand& command);

}  // namespace trireme::data_program
