#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/models/architectures/gpt.hpp"

// The bounds of a number option.
struct Bounds {
  double least;
  double most = std::numeric_limits<double>::infinity();
};
inline constexpr Bounds positive{.least = std::numeric_limits<double>::min()};
inline constexpr Bounds not_negative{.least = 0};

// The command line of a benchmark. CLI11 takes longer to compile than a benchmark; here it is compiled once for all.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `value` keeps what it holds unless the option is given; --help shows it. Number: int, std::int64_t, std::size_t, double.
  template <typename Number>
  void option(const std::string& name, Number& value, const std::string& meaning, Bounds bounds = positive);
  template <typename Number>
  void option(const std::string& name, std::vector<Number>& values, const std::string& meaning, Bounds bounds = positive);
  void option(const std::string& name, std::string& value, const std::string& meaning,
              const std::vector<std::string>& allowed = {});  // empty: any text is allowed
  void option(const std::string& name, std::vector<std::string>& values, const std::string& meaning);
  void flag(const std::string& name, bool& value, const std::string& meaning);

  // --layers, --heads, --width, --block, --vocabulary.
  void options_of(trireme::models::GptOptions& model);

  void require(const std::string& name);
  void needs(const std::string& name, const std::string& other);
  void excludes(const std::string& name, const std::string& other);

  // Nothing where the benchmark should run; otherwise the exit code of its main, as in trireme::parse_command_line.
  std::optional<int> parse(int argc, const char* const* argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};
