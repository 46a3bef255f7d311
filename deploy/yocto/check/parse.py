"""Parses the whole layer with BitBake's own parser, on a core layer that has the names of a build and nothing behind them.

For each recipe and append, and each series that the layer is for: it must parse; every shell function must be shell; every
local file must be there; everything that is downloaded must have a checksum. Without keys, and without the archive of the
source, the recipes that need them must be refused with a word about what is missing. Functions that install are run, by
install.py, which this imports.

usage: parse.py REPOSITORY WORKDIR
"""

import glob
import logging
import os
import re
import shutil
import subprocess
import sys
import types

# The servers of BitBake, which its package leaves out, and which the parser only names.
for missing in ('hashserv', 'hashserv.client'):
    sys.modules[missing] = types.ModuleType(missing)

import bb.cache
import bb.codeparser
import bb.cookerdata
import bb.data
import bb.fetch2
import bb.parse
import bb.utils

import install

REPOSITORY, WORK = (os.path.abspath(a) for a in sys.argv[1:])
LAYER = os.path.join(REPOSITORY, 'deploy/yocto/meta-bellbird')
STUBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stubs')
SERIES = ('scarthgap', 'styhead', 'walnascar')


class Configuration:
    """The part of BitBake's command line that the parser asks for."""
    prefile, postfile, tracking, skip_fragments, env = [], [], False, False, {}


def builder(series, keys, source, board='none'):
    """Reads the configuration of a build, in a directory of its own."""
    top = os.path.join(WORK, 'build')
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(os.path.join(top, 'conf'))
    shutil.copytree(STUBS, os.path.join(top, 'layers'))
    with open(os.path.join(top, 'conf/bblayers.conf'), 'w') as f:
        f.write('CHECKED_SERIES = "%s"\nBBPATH = "${TOPDIR}"\nBBFILES = ""\nBBLAYERS = "%s"\n' % (
            series, ' '.join([os.path.join(top, 'layers', n) for n in ('core', 'raspberrypi', 'rauc')] + [LAYER])))
    with open(os.path.join(top, 'conf/local.conf'), 'w') as f:
        f.write('DISTRO = "bellbird"\nMACHINE = "raspberrypi4-64"\nBELLBIRD_KEY_DIR = "%s"\nBELLBIRD_SOURCE_DIR = "%s"\n'
                'BELLBIRD_BOARD = "%s"\n' % (keys, source, board))
    os.chdir(top)
    os.environ['BBPATH'] = top
    b = bb.cookerdata.CookerDataBuilder(Configuration)
    b.parseBaseConfiguration()
    return b


def recipes(b):
    """Yields each recipe with its appends, as file names."""
    files = [f for pattern in b.data.getVar('BBFILES').split() for f in sorted(glob.glob(pattern))]
    appends = [f for f in files if f.endswith('.bbappend')]
    used = set()
    for f in files:
        if not f.endswith('.bb'):
            continue
        base = os.path.basename(f)[:-3]
        mine = [a for a in appends if re.fullmatch(re.escape(os.path.basename(a)[:-9]).replace('%', '.*'), base)]
        used.update(mine)
        yield f, mine
    assert used == set(appends), 'nothing to append to: %s' % (set(appends) - used)


def parse(b):
    """Parses all recipes, and yields the name of each variant, its data, and why it is refused, or None."""
    for f, appends in recipes(b):
        for variant, d in b.parseRecipeVariants(f, appends, layername='bellbird').items():
            name = '%s %s' % (d.getVar('PN'), variant) if variant else d.getVar('PN')
            yield name, d, d.getVar('__SKIPPED', False)


def shell_functions(d):
    for key in d.keys():
        if d.getVarFlag(key, 'func', False) and not d.getVarFlag(key, 'python', False):
            yield key, d.getVar(key)


def check_shell(name, d):
    count = 0
    for key, text in shell_functions(d):
        if not text or not text.strip():
            continue
        r = subprocess.run(['sh', '-n'], input='%s() {\n%s\n}\n' % (re.sub(r'\W', '_', key), text), text=True, capture_output=True)
        if r.returncode:
            sys.exit('%s: %s isn\'t shell: %s' % (name, key, r.stderr))
        count += 1
    return count


def check_sources(name, d):
    """Local files must be there, and what is downloaded must have a checksum."""
    for uri in (d.getVar('SRC_URI') or '').split():
        kind, host, path, _, _, options = bb.fetch2.decodeurl(uri)
        if kind == 'file':
            found = path if os.path.isabs(path) else bb.utils.which(d.getVar('FILESPATH'), path)
            if not os.path.isfile(found or ''):
                sys.exit('%s: %s is missing' % (name, uri))
        else:
            flag = '%s.sha256sum' % options['name'] if 'name' in options else 'sha256sum'
            if not re.fullmatch('[0-9a-f]{64}', d.getVarFlag('SRC_URI', flag) or ''):
                sys.exit('%s: %s has no checksum' % (name, uri))


def refusals(b):
    return {n: why for n, _, why in parse(b) if why}


def main():
    logging.basicConfig(level=logging.WARNING, format='%(message)s')
    logging.getLogger('BitBake').setLevel(logging.WARNING)
    shutil.rmtree(WORK, ignore_errors=True)
    keys, source, none = (os.path.join(WORK, n) for n in ('keys', 'source', 'none'))
    for d in (keys, source, none):
        os.makedirs(d)
    for n in ('keyring.pem', 'bundle.cert.pem', 'bundle.key.pem'):
        open(os.path.join(keys, n), 'w').close()
    open(os.path.join(source, 'bellbird-source.tar.gz'), 'w').close()
    with open(os.path.join(source, 'bellbird-version.inc'), 'w') as f:
        f.write('BELLBIRD_VERSION = "0~20260101.gabc"\nBELLBIRD_DESCRIBE = "abc"\nBELLBIRD_BUILT = "2026-01-01T00:00:00Z"\nBELLBIRD_EPOCH = "1767225600"\n')

    for series in SERIES:
        b = builder(series, keys, source, 'respeaker-2mic')
        parsed = functions = 0
        for name, d, why in parse(b):
            if why:
                sys.exit('%s is refused: %s' % (name, why))
            functions += check_shell(name, d)
            check_sources(name, d)
            parsed += 1
            if series == SERIES[-1]:
                install.check(REPOSITORY, WORK, d)
        print('parse: %s: %d recipes and variants, %d shell functions' % (series, parsed, functions))
    install.done()

    for missing, b, refused in (
        ('BELLBIRD_KEY_DIR is not set', lambda: builder(SERIES[0], '', source), {'rauc-conf', 'bellbird-bundle', 'bellbird-image'}),
        ('keyring.pem is missing', lambda: builder(SERIES[0], none, source), {'rauc-conf', 'bellbird-image'}),
        ('make vendor-tarball', lambda: builder(SERIES[0], keys, none), {'bellbird', 'bellbird-bundle', 'bellbird-image'}),
    ):
        said = refusals(b())
        for name in refused:
            if missing not in said.get(name, ''):
                sys.exit('%s must be refused with "%s", and says: %s' % (name, missing, said.get(name)))
        print('parse: without it, "%s": %s' % (missing, ', '.join(sorted(said))))

    # An older core layer must be refused, or the line that says so does nothing.
    try:
        builder('kirkstone', keys, source)
    except BaseException:
        print('parse: kirkstone is refused')
    else:
        sys.exit('a core layer that the layer is not for must be refused')


main()
