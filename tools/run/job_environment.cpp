#include "job_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <vector>

#include "openmpi_settings.hpp"

namespace {

namespace fs = std::filesystem;

constexpr std::array open_mpi_launchers = {"mpirun", "mpirun.openmpi", "mpiexec", "mpiexec.openmpi", "orterun", "prterun"};

// Variables of resource managers and of Open MPI that may name other hosts.
constexpr std::array host_variables = {"SLURM_JOB_NODELIST",
                                       "SLURM_NODELIST",
                                       "PBS_NODEFILE",
                                       "LSB_DJOB_HOSTFILE",
                                       "LSB_HOSTS",
                                       "PE_HOSTFILE",
                                       "COBALT_NODEFILE",
                                       "OMPI_MCA_orte_default_hostfile",
                                       "PRTE_MCA_prte_default_hostfile",
                                       "OMPI_MCA_plm_rsh_agent",
                                       "OMPI_MCA_oob_tcp_if_exclude",
                                       "PRTE_MCA_plm_ssh_agent"};

bool may_name_hosts(const std::string& word) {
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (word.ends_with("_hostfile") || word.ends_with("_agent") || word == "-H" || word == "-rf") return true;
  if (word == "-app" || word == "--app" || word.ends_with("-tune") || word.ends_with("-am")) return true;
  if (word.starts_with("oob_tcp_if_")) return true;
  return word.starts_with('-') && (has("host") || has("machinefile") || has("rankfile"));
}

// Whether `matters` accepts a line of the file. Comments and empty lines are skipped.
bool has_line(const fs::path& path, bool (*matters)(const std::string& line)) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos && line[first] != '#' && matters(line)) return true;
  }
  return false;
}

// Open MPI's folders of settings: the system's, and the one in the launcher's prefix.
std::vector<fs::path> settings_folders(const std::string& launcher) {
  std::vector<fs::path> folders{"/etc/openmpi"};
  const char* path = std::getenv("PATH");
  std::istringstream places(launcher.find('/') != std::string::npos ? fs::path(launcher).parent_path().string()
                                                                    : std::string(path == nullptr ? "" : path));
  for (std::string place; std::getline(places, place, ':');) {
    std::error_code unknown;
    const fs::path real = fs::canonical(fs::path(place) / fs::path(launcher).filename(), unknown);
    if (unknown) continue;
    folders.push_back(real.parent_path().parent_path() / "etc");
    break;
  }
  return folders;
}

bool names_hosts_in_files(const std::string& launcher) {
  const auto any = [](const std::string&) { return true; };
  const auto of_hosts = [](const std::string& line) {
    return line.find("hostfile") != std::string::npos || line.find("oob_tcp_if_") != std::string::npos;
  };
  for (const fs::path& folder : settings_folders(launcher)) {
    if (has_line(folder / "openmpi-default-hostfile", any) || has_line(folder / "openmpi-mca-params.conf", of_hosts))
      return true;
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && has_line(fs::path(home) / ".openmpi" / "mca-params.conf", of_hosts);
}

}  // namespace

bool is_on_this_host_alone(const Command& command) {
  const std::string name = std::filesystem::path(command.front()).filename();
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
  };
  return std::ranges::find(open_mpi_launchers, name) != open_mpi_launchers.end() &&
         std::ranges::none_of(host_variables, is_set) && std::ranges::none_of(command, may_name_hosts) &&
         !names_hosts_in_files(command.front());
}

Environment openmpi_settings(const Command& command) {
  Environment settings;
  for (const auto& [name, value] : shipped_openmpi_settings) {
    for (const char* prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {  // for Open MPI 4.1 and for 5
      const std::string variable = prefix + std::string(name);
      if (std::getenv(variable.c_str()) == nullptr) settings.emplace_back(variable, value);
    }
  }
  if (!is_on_this_host_alone(command)) return settings;
  for (const auto& [name, value] : shipped_openmpi_settings_alone) {
    if (std::getenv(std::string(name).c_str()) == nullptr) settings.emplace_back(name, value);
  }
  return settings;
}

Environment job_identity() {
  std::random_device random;
  const auto word = [&random] { return fmt::format("{:08x}{:08x}", random(), random()); };
  Environment identity;
  if (std::getenv("TRIREME_JOB_ID") == nullptr) identity.emplace_back("TRIREME_JOB_ID", word());
  if (std::getenv("TRIREME_JOB_SECRET") == nullptr) identity.emplace_back("TRIREME_JOB_SECRET", word() + word());
  return identity;
}

void share_with_ranks(Command& command, Environment& environment) {
  std::vector<std::string> names;
  for (const auto& [name, value] : environment) {
    if (name.starts_with("TRIREME_")) names.push_back(name);
  }
  // mpirun does not accept the option -x together with the parameter. A command with -x runs Open MPI's mpirun.
  if (std::ranges::find(command, "-x") != command.end()) {
    for (const std::string& name : names) command.insert(command.begin() + 1, {"-x", name});
    return;
  }
  const std::string variable = "OMPI_MCA_mca_base_env_list";
  const char* before = std::getenv(variable.c_str());
  std::string list = before == nullptr ? "" : before;
  for (const std::string& name : names) list += (list.empty() ? "" : ";") + name;
  environment.emplace_back(variable, list);
}
