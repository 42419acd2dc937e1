#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "files/safetensors_format.hpp"
#include "trireme/files/file_memory.hpp"

namespace trireme {
namespace {

using safetensors::length_bytes;
using safetensors::max_header_bytes;

[[noreturn]] void fail(const Location& path, std::string message, std::string name = {}) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = std::move(message),
               .operation = "reading safetensors",
               .name = std::move(name),
               .path = path.string()});
}

std::string read_header_text(const InputFile& file, const Location& path) {
  const std::uint64_t size = file.size();
  if (size < length_bytes) fail(path, fmt::format("a file of {} bytes has no header length", size));
  std::uint64_t length = 0;
  file.read_at(std::as_writable_bytes(std::span(&length, 1)), 0);
  if (std::memcmp(&length, "version ", length_bytes) == 0) {
    fail(path, "the file is a Git LFS pointer instead of the tensors: fetch them by git lfs pull");
  }
  if (length > max_header_bytes) {
    fail(path, fmt::format("the header length {} is more than {} bytes", length, max_header_bytes));
  }
  if (length > size - length_bytes) {
    fail(path, fmt::format("the header of {} bytes does not fit the file of {} bytes", length, size));
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read_at(std::as_writable_bytes(std::span(text)), length_bytes);
  if (!text.starts_with('{')) fail(path, "the header does not begin with {");
  // The JSON parser would treat a zero byte as the end of the text.
  if (text.find('\0') != std::string::npos) fail(path, "the header holds a zero byte");
  return text;
}

void sort_by_name(std::vector<SafetensorsEntry>& tensors, const Location& path) {
  std::ranges::sort(tensors, {}, &SafetensorsEntry::name);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &SafetensorsEntry::name);
  if (twice != tensors.end()) fail(path, "the tensor appears twice", twice->name);
}

void check_size(const SafetensorsEntry& entry, const Location& path) {
  if (entry.begin > entry.end)
    fail(path, fmt::format("its data ends at {}, before it begins at {}", entry.end, entry.begin), entry.name);
  std::uint64_t wanted = size_of(entry.dtype);
  for (const std::int64_t dim : entry.shape.dims()) {
    if (__builtin_mul_overflow(wanted, static_cast<std::uint64_t>(dim), &wanted)) {
      fail(path, fmt::format("the shape {} has too many elements", entry.shape.str()), entry.name);
    }
  }
  if (wanted != entry.end - entry.begin) {
    fail(path,
         fmt::format("{} of shape {} takes {} bytes, but data_offsets span {}", name_of(entry.dtype), entry.shape.str(), wanted,
                     entry.end - entry.begin),
         entry.name);
  }
}

// The tensors must cover all bytes from the end of the header to the end of the file, without gaps and overlaps.
void check_coverage(std::span<const SafetensorsEntry> tensors, std::uint64_t data_bytes, const Location& path) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t index) { return std::pair(tensors[index].begin, tensors[index].end); });
  std::uint64_t covered = 0;
  for (const std::uint32_t index : order) {
    const SafetensorsEntry& entry = tensors[index];
    if (entry.begin != covered) {
      fail(path,
           fmt::format("its data begins at {}, {} the data of the tensor before, which ends at {}", entry.begin,
                       entry.begin < covered ? "inside" : "with a hole after", covered),
           entry.name);
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    fail(path, fmt::format("the tensors take {} bytes, but {} bytes follow the header", covered, data_bytes));
  }
}

// In a BOOL tensor every byte but 0 is true; a bool in memory must be 0 or 1.
void settle_booleans(DType dtype, std::span<std::byte> bytes) {
  if (dtype != DType::boolean) return;
  std::ranges::transform(bytes, bytes.begin(), [](std::byte byte) { return byte == std::byte{0} ? byte : std::byte{1}; });
}

std::unique_ptr<InputFile> open_safetensors(const Location& path) {
  if (is_folder(path)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "this is a folder instead of a safetensors file",
                 .path = path.string(),
                 .hint = "if it is a checkpoint, trireme-ckpt export FOLDER FILE writes its weights to a file"});
  }
  return open_file(path);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const Location& path) : SafetensorsFile(open_safetensors(path), path) {}

SafetensorsFile::SafetensorsFile(std::shared_ptr<const InputFile> file, const Location& path)
    : path_(path), file_(std::move(file)) {
  const std::string text = read_header_text(*file_, path);
  safetensors::Header header = safetensors::parse_header(text, path);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);

  const std::uint64_t data_begin = length_bytes + text.size();
  sort_by_name(tensors_, path);
  for (const SafetensorsEntry& entry : tensors_) check_size(entry, path);
  check_coverage(tensors_, file_->size() - data_begin, path);
  for (SafetensorsEntry& entry : tensors_) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {},
                                              [](const SafetensorsEntry& entry) -> std::string_view { return entry.name; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the file has no such tensor",
                 .name = std::string(name),
                 .path = path().string(),
                 .hint = fmt::format("it has {} tensors", tensors_.size())});
  }
  return *entry;
}

void SafetensorsFile::read(std::string_view name, std::span<std::byte> into) const {
  const SafetensorsEntry& entry = at(name);
  require(into.size() == entry.bytes(), "the tensor {} of {} has {} bytes, but the memory to read it into has {}", name,
          path().string(), entry.bytes(), into.size());
  file_->read_at(into, entry.begin);
  settle_booleans(entry.dtype, into);
}

void SafetensorsFile::read_part(std::string_view name, std::size_t first_byte, std::span<std::byte> into) const {
  const SafetensorsEntry& entry = at(name);
  require(first_byte <= entry.bytes() && into.size() <= entry.bytes() - first_byte,
          "the tensor {} of {} has {} bytes, so {} bytes from byte {} on cannot be read", name, path().string(), entry.bytes(),
          into.size(), first_byte);
  file_->read_at(into, entry.begin + first_byte);
  settle_booleans(entry.dtype, into);
}

std::vector<std::byte> SafetensorsFile::read_bytes(std::string_view name) const {
  std::vector<std::byte> bytes = elements_for<std::byte>(at(name).bytes(), path_);
  read(name, bytes);
  return bytes;
}

void SafetensorsFile::check_dtype(const SafetensorsEntry& entry, DType wanted) const {
  if (entry.dtype == wanted) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "the tensor has another dtype",
               .name = entry.name,
               .path = path().string(),
               .wanted = std::string(name_of(wanted)),
               .had = std::string(name_of(entry.dtype))});
}

}  // namespace trireme
