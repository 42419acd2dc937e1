#include "trireme/data/sources/transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::data::detail {
namespace {

Location folder_of_files(const Location& prefix) {
  const Location folder = prefix.parent();
  return folder.empty() ? Location(".") : folder;
}

// What the files are of. It is there before the first of them.
void claim_files(const Location& prefix, const std::string& record) {
  const Location folder = folder_of_files(prefix), place = prefix.beside(".transform.json");
  file_system_of(folder)->create_folder(folder);
  if (is_there(place)) {
    if (const std::string had = open_file(place)->content(); had != record) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = "files of this name are there already, and are of something else",
                   .path = place.string(),
                   .wanted = record,
                   .had = had,
                   .hint = "remove them, with this one, or choose another name"});
    }
  } else {
    FileReplacement file(place);
    file.write(std::as_bytes(std::span(record)));
    file.commit();
  }
  // What killed starts have left half done.
  const std::string beginning = prefix.name() + "-";
  for (const std::string& name : file_system_of(folder)->names_in(folder)) {
    if (name.starts_with(beginning) && name.ends_with(".tmp")) file_system_of(folder)->remove_all(folder / name);
  }
}

}  // namespace

TransformReport transform(const Collectives& ranks, std::int64_t items, const std::string& content, const Location& prefix,
                          const std::function<std::string(std::int64_t)>& text_of, const TransformOptions& options) {
  const auto begin = [&] {
    require(!prefix.name().empty(), "the files need the beginning of their names, as in clean/rows");
    require(options.file_items > 0, "a file has at least one item, got {}", options.file_items);
    if (ranks.rank() != 0) return;
    const nlohmann::json record{{"items", items},           {"file_items", options.file_items},
                                {"ending", options.ending}, {"trailer", options.trailer},
                                {"content", content},       {"about", options.about}};
    claim_files(prefix, record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  ranks.agree(begin, "begin to transform");
  const std::int64_t files = items == 0 ? 0 : (items - 1) / options.file_items + 1;
  std::int64_t found = 0;
  const auto make = [&] {
    for (std::int64_t number = ranks.rank(); number < files; number += ranks.size()) {
      const Location file = prefix.beside(fmt::format("-{:05}{}", number, options.ending));
      if (is_there(file)) {
        ++found;
        continue;
      }
      const std::int64_t first = number * options.file_items;
      std::vector<std::string> texts(static_cast<std::size_t>(std::min(options.file_items, items - first)));
      for_each_item(std::ssize(texts), options.workers,
                    [&](std::int64_t item) { texts[static_cast<std::size_t>(item)] = text_of(first + item); });
      texts.push_back(options.trailer);
      FileReplacement written(file);
      for (const std::string& text : texts) written.write(std::as_bytes(std::span(text)));
      written.commit();
    }
  };
  ranks.agree(make, "transform items");
  ranks.all_reduce(std::span(&found, 1), ReduceOp::sum, "files that were there").wait_on_host();
  return {.files = files, .files_found = found};
}

}  // namespace trireme::data::detail
