#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>

#include "checkpoint/json.hpp"
#include "checkpoint/json_cursor.hpp"
#include "checkpoint/manifest_format.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/crc32c.hpp"

namespace trireme::checkpoint {
namespace {

// Whether the parts, each with ascending runs, hold each of `numel` elements exactly once. Looks at one run of each part at a
// time, since the ranges that the runs stand for may not fit into memory.
bool hold_each_once(const std::vector<TensorPart>& parts, std::int64_t numel) {
  struct Cursor {
    std::span<const Runs> runs;
    std::int64_t time = 0;  // of the first one

    std::int64_t begin() const { return runs.front().first + time * runs.front().stride; }
  };
  const auto later = [](const Cursor& a, const Cursor& b) { return a.begin() > b.begin(); };
  std::vector<Cursor> next;
  next.reserve(parts.size());
  for (const TensorPart& part : parts) next.push_back({.runs = part.runs});
  std::ranges::make_heap(next, later);
  std::int64_t covered = 0;
  while (!next.empty()) {
    std::ranges::pop_heap(next, later);
    Cursor& first = next.back();
    if (first.begin() != covered) return false;
    covered += first.runs.front().count;
    if (++first.time == first.runs.front().times) first = {.runs = first.runs.subspan(1)};
    if (first.runs.empty()) {
      next.pop_back();
    } else {
      std::ranges::push_heap(next, later);
    }
  }
  return covered == numel;
}

// Reads a manifest exactly as to_text() writes it, except for members that a later version added. It uses at most twice the
// text's bytes plus 1 MiB of memory.
class ManifestReader {
 public:
  ManifestReader(std::string_view text, const Location& path)
      : text_(text), path_(path), in_(content_of(text), [this](const std::string& what) { fail(what); }) {}

  Manifest read() {
    check_format();
    Manifest manifest;
    std::uint64_t digest = 0;
    members(
        {"chunk_bytes", "configuration", "critical", "digest", "files", "format", "min_reader", "step", "tensors", "values"},
        [&](const std::string& name) {
          if (name == "step") return void(manifest.step = in_.integer());
          if (name == "chunk_bytes") return void(manifest.chunk_bytes = in_.integer());
          if (name == "digest") return void(digest = hex());
          if (name == imported_field) return void(manifest.imported = imported());
          if (name == "files") return list(manifest.files, [this] { return file(); });
          if (name == "tensors") return list(manifest.tensors, [this] { return tensor(); });
          if (name == "configuration") return map(manifest.configuration, [this] { return kept(in_.text()); });
          if (name == "values") return map(manifest.values, [this] { return in_.number_or_text(); });
          in_.skip();
        });
    in_.end();
    if (manifest.step < 0 || manifest.chunk_bytes < 8 || manifest.chunk_bytes % 8 != 0) fail("its step or chunk size is wrong");
    check_layout(manifest);
    if (digest != manifest.digest()) fail("its digest is not that of its tensors");
    return manifest;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = "the manifest of a checkpoint is damaged: " + what.substr(0, 1000),
                 .path = path_.string(),
                 .hint = "resume from another step"});
  }

  // The part of the text that the checksum covers.
  std::string_view content_of(std::string_view text) const {
    JsonCursor head(text, [this](const std::string& what) { fail(what); });
    head.take("{\"crc32c\":");
    const std::uint64_t checksum = head.unsigned_integer();
    head.take(",\"manifest\":");
    constexpr std::string_view tail = "}\n";
    std::string_view content = head.rest();
    if (!content.ends_with(tail)) fail("it is cut off, or bytes follow its end");
    content.remove_suffix(tail.size());
    if (checksum != crc32c(std::as_bytes(std::span(content)))) fail("its checksum does not match");
    return content;
  }

  // Called first, since a later version may have other content.
  void check_format() {
    const auto refuse = [&](const std::string& what) {
      throw Error({.code = ErrorCode::not_available,
                   .message = "this checkpoint was written by a later version of the library: " + what,
                   .path = path_.string(),
                   .hint = "read it with that version"});
    };
    const JsonCursor start = in_;
    members({"critical", "format", "min_reader"}, [&](const std::string& name) {
      if (name == "format") {
        if (in_.text() != format_name) fail("it has another format");
      } else if (name == "min_reader") {
        const std::int64_t needed = in_.integer();
        if (needed > version) refuse(fmt::format("its format needs a reader of version {}, this one is {}", needed, version));
      } else if (name == "critical") {
        in_.array([&] {
          if (const std::string field = in_.text(); field != imported_field) {
            refuse(fmt::format("this version does not know \"{}\", which it needs", field));
          }
        });
      } else {
        in_.skip();
      }
    });
    in_ = start;
  }

  // Reads an object that must have all the `needed` members.
  template <typename Visit>
  void members(std::initializer_list<std::string_view> needed, const Visit& visit) {
    auto next = needed.begin();  // they are in ascending order
    in_.object([&](const std::string& name) {
      if (next != needed.end() && name == *next) ++next;
      visit(name);
    });
    if (next != needed.end()) fail(fmt::format("\"{}\" is missing", *next));
  }

  template <typename T, typename Read>
  void list(std::vector<T>& values, const Read& read) {
    const std::size_t count = in_.count_elements();
    take(count * sizeof(T));
    values.reserve(count);
    in_.array([&] { values.push_back(read()); });
  }

  template <typename Value, typename Read>
  void map(std::map<std::string, Value>& values, const Read& read) {
    in_.object([&](const std::string& name) {
      take(sizeof(std::string) + sizeof(Value) + 4 * sizeof(void*));
      values.emplace_hint(values.end(), kept(name), read());
    });
  }

  // The checksum catches damage; this catches a manifest that is crafted to exhaust memory.
  void take(std::size_t bytes) {
    constexpr std::size_t of_allocation = 16;
    taken_ += bytes + of_allocation;
    if (taken_ > 2 * text_.size() + (std::size_t{1} << 20)) fail("its content would take far more memory than it has bytes");
  }
  std::string kept(std::string text) {
    if (text.size() > 15) take(text.size() + 1);
    return text;
  }

  std::uint64_t hex() {
    const auto number = number_of_hex(in_.text());
    if (!number) fail("a digest does not have 16 digits");
    return *number;
  }
  template <typename T>
  T unsigned_of() {
    const std::uint64_t number = in_.unsigned_integer();
    if (number > std::numeric_limits<T>::max()) fail(fmt::format("{} is too large", number));
    return static_cast<T>(number);
  }

  ImportedWeights imported() {
    ImportedWeights weights;
    members({"prefix", "source"}, [&](const std::string& name) {
      if (name == "prefix") return void(weights.prefix = kept(in_.text()));
      if (name == "source") return void(weights.source = kept(in_.text()));
      in_.skip();
    });
    return weights;
  }

  SavedFile file() {
    SavedFile file;
    members({"bytes", "header_bytes", "header_crc32c", "name"}, [&](const std::string& name) {
      if (name == "name") return void(file.name = kept(in_.text()));
      if (name == "bytes") return void(file.bytes = in_.unsigned_integer());
      if (name == "header_bytes") return void(file.header_bytes = in_.unsigned_integer());
      if (name == "header_crc32c") return void(file.header_checksum = unsigned_of<std::uint32_t>());
      in_.skip();
    });
    if (file.name.empty() || file.name.find('/') != std::string::npos)
      fail(fmt::format("the file \"{}\" has no name", file.name));
    if (file.header_bytes > file.bytes) fail(fmt::format("{} is shorter than its header", file.name));
    return file;
  }

  SavedTensor tensor() {
    SavedTensor tensor;
    members({"digest", "dtype", "name", "optional", "parts", "shape"}, [&](const std::string& name) {
      if (name == "name") return void(tensor.name = kept(in_.text()));
      if (name == "dtype") return void(tensor.dtype = dtype());
      if (name == "shape") return void(tensor.shape = shape());
      if (name == "optional") return void(tensor.optional = in_.boolean());
      if (name == "digest") return void(tensor.digest = hex());
      if (name == "parts") return list(tensor.parts, [this] { return part(); });
      in_.skip();
    });
    return tensor;
  }

  DType dtype() {
    const std::string name = in_.text();
    const auto dtype = dtype_named(name);
    if (!dtype) fail(fmt::format("the dtype {} is unknown", name));
    return *dtype;
  }

  Shape shape() {
    std::array<std::int64_t, Shape::max_dims> dims{};
    std::size_t count = 0;
    in_.array([&] {
      if (count == dims.size()) fail("a shape has too many dims");
      dims[count++] = in_.integer();
      if (dims[count - 1] < 0) fail("a shape has a dim below 0");
    });
    return Shape(std::span(dims.data(), count));
  }

  TensorPart part() {
    TensorPart part;
    members({"crc32c", "file", "offset", "runs"}, [&](const std::string& name) {
      if (name == "file") return void(part.file = unsigned_of<std::uint16_t>());
      if (name == "offset") return void(part.offset = in_.unsigned_integer());
      if (name == "runs") return list(part.runs, [this] { return run(); });
      if (name == "crc32c") return list(part.checksums, [this] { return unsigned_of<std::uint32_t>(); });
      in_.skip();
    });
    return part;
  }

  Runs run() {
    Runs run;
    in_.take("[");
    run.first = in_.integer();
    in_.take(",");
    run.count = in_.integer();
    in_.take(",");
    run.stride = in_.integer();
    in_.take(",");
    run.times = in_.integer();
    in_.take("]");
    return run;
  }

  // Checks that parts lie inside their files and hold each element of their tensor exactly once.
  void check_layout(const Manifest& manifest) {
    for (std::size_t index = 1; index < manifest.tensors.size(); ++index) {
      if (manifest.tensors[index - 1].name >= manifest.tensors[index].name) fail("its tensors are not in order");
    }
    for (const SavedTensor& tensor : manifest.tensors) {
      if (manifest.imported && !tensor.name.starts_with(manifest.imported->prefix))
        fail(tensor.name + " is not among the imported weights");
      auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
      for (const std::int64_t dim : tensor.shape.dims()) {
        if (__builtin_mul_overflow(bytes, dim, &bytes)) fail(tensor.name + " has an impossible shape");
      }
      std::int64_t left = tensor.shape.numel();
      for (const TensorPart& part : tensor.parts) left -= check_part(manifest, tensor, part, left);
      if (left != 0 || (tensor.parts.size() > 1 && !hold_each_once(tensor.parts, tensor.shape.numel()))) {
        fail(fmt::format("{} is not there as a whole, or twice", tensor.name));
      }
    }
  }

  // The number of elements of a part. Refuses more than `most`.
  std::int64_t check_part(const Manifest& manifest, const SavedTensor& tensor, const TensorPart& part, std::int64_t most) {
    if (part.runs.empty() || !ascending(part.runs, tensor.shape.numel()))
      fail(fmt::format("a part of {} has impossible elements", tensor.name));
    const std::int64_t count = numel_of(part.runs);
    if (count > most) fail(fmt::format("{} is not there as a whole, or twice", tensor.name));
    const auto bytes = static_cast<std::uint64_t>(count) * size_of(tensor.dtype);
    const auto chunk = static_cast<std::uint64_t>(manifest.chunk_bytes);
    if (static_cast<std::size_t>(part.file) >= manifest.files.size())
      fail(tensor.name + " lies in a file that the manifest does not list");
    const SavedFile& file = manifest.files[static_cast<std::size_t>(part.file)];
    if (part.offset < file.header_bytes || part.offset > file.bytes || bytes > file.bytes - part.offset) {
      fail(fmt::format("{} lies beyond the end of {}", tensor.name, file.name));
    }
    if (part.checksums.size() != bytes / chunk + (bytes % chunk == 0 ? 0 : 1))
      fail(tensor.name + " has another number of checksums");
    if (tensor.parts.size() > 1) {
      take(sizeof(void*) * 3);
      for (const Runs& runs : part.runs) {
        if (runs.times > most_pieces - pieces_) fail("its tensors are cut into too many pieces");
        pieces_ += runs.times;
      }
    }
    return count;
  }

  // Real checkpoints have far fewer pieces; checking this many takes half a minute.
  static constexpr std::int64_t most_pieces = std::int64_t{1} << 30;

  std::string_view text_;
  const Location& path_;
  JsonCursor in_;
  std::size_t taken_ = 0;
  std::int64_t pieces_ = 0;
};

}  // namespace

Manifest parse_manifest(std::string_view text, const Location& path) { return ManifestReader(text, path).read(); }

}  // namespace trireme::checkpoint
