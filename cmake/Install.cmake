# The installed package: find_package(vckpt) and target vckpt::worker. Only its public headers are installed; the libraries
# behind it, ours and the system's, are linked and not seen.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/vckpt)
foreach(noun schema runtime planner catalog coordinator worker)
  set_target_properties(vckpt_${noun} PROPERTIES EXPORT_NAME ${noun})
endforeach()
set_target_properties(vckpt_warnings PROPERTIES EXPORT_NAME warnings)
install(TARGETS vckpt_schema vckpt_runtime vckpt_planner vckpt_catalog vckpt_coordinator vckpt_worker vckpt_warnings
        EXPORT vckpt ARCHIVE COMPONENT vckpt_worker)
install(EXPORT vckpt NAMESPACE vckpt:: FILE vckptTargets.cmake DESTINATION ${package_folder} COMPONENT vckpt_worker)
install(FILES worker/include/vckpt/worker.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vckpt COMPONENT vckpt_worker)
install(FILES schema/box.h schema/dtype.h schema/ids.h schema/item.h schema/layout.h schema/options.h schema/report.h
              schema/result.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vckpt/schema COMPONENT vckpt_worker)
configure_package_config_file(cmake/vckptConfig.cmake.in ${PROJECT_BINARY_DIR}/vckptConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vckptConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vckptConfig.cmake ${PROJECT_BINARY_DIR}/vckptConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT vckpt_worker)
