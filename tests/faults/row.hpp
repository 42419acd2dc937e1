#pragma once

#include <functional>
#include <string>

namespace trireme::tests {

// One line of what `faults` prints: a kind of fault, how often it was made to happen, and how often all was well afterwards.
class Row {
 public:
  Row(std::string area, std::string done) : area_(std::move(area)), done_(std::move(done)) {}

  // One fault. `action` throws where something is not as it should be; what it is goes to stdout.
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
