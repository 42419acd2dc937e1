#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/files/location.hpp"

namespace trireme::remote {

// What S3 answers. Where it breaks the form it is an Error{corrupt_file} with the location.

struct S3Refusal {
  std::string code = {};  // "NoSuchKey"; empty: the text is no refusal
  std::string message = {};
  std::string region = {};
};
S3Refusal parse_refusal(std::string_view xml);

struct S3Listing {
  std::vector<std::string> keys = {};
  std::vector<std::string> prefixes = {};  // "folder/"
  std::string next = {};                   // the token of the next page; empty: there is none
};
S3Listing parse_listing(std::string_view xml, const Location& location);

struct S3Uploads {
  std::vector<std::pair<std::string, std::string>> keys_and_ids = {};
  std::string next_key = {};
  std::string next_id = {};
  bool is_truncated = false;
};
S3Uploads parse_uploads(std::string_view xml, const Location& location);

std::string parse_upload_id(std::string_view xml, const Location& location);
std::string parse_copied_tag(std::string_view xml, const Location& location);

// The body that completes an upload of parts with these ETags.
std::string completion_of(const std::vector<std::string>& tags);

}  // namespace trireme::remote
