# cmake --install, find_package(calque) for other projects, and a Debian package (tools/package).
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/calque)
# The component `translate`: the library and what it stands on. Other layers and their headers are not installed.
set(translate_layers library runs distributed report metrics decode checkpoint model kernels data base)
list(TRANSFORM translate_layers PREPEND calque_)
set_target_properties(calque_library PROPERTIES EXPORT_NAME translate)

install(TARGETS calque RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${translate_layers} EXPORT calqueTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT calqueTargets NAMESPACE calque:: DESTINATION ${config_folder})
install(FILES include/calque/calque.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/calque)
configure_package_config_file(tools/cmake/calqueConfig.cmake.in ${PROJECT_BINARY_DIR}/calqueConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/calqueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/calqueConfig.cmake ${PROJECT_BINARY_DIR}/calqueConfigVersion.cmake
              tools/cmake/libtorch.cmake DESTINATION ${config_folder})

# The man page and the completions come from the command table itself.
add_custom_command(
  OUTPUT calque.1 calque.bash calque.zsh calque.fish
  COMMAND calque man > calque.1
  COMMAND calque completion bash > calque.bash
  COMMAND calque completion zsh > calque.zsh
  COMMAND calque completion fish > calque.fish
  DEPENDS calque VERBATIM)
add_custom_target(generated_files ALL DEPENDS calque.1 calque.bash calque.zsh calque.fish)
install(FILES ${PROJECT_BINARY_DIR}/calque.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/calque.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME calque)
install(FILES ${PROJECT_BINARY_DIR}/calque.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        RENAME _calque)
install(FILES ${PROJECT_BINARY_DIR}/calque.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The configurations whose data and base model the repository carries, with these.
install(FILES configs/demo.yaml configs/few-scratch.yaml configs/few-finetuned.yaml configs/pretrain-base.yaml configs/bench.yaml
        DESTINATION ${CMAKE_INSTALL_DATADIR}/calque/configs)
install(DIRECTORY data/everyday DESTINATION ${CMAKE_INSTALL_DATADIR}/calque/data)
install(DIRECTORY checkpoints/base DESTINATION ${CMAKE_INSTALL_DATADIR}/calque/checkpoints)

if(CALQUE_BUNDLE_LIBTORCH)  # the Debian package
  install(FILES tools/systemd/calque.service DESTINATION lib/systemd/system)
  install(FILES tools/systemd/calque.default DESTINATION /etc/default RENAME calque)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/conffiles)
  file(WRITE ${PROJECT_BINARY_DIR}/conffiles "/etc/default/calque\n")
  set(bundle ${CMAKE_INSTALL_LIBDIR}/calque)
  file(GLOB torch_libraries ${TORCH_INSTALL_PREFIX}/lib/libtorch.so ${TORCH_INSTALL_PREFIX}/lib/libtorch_cpu.so
       ${TORCH_INSTALL_PREFIX}/lib/libc10.so ${TORCH_INSTALL_PREFIX}/lib/libgomp*.so*
       ${TORCH_INSTALL_PREFIX}/../torch.libs/libgomp*.so*)
  install(FILES ${torch_libraries} DESTINATION ${bundle})
  file(RELATIVE_PATH bundle_from_bin /${CMAKE_INSTALL_BINDIR} /${bundle})
  set_target_properties(calque PROPERTIES INSTALL_RPATH "$ORIGIN/${bundle_from_bin}")
else()
  set_target_properties(calque PROPERTIES INSTALL_RPATH ${TORCH_INSTALL_PREFIX}/lib)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The calque authors <calque@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${TORCH_INSTALL_PREFIX}/lib ${TORCH_INSTALL_PREFIX}/../torch.libs)
set(CPACK_STRIP_FILES ON)
include(CPack)
