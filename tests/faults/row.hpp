#pragma once

#include <functional>
#include <string>

namespace trireme::tests {

// One line of the output of `faults`: a kind of fault, how often it was caused, and how often the result was right.
class Row {
 public:
  Row(std::string area, std::string done) : area_(std::move(area)), done_(std::move(done)) {}

  // One fault. `action` throws where the result is wrong; the reason goes to stdout.
  void attempt(const std::string& what, const std::function<void()>& action);
  void note(std::string text) { note_ = std::move(text); }  // what else there is to tell

  bool passed() const { return asked_ > 0 && seen_ == asked_; }
  std::string str() const;

 private:
  std::string area_;
  std::string done_;
  std::string note_;
  int asked_ = 0;
  int seen_ = 0;
};

}  // namespace trireme::tests
