#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The files that a pattern names, in order:
//
//   locations_of("train-{000..099}.tar")         // train-000.tar to train-099.tar, as many digits as the first number has
//   locations_of("{news,books}/{0..3}.tar")      // news/0.tar to news/3.tar, then books/0.tar to books/3.tar
//   locations_of("@shards.txt")                  // one pattern a line, relative to that file's folder; # begins a comment
//   locations_of("s3://bucket/shards/", tar_endings)  // all objects with this prefix, as of a folder; the last slash is needed
//   locations_of("shards", tar_endings)          // all files below a folder with one of these endings, sorted by name
//
// The name of an existing file is taken as it is, even with braces. locations_of() does not check whether the files of a
// pattern exist; opening a missing file throws. Throws Error for an unmatched brace, a range that runs backwards, more than ten
// million names, an empty list, and a folder without such files.
std::vector<Location> locations_of(std::string_view pattern, std::span<const std::string_view> endings = {});

}  // namespace data
}  // namespace trireme
