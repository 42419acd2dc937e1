// Loads plugins with two versions of the library, each static and shared, into one process.

#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Plugin {
  const char* file;
  const char* version;
  int scope;  // of what its library shows
  void* handle = nullptr;

  void* address(const char* name) const { return dlsym(handle, name); }
  template <typename Result>
  Result call(const char* name) const {
    return reinterpret_cast<Result (*)()>(address(name))();
  }
};

int failures = 0;

void expect(bool is_so, const Plugin& plugin, const std::string& what) {
  if (is_so) return;
  ++failures;
  std::printf("%s: %s\n", plugin.file, what.c_str());
}

}  // namespace

int main() {
  // Static plugins keep their own library even with RTLD_GLOBAL.
  std::vector<Plugin> plugins{{plugin_this_SHARED, NUMBER_THIS, RTLD_LOCAL},
                              {plugin_next_SHARED, NUMBER_NEXT, RTLD_LOCAL},
                              {plugin_this_STATIC, NUMBER_THIS, RTLD_GLOBAL},
                              {plugin_next_STATIC, NUMBER_NEXT, RTLD_GLOBAL}};
  for (Plugin& plugin : plugins) {
    plugin.handle = dlopen(plugin.file, RTLD_NOW | plugin.scope);
    if (plugin.handle == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
  }
  const double loss = plugins[0].call<double>("trained_loss");
  for (const Plugin& plugin : plugins) {
    const std::string version = plugin.call<const char*>("library_version");
    const std::string headers = "0." + std::to_string(plugin.call<int>("headers_minor")) + ".0";
    expect(version == plugin.version, plugin, "its library is " + version + ", not " + plugin.version);
    expect(headers == plugin.version, plugin, "its headers are " + headers + ", not " + plugin.version);
    expect(plugin.call<bool>("error_is_caught"), plugin, "an error of the library is not caught as one");
    const double own = plugin.call<double>("trained_loss");
    expect(own == loss && std::isfinite(own) && own < 0.5, plugin, "its loss is " + std::to_string(own));
    // trireme::trainer::listen_for_signals() and trireme::version(): within the library, and for all.
    const bool is_shared = plugin.scope == RTLD_LOCAL;
    expect(plugin.address("_ZN7trireme7trainer18listen_for_signalsEv") == nullptr, plugin, "it shows what is private");
    expect((plugin.address("_ZN7trireme7versionEv") != nullptr) == is_shared, plugin,
           "trireme::version() is not shown as it should");
  }
  if (failures == 0) std::printf("%zu plugins, loss %.6f\n", plugins.size(), loss);
  return failures == 0 ? 0 : 1;
}
