#pragma once

#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/packed_rows.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"
#include "trireme/data/sources/joined.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Token shards as rows for a Loader, from one part or from several parts with weights.
//
//   const data::TokenMixture mixture = data::open_token_mixture("mixture.json", {.length = 1024});
//   const data::Loader loader(mixture.rows, {.batch = run.batch(), .mixture = mixture.weights});
struct TokenMixture {
  Joined<PackedRows> rows;
  std::vector<MixtureWeights> weights;  // empty for a single part
  std::vector<std::string> names;       // of the parts
};

// A text that identifies the rows and the weights.
std::string content_of(const TokenMixture& mixture);

// `data`: a pattern of token shards (locations_of()), or a JSON file; patterns in this file are relative to its folder:
//
//   {"parts": [{"data": "books-{00..15}.safetensors", "weight": 0.3}, {"name": "web", "data": "@web.txt", "weight": 0.7}],
//    "weights_from_step": {"10000": [0.5, 0.5]}}
//
// For a file with other content, throws Error{invalid_argument}, which names the file and the fault.
TokenMixture open_token_mixture(const std::string& data, const PackedRowsOptions& options);

}  // namespace data
}  // namespace trireme
