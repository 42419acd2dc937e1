#include "tokenizers/training/text_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::size_t bytes_at_once = std::size_t{1} << 20;
constexpr std::size_t texts_at_once = std::size_t{1} << 14;

class TextsInMemory : public TextSource {
 public:
  explicit TextsInMemory(std::function<std::optional<std::string>()> next) : next_(std::move(next)) {}

  bool next(Block& block) override {
    block.bytes.clear();
    block.ends.clear();
    block.first = number_;
    while (block.bytes.size() < bytes_at_once && block.ends.size() < texts_at_once && !is_done_) {
      const auto text = next_();
      is_done_ = !text.has_value();
      if (is_done_) break;
      block.bytes += *text;
      block.ends.push_back(block.bytes.size());
      ++number_;
    }
    return !block.ends.empty();
  }

  void for_each(const Block& block, const Visit& visit) const override {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < block.ends.size(); ++at) {
      visit(std::string_view(block.bytes).substr(begin, block.ends[at] - begin), block.first + static_cast<std::int64_t>(at));
      begin = block.ends[at];
    }
  }

  void refuse(const Block&, std::int64_t number, const std::string& what, const std::string& hint) const override {
    throw Error({.code = ErrorCode::invalid_argument, .message = fmt::format("text {} {}", number, what), .hint = hint});
  }

 private:
  std::function<std::optional<std::string>()> next_;
  std::int64_t number_ = 0;
  bool is_done_ = false;
};

class TextsOfFiles : public TextSource {
 public:
  explicit TextsOfFiles(TextFiles of) : of_(std::move(of)) {
    require(!of_.files.empty(), "there are no files to train a tokenizer on");
    require(of_.json_field.empty() || !of_.whole, "a file of JSON lines is not one text: leave out `json_field` or `whole`");
  }

  bool next(Block& block) override {
    for (; file_ < of_.files.size(); ++file_) {
      if (input_ == nullptr) {
        input_ = open_file(of_.files[file_]);
        offset_ = 0;
        line_ = 1;
      }
      if (offset_ < input_->size()) {
        block.file = file_;
        block.first = line_;
        read(block.bytes);
        return true;
      }
      input_.reset();
    }
    return false;
  }

  void for_each(const Block& block, const Visit& visit) const override {
    if (of_.whole) return visit(block.bytes, block.first);
    std::int64_t number = block.first;
    for (std::string_view rest = block.bytes; !rest.empty(); ++number) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);  // the rest where there is no newline
      const std::string_view whole = line.empty() ? rest : line;
      rest.remove_prefix(whole.size());
      if (of_.json_field.empty()) {
        visit(whole, number);
      } else {
        visit_json(block, whole, number, visit);
      }
    }
  }

  void refuse(const Block& block, std::int64_t number, const std::string& what, const std::string& hint) const override {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = of_.whole ? fmt::format("the text {}", what) : fmt::format("line {} {}", number, what),
                 .path = of_.files[block.file].string(),
                 .hint = hint});
  }

 private:
  // Reads whole lines, about bytes_at_once, or the whole file.
  void read(std::string& bytes) {
    const std::uint64_t left = input_->size() - offset_;
    std::uint64_t wanted = of_.whole ? left : std::min<std::uint64_t>(left, bytes_at_once);
    bytes.clear();
    while (true) {
      const std::size_t done = bytes.size();
      bytes.resize(static_cast<std::size_t>(wanted));
      input_->read_at(std::as_writable_bytes(std::span(bytes).subspan(done)), offset_ + done);
      if (wanted == left) break;
      const std::size_t newline = bytes.rfind('\n');
      if (newline != std::string::npos) {
        bytes.resize(newline + 1);
        break;
      }
      wanted = std::min(left, 2 * wanted);  // a long line
    }
    offset_ += bytes.size();
    line_ += std::ranges::count(bytes, '\n');
  }

  void visit_json(const Block& block, std::string_view line, std::int64_t number, const Visit& visit) const {
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    const bool is_there = object.is_object() && object.contains(of_.json_field) && object.at(of_.json_field).is_string();
    if (!is_there) {
      refuse(block, number, fmt::format("is no JSON object with a text \"{}\"{}", of_.json_field, why_no_json(line)), {});
    }
    visit(object.at(of_.json_field).get_ref<const std::string&>(), number);
  }

  TextFiles of_;
  std::size_t file_ = 0;
  std::unique_ptr<InputFile> input_;
  std::uint64_t offset_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::unique_ptr<TextSource> source_of_files(const TextFiles& files) { return std::make_unique<TextsOfFiles>(files); }

std::unique_ptr<TextSource> source_of_texts(std::function<std::optional<std::string>()> next) {
  return std::make_unique<TextsInMemory>(std::move(next));
}

}  // namespace trireme::tokenizers
