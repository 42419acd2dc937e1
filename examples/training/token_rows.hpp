#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/recipe.hpp"
#include "trireme/data/documents/packed_rows.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/sources/joined.hpp"

// The rows of token shards, from one part or a mixture, which are read ahead.
struct TokenRows {
  trireme::data::Prefetching<trireme::data::Loader<trireme::data::Joined<trireme::data::PackedRows>>> training;
  std::optional<trireme::data::Joined<trireme::data::PackedRows>> validation = {};
  std::string about;                 // a description
  std::int64_t vocabulary;           // tokens that a model has to know
  std::vector<std::int32_t> prompt;  // the first token
};

// Opens the shards of --data and --validation as rows of `block` tokens and describes them to the run. Each token must be below
// `vocabulary`; 0: --data decides how many there are. Collective.
TokenRows open_token_rows(trireme::trainer::Run& run, const Recipe& recipe, std::int64_t block, std::int64_t vocabulary);
