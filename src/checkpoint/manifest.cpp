#include "trireme/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "checkpoint/json.hpp"
#include "trireme/core/crc32c.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

constexpr const char* format_name = "trireme checkpoint";
constexpr std::int64_t version = 1;  // of what this library writes, and the latest it reads
constexpr const char* imported_field = "imported";

Json json_of(const TensorPart& part) {
  return {{"file", part.file}, {"offset", part.offset}, {"runs", json_of(part.runs)}, {"crc32c", part.checksums}};
}

Json json_of(const SavedTensor& tensor) {
  Json parts = Json::array();
  for (const TensorPart& part : tensor.parts) parts.push_back(json_of(part));
  return {{"name", tensor.name},
          {"dtype", name_of(tensor.dtype)},
          {"shape", tensor.shape.dims()},
          {"optional", tensor.optional},
          {"digest", fmt::format("{:016x}", tensor.digest)},
          {"parts", std::move(parts)}};
}

Json json_of(const SavedFile& file) {
  return {
      {"name", file.name}, {"bytes", file.bytes}, {"header_bytes", file.header_bytes}, {"header_crc32c", file.header_checksum}};
}

std::uint32_t checksum_of(const Json& content) {
  const std::string text = content.dump();
  return crc32c(std::as_bytes(std::span(text)));
}

// Reads a manifest, and knows where it is for the error.
class ManifestReader {
 public:
  explicit ManifestReader(const std::filesystem::path& path) : path_(path) {}

  Manifest read(std::string_view text) const {
    const Json whole = Json::parse(text, nullptr, false);
    if (whole.is_discarded() || !text.ends_with("}\n")) fail("it is not JSON, or cut off");
    const Json& content = member(whole, "manifest");
    if (checksum_of(content) != unsigned_of<std::uint32_t>(member(whole, "crc32c"), "crc32c"))
      fail("its checksum does not fit");
    check_format(content);

    Manifest manifest;
    manifest.step = integer(member(content, "step"), "step");
    manifest.chunk_bytes = integer(member(content, "chunk_bytes"), "chunk_bytes");
    if (manifest.step < 0 || manifest.chunk_bytes < 8 || manifest.chunk_bytes % 8 != 0) fail("its step or chunk size is wrong");
    if (content.contains(imported_field)) manifest.imported = imported_of(content.at(imported_field));
    for (const auto& [key, value] : object(member(content, "configuration"), "configuration")) {
      manifest.configuration[key] = text_of(value, key);
    }
    for (const auto& [key, value] : object(member(content, "values"), "values")) manifest.values[key] = value_of(value, key);
    for (const Json& file : array(member(content, "files"), "files")) manifest.files.push_back(file_of(file));
    for (const Json& tensor : array(member(content, "tensors"), "tensors")) manifest.tensors.push_back(tensor_of(tensor));
    check_layout(manifest);
    return manifest;
  }

 private:
  [[noreturn]] void fail(std::string what) const {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = "the manifest of a checkpoint is damaged: " + std::move(what),
                 .path = path_.string(),
                 .hint = "resume from another step"});
  }

  void check_format(const Json& content) const {
    if (text_of(member(content, "format"), "format") != format_name) fail("it has another format");
    const auto refuse = [&](const std::string& what) {
      throw Error({.code = ErrorCode::not_available,
                   .message = "this checkpoint was written by a later version of the library: " + what,
                   .path = path_.string(),
                   .hint = "read it with that version"});
    };
    const std::int64_t needed = integer(member(content, "min_reader"), "min_reader");
    if (needed > version) refuse(fmt::format("its format needs a reader of version {}, this one is {}", needed, version));
    for (const Json& field : array(member(content, "critical"), "critical")) {
      if (const std::string name = text_of(field, "critical"); name != imported_field) {
        refuse(fmt::format("it can't be understood without \"{}\"", name));
      }
    }
  }

  const Json& member(const Json& of, const char* name) const {
    if (!of.is_object() || !of.contains(name)) fail(fmt::format("\"{}\" is missing", name));
    return of.at(name);
  }
  const Json::object_t& object(const Json& value, std::string_view name) const {
    if (!value.is_object()) fail(fmt::format("\"{}\" is no object", name));
    return value.get_ref<const Json::object_t&>();
  }
  const Json& array(const Json& value, std::string_view name) const {
    if (!value.is_array()) fail(fmt::format("\"{}\" is no list", name));
    return value;
  }
  std::int64_t integer(const Json& value, std::string_view name) const {
    const auto known = value_of_json(value);
    if (!known || !std::holds_alternative<std::int64_t>(*known)) fail(fmt::format("\"{}\" is no integer", name));
    return std::get<std::int64_t>(*known);
  }
  template <typename T>
  T unsigned_of(const Json& value, std::string_view name) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
      fail(fmt::format("\"{}\" is no number of this size", name));
    }
    return value.get<T>();
  }
  std::string text_of(const Json& value, std::string_view name) const {
    if (!value.is_string()) fail(fmt::format("\"{}\" is no text", name));
    return value.get<std::string>();
  }

  SavedValue value_of(const Json& value, std::string_view name) const {
    const auto known = value_of_json(value);
    if (!known) fail(fmt::format("\"{}\" is neither a number nor a text", name));
    return *known;
  }

  ImportedWeights imported_of(const Json& value) const {
    return {.source = text_of(member(value, "source"), "source"), .prefix = text_of(member(value, "prefix"), "prefix")};
  }

  SavedFile file_of(const Json& value) const {
    SavedFile file{.name = text_of(member(value, "name"), "name"),
                   .bytes = unsigned_of<std::uint64_t>(member(value, "bytes"), "bytes"),
                   .header_bytes = unsigned_of<std::uint64_t>(member(value, "header_bytes"), "header_bytes"),
                   .header_checksum = unsigned_of<std::uint32_t>(member(value, "header_crc32c"), "header_crc32c")};
    if (file.name.empty() || file.name.find('/') != std::string::npos)
      fail(fmt::format("the file \"{}\" has no name", file.name));
    if (file.header_bytes > file.bytes) fail(fmt::format("{} is shorter than its header", file.name));
    return file;
  }

  SavedTensor tensor_of(const Json& value) const {
    SavedTensor tensor{.name = text_of(member(value, "name"), "name")};
    const auto dtype = dtype_named(text_of(member(value, "dtype"), "dtype"));
    if (!dtype) fail(fmt::format("{} has an unknown dtype", tensor.name));
    tensor.dtype = *dtype;
    std::vector<std::int64_t> dims;
    std::int64_t numel = 1;
    for (const Json& dim : array(member(value, "shape"), "shape")) {
      dims.push_back(integer(dim, "shape"));
      if (dims.back() < 0 || __builtin_mul_overflow(numel, dims.back(), &numel)) fail(tensor.name + " has an impossible shape");
    }
    if (dims.size() > Shape::max_dims) fail(tensor.name + " has too many dims");
    tensor.shape = Shape(dims);
    if (!member(value, "optional").is_boolean()) fail("\"optional\" is neither true nor false");
    tensor.optional = value.at("optional").get<bool>();
    const auto digest = number_of_hex(text_of(member(value, "digest"), "digest"));
    if (!digest) fail(tensor.name + " has no digest");
    tensor.digest = *digest;
    for (const Json& part : array(member(value, "parts"), "parts")) tensor.parts.push_back(part_of(part, tensor));
    return tensor;
  }

  TensorPart part_of(const Json& value, const SavedTensor& tensor) const {
    TensorPart part{.file = static_cast<int>(unsigned_of<std::uint16_t>(member(value, "file"), "file")),
                    .offset = unsigned_of<std::uint64_t>(member(value, "offset"), "offset"),
                    .runs = {},
                    .checksums = {}};
    const auto runs = runs_of_json(member(value, "runs"));
    if (!runs || !ascending(*runs, tensor.shape.numel()))
      fail(fmt::format("a part of {} has impossible elements", tensor.name));
    part.runs = *runs;
    for (const Json& checksum : array(member(value, "crc32c"), "crc32c")) {
      part.checksums.push_back(unsigned_of<std::uint32_t>(checksum, "crc32c"));
    }
    return part;
  }

  // Parts lie inside their files, and hold each element of their tensor once.
  void check_layout(const Manifest& manifest) const {
    for (std::size_t index = 1; index < manifest.tensors.size(); ++index) {
      if (manifest.tensors[index - 1].name >= manifest.tensors[index].name) fail("its tensors are not in order");
    }
    for (const SavedTensor& tensor : manifest.tensors) {
      if (manifest.imported && !tensor.name.starts_with(manifest.imported->prefix))
        fail(tensor.name + " is none of the weights that were imported");
      std::int64_t held = 0;
      std::vector<Range> ranges;
      for (const TensorPart& part : tensor.parts) {
        const std::int64_t count = numel_of(part.runs);
        const auto bytes = static_cast<std::uint64_t>(count) * size_of(tensor.dtype);
        const auto chunk = static_cast<std::uint64_t>(manifest.chunk_bytes);
        if (static_cast<std::size_t>(part.file) >= manifest.files.size())
          fail(tensor.name + " lies in a file that it does not name");
        const SavedFile& file = manifest.files[static_cast<std::size_t>(part.file)];
        if (part.offset < file.header_bytes || part.offset > file.bytes || bytes > file.bytes - part.offset) {
          fail(fmt::format("{} lies beyond the end of {}", tensor.name, file.name));
        }
        if (part.checksums.size() != (bytes + chunk - 1) / chunk) fail(tensor.name + " has another number of checksums");
        held += count;
        const auto own = ranges_of(part.runs);
        if (tensor.parts.size() > 1) ranges.insert(ranges.end(), own.begin(), own.end());
      }
      std::ranges::sort(ranges, {}, &Range::begin);
      const auto overlap = std::ranges::adjacent_find(ranges, [](const Range& a, const Range& b) { return b.begin < a.end; });
      if (held != tensor.shape.numel() || overlap != ranges.end()) {
        fail(fmt::format("{} is not there as a whole, or twice", tensor.name));
      }
    }
  }

  const std::filesystem::path& path_;
};

}  // namespace

std::uint64_t Manifest::digest() const {
  std::uint64_t sum = 0;
  for (const SavedTensor& tensor : tensors) sum += tensor.digest;
  return sum;
}

std::string to_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const SavedFile& file : manifest.files) files.push_back(json_of(file));
  Json tensors = Json::array();
  for (const SavedTensor& tensor : manifest.tensors) tensors.push_back(json_of(tensor));
  Json content{{"format", format_name},
               {"version", version},
               {"min_reader", version},
               {"critical", Json::array()},
               {"step", manifest.step},
               {"digest", fmt::format("{:016x}", manifest.digest())},
               {"chunk_bytes", manifest.chunk_bytes},
               {"configuration", manifest.configuration},
               {"values", json_of(manifest.values)},
               {"files", std::move(files)},
               {"tensors", std::move(tensors)}};
  if (manifest.imported) {
    content["critical"].push_back(imported_field);
    content[imported_field] = {{"source", manifest.imported->source}, {"prefix", manifest.imported->prefix}};
  }
  return Json{{"manifest", content}, {"crc32c", checksum_of(content)}}.dump() + "\n";
}

Manifest parse_manifest(std::string_view text, const std::filesystem::path& path) { return ManifestReader(path).read(text); }

}  // namespace trireme::checkpoint
