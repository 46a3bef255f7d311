"""Checks the kickstart file of wic, and that all who name a partition mean the same one.

usage: layout.py LAYER
"""

import argparse
import configparser
import os
import re
import shlex
import sys

LAYER = sys.argv[1]


def read(*path):
    with open(os.path.join(LAYER, *path)) as f:
        return f.read()


def fail(text):
    sys.exit('layout: ' + text)


# The options of wic that are used here; what isn't among them is a mistake.
options = argparse.ArgumentParser(prog='wks', allow_abbrev=False)
options.add_argument('mountpoint', nargs='?')
options.add_argument('--source', choices=('rawcopy', 'empty', 'rootfs'))
options.add_argument('--sourceparams')
options.add_argument('--ondisk', required=True)
options.add_argument('--fstype', choices=('ext4',))
options.add_argument('--label')
options.add_argument('--align', type=int, required=True)
options.add_argument('--fixed-size', required=True)
options.add_argument('--system-id', type=lambda s: int(s, 0))
options.add_argument('--active', action='store_true')
options.add_argument('--no-fstab-update', action='store_true')
boot = argparse.ArgumentParser(prog='bootloader', allow_abbrev=False)
boot.add_argument('--ptable', choices=('msdos',), required=True)

variables = {'MACHINE': 'm', 'BELLBIRD_ROOT_SIZE': '512'}
parts, tables = [], 0
for line in read('wic/bellbird-rpi.wks.in').splitlines():
    line = re.sub(r'\$\{(\w+)\}', lambda m: variables[m.group(1)], line)
    words = shlex.split(line, comments=True)
    if not words:
        continue
    command = words.pop(0)
    if command == 'part':
        parts.append(options.parse_args(words))
    elif command == 'bootloader':
        boot.parse_args(words)
        tables += 1
    else:
        fail('wic has no command %s' % command)
if len(parts) != 7 or tables != 1:
    fail('there are %d partitions' % len(parts))
for p in parts:
    if not re.fullmatch(r'\d+M', p.fixed_size):
        fail('a size of %s' % p.fixed_size)
    if (p.source == 'rawcopy') != bool(p.sourceparams) or (p.source == 'rootfs') != (p.mountpoint == '/'):
        fail('the options of a partition don\'t go with each other: %s' % p)

# wic gives numbers as msdos tables have them: the fourth holds those after it.
numbers = [n if n < 4 else n + 1 for n in range(1, 8)]
by = dict(zip(numbers, parts))
disk = {p.ondisk for p in parts}
if disk != {'mmcblk0'}:
    fail('the disk is %s' % disk)

recipe = read('recipes-bsp/bellbird-boot/bellbird-boot_1.0.bb')


def size(name):
    return re.search(r'^%s \?= "(\d+)"' % name, recipe, re.M).group(1) + 'M'


if by[1].fixed_size != size('BELLBIRD_SELECT_SIZE') or {by[2].fixed_size, by[3].fixed_size} != {size('BELLBIRD_BOOT_SIZE')}:
    fail('the boot partitions have other sizes than their file systems')
if by[5].fixed_size != by[6].fixed_size:
    fail('the slots have different sizes')
for a, b in (('a', 5), ('b', 6)):
    if "('%s', %d)" % (a, b) not in recipe:
        fail('the kernel of slot %s isn\'t told that its root is partition %d' % (a, b))

conf = configparser.ConfigParser()
conf.read(os.path.join(LAYER, 'recipes-core/rauc/files/system.conf'))
for section, number in (('rootfs.0', 5), ('boot.0', 2), ('rootfs.1', 6), ('boot.1', 3)):
    if conf['slot.' + section]['device'] != '/dev/mmcblk0p%d' % number:
        fail('slot %s of system.conf is %s' % (section, conf['slot.' + section]['device']))

rpi = read('conf/distro/include/bellbird-rpi.inc')
for number, slot in ((2, 'a'), (3, 'b')):
    if r'[boot_partition=%d]\ncmdline=cmdline-%s.txt' % (number, slot) not in rpi:
        fail('config.txt doesn\'t give partition %d the kernel command line of slot %s' % (number, slot))

mounted = {}
for line in read('recipes-core/base-files/files/fstab').splitlines():
    if line and not line.startswith('#'):
        what, where, kind, how, dump, check = line.split()
        mounted[where] = (what, kind, how.split(','), check)
for where, number, kind in (('/boot/select', 1, 'vfat'), ('/var/lib/settings', 7, 'ext4'), ('/var/lib/bellbird', 8, 'ext4')):
    what, is_kind, how, check = mounted[where]
    if what != '/dev/mmcblk0p%d' % number or is_kind != kind or 'nofail' not in how:
        fail('fstab: %s is %s' % (where, mounted[where]))
    if kind == 'ext4' and (check != '2' or by[number].fstype != kind):
        fail('fstab: %s isn\'t checked' % where)
if 'x-systemd.growfs' not in mounted['/var/lib/bellbird'][2] or max(numbers) != 8:
    fail('the last partition must be the one that grows')
if 'mmcblk0 4 8' not in read('recipes-bellbird/bellbird-system/files/bellbird-grow.service'):
    fail('bellbird-grow.service makes another partition larger')
print('layout: 7 partitions, named the same by wic, the firmware, RAUC and fstab')
