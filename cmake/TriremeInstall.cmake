# cmake --install: the library, its headers and a package, so that find_package(trireme) gives trireme::trireme.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)
install(
  TARGETS trireme
  EXPORT trireme-targets
  FILE_SET HEADERS)
install(EXPORT trireme-targets NAMESPACE trireme:: DESTINATION ${package_folder})

# A static library passes on everything that it links, a shared one only what its headers include.
get_target_property(library_type trireme TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  set(TRIREME_IS_STATIC ON)
else()
  set(TRIREME_IS_STATIC OFF)
endif()
configure_package_config_file(cmake/trireme-config.cmake.in trireme-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(trireme-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/trireme-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/trireme-config-version.cmake
              cmake/TriremeMap.cmake cmake/FindPCRE2.cmake cmake/FindParquet.cmake cmake/FindWebP.cmake cmake/Findutf8proc.cmake cmake/Findsentencepiece.cmake
        DESTINATION ${package_folder})

# Pages, examples and programs, in folders that keep the links between pages valid.
if(PROJECT_IS_TOP_LEVEL)
  set(shared_folder ${CMAKE_INSTALL_DATADIR}/trireme)
  install(FILES README.md ARCHITECTURE.md CHANGELOG.md LICENSE DESTINATION ${shared_folder})
  install(DIRECTORY docs DESTINATION ${shared_folder})
  install(DIRECTORY deploy DESTINATION ${shared_folder} USE_SOURCE_PERMISSIONS)
  install(DIRECTORY examples DESTINATION ${shared_folder} PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
  install(FILES benchmarks/README.md DESTINATION ${shared_folder}/benchmarks)
  install(DIRECTORY benchmarks/results DESTINATION ${shared_folder}/benchmarks)

  set(CPACK_PACKAGE_NAME trireme)
  set(CPACK_PACKAGE_CONTACT "the authors of Trireme") # required for a Debian package
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_STRIP_FILES ON)
  include(CPack)
endif()
