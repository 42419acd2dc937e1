#include "measurement/command_line.hpp"

#include <filesystem>

#include "command_line/command_line.hpp"

struct CommandLine::Parser {
  explicit Parser(const std::string& description) : app(description) {}

  CLI::App app;
};

namespace {

CLI::Validator within(Bounds bounds) {
  if (bounds.least == positive.least) return trireme::above(0);
  if (bounds.most == not_negative.most) return trireme::at_least(bounds.least);
  return trireme::between(bounds.least, bounds.most);
}

}  // namespace

CommandLine::CommandLine(const std::string& description) : parser_(std::make_unique<Parser>(description)) {}
CommandLine::~CommandLine() = default;

template <typename Number>
void CommandLine::option(const std::string& name, Number& value, const std::string& meaning, Bounds bounds) {
  trireme::add_number(parser_->app, name, value, meaning)->check(within(bounds));
}

template <typename Number>
void CommandLine::option(const std::string& name, std::vector<Number>& values, const std::string& meaning, Bounds bounds) {
  trireme::add_numbers(parser_->app, name, values, meaning)->check(within(bounds));
}

#define TRIREME_INSTANTIATE(Number)                                                           \
  template void CommandLine::option(const std::string&, Number&, const std::string&, Bounds); \
  template void CommandLine::option(const std::string&, std::vector<Number>&, const std::string&, Bounds);
TRIREME_INSTANTIATE(int)
TRIREME_INSTANTIATE(std::int64_t)
TRIREME_INSTANTIATE(std::size_t)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

void CommandLine::option(const std::string& name, std::string& value, const std::string& meaning,
                         const std::vector<std::string>& allowed) {
  auto* option = parser_->app.add_option(name, value, meaning)->capture_default_str();
  if (!allowed.empty()) option->check(CLI::IsMember(allowed));
}

void CommandLine::option(const std::string& name, std::vector<std::string>& values, const std::string& meaning) {
  parser_->app.add_option(name, values, meaning)->delimiter(',')->capture_default_str();
}

void CommandLine::flag(const std::string& name, bool& value, const std::string& meaning) {
  parser_->app.add_flag(name, value, meaning);
}

void CommandLine::options_of(trireme::models::GptOptions& model) {
  option("--layers", model.layers, "transformer blocks");
  option("--heads", model.heads, "attention heads");
  option("--width", model.width, "of the residual stream");
  option("--block", model.block, "tokens of a sequence");
  option("--vocabulary", model.vocabulary, "classes");
}

void CommandLine::require(const std::string& name) { parser_->app.get_option(name)->required(); }

void CommandLine::needs(const std::string& name, const std::string& other) {
  parser_->app.get_option(name)->needs(parser_->app.get_option(other));
}

void CommandLine::excludes(const std::string& name, const std::string& other) {
  parser_->app.get_option(name)->excludes(parser_->app.get_option(other));
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  parser_->app.name(std::filesystem::path(argv[0]).filename().string());
  return trireme::parse_command_line(parser_->app, argc, argv);
}
