#include "trireme/trainer/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <type_traits>
#include <utility>
#include <variant>

#include "trainer/command_line_impl.hpp"
#include "trainer/command_line_text.hpp"
#include "trainer/number_option.hpp"
#include "trainer/option_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/version.hpp"

namespace trireme::trainer {

namespace {

// The words of the command line, names with hyphens, in CLI11's order: from the end.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int index = argc - 1; index > 0; --index) {
    std::string word = argv[index];
    if (word.starts_with("--")) {
      const std::size_t end = std::min(word.find('='), word.size());
      std::string value = word.substr(end);
      word = with_hyphens(word.substr(0, end));
      if (value == "=") {
        words.emplace_back();  // the value is an empty text, not the next word
      } else {
        word += value;
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

CommandLine::Impl::Impl(std::string description)
    : app(std::move(description)), file(std::make_shared<OptionFile>(app, [this](const std::string& name) {
        return std::ranges::any_of(said, [&](const std::string& word) { return first_name_of(word) == first_name_of(name); });
      })) {
  app.option_defaults()->take_last();  // of an option given twice
  app.config_formatter(file);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "read options from this file (TOML: batch-size = 64)");
  app.add_flag("--print-config", print_config, "write a file for --config that repeats this call, and end")
      ->configurable(false);
}

std::string CommandLine::Impl::written(const std::string& name) { return "--" + with_hyphens(name); }

std::string CommandLine::Impl::free(const std::string& name) const {
  std::string option = written(name);
  require(app.get_option_no_throw(option) == nullptr,
          "{} is an option of every run, or was added twice: give the program's own another name", option);
  require(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos &&
              !name.empty() && name.front() != '-',
          "\"{}\" is no name for an option: letters, digits, '-' and '_' make one", name);
  return option;
}

CLI::Option* CommandLine::Impl::add_text(const std::string& name, const Words& words, const std::string& text) {
  const std::string option = free(name);
  Text& one = texts.emplace_back(Text{.option = nullptr, .value = words.shown(), .take = words.take});
  one.option = app.add_option(option, one.value, text)->capture_default_str();
  if (!words.choices.empty()) one.option->check(CLI::IsMember(words.choices));
  return one.option;
}

CLI::Option* CommandLine::Impl::add(const std::string& name, const OptionValue& value, const std::string& text) {
  const auto add_at = [&](const auto& at) {
    using At = std::remove_cvref_t<decltype(at)>;
    if constexpr (std::same_as<At, Words>) {
      return add_text(name, at, text);
    } else if constexpr (std::same_as<At, Amount*>) {
      const auto shown = [at] { return to_text(*at); };
      return add_text(name, {.shown = shown, .take = [at](const std::string& given) { *at = parse_amount(given); }}, text);
    } else if constexpr (std::same_as<At, std::string*>) {
      return app.add_option(free(name), *at, text)->capture_default_str();
    } else if constexpr (std::same_as<At, bool*>) {
      const std::string flag = free(name);
      return app.add_flag(fmt::format("{},!--no-{}", flag, flag.substr(2)), *at, text);
    } else {
      return add_number(app, free(name), *at, text);
    }
  };
  return std::visit(add_at, value)->group(group);
}

CLI::Option* CommandLine::Impl::add_own(const std::string& name, const OptionValue& value, const std::string& text,
                                        Differs differs) {
  CLI::Option* option = add(name, value, text);
  const bool in_words = std::holds_alternative<Amount*>(value);  // checkpoints keep what was given: "2h"
  const auto shown = [value, in_words, given = in_words ? &texts.back().value : nullptr] {
    return in_words ? *given : text_of_value(value);
  };
  settings.push_back({.name = name, .shown = shown, .usual = shown(), .differs = differs});
  return option;
}

void CommandLine::Impl::exclude_others(CLI::Option* option, const std::string& name, const std::string& instead_of) {
  option->excludes(app.get_option(written(instead_of)));
  for (const auto& [other, first] : same) {
    if (first == instead_of) option->excludes(app.get_option(written(other)));
  }
  same[name] = instead_of;
}

const std::string& CommandLine::Impl::first_name_of(const std::string& name) const {
  const auto found = same.find(name);
  return found == same.end() ? name : found->second;
}

void CommandLine::Impl::check_named(const std::string& name, const std::function<void()>& check) const {
  try {
    check();
  } catch (const Error& error) {
    ErrorFields fields = error.fields();
    if (app.get_option(written(name))->count() > 0) fields.name = written(name);
    throw Error(std::move(fields));
  }
}

ErrorFields CommandLine::Impl::located(ErrorFields fields) const {
  const std::string& text = fields.name.empty() ? fields.message : fields.name;
  const int line = text.starts_with("--") ? file->line_of(text.substr(2, text.find_first_of(" :") - 2)) : 0;
  if (line == 0 || !fields.path.empty()) return fields;
  fields.message += fmt::format(" (line {} of the options)", line);
  fields.path = file->path();
  return fields;
}

CommandLine::CommandLine(const std::string& description) : impl_(std::make_unique<Impl>(description)) {}
CommandLine::~CommandLine() = default;

void CommandLine::add(const std::string& name, bool& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, int& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, std::int64_t& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, std::uint64_t& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, double& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, std::optional<double>& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, std::string& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, Amount& value, const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs);
}
void CommandLine::add(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                      const std::string& text, Differs differs) {
  impl_->add_own(name, &value, text, differs)->check(CLI::IsMember(choices));
}

void CommandLine::set_group(const std::string& heading) { impl_->group = heading; }

void CommandLine::after_parsing(std::function<void()> check) { impl_->after_parsing.push_back(std::move(check)); }

std::string CommandLine::parse(int argc, const char* const* argv) {
  CLI::App& app = impl_->app;
  impl_->program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "program";
  app.name(impl_->program);
  app.set_version_flag("--version", fmt::format("{} {}", impl_->program, version()), "print the version");
  try {
    std::vector<std::string> words = words_of(argc, argv);
    for (const std::string& word : words) {
      if (word.starts_with("--")) impl_->said.insert(word.substr(2, word.find('=') - 2));
    }
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion& version) {
    return fmt::format("{}\n", version.what());
  } catch (const CLI::ParseError& error) {
    throw Error(impl_->located({.code = ErrorCode::invalid_argument,
                                .message = text_of(error, app),
                                .hint = fmt::format("{} --help lists the options", impl_->program)}));
  }
  for (const Impl::Text& text : impl_->texts) {
    if (text.option->count() == 0) continue;
    try {
      text.take(text.value);
    } catch (const Error& error) {
      ErrorFields fields = error.fields();
      fields.name = text.option->get_name();
      throw Error(impl_->located(std::move(fields)));
    }
  }
  try {
    for (const auto& check : impl_->after_parsing) check();
  } catch (const Error& error) {
    throw Error(impl_->located(error.fields()));
  }
  return impl_->print_config ? configuration() : std::string();
}

std::string CommandLine::configuration() const { return impl_->app.config_to_str(); }

const DeviceOptions* CommandLine::device() const { return impl_->device; }

bool CommandLine::given(const std::string& name) const {
  const CLI::Option* option = impl_->app.get_option_no_throw(Impl::written(name));
  require(option != nullptr, "given() names {}, which is no option of this command line", name);
  return option->count() > 0;
}

const std::string& CommandLine::program() const { return impl_->program; }

std::vector<CommandLine::Setting> CommandLine::settings() const {
  std::vector<Setting> all;
  for (const Impl::Own& own : impl_->settings) {
    all.push_back({.name = own.name, .value = own.shown(), .usual = own.usual, .differs = own.differs});
  }
  return all;
}

}  // namespace trireme::trainer
