#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/checkpoint/manifest.hpp"

namespace trireme::checkpoint {

// Reads JSON value by value without storing it. The JSON must be as Json::dump() writes it: without spaces, with the members of
// objects in ascending order. For anything else it calls `refuse` with the reason, which must throw.
class JsonCursor {
 public:
  using Refuse = std::function<void(const std::string& what)>;

  JsonCursor(std::string_view text, Refuse refuse) : rest_(text), refuse_(std::move(refuse)) {}

  // Calls visit(name) for each member or visit() for each element; visit must read the value.
  void object(const std::function<void(const std::string& name)>& visit);
  void array(const std::function<void()>& visit);
  std::size_t count_elements() const;  // of the array that comes next

  std::string text();
  bool boolean();
  std::int64_t integer();
  std::uint64_t unsigned_integer();
  SavedValue number_or_text();
  void skip();  // a value of any kind

  void take(std::string_view token);  // exactly these characters
  void end() const;                   // refuses remaining text
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
