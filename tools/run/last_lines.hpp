#pragma once

#include <deque>
#include <string>
#include <string_view>

// The last lines of a stream of text.
class LastLines {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      if (c == '\n') {
        end_line();
      } else if (line_.size() < longest_line) {
        line_.push_back(c);
      }
    }
  }
  std::deque<std::string> lines() const {
    std::deque<std::string> result = lines_;
    if (!line_.empty()) result.push_back(line_);
    return result;
  }

 private:
  static constexpr std::size_t most_lines = 20;
  static constexpr std::size_t longest_line = 1000;

  void end_line() {
    lines_.push_back(line_);
    line_.clear();
    if (lines_.size() > most_lines) lines_.pop_front();
  }

  std::deque<std::string> lines_;
  std::string line_;
};
