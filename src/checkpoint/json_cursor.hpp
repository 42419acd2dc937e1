#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/checkpoint/manifest.hpp"

namespace trireme::checkpoint {

// Reads JSON as Json::dump() writes it, without spaces and with the members of an object in ascending order: value by value
// from its front, storing nothing. For whatever else it calls `refuse` with what is wrong, which throws.
class JsonCursor {
 public:
  using Refuse = std::function<void(const std::string& what)>;

  JsonCursor(std::string_view text, Refuse refuse) : rest_(text), refuse_(std::move(refuse)) {}

  // For each member visit(name) reads the value; for each element visit() does.
  void object(const std::function<void(const std::string& name)>& visit);
  void array(const std::function<void()>& visit);
  std::size_t count_elements() const;  // of the array that is next

  std::string text();
  bool boolean();
  std::int64_t integer();
  std::uint64_t unsigned_integer();
  SavedValue number_or_text();
  void skip();  // a value of any kind

  void take(std::string_view token);  // exactly these characters
  void end() const;                   // nothing is left
  std::string_view rest() const { return rest_; }

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  bool next_is(char character) const { return !rest_.empty() && rest_.front() == character; }
  std::string_view text_token();
  std::string_view number_token();

  std::string_view rest_;
  Refuse refuse_;
  int depth_ = 0;
};

}  // namespace trireme::checkpoint
