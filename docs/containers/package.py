# A package of Spack:
#
#   spack repo create ~/spack_site site
#   mkdir -p ~/spack_site/spack_repo/site/packages/py_callpath_modeler
#   cp docs/containers/package.py ~/spack_site/spack_repo/site/packages/py_callpath_modeler/
#   spack repo add ~/spack_site/spack_repo/site
#   spack install --no-checksum py-callpath-modeler
#
# If your Spack lacks py-pycubexr or py-otf2, `spack create` writes a package from the address
# of the sdist. To install from the sdist of `make wheel`, set `url` to its path.
from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyCallpathModeler(PythonPackage):
    """Scalability models, excess work and predicted ranks for the call paths of an application."""

    homepage = "https://pypi.org/project/callpath-modeler/"
    pypi = "callpath-modeler/callpath_modeler-0.2.0.tar.gz"

    license("BSD-3-Clause")

    version("0.2.0")

    variant("caliper", default=False, description="Check profiles of Caliper with its own reader")
    variant("parquet", default=False, description="Read and write Parquet tables")
    variant("plot", default=False, description="Draw charts with matplotlib")
    variant("mpi", default=False, description="Give work to the ranks of a job")

    depends_on("c", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.27:", type="build")

    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-loky@3.4:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-networkx@3.0:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-otf2@3.1:", type=("build", "run"))
    depends_on("py-pandas@2.0:", type=("build", "run"))
    depends_on("py-pycubexr@2.1:", type=("build", "run"))
    depends_on("py-rich@14.2:", type=("build", "run"))
    depends_on("py-scipy@1.11:", type=("build", "run"))
    depends_on("py-textual@8.0:", type=("build", "run"))

    depends_on("py-caliper-reader@0.4:", type=("build", "run"), when="+caliper")
    depends_on("py-pyarrow@14:", type=("build", "run"), when="+parquet")
    depends_on("py-matplotlib@3.8:", type=("build", "run"), when="+plot")
    depends_on("py-mpi4py@4:", type=("build", "run"), when="+mpi")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_version(self):
        Executable(self.prefix.bin.cpmodel)("--version")
