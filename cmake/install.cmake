# Install rules, and the package that find_package(decant) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/decant)

install(TARGETS decant EXPORT decant-targets FILE_SET HEADERS)
install(EXPORT decant-targets NAMESPACE decant:: DESTINATION ${package_dir})
configure_package_config_file(cmake/decant-config.cmake.in decant-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(decant-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES ${PROJECT_BINARY_DIR}/decant-config.cmake ${PROJECT_BINARY_DIR}/decant-config-version.cmake
  DESTINATION ${package_dir})
