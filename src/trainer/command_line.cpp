#include "trireme/trainer/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "trainer/command_line_impl.hpp"
#include "trainer/command_line_text.hpp"
#include "trainer/number_option.hpp"
#include "trainer/option_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/version.hpp"

namespace trireme::trainer {

namespace {

// Different words for one thing: where the command line has one of them, a file's are passed over.
constexpr auto lengths = std::to_array<std::string_view>({"until", "steps", "epochs"});

bool is_length(std::string_view name) { return std::ranges::find(lengths, name) != lengths.end(); }

// Names with hyphens, in the order that CLI11 wants: from the end.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int index = argc - 1; index > 0; --index) {
    std::string word = argv[index];
    if (word.starts_with("--")) {
      const std::size_t end = std::min(word.find('='), word.size());
      std::string value = word.substr(end);
      word = with_hyphens(word.substr(0, end));
      if (value == "=") {
        words.emplace_back();  // an empty text, and not the next word
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
        return said.contains(name) || (is_length(name) && has_length);
      })) {
  app.option_defaults()->take_last();  // of an option given twice
  app.config_formatter(file);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "read options from this file (TOML: batch-size = 64)");
  app.add_flag("--print-config", print_config, "write a file for --config that repeats this call, and end")
      ->configurable(false);
}

std::string CommandLine::Impl::written(const std::string& name) { return "--" + with_hyphens(name); }

std::string CommandLine::Impl::free(const std::string& name) {
  std::string option = written(name);
  require(app.get_option_no_throw(option) == nullptr,
          "{} is an option of every run, or was added twice: give the program's own another name", option);
  require(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string::npos &&
              !name.empty() && name.front() != '-',
          "\"{}\" is no name for an option: letters, digits, '-' and '_' make one", name);
  return option;
}

CLI::Option* CommandLine::Impl::own(const std::string& name, CLI::Option* option, const std::function<std::string()>& shown) {
  option->group(group);
  if (!of_run) settings.push_back({.name = name, .shown = shown, .usual = shown()});
  return option;
}

CLI::Option* CommandLine::Impl::add_text(const std::string& name, const std::string& value, const std::string& text,
                                         std::function<void(const std::string&)> take) {
  Text& one = texts.emplace_back(Text{.option = nullptr, .value = value, .take = std::move(take)});
  one.option = own(name, app.add_option(free(name), one.value, text)->capture_default_str(), [&one] { return one.value; });
  return one.option;
}

CLI::Option* CommandLine::Impl::add_string(const std::string& name, std::string& value, const std::string& text) {
  return own(name, app.add_option(free(name), value, text)->capture_default_str(), [&value] { return value; });
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

void CommandLine::add(const std::string& name, bool& value, const std::string& text) {
  const std::string flag = impl_->free(name);
  impl_->own(name, impl_->app.add_flag(fmt::format("{},!--no-{}", flag, flag.substr(2)), value, text),
             [&value] { return value ? "on" : "off"; });
}
void CommandLine::add(const std::string& name, int& value, const std::string& text) { impl_->add_number(name, value, text); }
void CommandLine::add(const std::string& name, std::int64_t& value, const std::string& text) {
  impl_->add_number(name, value, text);
}
void CommandLine::add(const std::string& name, std::uint64_t& value, const std::string& text) {
  impl_->add_number(name, value, text);
}
void CommandLine::add(const std::string& name, double& value, const std::string& text) { impl_->add_number(name, value, text); }
void CommandLine::add(const std::string& name, std::optional<double>& value, const std::string& text) {
  impl_->own(name, trireme::add_number(impl_->app, impl_->free(name), value, text),
             [&value] { return value ? fmt::format("{}", *value) : "not given"; });
}
void CommandLine::add(const std::string& name, std::string& value, const std::string& text) {
  impl_->add_string(name, value, text);
}
void CommandLine::add(const std::string& name, Amount& value, const std::string& text) {
  impl_->add_text(name, to_text(value), text, [&value](const std::string& given) { value = parse_amount(given); });
}
void CommandLine::add(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                      const std::string& text) {
  impl_->add_string(name, value, text)->check(CLI::IsMember(choices));
}

void CommandLine::set_differs(const std::string& name, Differs differs) {
  const auto own = std::ranges::find(impl_->settings, name, &Impl::Own::name);
  require(own != impl_->settings.end(), "set_differs() names {}, which is no option of the program's own", name);
  own->differs = differs;
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
    impl_->has_length = std::ranges::any_of(impl_->said, is_length);
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
