#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/safetensors_format.hpp"

namespace trireme::safetensors {
namespace {

using Json = nlohmann::json;

// Parses the header's JSON as a stream of events, to notice duplicate keys and to store only the entries.
class HeaderReader {
 public:
  explicit HeaderReader(const Location& path) : path_(path) {}

  Header take() { return std::move(header_); }

  bool null() {
    if (place_ != Place::header || key_ != metadata_key) return other_value("null");
    if (std::exchange(has_metadata_, true)) fail("__metadata__ appears twice", {});
    return true;  // the reference reader accepts null as no metadata
  }
  bool boolean(bool) { return other_value("a boolean"); }
  bool number_integer(Json::number_integer_t value) { return other_value(fmt::format("the number {}", value)); }
  bool number_float(Json::number_float_t, const std::string& text) { return other_value(fmt::format("the number {}", text)); }
  bool binary(Json::binary_t&) { return other_value("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    switch (place_) {
      case Place::shape: add_dim(value); break;
      case Place::offsets: add_offset(value); break;
      default: return other_value(fmt::format("the number {}", value));
    }
    return true;
  }

  bool string(std::string& text) {
    switch (place_) {
      case Place::dtype: set_dtype(text); break;
      case Place::metadata: header_.metadata[key_] = text; break;
      default: return other_value(fmt::format("the text \"{}\"", text));
    }
    return true;
  }

  bool start_object(std::size_t) {
    switch (place_) {
      case Place::nowhere: place_ = Place::header; break;
      case Place::header: start_header_value(); break;
      case Place::ignored: start_ignored(); break;
      default: refuse("an object");
    }
    return true;
  }

  bool key(std::string& text) {
    key_ = text;
    switch (place_) {
      case Place::metadata:
        if (header_.metadata.contains(text)) fail(fmt::format("the key \"{}\" of __metadata__ appears twice", text));
        break;
      case Place::entry: start_field(); break;
      default: break;
    }
    return true;
  }

  bool end_object() {
    switch (place_) {
      case Place::entry: finish_entry(); break;
      case Place::metadata: place_ = Place::header; break;
      case Place::ignored: end_ignored(); break;
      default: place_ = Place::nowhere; break;
    }
    return true;
  }

  bool start_array(std::size_t) {
    switch (place_) {
      case Place::shape:
      case Place::offsets:
        if (in_array_) refuse("an array");
        in_array_ = true;
        break;
      case Place::ignored: start_ignored(); break;
      default: refuse("an array");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::ignored) {
      end_ignored();
    } else {
      in_array_ = false;
      place_ = Place::entry;
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& exception) {
    fail(fmt::format("the header is not valid JSON at byte {}: {}", position, exception.what()), {});
  }

 private:
  enum class Place { nowhere, header, metadata, entry, dtype, shape, offsets, ignored };

  // The fields that a tensor's object has had so far.
  struct Fields {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
  };

  static constexpr int max_ignored_depth = 64;

  void start_header_value() {
    if (key_ == metadata_key) {
      if (std::exchange(has_metadata_, true)) fail("__metadata__ appears twice", {});
      place_ = Place::metadata;
      return;
    }
    header_.tensors.push_back({.name = key_});
    fields_ = {};
    num_dims_ = 0;
    num_offsets_ = 0;
    place_ = Place::entry;
  }

  // Skips keys that are not part of the format, as its reference reader does.
  void start_field() {
    const auto start = [this](Place place, bool& seen) {
      if (std::exchange(seen, true)) fail(fmt::format("\"{}\" appears twice", key_));
      place_ = place;
    };
    if (key_ == "dtype") {
      start(Place::dtype, fields_.dtype);
    } else if (key_ == "shape") {
      start(Place::shape, fields_.shape);
    } else if (key_ == "data_offsets") {
      start(Place::offsets, fields_.offsets);
    } else {
      place_ = Place::ignored;
      ignored_depth_ = 0;
    }
  }

  void set_dtype(const std::string& text) {
    const auto dtype = dtype_from_format_name(text);
    if (!dtype) fail(fmt::format("the dtype \"{}\" is not supported", text));
    entry().dtype = *dtype;
    place_ = Place::entry;
  }

  void add_dim(std::uint64_t value) {
    if (!in_array_) refuse(fmt::format("the number {}", value));
    if (num_dims_ == dims_.size())
      fail(fmt::format("the shape has more than {} dims, the most that can be read", dims_.size()));
    if (!std::in_range<std::int64_t>(value)) fail(fmt::format("the dim {} is too large", value));
    dims_[num_dims_++] = static_cast<std::int64_t>(value);
  }

  void add_offset(std::uint64_t value) {
    if (!in_array_) refuse(fmt::format("the number {}", value));
    if (num_offsets_ == 2) fail("data_offsets has more than two numbers");
    (num_offsets_++ == 0 ? entry().begin : entry().end) = value;
  }

  void finish_entry() {
    if (!fields_.dtype) fail("\"dtype\" is missing");
    if (!fields_.shape) fail("\"shape\" is missing");
    if (!fields_.offsets) fail("\"data_offsets\" is missing");
    if (num_offsets_ != 2) fail("data_offsets has fewer than two numbers");
    entry().shape = Shape(std::span(dims_.data(), num_dims_));
    place_ = Place::header;
  }

  bool other_value(const std::string& value) {
    if (place_ != Place::ignored) refuse(value);
    if (ignored_depth_ == 0) place_ = Place::entry;
    return true;
  }

  void start_ignored() {
    if (++ignored_depth_ > max_ignored_depth) fail(fmt::format("a value is nested deeper than {} levels", max_ignored_depth));
  }

  void end_ignored() {
    if (--ignored_depth_ == 0) place_ = Place::entry;
  }

  SafetensorsEntry& entry() { return header_.tensors.back(); }

  bool in_entry() const { return place_ != Place::nowhere && place_ != Place::header && place_ != Place::metadata; }

  [[noreturn]] void refuse(const std::string& value) const { fail(fmt::format("{} is not allowed as {}", value, expected())); }

  std::string expected() const {
    switch (place_) {
      case Place::metadata: return fmt::format("the value of \"{}\" in __metadata__, only text is", key_);
      case Place::dtype: return "a dtype, only text is";
      case Place::shape: return "a shape, only an array of whole numbers from 0 on is";
      case Place::offsets: return "data_offsets, only an array of two whole numbers from 0 on is";
      case Place::header: return fmt::format("the value of \"{}\", only an object is", key_);
      default: return "the header, only an object is";
    }
  }

  [[noreturn]] void fail(std::string message) const {
    fail(std::move(message), in_entry() ? header_.tensors.back().name : std::string());
  }

  [[noreturn]] void fail(std::string message, std::string name) const {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = std::move(message),
                 .operation = "reading safetensors",
                 .name = std::move(name),
                 .path = path_.string()});
  }

  const Location& path_;
  Header header_;
  Place place_ = Place::nowhere;
  std::string key_;
  bool has_metadata_ = false;
  Fields fields_;
  bool in_array_ = false;
  std::array<std::int64_t, Shape::max_dims> dims_{};
  std::size_t num_dims_ = 0;
  std::size_t num_offsets_ = 0;
  int ignored_depth_ = 0;
};

}  // namespace

Header parse_header(std::string_view text, const Location& path) {
  HeaderReader reader(path);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace trireme::safetensors
