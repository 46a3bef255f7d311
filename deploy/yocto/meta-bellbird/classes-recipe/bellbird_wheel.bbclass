# A recipe that takes files out of a wheel from PyPI. The class pypi knows source packages only; wheels lie beside them, under
# the Python that they are for, which is py3 here.

def bellbird_wheel_uri(d):
    name = d.getVar('PYPI_ARCHIVE_NAME')
    where = pypi_src_uri(d).split(';')[0].replace('/source/', '/py3/', 1)
    return '%s;downloadfilename=%s.zip;subdir=wheel' % (where, name)

S = "${UNPACKDIR}/wheel"
INHIBIT_DEFAULT_DEPS = "1"
do_unpack[depends] += "unzip-native:do_populate_sysroot"
do_configure[noexec] = "1"
do_compile[noexec] = "1"
