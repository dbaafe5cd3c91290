# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The recipe of OpenLAPI for Spack, built from a checkout:

    spack repo add packaging/spack
    spack dev-build openlapi@=main

Spack itself was not tried: a test runs the recipe with a stand-in for it.
"""

from spack.package import *


class Openlapi(Package):
    """IBM's LAPI for Linux: one-sided communication with counters and active messages, the launcher poe, compile wrappers
    with the names of AIX's, and tools."""

    license("Apache-2.0 OR MIT")

    # Without an address: the sources are those of the folder in which dev-build runs.
    version("main")

    variant("libfabric", default=True, description="networks of libfabric, which is opened at run time")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")
    depends_on("libfabric@1.17:", type=("build", "run"), when="+libfabric")

    conflicts("platform=darwin", msg="OpenLAPI is for Linux")
    requires(
        "target=x86_64:",
        "target=aarch64:",
        "target=ppc64le:",
        policy="one_of",
        msg="OpenLAPI is for x86-64, aarch64 and powerpc64le",
    )

    def install(self, spec, prefix):
        make("all")
        make("install", "PREFIX={0}".format(prefix), "ADVICE=no")

    def setup_run_environment(self, env):
        env.set("OPENLAPI_ROOT", self.prefix)
        if self.spec.satisfies("+libfabric"):
            # The library opens libfabric.so.1 by its name.
            env.prepend_path("LD_LIBRARY_PATH", self.spec["libfabric"].prefix.lib)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.poe)(self.prefix.bin.lapi_info, "-procs", "2")
