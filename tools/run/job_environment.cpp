#include "job_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "openmpi_settings.hpp"

namespace {

constexpr std::array open_mpi_launchers = {"mpirun", "mpirun.openmpi", "mpiexec", "mpiexec.openmpi", "orterun", "prterun"};

// Of resource managers and of Open MPI, where other hosts may be named.
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
                                       "PRTE_MCA_plm_ssh_agent"};

bool may_name_hosts(const std::string& word) {
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (word.ends_with("_hostfile") || word.ends_with("_agent") || word == "-H" || word == "-rf") return true;
  if (word == "-app" || word == "--app") return true;
  return word.starts_with('-') && (has("host") || has("machinefile") || has("rankfile"));
}

bool has_default_hosts() {
  std::ifstream file("/etc/openmpi/openmpi-default-hostfile");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos && line[first] != '#') return true;
  }
  return false;
}

}  // namespace

bool is_on_this_host_alone(const Command& command) {
  const std::string name = std::filesystem::path(command.front()).filename();
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
  };
  return std::ranges::find(open_mpi_launchers, name) != open_mpi_launchers.end() &&
         std::ranges::none_of(host_variables, is_set) && std::ranges::none_of(command, may_name_hosts) && !has_default_hosts();
}

Environment openmpi_settings(const Command& command) {
  Environment settings;
  for (const auto& [name, value] : shipped_openmpi_settings) {
    for (const char* prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {  // of Open MPI 4.1 and 5
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
  // mpirun refuses the option -x together with the parameter; a command with -x is one of Open MPI.
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
