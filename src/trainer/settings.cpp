#include "trainer/settings.hpp"

#include <fmt/format.h>

#include "trireme/core/error.hpp"

namespace trireme::trainer {

namespace {

constexpr const char* hint =
    "give the run the checkpoint's settings, or its checkpoints another directory; for weights alone, trireme-ckpt export "
    "FOLDER "
    "FILE writes a file for --init";
constexpr const char* hint_of_data =
    "give the run the data of its checkpoint, or its checkpoints another directory; --allow-other-data or "
    "Options::allow_other_data resumes with these data";

}  // namespace

std::vector<std::string> compare(const checkpoint::Configuration& before, const checkpoint::Configuration& now,
                                 const std::map<std::string, OwnSetting>& own, std::int64_t step) {
  std::vector<std::string> notes;
  for (const auto& [name, value] : now) {
    const auto found = before.find(name);
    const auto of_program = own.find(name);
    const OwnSetting setting = of_program != own.end() ? of_program->second : OwnSetting{.rule = rule_of_setting(name)};
    const Differs differs = setting.rule.differs;
    const bool is_same = found == before.end() ? setting.rule.absent == value : found->second == value;
    if (is_same || differs == Differs::allowed) continue;
    const std::string had = found != before.end() ? found->second
                            : setting.rule.absent ? fmt::format("{}, the default of a setting that it lacks",
                                                                setting.rule.absent->empty() ? "nothing" : *setting.rule.absent)
                                                  : "not there";
    if (differs == Differs::told) {
      notes.push_back(fmt::format("note: {} was {} in the checkpoint, is {} now", name, had, value));
      continue;
    }
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the checkpoint of step {} was made with another {}", step, name),
         .name = name,
         .wanted = value,
         .had = had,
         .hint = fmt::format(
             "{}{}", setting.of_data ? hint_of_data : hint,
             of_program == own.end() || setting.of_data ? "" : "; a program can allow it by the Differs of CommandLine::add")});
  }
  return notes;
}

}  // namespace trireme::trainer
