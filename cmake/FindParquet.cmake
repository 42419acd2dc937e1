# Makes the target Parquet::parquet_shared of Apache Arrow's own package, or else of the pyarrow of the python3 in PATH.
include(FindPackageHandleStandardArgs)
find_package(Parquet CONFIG QUIET)
if(Parquet_CONFIG AND TARGET Parquet::parquet_shared)
  find_package_handle_standard_args(Parquet CONFIG_MODE)
  return()
endif()

find_program(Parquet_PYTHON python3 NO_CACHE)
set(Parquet_folder Parquet_folder-NOTFOUND)
if(Parquet_PYTHON)
  # Its folder, and the number in its libraries' names.
  execute_process(
    COMMAND ${Parquet_PYTHON} -c "import pyarrow; print(pyarrow.get_library_dirs()[0] + ';' + pyarrow.cpp_build_info.so_version)"
    OUTPUT_VARIABLE Parquet_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(LENGTH Parquet_found count)
  if(count EQUAL 2)
    list(GET Parquet_found 0 Parquet_folder)
    list(GET Parquet_found 1 Parquet_so_version)
  endif()
endif()
find_path(Parquet_INCLUDE_DIR parquet/arrow/reader.h PATHS ${Parquet_folder}/include NO_DEFAULT_PATH)
find_library(Parquet_LIBRARY libparquet.so.${Parquet_so_version} PATHS ${Parquet_folder} NO_DEFAULT_PATH)
find_library(Parquet_ARROW_LIBRARY libarrow.so.${Parquet_so_version} PATHS ${Parquet_folder} NO_DEFAULT_PATH)
mark_as_advanced(Parquet_INCLUDE_DIR Parquet_LIBRARY Parquet_ARROW_LIBRARY)
find_package_handle_standard_args(Parquet REQUIRED_VARS Parquet_LIBRARY Parquet_ARROW_LIBRARY Parquet_INCLUDE_DIR)
if(Parquet_FOUND) # otherwise another one may be in PATH the next time
  set(Parquet_PYTHON "${Parquet_PYTHON}" CACHE FILEPATH "The python3 whose pyarrow is used")
endif()
if(Parquet_FOUND AND NOT TARGET Parquet::parquet_shared)
  add_library(Parquet::arrow UNKNOWN IMPORTED)
  set_target_properties(Parquet::arrow PROPERTIES IMPORTED_LOCATION ${Parquet_ARROW_LIBRARY}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${Parquet_INCLUDE_DIR})
  add_library(Parquet::parquet_shared UNKNOWN IMPORTED)
  set_target_properties(Parquet::parquet_shared PROPERTIES IMPORTED_LOCATION ${Parquet_LIBRARY} INTERFACE_LINK_LIBRARIES Parquet::arrow
                                                           INTERFACE_INCLUDE_DIRECTORIES ${Parquet_INCLUDE_DIR})
endif()
