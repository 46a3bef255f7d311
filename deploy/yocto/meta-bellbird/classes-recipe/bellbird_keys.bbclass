# A recipe that can't be built without keys. BELLBIRD_NEEDED_KEYS are the files in BELLBIRD_KEY_DIR that it takes. There are
# no keys in this layer, not even for tests: a device that trusts them would trust everybody.

# nooelint: oelint.vars.noncoreoverride
python () {
    import os

    names = (d.getVar('BELLBIRD_NEEDED_KEYS') or '').split()
    directory = d.getVar('BELLBIRD_KEY_DIR')
    if names and not directory:
        raise bb.parse.SkipRecipe('BELLBIRD_KEY_DIR is not set: it is the directory with %s; README.md beside the layer '
                                  'says how to make them' % ', '.join(names))
    for name in names:
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            raise bb.parse.SkipRecipe('%s is missing: README.md beside the layer says how to make it' % path)
}
