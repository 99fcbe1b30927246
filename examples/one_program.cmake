# one_program_source(OUTPUT SOURCE...): writes OUTPUT, one unit with every SOURCE in a namespace of its own and a main
# function that calls the main function of the source that its first argument names, with the arguments that follow.
function(one_program_source output)
  # A header is included where it cannot end up in a namespace: before all sources, which then skip it.
  set(includes)
  set(examples)
  set(calls)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} lines REGEX "^#include ")
    list(APPEND includes ${lines})
    string(APPEND examples "
namespace example_${name} {
#define main entry
#include \"${source}\"
#undef main
}  // namespace example_${name}
")
    string(APPEND calls "  if (name == \"${name}\") return call(example_${name}::entry, argc - 1, argv + 1);\n")
  endforeach()
  list(SORT includes)
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "// Written by one_program.cmake.
@includes@
@examples@
namespace {
int call(int (*entry)(), int, char**) { return entry(); }
int call(int (*entry)(int, char**), int argc, char** argv) { return entry(argc, argv); }
}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : \"\";
@calls@  std::fprintf(stderr, \"there is no such example\\n\");
  return 2;
}
")
endfunction()
