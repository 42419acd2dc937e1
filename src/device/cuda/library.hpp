#pragma once

#include <initializer_list>
#include <string>

// Libraries of CUDA that are opened when they are first needed: cuBLASLt alone takes 0.2 s and 200 MB to load, and a program
// that runs on CPUs must start where there are none.
namespace trireme::device {

class Library {
 public:
  // Opens the first of `files` that the loader finds, by itself or in the folders of the toolkit the build was made with.
  // Throws Error{not_available} that names `product` otherwise.
  Library(std::string product, std::initializer_list<std::string> files);

  // Throws Error{not_available} where the library has no such function.
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
