#pragma once

#include <initializer_list>
#include <string>

// CUDA libraries that are opened on first use: loading cuBLASLt alone takes 0.2 s and 200 MB, and programs on CPUs must start
// without these libraries.
namespace trireme::device {

class Library {
 public:
  // Opens the first of `files` that the dynamic loader finds, on its own or in the folders of the CUDA toolkit of this build.
  // Throws Error{not_available} with the name `product` if there is none.
  Library(std::string product, std::initializer_list<std::string> files);

  // Sets `function`. Throws Error{not_available} if the library has no such function.
  template <typename Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string product_;
  void* handle_ = nullptr;  // stays open until the program ends
};

}  // namespace trireme::device
