# decant_need(NAME...) makes other projects' targets available: the installed package where there is one, otherwise the
# release pinned here. A name is listed once, and nothing is looked for that no enabled part of the build asks for.
include(FetchContent)

# Eigen's own build is not entered (SOURCE_SUBDIR names no folder): its headers are all that is wanted.
FetchContent_Declare(Eigen3
  GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git
  GIT_TAG 3.4.0
  GIT_SHALLOW ON
  SOURCE_SUBDIR headers-only
  FIND_PACKAGE_ARGS 3.4 NO_MODULE GLOBAL)  # global: whoever adds decant as a folder needs the target too
FetchContent_Declare(Catch2
  GIT_REPOSITORY https://github.com/catchorg/Catch2.git
  GIT_TAG v3.5.4
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS NO_MODULE)
FetchContent_Declare(benchmark
  GIT_REPOSITORY https://github.com/google/benchmark.git
  GIT_TAG v1.8.3
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS NO_MODULE)
FetchContent_Declare(nlohmann_json
  GIT_REPOSITORY https://github.com/nlohmann/json.git
  GIT_TAG v3.11.3
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 3.11 NO_MODULE)
FetchContent_Declare(CLI11
  GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
  GIT_TAG v2.3.2
  GIT_SHALLOW ON
  SYSTEM
  FIND_PACKAGE_ARGS 2.1 NO_MODULE)

function(decant_need)
  set(CMAKE_UNITY_BUILD OFF)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(CATCH_INSTALL_DOCS OFF)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # the pinned projects' option() calls respect the two settings above
  FetchContent_MakeAvailable(${ARGV})
  if("Eigen3" IN_LIST ARGV AND NOT TARGET Eigen3::Eigen)
    FetchContent_GetProperties(Eigen3 SOURCE_DIR folder)
    add_library(Eigen3::Eigen INTERFACE IMPORTED GLOBAL)
    target_include_directories(Eigen3::Eigen INTERFACE ${folder})
  endif()
endfunction()
