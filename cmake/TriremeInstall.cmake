# cmake --install: the library, its headers and a package, so that find_package(trireme) gives trireme::trireme.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)
install(
  TARGETS trireme
  EXPORT trireme-targets
  FILE_SET HEADERS)
install(EXPORT trireme-targets NAMESPACE trireme:: DESTINATION ${package_folder})

# A static library hands on everything it links, a shared one only what its headers include.
get_target_property(library_type trireme TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(TRIREME_IS_STATIC ON)
else()
  set(TRIREME_IS_STATIC OFF)
endif()
configure_package_config_file(cmake/trireme-config.cmake.in trireme-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(trireme-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/trireme-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/trireme-config-version.cmake
              cmake/TriremeMap.cmake cmake/FindPCRE2.cmake cmake/Findutf8proc.cmake cmake/Findsentencepiece.cmake
        DESTINATION ${package_folder})
