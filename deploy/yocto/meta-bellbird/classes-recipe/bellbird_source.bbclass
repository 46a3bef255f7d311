# A recipe of something that has the version of the commit. Without the tarball there is none.

python () {
    if not d.getVar('BELLBIRD_VERSION'):
        raise bb.parse.SkipRecipe('there is no source: run "make vendor-tarball" in the repository first, or set '
                                  'BELLBIRD_SOURCE_DIR (it is %s), and DISTRO to "bellbird"' % d.getVar('BELLBIRD_SOURCE_DIR'))
}
