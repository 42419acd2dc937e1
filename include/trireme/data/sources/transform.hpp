#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct TransformOptions {
  std::int64_t file_items = 10'000;  // items of a file
  std::string ending = ".jsonl";     // of the files' names
  std::string trailer = {};          // after the last item of each file
  std::string about = {};            // a description of the function; files made with another description are refused
  int workers = 0;                   // threads that call the function; 0: all of this rank
};

struct TransformReport {
  std::int64_t files = 0;
  std::int64_t files_found = 0;  // of an earlier start, which were not made again
};

namespace detail {

TransformReport transform(const Collectives& ranks, std::int64_t items, const std::string& content, const Location& prefix,
                          const std::function<std::string(std::int64_t)>& text_of, const TransformOptions& options);

}  // namespace detail

// Calls f once for each item of a dataset, and writes the texts or bytes that f returns, one after the other, to
// PREFIX-00000.jsonl and so on. The ranks share the files. Each file exists as a whole or not at all, and is the same for any
// number of ranks. If a start is killed, the next start makes the missing files. Items for which f returns "" are left out.
// Collective.
//
//   data::transform(world, table, "clean/rows", [](const Row& row) { return to_json(row) + "\n"; });
//
// f is called from several threads. An exception of f is thrown on all ranks; files that were written stay. Files made with
// another number of items, another content or other options are an Error{invalid_argument}.
template <ItemDataset D, typename F>
requires std::convertible_to<
    std::invoke_result_t<const F&, decltype(std::declval<const D&>().at(std::declval<const D&>().size()))>, std::string>
    TransformReport transform(const Collectives& ranks, const D& inputs, const Location& prefix, const F& f,
                              const TransformOptions& options = {}) {
  std::string content;
  if constexpr (requires { content_of(inputs); }) content = content_of(inputs);
  using Index = decltype(inputs.size());
  return detail::transform(
      ranks, static_cast<std::int64_t>(inputs.size()), content, prefix,
      [&](std::int64_t item) { return std::string(f(inputs.at(static_cast<Index>(item)))); }, options);
}

}  // namespace data
}  // namespace trireme
