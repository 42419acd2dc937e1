#include "files/remote/s3_xml.hpp"

#include <fmt/format.h>

#include <pugixml.hpp>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"

namespace trireme::remote {
namespace {

[[noreturn]] void refuse_answer(const Location& location, std::string what) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = "the server's answer is none of S3: " + std::move(what),
               .path = location.string(),
               .hint = "look whether the endpoint is an S3 server"});
}

// The root, whose name begins like this: not all servers put "Result" behind it.
pugi::xml_node root_of(pugi::xml_document& document, std::string_view xml, const char* name, const Location& location) {
  const auto result = document.load_buffer(xml.data(), xml.size());
  if (!result) refuse_answer(location, fmt::format("byte {}: {}", result.offset + 1, result.description()));
  const pugi::xml_node root = document.document_element();
  if (!std::string_view(root.name()).starts_with(name))
    refuse_answer(location, fmt::format("<{}> in place of <{}>", root.name(), name));
  return root;
}

std::string text_in(const pugi::xml_node& node, const char* name) { return node.child_value(name); }

std::string wanted_text(const pugi::xml_node& node, const char* name, const Location& location) {
  std::string text = text_in(node, name);
  if (text.empty()) refuse_answer(location, fmt::format("<{}> has no <{}>", node.name(), name));
  return text;
}

int hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Of encoding-type=url, which XML needs for names that it can't hold.
std::string decoded(const std::string& text, bool is_encoded) {
  if (!is_encoded) return text;
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool has_digits =
        text[at] == '%' && at + 2 < text.size() && hexadecimal_digit(text[at + 1]) >= 0 && hexadecimal_digit(text[at + 2]) >= 0;
    if (has_digits) {
      decoded += static_cast<char>(hexadecimal_digit(text[at + 1]) * 16 + hexadecimal_digit(text[at + 2]));
      at += 2;
    } else {
      decoded += text[at] == '+' ? ' ' : text[at];
    }
  }
  return decoded;
}

bool is_url_encoded(const pugi::xml_node& root) { return text_in(root, "EncodingType") == "url"; }

}  // namespace

S3Refusal parse_refusal(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "Error") return {};
  return {.code = text_in(root, "Code"), .message = text_in(root, "Message"), .region = text_in(root, "Region")};
}

S3Listing parse_listing(std::string_view xml, const Location& location) {
  pugi::xml_document document;
  const pugi::xml_node root = root_of(document, xml, "ListBucketResult", location);
  const bool is_encoded = is_url_encoded(root);
  S3Listing listing;
  for (const pugi::xml_node object : root.children("Contents")) {
    listing.keys.push_back(decoded(wanted_text(object, "Key", location), is_encoded));
  }
  for (const pugi::xml_node prefix : root.children("CommonPrefixes")) {
    listing.prefixes.push_back(decoded(wanted_text(prefix, "Prefix", location), is_encoded));
  }
  if (text_in(root, "IsTruncated") == "true") listing.next = wanted_text(root, "NextContinuationToken", location);
  return listing;
}

S3Uploads parse_uploads(std::string_view xml, const Location& location) {
  pugi::xml_document document;
  const pugi::xml_node root = root_of(document, xml, "ListMultipartUploadsResult", location);
  const bool is_encoded = is_url_encoded(root);
  S3Uploads uploads;
  for (const pugi::xml_node upload : root.children("Upload")) {
    uploads.keys_and_ids.emplace_back(decoded(wanted_text(upload, "Key", location), is_encoded),
                                      wanted_text(upload, "UploadId", location));
  }
  uploads.is_truncated = text_in(root, "IsTruncated") == "true";
  if (uploads.is_truncated) {
    uploads.next_key = decoded(wanted_text(root, "NextKeyMarker", location), is_encoded);
    uploads.next_id = text_in(root, "NextUploadIdMarker");
  }
  return uploads;
}

std::string parse_upload_id(std::string_view xml, const Location& location) {
  pugi::xml_document document;
  return wanted_text(root_of(document, xml, "InitiateMultipartUpload", location), "UploadId", location);
}

std::string parse_copied_tag(std::string_view xml, const Location& location) {
  pugi::xml_document document;
  return wanted_text(root_of(document, xml, "CopyPartResult", location), "ETag", location);
}

std::string completion_of(const std::vector<std::string>& tags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  for (std::size_t index = 0; index < tags.size(); ++index) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text() = std::to_string(index + 1).c_str();
    part.append_child("ETag").text() = tags[index].c_str();
  }
  struct Text final : pugi::xml_writer {
    std::string text;
    void write(const void* data, std::size_t size) override { text.append(static_cast<const char*>(data), size); }
  } text;
  document.save(text, "", pugi::format_raw | pugi::format_no_declaration);
  return std::move(text.text);
}

}  // namespace trireme::remote
