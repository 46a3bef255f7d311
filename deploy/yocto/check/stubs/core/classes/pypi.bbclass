# With the variables and the function that the class of the core layer has, and no real host.
PYPI_ARCHIVE_NAME ?= "${PYPI_PACKAGE}-${PV}.tar.gz"

def pypi_src_uri(d):
    package = d.getVar('PYPI_PACKAGE')
    return 'https://pypi.invalid/packages/source/%s/%s/%s;downloadfilename=x' % (package[0], package, d.getVar('PYPI_ARCHIVE_NAME'))

PYPI_SRC_URI ?= "${@pypi_src_uri(d)}"
SRC_URI:prepend = "${PYPI_SRC_URI} "
